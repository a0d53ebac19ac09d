# SPDX-License-Identifier: MIT
# about: the Julia binding: generated part in step, layout, streams, groups, global memory, messages
# tier: full
# parts: julia
# presets: release
# timeout: 600
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
"$MUSTER_ROOT/bindings/julia/generate" --check
cd "$MUSTER_ROOT/tests/julia"
run() { echo "-- $*"; timeout -k 10 400 "$julia" --startup-file=no "$@"; }
run test_layout.jl "$MUSTER_ROOT/include"
run test_stream.jl
run test_stream_end.jl
run test_served.jl
run test_project.jl
bash artifact.sh
run test_shared_arrays.jl
run test_group.jl
run test_memory.jl
run test_messages.jl
run test_trace.jl
