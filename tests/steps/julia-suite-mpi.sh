# SPDX-License-Identifier: MIT
# about: Julia's own Distributed suite over mpi://, in a job of 45 ranks: every byte in MPI, and with shared memory
# tier: long
# parts: julia
# presets: release
# timeout: 2400
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
[ -e "$MUSTER_PLUGIN_PATH/muster-mpi.so" ] || { echo "no muster-mpi.so: built without MPI"; exit 77; }
command -v mpirun >/dev/null && mpirun --version | grep -q 'Open MPI' || { echo "no mpirun of Open MPI"; exit 77; }
"$julia" --startup-file=no -e 'import Muster' # compiled once, not by all ranks at a time
for transport in mpi mpi-upgrade; do
    echo "-- $transport"
    SUITE_TIMEOUT=1140 run_suite $transport
done
