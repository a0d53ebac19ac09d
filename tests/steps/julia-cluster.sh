# SPDX-License-Identifier: MIT
# about: clusters of the Julia binding over shared memory: launches, deaths, threads, a precompiled package
# tier: full
# parts: julia
# presets: release
# timeout: 600
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
run() { echo "-- $*"; timeout -k 10 400 "$julia" --startup-file=no "$@"; }
if [ "$MUSTER_TIER" = long ]; then run test_next.jl; else run test_next.jl shm; fi
run -t 2 test_threads.jl
run test_precompile.jl
MUSTER_TRANSPORT=shm run test_cluster.jl launch ssh served topology busy dropped killed interrupted secret upgrade guest
MUSTER_TRANSPORT=shm run test_master_killed.jl
