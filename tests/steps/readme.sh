# SPDX-License-Identifier: MIT
# about: the README's programs in C, Julia and Lua meet as three members of one world
# tier: full
# parts: julia hosts
# presets: release
# timeout: 200
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
command -v luajit >/dev/null || { echo "luajit is not there (package luajit)"; exit 77; }
cd "$MUSTER_ROOT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The programs of one section: who.c, who.julia, who.lua.
awk -v work="$work" '
    /^## / { here = /^## Who is in/ }
    /^```$/ { name = "" }
    name != "" { print >(work "/who." name) }
    here && /^```./ { name = substr($0, 4) }' README.md
cc -std=c11 -Wall -Wextra -Werror -Iinclude "$work/who.c" -o "$work/who" "$MUSTER_LIBRARY" -Wl,-rpath,"$(dirname "$MUSTER_LIBRARY")"
export MUSTER_SECRET="a secret for this test"
cat >"$work/all" <<END
"$work/who" "\$1" & c=\$!
"$julia" --startup-file=no "$work/who.julia" "\$1" & julia=\$!
luajit "$work/who.lua" "\$1" && wait \$c && wait \$julia
END
timeout -k 10 180 tests/conformance/with-store "$MUSTER_BUILD/bin/muster" tcp://127.0.0.1:0 -- sh "$work/all" % | tee "$work/said"
[ "$(grep -c '^\(C\|Julia\|Lua\): rank [012] of 3$' "$work/said")" = 3 ]
[ "$(grep -o 'rank [012]' "$work/said" | sort -u | wc -l)" = 3 ]
