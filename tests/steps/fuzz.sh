# SPDX-License-Identifier: MIT
# about: each fuzzer runs 10,000,000 inputs, or as many as go into MUSTER_FUZZ_SECONDS (600), and finds nothing
# tier: long
# parts: sanitize
# presets: fuzz
# timeout: 7200
set -eu
seconds=${MUSTER_FUZZ_SECONDS:-600}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1
fuzz() { # <program>: what it finds stays in build/logs
    name=${1##*/fuzz_}
    mkdir "$work/$name"
    cp "$MUSTER_ROOT/tests/fuzz/corpus/$name"/* "$work/$name" 2>/dev/null || true
    if nice "$1" -runs=10000000 -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$MUSTER_LOGS/fuzz-$name-" "$work/$name" >"$work/$name.log" 2>&1; then
        sed -n "s/^Done \\([0-9]*\\) runs in \\([0-9]*\\) second.*/$name: \\1 inputs in \\2 s, nothing found/p" "$work/$name.log"
    else
        tail -n 60 "$work/$name.log"
        echo "$name: failed"
        return 1
    fi
}
export -f fuzz
export work seconds
printf '%s\n' "$MUSTER_BUILD"/tests/fuzz/fuzz_* | grep -v '\.' |
    xargs -n 1 -P "$(nproc)" bash -c 'fuzz "$1"' fuzz
