# SPDX-License-Identifier: MIT
# about: the programs of docs/guide/cookbook.md: each in every language, and what it prints
# tier: full
# parts: julia hosts node
# presets: release
# timeout: 300
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
node=$(command -v node || command -v nodejs) || node=''
for program in luajit cargo "$node"; do
    command -v "$program" >/dev/null || { echo "a language is missing (packages luajit, cargo, nodejs)"; exit 77; }
done
[ -e /usr/include/node/node_api.h ] || { echo "node_api.h is missing (package libnode-dev)"; exit 77; }
cd "$MUSTER_ROOT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$(dirname "$MUSTER_LIBRARY")
export LD_LIBRARY_PATH="$folder" CARGO_TARGET_DIR="$MUSTER_BUILD/rust" PYTHONPATH="$PWD/bindings/python"
export MUSTER_SECRET="a secret for this test" MUSTER_NODE_ADDON="$work/muster.node"
cc -O2 -fPIC -shared -Iinclude -I/usr/include/node bindings/node/src/addon.c -o "$work/muster.node" -L"$folder" -lmuster

# <number>.<language> for each program, <number>.text for what it prints, <number>.title.
awk -v prefix="$work/" '
    /^## / { number++; print substr($0, 4) >(prefix number ".title") }
    /It prints `/ { sub(/.*It prints `/, ""); sub(/`\.$/, ""); gsub(/`, then `/, "\n"); print >(prefix number ".text") }
    /^```$/ { name = "" }
    name != "" { print >(prefix number "." name) }
    /^```./ { name = substr($0, 4) }' docs/guide/cookbook.md
count=$(find "$work" -name '*.title' | wc -l)
[ "$count" -ge 12 ] || { echo "FAILED: the page has $count tasks"; exit 1; }

mkdir -p "$work/rust/src/bin"
for rust in "$work"/*.rust; do mv "$rust" "$work/rust/src/bin/task$(basename "$rust" .rust).rs"; done
printf '[package]\nname = "cookbook"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nmuster = { path = "%s" }\n[workspace]\n' \
    "$PWD/bindings/rust/muster" >"$work/rust/Cargo.toml"
(cd "$work/rust" && cargo build --offline --quiet)
# One process for all programs of Julia: loading the package takes longer than running them.
for ((i = 1; i <= count; i++)); do
    printf 'redirect_stdout(() -> Base.include(Module(), "%s"), open("%s", "w"))\n' "$work/$i.jl" "$work/$i.julia.out" >>"$work/all.jl"
    mv "$work/$i.julia" "$work/$i.jl"
done
timeout 200 "$julia" --startup-file=no "$work/all.jl"

failures=0
compare() { # <number> <language> <file>
    if cmp -s "$work/$1.text" "$3"; then return; fi
    echo "FAILED: $(cat "$work/$1.title"), in $2: it does not print $(tr '\n' '|' <"$work/$1.text") but $(tr '\n' '|' <"$3")"
    failures=$((failures + 1))
}
for ((i = 1; i <= count; i++)); do
    cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Iinclude -x c "$work/$i.c" -x none -o "$work/$i.program" "$MUSTER_LIBRARY"
    { timeout 30 "$work/$i.program" || echo "status $?"; } >"$work/out" 2>&1
    compare "$i" C "$work/out"
    { timeout 30 /usr/bin/python3 "$work/$i.python" || echo "status $?"; } >"$work/out" 2>&1
    compare "$i" Python "$work/out"
    { timeout 30 "$CARGO_TARGET_DIR/debug/task$i" || echo "status $?"; } >"$work/out" 2>&1
    compare "$i" Rust "$work/out"
    { timeout 30 luajit "$work/$i.lua" || echo "status $?"; } >"$work/out" 2>&1
    compare "$i" LuaJIT "$work/out"
    if [ -e "$work/$i.javascript" ]; then
        sed "s,'./bindings/node','$PWD/bindings/node'," "$work/$i.javascript" >"$work/$i.js"
        { timeout 30 "$node" "$work/$i.js" || echo "status $?"; } >"$work/out" 2>&1
        compare "$i" Node "$work/out"
    fi
    compare "$i" Julia "$work/$i.julia.out"
done
echo "$count tasks in six languages, $failures failures"
[ $failures -eq 0 ]
