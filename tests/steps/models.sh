# SPDX-License-Identifier: MIT
# about: the lock of a stream's direction, as a model with store buffers, searched wholly by spin
# tier: full
# parts: model
# timeout: 300
set -eu
command -v spin >/dev/null || { echo "spin is not installed"; exit 77; }
exec "$MUSTER_ROOT/tests/models/run"
