# SPDX-License-Identifier: MIT
"""Streams of bytes between processes, over tcp, unix sockets, shared memory, a star, MPI, or a transport of your own."""
import ctypes
import io
import typing

from . import _surface as c
from ._core import Handle, Memory, PeerGone, call, check, context, encoded, error_of, lib, ns, text_of, wait

Buffer = typing.Union[bytes, bytearray, memoryview]
LARGE = 256 * 1024  # from here on a write of a coroutine is lent to the library until it has been sent


class Stream(Handle):
    """One end of a duplex stream; made by dial(), Listener.accept() or pair().

    Calls of threads wait; `aread()`, `areadexactly()`, `awrite()` and `aflush()` are for coroutines. Calls and coroutines
    may both be used, one at a time for each direction. Memory of the caller is used directly: `readinto()` and `write()`
    take anything with the buffer protocol (bytes, bytearray, memoryview, arrays of NumPy). When the peer has finished
    writing, reads return b""; when the peer has died or aborted the stream, they raise PeerGone."""
    _release = "muster_stream_release"

    def __init__(self, handle, opener):
        super().__init__(handle)
        self._context = opener
        self._watching = None  # (completions, tag, events that have been seen, waiters by event)

    # ---- threads

    def readinto(self, buffer, timeout: typing.Optional[float] = None) -> int:
        """Reads at least one byte into `buffer`; returns the number, 0 at the end of the stream."""
        with Memory(buffer, writable=True) as place:
            return self._read(place.address, place.bytes, timeout)

    def read(self, size: int = -1, timeout: typing.Optional[float] = None) -> bytes:
        """Up to `size` bytes, at least one; b"" at the end of the stream. -1: all bytes until the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20, timeout), b""))
        place = bytearray(size)
        return bytes(memoryview(place)[:self.readinto(place, timeout)]) if size else b""

    def readexactly(self, size: int, timeout: typing.Optional[float] = None) -> bytes:
        """`size` bytes; EOFError if the stream ends before."""
        place, done = bytearray(size), 0
        with Memory(place, writable=True) as memory:
            while done < size:
                count = self._read(memory.address + done, size - done, timeout)
                if count == 0:
                    raise EOFError(f"the stream ended after {done} of {size} bytes")
                done += count
        return bytes(place)

    def _read(self, address, size, timeout):
        count = ctypes.c_size_t()
        if size == 0:
            return 0
        with self.used() as handle:
            status = self.in_slices(
                timeout, lambda left: lib.muster_stream_read(handle, address, size, left, ctypes.byref(count)))
        if status in (c.MUSTER_E_END, c.MUSTER_OK):
            return count.value
        raise self._why(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)

    def write(self, data: Buffer, timeout: typing.Optional[float] = None) -> int:
        """Writes all of it; returns when the library has the bytes. After a timeout a part may have been written."""
        with Memory(data) as place, self.used() as handle:
            done, count = 0, ctypes.c_size_t()

            def attempt(left):
                nonlocal done
                status = lib.muster_stream_write(handle, place.address + done, place.bytes - done, left,
                                                 ctypes.byref(count))
                done += count.value
                return status
            status = self.in_slices(timeout, attempt) if place.bytes else c.MUSTER_OK
            if status != c.MUSTER_OK:
                raise self._why(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)
            return place.bytes

    def flush(self, timeout: typing.Optional[float] = None) -> None:
        """Returns when everything has left this process."""
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_stream_flush(handle, left))
        if status != c.MUSTER_OK:
            raise self._why(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status)

    def makefile(self, buffer_bytes: int = 65536) -> io.BufferedRWPair:
        """A buffered file object, for code that expects one: pickle, readline(), text wrappers. It owns the stream."""
        return io.BufferedRWPair(_Raw(self, True), _Raw(self, False), buffer_bytes)

    # ---- coroutines

    async def areadinto(self, buffer) -> int:
        """As readinto()."""
        with Memory(buffer, writable=True) as place:
            while True:
                count = ctypes.c_size_t()
                status = lib.muster_stream_read(self.handle, place.address, place.bytes, 0, ctypes.byref(count))
                if status in (c.MUSTER_OK, c.MUSTER_E_END):
                    return count.value
                if status != c.MUSTER_AGAIN:
                    raise self._why(status)
                await self._ready(c.MUSTER_STREAM_READABLE)

    async def aread(self, size: int = 65536) -> bytes:
        """As read()."""
        place = bytearray(size)
        return bytes(memoryview(place)[:await self.areadinto(place)])

    async def areadexactly(self, size: int) -> bytes:
        """As readexactly()."""
        place, done = bytearray(size), 0
        view = memoryview(place)
        while done < size:
            count = await self.areadinto(view[done:])
            if count == 0:
                raise EOFError(f"the stream ended after {done} of {size} bytes")
            done += count
        return bytes(place)

    async def awrite(self, data: Buffer) -> int:
        """As write(). A large one lends `data` to the library until it has been sent."""
        place = Memory(data)
        if place.bytes >= LARGE:  # held until the entry, also after a cancellation
            await self._context.completions_of_loop().begin(
                lambda queue, tag, _: lib.muster_stream_write_owned(self.handle, place.address, place.bytes, queue, tag),
                lambda entry, detail: check(entry.status, detail), place)
            return place.bytes
        with place:
            done, count = 0, ctypes.c_size_t()
            while True:
                status = lib.muster_stream_write(self.handle, place.address + done, place.bytes - done, 0,
                                                 ctypes.byref(count))
                done += count.value
                if status == c.MUSTER_OK or done == place.bytes:
                    return place.bytes
                if status != c.MUSTER_AGAIN:
                    raise self._why(status)
                await self._ready(c.MUSTER_STREAM_WRITABLE)

    async def aflush(self, timeout: typing.Optional[float] = None) -> None:
        """As flush()."""
        await self._context.completions_of_loop().begin(
            lambda queue, tag, error: lib.muster_stream_flush_begin(self.handle, ns(timeout), queue, tag, error))

    async def _ready(self, event):
        completions = self._context.completions_of_loop()
        if self._watching is None or self._watching[0] is not completions:
            waiters = {}

            def notice(events):
                for one, waiter in list(waiters.items()):
                    if events & (one | c.MUSTER_STREAM_ENDED) and not waiter.done():
                        waiter.set_result(None)
            tag = completions.watch(notice)
            self._watching = (completions, tag, waiters)
            check(lib.muster_stream_watch(self.handle, c.MUSTER_STREAM_READABLE | c.MUSTER_STREAM_WRITABLE,
                                          completions.queue, tag))
            return  # it is armed now: the caller looks once more
        import asyncio  # pylint: disable=import-outside-toplevel
        waiter = asyncio.get_running_loop().create_future()
        self._watching[2][event] = waiter
        try:
            await waiter
        finally:
            self._watching[2].pop(event, None)

    # ---- the end

    def finish(self) -> None:
        """Half-close: the peer reads everything and then the end; this side can still read."""
        check(lib.muster_stream_finish(self.handle))

    def abort(self, code: int = 0, text: str = "") -> None:
        """Ends both directions at once, and gives the peer the reason."""
        sentence = text.encode()
        check(lib.muster_stream_abort(self.handle, code, sentence, len(sentence)))

    def close(self) -> None:
        """What was written still goes out; the stream cannot be used any more."""
        if self._watching is not None and self._open:
            lib.muster_stream_watch(self._handle, 0, None, 0)
            self._watching[0].forget(self._watching[1])
            self._watching = None
        super().close()

    def _why(self, status):
        if status in (c.MUSTER_E_PEER, c.MUSTER_E_ABORTED):
            detail = c.muster_error()
            lib.muster_stream_reason(self.handle, None, ctypes.byref(detail))
            if detail.message_bytes:
                return PeerGone(status, detail.message.decode(errors="replace"), detail.os_errno)
        return error_of(status)

    @property
    def reason(self) -> typing.Optional[str]:
        """Why the stream has ended; None while it has not."""
        detail = c.muster_error()
        status = lib.muster_stream_reason(self.handle, None, ctypes.byref(detail))
        return None if status == c.MUSTER_OK else detail.message.decode(errors="replace")

    @property
    def peer(self) -> str:
        """The address that was dialled, or that the connection came from."""
        return text_of(lib.muster_stream_peer, self.handle)

    @property
    def local_address(self) -> str:
        """The address of the socket at this end, such as `tcp://10.0.0.7:41022`; UnsupportedError of another transport than tcp."""
        return text_of(lib.muster_stream_local_address, self.handle)

    @property
    def hello(self) -> bytes:
        """What the other side sent as its hello."""
        size = ctypes.c_size_t()
        check(lib.muster_transport_hello(self.handle, None, 0, ctypes.byref(size)))
        place = ctypes.create_string_buffer(size.value + 1)
        check(lib.muster_transport_hello(self.handle, place, len(place), ctypes.byref(size)))
        return place.raw[:size.value]

    def stats(self) -> dict:
        """Its figures since its start: see muster_stream_stats."""
        found = c.muster_stream_stats()
        check(lib.muster_stream_get_stats(self.handle, ctypes.byref(found)))
        return {name: getattr(found, name) for name, _ in found._fields_ if name != "reserved"}

    def __repr__(self):
        return f"<muster.Stream {'closed' if self.closed else self.peer}>"


class _Raw(io.RawIOBase):
    """One direction of a stream as a file."""

    def __init__(self, stream, reads):
        self._stream, self._reads = stream, reads

    def readable(self):
        return self._reads

    def writable(self):
        return not self._reads

    def readinto(self, buffer):
        return self._stream.readinto(buffer)

    def write(self, data):
        return self._stream.write(data)

    def close(self):
        if not self.closed and not self._reads:
            self._stream.close()
        super().close()


# ---- addresses

def _config(hello, window, retry):
    config = c.muster_transport_config()
    config.struct_size = ctypes.sizeof(config)
    text = encoded(hello)
    config.hello, config.hello_bytes = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text)
    config.window_bytes, config.retry_ns = window, ns(retry)
    return config, text


def _dial_begin(opener, completions, address, timeout, hello, window, retry):
    where = encoded(address)
    config, text = _config(hello, window, retry)

    def opened(entry, detail):
        check(entry.status, detail)
        return Stream(entry.object, opener)
    return completions.begin(
        lambda queue, tag, error: lib.muster_transport_dial_begin(opener.handle, where, len(where), ctypes.byref(config),
                                                                  ns(timeout), queue, tag, error), opened, text)


def dial(address: str, timeout: typing.Optional[float] = 60, hello: typing.Union[str, bytes] = b"", window: int = 0,
         retry: float = 0, opener=None) -> Stream:
    """Connects to `tcp://host:port`, `unix:///path`, `shm://name`, or what a plug-in serves; returns when both sides have
    proved the secret. `hello` is shown to the other side. `retry`: seconds to keep trying while nothing listens there."""
    opener = opener or context()
    return wait(_dial_begin(opener, opener.completions, address, timeout, hello, window, retry))


async def adial(address: str, timeout: typing.Optional[float] = 60, hello: typing.Union[str, bytes] = b"",
                window: int = 0, retry: float = 0, opener=None) -> Stream:
    """As dial(), for coroutines."""
    opener = opener or context()
    return await _dial_begin(opener, opener.completions_of_loop(), address, timeout, hello, window, retry)


def pair(window: int = 0, opener=None) -> typing.Tuple[Stream, Stream]:
    """Two connected ends in this process."""
    opener = opener or context()
    config = c.muster_stream_config(ctypes.sizeof(c.muster_stream_config), 0, window)
    first, second = ctypes.c_void_p(), ctypes.c_void_p()
    call("muster_stream_pair", opener.handle, ctypes.byref(config), ctypes.byref(first), ctypes.byref(second))
    return Stream(first.value, opener), Stream(second.value, opener)


class Listener(Handle):
    """Accepts connections; made by listen(). Iterating it accepts until it is closed."""
    _release = "muster_listener_release"

    def __init__(self, handle, opener):
        super().__init__(handle)
        self._context, self._watching = opener, None

    @property
    def address(self) -> str:
        """What a peer dials to get here: the real port, the advertised host."""
        return text_of(lib.muster_listener_address, self.handle)

    def accept(self, timeout: typing.Optional[float] = None) -> Stream:
        """Waits for the next connection that has proved the secret."""
        made, detail = ctypes.c_void_p(), c.muster_error()
        with self.used() as handle:
            status = self.in_slices(timeout, lambda left: lib.muster_listener_accept(
                handle, left, ctypes.byref(made), ctypes.byref(detail)))
        check(c.MUSTER_TIMEOUT if status == c.MUSTER_AGAIN else status, detail)
        return Stream(made.value, self._context)

    async def aaccept(self) -> Stream:
        """As accept(), for coroutines."""
        import asyncio  # pylint: disable=import-outside-toplevel
        completions = self._context.completions_of_loop()
        while True:
            made, detail = ctypes.c_void_p(), c.muster_error()
            status = lib.muster_listener_accept(self.handle, 0, ctypes.byref(made), ctypes.byref(detail))
            if status != c.MUSTER_AGAIN:
                check(status, detail)
                return Stream(made.value, self._context)
            if self._watching is None or self._watching[0] is not completions:
                waiters = []
                tag = completions.watch(lambda _: [one.set_result(None) for one in waiters if not one.done()])
                self._watching = (completions, waiters)
                check(lib.muster_listener_watch(self.handle, completions.queue, tag))
                continue
            waiter = asyncio.get_running_loop().create_future()
            self._watching[1].append(waiter)
            try:
                await waiter
            finally:
                self._watching[1].remove(waiter)

    def __iter__(self):
        while not self.closed:
            yield self.accept()

    def __repr__(self):
        return f"<muster.Listener {'closed' if self.closed else self.address}>"


def listen(address: str, window: int = 0, opener=None) -> Listener:
    """Listens at an address; with `tcp://127.0.0.1:0` the kernel chooses the port."""
    opener = opener or context()
    where = encoded(address)
    config, _text = _config(b"", window, 0)
    made = ctypes.c_void_p()
    call("muster_transport_listen", opener.handle, where, len(where), ctypes.byref(config), ctypes.byref(made))
    return Listener(made.value, opener)
