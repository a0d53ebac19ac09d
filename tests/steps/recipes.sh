# SPDX-License-Identifier: MIT
# about: the release as one archive: the same bytes twice, built without a network; the recipes of vcpkg, Conan, BinaryBuilder
# tier: long
# parts: build
# timeout: 1800
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$MUSTER_ROOT"
first=$(cmake/make-release "$work/one")
second=$(umask 077 && TZ=Asia/Tokyo LC_ALL=C cmake/make-release "$work/two")
cmp "$first" "$second"
sha256sum "$first"
tar -C "$work" -xf "$first"
release=$(echo "$work"/muster-*/)
release=${release%/}

echo "-- vcpkg: the port, by stand-ins for the functions of vcpkg, without a network"
python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["name"])' "$release/packaging/vcpkg/muster/vcpkg.json"
isolated() { if unshare --map-root-user --net true 2>/dev/null; then unshare --map-root-user --net "$@"; else "$@"; fi; }
isolated cmake -DPACKAGES="$work/packages" -DBUILD="$work/build" -DPORT="$release/packaging/vcpkg/muster/portfile.cmake" \
    -P tests/steps/vcpkg.cmake >"$MUSTER_LOGS/recipes.log" 2>&1 || { tail -n 30 "$MUSTER_LOGS/recipes.log"; exit 1; }
ls "$work/packages/share/muster"
cat >"$work/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES C)
find_package(Muster REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE Muster::muster)
CMAKE
cp packaging/conan/test_package/program.c "$work"
cmake -S "$work" -B "$work/program" -DCMAKE_PREFIX_PATH="$work/packages" >>"$MUSTER_LOGS/recipes.log"
cmake --build "$work/program" >>"$MUSTER_LOGS/recipes.log"
"$work/program/program"

echo "-- Conan: compiled"
python3 - <<'PYTHON'
for name in ("packaging/conan/conanfile.py", "packaging/conan/test_package/conanfile.py"):
    compile(open(name).read(), name, "exec")
PYTHON
echo "-- BinaryBuilder: parsed"
if julia=$(tests/julia/get-julia 2>/dev/null); then
    "$julia" --startup-file=no -e '
        text = read(ARGS[1], String)
        block = Meta.parse("begin\n$text\nend")
        any(part -> part isa Expr && part.head in (:error, :incomplete), block.args) && error("it does not parse")' \
        packaging/binarybuilder/build_tarballs.jl
fi
# The recipes name the version of the library.
version=$(sed -n 's/^project(muster VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for file in packaging/vcpkg/muster/vcpkg.json packaging/conan/conanfile.py packaging/binarybuilder/build_tarballs.jl; do
    grep -q "version.*\"$version\"" "$file" || { echo "$file does not name version $version"; exit 1; }
done
