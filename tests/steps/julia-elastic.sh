# SPDX-License-Identifier: MIT
# about: stores, rendezvous and epochs from Julia; workers that join and leave a running master
# tier: full
# parts: julia
# presets: release
# timeout: 600
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
run() { echo "-- $*"; timeout -k 10 300 "$julia" --startup-file=no "$@"; }
run test_store.jl
run test_misuse.jl
run -t 2 test_epoch.jl
if [ "$MUSTER_TIER" = long ]; then run test_elastic.jl; else run test_elastic.jl come strange early orphans; fi
