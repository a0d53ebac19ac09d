# SPDX-License-Identifier: MIT
"""A Python host with nothing but ctypes: outside.py <library> <version>"""
import ctypes
import sys

muster = ctypes.CDLL(sys.argv[1])
muster.muster_version.restype = ctypes.c_char_p
assert muster.muster_version(None, None, None) == sys.argv[2].encode()

context, first, second = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
error = ctypes.create_string_buffer(256)
assert muster.muster_context_create(None, ctypes.byref(context), error) == 0, error.raw
assert muster.muster_stream_pair(context, None, ctypes.byref(first), ctypes.byref(second), error) == 0, error.raw
moved, got, forever = ctypes.c_size_t(), ctypes.create_string_buffer(16), ctypes.c_int64(-1)
assert muster.muster_stream_write(first, b"hello", ctypes.c_size_t(5), forever, ctypes.byref(moved)) == 0
assert muster.muster_stream_read(second, got, ctypes.c_size_t(16), forever, ctypes.byref(moved)) == 0
assert got.raw[:moved.value] == b"hello"
for stream in (first, second):
    muster.muster_stream_release(stream)
assert muster.muster_context_close(context, forever) == 0
muster.muster_context_release(context)
print("ctypes moved", moved.value, "bytes")
