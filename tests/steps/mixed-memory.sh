# SPDX-License-Identifier: MIT
# about: programs in C, Lua, Julia and Rust share a stack in global memory, mapped and by active messages
# tier: full
# parts: hosts julia
# presets: release
# timeout: 300
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
for program in luajit cargo; do
    command -v "$program" >/dev/null || { echo "$program is not there (packages luajit, rustc, cargo)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$MUSTER_BUILD" CARGO_TARGET_DIR="$MUSTER_BUILD/rust"
export LUA_PATH="$MUSTER_ROOT/bindings/lua/?.lua;;"
(cd "$MUSTER_ROOT/bindings/rust" && cargo build --offline --locked --quiet --release --example global_member)
cc -std=c11 -O1 -Wall -Wextra -Werror -D_GNU_SOURCE -I"$MUSTER_ROOT/include" -I"$MUSTER_ROOT" \
    "$MUSTER_ROOT/tests/mixed/global.c" -o "$work/global" "$MUSTER_LIBRARY"
cat >"$work/all" <<END
set -e
luajit "$MUSTER_ROOT/tests/mixed/global.lua" 1 "\$1" "\$2" & lua=\$!
"$julia" --startup-file=no "$MUSTER_ROOT/tests/mixed/global.jl" 2 "\$1" "\$2" & julia=\$!
"$CARGO_TARGET_DIR/release/examples/global_member" 3 "\$1" "\$2" & rust=\$!
"$work/global" 0 "\$1" "\$2"
wait \$lua
wait \$julia
wait \$rust
END
for way in here elsewhere; do
    timeout -k 10 140 "$MUSTER_ROOT/tests/conformance/with-store" "$MUSTER_BUILD/bin/muster" tcp://127.0.0.1:0 -- \
        sh "$work/all" % "$way"
done
