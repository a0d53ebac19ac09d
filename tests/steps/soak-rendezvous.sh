# SPDX-License-Identifier: MIT
# about: random deaths, stops, leaves and restarts of nodes over a store of each kind, for MUSTER_SOAK_SECONDS (600) in all
# tier: long
# parts: etcd
# timeout: 3600
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
muster=$MUSTER_BUILD/bin/muster
[ -x "$muster" ] || { echo "muster is not built"; exit 77; }
export MUSTER_PLUGIN_PATH=${MUSTER_PLUGIN_PATH:-$MUSTER_BUILD/plugins}
seconds=$((${MUSTER_SOAK_SECONDS:-600} / 4))
driver=$root/tests/multiproc/run_driver.py
for store in hosted tcp kept; do
    python3 "$driver" "$muster" $store --steps 1000 --seconds $seconds
done
command -v etcd >/dev/null || exit 0
"$root/tests/conformance/with-etcd" python3 "$driver" "$muster" "etcd://%/driver" --steps 1000 --seconds $seconds
