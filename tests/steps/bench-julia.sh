# SPDX-License-Identifier: MIT
# about: the benchmarks of Julia's Distributed run, shortly (tests/bench/run julia measures)
# tier: long
# parts: bench julia
# presets: release
# timeout: 900
set -eu
"$MUSTER_ROOT/tests/julia/get-julia" >/dev/null || { echo "no julia"; exit 77; }
exec "$MUSTER_ROOT/tests/bench/run" --smoke --yes julia julia-star julia-mpi
