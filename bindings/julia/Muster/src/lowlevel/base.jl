# SPDX-License-Identifier: MIT
# Written by bindings/julia/generate from include/muster/base.h; do not edit.

# Result of a call: 0, a positive "not now", or a negative failure; see ::muster_status_value.
const muster_status = Int32

# muster_status_value: The values of a ::muster_status.
const MUSTER_OK = Int32(0)
const MUSTER_AGAIN = Int32(1)
const MUSTER_TIMEOUT = Int32(2)
const MUSTER_E_ARG = Int32(-1)
const MUSTER_E_ABI = Int32(-2)
const MUSTER_E_NOMEM = Int32(-3)
const MUSTER_E_LIMIT = Int32(-4)
const MUSTER_E_CLOSED = Int32(-5)
const MUSTER_E_CANCELED = Int32(-6)
const MUSTER_E_FORKED = Int32(-7)
const MUSTER_E_WOULD_DEADLOCK = Int32(-8)
const MUSTER_E_UNSUPPORTED = Int32(-9)
const MUSTER_E_EXISTS = Int32(-10)
const MUSTER_E_NOT_FOUND = Int32(-11)
const MUSTER_E_STALE = Int32(-12)
const MUSTER_E_BUSY = Int32(-13)
const MUSTER_E_PERMISSION = Int32(-14)
const MUSTER_E_AUTH = Int32(-15)
const MUSTER_E_PROTOCOL = Int32(-16)
const MUSTER_E_ADDRESS = Int32(-17)
const MUSTER_E_UNREACHABLE = Int32(-18)
const MUSTER_E_PEER = Int32(-19)
const MUSTER_E_ABORTED = Int32(-20)
const MUSTER_E_END = Int32(-21)
const MUSTER_E_SYSTEM = Int32(-22)
const MUSTER_E_PLUGIN = Int32(-23)
const MUSTER_E_INTERNAL = Int32(-24)
const MUSTER_E_CHANGED = Int32(-25)
const MUSTER_E_STORE_LOST = Int32(-26)
const MUSTER_E_QUORUM = Int32(-27)
const MUSTER_E_MISMATCH = Int32(-28)

# The reason of a failure; caller-owned, 256 bytes, no pointers.
struct muster_error # 256 bytes
    status::muster_status
    os_errno::Int32
    provider_code::Int64
    rank::UInt32
    message_bytes::UInt32
    message::NTuple{232, UInt8}
end

# Returns the name of a status, for logs: "MUSTER_E_PEER".
const at_muster_status_name = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_status_name => at_muster_status_name)
@inline muster_status_name(status) =
    ccall(at_muster_status_name[], Ptr{UInt8}, (muster_status,), status)

# Describes a status in a few words: "the peer died or the way to it broke".
const at_muster_status_text = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_status_text => at_muster_status_text)
@inline muster_status_text(status) =
    ccall(at_muster_status_text[], Ptr{UInt8}, (muster_status,), status)

# Returns the version of the loaded library.
const at_muster_version = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_version => at_muster_version)
@inline muster_version(out_major, out_minor, out_patch) =
    ccall(at_muster_version[], Ptr{UInt8}, (Ptr{UInt32}, Ptr{UInt32}, Ptr{UInt32}), out_major, out_minor, out_patch)

# Initialises a growing struct: zeroes it and writes its size into the first field.
const at_muster_config_init = Ref{Ptr{Cvoid}}(C_NULL)
push!(functions, :muster_config_init => at_muster_config_init)
@inline muster_config_init(config, struct_size) =
    ccall(at_muster_config_init[], muster_status, (Ptr{Cvoid}, UInt32), config, struct_size)
