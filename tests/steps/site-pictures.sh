# SPDX-License-Identifier: MIT
# about: pages of the site as a browser shows them, light, dark and on a narrow screen, in build/logs/site
# tier: long
# parts: docs pictures
# presets: dev
# timeout: 300
# alone: yes
set -eu
for program in doxygen chromium; do
    command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
cmake -S "$MUSTER_ROOT" -B "$MUSTER_BUILD" -DMUSTER_BUILD_DOCS=ON >/dev/null
cmake --build "$MUSTER_BUILD" --target docs
pictures=$MUSTER_ROOT/build/logs/site
rm -rf "$pictures"
mkdir -p "$pictures"
browse() { # <page> <words for chromium>...
    HOME=$TMPDIR timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=5000 "${@:2}" \
        "file://$MUSTER_BUILD/docs/html/$1.html" 2>"$TMPDIR/chromium.log" || { tail -n 5 "$TMPDIR/chromium.log"; exit 1; }
}
for page in index guide_cookbook performance python_reference stream_8h; do
    [ -e "$MUSTER_BUILD/docs/html/$page.html" ] || continue
    browse $page --window-size=1300,1000 --screenshot="$pictures/$page.png"
    browse $page --window-size=1300,1000 --blink-settings=preferredColorScheme=0 --screenshot="$pictures/$page-dark.png"
    browse $page --window-size=500,1000 --screenshot="$pictures/$page-narrow.png"
done
# A page without its style sheet or its text is nearly one colour, and dark is not light.
/usr/bin/python3 - "$pictures" <<'END'
import glob, sys
import matplotlib.image
light = {}
for path in sorted(glob.glob(sys.argv[1] + "/*.png")):
    grey = matplotlib.image.imread(path)[:, :, :3].mean(axis=2)
    print(f"{path.rsplit('/', 1)[1]:40} mean {grey.mean():.2f}, deviation {grey.std():.2f}")
    assert grey.std() > 0.03, f"{path} is nearly empty"
    light[path] = grey.mean()
dark = [path for path in light if path.endswith("-dark.png")]
assert len(light) >= 12 and dark
for path in dark:
    assert light[path] < light[path.replace("-dark", "")] - 0.3, f"{path} is not dark"
END
