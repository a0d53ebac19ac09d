# SPDX-License-Identifier: MIT

"""
    MusterError

A call into libmuster failed: its `status` (a `MUSTER_E_...` value), the `os_errno` of the failing system call or 0,
and a sentence that says what, where and with what value.
"""
struct MusterError <: Exception
    status::Int32
    os_errno::Int32
    message::String
end

status_name(status) = unsafe_string(LowLevel.muster_status_name(status))
status_text(status) = unsafe_string(LowLevel.muster_status_text(status))

MusterError(status::Int32, what::String) = MusterError(status, 0, string(what, ": ", status_text(status)))

Base.showerror(io::IO, e::MusterError) = print(io, "MusterError: ", e.message, " (", status_name(e.status), ")")

# A zeroed struct of the C surface. (Not through its constructor: a tuple of 232 bytes takes seconds to compile.)
function zeroed(::Type{T})::Base.RefValue{T} where {T}
    place = Ref{T}()
    GC.@preserve place ccall(:memset, Ptr{Cvoid}, (Ptr{Cvoid}, Cint, Csize_t), Base.pointer_from_objref(place), 0, sizeof(T))
    return place
end

const Detail = Base.RefValue{LowLevel.muster_error}

# A place for the detail of a cold call.
blank_error()::Detail = zeroed(LowLevel.muster_error)

const MESSAGE_OFFSET = fieldoffset(LowLevel.muster_error, Base.fieldindex(LowLevel.muster_error, :message))

function to_exception(status::Int32, detail::Detail, what::String)
    fits = detail[].status == status && detail[].message_bytes > 0
    fits || return MusterError(status, what)
    message = GC.@preserve detail unsafe_string(
        Ptr{UInt8}(Base.pointer_from_objref(detail)) + MESSAGE_OFFSET, min(Int(detail[].message_bytes), 231))
    return MusterError(status, detail[].os_errno, message)
end

# Throws unless the status is OK; `what` says what was tried, for a status that comes without a text.
check(status::Int32, what::String) = status == LowLevel.MUSTER_OK ? nothing : throw(MusterError(status, what))
check(status::Int32, detail::Detail, what::String) =
    status == LowLevel.MUSTER_OK ? nothing : throw(to_exception(status, detail, what))
