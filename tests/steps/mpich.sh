# SPDX-License-Identifier: MIT
# about: mpi:// with MPICH, the other family of MPI
# tier: full
# parts: mpich
# timeout: 1200
set -eu
command -v mpicc.mpich >/dev/null && command -v mpiexec.mpich >/dev/null ||
    { echo "skipped: MPICH is not there (packages libmpich-dev, mpich)"; exit 77; }
cd "$MUSTER_ROOT"
cmake --preset dev -B build/mpich -DMUSTER_PLUGIN_MPI=ON -DMPI_C_COMPILER="$(command -v mpicc.mpich)" \
    -DMUSTER_BUILD_EXAMPLES=OFF
cmake --build build/mpich -j "$(nproc)" --target muster muster_cli plugin_mpi mpi_guest mpi_host guest_cdef
labels='^(quick|full)$'
[ "$MUSTER_TIER" = long ] && labels='.'
cd build/mpich
exec ctest -R '^mpi\.' -L "$labels" --output-on-failure
