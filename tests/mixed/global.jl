# SPDX-License-Identifier: MIT
# A locale of a global memory that programs of four languages share; see global.c.
using Muster
const L = Muster.LowLevel

const locales, rounds, second = 4, 200, 1_000_000_000
const rank, url, way = parse(Int, ARGS[1]), ARGS[2], ARGS[3]

must(status) = status >= 0 ? status : error("status $status")
function given(f, T)
    place = Ref{T}()
    must(f(place))
    return place[]
end

store = Muster.Store(url)
group = Muster.Group(store; rank = rank, size = locales, listen = "tcp://127.0.0.1:0", name = way, timeout = 120)
config = Ref(L.muster_memory_config(segment_bytes = 1 << 20, flags = way == "here" ? 0 : L.MUSTER_MEMORY_NO_SHARED_MEMORY))
memory = given(place -> L.muster_memory_open(group.handle, config, 60second, place, C_NULL), Ptr{L.muster_memory})
symmetric() = given(place -> L.muster_memory_symmetric(memory, 8, 8, 60second, place, C_NULL), UInt64)
at_zero(offset) = given(place -> L.muster_memory_pointer(memory, 0, offset, place), UInt64)
top = at_zero(symmetric())
sums = at_zero(symmetric())
epoch = given(place -> L.muster_memory_epoch(memory, place), Ptr{L.muster_epoch})
token = given(place -> L.muster_epoch_register(epoch, place, C_NULL), Ptr{L.muster_epoch_token})

function run(; words...)
    found = Ref(L.muster_memory_result(0, 0))
    status = must(L.muster_memory_run(memory, Ref(L.muster_memory_operation(; words...)), 30second, found))
    return status, found[].value
end
value_at(cell) = run(kind = L.MUSTER_MEMORY_READ, target = cell)[2]
write_to(cell, value) = run(kind = L.MUSTER_MEMORY_WRITE, target = cell, value = value)
exchange(cell, expected, value) =
    run(kind = L.MUSTER_MEMORY_COMPARE_EXCHANGE, target = cell, expected = expected, value = value)[1] == 0

function push_value(locale, value)
    node = given(place -> L.muster_memory_allocate(memory, locale, 24, 30second, place), UInt64)
    write_to(node + 16, value)
    while true
        first = value_at(top)
        write_to(node, first)
        exchange(top, first, node) && return
    end
end
function pop_value()
    must(L.muster_epoch_pin(token))
    first, value = UInt64(0), UInt64(0)
    while true
        first = value_at(top)
        first == 0 && break
        value = value_at(first + 16)
        exchange(top, first, value_at(first)) && break
    end
    must(L.muster_epoch_unpin(token))
    first == 0 || must(L.muster_epoch_retire(token, first))
    return value
end

total = UInt64(0)
for i = 1:rounds
    push_value((i + rank) % locales, i)
    global total += UInt64(i) - pop_value()
    must(L.muster_memory_reclaim(memory, token, 16, 0, C_NULL))
end
run(kind = L.MUSTER_MEMORY_FETCH, target = sums, operation = L.MUSTER_ATOMIC_ADD, value = total)
Muster.barrier(group)
Muster.barrier(group)
for i = 1:3
    must(L.muster_epoch_synchronize(token, 30second, C_NULL))
    must(L.muster_memory_reclaim(memory, token, typemax(UInt32), 0, C_NULL))
end
must(L.muster_memory_flush(memory, typemax(UInt32), 30second))
Muster.barrier(group)
Muster.barrier(group)
must(L.muster_epoch_unregister(token))
L.muster_memory_release(memory)
println("Julia: done")
