# SPDX-License-Identifier: MIT
# about: locales of global memory are killed at random, under AddressSanitizer, for MUSTER_SOAK_SECONDS (600): no node is lost or freed twice, nothing hangs
# tier: long
# presets: asan-ubsan
# timeout: 3600
set -eu
program=$MUSTER_BUILD/tests/test_api_memory_killed
[ -x "$program" ] || { echo "test_api_memory_killed is not built"; exit 77; }
export MUSTER_PLUGIN_PATH=${MUSTER_PLUGIN_PATH:-$MUSTER_BUILD/plugins}
runs=0
while [ "$SECONDS" -lt "${MUSTER_SOAK_SECONDS:-600}" ]; do
    timeout 200 "$program" >"$TMPDIR/soak-memory.log" 2>&1 || { cat "$TMPDIR/soak-memory.log"; echo "FAILED: run $((runs + 1))"; exit 1; }
    runs=$((runs + 1))
done
[ "$runs" -gt 0 ]
echo "$runs runs"
