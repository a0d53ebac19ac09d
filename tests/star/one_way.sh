#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# one_way.sh <muster> <one_way>: a master and its broker on one host, a worker on another one that lets no connection in.
# shellcheck source=../common/hosts.sh
. "$(dirname "$0")/../common/hosts.sh"
muster=$1 program=$2
export WORKER_TCP=tcp://10.99.0.2:7001
"${there[@]}" nft -f - <<'RULES' || fail "no rules"
table inet one_way {
    chain in {
        type filter hook input priority 0;
        iif "lo" accept
        tcp flags & (syn|ack) == syn drop
    }
}
RULES
"$muster" broker --listen zmq://10.99.0.1:8100/ >"$folder/broker.log" 2>&1 &
await "$folder/broker.log" '^listening zmq://10.99.0.1:8100/$' >/dev/null
exec 5<>"$folder/hold" # both sides read from it until it is closed
"${there[@]}" "$program" worker 10.99.0.1:8100 10.99.0.2 >"$folder/worker.log" 2>&1 <"$folder/hold" 5<&- &
two=$!
"$program" master 10.99.0.1:8100 10.99.0.1 >"$folder/master.log" 2>&1 <"$folder/hold" 5<&- &
one=$!
await "$folder/worker.log" '^worker: direct$'              # the worker reaches the master, so the two go direct
await "$folder/master.log" '^master: through the broker$'  # the master does not reach the worker
await "$folder/master.log" '^master: no connection to tcp'
exec 5<&-
wait $one || fail "the master ended with $?"
wait $two || fail "the worker ended with $?"
echo "ok"
