# SPDX-License-Identifier: MIT
"""A worker of muster.Executor: started by a manager of a cluster, with its ticket."""
import ctypes
import multiprocessing.spawn
import os
import queue
import signal
import sys
import threading
import traceback

from . import _core, _pickles
from . import _surface as c
from . import trace
from ._core import Context, Error, call, in_slices, lib, ns
from .store import Store
from .streams import Stream

_cluster, _opener = None, None  # of this process

LABEL = b"muster.executor 1"


def _context():
    """A context by the ticket that this process was given."""
    handle = ctypes.c_void_p()
    call("muster_worker_context", None, 0, ctypes.byref(handle))
    made = Context.__new__(Context)
    made._adopt(handle.value)
    return made


def _events(cluster, opener, streams):
    """Passes the streams of the master on; None at the end."""
    event = c.muster_cluster_event()
    while True:
        status = in_slices(None, lambda left: lib.muster_cluster_next_event(cluster, left, ctypes.byref(event)))
        if status != c.MUSTER_OK or event.kind in (c.MUSTER_CLUSTER_LEAVE, c.MUSTER_CLUSTER_MASTER_GONE):
            break
        if event.kind == c.MUSTER_CLUSTER_STREAM:
            stream = Stream(event.stream, opener)
            label = bytes(event.label)[:event.label_bytes]
            if label == LABEL and event.member == c.MUSTER_CLUSTER_MASTER:
                streams.put(stream)
            else:
                stream.abort(0, "this member takes no such streams")
                stream.close()
        elif event.kind == c.MUSTER_CLUSTER_BROADCAST:
            lib.muster_broadcast_release(event.broadcast)
    streams.put(None)


class _Interrupts:
    """Between calls an interrupt is ignored; within one it raises KeyboardInterrupt there."""

    def __enter__(self):
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def number() -> int:
    """The number of this worker among the members of its cluster, from 1."""
    return lib.muster_cluster_self(_of_this_process())


def store(timeout=60) -> Store:
    """The store that the members of the cluster share: the one of `Executor.store()`."""
    return Store.of_cluster(_of_this_process(), _opener, timeout)


def _of_this_process():
    if _cluster is None:
        raise RuntimeError("this process is no worker of a muster.Executor")
    return _cluster


def _answer(task):
    """(True, results) or (False, an exception that can be pickled, its traceback)."""
    try:
        function, items, flow = task
        with trace.span(getattr(function, "__name__", "task")), _Interrupts():
            trace.mark("begins", flow)
            return True, [function(*args, **kwargs) for args, kwargs in items]
    except BaseException as problem:  # pylint: disable=broad-except
        text = "".join(traceback.format_exception(type(problem), problem, problem.__traceback__))
        problem.__traceback__ = None
        return False, problem, text


def _serve(stream):
    kind = None
    try:
        while True:
            kind, content = _pickles.receive(stream)
            if kind == "prepare":  # what the programs of multiprocessing do: __main__ of the master can be imported here
                if content:
                    multiprocessing.spawn.prepare(content)
                answer = (True, None)
            else:
                answer = _answer(content)
            try:
                _pickles.send(stream, answer)
            except Error:
                raise
            except Exception as problem:  # pylint: disable=broad-except
                text = traceback.format_exc()
                _pickles.send(stream, (False, TypeError(f"the result cannot be sent: {problem}"), text))
    except (EOFError, Error):
        pass  # the master has finished, or is gone
    except Exception:  # pylint: disable=broad-except
        stream.abort(0, f"a task cannot be read here: {traceback.format_exc(limit=-1)}"[:200])
    stream.close()


def main():
    """Serves the master until it lets this process go."""
    global _cluster, _opener  # pylint: disable=global-statement
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    opener = _context()
    config = c.muster_worker_config()
    config.struct_size = ctypes.sizeof(config)
    config.flags = c.MUSTER_WORKER_EXIT_WITH_MASTER | c.MUSTER_WORKER_RAISE_INTERRUPT
    cluster = ctypes.c_void_p()
    call("muster_worker_start", opener.handle, ctypes.byref(config), ns(60), ctypes.byref(cluster))
    _cluster, _opener = cluster.value, opener
    _core.adopt_context(opener)  # functions that open something use it, with the secret of the cluster
    streams = queue.SimpleQueue()
    threading.Thread(target=_events, args=(cluster.value, opener, streams), daemon=True).start()
    while True:
        stream = streams.get()
        if stream is None:
            break
        _serve(stream)
    lib.muster_cluster_close(cluster.value, ns(2))
    folder = os.environ.get("MUSTER_TRACE")
    if folder and trace.state()["on"]:  # what the library does when a process ends by exit()
        try:
            trace.save(os.path.join(folder, f"worker-{os.getpid()}.pftrace"))
        except Error as problem:
            print(problem, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
