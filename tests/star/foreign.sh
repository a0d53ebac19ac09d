#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# foreign.sh <muster> <foreign_router>: a program with pyzmq takes part in a star without libmuster.
set -eu
folder=$(mktemp -d)
trap 'kill "${broker_pid-}" "${router_pid-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
export MUSTER_SECRET="of the foreign program"
exec {broker}< <(exec "$1" broker --listen zmq://127.0.0.1:0/)
broker_pid=$!
read -r _ at <&"$broker"
at=${at#zmq://} at=${at%%/*}
exec {router}< <(exec "$2" "$at")
router_pid=$!
read -r line <&"$router"
[[ $line == "bound zmq://router@$at/messages"* ]] || { echo "$line"; exit 1; }
cat <&"$router" >"$folder/events" &
reader=$!
/usr/bin/python3 "$(dirname "$0")/foreign.py" "$at"
wait "$router_pid" || { echo "the router has ended with $?"; exit 1; }
router_pid= # its number may be another process by now
wait "$reader"
grep -q '^event 1 of 5$' "$folder/events"
[ "$(grep -c '^event 1 of 6$' "$folder/events")" = 2 ]
grep -q '^event 2 of 6$' "$folder/events"
grep -q '^event 2 of 10$' "$folder/events"
