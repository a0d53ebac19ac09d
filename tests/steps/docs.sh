# SPDX-License-Identifier: MIT
# about: the reference pages build without a warning
# tier: full
# parts: docs
# presets: dev
# timeout: 180
set -eu
command -v doxygen >/dev/null || { echo "doxygen is not installed"; exit 77; }
cmake -S "$MUSTER_ROOT" -B "$MUSTER_BUILD" -DMUSTER_BUILD_DOCS=ON >/dev/null
cmake --build "$MUSTER_BUILD" --target docs
