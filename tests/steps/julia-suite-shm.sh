# SPDX-License-Identifier: MIT
# about: Julia's own Distributed suite over Muster's shm transport
# tier: long
# parts: julia
# presets: release
# timeout: 900
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
SUITE_TIMEOUT=840 run_suite shm
