# SPDX-License-Identifier: MIT
# about: the Julia cluster over tcp, unix and the star, an array over 2 GiB, 32 workers, interrupts under AddressSanitizer
# tier: long
# parts: julia
# presets: release asan-ubsan
# timeout: 3600
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
cd "$MUSTER_ROOT/tests/julia"
export JULIA_WORKER_TIMEOUT=180 # machines have other work
run() { echo "-- $*"; timeout -k 10 600 "$julia" --startup-file=no "$@"; }
for transport in tcp unix zmq zmq-upgrade; do
    export MUSTER_TRANSPORT=$transport
    case $transport in zmq*) [ -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || continue ;; esac
    run test_cluster.jl launch topology busy killed interrupted secret guest
    [ $transport = zmq-upgrade ] || run test_master_killed.jl
done
for transport in shm tcp unix zmq; do
    case $transport in zmq*) [ -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || continue ;; esac
    export MUSTER_TRANSPORT=$transport
    run test_cluster.jl large
done
MUSTER_TRANSPORT=shm run test_cluster.jl many
[ ! -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || run test_star.jl eleven later
MUSTER_TRANSPORT=tcp run test_cluster.jl many
[ ! -e "$MUSTER_PLUGIN_PATH/muster-zmq.so" ] || MUSTER_TRANSPORT=zmq run test_cluster.jl many

# Tasks interrupted in the middle of transfers: does the library touch memory that Julia has taken back? The run-time must
# leave SIGSEGV to Julia, which uses it; that it does not know the stacks of tasks is only a warning.
cc -shared -fPIC -D_GNU_SOURCE -o "$TMPDIR/under_asan.so" under_asan.c
options=verify_asan_link_order=0:detect_leaks=0:handle_segv=0:handle_sigbus=0:use_sigaltstack=0:log_path=$TMPDIR/asan
for test in test_misuse.jl test_stream_end.jl; do
    echo "-- $test under AddressSanitizer"
    LD_PRELOAD="$TMPDIR/under_asan.so:$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=$options \
        MUSTER_LIBRARY=$MUSTER_ROOT/build/asan-ubsan/libmuster.so timeout -k 10 300 "$julia" --startup-file=no $test
done
for transport in shm tcp; do
    echo "-- $transport under AddressSanitizer"
    LD_PRELOAD="$TMPDIR/under_asan.so:$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=$options \
        MUSTER_LIBRARY=$MUSTER_ROOT/build/asan-ubsan/libmuster.so MUSTER_TRANSPORT=$transport \
        timeout -k 10 600 "$julia" --startup-file=no test_cluster.jl interrupted
done
if grep -l 'ERROR: AddressSanitizer' "$TMPDIR"/asan.*; then
    head -n 80 "$TMPDIR"/asan.*
    exit 1
fi
