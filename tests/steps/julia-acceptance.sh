# SPDX-License-Identifier: MIT
# about: the acceptance program in Julia, through its Distributed, over tcp, shm and a star; nothing is left behind
# tier: full
# parts: julia
# presets: release
# timeout: 400
set -eu
# Open MPI in the steps beside this one uses /dev/shm too; with a mount of its own, this one sees only what it left there.
if [ -z "${MUSTER_OWN_SHM-}" ]; then
    for as in "" --map-root-user; do
        # shellcheck disable=SC2086
        ! unshare --mount $as mount -t tmpfs tmpfs /dev/shm 2>/dev/null ||
            MUSTER_OWN_SHM=yes exec unshare --mount $as bash -c 'mount -t tmpfs tmpfs /dev/shm && exec bash "$0"' "$0"
    done
    echo "no mounts for this user: what is left in /dev/shm is not compared"
fi
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
left() { # by this shell's mark in their environment
    grep -lsaz "^MUSTER_ACCEPTANCE=$$-$1\$" /proc/[0-9]*/environ | while read -r entry; do
        entry=${entry%/environ}
        [ "${entry#/proc/}" = "$$" ] || tr '\0' ' ' <"$entry/cmdline"
    done || true
}
for way in tcp shm star; do
    [ $way != star ] || [ -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || { echo "no muster-zmq.so: without the star"; continue; }
    echo "-- test_acceptance.jl $way"
    MUSTER_ACCEPTANCE="$$-$way" timeout -k 10 120 "$julia" --startup-file=no test_acceptance.jl $way
    for _ in $(seq 50); do # processes that were ended may still be exiting
        processes=$(left $way)
        [ "$processes" ] || break
        sleep 0.1
    done
    [ -z "$processes" ] || { echo "left behind: $processes"; exit 1; }
    [ -z "${MUSTER_OWN_SHM-}" ] || [ -z "$(ls /dev/shm)" ] || { echo "left in /dev/shm: $(ls /dev/shm)"; exit 1; }
done
