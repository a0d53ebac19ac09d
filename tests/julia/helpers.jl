# SPDX-License-Identifier: MIT
# What the tests of clusters have in common.
using Distributed

within(f, seconds) = timedwait(f, Float64(seconds); pollint = 0.01) === :ok
alive(pid) = isdir("/proc/$pid") && !occursin(") Z", read("/proc/$pid/stat", String))
# Stops the process; no thread of it runs any more when this returns. They run for a while after the signal.
function stop_process(pid)
    run(`kill -STOP $pid`)
    stopped(task) = occursin(") T ", read("/proc/$pid/task/$task/stat", String))
    within(() -> all(stopped, readdir("/proc/$pid/task")), 60) || error("process $pid did not stop")
end
process_of(p) = Distributed.worker_from_id(p).config.ospid
relayed(p, q) = remotecall_fetch(q -> remotecall_fetch(myid, q), p, q)

# Runs f on the worker, asked by this process or by another worker, and returns once it runs there: f's process answers
# nothing until it is over, unless f waits.
function occupy(f, p; by = myid())
    sign = tempname()
    there(f, p, sign) = remotecall_fetch((f, sign) -> (touch(sign); f()), p, f, sign)
    task = @async by == myid() ? there(f, p, sign) : remotecall_fetch(there, by, f, p, sign)
    within(() -> isfile(sign), 60) || error("worker $p did not begin")
    rm(sign)
    return task
end

# The innermost of what addprocs or a task threw.
function cause(e)
    while e isa CompositeException || e isa TaskFailedException || e isa CapturedException || e isa RemoteException
        e = e isa CompositeException ? e.exceptions[1] :
            e isa TaskFailedException ? (isdefined(e, :task) ? e.task.exception : e) :
            e isa RemoteException ? e.captured : e.ex
    end
    return e
end
outcome(task) = try fetch(task) catch e; cause(e) end
