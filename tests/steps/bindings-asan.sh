# SPDX-License-Identifier: MIT
# about: the misuse suites of the Lua and the Rust binding under AddressSanitizer and UndefinedBehaviorSanitizer
# tier: long
# parts: hosts
# presets: asan-ubsan
# timeout: 600
set -eu
for program in luajit cargo; do
    command -v "$program" >/dev/null || { echo "$program is not there (packages luajit, rustc, cargo)"; exit 77; }
done
export MUSTER_PLUGIN_PATH="$MUSTER_BUILD/plugins" LD_LIBRARY_PATH="$MUSTER_BUILD"
export LUA_PATH="$MUSTER_ROOT/bindings/lua/?.lua;$MUSTER_ROOT/tests/lua/?.lua;;"
export CARGO_TARGET_DIR="$MUSTER_BUILD/rust" CARGO_TERM_COLOR=never
# The hosts were not built with the sanitizers, so their run-times come before the program; memory of the hosts is not theirs to
# check for leaks. A small quarantine: a test looks at how much memory the process holds.
options=detect_leaks=0:quarantine_size_mb=8:log_path="$TMPDIR/bindings-asan"
preload="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)"
runner="env LD_PRELOAD=$preload ASAN_OPTIONS=$options"
status=0
$runner timeout -k 10 280 luajit "$MUSTER_ROOT/tests/lua/test_misuse.lua" || status=$?

triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${triple}_RUNNER=$runner"
cd "$MUSTER_ROOT/bindings/rust"
timeout -k 10 280 cargo test --offline --locked --release --package muster --test misuse --test served --test workers || status=$?

for report in "$TMPDIR"/bindings-asan.*; do # also of workers
    [ ! -e "$report" ] || { head -n 80 "$report"; status=1; }
done
exit $status
