# SPDX-License-Identifier: MIT
# about: the Lua binding: generated part in step, layout, tasks; clusters of Lua programs over tcp, shm, a star and Lua
# tier: full
# parts: hosts
# presets: release
# timeout: 300
set -eu
command -v luajit >/dev/null || { echo "luajit is not there (package luajit)"; exit 77; }
"$MUSTER_ROOT/bindings/lua/generate" --check
export MUSTER_PLUGIN_PATH="$MUSTER_BUILD/plugins"
export LUA_PATH="$MUSTER_ROOT/bindings/lua/?.lua;$MUSTER_ROOT/tests/lua/?.lua;$MUSTER_ROOT/examples/lua/?.lua;;"
run() { echo "-- $*"; timeout -k 10 200 luajit "$MUSTER_ROOT/tests/lua/$@"; }
run test_binding.lua
run test_misuse.lua
run test_group.lua
run test_socket.lua
run test_memory.lua
run test_observed.lua
run test_epoch.lua
run test_cluster.lua

# The rockspec installs every module; a Lua without ffi gets a sentence.
if command -v luarocks >/dev/null; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$MUSTER_ROOT"
    luarocks --lua-version=5.1 --tree "$work" make bindings/lua/muster-0.1.0-1.rockspec
    modules="$work/share/lua/5.1"
    for file in bindings/lua/muster.lua bindings/lua/muster/*.lua; do cmp "$file" "$modules/${file#bindings/lua/}"; done
    export LUA_PATH="$modules/?.lua"
    luajit -e "local muster = require 'muster'; require 'muster.store'; print('a rock with ' .. muster.version())"
    if command -v lua5.1 >/dev/null; then
        status=0
        lua5.1 -e "require 'muster'" 2>"$work/why" || status=$?
        [ $status != 0 ] && grep -q "muster needs LuaJIT, .* this is Lua 5.1" "$work/why"
    fi
fi
