# SPDX-License-Identifier: MIT
# about: Julia's own suite of SharedArrays over workers of MusterManager
# tier: long
# parts: julia
# presets: release
# timeout: 600
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
transports=shm
[ "$MUSTER_TIER" != long ] || transports="shm unix tcp zmq"
for transport in $transports; do
    case $transport in zmq*) [ -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || continue ;; esac
    echo "-- $transport"
    MUSTER_TRANSPORT=$transport timeout -k 10 200 "$julia" --check-bounds=yes --startup-file=no \
        "$MUSTER_ROOT/tests/julia/shared_arrays_suite.jl" "$suite_folder/../../SharedArrays/test"
done
