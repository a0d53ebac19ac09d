# SPDX-License-Identifier: MIT
# Leases of a store, and a store that this process serves.

"""
    Muster.lease(store, seconds; connected = false, timeout = 60) -> Lease

Makes a lease: keys that are set with it are deleted when it ends. It ends after `seconds` without a renewal, which this
process sends until it ends or the lease is collected; by `close(lease)`; and, if it is `connected`, at once when this process
is killed.
"""
mutable struct Lease
    handle::Ptr{LowLevel.muster_lease}
    function Lease(handle)
        l = new(handle)
        finalizer(release, l)
        return l
    end
end

function lease(s::Store, seconds::Real; connected::Bool = false, timeout::Real = 60)
    flags = connected ? LowLevel.MUSTER_LEASE_CONNECTED : UInt32(0)
    operation = GC.@preserve s await_request(s, "make a lease") do request, e, tag, detail
        LowLevel.muster_store_lease_begin(s.handle, seconds_ns(seconds), flags, deadline_ns(timeout), e.queue, tag, request, detail)
    end
    operation.object == C_NULL && throw(to_exception(operation.status, operation.detail, "make a lease"))
    return Lease(convert(Ptr{LowLevel.muster_lease}, operation.object))
end

# The number of a closed one would be 0, which means a key that stays.
lease_number(l::Lease) = l.handle == C_NULL ? throw(MusterError(LowLevel.MUSTER_E_CLOSED, "set a key with a lease")) :
    LowLevel.muster_lease_id(l.handle)

function release(l::Lease)
    l.handle == C_NULL || LowLevel.muster_lease_release(l.handle)
    l.handle = C_NULL
    return nothing
end

"Ends a lease: its keys are deleted. The request is sent, and its reply is not awaited."
function Base.close(l::Lease)
    l.handle == C_NULL || LowLevel.muster_lease_end(l.handle, 0, C_NULL)
    return release(l)
end

## A store that this process serves

"""
    Muster.StoreServer(address = "tcp://127.0.0.1:0"; data_dir = "")

Serves a store to other processes, on a thread of the library. `Muster.address(server)` gives the URL that they open; they
prove the secret of this process's context, see [`Muster.configure!`](@ref) and `MUSTER_SECRET_FILE`. With a `data_dir` its
contents outlive the process. `close(server)` ends it.
"""
mutable struct StoreServer
    handle::Ptr{LowLevel.muster_store_server}
    function StoreServer(address::AbstractString = "tcp://127.0.0.1:0"; data_dir::AbstractString = "")
        text, folder = String(address), String(data_dir)
        handle, detail = Ref{Ptr{LowLevel.muster_store_server}}(C_NULL), blank_error()
        config = LowLevel.muster_store_server_config(data_dir = pointed(folder), data_dir_bytes = sizeof(folder))
        GC.@preserve folder check(LowLevel.muster_store_server_open(running().context, text, sizeof(text), Ref(config), handle,
            detail), detail, "serve a store at $text")
        s = new(handle[])
        finalizer(s -> LowLevel.muster_store_server_release(s.handle), s) # the last reference stops it
        return s
    end
end

address(s::StoreServer) =
    text_of((p, n, size) -> LowLevel.muster_store_server_address(s.handle, p, n, size), "name a store's server")

function stats(s::StoreServer)
    out = Ref{LowLevel.muster_store_server_stats}()
    check(LowLevel.muster_store_server_get_stats(s.handle, out), "read a store server's figures")
    return out[]
end

function Base.close(s::StoreServer)
    LowLevel.muster_store_server_close(s.handle, 0)
    return nothing
end
Base.show(io::IO, s::StoreServer) = print(io, "Muster.StoreServer(", address(s), ")")
