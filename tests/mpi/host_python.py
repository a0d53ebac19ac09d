# SPDX-License-Identifier: MIT
"""Python with nothing but ctypes, as one of two ranks: everything is loaded RTLD_LOCAL."""
import ctypes
import os

muster = ctypes.CDLL(os.environ["MUSTER_LIBRARY"], mode=os.RTLD_LOCAL | os.RTLD_NOW)
RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "-1")))
SECOND = 1_000_000_000


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("os_errno", ctypes.c_int32), ("provider_code", ctypes.c_int64),
                ("rank", ctypes.c_uint32), ("message_bytes", ctypes.c_uint32), ("message", ctypes.c_char * 232)]


class Config(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("secret", ctypes.c_char_p),
                ("secret_bytes", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 6)]


class Transport(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("hello", ctypes.c_void_p),
                ("hello_bytes", ctypes.c_uint64), ("window_bytes", ctypes.c_uint64), ("backlog", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("retry_ns", ctypes.c_int64),
                ("listen_timeout_ns", ctypes.c_int64)]


def check(status, error=None):
    if status != 0:
        raise SystemExit(f"rank {RANK}: status {status} {error.message.decode() if error else ''}")


error = Error()
context, stream, listener = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
size = ctypes.c_size_t()
config = Config(ctypes.sizeof(Config), 0, b"a secret of two ranks", 21)
check(muster.muster_context_create(ctypes.byref(config), ctypes.byref(context), ctypes.byref(error)), error)
for options in (b"-near", b"-through?upgrade=no"):  # two names: the first listener may still be there
    if RANK == 0:
        address = b"mpi:///python" + options
        check(muster.muster_transport_listen(context, address, ctypes.c_size_t(len(address)), None,
                                             ctypes.byref(listener), ctypes.byref(error)), error)
        check(muster.muster_listener_accept(listener, ctypes.c_int64(30 * SECOND), ctypes.byref(stream),
                                            ctypes.byref(error)), error)
    else:
        address = b"mpi://0/python" + options
        patient = Transport(ctypes.sizeof(Transport), retry_ns=30 * SECOND)  # it may not listen yet
        check(muster.muster_transport_dial(context, address, ctypes.c_size_t(len(address)), ctypes.byref(patient),
                                           ctypes.c_int64(30 * SECOND), ctypes.byref(stream), ctypes.byref(error)), error)
    mine, theirs = (bytes((i * 7 + r) & 255 for i in range(300_000)) for r in (RANK, 1 - RANK))
    buffer = ctypes.create_string_buffer(len(theirs))
    check(muster.muster_stream_write(stream, mine, ctypes.c_size_t(len(mine)), ctypes.c_int64(30 * SECOND),
                                     ctypes.byref(size)))
    check(muster.muster_stream_read_into(stream, buffer, ctypes.c_size_t(len(theirs)), 0, ctypes.c_int64(30 * SECOND),
                                         ctypes.byref(size)))
    if buffer.raw != theirs:
        raise SystemExit("other bytes than were sent")
    check(muster.muster_stream_close(stream, ctypes.c_int64(30 * SECOND)))
    muster.muster_stream_release(stream)
    if RANK == 0:
        muster.muster_listener_release(listener)
check(muster.muster_context_close(context, ctypes.c_int64(30 * SECOND)))
muster.muster_context_release(context)
