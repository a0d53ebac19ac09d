# SPDX-License-Identifier: MIT
# about: a broker with eight hostile members, and honest ones, for MUSTER_SOAK_SECONDS (600): nothing grows, nothing hangs
# tier: long
# timeout: 3600
set -eu
program=$MUSTER_BUILD/tests/soak/soak_star
[ -x "$program" ] || { echo "soak_star is not built"; exit 77; }
export MUSTER_PLUGIN_PATH=${MUSTER_PLUGIN_PATH:-$MUSTER_BUILD/plugins}
exec "$program"
