# SPDX-License-Identifier: MIT
# about: mpi:// with MPICH, the other family of MPI, and Julia's Distributed on its ranks where there is a Julia
# tier: full
# parts: mpich
# timeout: 1200
set -eu
command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null ||
    { echo "skipped: MPICH is not there (packages libmpich-dev, mpich)"; exit 77; }
cd "$MUSTER_ROOT"
cmake --preset dev -B build/mpich -DMUSTER_PLUGIN_MPI=ON -DMPI_C_COMPILER="$(command -v mpicc.mpich)" \
    -DMUSTER_BUILD_EXAMPLES=OFF
cmake --build build/mpich -j "$(nproc)" --target muster muster_cli plugin_mpi mpi_guest mpi_host guest_cdef test_mpi_control_listener
labels='^(quick|full)$'
[ "$MUSTER_TIER" = long ] && labels='.'
cd build/mpich
ctest -R '^mpi\.' -L "$labels" --output-on-failure
[ "$MUSTER_TIER" = long ] || exit 0
"$MUSTER_ROOT/tests/julia/get-julia" >/dev/null 2>&1 || exit 0
export MUSTER_LIBRARY=$PWD/libmuster.so MUSTER_PLUGIN_PATH=$PWD/plugins
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
"$julia" --startup-file=no -e 'import Muster'
for mode in introduced mpi some-secrets; do
    echo "-- mpiexec of MPICH: $mode"
    timeout -k 10 200 mpiexec.mpich -n 5 "$julia" --startup-file=no test_mpi.jl $mode
done
