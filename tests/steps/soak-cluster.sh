# SPDX-License-Identifier: MIT
# about: a cluster of four workers, one of which is killed each second and replaced, for MUSTER_SOAK_SECONDS (600): nothing grows, nothing hangs
# tier: long
# timeout: 3600
set -eu
program=$MUSTER_BUILD/tests/soak/soak_cluster
[ -x "$program" ] || { echo "soak_cluster is not built"; exit 77; }
export MUSTER_PLUGIN_PATH=${MUSTER_PLUGIN_PATH:-$MUSTER_BUILD/plugins}
exec "$program"
