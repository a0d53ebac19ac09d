# SPDX-License-Identifier: MIT
# For the steps that run Julia: sets `julia`, and where it finds the package and keeps what it compiles. Without a Julia
# the step is skipped.
root=${MUSTER_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
if ! julia=$("$root/tests/julia/get-julia" 2>"${TMPDIR:-/tmp}/get-julia.log"); then
    cat "${TMPDIR:-/tmp}/get-julia.log"
    echo "no Julia: $(tail -n 1 "${TMPDIR:-/tmp}/get-julia.log")"
    exit 77
fi
export JULIA_LOAD_PATH="$root/bindings/julia:@stdlib"
export JULIA_DEPOT_PATH="$root/build/julia-depot"
export MUSTER_LIBRARY=${MUSTER_LIBRARY:-$root/build/release/libmuster.so}
export MUSTER_PLUGIN_PATH=${MUSTER_PLUGIN_PATH:-$(dirname "$MUSTER_LIBRARY")/plugins}
suite_folder=$("$julia" --startup-file=no -e 'import Distributed; print(joinpath(dirname(dirname(pathof(Distributed))), "test"))')

# Julia's own Distributed suite over one transport: run_suite <shm|unix|tcp|zmq|zmq-upgrade|mpi|mpi-upgrade>. Its pass mark was
# measured with 1.5.3. It prints what it leaves out, and what it does with managers of its own whatever the transport is.
run_suite() {
    local without="1623 it asks a connection for its TCP port"
    local log="$root/build/logs/julia-suite-$1.log" version
    version=$("$julia" --startup-file=no -e 'print(VERSION)')
    mkdir -p "$root/build/logs"
    local start=("$julia" --check-bounds=yes) others=()
    if [[ $1 == mpi* ]]; then
        # A job cannot grow: all 44 workers that the suite ever adds are ranks from the beginning, and wait.
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 JULIA_WORKER_TIMEOUT=${JULIA_WORKER_TIMEOUT:-300}
        start=(mpirun --oversubscribe --bind-to none -n 1 "${start[@]}")
        others=(: -n 44 "$julia" --check-bounds=yes --startup-file=no --depwarn=error
            -e 'using Distributed; import Muster; Muster.start_mpi_main()')
    fi
    MUSTER_TRANSPORT=$1 SUITE_SKIP=$without SUITE_TIMEOUT=${SUITE_TIMEOUT:-540} "${start[@]}" --startup-file=no \
        "$root/tests/julia/distributed_suite.jl" "$suite_folder" "$root/tests/julia/suite_manager.jl" "${others[@]}" >"$log" 2>&1 || {
        tail -n 40 "$log"
        return 1
    }
    grep '^SUITE ' "$log"
    if [ "$version" != 1.5.3 ]; then
        echo "Julia $version: another suite, its number of passes is not compared"
    elif ! grep -q '^SUITE .* pass=2237 fail=0 error=0 .* workers_via_custom=44 ' "$log"; then
        echo "expected 2237 passes, none failed, 44 workers over Muster"
        return 1
    fi
}
