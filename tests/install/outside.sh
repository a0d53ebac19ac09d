#!/bin/sh
# SPDX-License-Identifier: MIT
# One way of using an installed Muster from outside:  outside.sh <install|cmake|pkgconfig|ctypes|luajit> <build> <version>
set -eu
way=$1 build=$2 version=$3
here=$(cd "$(dirname "$0")" && pwd)
prefix=$build/tests/install/moved
work=$build/tests/install/$way
rm -rf "$work"
mkdir -p "$work"
need() { command -v "$1" >/dev/null || { echo "$1 is not installed"; exit 77; }; }
libdir() { dirname "$(find "$prefix" -name 'libmuster.so')"; }

case $way in
install)
    # Built for /usr/local, installed elsewhere, moved after that: nothing installed may hold on to a path.
    rm -rf "$prefix"
    cmake --install "$build" --prefix "$work/first" >/dev/null
    mv "$work/first" "$prefix"
    test -f "$prefix/include/muster/base.h"
    for plugin in zmq mpi; do # what was built is installed, and there
        test ! -f "$build/plugins/muster-$plugin.so" || test -f "$(libdir)/muster/${version%%.*}/muster-$plugin.so"
    done
    if grep -rlF -e "$build" -e "$work" "$prefix" --include='*.cmake' --include='*.pc' --include='*.h'; then
        echo "these installed files name the build or the first prefix"
        exit 1
    fi
    ;;
cmake)
    cmake -G Ninja -S "$here/outside" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DMUSTER_EXPECTED="$version" >/dev/null
    cmake --build "$work/build"
    "$work/build/outside"
    test -f "$work/build/muster-minimal.so"
    ;;
pkgconfig)
    need pkg-config
    PKG_CONFIG_PATH=$(libdir)/pkgconfig
    export PKG_CONFIG_PATH
    test "$(pkg-config --modversion muster)" = "$version"
    # shellcheck disable=SC2046
    cc -std=c99 -pedantic -Wall -Wextra -Werror "$here/outside/outside.c" -o "$work/outside" \
        $(pkg-config --cflags --libs muster) -Wl,-rpath,"$(libdir)"
    "$work/outside"
    plugindir=$(pkg-config --variable=plugindir muster-plugin)
    test "$(realpath -m "$plugindir")" = "$(realpath -m "$(libdir)/muster/${version%%.*}")"
    # shellcheck disable=SC2046
    echo '#include <muster/stream.h>' | cc -xc -std=c99 -fsyntax-only $(pkg-config --cflags muster-plugin) -
    ;;
ctypes)
    need python3
    python3 "$here/outside/outside.py" "$(libdir)/libmuster.so" "$version"
    ;;
luajit)
    need luajit
    python3 "$here/../abi/api.py" --cdef >"$work/muster.cdef"
    luajit "$here/outside/outside.lua" "$(libdir)/libmuster.so" "$version" "$work/muster.cdef"
    ;;
*) exit 2 ;;
esac
