# SPDX-License-Identifier: MIT
# Atomic objects in memory that threads or processes share, and waits for them.

const AtomicTypes = Union{Int32,UInt32,Int64,UInt64}
const ORDERS = (seq_cst = Int32(LowLevel.MUSTER_ATOMIC_SEQ_CST), acq_rel = Int32(LowLevel.MUSTER_ATOMIC_ACQ_REL),
    relaxed = Int32(LowLevel.MUSTER_ATOMIC_RELAXED))

"""
    Muster.AtomicWord(array, i)

Element `i` of an array of `Int32`, `UInt32`, `Int64` or `UInt64` as an atomic word. The array may be mapped by several
processes
(`Mmap.mmap`, a `SharedArray`'s `sdata`). `w[]` and `w[] = x` read and write it.

    shared = Mmap.mmap(io, Vector{UInt64}, 512)
    count = Muster.AtomicWord(shared, 1)
    Muster.fetch!(+, count, 1)                                   # the value before
    notify(count)
    Muster.wait_until((count, >=, 4); timeout = 10)              # elsewhere

Operations take `order = :seq_cst`, `:acq_rel` or `:relaxed`.
"""
struct AtomicWord{T<:AtomicTypes,A<:DenseArray{T}}
    array::A # keeps the memory
    cell::Ptr{T}
    function AtomicWord(array::A, i::Integer) where {T<:AtomicTypes,A<:DenseArray{T}}
        checkbounds(array, i)
        return new{T,A}(array, pointer(array, i))
    end
end
Base.show(io::IO, w::AtomicWord{T}) where {T} = print(io, "Muster.AtomicWord{", T, "}(", w[], ")")

const Words32{T} = AtomicWord{T} where {T<:Union{Int32,UInt32}}

# The function of C for the size of a word.
for (name, parameters) in ((:read, (:order, :out)), (:write, (:value, :order)), (:exchange, (:value, :order, :out)),
    (:compare_exchange, (:expected, :desired, :order)), (:fetch, (:operation, :operand, :order, :out)))
    for (words, unsigned, bits) in ((:(AtomicWord{<:Union{Int32,UInt32}}), UInt32, 32), (:AtomicWord, UInt64, 64))
        call = Symbol("muster_atomic_", name, bits)
        @eval @inline $(Symbol("call_", name))(w::$words, $(parameters...)) =
            GC.@preserve w LowLevel.$call(Ptr{$unsigned}(w.cell), $(parameters...))
    end
end

unsigned_of(::Type{T}) where {T} = typeof(unsigned(zero(T)))
bits_of(::Type{T}, x) where {T} = reinterpret(unsigned_of(T), convert(T, x))
order_of(order::Symbol) = haskey(ORDERS, order) ? ORDERS[order] : throw(ArgumentError("no memory order :$order"))

# Of a call that gives the value before.
function value_of(f, ::AtomicWord{T}, what) where {T}
    out = Ref{unsigned_of(T)}(0)
    check(f(out), what)
    return reinterpret(T, out[])
end

Base.getindex(w::AtomicWord) = load(w)
Base.setindex!(w::AtomicWord, x) = (store!(w, x); x)

"""
    Muster.load(word; order = :seq_cst)

The value; `word[]` is the same.
"""
load(w::AtomicWord; order::Symbol = :seq_cst) = value_of(out -> call_read(w, order_of(order), out), w, "read a word")

"""
    Muster.store!(word, value; order = :seq_cst)

Writes the value; `word[] = value` is the same.
"""
store!(w::AtomicWord{T}, x; order::Symbol = :seq_cst) where {T} =
    check(call_write(w, bits_of(T, x), order_of(order)), "write a word")

"""
    Muster.exchange!(word, value; order = :seq_cst)

The value before.
"""
exchange!(w::AtomicWord{T}, x; order::Symbol = :seq_cst) where {T} =
    value_of(out -> call_exchange(w, bits_of(T, x), order_of(order), out), w, "exchange a word")

"""
    Muster.compare_exchange!(word, expected, desired; order = :seq_cst) -> (found, done)

Writes `desired` if the word is `expected`.
"""
function compare_exchange!(w::AtomicWord{T}, expected, desired; order::Symbol = :seq_cst) where {T}
    seen = Ref(bits_of(T, expected))
    status = call_compare_exchange(w, seen, bits_of(T, desired), order_of(order))
    status == LowLevel.MUSTER_AGAIN || check(status, "exchange a word")
    return (found = reinterpret(T, seen[]), done = status == LowLevel.MUSTER_OK)
end

operation_of(::typeof(+), ::Type) = LowLevel.MUSTER_ATOMIC_ADD
operation_of(::typeof(&), ::Type) = LowLevel.MUSTER_ATOMIC_AND
operation_of(::typeof(|), ::Type) = LowLevel.MUSTER_ATOMIC_OR
operation_of(::typeof(xor), ::Type) = LowLevel.MUSTER_ATOMIC_XOR
operation_of(::typeof(min), ::Type{<:Signed}) = LowLevel.MUSTER_ATOMIC_MIN
operation_of(::typeof(max), ::Type{<:Signed}) = LowLevel.MUSTER_ATOMIC_MAX
operation_of(::typeof(min), ::Type{<:Unsigned}) = LowLevel.MUSTER_ATOMIC_UMIN
operation_of(::typeof(max), ::Type{<:Unsigned}) = LowLevel.MUSTER_ATOMIC_UMAX
operation_of(f, ::Type) = throw(ArgumentError("$f is not one of +, &, |, xor, min, max"))

"""
    Muster.fetch!(operation, word, operand; order = :seq_cst)

`operation` is `+`, `&`, `|`, `xor`, `min` or `max`. Returns the value before.
"""
fetch!(operation, w::AtomicWord{T}, x; order::Symbol = :seq_cst) where {T} = value_of(w, "change a word") do out
    call_fetch(w, operation_of(operation, T), bits_of(T, x), order_of(order), out)
end

"""
    notify(word)

Wakes those, in any process, that wait for this word, after it was written.
"""
Base.notify(w::AtomicWord{T}) where {T} =
    GC.@preserve w check(LowLevel.muster_atomic_notify(w.cell, sizeof(T)), "notify of a word")

const COMPARISONS = ((==, LowLevel.MUSTER_ATOMIC_EQUAL), (!=, LowLevel.MUSTER_ATOMIC_NOT_EQUAL), (<, LowLevel.MUSTER_ATOMIC_LESS),
    (<=, LowLevel.MUSTER_ATOMIC_LESS_EQUAL), (>, LowLevel.MUSTER_ATOMIC_GREATER), (>=, LowLevel.MUSTER_ATOMIC_GREATER_EQUAL))

function condition_of((w, comparison, value)::Tuple{AtomicWord{T},Any,Any}) where {T}
    for (f, number) in COMPARISONS
        f === comparison || continue
        return LowLevel.muster_atomic_condition(w.cell, bits_of(T, value), sizeof(T), number, 0, 0)
    end
    throw(ArgumentError("$comparison is not one of ==, !=, <, <=, >, >="))
end

"""
    Muster.wait_until(conditions...; needed = length(conditions), timeout = Inf) -> Vector{Bool}

Waits until at least `needed` of the conditions `(word, comparison, value)` are true in one pass, and returns which were. Values
are compared as unsigned numbers. Other tasks go on meanwhile. The writer of a word calls `notify(word)`.
"""
function wait_until(conditions::Tuple{AtomicWord,Any,Any}...; needed::Integer = length(conditions), timeout::Real = Inf)
    raw = [condition_of(c) for c in conditions]
    GC.@preserve conditions begin
        status = LowLevel.muster_atomic_wait(raw, length(raw), needed, 0)
        if status == LowLevel.MUSTER_TIMEOUT && timeout > 0
            status = @threadcall(LowLevel.at_muster_atomic_wait[], Int32,
                (Ptr{LowLevel.muster_atomic_condition}, UInt32, UInt32, Int64), raw, length(raw), needed, deadline_ns(timeout))
        end
    end
    check(status, "wait for $(length(raw)) words")
    return Bool[c.is_true != 0 for c in raw]
end

"""
    Muster.AbaCell(array, i)

Elements `i` and `i + 1` of an array of `UInt64`, aligned to 16 bytes, as a value and a count of writes. `cell[]` is both, and
`cell[] = x` writes a value; every write adds one to the count.
"""
struct AbaCell{A<:DenseArray{UInt64}}
    array::A
    cell::Ptr{LowLevel.muster_aba}
    function AbaCell(array::A, i::Integer) where {A<:DenseArray{UInt64}}
        checkbounds(array, i)
        checkbounds(array, i + 1)
        cell = Ptr{LowLevel.muster_aba}(pointer(array, i))
        UInt(cell) % 16 == 0 || throw(ArgumentError("element $i of the array is not aligned to 16 bytes"))
        return new{A}(array, cell)
    end
end

pair_of(x::LowLevel.muster_aba) = (value = x.value, count = x.count)

function Base.getindex(c::AbaCell)
    out = zeroed(LowLevel.muster_aba)
    GC.@preserve c check(LowLevel.muster_aba_read(c.cell, out), "read a cell")
    return pair_of(out[])
end
Base.setindex!(c::AbaCell, x::Integer) =
    (GC.@preserve c check(LowLevel.muster_aba_write(c.cell, x), "write a cell"); x)
Base.show(io::IO, c::AbaCell) = print(io, "Muster.AbaCell", values(c[]))

"""
    Muster.exchange!(cell, value) -> (value, count)

What the cell was.
"""
function exchange!(c::AbaCell, x::Integer)
    out = zeroed(LowLevel.muster_aba)
    GC.@preserve c check(LowLevel.muster_aba_exchange(c.cell, x, out), "exchange a cell")
    return pair_of(out[])
end

"""
    Muster.compare_exchange!(cell, expected::NamedTuple, desired) -> (found, done)
    Muster.compare_exchange!(cell, expected::Integer, desired) -> (found, done)

Writes `desired` if nothing was written since `expected = cell[]` was read; with a number, if the value is that, with any count.
"""
function compare_exchange!(c::AbaCell, expected::NamedTuple{(:value, :count)}, desired::Integer)
    seen = Ref(LowLevel.muster_aba(expected.value, expected.count))
    status = GC.@preserve c LowLevel.muster_aba_compare_exchange(c.cell, seen, desired)
    status == LowLevel.MUSTER_AGAIN || check(status, "exchange a cell")
    return (found = pair_of(seen[]), done = status == LowLevel.MUSTER_OK)
end
function compare_exchange!(c::AbaCell, expected::Integer, desired::Integer)
    seen = Ref(UInt64(expected))
    status = GC.@preserve c LowLevel.muster_aba_compare_exchange_value(c.cell, seen, desired)
    status == LowLevel.MUSTER_AGAIN || check(status, "exchange a cell")
    return (found = seen[], done = status == LowLevel.MUSTER_OK)
end
