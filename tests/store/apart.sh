#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# apart.sh <muster> <teller> drop|reject: a server and its standby on two hosts that are cut off from each other, without
# a word, or by a firewall that refuses connections as a dead process's host would. The standby takes over; the server
# answers nothing, for all it is asked, until the two meet again, and then it stands by.
# shellcheck source=../common/hosts.sh
. "$(dirname "$0")/../common/hosts.sh"
muster=$1 teller=$2
[ "$3" = drop ] && verdict=drop || verdict='reject with icmpx type port-unreachable'
one=tcp://10.99.0.1:29400 both=tcp://10.99.0.1:29400,10.99.0.2:29400
"$muster" store --listen $one --data-dir "$folder/one" --pair-lease 1 --log info >"$folder/one.log" 2>&1 &
await "$folder/one.log" '^listening ' >/dev/null
"${there[@]}" "$muster" store --listen tcp://10.99.0.2:29400 --data-dir "$folder/two" --pair-lease 1 --log info \
    --standby-of $one >"$folder/two.log" 2>&1 &
await "$folder/two.log" 'role standby epoch 1'
await "$folder/one.log" 'role paired epoch 1'
mkfifo "$folder/near" "$folder/far"
"$teller" $both <"$folder/near" >"$folder/near.log" 2>&1 &
near=$!
"${there[@]}" "$teller" $both <"$folder/far" >"$folder/far.log" 2>&1 &
far=$!
exec 5>"$folder/near" 6>"$folder/far"
echo add >&5
await "$folder/near.log" '^added 1$'
echo add >&6
await "$folder/far.log" '^added 2$'

cut_off "$verdict"
await "$folder/two.log" 'role serves epoch 2'
await "$folder/one.log" 'role halted epoch 1'
echo add >&6
await "$folder/far.log" '^added 3$'
echo add >&5
echo try >&5 # a read of what is there no more; behind the add, which waits
echo add >&6
await "$folder/far.log" '^added 4$'
grep -q 'role serves' "$folder/one.log" && [ "$(grep -c 'role serves' "$folder/one.log")" -gt 1 ] && fail "both serve"
grep -q '^added [345]' "$folder/near.log" && fail "it has answered"

join_again
await "$folder/one.log" 'role standby epoch 2'
await "$folder/near.log" '^added 5$'
await "$folder/near.log" '^read 5$'
exec 5>&- 6>&-
wait $near || fail "the near client ended with $?"
wait $far || fail "the far client ended with $?"
echo "ok"
