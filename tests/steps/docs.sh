# SPDX-License-Identifier: MIT
# about: the site builds without a warning, and every link on it leads somewhere; a manual page for each header
# tier: full
# parts: docs
# presets: dev
# timeout: 180
set -eu
command -v doxygen >/dev/null || { echo "doxygen is not installed"; exit 77; }
cmake -S "$MUSTER_ROOT" -B "$MUSTER_BUILD" -DMUSTER_BUILD_DOCS=ON >/dev/null
python3 "$MUSTER_ROOT/docs/site/bindings-reference" --undocumented
cmake --build "$MUSTER_BUILD" --target docs
cd "$MUSTER_ROOT"
python3 docs/site/check-links "$MUSTER_BUILD/docs/html"
[ ! -e /usr/share/doxygen-awesome-css ] || grep -q doxygen-awesome.css "$MUSTER_BUILD/docs/html/index.html"
cmake --build "$MUSTER_BUILD" --target man
for header in include/muster/*.h include/muster/inline/*.h; do
    name=muster_$(basename "$header")
    page="$MUSTER_BUILD/docs/man/man3/${name/muster_muster.h/muster.h}.3"
    grep -q '^\.SH NAME' "$page"
done
