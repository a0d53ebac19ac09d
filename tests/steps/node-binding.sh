# SPDX-License-Identifier: MIT
# about: the Node binding: compiled as a package, streams, stores, back-pressure, deaths, what keeps a process alive
# tier: full
# parts: node
# presets: release
# timeout: 300
set -eu
node=$(command -v node || command -v nodejs) || { echo "node is missing (package nodejs)"; exit 77; }
[ "$("$node" -p 'process.versions.node.split(".")[0] >= 18')" = true ] || { echo "node is older than 18"; exit 77; }
[ -e /usr/include/node/node_api.h ] || { echo "node_api.h is missing (package libnode-dev)"; exit 77; }
work=$(mktemp -d)
store=''
finish() {
    if [ -n "$store" ]; then kill "$store" 2>/dev/null || :; fi # it may have ended
    wait 2>/dev/null || :
    rm -rf "$work"
}
trap finish EXIT

# As binding.gyp does, without a tool that fetches headers.
cc -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -fPIC -shared -I"$MUSTER_ROOT/include" -I/usr/include/node \
    "$MUSTER_ROOT/bindings/node/src/addon.c" -o "$work/muster.node" -L"$(dirname "$MUSTER_LIBRARY")" -lmuster \
    -Wl,-rpath,"$(dirname "$MUSTER_LIBRARY")"
export MUSTER_NODE_ADDON="$work/muster.node" MUSTER_SECRET="a secret of the test"
cd "$MUSTER_ROOT"
"$node" -e 'JSON.parse(require("fs").readFileSync("bindings/node/package.json"))'
echo "node $("$node" --version), muster $("$node" -p 'require("./bindings/node").version')"

mkfifo "$work/address"
"$MUSTER_BUILD/bin/muster" store --listen tcp://127.0.0.1:0 >"$work/address" 2>"$work/store.log" &
store=$!
read -r _ MUSTER_TEST_STORE <"$work/address"
export MUSTER_TEST_STORE
for name in streams stores; do
    echo "-- test_$name.js"
    timeout -k 10 120 "$node" --test "tests/node/test_$name.js"
done
