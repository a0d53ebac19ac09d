# SPDX-License-Identifier: MIT
# about: the programs of the README and of docs/guide/tour.md: a line sent in C; words counted; four languages in one world
# tier: full
# parts: julia hosts
# presets: release
# timeout: 300
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
for program in luajit cargo; do
    command -v "$program" >/dev/null || { echo "$program is not there (packages luajit, rustc, cargo)"; exit 77; }
done
cd "$MUSTER_ROOT"
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
programs() { # <file> <words of the section's title> <name>: <name>.c, <name>.julia, <name>.lua, <name>.rust
    awk -v prefix="$work/$3." -v title="^## $2" '
        /^## / { here = $0 ~ title }
        /^```$/ { name = "" }
        name != "" { print >(prefix name) }
        here && /^```./ { name = substr($0, 4) }' "$1"
}
programs README.md "A program in C" line
programs docs/guide/tour.md "Words counted" count
programs docs/guide/tour.md "One world" who
for name in line who; do
    cc -std=c11 -Wall -Wextra -Werror -Iinclude "$work/$name.c" -o "$work/$name" "$MUSTER_LIBRARY" \
        -Wl,-rpath,"$(dirname "$MUSTER_LIBRARY")"
done
export LD_LIBRARY_PATH="$MUSTER_BUILD" CARGO_TARGET_DIR="$MUSTER_BUILD/rust"
for name in count who; do
    mkdir -p "$work/$name-rust/src"
    mv "$work/$name.rust" "$work/$name-rust/src/main.rs"
    printf '[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nmuster = { path = "%s" }\n[workspace]\n' \
        "$name" "$PWD/bindings/rust/muster" >"$work/$name-rust/Cargo.toml"
    (cd "$work/$name-rust" && cargo build --offline --quiet)
done

echo "-- a line sent in C"
mkfifo "$work/said"
MUSTER_SECRET="a secret for this test" timeout 60 "$work/line" >"$work/said" &
exec 3<"$work/said"
read -r address <&3
MUSTER_SECRET="a secret for this test" timeout 60 "$work/line" "$address"
read -r text <&3
wait $!
[ "$text" = hello ]

echo "-- words counted in Lua, Rust and Julia"
[ "$(timeout 60 luajit "$work/count.lua")" = 800000 ]
[ "$(timeout 60 "$CARGO_TARGET_DIR/debug/count")" = 800000 ]
timeout 200 "$julia" --startup-file=no "$work/count.julia" | grep '= 800000$'

echo "-- one world of four programs"
export MUSTER_SECRET="a secret for this test"
cat >"$work/all" <<END
"$work/who" "\$1" & c=\$!
"$julia" --startup-file=no "$work/who.julia" "\$1" & julia=\$!
"$CARGO_TARGET_DIR/debug/who" "\$1" & rust=\$!
luajit "$work/who.lua" "\$1" && wait \$c && wait \$julia && wait \$rust
END
timeout -k 10 180 tests/conformance/with-store "$MUSTER_BUILD/bin/muster" tcp://127.0.0.1:0 -- sh "$work/all" % | tee "$work/ranks"
[ "$(grep -c '^\(C\|Julia\|Lua\|Rust\): rank [0123] of 4$' "$work/ranks")" = 4 ]
[ "$(grep -o 'rank [0123]' "$work/ranks" | sort -u | wc -l)" = 4 ]
