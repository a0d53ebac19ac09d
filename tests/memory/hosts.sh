#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# hosts.sh <muster> <hosts>: a global memory on two hosts that are cut off from each other, and one of whose locales is killed.
# shellcheck source=../common/hosts.sh
. "$(dirname "$0")/../common/hosts.sh"
muster=$1 program=$2
"$muster" store --listen tcp://10.99.0.1:7000 >"$folder/store.log" 2>&1 &
await "$folder/store.log" 'tcp://10.99.0.1:7000'
for rank in 0 1 2 3; do mkfifo "$folder/to.$rank"; done
"$program" 0 tcp://10.99.0.1:7000 10.99.0.1 >"$folder/0.log" 2>&1 <"$folder/to.0" &
ranks=($!)
"$program" 1 tcp://10.99.0.1:7000 10.99.0.1 >"$folder/1.log" 2>&1 <"$folder/to.1" &
ranks+=($!)
"${there[@]}" "$program" 2 tcp://10.99.0.1:7000 10.99.0.2 >"$folder/2.log" 2>&1 <"$folder/to.2" &
ranks+=($!)
"${there[@]}" "$program" 3 tcp://10.99.0.1:7000 10.99.0.2 >"$folder/3.log" 2>&1 <"$folder/to.3" &
ranks+=($!)
exec 5>"$folder/to.0" 6>"$folder/to.1" 7>"$folder/to.2" 8>"$folder/to.3"
go_on() { for rank in "$@"; do printf x >&$((5 + rank)); done; }
for rank in 0 1 2 3; do await "$folder/$rank.log" '^works$' >/dev/null; done
go_on 0 1 2 3
# What is sent meanwhile is lost, and sent again by TCP. Shorter than the silence that counts as death.
cut_off
sleep 1 # the length of the interruption
join_again
for rank in 0 1 2; do await "$folder/$rank.log" '^has worked$' 60 >/dev/null; done
await "$folder/3.log" '^is pinned$'
kill -KILL "${ranks[3]}"
go_on 0 1 2
for rank in 0 1 2; do await "$folder/$rank.log" '^goes on$' 60 >/dev/null; done
cut_off
go_on 0 1 2
for rank in 0 1 2; do await "$folder/$rank.log" '^is alone$' 60 >/dev/null; done
for rank in 0 1 2; do wait "${ranks[rank]}" || fail "rank $rank ended with $?"; done
echo "ok"
