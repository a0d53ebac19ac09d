# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/process.h; do not edit.

# muster_process_exit_kind: How a process ended; the value of muster_process_exit::kind.
const MUSTER_PROCESS_EXITED = Int32(1)
const MUSTER_PROCESS_KILLED = Int32(2)
const MUSTER_PROCESS_UNKNOWN = Int32(3)

struct muster_process end

# Maps a descriptor of this process to a number in the child.
struct muster_process_fd # 8 bytes
    parent_fd::Int32
    child_fd::Int32
end

# What to start.
struct muster_process_config # 48 bytes
    struct_size::UInt32
    flags::UInt32
    argv::Ptr{Ptr{UInt8}}
    envp::Ptr{Ptr{UInt8}}
    directory::Ptr{UInt8}
    fds::Ptr{muster_process_fd}
    fd_count::UInt64
end
muster_process_config(; flags = 0, argv = C_NULL, envp = C_NULL, directory = C_NULL, fds = C_NULL, fd_count = 0) =
    muster_process_config(sizeof(muster_process_config), flags, argv, envp, directory, fds, fd_count)

# How a process ended.
struct muster_process_exit # 8 bytes
    kind::Int32
    value::Int32
end

# Starts a program.
const at_muster_process_spawn = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_spawn => at_muster_process_spawn)
@inline muster_process_spawn(context, config, out_process, error) =
    ccall(at_muster_process_spawn[], muster_status, (Ptr{muster_context}, Ptr{muster_process_config}, Ptr{Ptr{muster_process}}, Ptr{muster_error}), context, config, out_process, error)

# Returns the process id.
const at_muster_process_pid = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_pid => at_muster_process_pid)
@inline muster_process_pid(process) =
    ccall(at_muster_process_pid[], Int32, (Ptr{muster_process},), process)

# Waits for the end of a process; muster_process_watch() is the form that does not block.
const at_muster_process_wait = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_wait => at_muster_process_wait)
@inline muster_process_wait(process, timeout_ns, out_exit) =
    ccall(at_muster_process_wait[], muster_status, (Ptr{muster_process}, Int64, Ptr{muster_process_exit}), process, timeout_ns, out_exit)

# Watches a process: ::MUSTER_DONE_EXIT follows when it ends; one watch per process.
const at_muster_process_watch = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_watch => at_muster_process_watch)
@inline muster_process_watch(process, queue, tag) =
    ccall(at_muster_process_watch[], muster_status, (Ptr{muster_process}, Ptr{muster_queue}, UInt64), process, queue, tag)

# Sends a signal to the process and its whole group.
const at_muster_process_kill = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_kill => at_muster_process_kill)
@inline muster_process_kill(process, signal) =
    ccall(at_muster_process_kill[], muster_status, (Ptr{muster_process}, Int32), process, signal)

# Releases the handle; the child continues, and is still reaped when it ends.
const at_muster_process_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_release => at_muster_process_release)
@inline muster_process_release(process) =
    ccall(at_muster_process_release[], Cvoid, (Ptr{muster_process},), process)

# Ends this process when another one is gone (for instance the local master that started it): SIGTERM to itself from a library thread, then SIGKILL.
const at_muster_process_exit_with = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_process_exit_with => at_muster_process_exit_with)
@inline muster_process_exit_with(context, pid, grace_ns, error) =
    ccall(at_muster_process_exit_with[], muster_status, (Ptr{muster_context}, Int32, Int64, Ptr{muster_error}), context, pid, grace_ns, error)
