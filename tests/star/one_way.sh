#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# one_way.sh <muster> <one_way>: a master and its broker on one host, a worker on another one that lets no connection in.
# The hosts are network namespaces of this test alone; without root they lie in a user namespace. 77: not possible here.
set -u
if [ "${INSIDE:-}" != yes ]; then
    command -v nft >/dev/null && command -v ip >/dev/null || { echo "nftables and iproute2 are missing"; exit 77; }
    as=''
    [ "$(id -u)" = 0 ] || as=-Ur
    # shellcheck disable=SC2086
    unshare $as -n true 2>/dev/null || { echo "no network namespaces for this user"; exit 77; }
    # shellcheck disable=SC2086
    INSIDE=yes exec unshare $as -n --kill-child --fork bash "$0" "$@"
fi
muster=$1 program=$2
export MUSTER_SECRET="a secret of the test job" WORKER_TCP=tcp://10.99.0.2:7001
folder=$(mktemp -d)
finish() {
    rm -rf "$folder"
    jobs -p | xargs -r kill -KILL 2>/dev/null
}
trap finish EXIT
fail() { echo "FAILED: $*"; cat "$folder"/*.log; exit 1; }
# Waits for a line; the writer's end or 30 s without it are a failure.
await() { timeout 30 tail -n +1 -f "$1" 2>/dev/null | grep -m 1 -- "$2" || fail "no \"$2\" in $1"; }

mkfifo "$folder/hold"
unshare -n sleep infinity &
worker=$!
until [ "$(readlink "/proc/$worker/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do :; done
there() { nsenter -t "$worker" -n "$@"; }
set -e
ip link set lo up
ip link add here type veth peer name there
ip link set there netns "$worker"
ip addr add 10.99.0.1/24 dev here
ip link set here up
there ip link set lo up
there ip addr add 10.99.0.2/24 dev there
there ip link set there up
there nft -f - <<'RULES'
table inet one_way {
    chain in {
        type filter hook input priority 0;
        iif "lo" accept
        tcp flags & (syn|ack) == syn drop
    }
}
RULES
set +e
"$muster" broker --listen zmq://10.99.0.1:8100/ >"$folder/broker.log" 2>&1 &
await "$folder/broker.log" '^listening zmq://10.99.0.1:8100/$' >/dev/null
exec 5<>"$folder/hold" # both sides read from it until it is closed
there "$program" worker 10.99.0.1:8100 10.99.0.2 >"$folder/worker.log" 2>&1 <"$folder/hold" 5<&- &
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
