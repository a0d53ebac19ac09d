# SPDX-License-Identifier: MIT
# about: examples/world: Python, Julia, Rust, Lua and MPI in one group, and one of them is killed; in the long tier each
# tier: full
# parts: hosts julia world
# presets: release
# timeout: 600
set -eu
victims=lua
[ "$MUSTER_TIER" != long ] || victims='python julia rust lua mpi'
# shellcheck disable=SC2086
exec "$MUSTER_ROOT/examples/world/run" $victims
