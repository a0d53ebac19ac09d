# SPDX-License-Identifier: MIT
# about: Julia's own Distributed suite over mpi://, its workers taken from the ranks of a job of 45, every byte through MPI
# tier: long
# parts: julia
# presets: release
# timeout: 1200
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
[ -e "$MUSTER_PLUGIN_PATH/muster-mpi.so" ] || { echo "no muster-mpi.so: built without MPI"; exit 77; }
command -v mpirun >/dev/null && mpirun --version | grep -q 'Open MPI' || { echo "no mpirun of Open MPI"; exit 77; }
"$julia" --startup-file=no -e 'import Muster' # compiled once, not by all ranks at a time
SUITE_TIMEOUT=1140 run_suite mpi
