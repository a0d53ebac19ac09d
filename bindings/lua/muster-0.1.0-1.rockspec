-- SPDX-License-Identifier: MIT
-- luarocks --lua-version=5.1 make bindings/lua/muster-0.1.0-1.rockspec, in a checkout: the modules, for LuaJIT. The library
-- comes from a package or from `cmake --install`; MUSTER_LIBRARY names another one.
rockspec_format = '3.0'
package = 'muster'
version = '0.1.0-1'
source = { url = 'file://.' } -- `make` builds what is here
description = {
    summary = 'Streams over any transport, stores, groups and clusters by libmuster',
    detailed = 'The whole C API of libmuster for LuaJIT, and coroutines that wait for streams, stores, groups and workers.',
    license = 'MIT',
    labels = { 'cluster', 'network', 'ffi', 'luajit' },
}
supported_platforms = { 'linux' }
dependencies = { 'lua == 5.1' } -- LuaJIT
build = {
    type = 'builtin',
    modules = {
        ['muster'] = 'bindings/lua/muster.lua',
        ['muster.atomic'] = 'bindings/lua/muster/atomic.lua',
        ['muster.cluster'] = 'bindings/lua/muster/cluster.lua',
        ['muster.epoch'] = 'bindings/lua/muster/epoch.lua',
        ['muster.group'] = 'bindings/lua/muster/group.lua',
        ['muster.loop'] = 'bindings/lua/muster/loop.lua',
        ['muster.map'] = 'bindings/lua/muster/map.lua',
        ['muster.memory'] = 'bindings/lua/muster/memory.lua',
        ['muster.metrics'] = 'bindings/lua/muster/metrics.lua',
        ['muster.pack'] = 'bindings/lua/muster/pack.lua',
        ['muster.packed_stream'] = 'bindings/lua/muster/packed_stream.lua',
        ['muster.socket'] = 'bindings/lua/muster/socket.lua',
        ['muster.store'] = 'bindings/lua/muster/store.lua',
        ['muster.stream'] = 'bindings/lua/muster/stream.lua',
        ['muster.surface'] = 'bindings/lua/muster/surface.lua',
        ['muster.trace'] = 'bindings/lua/muster/trace.lua',
    },
}
