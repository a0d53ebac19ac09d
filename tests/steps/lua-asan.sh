# SPDX-License-Identifier: MIT
# about: the misuse suite of the Lua binding under AddressSanitizer and UndefinedBehaviorSanitizer
# tier: long
# parts: hosts
# presets: asan-ubsan
# timeout: 300
set -eu
command -v luajit >/dev/null || { echo "luajit is not there (package luajit)"; exit 77; }
export MUSTER_PLUGIN_PATH="$MUSTER_BUILD/plugins"
export LUA_PATH="$MUSTER_ROOT/bindings/lua/?.lua;$MUSTER_ROOT/tests/lua/?.lua;;"
# LuaJIT was not built with the sanitizers, so their run-times come before it; its own memory is not theirs to check for leaks.
status=0
LD_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:log_path="$TMPDIR/lua-asan" timeout -k 10 280 luajit "$MUSTER_ROOT/tests/lua/test_misuse.lua" || status=$?
for report in "$TMPDIR"/lua-asan.*; do # also of workers
    [ ! -e "$report" ] || { head -n 80 "$report"; status=1; }
done
exit $status
