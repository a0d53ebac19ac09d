# SPDX-License-Identifier: MIT
# A request of several operations waits before any of them is done, so it would wait for ever for what it does itself: a
# key that an earlier operation of the list sets, a queue that an earlier one pushes to. Operations on these do not wait.

const unwaiting = Dict(op_kinds[waits] => op_kinds[looks] for (waits, looks) in (:get => :read, :wait => :check, :pop => :try_pop))
const setting_kinds = [op_kinds[kind] for kind in (:set, :add, :append)]

with_kind(o::StoreOp, kind) =
    StoreOp(kind, o.condition, o.key, o.value, o.expected, o.version, o.number, o.lease, o.count, o.rank)

function without_own_waits(ops::Vector{StoreOp})::Vector{StoreOp}
    any(o -> haskey(unwaiting, o.kind), ops) && length(ops) > 1 || return ops
    present = Set{String}()         # keys that are there after the operations so far
    queued = Dict{String, Int}()    # values that are in a queue at least
    return map(ops) do o
        kind = o.kind
        if kind in setting_kinds
            push!(present, o.key)
        elseif kind == op_kinds[:delete]
            delete!(present, o.key)
        elseif kind == op_kinds[:push]
            queued[o.key] = get(queued, o.key, 0) + 1
        elseif kind == op_kinds[:pop] || kind == op_kinds[:try_pop]
            sure = get(queued, o.key, 0)
            queued[o.key] = max(0, sure - 1)
            sure > 0 && return with_kind(o, op_kinds[:try_pop])
        elseif haskey(unwaiting, kind) && o.key in present
            return with_kind(o, unwaiting[kind])
        end
        return o
    end
end
