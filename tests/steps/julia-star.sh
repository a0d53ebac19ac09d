# SPDX-License-Identifier: MIT
# about: Julia workers in a star: nothing lost, nothing mixed up, deaths of masters and brokers, late brokers
# tier: full
# parts: julia
# presets: release
# timeout: 600
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
[ -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || { echo "no muster-zmq.so: built without libzmq"; exit 77; }
cd "$MUSTER_ROOT/tests/julia"
run() { echo "-- $*"; timeout -k 10 300 "$julia" --startup-file=no "$@"; }
run test_star.jl names array busy master_killed broker_killed slow missing
