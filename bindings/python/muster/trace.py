# SPDX-License-Identifier: MIT
"""Traces: what the threads of this process did and when, as a file for Perfetto (https://ui.perfetto.dev).

    muster.trace.start()
    with muster.trace.span("load"):
        load()
    muster.trace.save("mine.pftrace")

A process that has MUSTER_TRACE in its environment writes its trace into that folder when it exits; `muster trace --join` makes
one file of several."""
import contextlib
import ctypes
import typing

from . import _surface as c
from ._core import call, check, encoded, lib, ns


def start(name: str = "", events: int = 0) -> None:
    """Begins a trace; each thread keeps so many events (0: 8192), the newest ones."""
    config, text = c.muster_trace_config(), encoded(name)
    config.struct_size, config.events = ctypes.sizeof(config), events
    if text:
        config.name, config.name_bytes = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text)
    call("muster_trace_start", ctypes.byref(config))


def stop() -> None:
    """Ends it; save() can still write it."""
    lib.muster_trace_stop()


@contextlib.contextmanager
def span(name: str):
    """What happens inside has this name."""
    text = encoded(name)
    lib.muster_trace_begin(text, len(text))
    try:
        yield
    finally:
        lib.muster_trace_end()


def flow_of(text: typing.Union[str, bytes]) -> int:
    """The number of a flow by the name of what is passed on: FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in encoded(text):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value or 1


def mark(name: str, flow: typing.Union[int, str, bytes] = 0) -> None:
    """Marks a moment. Those with the same `flow` are connected by arrows, in all processes: a number, or the name of what is
    passed on, which has the same number in the bindings of all languages."""
    text = encoded(name)
    if isinstance(flow, (str, bytes)):
        flow = flow_of(flow)
    lib.muster_trace_flow(text, len(text), flow)


def state() -> dict:
    """`on`, the number of `events` and `threads`, and of align() `offset` and `offset_error`, in seconds; None: not measured."""
    found = c.muster_trace_state()
    check(lib.muster_trace_get_state(ctypes.byref(found)))
    measured = found.offset_error_ns >= 0
    return {"on": bool(found.is_on), "events": found.events, "threads": found.threads, "offset": found.offset_ns * 1e-9,
            "offset_error": found.offset_error_ns * 1e-9 if measured else None}


def align(group, timeout: typing.Optional[float] = 60) -> dict:
    """Measures the clock of this member against that of rank 0; a call of all members. The state() afterwards."""
    call("muster_trace_align", group.handle, ns(timeout), None)
    return state()


def save(path: str) -> None:
    """Writes the file; a trace that is on goes on."""
    text = encoded(path)
    call("muster_trace_save", text, len(text))


__all__ = ["align", "flow_of", "mark", "save", "span", "start", "state", "stop"]
