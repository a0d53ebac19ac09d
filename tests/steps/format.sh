# SPDX-License-Identifier: MIT
# about: the sources are laid out by clang-format
# tier: full
# parts: style
set -eu
command -v clang-format >/dev/null || { echo "clang-format is not installed"; exit 77; }
cd "$MUSTER_ROOT"
find include src tests examples bindings -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' |
    xargs clang-format --dry-run --Werror
