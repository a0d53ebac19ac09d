# SPDX-License-Identifier: MIT
# about: clang-tidy finds nothing in the library
# tier: long
# parts: style
# presets: clang
# timeout: 1800
set -eu
command -v clang-tidy >/dev/null || { echo "clang-tidy is not installed"; exit 77; }
cd "$MUSTER_ROOT"
find src -name '*.cpp' -print0 |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "$MUSTER_BUILD" --quiet --warnings-as-errors='*'
