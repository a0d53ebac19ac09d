# SPDX-License-Identifier: MIT
# about: the README's programs in C, Julia, Lua and Rust meet as four members of one world
# tier: full
# parts: julia hosts
# presets: release
# timeout: 200
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
for program in luajit cargo; do
    command -v "$program" >/dev/null || { echo "$program is not there (packages luajit, rustc, cargo)"; exit 77; }
done
cd "$MUSTER_ROOT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The programs of one section: who.c, who.julia, who.lua, who.rust.
awk -v work="$work" '
    /^## / { here = /^## Who is in/ }
    /^```$/ { name = "" }
    name != "" { print >(work "/who." name) }
    here && /^```./ { name = substr($0, 4) }' README.md
cc -std=c11 -Wall -Wextra -Werror -Iinclude "$work/who.c" -o "$work/who" "$MUSTER_LIBRARY" -Wl,-rpath,"$(dirname "$MUSTER_LIBRARY")"
mkdir -p "$work/rust/src"
mv "$work/who.rust" "$work/rust/src/main.rs"
printf '[package]\nname = "who"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nmuster = { path = "%s" }\n[workspace]\n' \
    "$PWD/bindings/rust/muster" >"$work/rust/Cargo.toml"
export LD_LIBRARY_PATH="$MUSTER_BUILD" CARGO_TARGET_DIR="$MUSTER_BUILD/rust"
(cd "$work/rust" && cargo build --offline --quiet)
export MUSTER_SECRET="a secret for this test"
cat >"$work/all" <<END
"$work/who" "\$1" & c=\$!
"$julia" --startup-file=no "$work/who.julia" "\$1" & julia=\$!
"$CARGO_TARGET_DIR/debug/who" "\$1" & rust=\$!
luajit "$work/who.lua" "\$1" && wait \$c && wait \$julia && wait \$rust
END
timeout -k 10 180 tests/conformance/with-store "$MUSTER_BUILD/bin/muster" tcp://127.0.0.1:0 -- sh "$work/all" % | tee "$work/said"
[ "$(grep -c '^\(C\|Julia\|Lua\|Rust\): rank [0123] of 4$' "$work/said")" = 4 ]
[ "$(grep -o 'rank [0123]' "$work/said" | sort -u | wc -l)" = 4 ]
