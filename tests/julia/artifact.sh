#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A package outside of the checkout finds the library in an artifact that Pkg has installed, from a folder in place of a
# server; the same build gives the same tarball.
set -eu
. "$MUSTER_ROOT/tests/julia/env.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export JULIA=$julia
for round in a b; do "$MUSTER_ROOT/bindings/julia/artifact" "$MUSTER_BUILD" "$work/$round" "file://$work/a"; done
cmp "$work/a"/*.tar.gz "$work/b"/*.tar.gz
cp -r "$MUSTER_ROOT/bindings/julia/Muster" "$work/Muster"
cp "$work/a/Artifacts.toml" "$work/Muster"
unset MUSTER_LIBRARY MUSTER_PLUGIN_PATH
export JULIA_PKG_SERVER= JULIA_DEPOT_PATH=$work/depot JULIA_LOAD_PATH=$work:@stdlib
if "$julia" --startup-file=no -e 'import Muster' 2>"$work/log"; then echo "FAILED: the library is found before it is installed"; exit 1; fi
grep -q "libmuster was not found" "$work/log"
cat >"$work/use.jl" <<'END'
import Pkg
const work = ARGS[1]
# What Pkg does for a package with artifacts, and checks: the hash of the tarball, and that of the tree.
Pkg.Artifacts.ensure_all_artifacts_installed(joinpath(work, "Muster", "Artifacts.toml"))
import Muster
@assert startswith(Muster.library(), joinpath(work, "depot", "artifacts"))
store = Muster.Store("memory:")
store["a"] = "from an artifact"
@assert store["a"] == "from an artifact"
println("the library in ", Muster.library()[length(work) + 2:end])
END
"$julia" --startup-file=no "$work/use.jl" "$work"
