#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# top.sh <muster>: muster top shows the processes that publish their metrics in a store, and what changes.
set -eu
muster=$1
work=$(mktemp -d)
children=()
finish() {
    for child in "${children[@]}"; do kill -9 "$child" 2>/dev/null || :; done # some have ended
    wait 2>/dev/null || :
    rm -rf "$work"
}
trap finish EXIT
export MUSTER_SECRET="a secret of the test"
fail() {
    echo "FAILED: $1" >&2
    cat "$work"/*.log >&2
    exit 1
}
# The first line that a program prints, when it listens.
start_server() {
    mkfifo "$work/ready.$1"
    "$muster" "${@:2}" >"$work/ready.$1" 2>"$work/$1.log" &
    children+=($!)
    read -r _ address <"$work/ready.$1"
}
# Repeats a reading until a line of it matches: for what another process publishes within seconds.
until_shown() {
    local limit=$((SECONDS + 40))
    while [ $SECONDS -lt $limit ]; do
        "$muster" top --of "$store" --once --interval 0.2 "${@:2}" >"$work/top.log" 2>&1 || fail "top ends with $?"
        if grep -Eq "$1" "$work/top.log"; then return; fi
    done
    fail "no line matches $1"
}

start_server store store --listen tcp://127.0.0.1:0 --publish-metrics
store=$address store_process=$!
until_shown "\.$store_process +store +[0-9.]+ .* clients?, [0-9.]+ requests/s"

"$muster" run --run-id j --rdzv "$store" --nproc-per-node 3 --max-restarts 1 --publish-metrics "$store" -- \
    sh -c '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] || [ "$RANK" != 1 ] || exit 3; exec sleep 100' >"$work/run.log" 2>&1 &
run=$!
children+=($run)
until_shown "\.$run +agent .* running, round 2, 3 of 3 workers, node 0 of 1, 1 restart$" --html "$work/page.html"
grep -q "<polyline" "$work/page.html" || fail "the page has no plot"
! grep -Eq 'src=|href=|@import|url\(' "$work/page.html" || fail "the page refers to another file"

# One text of all, in the format of Prometheus: each family has its head once.
"$muster" top --of "$store" --text >"$work/text.log"
[ "$(grep -c '^# TYPE muster_streams gauge' "$work/text.log")" = 1 ] || fail "the head of a family is missing or repeated"
[ "$(grep -c '^muster_streams{process="' "$work/text.log")" = 2 ] || fail "two processes have two samples"
grep -q "^muster_agent_workers_running{process=\".*\.$run\",object=\"1\",run_id=\"j\",role=\"default\"} 3" "$work/text.log" ||
    fail "the agent has three workers"

# A process that is killed is not shown any more, before its lease would end; a running `top` says so.
"$muster" top --of "$store" --interval 0.2 >"$work/live.log" &
live=$!
children+=($live)
until grep -q "\.$run +\?agent" "$work/live.log"; do kill -0 $live || fail "top has ended"; done
kill -9 $run
until grep -q "\.$run: has ended, or does not publish any more" "$work/live.log"; do kill -0 $live || fail "top has ended"; done
kill -TERM $live
wait $live || fail "top ends with $? after SIGTERM"

status=0
MUSTER_SECRET="another secret" "$muster" top --of "$store" --once 2>"$work/refused.log" || status=$?
[ $status = 1 ] || fail "another secret: status $status"
"$muster" top --once 2>"$work/refused.log" && fail "no store is no error" || [ $? = 2 ] || fail "wrong status"
# A store that cannot be opened: the command says so and goes on.
"$muster" run --publish-metrics tcp://127.0.0.1:1 -- true 2>"$work/without.log" || fail "run ends with $?"
grep -q "metrics are not published: " "$work/without.log" || fail "run does not say that metrics are not published"
