# SPDX-License-Identifier: MIT
"""Muster's store through ctypes, as what torch wants: a Store for process groups, a RendezvousBackend for elastic.

What torch's own stores do is torch's: `get` waits, `add` counts in decimal text, `compare_set` gives back what is there.
"""

import ctypes
import datetime
import os

import torch.distributed
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend

GET, READ, SET, ADD, DELETE, CHECK, WAIT, COUNT = 1, 2, 3, 4, 6, 7, 8, 9
IF_ABSENT, IF_VALUE, IF_VERSION = 1, 3, 4
OK, TIMEOUT, CHANGED = 0, 2, -25
PRESENT = 1


class Op(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("condition", ctypes.c_uint32),
                ("key", ctypes.c_char_p), ("key_bytes", ctypes.c_uint64),
                ("value", ctypes.c_char_p), ("value_bytes", ctypes.c_uint64),
                ("expected", ctypes.c_char_p), ("expected_bytes", ctypes.c_uint64),
                ("version", ctypes.c_uint64), ("number", ctypes.c_int64), ("lease", ctypes.c_uint64),
                ("count", ctypes.c_uint32), ("rank", ctypes.c_uint32)]


class Entry(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("version", ctypes.c_uint64),
                ("number", ctypes.c_int64), ("key", ctypes.c_void_p), ("key_bytes", ctypes.c_uint64),
                ("value", ctypes.c_void_p), ("value_bytes", ctypes.c_uint64)]

    def text(self):
        return ctypes.string_at(self.value, self.value_bytes) if self.value_bytes else b""


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("os_errno", ctypes.c_int32), ("provider_code", ctypes.c_int64),
                ("rank", ctypes.c_uint32), ("message_bytes", ctypes.c_uint32), ("message", ctypes.c_char * 232)]


library = ctypes.CDLL(os.environ["MUSTER_LIBRARY"])
library.muster_store_result_count.restype = ctypes.c_uint64


class MusterError(RuntimeError):
    def __init__(self, status, error):
        super().__init__(error.message.decode(errors="replace"))
        self.status = status


def check(status, error):
    if status != OK:
        raise MusterError(status, error)


def bytes_of(text):
    return text.encode() if isinstance(text, str) else bytes(text)


def op(kind, key, value=b"", expected=b"", **more):
    key, value, expected = bytes_of(key), bytes_of(value), bytes_of(expected)
    return Op(kind=kind, key=key, key_bytes=len(key), value=value or None, value_bytes=len(value),
              expected=expected or None, expected_bytes=len(expected), **more)


class Connection:
    """A store that was opened; any thread may ask."""

    def __init__(self, url):
        error = Error()
        self.context, self.store = ctypes.c_void_p(), ctypes.c_void_p()
        check(library.muster_context_create(None, ctypes.byref(self.context), ctypes.byref(error)), error)
        check(library.muster_store_open(self.context, url.encode(), ctypes.c_size_t(len(url)), None,
                                        ctypes.c_int64(30_000_000_000), ctypes.byref(self.store),
                                        ctypes.byref(error)), error)

    def do(self, *ops, seconds=300.0):
        """The entries, and whether it was done; no such thing happened where a condition did not hold."""
        error, result = Error(), ctypes.c_void_p()
        status = library.muster_store_do(self.store, (Op * len(ops))(*ops), ctypes.c_size_t(len(ops)),
                                         ctypes.c_int64(int(seconds * 1e9)), ctypes.byref(result), ctypes.byref(error))
        if status not in (OK, CHANGED):
            raise MusterError(status, error)
        entries = []
        for i in range(library.muster_store_result_count(result)):
            entry = Entry()
            library.muster_store_result_entry(result, ctypes.c_uint64(i), ctypes.byref(entry))
            entries.append((entry.flags, entry.version, entry.number, entry.text()))
        library.muster_store_result_release(result)
        return status == OK, entries


class MusterStore(torch.distributed.Store):
    """What torch.distributed.init_process_group(store=...) takes."""

    def __init__(self, connection):
        super().__init__()
        self.connection = connection
        self.seconds = 300.0

    def set_timeout(self, timeout):
        self.seconds = timeout.total_seconds()

    def set(self, key, value):
        self.connection.do(op(SET, key, value), seconds=self.seconds)

    def get(self, key):
        return self.connection.do(op(GET, key), seconds=self.seconds)[1][0][3]

    def add(self, key, number):
        return self.connection.do(op(ADD, key, number=number), seconds=self.seconds)[1][0][2]

    def compare_set(self, key, expected, desired):
        wanted = dict(condition=IF_VALUE, expected=expected) if expected else dict(condition=IF_ABSENT)
        done, entries = self.connection.do(op(SET, key, desired, **wanted), seconds=self.seconds)
        if done:
            return bytes_of(desired)
        return entries[0][3] if entries[0][0] & PRESENT else bytes_of(expected)

    def wait(self, keys, timeout=None):
        seconds = self.seconds if timeout is None else timeout.total_seconds()
        self.connection.do(*[op(WAIT, key) for key in keys], seconds=seconds)

    def delete_key(self, key):
        return bool(self.connection.do(op(DELETE, key))[1][0][0] & PRESENT)

    def num_keys(self):
        return self.connection.do(op(COUNT, b""))[1][0][2]


class MusterBackend(RendezvousBackend):
    """Where torch's DynamicRendezvousHandler keeps its state; the token is the version of the key."""

    def __init__(self, connection, run_id):
        self.connection = connection
        self.key = f"torch.rendezvous.{run_id}"

    name = "muster"

    def ask(self, *ops):
        try:
            return self.connection.do(*ops, seconds=60)
        except MusterError as failed:
            raise RendezvousConnectionError("the connection to the Muster store has failed") from failed

    def get_state(self):
        flags, version, _, value = self.ask(op(READ, self.key))[1][0]
        return (value, version) if flags & PRESENT else None

    def set_state(self, state, token=None):
        wanted = dict(condition=IF_VERSION, version=token) if token else dict(condition=IF_ABSENT)
        done, [(flags, version, _, value)] = self.ask(op(SET, self.key, state, **wanted))
        if done:
            return state, version, True
        return (value, version, False) if flags & PRESENT else None
