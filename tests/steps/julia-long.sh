# SPDX-License-Identifier: MIT
# about: the Julia cluster over tcp and unix, an array over 2 GiB, 32 workers, interrupts under AddressSanitizer
# tier: long
# parts: julia
# presets: release asan-ubsan
# timeout: 1800
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
run() { echo "-- $*"; timeout -k 10 600 "$julia" --startup-file=no "$@"; }
for transport in tcp unix; do
    export MUSTER_TRANSPORT=$transport
    run test_cluster.jl launch topology busy killed interrupted secret guest
    run test_master_killed.jl
done
for transport in shm tcp unix; do
    export MUSTER_TRANSPORT=$transport
    run test_cluster.jl large
done
MUSTER_TRANSPORT=shm run test_cluster.jl many
MUSTER_TRANSPORT=tcp run test_cluster.jl many
