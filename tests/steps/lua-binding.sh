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
run test_epoch.lua
run test_cluster.lua
