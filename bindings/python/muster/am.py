# SPDX-License-Identifier: MIT
"""Active messages: small requests to another process over any stream, which functions of that process answer."""
import asyncio
import ctypes
import sys
import traceback
import typing

from . import _surface as c
from ._core import Error, Handle, Memory, call, check, encoded, error_of, in_slices, interruptible, lib, ns
from .served import Server
from .streams import Stream

Data = typing.Union[str, bytes, bytearray, memoryview]


class Endpoint(Server):
    """An endpoint of active messages. `handlers`: functions by number, 0 to 255, that are called with the number of the peer
    and the bytes of its request, one after the other in a thread of their own, and return the bytes of the reply, or None. A
    function that raises ends the call of the peer with MUSTER_E_INTERNAL, and its traceback is printed.

        there = muster.Endpoint({1: lambda peer, data: data.upper()})
        there.add(listener.accept())

        here = muster.Endpoint()
        peer = here.add(muster.dial(address))
        here.call(peer, 1, "hello")                          # b"HELLO"

    `max_bytes`: of a request or a reply, at most 16 MiB; `max_requests`: to one peer without a reply."""

    def __init__(self, handlers: typing.Dict[int, typing.Callable] = None, *, max_bytes: int = 0, max_requests: int = 0,
                 opener=None):
        super().__init__(opener, "endpoint")
        self._handlers, self._pending = dict(handlers or {}), set()
        config, made = c.muster_am_config(), ctypes.c_void_p()
        config.struct_size, config.max_bytes, config.max_requests = ctypes.sizeof(config), max_bytes, max_requests
        call("muster_am_create", self._context.handle, ctypes.byref(config), ctypes.byref(made))
        self._am = _Made(made.value)
        for number in self._handlers:
            check(lib.muster_am_serve(self._am.handle, number, self.handle, number))
        self._begin()

    def add(self, stream: Stream) -> int:
        """Adds the peer at the other end of a stream, which has an endpoint, too, and belongs to this one from now on; its
        number."""
        number = ctypes.c_uint32()
        call("muster_am_add_peer", self._am.handle, stream.handle, ctypes.byref(number))
        stream.detach()
        return number.value

    def call(self, peer: int, handler: int, data: Data = b"", timeout: typing.Optional[float] = None) -> bytes:
        """Makes a request, and returns the reply. Requests to one peer are executed in their order."""
        content, place, size = encoded(data), self._place(peer), ctypes.c_size_t()
        detail = c.muster_error()

        def attempt():  # a request cannot be made a second time, so it waits in one call
            with self._am.used() as am:
                return lib.muster_am_call(am, peer, handler, content, len(content), place, len(place), ns(timeout),
                                          ctypes.byref(size), ctypes.byref(detail))
        check(interruptible(attempt), detail)
        return place.raw[:size.value]

    async def acall(self, peer: int, handler: int, data: Data = b"") -> bytes:
        """As call(), for coroutines."""
        content, place = encoded(data), self._place(peer)
        completions = self._context.completions_of_loop()

        def begin(queue, tag, _):
            return lib.muster_am_begin(self._am.handle, peer, handler, content, len(content), place, len(place), queue, tag)

        def reply(entry, detail):
            check(entry.status, detail)
            return place.raw[:entry.bytes]
        while True:
            try:
                future = completions.begin(begin, reply, place)
                break
            except Error as problem:
                if problem.status != c.MUSTER_AGAIN or not self._pending:
                    raise  # otherwise as many as may have no reply
                await asyncio.wait(set(self._pending), return_when=asyncio.FIRST_COMPLETED)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return await future

    def flush(self, peer: typing.Optional[int] = None, timeout: typing.Optional[float] = None) -> None:
        """Waits until each request to this peer, or to all, has its reply."""
        which = 0xffffffff if peer is None else peer
        with self._am.used() as am:
            status = in_slices(timeout, lambda left: lib.muster_am_flush(am, which, left))
        if status != c.MUSTER_OK:
            raise error_of(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)

    def peer(self, peer: int) -> dict:
        """The state of a peer: `error`, None while it is connected, and the counters of muster_am_peer."""
        found, detail = c.muster_am_peer(), c.muster_error()
        check(lib.muster_am_get_peer(self._am.handle, peer, ctypes.byref(found), ctypes.byref(detail)))
        state = {name: getattr(found, name) for name, _ in found._fields_ if name != "status"}
        state["error"] = None if found.status == c.MUSTER_OK else error_of(found.status, detail)
        return state

    def disconnect(self, peer: int, text: str = "") -> None:
        """Ends a peer; its calls end with this text."""
        check(lib.muster_am_disconnect(self._am.handle, peer, encoded(text) or None))

    def close(self) -> None:
        """Disconnects all peers; a function that is being called goes on."""
        if not self.closed and not self._am.closed:
            lib.muster_am_close(self._am.handle)
            self._am.close()
        super().close()

    def _place(self, peer):
        found = c.muster_am_peer()
        check(lib.muster_am_get_peer(self._am.handle, peer, ctypes.byref(found), None))
        return ctypes.create_string_buffer(found.max_bytes)

    def _take(self, queue, entry):
        if entry.kind != c.MUSTER_REQUEST_AM:
            return
        request, info, status, reply = entry.object, c.muster_am_request_info(), c.MUSTER_OK, b""
        try:
            lib.muster_am_request_get(request, ctypes.byref(info))
            data = ctypes.string_at(info.data, info.bytes) if info.bytes else b""
            found = self._handlers[info.handler](info.peer, data)
            reply = b"" if found is None else found
            with Memory(encoded(reply) if isinstance(reply, str) else reply) as place:
                if lib.muster_am_request_reply(request, status, place.address, place.bytes) == c.MUSTER_E_ARG:
                    raise ValueError(f"a reply of {place.bytes} bytes is larger than the peer accepts")
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc(file=sys.stderr)
            lib.muster_am_request_reply(request, c.MUSTER_E_INTERNAL, None, 0)
        finally:
            lib.muster_am_request_release(request)


class _Made(Handle):
    _release = "muster_am_release"


__all__ = ["Endpoint"]
