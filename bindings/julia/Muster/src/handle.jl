# SPDX-License-Identifier: MIT
# A handle of the library that several tasks use, on several threads perhaps, and that one of them closes.
#
# `uses` counts the calls under way, and one more until the object is closed. The call that brings it to zero releases the
# handle, so that close gives descriptors and memory back at once, not at the next garbage collection, and no call is ever
# made with a handle that is gone.

const Uses = Threads.Atomic{Int}

# Whether the handle may be used; leave() must follow.
@inline function enter(x)::Bool
    n = x.uses[]
    while n > 0
        old = Threads.atomic_cas!(x.uses, n, n + 1)
        old == n && return true
        n = old
    end
    return false
end

@inline function leave(x)
    Threads.atomic_sub!(x.uses, 1) == 1 && release_handle(x)
    return nothing
end

# Finalizers only release: they never wait, never switch tasks, and take no lock that another task may hold.
function finalize_uses(x)
    x.open || return nothing
    x.open = false
    leave(x)
    return nothing
end

# f(handle), where the handle stays valid until f returns; `closed` if the object has been closed here.
function with_handle(f, x, closed = LowLevel.MUSTER_E_CLOSED)
    enter(x) || return closed
    try
        return f(x.handle)
    finally
        leave(x)
    end
end
