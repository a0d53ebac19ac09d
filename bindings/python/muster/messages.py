# SPDX-License-Identifier: MIT
"""Messages with headers and frames, between dealers and routers over any transport."""
import ctypes
import dataclasses
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


class _Socket(Handle):
    _release = "muster_socket_release"
    _kind = 0

    def __init__(self, address: int = 0, *, bind: str = "", connect: str = "", max_queued_messages: int = 0,
                 max_queued_bytes: int = 0, max_message_bytes: int = 0, opener=None):
        opener = opener or context()
        config = c.muster_socket_config()
        config.struct_size, config.kind, config.address = ctypes.sizeof(config), self._kind, address
        config.max_queued_messages, config.max_queued_bytes = max_queued_messages, max_queued_bytes
        config.max_message_bytes = max_message_bytes
        made = ctypes.c_void_p()
        call("muster_socket_create", opener.handle, ctypes.byref(config), ctypes.byref(made))
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

    def close(self, timeout: float = 10) -> None:
        """Waits until what was sent has left this process, and releases the socket."""
        if not self.closed:
            with self.used() as handle:
                lib.muster_socket_close(handle, ns(timeout))
            super().close()

    def stats(self) -> dict:
        """Its counters: see muster_socket_stats."""
        found = c.muster_socket_stats()
        check(lib.muster_socket_get_stats(self.handle, ctypes.byref(found)))
        return {name: getattr(found, name) for name, _ in found._fields_ if name != "reserved"}

    def __repr__(self):
        return f"<muster.{type(self).__name__} {'closed' if self.closed else hex(self.address)}>"


class Dealer(_Socket):
    """Sends its messages to its peers in turn, and receives from all of them."""
    _kind = c.MUSTER_SOCKET_DEALER


class Router(_Socket):
    """Sends each message to the peer with the address of its destination."""
    _kind = c.MUSTER_SOCKET_ROUTER
