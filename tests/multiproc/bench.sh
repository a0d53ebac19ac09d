#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench.sh <muster>: muster bench measures every transport of one host, and a stream between two processes; wrong
# arguments, a wrong address and another program at the address are named.
set -eu
muster=$1
work=$(mktemp -d)
server=''
finish() {
    if [ -n "$server" ]; then kill -9 "$server" 2>/dev/null || :; fi # it may have ended
    wait 2>/dev/null || :
    rm -rf "$work"
}
trap finish EXIT
export MUSTER_SECRET="a secret of the test" TMPDIR=$work
fail() {
    echo "FAILED: $1" >&2
    cat "$work"/*.log >&2
    exit 1
}
# expect <status> <pattern> <arguments>: muster bench ends with the status and prints a line that matches.
expect() {
    local status=0
    "$muster" bench "${@:3}" >"$work/bench.log" 2>&1 || status=$?
    [ "$status" -eq "$1" ] || fail "muster bench ${*:3} ends with $status, not $1"
    grep -Eq "$2" "$work/bench.log" || fail "no line of muster bench ${*:3} matches $2"
}

expect 0 '^sealed( +[0-9.]+( us|[kMGT]?/s|[kMGT]?B/s)){6}$' --seconds 0.02 --svg "$work/figures.svg"
for name in inproc shm unix tcp; do grep -q "^$name " "$work/bench.log" || fail "nothing about $name"; done
[ "$(grep -c '<rect .*fill="#' "$work/figures.svg")" -eq 15 ] || fail "the picture does not have five bars for each figure"
expect 0 $'^shm(\t[0-9.e+]+){6}$' --seconds 0.02 --tsv --only shm
[ "$(wc -l <"$work/bench.log")" -eq 2 ] || fail "more than the one transport"
expect 2 'is none of inproc, shm' --only rdma
expect 2 'which of them' --serve tcp://127.0.0.1:0 tcp://127.0.0.1:1
expect 1 'tcp://127.0.0.1:1: .+' tcp://127.0.0.1:1
expect 1 'nothing://x' --serve nothing://x
expect 1 'No such file' --seconds 0.02 --only inproc --svg "$work/absent/figures.svg"

mkfifo "$work/address"
"$muster" bench --serve tcp://127.0.0.1:0?upgrade=no >"$work/address" 2>"$work/serve.log" &
server=$!
read -r address <"$work/address"
expect 0 '^tcp://' --seconds 0.02 "$address"
expect 0 '^tcp://' --seconds 0.02 "$address" # serves one after the other
MUSTER_SECRET=wrong expect 1 'secret' --seconds 0.02 "$address"
kill -TERM "$server"
wait "$server" || fail "the server ends with $?"
server=''
