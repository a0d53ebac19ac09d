# SPDX-License-Identifier: MIT
# SharedArrays over workers of Muster.

"""
    Muster.enable_shared_arrays()

Makes `procs(pid)`, and with it `SharedArray{T}(dims)`, count workers of every manager on a host; call it on the master
(process 1). Distributed's own method takes the master's host to have none but workers of `addprocs(n)`. After this call two
processes are on the same host if their bind addresses are equal, or both are the master or workers of `addprocs(n)`.

    using Distributed, Muster, SharedArrays
    Muster.enable_shared_arrays()
    addprocs(MusterManager(4; transport = "shm"))
    @everywhere using SharedArrays
    a = SharedArray{Float64}(1000)                        # mapped by all workers of this host
    b = SharedArray{Float64}(1000; pids = workers())      # mapped by these processes, which have to be on one host

`pids = workers()` needs no `enable_shared_arrays()`. The call replaces a method of Distributed for the whole process and for
all managers; loading Muster alone replaces none.
"""
function enable_shared_arrays()
    shared_arrays_enabled[] && return nothing
    shared_arrays_enabled[] = true
    # Another method for the same signature: it is defined when asked for, not by loading the package.
    @eval Distributed.procs(pid::Integer) = $procs_on_host_of(pid)
    return nothing
end

const shared_arrays_enabled = Ref(false)

function procs_on_host_of(pid::Integer)
    myid() == 1 || return remotecall_fetch(procs, 1, pid)
    host = host_address(Distributed.worker_from_id(pid))
    return Int[w.id for w in copy(Distributed.PGRP.workers) if is_connected(w) && host_address(w) == host]
end

is_connected(::Distributed.LocalProcess) = true
is_connected(w::Distributed.Worker) = w.state == Distributed.W_CONNECTED

# The master's address may have changed since its workers were started: those of addprocs(n) count as its own.
host_address(w::Distributed.LocalProcess) = Distributed.LPROC.bind_addr
host_address(w::Distributed.Worker) =
    w.manager isa Distributed.LocalManager ? Distributed.LPROC.bind_addr : Distributed.get_bind_addr(w)
