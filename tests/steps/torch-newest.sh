# SPDX-License-Identifier: MIT
# about: muster.torch and torchrun with the newest torch of Debian and its Python, unpacked beside this system
# tier: long
# parts: build torch
# presets: dev
# timeout: 1500
set -eu
suite=trixie
root=$MUSTER_ROOT/build/torch-$suite
if [ ! -e "$root/complete" ]; then
    rm -rf "$root"
    "$MUSTER_ROOT/cmake/fetch-suite" --with-dependencies $suite "$root" python3-torch python3-numpy coreutils dash bash procps grep \
        sed util-linux libzmq5 libsodium23 libcurl4t64
    mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/root" "$root/muster"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
    touch "$root/complete"
fi
if ! unshare --map-root-user --mount --pid --fork true 2>/dev/null; then
    echo "no user namespaces here"
    exit 77
fi
cat >"$root/root/try" <<'SCRIPT'
set -eu
export PATH=/usr/bin:/bin HOME=/root TMPDIR=/tmp LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export MUSTER_LIBRARY="/muster/$BUILD/libmuster.so" MUSTER_PLUGIN_PATH="/muster/$BUILD/plugins" MUSTER_COMMAND="/muster/$BUILD/bin/muster"
lib=$(echo /usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH="$lib/blas:$lib/lapack:/muster/$BUILD" # the first two: what the scripts of the packages would link
# Debian's torch is compiled without libuv, and what shares a TCPStore of torch itself does not read USE_LIBUV.
export USE_LIBUV=0 TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo MUSTER_SECRET="a secret for this test"
python3 -c 'import platform, torch; print("Python", platform.python_version(), "torch", torch.__version__, *platform.libc_ver())'
cd /tmp
/muster/tests/conformance/with-store $MUSTER_COMMAND tcp://127.0.0.1:0 -- timeout -k 10 280 python3 /muster/tests/torch/test_torch.py %
timeout -k 10 280 python3 /muster/tests/torch/test_run.py $MUSTER_COMMAND
timeout -k 10 280 python3 /muster/tests/python/test_torch.py
SCRIPT
export ROOT="$root" CHECKOUT="$MUSTER_ROOT" BUILD="${MUSTER_BUILD#"$MUSTER_ROOT"/}"
# shellcheck disable=SC2016 # the inner shell expands it
unshare --map-root-user --mount --pid --fork sh -c '
    mount --rbind /dev "$ROOT/dev" && mount -t proc proc "$ROOT/proc" && mount --rbind "$CHECKOUT" "$ROOT/muster" &&
    mount -t tmpfs tmpfs "$ROOT/tmp" && exec chroot "$ROOT" /bin/bash /root/try'
