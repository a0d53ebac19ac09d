# SPDX-License-Identifier: MIT
# about: Julia's own Distributed suite over Muster's star, every byte through the broker
# tier: long
# parts: julia
# presets: release
# timeout: 900
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
[ -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || { echo "no muster-zmq.so: built without libzmq"; exit 77; }
SUITE_TIMEOUT=840 run_suite zmq
