# SPDX-License-Identifier: MIT
# about: a master in C with workers in C, Lua, Rust and Julia, which exchange bytes over tcp, shm, unix and a star
# tier: full
# parts: hosts julia
# presets: release
# timeout: 400
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
for program in luajit cargo; do
    command -v "$program" >/dev/null || { echo "$program is not there (packages luajit, rustc, cargo)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$MUSTER_BUILD" CARGO_TARGET_DIR="$MUSTER_BUILD/rust"
export LUA_PATH="$MUSTER_ROOT/bindings/lua/?.lua;;"
(cd "$MUSTER_ROOT/bindings/rust" && cargo build --offline --locked --quiet --release --example mixed_worker)
for name in worker master; do
    # shellcheck disable=SC2046
    cc -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$MUSTER_ROOT/include" -I"$MUSTER_ROOT/tests/common" \
        "$MUSTER_ROOT/tests/mixed/$name.c" -o "$work/$name" "$MUSTER_LIBRARY" $(pkg-config --libs cmocka)
done
timeout -k 10 350 "$work/master" "exec $work/worker" "exec luajit '$MUSTER_ROOT/tests/mixed/worker.lua'" \
    "exec '$CARGO_TARGET_DIR/release/examples/mixed_worker'" "exec '$julia' --startup-file=no '$MUSTER_ROOT/tests/mixed/worker.jl'"
