# SPDX-License-Identifier: MIT
"""A process group of torch whose collective operations are those of a muster.Group, on tensors in the memory of the host."""
import inspect

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from .. import group as groups
from .. import store as stores
from .store import Store

NAME = "muster"
_OPERATIONS = {dist.ReduceOp.SUM: "sum", dist.ReduceOp.PRODUCT: "product", dist.ReduceOp.MIN: "min", dist.ReduceOp.MAX: "max",
               dist.ReduceOp.BAND: "and", dist.ReduceOp.BOR: "or", dist.ReduceOp.BXOR: "xor"}


def _reduction(op):
    for one, name in _OPERATIONS.items():
        if op == one:
            return name
    raise ValueError(f"the backend muster has no reduction {op}")


def _work(future, finish, tensors):
    """What torch waits for: a future of this package, and then the tensors that get the result. (Not a class of Python: torch
    keeps only the C++ part of such an object.)"""
    done = torch.futures.Future()

    def complete(future):
        try:
            future.result()
            if finish is not None:
                finish()
        except Exception as problem:  # pylint: disable=broad-except
            done.set_exception(RuntimeError(f"muster: {problem}"))
        else:
            done.set_result(tensors)
    future.add_done_callback(complete)
    return _create_work_from_future(done)


def _array(tensor):
    """The memory of a tensor as an array of NumPy: contiguous, and on the host."""
    if tensor.device.type != "cpu":
        raise ValueError("the backend muster has tensors in the memory of the host only")
    if tensor.dtype == torch.bool:
        tensor = tensor.view(torch.uint8)
    return tensor.numpy().reshape(-1)


class ProcessGroup(dist.ProcessGroup):
    """See muster.torch."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        if not isinstance(store, Store):
            raise ValueError("the backend muster needs a store of Muster: init_method='muster://...', or "
                             "store=muster.torch.Store(url)")
        self._rank, self._size, self._seconds = rank, size, timeout.total_seconds()
        self._group = groups.Group(store=store.muster, name="torch", rank=rank, size=size, timeout=self._seconds)

    def getBackendName(self):  # pylint: disable=invalid-name
        return NAME

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        return NAME

    def _begin(self, name, tensors, finish=None, **arguments):
        kind = getattr(groups.c, "MUSTER_GROUP_" + name.upper())
        future = self._group._begin(self._group._context.completions, kind, timeout=self._seconds, **arguments)
        return _work(future, finish, tensors)

    # Operations on a tensor whose memory is not contiguous use a copy.
    @staticmethod
    def _place(tensor):
        if tensor.is_contiguous():
            return tensor, None
        copy = tensor.contiguous()
        return copy, lambda: tensor.copy_(copy)

    def allreduce(self, tensors, opts=None):
        place, finish = self._place(tensors[0])
        op = opts.reduceOp if hasattr(opts, "reduceOp") else dist.ReduceOp.SUM
        return self._begin("all_reduce", tensors, finish, output=_array(place), reduction=_reduction(op))

    def allreduce_coalesced(self, tensors, opts=None):
        flat = torch.cat([one.reshape(-1) for one in tensors])

        def finish():
            at = 0
            for one in tensors:
                one.copy_(flat[at:at + one.numel()].reshape(one.shape))
                at += one.numel()
        return self._begin("all_reduce", tensors, finish, output=_array(flat), reduction=_reduction(opts.reduceOp))

    def broadcast(self, tensors, opts=None):
        place, finish = self._place(tensors[0])
        root = opts.rootRank if hasattr(opts, "rootRank") else 0
        return self._begin("broadcast", tensors, finish, output=_array(place), root=root)

    def reduce(self, tensors, opts=None):
        place, finish = self._place(tensors[0])
        what = {"output": _array(place)} if self._rank == opts.rootRank else {"input": _array(place)}
        return self._begin("reduce", tensors, finish, root=opts.rootRank, reduction=_reduction(opts.reduceOp), **what)

    def allgather(self, outputs, inputs, opts=None):
        source = inputs[0].contiguous()
        flat = torch.empty(self._size * source.numel(), dtype=source.dtype)

        def finish():
            for one, part in zip(outputs[0], flat.chunk(self._size)):
                one.copy_(part.reshape(one.shape))
        return self._begin("all_gather", outputs, finish, input=_array(source), output=_array(flat))

    def _allgather_base(self, output, source, opts=None):
        return self._begin("all_gather", [output], input=_array(source.contiguous()), output=_array(output))

    def gather(self, outputs, inputs, opts=None):
        source, is_root = inputs[0].contiguous(), self._rank == opts.rootRank
        flat = torch.empty(self._size * source.numel(), dtype=source.dtype) if is_root else None

        def finish():
            for one, part in zip(outputs[0] if is_root else [], flat.chunk(self._size) if is_root else []):
                one.copy_(part.reshape(one.shape))
        return self._begin("gather", outputs, finish, input=_array(source), output=_array(flat) if is_root else None,
                           root=opts.rootRank)

    def scatter(self, outputs, inputs, opts=None):
        place, finish = self._place(outputs[0])
        root = opts.rootRank
        what = {}
        if self._rank == root:
            what = {"input": _array(torch.cat([one.reshape(-1) for one in inputs[0]])), "blocks": self._size}
        return self._begin("scatter", outputs, finish, output=_array(place), root=root, **what)

    def reduce_scatter(self, outputs, inputs, opts=None):
        flat = torch.cat([one.reshape(-1) for one in inputs[0]])
        place, finish = self._place(outputs[0])
        return self._begin("reduce_scatter", outputs, finish, input=_array(flat), output=_array(place),
                           reduction=_reduction(opts.reduceOp), blocks=self._size)

    def _reduce_scatter_base(self, output, source, opts=None):
        return self._begin("reduce_scatter", [output], input=_array(source.contiguous()), output=_array(output),
                           reduction=_reduction(opts.reduceOp), blocks=self._size)

    def alltoall_base(self, output, source, output_sizes, input_sizes, opts=None):
        if output_sizes or input_sizes:
            raise ValueError("the backend muster exchanges blocks of equal size only")
        return self._begin("all_to_all", [output], input=_array(source.contiguous()), output=_array(output),
                           blocks=self._size)

    def barrier(self, opts=None):
        return self._begin("barrier", [])


def _create(store, rank, size, timeout):
    if dist.is_initialized():
        raise ValueError("the backend muster has the group of all ranks only: use another backend for further groups")
    while isinstance(store, dist.PrefixStore):  # of a group of a process: its keys get a prefix here, too
        inner = store.underlying_store if hasattr(store, "underlying_store") else None
        if inner is None:
            break
        store = inner
    return ProcessGroup(store, rank, size, timeout)


def register():
    """Makes torch know the backend `muster`."""
    if not hasattr(dist.Backend, NAME.upper()):
        more = {}
        if "devices" in inspect.signature(dist.Backend.register_backend).parameters:  # torch 2.1 and later
            more["devices"] = ["cpu"]
        dist.Backend.register_backend(NAME, _create, **more)


__all__ = ["ProcessGroup", "register", "stores"]
