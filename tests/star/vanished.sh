#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# vanished.sh <muster> <vanished> [long]: a worker on a host that the network loses without a word, no reset, no answer.
# Both ends of its stream hear of it by the heartbeats, and meet again when it is back. `long`: it is back only after the
# broker has noticed, too, by the kernel's questions, within a minute and a bit.
# shellcheck source=../common/hosts.sh
. "$(dirname "$0")/../common/hosts.sh"
muster=$1 program=$2
"$muster" broker --listen zmq://10.99.0.1:8100/ --stats 1 >"$folder/broker.log" 2>&1 &
await "$folder/broker.log" '^listening zmq://10.99.0.1:8100/$' >/dev/null
exec 5<>"$folder/hold"
"${there[@]}" "$program" worker 10.99.0.1:8100 >"$folder/worker.log" 2>&1 5<&- &
two=$!
"$program" master 10.99.0.1:8100 >"$folder/master.log" 2>&1 <"$folder/hold" 5<&- &
one=$!
await "$folder/worker.log" '^worker: in touch$'
await "$folder/master.log" '^master: in touch$'
cut_off
begin=$SECONDS
await "$folder/worker.log" '^worker: told$' 40
await "$folder/master.log" '^master: told$' 40
echo "both sides told after $((SECONDS - begin)) s"
if [ "${3:-}" = long ]; then
    await "$folder/broker.log" '^members 1 .* lost 1 ' 150
    echo "the broker noticed after $((SECONDS - begin)) s"
    [ $((SECONDS - begin)) -le 90 ] || fail "that is too late"
fi
join_again
echo again >&5
await "$folder/worker.log" '^worker: in touch again$' 100
await "$folder/master.log" '^master: in touch again$' 100
exec 5<&-
wait $one || fail "the master ended with $?"
wait $two || fail "the worker ended with $?"
echo "ok"
