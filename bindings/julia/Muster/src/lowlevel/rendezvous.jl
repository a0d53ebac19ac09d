# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/rendezvous.h; do not edit.

# muster_rendezvous_flag: Flags of muster_rendezvous_config::flags.
const MUSTER_RENDEZVOUS_HAS_RANK = UInt32(1)
const MUSTER_RENDEZVOUS_REOPEN = UInt32(2)
const MUSTER_RENDEZVOUS_DISCARD_STATE = UInt32(4)

# muster_rendezvous_operation: The operation that muster_rendezvous_begin() begins.
const MUSTER_RENDEZVOUS_JOIN = UInt32(1)
const MUSTER_RENDEZVOUS_LEAVE = UInt32(2)
const MUSTER_RENDEZVOUS_EXIT = UInt32(3)
const MUSTER_RENDEZVOUS_ABORT = UInt32(4)
const MUSTER_RENDEZVOUS_CLOSE = UInt32(5)

# muster_rendezvous_event_kind: The kind of an event; the value of muster_rendezvous_event::kind.
const MUSTER_RENDEZVOUS_JOINED = Int32(1)
const MUSTER_RENDEZVOUS_LAST_CALL = Int32(2)
const MUSTER_RENDEZVOUS_COMPLETE = Int32(3)
const MUSTER_RENDEZVOUS_LEFT = Int32(4)
const MUSTER_RENDEZVOUS_DEAD = Int32(5)
const MUSTER_RENDEZVOUS_WAITING = Int32(6)
const MUSTER_RENDEZVOUS_ABORTED = Int32(7)
const MUSTER_RENDEZVOUS_EXPELLED = Int32(8)
const MUSTER_RENDEZVOUS_CLOSED = Int32(9)
const MUSTER_RENDEZVOUS_LOST = Int32(10)

# muster_rendezvous_phase: The phase of a member; the value of muster_rendezvous_state::phase.
const MUSTER_RENDEZVOUS_PHASE_IDLE = UInt32(0)
const MUSTER_RENDEZVOUS_PHASE_JOINING = UInt32(1)
const MUSTER_RENDEZVOUS_PHASE_JOINED = UInt32(2)

# muster_rendezvous_state_flag: Flags of muster_rendezvous_state::flags.
const MUSTER_RENDEZVOUS_IS_CLOSED = UInt32(1)
const MUSTER_RENDEZVOUS_IS_LAST_CALL = UInt32(2)
const MUSTER_RENDEZVOUS_IS_LEADER = UInt32(4)

# muster_round_flag: Flags of muster_round_info::flags.
const MUSTER_ROUND_IS_OVER = UInt32(1)

struct muster_rendezvous end
struct muster_round end

# How to open a rendezvous; zero means the default named here.
struct muster_rendezvous_config # 160 bytes
    struct_size::UInt32
    flags::UInt32
    run_id::Ptr{Cvoid}
    run_id_bytes::UInt64
    url::Ptr{Cvoid}
    url_bytes::UInt64
    store::Ptr{muster_store}
    address::Ptr{Cvoid}
    address_bytes::UInt64
    order_key::Ptr{Cvoid}
    order_key_bytes::UInt64
    min::UInt32
    max::UInt32
    rank::UInt32
    keep_alive_attempts::UInt32
    keep_alive_ns::Int64
    last_call_ns::Int64
    queue::Ptr{muster_queue}
    tag::UInt64
    state_dir::Ptr{Cvoid}
    state_dir_bytes::UInt64
    majority_timeout_ns::Int64
    reserved::NTuple{1, UInt64}
end
muster_rendezvous_config(; flags = 0, run_id = C_NULL, run_id_bytes = 0, url = C_NULL, url_bytes = 0, store = C_NULL, address = C_NULL, address_bytes = 0, order_key = C_NULL, order_key_bytes = 0, min = 0, max = 0, rank = 0, keep_alive_attempts = 0, keep_alive_ns = 0, last_call_ns = 0, queue = C_NULL, tag = 0, state_dir = C_NULL, state_dir_bytes = 0, majority_timeout_ns = 0, reserved = ntuple(_ -> zero(UInt64), 1)) =
    muster_rendezvous_config(sizeof(muster_rendezvous_config), flags, run_id, run_id_bytes, url, url_bytes, store, address, address_bytes, order_key, order_key_bytes, min, max, rank, keep_alive_attempts, keep_alive_ns, last_call_ns, queue, tag, state_dir, state_dir_bytes, majority_timeout_ns, reserved)

# One event; 256 bytes.
struct muster_rendezvous_event # 256 bytes
    kind::UInt32
    rank::UInt32
    round::UInt64
    count::UInt32
    text_bytes::UInt32
    text::NTuple{232, UInt8}
end

# What a member knows; 88 bytes.
struct muster_rendezvous_state # 88 bytes
    phase::UInt32
    flags::UInt32
    round::UInt64
    joined::UInt32
    missing::UInt32
    waiting::UInt32
    spares::UInt32
    present::UInt32
    exiting::UInt32
    last_call_remaining_ns::Int64
    reserved::NTuple{5, UInt64}
end

# Properties of a round; 64 bytes.
struct muster_round_info # 64 bytes
    number::UInt64
    rank::UInt32
    world::UInt32
    flags::UInt32
    reserved::NTuple{3, UInt32}
    digest::NTuple{32, UInt8}
end

# One member of a round; its pointers are valid until the round is released.
struct muster_round_member_info # 24 bytes
    address::Ptr{Cvoid}
    address_bytes::UInt64
    reserved::UInt64
end

# Opens a rendezvous.
const at_muster_rendezvous_open = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_open => at_muster_rendezvous_open)
@inline muster_rendezvous_open(context, config, timeout_ns, out_rendezvous, error) =
    ccall(at_muster_rendezvous_open[], muster_status, (Ptr{muster_context}, Ptr{muster_rendezvous_config}, Int64, Ptr{Ptr{muster_rendezvous}}, Ptr{muster_error}), context, config, timeout_ns, out_rendezvous, error)

# Begins to open a rendezvous, as muster_rendezvous_open() does.
const at_muster_rendezvous_open_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_open_begin => at_muster_rendezvous_open_begin)
@inline muster_rendezvous_open_begin(context, config, timeout_ns, queue, tag, error) =
    ccall(at_muster_rendezvous_open_begin[], muster_status, (Ptr{muster_context}, Ptr{muster_rendezvous_config}, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), context, config, timeout_ns, queue, tag, error)

# Waits for a round and joins it.
const at_muster_rendezvous_join = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_join => at_muster_rendezvous_join)
@inline muster_rendezvous_join(rendezvous, timeout_ns, out_round, error) =
    ccall(at_muster_rendezvous_join[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{Ptr{muster_round}}, Ptr{muster_error}), rendezvous, timeout_ns, out_round, error)

# Leaves the round, or stops waiting for one.
const at_muster_rendezvous_leave = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_leave => at_muster_rendezvous_leave)
@inline muster_rendezvous_leave(rendezvous, timeout_ns, error) =
    ccall(at_muster_rendezvous_leave[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{muster_error}), rendezvous, timeout_ns, error)

# Waits until all members that are still in the round have called this function: the exit barrier, which keeps a member from ending while others still need it.
const at_muster_rendezvous_exit = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_exit => at_muster_rendezvous_exit)
@inline muster_rendezvous_exit(rendezvous, timeout_ns, error) =
    ccall(at_muster_rendezvous_exit[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{muster_error}), rendezvous, timeout_ns, error)

# Aborts the round of the member: the round is over at once for all its members, including those that do not respond.
const at_muster_rendezvous_abort = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_abort => at_muster_rendezvous_abort)
@inline muster_rendezvous_abort(rendezvous, reason, reason_bytes, timeout_ns, error) =
    ccall(at_muster_rendezvous_abort[], muster_status, (Ptr{muster_rendezvous}, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_error}), rendezvous, reason, reason_bytes, timeout_ns, error)

# Closes the run: no further round begins, and members that wait for one are notified.
const at_muster_rendezvous_close = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_close => at_muster_rendezvous_close)
@inline muster_rendezvous_close(rendezvous, reason, reason_bytes, timeout_ns, error) =
    ccall(at_muster_rendezvous_close[], muster_status, (Ptr{muster_rendezvous}, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_error}), rendezvous, reason, reason_bytes, timeout_ns, error)

# Begins one of the operations above.
const at_muster_rendezvous_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_begin => at_muster_rendezvous_begin)
@inline muster_rendezvous_begin(rendezvous, operation, reason, reason_bytes, timeout_ns, queue, tag, error) =
    ccall(at_muster_rendezvous_begin[], muster_status, (Ptr{muster_rendezvous}, UInt32, Ptr{Cvoid}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), rendezvous, operation, reason, reason_bytes, timeout_ns, queue, tag, error)

# Cancels every operation of this member that is in progress, whether it was begun or a thread waits for it, and the waits in muster_rendezvous_next_event().
const at_muster_rendezvous_cancel = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_cancel => at_muster_rendezvous_cancel)
@inline muster_rendezvous_cancel(rendezvous) =
    ccall(at_muster_rendezvous_cancel[], muster_status, (Ptr{muster_rendezvous},), rendezvous)

# Takes the oldest event.
const at_muster_rendezvous_next_event = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_next_event => at_muster_rendezvous_next_event)
@inline muster_rendezvous_next_event(rendezvous, timeout_ns, out_event) =
    ccall(at_muster_rendezvous_next_event[], muster_status, (Ptr{muster_rendezvous}, Int64, Ptr{muster_rendezvous_event}), rendezvous, timeout_ns, out_event)

# Reads what the member currently knows, without a request to the store.
const at_muster_rendezvous_get_state = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_get_state => at_muster_rendezvous_get_state)
@inline muster_rendezvous_get_state(rendezvous, out_state) =
    ccall(at_muster_rendezvous_get_state[], muster_status, (Ptr{muster_rendezvous}, Ptr{muster_rendezvous_state}), rendezvous, out_state)

# Lists the members that wait for the next round: their addresses, each made printable and followed by a line feed, as many as fit into the destination and at most 1000, in no particular order.
const at_muster_rendezvous_list = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_list => at_muster_rendezvous_list)
@inline muster_rendezvous_list(rendezvous, out_text, capacity, timeout_ns, out_bytes, error) =
    ccall(at_muster_rendezvous_list[], muster_status, (Ptr{muster_rendezvous}, Ptr{UInt8}, Csize_t, Int64, Ptr{Csize_t}, Ptr{muster_error}), rendezvous, out_text, capacity, timeout_ns, out_bytes, error)

# Begins to list the members that wait for the next round, as muster_rendezvous_list() does; ::MUSTER_DONE_CALL has the length of the text in its bytes.
const at_muster_rendezvous_list_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_list_begin => at_muster_rendezvous_list_begin)
@inline muster_rendezvous_list_begin(rendezvous, out_text, capacity, timeout_ns, queue, tag, error) =
    ccall(at_muster_rendezvous_list_begin[], muster_status, (Ptr{muster_rendezvous}, Ptr{UInt8}, Csize_t, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), rendezvous, out_text, capacity, timeout_ns, queue, tag, error)

# Releases the handle.
const at_muster_rendezvous_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_rendezvous_release => at_muster_rendezvous_release)
@inline muster_rendezvous_release(rendezvous) =
    ccall(at_muster_rendezvous_release[], Cvoid, (Ptr{muster_rendezvous},), rendezvous)

# Reads the properties of a round.
const at_muster_round_get_info = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_get_info => at_muster_round_get_info)
@inline muster_round_get_info(round, out_info) =
    ccall(at_muster_round_get_info[], muster_status, (Ptr{muster_round}, Ptr{muster_round_info}), round, out_info)

# Makes the store view of a round: it has a prefix of its own, and every request, including those that wait, ends with ::MUSTER_E_STALE once the round is over for this member; the error names both rounds.
const at_muster_round_store = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_store => at_muster_round_store)
@inline muster_round_store(round, out_store, error) =
    ccall(at_muster_round_store[], muster_status, (Ptr{muster_round}, Ptr{Ptr{muster_store}}, Ptr{muster_error}), round, out_store, error)

# Looks up a member of a round.
const at_muster_round_member = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_member => at_muster_round_member)
@inline muster_round_member(round, rank, timeout_ns, out_member, error) =
    ccall(at_muster_round_member[], muster_status, (Ptr{muster_round}, UInt32, Int64, Ptr{muster_round_member_info}, Ptr{muster_error}), round, rank, timeout_ns, out_member, error)

# Begins to look up a member of a round; ::MUSTER_DONE_CALL has the status of muster_round_member().
const at_muster_round_member_begin = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_member_begin => at_muster_round_member_begin)
@inline muster_round_member_begin(round, rank, timeout_ns, queue, tag, error) =
    ccall(at_muster_round_member_begin[], muster_status, (Ptr{muster_round}, UInt32, Int64, Ptr{muster_queue}, UInt64, Ptr{muster_error}), round, rank, timeout_ns, queue, tag, error)

# Releases the handle.
const at_muster_round_release = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_round_release => at_muster_round_release)
@inline muster_round_release(round) =
    ccall(at_muster_round_release[], Cvoid, (Ptr{muster_round},), round)
