# SPDX-License-Identifier: MIT
"""Key-value stores that processes share: a server of Muster, etcd, or memory of this process."""
import ctypes
import dataclasses
import typing

from . import _surface as c
from ._core import Completions, Error, Handle, call, check, context, encoded, error_of, lib, ns, text_of, wait

Text = typing.Union[str, bytes]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A result of one operation: `op`, its place in the request; `value` is None where the key is absent."""
    op: int
    present: bool
    failed: bool
    more: bool
    version: int
    number: int
    key: typing.Optional[bytes]
    value: typing.Optional[bytes]


class Changed(Error):
    """A condition did not hold: nothing was changed. `entries` have what the store has instead."""
    entries: typing.List[Entry] = []


class Entries(list):
    """The entries of a request; `revision`: where a watch goes on."""
    revision = 0


def _entries(object_):
    found, entry = Entries(), c.muster_store_entry()
    for index in range(lib.muster_store_result_count(object_)):
        check(lib.muster_store_result_entry(object_, index, ctypes.byref(entry)))
        present = bool(entry.flags & c.MUSTER_STORE_PRESENT)
        has_value = entry.value is not None or (present and entry.value_bytes == 0)
        found.append(Entry(entry.op, present, bool(entry.flags & c.MUSTER_STORE_FAILED),
                           bool(entry.flags & c.MUSTER_STORE_MORE), entry.version, entry.number,
                           ctypes.string_at(entry.key, entry.key_bytes) if entry.key else None,
                           ctypes.string_at(entry.value, entry.value_bytes) if has_value and entry.value else
                           b"" if has_value else None))
    found.revision = lib.muster_store_result_revision(object_)
    lib.muster_store_result_release(object_)
    return found


def op(kind: str, key: Text = b"", value: Text = None, *, if_absent: bool = False, if_present: bool = False,
       if_value: Text = None, if_version: int = None, number: int = 0, lease: int = 0, count: int = 0,
       rank: int = 0, version: int = 0) -> c.muster_store_op:
    """One operation for Store.transact(): `kind` is the name of a muster_store_op_kind, "set", "add", "try_pop"."""
    made = c.muster_store_op()
    made.kind = getattr(c, "MUSTER_STORE_" + kind.upper())
    made.kept = []  # memory that it points to

    def put(field, text):
        if text is None:
            return
        text = encoded(text)
        made.kept.append(text)
        setattr(made, field, ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p))
        setattr(made, field + "_bytes", len(text))
    put("key", key)
    put("value", value)
    put("expected", if_value)
    made.condition = (c.MUSTER_STORE_IF_ABSENT if if_absent else c.MUSTER_STORE_IF_PRESENT if if_present else
                      c.MUSTER_STORE_IF_VALUE if if_value is not None else
                      c.MUSTER_STORE_IF_VERSION if if_version is not None else c.MUSTER_STORE_ALWAYS)
    made.version = version if if_version is None else if_version
    made.number, made.lease, made.count, made.rank = number, lease, count, rank
    return made


class Store(Handle):
    """A store. Keys and values are bytes; text is encoded as UTF-8. `timeout`: seconds; None waits without limit. Each call
    has a form for coroutines, with an `a` before its name: `await store.aget(key)`."""
    _release = "muster_store_release"

    def __init__(self, url: Text, timeout: typing.Optional[float] = 60, grace: float = 0, opener=None, *, _handle=None):
        self._context = opener or context()
        if _handle is None:
            where = encoded(url)
            config = c.muster_store_config()
            config.struct_size, config.grace_ns = ctypes.sizeof(config), ns(grace)
            _handle = wait(self._context.completions.begin(
                lambda queue, tag, error: lib.muster_store_open_begin(self._context.handle, where, len(where),
                                                                      ctypes.byref(config), ns(timeout), queue, tag, error),
                self._opened, where))
        super().__init__(_handle)

    @staticmethod
    def of_cluster(cluster, opener, timeout) -> "Store":
        """The store that the members of a cluster share; `cluster`: its handle."""
        handle = wait(opener.completions.begin(
            lambda queue, tag, error: lib.muster_cluster_store_begin(cluster, ns(timeout), queue, tag, error), Store._opened))
        return Store(None, opener=opener, _handle=handle)

    @staticmethod
    def _opened(entry, detail):
        check(entry.status, detail)
        return entry.object

    def view(self, prefix: Text) -> "Store":
        """The same store, whose keys all begin with `prefix`."""
        text, made = encoded(prefix), ctypes.c_void_p()
        call("muster_store_view", self.handle, text, len(text), ctypes.byref(made))
        return Store(None, opener=self._context, _handle=made.value)

    def _begin(self, completions: Completions, ops, timeout):
        array = (c.muster_store_op * len(ops))(*ops)

        def ended(entry, detail):
            found = _entries(entry.object) if entry.object else Entries()
            if entry.status != c.MUSTER_OK:
                problem = error_of(entry.status, detail)
                if entry.status == c.MUSTER_E_CHANGED:
                    problem = Changed(entry.status, str(problem))
                    problem.entries = found
                raise problem
            return found
        return completions.begin(
            lambda queue, tag, error: lib.muster_store_begin(self.handle, array, len(ops), ns(timeout), queue, tag, None,
                                                             error), ended, array, ops, self)

    def transact(self, *ops, timeout: typing.Optional[float] = 60) -> Entries:
        """All of these operations at one moment, or none if a condition does not hold (Changed)."""
        return wait(self._begin(self._context.completions, ops, timeout))

    async def atransact(self, *ops, timeout: typing.Optional[float] = 60) -> Entries:
        """As transact()."""
        return await self._begin(self._context.completions_of_loop(), ops, timeout)

    def __repr__(self):
        return f"<muster.Store{' closed' if self.closed else ''}>"


def _define(name, document, make, pick):
    """Adds both forms of a call that is one request: make(...) gives its operations, pick(entries) its result."""
    def plain(self, *arguments, timeout=60, **options):
        return pick(self.transact(*make(*arguments, **options), timeout=timeout))

    async def coroutine(self, *arguments, timeout=60, **options):
        return pick(await self.atransact(*make(*arguments, **options), timeout=timeout))
    for function, called in ((plain, name), (coroutine, "a" + name)):
        function.__name__, function.__qualname__, function.__doc__ = called, "Store." + called, document
        setattr(Store, called, function)


_define("get", "get(key): the value; waits until the key is present.", lambda key: [op("get", key)], lambda e: e[0].value)
_define("read", "read(key): the value, or None if the key is absent.", lambda key: [op("read", key)], lambda e: e[0].value)
_define("set", "set(key, value, **conditions): sets the value; returns its version.",
        lambda key, value, **more: [op("set", key, value, **more)], lambda e: e[0].version)
_define("add", "add(key, number): adds to the decimal number in the key; returns the sum.",
        lambda key, number=1: [op("add", key, number=number)], lambda e: e[0].number)
_define("append", "append(key, value): returns the new length.", lambda key, value: [op("append", key, value)],
        lambda e: e[0].number)
_define("delete", "delete(key): was the key there?", lambda key: [op("delete", key)], lambda e: e[0].present)
_define("check", "check(*keys): are all of these keys there?", lambda *keys: [op("check", key) for key in keys],
        lambda e: all(one.present for one in e))
_define("wait", "wait(*keys): waits until all of these keys are there.", lambda *keys: [op("wait", key) for key in keys],
        lambda e: None)
_define("count", "count(prefix=''): the number of keys that begin with it.", lambda prefix="": [op("count", prefix)],
        lambda e: e[0].number)
_define("list", "list(prefix='', after=None, number=0): entries of the keys that begin with it, in byte order.",
        lambda prefix="", after=None, number=0: [op("list", prefix, after, number=number)], lambda e: e)
_define("push", "push(queue, value, limit=0): appends to a queue; returns its length.",
        lambda queue, value, limit=0: [op("push", queue, value, number=limit)], lambda e: e[0].number)
_define("pop", "pop(queue): removes the first value; waits until there is one.", lambda queue: [op("pop", queue)],
        lambda e: e[0].value)
_define("try_pop", "try_pop(queue): removes the first value, or returns None.", lambda queue: [op("try_pop", queue)],
        lambda e: e[0].value)
_define("length", "length(queue): the number of values.", lambda queue: [op("length", queue)], lambda e: e[0].number)
_define("changes", "changes(prefix='', revision=0): waits for changes after this revision; entries, and where to go on.",
        lambda prefix="", revision=0: [op("watch", prefix, version=revision)], lambda e: e)
_define("barrier", "barrier(name, rank, count): waits until all `count` members have arrived.",
        lambda name, rank, count: [op("barrier", name, rank=rank, count=count)], lambda e: None)


def _compare_set(key, expected, value):
    return [op("set", key, value, **({"if_absent": True} if expected is None else {"if_value": expected}))]


_define("compare_set", "compare_set(key, expected, value): sets it if it has the expected value (None: if it is absent); "
        "otherwise raises Changed.", _compare_set, lambda e: e[0].version)


class StoreServer(Handle):
    """A server of stores in this process, at an address of this host: port 0 is any. `data_dir`: a folder in which its
    contents survive it; by default they are in memory."""
    _release = "muster_store_server_release"

    def __init__(self, address: str = "tcp://127.0.0.1:0", data_dir: str = "", max_bytes: int = 0, opener=None):
        opener = opener or context()
        where, folder = encoded(address), encoded(data_dir)
        config = c.muster_store_server_config()
        config.struct_size, config.max_bytes = ctypes.sizeof(config), max_bytes
        if folder:
            config.data_dir, config.data_dir_bytes = folder, len(folder)
        made = ctypes.c_void_p()
        call("muster_store_server_open", opener.handle, where, len(where), ctypes.byref(config), ctypes.byref(made))
        super().__init__(made.value)

    @property
    def address(self) -> str:
        """What Store() opens."""
        return text_of(lib.muster_store_server_address, self.handle)

    def stats(self) -> dict:
        """Its counters: see muster_store_server_stats."""
        found = c.muster_store_server_stats()
        check(lib.muster_store_server_get_stats(self.handle, ctypes.byref(found)))
        return {name: getattr(found, name) for name, _ in found._fields_ if name != "reserved"}
