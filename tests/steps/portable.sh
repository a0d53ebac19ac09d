# SPDX-License-Identifier: MIT
# about: a wheel for glibc 2.31 and later, and the library, plug-ins and command in it, run by the programs of Debian 11
# tier: long
# parts: build sanitize python
# timeout: 2400
set -eu
[ "$(uname -m)" = x86_64 ] || { echo "cmake/build-portable is for x86-64"; exit 77; }
folder=$MUSTER_ROOT/build/portable
"$MUSTER_ROOT/cmake/build-portable" "$folder" >"$MUSTER_ROOT/build/logs/portable.log" 2>&1 || {
    tail -n 30 "$MUSTER_ROOT/build/logs/portable.log"
    exit 1
}
root=$folder/debian11
if [ ! -e "$root/complete" ]; then
    rm -rf "$root"
    "$MUSTER_ROOT/cmake/fetch-suite" --with-dependencies bullseye "$root" python3 libzmq5 libsodium23 coreutils dash
    mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/root"
    touch "$root/complete"
fi
rm -rf "$root/root/work"
mkdir "$root/root/work"
"$MUSTER_ROOT/bindings/python/wheel" "$folder/build" "$root/root/work"
ls "$root/root/work"
/usr/bin/python3 -m zipfile -e "$root"/root/work/*.whl "$root/root/work/bindings/python"
chmod +x "$root/root/work/bindings/python/muster/bin/muster"
mkdir "$root/root/work/tests"
cp -r "$MUSTER_ROOT/tests/python" "$root/root/work/tests/"
cat >"$root/root/work/try" <<'SCRIPT'
set -eu
cd /root/work/tests/python
export PATH=/usr/bin:/bin HOME=/root TMPDIR=/tmp PYTHONPATH=/root/work/bindings/python PYTHONDONTWRITEBYTECODE=1
python3 -c 'import platform; print("Python", platform.python_version(), *platform.libc_ver())'
for name in streams stores messages; do
    echo "-- test_$name.py"
    timeout -k 10 300 python3 -W error test_$name.py
done

python3 -m muster version
python3 -m muster run --standalone --nproc-per-node 2 -- sh -c 'echo "rank $RANK of $WORLD_SIZE"'
python3 -m muster broker --help >/dev/null
SCRIPT
if ! unshare --map-root-user --mount --pid --fork true 2>/dev/null; then
    echo "no user namespaces here: the wheel was built, not tried"
    exit 77
fi
unset MUSTER_LIBRARY MUSTER_PLUGIN_PATH MUSTER_COMMAND
export MUSTER_SECRET="a secret of the test" ROOT="$root"
# shellcheck disable=SC2016 # the inner shell expands it
unshare --map-root-user --mount --pid --fork sh -c '
    mount --rbind /dev "$ROOT/dev" && mount -t proc proc "$ROOT/proc" && exec chroot "$ROOT" /bin/sh /root/work/try'
