#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# parted.sh <muster> <parted>: a store and its client on two hosts, which the network parts without a word: for a shorter
# time than the client waits (what was asked meanwhile is done, once), and for a longer one (it is told).
# shellcheck source=../common/hosts.sh
. "$(dirname "$0")/../common/hosts.sh"
muster=$1 program=$2
"${there[@]}" "$muster" store --listen tcp://10.99.0.2:0 >"$folder/store.log" 2>&1 &
url=$(await "$folder/store.log" '^listening ' | cut -d' ' -f2)
exec 5<>"$folder/hold"
"$program" "$url" >"$folder/client.log" 2>&1 <"$folder/hold" 5<&- &
client=$!
await "$folder/client.log" '^in touch$'
cut_off
echo apart >&5
await "$folder/client.log" '^it is apart$' 60
join_again
await "$folder/client.log" '^in touch again$' 100
cut_off
echo apart >&5
await "$folder/client.log" '^it is lost$' 100
exec 5<&-
wait $client || fail "the client ended with $?"
echo "ok"
