# SPDX-License-Identifier: MIT
# about: random deaths, stops, cuts, leaves and restarts over a store of each kind, for MUSTER_SOAK_SECONDS (600) in all
# tier: long
# parts: etcd
# timeout: 3600
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
muster=$MUSTER_BUILD/bin/muster
member=$MUSTER_BUILD/tests/multiproc/driver_member
[ -x "$muster" ] && [ -x "$member" ] || { echo "muster or driver_member is not built"; exit 77; }
export MUSTER_PLUGIN_PATH=${MUSTER_PLUGIN_PATH:-$MUSTER_BUILD/plugins}
stores="hosted tcp unix kept"
! command -v etcd >/dev/null || stores="$stores etcd"
set -- $stores
for store in "$@"; do
    python3 "$root/tests/multiproc/run_driver.py" "$muster" "$store" --member "$member" --hosts --steps 1000 \
        --seconds $((${MUSTER_SOAK_SECONDS:-600} / $#))
done
