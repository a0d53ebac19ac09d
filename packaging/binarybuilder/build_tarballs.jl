# SPDX-License-Identifier: MIT
# BinaryBuilder: the library of the release around this file, as Muster_jll. The package Muster of bindings/julia finds a library
# that MUSTER_LIBRARY names, and this one's path is Muster_jll.libmuster_path.
using BinaryBuilder

name = "Muster"
version = v"0.1.0"
release = abspath(joinpath(@__DIR__, "..", ".."))
isdir(joinpath(release, "third_party")) || error("$release has no third_party: unpack what cmake/make-release makes")
sources = [DirectorySource(release)]

script = raw"""
cd ${WORKSPACE}/srcdir
cmake -S . -B build -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_TOOLCHAIN_FILE=${CMAKE_TARGET_TOOLCHAIN} -DCMAKE_BUILD_TYPE=Release \
    -DMUSTER_LIBRARY_ONLY=ON -DMUSTER_UNITY=ON
cmake --build build --parallel ${nproc}
cmake --install build
install_license LICENSE debian/copyright
"""

# Linux alone: the library uses epoll, futexes and memfd. 64 bits alone: cells of global memory are words of 64.
platforms = expand_cxxstring_abis(filter(p -> Sys.islinux(p) && wordsize(p) == 64, supported_platforms()))
products = [LibraryProduct("libmuster", :libmuster)]
dependencies = [Dependency("CompilerSupportLibraries_jll")] # libstdc++

build_tarballs(ARGS, name, version, sources, script, platforms, products, dependencies; julia_compat = "1.6",
    preferred_gcc_version = v"12", lock_microarchitecture = false)
