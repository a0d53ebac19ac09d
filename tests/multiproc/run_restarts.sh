#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run_restarts.sh <muster>: nodes of `muster run` are killed and restarted by the same command, as supervisors do. There is
# one world at a time: a restarted node finds the run, also the one whose process served the store; a job of fixed size is
# whole again each time; newcomers that know only the URL find a run that has moved.
set -u
muster=$1
folder=$(mktemp -d)
export MUSTER_SECRET="a secret of the test job" MUSTER_STATE_DIR=$folder/state
declare -A nodes=()
finish() {
    kill -KILL "${nodes[@]}" 2>/dev/null
    rm -rf "$folder"
}
trap finish EXIT
fail() {
    echo "FAILED: $*"
    tail -n 40 "$folder"/*.log "$folder"/worlds
    exit 1
}
# A port that is free, below those that the kernel gives to others.
port=$((10000 + RANDOM % 20000))
while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
url=tcp://127.0.0.1:$port

# Each worker writes a line "round rank size node" when it starts, and ends when the job does.
: >"$folder/worlds"
mkfifo "$folder/ended"
# shellcheck disable=SC2016
program='echo "$MUSTER_ROUND $RANK $WORLD_SIZE '"'"'$NODE'"'"'" >>'"$folder"'/worlds; while ! [ -e '"$folder"'/go ]; do sleep 0.05; done'
start() { # <node> <nnodes>
    NODE=$1 "$muster" run --nnodes "$2" --keep-alive 0.2 --last-call 1 --join-timeout "${join_timeout:-60}" --rdzv "$url" --run-id restarts \
        --log info -- sh -c "$program" >>"$folder/$1.log" 2>&1 &
    nodes[$1]=$!
}
stop() { # <node>: kill -9, with no time to say anything
    kill -KILL "${nodes[$1]}"
    wait "${nodes[$1]}" 2>/dev/null
}
# Stops the process of a node; no thread of it runs any more when this returns. They run for a while after the signal.
pause() { # <node>
    kill -STOP "${nodes[$1]}"
    while grep -hqv ') T ' "/proc/${nodes[$1]}/task/"*/stat; do read -rt 0.01 <>"$folder/ended"; done
}
# Waits until a round after <round> has a whole world of <size>; prints its number.
world() { # <round> <size>
    local found
    for ((i = 0; i < 1200; i++)); do
        found=$(awk -v after="$1" -v size="$2" '$1 > after && $3 == size && !(($1, $2) in seen) { seen[$1, $2]; count[$1]++ }
            END { for (round in count) if (count[round] == size && round > best) best = round; print best }' "$folder/worlds")
        [ -n "$found" ] && { echo "$found"; return; }
        read -rt 0.05 <>"$folder/ended" # nobody writes there
    done
    return 1
}
# No rank of a round was given twice, and all say the same of its size.
one_world_at_a_time() {
    local twice
    twice=$(awk '{ if (($1, $2) in seen) print "rank " $2 " of round " $1 " twice"; seen[$1, $2]
        if ($1 in size && size[$1] != $3) print "two sizes of round " $1; size[$1] = $3 }' "$folder/worlds")
    [ -z "$twice" ] || fail "$twice"
}

# ---- a job of fixed size: the node with the store, the other, both; again and again
round=0
start a 2
start b 2
round=$(world $round 2) || fail "no world at the start"
first=$round
for victims in a b a "a b" b "b a"; do
    for victim in $victims; do stop "$victim"; done
    for victim in $victims; do start "$victim" 2; done
    round=$(world "$round" 2) || fail "no world after the death of $victims"
    one_world_at_a_time
done
echo "a job of two nodes was whole again six times, rounds $first to $round"

# ---- the run has moved, and nodes that know only the URL come; here with one that had not been in it
stop a
echo "the node with the store is killed"
start a 2
round=$(world "$round" 2) || fail "no world before the end"
touch "$folder/go"
for node in a b; do
    wait "${nodes[$node]}" || fail "node $node ended with $?"
done
one_world_at_a_time
[ -z "$(ls -A "$MUSTER_STATE_DIR")" ] || fail "left behind: $(ls "$MUSTER_STATE_DIR")"
rm "$folder/go"

# ---- an elastic job on a host of three: its store moves, its first node returns, a newcomer joins by the URL
: >"$folder/worlds"
for node in a b c; do start $node 1:4; done
round=$(world 0 3) || fail "no world of three"
stop a
round=$(world "$round" 2) || fail "the two that are left do not go on"
one_world_at_a_time
start d 1:4
round=$(world "$round" 3) || fail "a newcomer does not find the run that has moved"
start a 1:4
round=$(world "$round" 4) || fail "the first node does not find the run that has moved"
one_world_at_a_time
touch "$folder/go"
for node in a b c d; do
    wait "${nodes[$node]}" || fail "node $node ended with $?"
done
echo "a run that has moved was found by a newcomer and by its first node, round $round"
rm "$folder/go"

# ---- a process without a file where a living member is, and nobody serves the store: it begins no second run
: >"$folder/worlds"
MUSTER_STATE_DIR=$folder/other start a 1:3 # as on another host
world 0 1 >/dev/null || fail "no world of one"
start b 1:3
round=$(world 0 2) || fail "no world of two"
pause b
stop a
join_timeout=2 start c 1:3
! wait "${nodes[c]}" || fail "a newcomer went on although a member lives"
grep -q "the run is not new: a living process of this host was in round $round" "$folder/c.log" || fail "no reason is told"
kill -CONT "${nodes[b]}"
MUSTER_STATE_DIR=$folder/other start a 1:3
round=$(world "$round" 2) || fail "the two members do not find each other"
start c 1:3
round=$(world "$round" 3) || fail "the newcomer does not find the run"
one_world_at_a_time
touch "$folder/go"
for node in a b c; do
    wait "${nodes[$node]}" || fail "node $node ended with $?"
done
echo "a newcomer began no second run where a member lives, round $round"
