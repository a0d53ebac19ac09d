# SPDX-License-Identifier: MIT
# about: Julia's Distributed on the ranks of an MPI job, and workers that mpiexec launches
# tier: full
# parts: julia
# presets: release
# timeout: 1000
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
[ -e "$MUSTER_PLUGIN_PATH/muster-mpi.so" ] || { echo "no muster-mpi.so: built without MPI"; exit 77; }
command -v mpirun >/dev/null && mpirun --version | grep -q 'Open MPI' || { echo "no mpirun of Open MPI"; exit 77; }
cd "$MUSTER_ROOT/tests/julia"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$julia" --startup-file=no -e 'import Muster' # compiled once, not by all ranks at a time
said=$(mktemp "${TMPDIR:-/tmp}/julia-mpi.XXXXXX")
trap 'rm -f "$said"' EXIT
# ranks <status wanted> <mode> [mpirun's options]
ranks() {
    local wanted=$1 mode=$2 status=0
    shift 2
    echo "-- mpirun $* $mode"
    timeout -k 10 240 mpirun --oversubscribe --bind-to none "$@" -n 5 \
        "$julia" --startup-file=no test_mpi.jl "$mode" >"$said" 2>&1 || status=$?
    cat "$said"
    tail -n 30 "$said" | grep -q '^in order$' || { echo "it did not come to its end"; return 1; }
    [ "$wanted" = any ] || [ "$status" = "$wanted" ] || { echo "mpirun's status is $status"; return 1; }
}
ranks 0 mpi
ranks any killed --enable-recovery # the status may be that of the killed one
if [ "$MUSTER_TIER" = long ]; then
    ranks 0 introduced
    ranks any killed-mpi --enable-recovery
    ranks 0 slow
    ranks 0 some-secrets
    JULIA_WORKER_TIMEOUT=20 ranks any other-secret # rank 2 never hears of rank 0
    echo "-- rank 0 is killed"
    timeout -k 10 240 "$julia" --startup-file=no test_mpi_killed.jl
fi
echo "-- mpiexec launches"
timeout -k 10 200 "$julia" --startup-file=no test_mpiexec.jl
