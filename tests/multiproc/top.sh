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

# Reads what a program writes to a file until a line matches; the program must run until then.
until_written() { # until_written <pattern> <file> <process>
    local limit=$((SECONDS + 40))
    until grep -Eqs "$1" "$2"; do
        kill -0 "$3" || fail "a program has ended before it wrote $1"
        [ $SECONDS -lt $limit ] || fail "no line of ${2##*/} matches $1"
        sleep 0.1
    done
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
[ "$(grep -c '^muster_handshake_seconds_bucket{process=.*,le="+Inf"} ' "$work/text.log")" = 2 ] || fail "a histogram is missing"
grep -q "^muster_agent_workers_running{process=\".*\.$run\",object=\"1\",run_id=\"j\",role=\"default\"} 3" "$work/text.log" ||
    fail "the agent has three workers"

# A process that is killed is not shown any more, before its lease would end; a running `top` says so.
"$muster" top --of "$store" --interval 0.2 >"$work/live.log" &
live=$!
children+=($live)
until_written "\.$run +agent" "$work/live.log" $live
kill -9 $run
until_written "\.$run: has ended, or does not publish any more" "$work/live.log" $live
kill -TERM $live
wait $live || fail "top ends with $? after SIGTERM"

status=0
MUSTER_SECRET="another secret" "$muster" top --of "$store" --once 2>"$work/refused.log" || status=$?
[ $status = 1 ] || fail "another secret: status $status"
"$muster" top --once 2>"$work/refused.log" && fail "no store is no error" || [ $? = 2 ] || fail "wrong status"
# A store that cannot be opened: the command says so and goes on.
"$muster" run --publish-metrics tcp://127.0.0.1:1 -- true 2>"$work/without.log" || fail "run ends with $?"
grep -q "metrics are not published: " "$work/without.log" || fail "run does not say that metrics are not published"

# Over HTTP: each serving command by itself, for requests that have the token.
printf 'the-token\n' >"$work/token"
refuse() { # refuse <pattern> <arguments>: the command ends with 2 and names what is wrong
    local status=0
    "$muster" store --listen tcp://127.0.0.1:0 "${@:2}" 2>"$work/refused.log" || status=$?
    [ $status = 2 ] || fail "muster store ${*:2} ends with $status"
    grep -q "$1" "$work/refused.log" || fail "muster store ${*:2} does not say $1"
}
chmod 644 "$work/token"
refuse 'can be read by other users' --metrics-listen 127.0.0.1:0 --metrics-token-file "$work/token"
chmod 600 "$work/token"
refuse 'an address of the loopback interface' --metrics-listen 0.0.0.0:9464 --metrics-token-file "$work/token"
refuse 'metrics-token-file is missing' --metrics-listen 127.0.0.1:0
refuse 'metrics-listen is missing' --metrics-token-file "$work/token"
metrics_url() { # of the command whose output on stderr is $work/$1.log
    sed -n 's,.*metrics are at \(http://[^ ]*\)$,\1,p' "$work/$1.log"
}
fetch() { # fetch <url> [token]: the status, after the text
    curl --silent --max-time 20 --write-out '\n%{http_code}' ${2:+--header "Authorization: Bearer $2"} "$1"
}
start_server scraped store --listen tcp://127.0.0.1:0 --metrics-listen 127.0.0.1:0 --metrics-token-file "$work/token"
url=$(metrics_url scraped)
[ -n "$url" ] || fail "the address of the metrics is not printed"
fetch "$url" the-token >"$work/scraped.text"
grep -q '^muster_store_server_requests_total{' "$work/scraped.text" || fail "no metrics of the store"
[ "$(tail -n 1 "$work/scraped.text")" = 200 ] || fail "the status is not 200"
[ "$(fetch "$url" | tail -n 1)" = 401 ] || fail "without a token: the status is not 401"
[ "$(fetch "$url" the-tokem | tail -n 1)" = 401 ] || fail "another token: the status is not 401"
[ "$(fetch "${url%metrics}" the-token | tail -n 1)" = 404 ] || fail "another path: the status is not 404"
status=0
"$muster" store --listen tcp://127.0.0.1:0 --metrics-listen "${url:7:-8}" --metrics-token-file "$work/token" \
    2>"$work/refused.log" || status=$?
[ $status = 1 ] || fail "an address that is taken: status $status"
grep -q 'Address already in use' "$work/refused.log" || fail "it does not say that the address is taken"
"$muster" run --metrics-listen 127.0.0.1:0 --metrics-token-file "$work/token" -- sleep 100 >"$work/run2.log" 2>&1 &
served=$!
children+=($served)
until_written "metrics are at" "$work/run2.log" $served
url=$(metrics_url run2)
limit=$((SECONDS + 40))
# The command serves metrics before it starts its agent.
until fetch "$url" the-token | grep -q '^muster_agent_workers_running{.* 1$'; do
    [ $SECONDS -lt $limit ] || fail "no metrics of the agent"
done
kill -TERM $served
wait $served || [ $? = 143 ] || fail "muster run ends with another status"
