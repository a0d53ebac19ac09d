# SPDX-License-Identifier: MIT
# about: Julia's Distributed on the ranks of an MPI job of MPICH
# tier: long
# parts: julia
# presets: dev
# timeout: 1200
set -eu
[ -e "$MUSTER_BUILD/plugins-mpich/muster-mpi.so" ] || { echo "MPICH is not installed (packages libmpich-dev, mpich)"; exit 77; }
export MUSTER_PLUGIN_PATH=$MUSTER_BUILD/plugins-mpich
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
for mode in introduced mpi some-secrets; do
    echo "-- mpiexec of MPICH: $mode"
    timeout -k 10 200 mpiexec.mpich -n 5 "$julia" --startup-file=no test_mpi.jl $mode
done
