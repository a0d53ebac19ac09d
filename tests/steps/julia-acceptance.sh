# SPDX-License-Identifier: MIT
# about: the acceptance program in Julia, through its Distributed, over tcp, shm and a star; nothing is left behind
# tier: full
# parts: julia
# presets: release
# timeout: 400
set -eu
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
    names=$(ls /dev/shm)
    MUSTER_ACCEPTANCE="$$-$way" timeout -k 10 120 "$julia" --startup-file=no test_acceptance.jl $way
    for _ in $(seq 50); do # what was told to go is going
        processes=$(left $way)
        [ "$processes" ] || break
        sleep 0.1
    done
    [ -z "$processes" ] || { echo "left behind: $processes"; exit 1; }
    [ "$(ls /dev/shm)" = "$names" ] || { echo "left in /dev/shm: $(ls /dev/shm)"; exit 1; }
done
