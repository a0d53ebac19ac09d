# SPDX-License-Identifier: MIT
"""Messages with headers and frames, between dealers and routers over any transport."""
import asyncio
import ctypes
import dataclasses
import sys
import typing

from . import _surface as c
from ._core import Handle, Memory, check, call, context, encoded, error_of, lib, ns

Frame = typing.Union[bytes, bytearray, memoryview, str]


def address(group: int, id: int, kind: int) -> int:
    """An address of a socket: group 0 to 2^32 - 2, id 0 to 2^20 - 2, kind 1 to 4094."""
    made = ctypes.c_uint64()
    check(lib.muster_message_address(group, id, kind, ctypes.byref(made)))
    return made.value


@dataclasses.dataclass
class Message:
    """A message: its frames, and a header. `destination` 0: any peer of a dealer; `source`: set by the socket that sends."""
    frames: typing.List[Frame] = dataclasses.field(default_factory=list)
    destination: int = 0
    source: int = 0
    type: int = 0
    target: int = 0
    target_version: int = 0

    def reply(self, *frames: Frame, type: int = 0) -> "Message":
        """A message to the sender of this one."""
        return Message(list(frames), self.source, 0, type, self.target, self.target_version)

    def _make(self):
        handle = ctypes.c_void_p()
        check(lib.muster_message_create(ctypes.byref(handle)))
        try:
            header = c.muster_message_header()
            header.struct_size = ctypes.sizeof(header)
            for name in ("type", "source", "destination", "target", "target_version"):
                setattr(header, name, getattr(self, name))
            check(lib.muster_message_set_header(handle, ctypes.byref(header)))
            for frame in self.frames:
                with Memory(frame.encode() if isinstance(frame, str) else frame) as place:
                    check(lib.muster_message_add_frame(handle, place.address, place.bytes))
        except BaseException:
            lib.muster_message_release(handle)
            raise
        return handle

    @staticmethod
    def _take(handle):
        try:
            header, frame, frames = c.muster_message_header(), c.muster_buffer(), []
            header.struct_size = ctypes.sizeof(header)
            check(lib.muster_message_get_header(handle, ctypes.byref(header)))
            for index in range(lib.muster_message_frame_count(handle)):
                check(lib.muster_message_frame(handle, index, ctypes.byref(frame)))
                frames.append(ctypes.string_at(frame.data, frame.bytes) if frame.bytes else b"")
            return Message(frames, header.destination, header.source, header.type, header.target, header.target_version)
        finally:
            lib.muster_message_release(handle)


@dataclasses.dataclass(frozen=True)
class PeerEvent:
    """What has happened to a peer: `kind` is "connected", "lost", "replaced" or "refused"."""
    kind: str
    address: int
    incarnation: int
    undelivered: int
    text: str


_EVENTS = {c.MUSTER_SOCKET_CONNECTED: "connected", c.MUSTER_SOCKET_LOST: "lost", c.MUSTER_SOCKET_REPLACED: "replaced",
           c.MUSTER_SOCKET_REFUSED: "refused"}


class _Socket(Handle):
    """`undelivered(message)` is called with messages that had not left when the connection to their peer was lost: in the
    event loop if the socket was made in one, else in a thread of this package. The coroutines (`asend()`, `areceive()`, ...)
    are for sockets that were made in the event loop that runs them."""
    _release = "muster_socket_release"
    _kind = 0

    def __init__(self, address: int = 0, *, bind: str = "", connect: str = "", max_queued_messages: int = 0,
                 max_queued_bytes: int = 0, max_message_bytes: int = 0,
                 undelivered: typing.Optional[typing.Callable[[Message], None]] = None, opener=None):
        opener = opener or context()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._waiters: typing.List[asyncio.Future] = []
        self._completions, self._tag = None, 0
        config = c.muster_socket_config()
        if self._loop is not None or undelivered is not None:
            self._completions = opener.completions if self._loop is None else opener.completions_of_loop()
            waiters = self._waiters  # not self, which would never be collected

            def wake(_):
                for one in waiters:
                    if not one.done():
                        one.set_result(None)

            def hand_back(entry):
                message = Message._take(ctypes.c_void_p(entry.object))
                try:
                    if undelivered is not None:
                        undelivered(message)
                except Exception:  # pylint: disable=broad-except  # others are served by this thread, too
                    sys.excepthook(*sys.exc_info())
            self._tag = self._completions.watch(wake if self._loop is not None else None, hand_back)
            config.queue, config.tag = self._completions.queue, self._tag
        config.struct_size, config.kind, config.address = ctypes.sizeof(config), self._kind, address
        config.max_queued_messages, config.max_queued_bytes = max_queued_messages, max_queued_bytes
        config.max_message_bytes = max_message_bytes
        made = ctypes.c_void_p()
        try:
            call("muster_socket_create", opener.handle, ctypes.byref(config), ctypes.byref(made))
        except BaseException:
            if self._completions is not None:
                self._completions.forget(self._tag)
            raise
        super().__init__(made.value)
        try:
            self.bound = self.bind(bind) if bind else None
            if connect:
                self.connect(connect)
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> int:
        """The address of this socket: that of the constructor, or a random address."""
        return lib.muster_socket_address(self.handle)

    def bind(self, where: str) -> str:
        """Listens at an address of a transport; returns what peers connect to."""
        place, text = ctypes.create_string_buffer(1024), encoded(where)
        call("muster_socket_bind", self.handle, text, len(text), place, len(place))
        return place.value.decode()

    def connect(self, where: str) -> None:
        """Connects, and connects again when the connection is lost; returns at once."""
        text = encoded(where)
        call("muster_socket_connect", self.handle, text, len(text))

    def wait_peers(self, count: int = 1, timeout: typing.Optional[float] = None) -> None:
        """Until so many peers are connected."""
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_socket_wait_peers(handle, count, left, None))
        check(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)

    def send(self, message: typing.Union[Message, Frame], timeout: typing.Optional[float] = None) -> None:
        """Sends a message; bytes or text are one of a single frame. Waits while the queue of the peer is full."""
        made = (message if isinstance(message, Message) else Message([message]))._make()
        detail = c.muster_error()
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_socket_send(handle, made, left, ctypes.byref(detail)))
        if status != c.MUSTER_OK:
            lib.muster_message_release(made)
            raise error_of(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status, detail)

    def receive(self, timeout: typing.Optional[float] = None) -> Message:
        """The next message of any peer."""
        found = ctypes.c_void_p()
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_socket_receive(handle, left, ctypes.byref(found)))
        check(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)
        return Message._take(found)

    def next_event(self, timeout: typing.Optional[float] = None) -> PeerEvent:
        """What has happened to a peer next."""
        found = c.muster_socket_event()
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_socket_next_event(handle, left, ctypes.byref(found)))
        check(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)
        return _peer_event(found)

    # ---- coroutines

    async def _until(self, attempt, timeout):
        """Calls attempt() until its status is another one than AGAIN; waits for readiness between."""
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError("the socket was not made in this event loop")

        async def attempts():
            while True:
                waiter = self._loop.create_future()
                self._waiters.append(waiter)
                try:
                    status = attempt() if not self.closed else c.MUSTER_E_CLOSED
                    if status != c.MUSTER_AGAIN:
                        return status
                    await waiter
                finally:
                    self._waiters.remove(waiter)
        status = attempt()
        if status != c.MUSTER_AGAIN:
            return status
        try:
            return await asyncio.wait_for(attempts(), timeout)
        except asyncio.TimeoutError:
            return c.MUSTER_TIMEOUT

    async def await_peers(self, count: int = 1, timeout: typing.Optional[float] = None) -> None:
        """As wait_peers()."""
        check(await self._until(lambda: lib.muster_socket_wait_peers(self.handle, count, 0, None), timeout))

    async def asend(self, message: typing.Union[Message, Frame], timeout: typing.Optional[float] = None) -> None:
        """As send(). A call that is cancelled has sent nothing."""
        made = (message if isinstance(message, Message) else Message([message]))._make()
        detail, status = c.muster_error(), c.MUSTER_AGAIN
        try:
            status = await self._until(lambda: lib.muster_socket_send(self.handle, made, 0, ctypes.byref(detail)), timeout)
        finally:
            if status != c.MUSTER_OK:
                lib.muster_message_release(made)
        if status != c.MUSTER_OK:
            raise error_of(status, detail)

    async def areceive(self, timeout: typing.Optional[float] = None) -> Message:
        """As receive(). A call that is cancelled has taken no message."""
        found = ctypes.c_void_p()
        check(await self._until(lambda: lib.muster_socket_receive(self.handle, 0, ctypes.byref(found)), timeout))
        return Message._take(found)

    async def anext_event(self, timeout: typing.Optional[float] = None) -> PeerEvent:
        """As next_event()."""
        found = c.muster_socket_event()
        check(await self._until(lambda: lib.muster_socket_next_event(self.handle, 0, ctypes.byref(found)), timeout))
        return _peer_event(found)

    # ---- the end

    def _forget(self):
        if self._completions is not None:
            self._completions.forget_later(self._tag)

    def __del__(self):
        if getattr(self, "_open", False):
            super().__del__()
            self._forget()

    def close(self, timeout: float = 10) -> None:
        """Waits until what was sent has left this process, and releases the socket. An event loop waits, too: with
        `timeout=0` it does not, and what has not left is handed to `undelivered`."""
        if not self.closed:
            with self.used() as handle:
                lib.muster_socket_close(handle, ns(timeout))
            super().close()
            self._forget()
            for one in self._waiters:
                if not one.done():
                    one.set_result(None)

    def stats(self) -> dict:
        """Its counters: see muster_socket_stats."""
        found = c.muster_socket_stats()
        check(lib.muster_socket_get_stats(self.handle, ctypes.byref(found)))
        return {name: getattr(found, name) for name, _ in found._fields_ if name != "reserved"}

    def __repr__(self):
        return f"<muster.{type(self).__name__} {'closed' if self.closed else hex(self.address)}>"


def _peer_event(found):
    return PeerEvent(_EVENTS[found.kind], found.address, found.incarnation, found.undelivered,
                     bytes(found.text)[:found.text_bytes].decode(errors="replace"))


class Dealer(_Socket):
    """Sends its messages to its peers in turn, and receives from all of them."""
    _kind = c.MUSTER_SOCKET_DEALER


class Router(_Socket):
    """Sends each message to the peer with the address of its destination."""
    _kind = c.MUSTER_SOCKET_ROUTER
