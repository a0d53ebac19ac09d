# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/agent.h; do not edit.

# muster_agent_flag: Flags of muster_agent_config::flags.
const MUSTER_AGENT_NO_GUARD = UInt32(1)
const MUSTER_AGENT_VIRTUAL_LOCAL_RANK = UInt32(2)

# muster_agent_output: Outputs of a worker; bits of muster_agent_config::log_outputs and muster_agent_config::console_outputs.
const MUSTER_AGENT_STDOUT = UInt32(1)
const MUSTER_AGENT_STDERR = UInt32(2)

# muster_agent_phase: The phase of an agent; the value of muster_agent_state::phase.
const MUSTER_AGENT_JOINING = UInt32(1)
const MUSTER_AGENT_STARTING = UInt32(2)
const MUSTER_AGENT_RUNNING = UInt32(3)
const MUSTER_AGENT_STOPPING = UInt32(4)
const MUSTER_AGENT_DONE = UInt32(5)
const MUSTER_AGENT_ENDED = UInt32(6)

# muster_agent_worker_state: The state of a worker; the value of muster_agent_worker::state.
const MUSTER_WORKER_NONE = UInt32(0)
const MUSTER_WORKER_RUNNING = UInt32(1)
const MUSTER_WORKER_SUCCEEDED = UInt32(2)
const MUSTER_WORKER_FAILED = UInt32(3)
const MUSTER_WORKER_STOPPED = UInt32(4)

# muster_agent_event: A step of an agent; the value of muster_completion::events of ::MUSTER_EVENT_AGENT.
const MUSTER_AGENT_STARTED = UInt32(1)
const MUSTER_AGENT_WORKER_ENDED = UInt32(2)
const MUSTER_AGENT_RESTARTING = UInt32(3)
const MUSTER_AGENT_RENDEZVOUS_EVENT = UInt32(4)

struct muster_agent end

# Where the outputs of one worker go; 16 bytes.
struct muster_agent_outputs # 16 bytes
    local_rank::UInt32
    log_outputs::UInt32
    console_outputs::UInt32
    discarded_outputs::UInt32
end

# What to run; all zero means the defaults named here.
struct muster_agent_config # 168 bytes
    struct_size::UInt32
    flags::UInt32
    argv::Ptr{Ptr{UInt8}}
    envp::Ptr{Ptr{UInt8}}
    directory::Ptr{UInt8}
    worker_count::UInt32
    max_restarts::UInt32
    grace_ns::Int64
    run_id::Ptr{UInt8}
    role::Ptr{UInt8}
    log_dir::Ptr{UInt8}
    log_outputs::UInt32
    console_outputs::UInt32
    out_fd_plus_one::Int32
    err_fd_plus_one::Int32
    local_address::Ptr{UInt8}
    rendezvous::Ptr{muster_rendezvous_config}
    master_address::Ptr{UInt8}
    master_port::UInt32
    reserved0::UInt32
    join_timeout_ns::Int64
    exit_timeout_ns::Int64
    outputs::Ptr{muster_agent_outputs}
    output_count::UInt64
    reserved::NTuple{2, UInt64}
end
muster_agent_config(; flags = 0, argv = C_NULL, envp = C_NULL, directory = C_NULL, worker_count = 0, max_restarts = 0, grace_ns = 0, run_id = C_NULL, role = C_NULL, log_dir = C_NULL, log_outputs = 0, console_outputs = 0, out_fd_plus_one = 0, err_fd_plus_one = 0, local_address = C_NULL, rendezvous = C_NULL, master_address = C_NULL, master_port = 0, reserved0 = 0, join_timeout_ns = 0, exit_timeout_ns = 0, outputs = C_NULL, output_count = 0, reserved = ntuple(_ -> zero(UInt64), 2)) =
    muster_agent_config(sizeof(muster_agent_config), flags, argv, envp, directory, worker_count, max_restarts, grace_ns, run_id, role, log_dir, log_outputs, console_outputs, out_fd_plus_one, err_fd_plus_one, local_address, rendezvous, master_address, master_port, reserved0, join_timeout_ns, exit_timeout_ns, outputs, output_count, reserved)

# The state of an agent; filled by muster_agent_get_state().
struct muster_agent_state # 328 bytes
    phase::UInt32
    worker_count::UInt32
    running::UInt32
    restarts::UInt32
    group_rank::UInt32
    group_world_size::UInt32
    first_rank::UInt32
    world_size::UInt32
    round::UInt64
    master_address::NTuple{256, UInt8}
    master_port::UInt32
    reserved::NTuple{7, UInt32}
end

# One worker; filled by muster_agent_get_worker() and muster_agent_first_failure().
struct muster_agent_worker # 832 bytes
    local_rank::UInt32
    rank::UInt32
    state::UInt32
    restarts::UInt32
    pid::Int32
    exit::muster_process_exit
    reserved0::UInt32
    started_unix_ns::Int64
    ended_unix_ns::Int64
    failed_unix_ns::Int64
    round::UInt64
    message::NTuple{512, UInt8}
    directory::NTuple{256, UInt8}
end

# Starts an agent.
const at_muster_agent_start = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_start => at_muster_agent_start)
@inline muster_agent_start(context, config, queue, tag, out_agent, error) =
    ccall(at_muster_agent_start[], muster_status, (Ptr{muster_context}, Ptr{muster_agent_config}, Ptr{muster_queue}, UInt64, Ptr{Ptr{muster_agent}}, Ptr{muster_error}), context, config, queue, tag, out_agent, error)

# Waits for the end of an agent.
const at_muster_agent_wait = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_wait => at_muster_agent_wait)
@inline muster_agent_wait(agent, timeout_ns, error) =
    ccall(at_muster_agent_wait[], muster_status, (Ptr{muster_agent}, Int64, Ptr{muster_error}), agent, timeout_ns, error)

# Sends a signal to the process groups of all running workers of this node.
const at_muster_agent_signal = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_signal => at_muster_agent_signal)
@inline muster_agent_signal(agent, signal) =
    ccall(at_muster_agent_signal[], muster_status, (Ptr{muster_agent}, Int32), agent, signal)

# Stops the workers of this node and ends the agent.
const at_muster_agent_stop = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_stop => at_muster_agent_stop)
@inline muster_agent_stop(agent, signal, grace_ns) =
    ccall(at_muster_agent_stop[], muster_status, (Ptr{muster_agent}, Int32, Int64), agent, signal, grace_ns)

# Reads the state of an agent.
const at_muster_agent_get_state = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_get_state => at_muster_agent_get_state)
@inline muster_agent_get_state(agent, out_state) =
    ccall(at_muster_agent_get_state[], muster_status, (Ptr{muster_agent}, Ptr{muster_agent_state}), agent, out_state)

# Returns the rendezvous of an agent, to read its state and its list of members.
const at_muster_agent_rendezvous = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_rendezvous => at_muster_agent_rendezvous)
@inline muster_agent_rendezvous(agent, out_rendezvous) =
    ccall(at_muster_agent_rendezvous[], muster_status, (Ptr{muster_agent}, Ptr{Ptr{muster_rendezvous}}), agent, out_rendezvous)

# Reads one worker of this node, as of its last start.
const at_muster_agent_get_worker = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_get_worker => at_muster_agent_get_worker)
@inline muster_agent_get_worker(agent, local_rank, out_worker) =
    ccall(at_muster_agent_get_worker[], muster_status, (Ptr{muster_agent}, UInt32, Ptr{muster_agent_worker}), agent, local_rank, out_worker)

# Reads the worker of this node that failed first, in the last group in which one failed.
const at_muster_agent_first_failure = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_first_failure => at_muster_agent_first_failure)
@inline muster_agent_first_failure(agent, out_worker) =
    ccall(at_muster_agent_first_failure[], muster_status, (Ptr{muster_agent}, Ptr{muster_agent_worker}), agent, out_worker)

# Copies the text in the error file of muster_agent_first_failure(): the place in the program where the worker failed (`py_callstack`) if the file has it, otherwise the message.
const at_muster_agent_failure_text = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_failure_text => at_muster_agent_failure_text)
@inline muster_agent_failure_text(agent, out_text, capacity, out_bytes) =
    ccall(at_muster_agent_failure_text[], muster_status, (Ptr{muster_agent}, Ptr{UInt8}, Csize_t, Ptr{Csize_t}), agent, out_text, capacity, out_bytes)

# Waits until the lines of console_outputs were written: all lines of workers that had ended before the call.
const at_muster_agent_flush = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_flush => at_muster_agent_flush)
@inline muster_agent_flush(agent, timeout_ns) =
    ccall(at_muster_agent_flush[], muster_status, (Ptr{muster_agent}, Int64), agent, timeout_ns)

# Begins to flush, as muster_agent_flush() does; ::MUSTER_DONE_CALL has its status.
const at_muster_agent_flush_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_flush_begin => at_muster_agent_flush_begin)
@inline muster_agent_flush_begin(agent, timeout_ns, queue, tag, error) =
    ccall(at_muster_agent_flush_begin[], muster_status, (Ptr{muster_agent}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), agent, timeout_ns, queue, tag, error)

# Releases the handle; the workers are stopped as by muster_agent_stop(), without a wait.
const at_muster_agent_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_agent_release => at_muster_agent_release)
@inline muster_agent_release(agent) =
    ccall(at_muster_agent_release[], Cvoid, (Ptr{muster_agent},), agent)
