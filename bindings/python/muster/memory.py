# SPDX-License-Identifier: MIT
"""Global memory: a segment of each member of a group, used by all of them: words with atomic operations, blocks of bytes,
and epochs that keep a block while another member may read it."""
import ctypes
import typing

from . import _surface as c
from ._core import Error, Handle, Memory, call, check, error_of, interruptible, lib, ns
from .group import Group

_FETCH = {name: getattr(c, "MUSTER_ATOMIC_" + name.upper()) for name in ("add", "and", "or", "xor", "min", "max", "umin", "umax")}


class GlobalMemory(Handle):
    """The memory of all members of a group: they make the same calls to open it and for symmetric(). A place is a number:
    the locale in the upper bits, the offset in its segment in the lower ones; 0 is no place. `timeout`: seconds that an
    operation waits for a locale of another host."""
    _release = "muster_memory_release"

    def __init__(self, group: Group, segment_bytes: int = 0, *, symmetric_bytes: int = 0, max_tokens: int = 0,
                 max_pending: int = 0, shared_memory: bool = True, timeout: typing.Optional[float] = 60):
        config = c.muster_memory_config()
        config.struct_size, config.segment_bytes = ctypes.sizeof(config), segment_bytes
        config.symmetric_bytes, config.max_tokens, config.max_pending = symmetric_bytes, max_tokens, max_pending
        config.flags = 0 if shared_memory else c.MUSTER_MEMORY_NO_SHARED_MEMORY
        made = ctypes.c_void_p()
        interruptible(lambda: call("muster_memory_open", group.handle, ctypes.byref(config), ns(timeout), ctypes.byref(made)))
        super().__init__(made.value, group)
        self._context, self._timeout = group._context, timeout
        self.locale, self.locales = lib.muster_memory_locale(made.value), lib.muster_memory_locales(made.value)

    # ---- places

    def symmetric(self, count: int, alignment: int = 8) -> int:
        """So many bytes at the same offset in every segment, zero at first; all members make the call. The offset."""
        offset = ctypes.c_uint64()
        interruptible(lambda: call("muster_memory_symmetric", self.handle, count, alignment, ns(self._timeout),
                                   ctypes.byref(offset)))
        return offset.value

    def pointer(self, locale: int, offset: int) -> int:
        """The place at this offset in the segment of a locale."""
        made = ctypes.c_uint64()
        check(lib.muster_memory_pointer(self.handle, locale, offset, ctypes.byref(made)))
        return made.value

    def allocate(self, count: int, locale: int = None) -> int:
        """A block in the segment of a locale, by default of this one; MemoryError if it is full."""
        made = ctypes.c_uint64()
        with self.used() as handle:
            status = lib.muster_memory_allocate(handle, self.locale if locale is None else locale, count, ns(self._timeout),
                                                ctypes.byref(made))
        if status == c.MUSTER_AGAIN:
            raise MemoryError(f"the segment has no block of {count} bytes")
        check(status)
        return made.value

    def free(self, block: int) -> None:
        """Frees a block, of any locale; see Token.retire() for blocks that others may be reading."""
        with self.used() as handle:
            check(lib.muster_memory_free(handle, block, ns(self._timeout)))

    def view(self, place: int, count: int) -> memoryview:
        """The bytes themselves, where the segment is mapped here. Not to be used after close(); the memory is not collected before."""
        address = ctypes.c_void_p()
        check(lib.muster_memory_address(self.handle, place, count, ctypes.byref(address)))
        block = (ctypes.c_char * count).from_address(address.value)
        block._memory = self  # pylint: disable=protected-access
        return memoryview(block).cast("B")

    # ---- operations

    def _run(self, **fields):
        operation, found = c.muster_memory_operation(), c.muster_memory_result()
        operation.struct_size = ctypes.sizeof(operation)
        for name, value in fields.items():
            setattr(operation, name, value)
        with self.used() as handle:
            status = lib.muster_memory_run(handle, ctypes.byref(operation), ns(self._timeout), ctypes.byref(found))
        if status < 0 or status == c.MUSTER_TIMEOUT:
            raise error_of(status)
        return status, found.value

    def put(self, place: int, data, *, signal: int = 0, value: int = 1) -> None:
        """Writes bytes; afterwards adds `value` to the word at `signal`, if that is given, and wakes what waits for it."""
        with Memory(data) as memory:
            self._run(kind=c.MUSTER_MEMORY_PUT, target=place, local=memory.address, bytes=memory.bytes, signal=signal,
                      value=value if signal else 0, notify=1 if signal else 0)

    def get(self, place: int, count: int) -> bytearray:
        """Reads bytes."""
        made = bytearray(count)
        self.get_into(place, made)
        return made

    def get_into(self, place: int, buffer) -> None:
        """Reads bytes into memory of the caller."""
        with Memory(buffer, writable=True) as memory:
            self._run(kind=c.MUSTER_MEMORY_GET, target=place, local=memory.address, bytes=memory.bytes)

    def read(self, word: int) -> int:
        """A word of 64 bits, as a number without sign."""
        return self._run(kind=c.MUSTER_MEMORY_READ, target=word)[1]

    def write(self, word: int, value: int) -> None:
        """Sets a word, and wakes what waits for it."""
        self._run(kind=c.MUSTER_MEMORY_WRITE, target=word, value=value % 2**64, notify=1)

    def exchange(self, word: int, value: int) -> int:
        """Sets a word; what it was."""
        return self._run(kind=c.MUSTER_MEMORY_EXCHANGE, target=word, value=value % 2**64)[1]

    def compare_exchange(self, word: int, expected: int, value: int) -> typing.Tuple[bool, int]:
        """Sets a word if it is the expected one: was it, and what it was."""
        status, found = self._run(kind=c.MUSTER_MEMORY_COMPARE_EXCHANGE, target=word, expected=expected % 2**64,
                                  value=value % 2**64)
        return status == c.MUSTER_OK, found

    def fetch(self, word: int, operation: str, value: int) -> int:
        """Changes a word by "add", "and", "or", "xor", "min", "max", "umin" or "umax"; what it was."""
        if operation not in _FETCH:
            raise ValueError(f"there is no operation {operation!r}: {', '.join(_FETCH)}")
        return self._run(kind=c.MUSTER_MEMORY_FETCH, target=word, operation=_FETCH[operation], value=value % 2**64)[1]

    async def afetch(self, word: int, operation: str, value: int) -> int:
        """As fetch(), for coroutines."""
        return await self._begin(self._context.completions_of_loop(), kind=c.MUSTER_MEMORY_FETCH, target=word,
                                 operation=_FETCH[operation], value=value % 2**64)

    def _begin(self, completions, **fields):
        what, found = c.muster_memory_operation(), c.muster_memory_result()
        what.struct_size = ctypes.sizeof(what)
        for name, value in fields.items():
            setattr(what, name, value)

        def ended(entry, detail):
            if entry.status < 0:
                raise error_of(entry.status, detail)
            return found.value
        return completions.begin(
            lambda queue, tag, _: lib.muster_memory_begin(self.handle, ctypes.byref(what), ctypes.byref(found), queue, tag),
            ended, found, self)

    # ---- states

    def stats(self, locale: int = None) -> dict:
        """The counters of the heap of a locale: see muster_memory_stats."""
        found = c.muster_memory_stats()
        with self.used() as handle:
            check(lib.muster_memory_get_stats(handle, self.locale if locale is None else locale, ns(self._timeout),
                                              ctypes.byref(found)))
        return {name: getattr(found, name) for name, _ in found._fields_ if name != "reserved"}

    def problem(self, locale: int) -> typing.Optional[Error]:
        """Why a locale cannot be used any more; None: it can."""
        info, detail = c.muster_memory_locale_info(), c.muster_error()
        check(lib.muster_memory_get_locale(self.handle, locale, ctypes.byref(info), ctypes.byref(detail)))
        return None if info.status == c.MUSTER_OK else error_of(info.status, detail)

    def token(self) -> "Token":
        """A token of the manager of epochs, for one thread."""
        return Token(self)


class Token:
    """Keeps blocks while they are read: `with token: ...` pins it. A block that no place refers to any more is given to
    retire(), and freed when every token that was pinned at that time has been unpinned."""

    def __init__(self, memory: GlobalMemory):
        epoch, made = ctypes.c_void_p(), ctypes.POINTER(c.muster_epoch_token)()
        check(lib.muster_memory_epoch(memory.handle, ctypes.byref(epoch)))
        call("muster_epoch_register", epoch, ctypes.byref(made))
        self._memory, self._token = memory, made

    def __enter__(self):
        check(lib.muster_epoch_pin(self._token))
        return self

    def __exit__(self, *_):
        check(lib.muster_epoch_unpin(self._token))

    def retire(self, block: int) -> None:
        """Frees a block when its time has come, by reclaim(); while very many wait, this waits, too."""
        while (status := lib.muster_epoch_retire(self._token, block)) == c.MUSTER_AGAIN:
            check(lib.muster_epoch_synchronize(self._token, ns(self._memory._timeout), None))
            self.reclaim()
        check(status)

    def reclaim(self, most: int = 2**32 - 1) -> int:
        """Frees blocks whose time has come; their number."""
        freed = ctypes.c_uint32()
        status = lib.muster_memory_reclaim(self._memory.handle, self._token, most, 0, ctypes.byref(freed))
        if status < 0:
            raise error_of(status)
        return freed.value

    def clear(self, timeout: typing.Optional[float] = 60) -> int:
        """Waits for the time of all blocks that this token has retired, and frees them; their number."""
        freed = ctypes.c_uint64()
        check(lib.muster_memory_clear(self._memory.handle, self._token, ns(timeout), ctypes.byref(freed)))
        return freed.value

    def close(self) -> None:
        """Unregisters it; what it has retired is freed by others of this host."""
        token, self._token = self._token, None
        if token is not None:
            check(lib.muster_epoch_unregister(token))


__all__ = ["GlobalMemory", "Token"]
