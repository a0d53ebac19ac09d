# SPDX-License-Identifier: MIT
# Two hosts made of network namespaces of this test alone; without root they lie in a user namespace. To be sourced, with
# the arguments of the script; ends it with 77 where that is not possible. The script runs on 10.99.0.1, and what begins
# with "${there[@]}" on 10.99.0.2. (Not a function: what one starts in the background would outlive the script.)
# Everything ends with the script.
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
export MUSTER_SECRET="a secret of the test job"
folder=$(mktemp -d)
finish() {
    rm -rf "$folder"
    jobs -p | xargs -r kill -KILL 2>/dev/null
}
trap finish EXIT
fail() { echo "FAILED: $*"; cat "$folder"/*.log; exit 1; }
# Waits for a line; the writer's end or so many seconds (30) without it are a failure.
await() {
    : >>"$1" # the writer may not be that far
    timeout "${3:-30}" tail -n +1 -f "$1" 2>/dev/null | grep -m 1 -- "$2" || fail "no \"$2\" in $1"
}

mkfifo "$folder/hold"
unshare -n sleep infinity &
worker=$!
until [ "$(readlink "/proc/$worker/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do :; done
there=(nsenter -t "$worker" -n)
set -e
ip link set lo up
ip link add here type veth peer name there
ip link set there netns "$worker"
ip addr add 10.99.0.1/24 dev here
ip link set here up
"${there[@]}" ip link set lo up
"${there[@]}" ip addr add 10.99.0.2/24 dev there
"${there[@]}" ip link set there up
set +e

# Cuts the two off from each other: without a word, or with the verdict that is given. join_again() ends that.
cut_off() {
    "${there[@]}" nft -f - <<RULES || fail "no rules"
table inet cut_off {
    chain in {
        type filter hook input priority 0;
        iifname "there" ${1:-drop}
    }
    chain out {
        type filter hook output priority 0;
        oifname "there" ${1:-drop}
    }
}
RULES
}
join_again() { "${there[@]}" nft delete table inet cut_off || fail "they were not cut off"; }
