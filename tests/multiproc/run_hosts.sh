#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run_hosts.sh <muster>: `muster run` on two hosts. They make one world, whose master is the address of rank 0's host; when the
# network between them is cut the one with the store goes on alone, and when it is there again they are one world again.
. "$(dirname "$0")/../common/hosts.sh"
muster=$1
# shellcheck disable=SC2016
program='echo "rank $RANK of $WORLD_SIZE at $(hostname -I)master $MASTER_ADDR"; while ! [ -e '"$folder"'/go ]; do sleep 0.05; done'
run() {
    "$@" "$muster" run --nnodes 1:2 --keep-alive 0.5 --last-call 5 --rdzv tcp://10.99.0.1:29400 --run-id hosts -- sh -c "$program"
}
both_are_in() { # what either says from here on
    await "$folder/here.log" "rank [01] of 2" 60
    await "$folder/there.log" "rank [01] of 2" 60
}
: >"$folder/here.log"
: >"$folder/there.log"
run env >>"$folder/here.log" 2>&1 &
here=$!
await "$folder/here.log" "1 of 1 to 2 nodes have joined"
run "${there[@]}" >>"$folder/there.log" 2>&1 &
other=$!
both_are_in
first=$(sed -n 's/.*rank 0 of 2 at \([0-9.]*\) .*/\1/p' "$folder"/*.log)
[ "$(grep -h "rank [01] of 2" "$folder"/*.log | grep -c "master $first\$")" = 2 ] || fail "the master is not at $first"
echo "one world, its master at $first"

: >"$folder/here.log"
ip link set here down
await "$folder/here.log" "rank 0 of 1" 60
echo "cut off: one goes on alone"
: >"$folder/here.log"
: >"$folder/there.log"
ip link set here up
both_are_in
echo "one world again"
touch "$folder/go"
wait $here || fail "the first ended with $?"
wait $other || fail "the second ended with $?"
