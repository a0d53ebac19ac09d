# SPDX-License-Identifier: MIT
"""Collective operations of the members of a group, on arrays in place: NumPy's, or anything with the buffer protocol."""
import ctypes
import typing

from . import _surface as c
from ._core import Handle, Invalid, Memory, call, check, context, encoded, interruptible, lib, ns, wait
from .rendezvous import Round
from .store import Store

# Of the format of a buffer: native sizes on 64-bit Linux.
_TYPES = {"b": c.MUSTER_TYPE_I8, "B": c.MUSTER_TYPE_U8, "?": c.MUSTER_TYPE_U8, "c": c.MUSTER_TYPE_U8,
          "h": c.MUSTER_TYPE_I16, "H": c.MUSTER_TYPE_U16, "i": c.MUSTER_TYPE_I32, "I": c.MUSTER_TYPE_U32,
          "l": c.MUSTER_TYPE_I64, "L": c.MUSTER_TYPE_U64, "q": c.MUSTER_TYPE_I64, "Q": c.MUSTER_TYPE_U64,
          "e": c.MUSTER_TYPE_F16, "f": c.MUSTER_TYPE_F32, "d": c.MUSTER_TYPE_F64}
_REDUCTIONS = {name: getattr(c, "MUSTER_REDUCE_" + name.upper()) for name in
               ("sum", "product", "min", "max", "and", "or", "xor")}


def _type_of(array):
    view = memoryview(array)
    kind = _TYPES.get(view.format.lstrip("@="))
    if kind is None:
        raise Invalid(c.MUSTER_E_ARG, f"elements of the format {view.format!r} are not supported")
    if not view.c_contiguous:
        raise Invalid(c.MUSTER_E_ARG, "the array is not contiguous")
    return kind, view.nbytes // view.itemsize


class Group(Handle):
    """The members of a round, or `size` members that meet at a store under `name`. Each operation is called by all members,
    in the same order; each has a form for coroutines with an `a` before its name. `output=None`: in place. `timeout`:
    seconds; if it is over, or a member dies, the group has failed for all: PeerGone has the rank."""
    _release = "muster_group_release"

    def __init__(self, round: Round = None, *, store: Store = None, name: str = "group", rank: int = 0, size: int = 0,
                 listen: str = "tcp://127.0.0.1:0", shared_memory: bool = True, timeout: typing.Optional[float] = 60,
                 opener=None):
        opener = opener or context()
        config = c.muster_group_config()
        config.struct_size = ctypes.sizeof(config)
        where, called = encoded(listen), encoded(name)
        config.listen, config.listen_bytes = where, len(where)
        if round is not None:
            config.round = round.handle
        else:
            config.rank, config.size = rank, size
            if store is not None:
                config.store = store.handle
                config.name, config.name_bytes = ctypes.cast(ctypes.c_char_p(called), ctypes.c_void_p), len(called)
        config.flags = 0 if shared_memory else c.MUSTER_GROUP_NO_SHARED_MEMORY
        made = ctypes.c_void_p()
        interruptible(lambda: call("muster_group_open", opener.handle, ctypes.byref(config), ns(timeout),
                                   ctypes.byref(made)))
        super().__init__(made.value, round, store)
        self._context = opener
        self.rank, self.size = lib.muster_group_rank(made.value), lib.muster_group_size(made.value)

    def _begin(self, completions, kind, *, input=None, output=None, root=0, reduction=None, blocks=1, timeout=60):
        """`blocks`: the count of the operation is that of the array, divided by this."""
        operation = c.muster_group_operation()
        operation.struct_size, operation.kind, operation.root = ctypes.sizeof(operation), kind, root
        held = []
        if input is not None or output is not None:
            operation.type, count = _type_of(input if input is not None else output)
            if count % blocks:
                raise Invalid(c.MUSTER_E_ARG, f"the array has {count} elements, which are not {blocks} equal blocks")
            operation.count = count // blocks
        if input is not None:
            held.append(Memory(input))
            operation.input = held[-1].address
        if output is not None:
            held.append(Memory(output, writable=True))
            operation.output = held[-1].address
        if reduction is not None:
            if reduction not in _REDUCTIONS:
                raise Invalid(c.MUSTER_E_ARG, f"there is no reduction {reduction!r}: {', '.join(_REDUCTIONS)}")
            operation.reduction = _REDUCTIONS[reduction]

        def ended(entry, detail):
            for one in held:
                one.release()
            check(entry.status, detail)
            return output
        return completions.begin(
            lambda queue, tag, error: lib.muster_group_begin(self.handle, ctypes.byref(operation), ns(timeout), queue, tag,
                                                             error), ended, held, self)

    def close(self, timeout: typing.Optional[float] = 60) -> None:
        """Waits until all members have called it, and releases the group."""
        if not self.closed:
            with self.used() as handle:
                detail = c.muster_error()
                status = interruptible(lambda: lib.muster_group_close(handle, ns(timeout), ctypes.byref(detail)))
            super().close()
            check(status, detail)

    def revoke(self, text: str = "") -> None:
        """Ends the group for all members: operations in progress fail."""
        sentence = text.encode()
        check(lib.muster_group_revoke(self.handle, sentence, len(sentence)))

    def send(self, rank: int, data, timeout: typing.Optional[float] = 60) -> None:
        """Sends bytes to a member, which calls receive()."""
        with Memory(data) as place, self.used() as handle:
            interruptible(lambda: call("muster_group_send", handle, rank, place.address, place.bytes, ns(timeout)))

    def receive(self, rank: int, capacity: int, timeout: typing.Optional[float] = 60) -> bytes:
        """The next bytes that a member has sent here."""
        place, count = ctypes.create_string_buffer(max(1, capacity)), ctypes.c_uint64()
        with self.used() as handle:
            interruptible(lambda: call("muster_group_receive", handle, rank, place, capacity, ns(timeout),
                                       ctypes.byref(count)))
        return place.raw[:count.value]

    def __repr__(self):
        return f"<muster.Group: rank {self.rank} of {self.size}>"


def _define(name, document, prepare):
    kind = getattr(c, "MUSTER_GROUP_" + name.upper())

    def plain(self, *arguments, timeout=60, **options):
        return wait(self._begin(self._context.completions, kind, timeout=timeout, **prepare(self, *arguments, **options)))

    async def coroutine(self, *arguments, timeout=60, **options):
        return await self._begin(self._context.completions_of_loop(), kind, timeout=timeout,
                                 **prepare(self, *arguments, **options))
    for function, called in ((plain, name), (coroutine, "a" + name)):
        function.__name__, function.__qualname__, function.__doc__ = called, "Group." + called, document
        setattr(Group, called, function)


def _reduced(self, array, output=None, reduction="sum", **more):
    if output is None:
        return {"output": array, "reduction": reduction, **more}
    return {"input": array, "output": output, "reduction": reduction, **more}


_define("barrier", "barrier(): ends when all members have called it.", lambda self: {})
_define("broadcast", "broadcast(array, root=0): the array of the root is copied to that of all others.",
        lambda self, array, root=0: {"output": array, "root": root})
_define("all_reduce", "all_reduce(array, output=None, reduction='sum'): all members have the result.", _reduced)
_define("reduce", "reduce(array, output=None, reduction='sum', root=0): the root has the result.",
        lambda self, array, output=None, reduction="sum", root=0: {
            **({"input": array} if self.rank != root else {"output": array} if output is None else
               {"input": array, "output": output}), "reduction": reduction, "root": root})
_define("scan", "scan(array, output=None, reduction='sum'): rank r has the reduction of ranks 0 to r.", _reduced)
_define("reduce_scatter", "reduce_scatter(array, output, reduction='sum'): rank r has block r of the result.",
        lambda self, array, output, reduction="sum": {"input": array, "output": output, "reduction": reduction,
                                                      "blocks": self.size})
_define("gather", "gather(array, output=None, root=0): the root has the arrays of all members in `output`.",
        lambda self, array, output=None, root=0: {"input": array, "output": output if self.rank == root else None,
                                                  "root": root})
_define("all_gather", "all_gather(array, output): all members have the arrays of all in `output`.",
        lambda self, array, output: {"input": array, "output": output})
_define("scatter", "scatter(array, output, root=0): rank r has block r of the array of the root in `output`.",
        lambda self, array, output, root=0: {"input": array, "output": output, "root": root,
                                             "blocks": self.size} if self.rank == root else {"output": output, "root": root})
_define("all_to_all", "all_to_all(array, output): block s of `output` is block r of the array of rank s, at rank r.",
        lambda self, array, output: {"input": array, "output": output, "blocks": self.size})
