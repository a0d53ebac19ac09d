# SPDX-License-Identifier: MIT
# about: the Python binding: generated part in step, layouts, streams, stores, rendezvous, groups; a wheel that is installed
# tier: full
# parts: hosts python
# presets: release
# timeout: 300
set -eu
python=/usr/bin/python3 # Debian's, for which Debian has the packages
[ -x $python ] || { echo "no $python (package python3)"; exit 77; }
"$MUSTER_ROOT/bindings/python/generate" --check
export MUSTER_PLUGIN_PATH="$MUSTER_BUILD/plugins" MUSTER_COMMAND="$MUSTER_BUILD/bin/muster"
for name in layout streams stores messages memory executor served am metrics trace progress; do
    echo "-- test_$name.py"
    timeout -k 10 200 $python -W error "$MUSTER_ROOT/tests/python/test_$name.py"
done
if $python -c 'import setuptools, wheel' 2>/dev/null; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$MUSTER_ROOT/bindings/python/wheel" "$MUSTER_BUILD" "$work"
    $python -m zipfile -e "$work"/*.whl "$work/site" # as an installer does
    env -u MUSTER_LIBRARY -u MUSTER_PLUGIN_PATH -u MUSTER_COMMAND PYTHONPATH="$work/site" $python -W error -c '
import muster
a, b = muster.pair()
a.write(b"from a wheel")
assert b.read(20) == b"from a wheel" and muster.__file__.startswith("'"$work"'/site")
print("a wheel with", muster.version())'
    for part in libuv libsodium ipsec-mb; do grep -q "$part" "$work/site/muster/COPYRIGHT"; done
    chmod +x "$work/site/muster/bin/muster"
    env -u MUSTER_COMMAND PYTHONPATH="$work/site" $python -m muster --version
fi
