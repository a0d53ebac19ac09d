# SPDX-License-Identifier: MIT
"""Functions that are called in other processes: a concurrent.futures.Executor on a cluster of Muster."""
import collections
import concurrent.futures
import ctypes
import multiprocessing.spawn
import os
import random
import sys
import threading
import time
import typing

from . import _pickles
from . import _surface as c
from . import trace
from ._core import Error, Handle, call, check, clusters, context, encoded, error_of, in_slices, lib, ns, wait
from .store import Store
from .streams import Stream
from .worker import LABEL


class BrokenWorker(Error, concurrent.futures.BrokenExecutor):
    """No worker is left, or too many have ended while they had one task."""


class _RemoteTraceback(Exception):
    """The traceback of the worker, as the cause of its exception."""

    def __init__(self, text):
        super().__init__(text)
        self.text = text

    def __str__(self):
        return f'\n"""\n{self.text}"""'


class _Task:
    def __init__(self, function, items):
        self.function, self.items, self.future, self.tries = function, items, concurrent.futures.Future(), 0
        self.flow = random.getrandbits(64)  # in traces: it leads from submit() to the worker and back

    def begin(self):
        """False: it was cancelled."""
        return self.future.running() or self.future.set_running_or_notify_cancel()

    def fail(self, problem):
        if self.begin():
            self.future.set_exception(problem)


class Executor(Handle, concurrent.futures.Executor):
    """Workers that call functions. `workers`: their number; `manager`: "local", "ssh", "slurm", "mpi", or a manager of the
    host, with its `options` ("hosts=4*node1,node2"); `listen`: the address at which the workers reach this process, and
    `worker_listen` that at which a worker listens ("unix://...", "shm://...-{}", "zmq://...").

    submit() and map() are those of concurrent.futures. A task whose worker ends goes to another one, up to `max_tries`
    times in all; when no worker is left, tasks fail with BrokenWorker. With `restart` a worker that has ended is replaced.
    Functions, arguments and results are pickled; functions of the main program are found there as by multiprocessing."""
    _release = "muster_cluster_release"

    def __init__(self, workers: int = None, *, manager: str = "local", options: str = "", listen: str = "tcp://127.0.0.1:0",
                 worker_listen: str = "", argv: typing.Sequence[str] = (), env: typing.Dict[str, str] = None,
                 max_tries: int = 3, restart: bool = False, join_timeout: float = 60, opener=None):
        self._context = opener or context()
        workers = os.cpu_count() or 1 if workers is None else workers
        config = c.muster_cluster_config()
        config.struct_size, config.join_timeout_ns = ctypes.sizeof(config), ns(join_timeout)
        where = encoded(listen)
        config.listen, config.listen_bytes = where, len(where)
        made = ctypes.c_void_p()
        call("muster_cluster_open", self._context.handle, ctypes.byref(config), ctypes.byref(made))
        super().__init__(made.value)
        clusters[made.value] = self
        self._max_tries, self._restart = max_tries, restart
        self._launch = dict(manager=manager, options=options, worker_listen=worker_listen, env=env or {},
                            argv=list(argv) or [sys.executable, "-c", "from muster.worker import main; main()"])
        self._preparation = multiprocessing.spawn.get_preparation_data("muster.worker")
        for name in ("authkey", "log_to_stderr", "log_level", "start_method", "orig_dir"):
            self._preparation.pop(name, None)
        self._tasks = collections.deque()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._members: typing.Dict[int, threading.Thread] = {}
        self._expected, self._under_way, self._failure = 0, 0, None
        self._ending, self._closing = False, False
        self._events = threading.Thread(target=self._watch, name="muster executor", daemon=True)
        self._events.start()
        self.add(workers)

    # ---- workers

    def add(self, count: int) -> int:
        """Launches so many workers more; the number of the first one."""
        with self._lock:
            self._expected += count
        try:
            return self._start(count)
        except BaseException:
            with self._lock:
                self._expected -= count
            raise

    def _start(self, count):
        launch, first, kept = c.muster_launch(), ctypes.c_uint32(), []

        def texts(items):
            array = (ctypes.c_char_p * (len(items) + 1))(*[encoded(item) for item in items], None)
            kept.append(array)
            return ctypes.cast(array, type(launch.argv))
        path = os.pathsep.join(one for one in [os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                               os.environ.get("PYTHONPATH", "")] if one)
        env = {"PYTHONPATH": path, **self._launch["env"]}
        if os.environ.get("MUSTER_LIBRARY"):
            env.setdefault("MUSTER_LIBRARY", os.environ["MUSTER_LIBRARY"])
        launch.struct_size, launch.count = ctypes.sizeof(launch), count
        launch.manager, launch.options = encoded(self._launch["manager"]), encoded(self._launch["options"]) or None
        launch.listen = encoded(self._launch["worker_listen"]) or None
        launch.argv, launch.envp = texts(self._launch["argv"]), texts([f"{name}={value}" for name, value in env.items()])
        call("muster_cluster_add", self.handle, ctypes.byref(launch), ctypes.byref(first))
        return first.value

    @property
    def workers(self) -> typing.List[int]:
        """The numbers of those that are there."""
        with self._lock:
            return sorted(self._members)

    def wait_for(self, count: int, timeout: typing.Optional[float] = 60) -> None:
        """Until so many workers are there."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._members) >= count or self._failure, timeout):
                raise error_of(c.MUSTER_TIMEOUT)
            if len(self._members) < count:
                raise self._failure

    def store(self, timeout: typing.Optional[float] = 60) -> Store:
        """The store that this process and its workers share, until the executor is closed: `muster.worker.store()` is that
        of a worker. With it they can be a group, too: `Group(store=..., rank=muster.worker.number(), size=...)`, where this
        process has rank 0."""
        return Store.of_cluster(self.handle, self._context, timeout)

    def interrupt(self, worker: int) -> None:
        """Raises KeyboardInterrupt in the function that this worker calls."""
        check(lib.muster_cluster_interrupt(self.handle, worker))

    def pid_of(self, worker: int) -> int:
        """The process of a worker on this host; 0 where it is not known."""
        info = c.muster_member_info()
        check(lib.muster_cluster_get_member(self.handle, worker, ctypes.byref(info)))
        return info.pid

    def _watch(self):
        event, cluster = c.muster_cluster_event(), self.handle
        while True:
            status = in_slices(None, lambda left: lib.muster_cluster_next_event(cluster, left, ctypes.byref(event)))
            if status != c.MUSTER_OK:
                break
            if event.kind == c.MUSTER_CLUSTER_JOINED:
                member = event.member
                thread = threading.Thread(target=self._feed, args=(member,), name=f"muster worker {member}", daemon=True)
                with self._changed:
                    thread.start()  # before it can be found, and waited for
                    self._members[member] = thread
                    self._changed.notify_all()
            elif event.kind in (c.MUSTER_CLUSTER_FAILED, c.MUSTER_CLUSTER_DEAD, c.MUSTER_CLUSTER_REMOVED):
                self._lost(event.member, bytes(event.text)[:event.text_bytes].decode(errors="replace"))
            elif event.kind == c.MUSTER_CLUSTER_STREAM:
                Stream(event.stream, self._context).close()
            elif event.kind == c.MUSTER_CLUSTER_BROADCAST:
                lib.muster_broadcast_release(event.broadcast)

    def _lost(self, member, text):
        with self._changed:
            has_joined = self._members.pop(member, None) is not None  # a worker that cannot start is not started again
            restart = self._restart and has_joined and not self._ending
            self._expected -= 0 if restart else 1
            self._failure = BrokenWorker(c.MUSTER_E_PEER, f"worker {member}: {text}" if text else f"worker {member} has ended")
            self._changed.notify_all()
        if restart:
            try:
                self._start(1)
                return
            except Error as problem:
                with self._lock:
                    self._expected -= 1
                    self._failure = problem
        with self._changed:
            if self._expected > 0:
                return
            left, self._tasks = self._tasks, collections.deque()
        for task in left:
            task.fail(self._failure)

    # ---- tasks

    def submit(self, fn, /, *args, **kwargs) -> concurrent.futures.Future:
        """As that of concurrent.futures."""
        return self._put(_Task(fn, [(args, kwargs)]), lambda results: results[0])

    def map(self, fn, *iterables, timeout=None, chunksize=None):
        """As that of concurrent.futures; `chunksize`: entries that travel together, by default 16 chunks for each worker."""
        items = [(entry, {}) for entry in zip(*iterables)]
        if chunksize is None:
            chunksize = max(1, len(items) // (16 * max(1, self._expected)))
        futures = [self._put(_Task(fn, items[at:at + chunksize]), lambda results: results)
                   for at in range(0, len(items), chunksize)]
        until = None if timeout is None else timeout + time.monotonic()

        def results():
            try:
                for future in futures:
                    yield from future.result(None if until is None else until - time.monotonic())
            finally:
                for future in futures:
                    future.cancel()
        return results()

    def _put(self, task, pick):
        outer = concurrent.futures.Future()

        def ended(inner):
            if inner.cancelled() or not outer.set_running_or_notify_cancel():
                return
            if inner.exception() is not None:
                outer.set_exception(inner.exception())
            else:
                outer.set_result(pick(inner.result()))
        task.future.add_done_callback(ended)
        outer.add_done_callback(lambda done: task.future.cancel() if done.cancelled() else None)
        with self._changed:
            if self._ending:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._expected <= 0:
                raise self._failure or BrokenWorker(c.MUSTER_E_PEER, "the executor has no workers")
            self._tasks.append(task)
            self._changed.notify()
        trace.mark("task", task.flow)
        return outer

    def _next(self, member):
        """The next task for a worker; None: there will be none."""
        with self._changed:
            while True:
                if member not in self._members:
                    return None
                if self._tasks:
                    self._under_way += 1
                    return self._tasks.popleft()
                if self._ending and self._under_way == 0:  # otherwise the worker of a task may still end
                    return None
                self._changed.wait()

    def _again(self, task, problem):
        """The worker of a task has ended."""
        task.tries += 1
        if task.tries >= self._max_tries:
            task.fail(BrokenWorker(c.MUSTER_E_LIMIT, f"{task.tries} workers have ended while they had this task; the last "
                                   f"one: {problem}"))
            return
        with self._changed:
            if (self._expected > 0 or self._restart) and not self._closing:
                self._tasks.appendleft(task)
                self._changed.notify()
                return
        task.fail(self._failure or BrokenWorker(c.MUSTER_E_PEER, str(problem)))

    def _done(self):
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def _feed(self, member):
        """A thread for each worker: its stream, and one task after the other."""
        task = None
        try:
            stream = wait(self._context.completions.begin(
                lambda queue, tag, error: lib.muster_cluster_dial_begin(self.handle, member, LABEL, len(LABEL), ns(60), queue,
                                                                        tag, error),
                lambda entry, detail: check(entry.status, detail) or Stream(entry.object, self._context)))
            with stream:
                _pickles.send(stream, ("prepare", self._preparation))
                good, *rest = _pickles.receive(stream)
                while True:
                    task = self._next(member)
                    if task is None:
                        stream.finish()
                        return
                    if task.begin():
                        self._call(stream, task)
                    task = None
                    self._done()
        except (Error, EOFError) as problem:
            if task is not None:
                self._again(task, problem)
        except Exception as problem:  # pylint: disable=broad-except
            if task is not None:
                task.fail(problem)  # the answer cannot be read here
        if task is not None:
            self._done()

    @staticmethod
    def _call(stream, task):
        try:
            _pickles.send(stream, ("call", (task.function, task.items, task.flow)))
        except Error:
            raise
        except Exception as problem:  # pylint: disable=broad-except
            task.fail(problem)  # it cannot be pickled
            return
        good, *rest = _pickles.receive(stream)
        trace.mark("task done", task.flow)
        if good:
            task.future.set_result(rest[0])
        else:
            rest[0].__cause__ = _RemoteTraceback(rest[1])
            task.fail(rest[0])

    def shutdown(self, wait=True, *, cancel_futures=False):  # pylint: disable=redefined-outer-name
        """As that of concurrent.futures; the workers end."""
        with self._changed:
            first = not self._ending
            self._ending = True
            dropped = []
            if cancel_futures:
                dropped, self._tasks = list(self._tasks), collections.deque()
            feeders = list(self._members.values())
            self._changed.notify_all()
        for task in dropped:
            task.future.cancel()
        if not first and not wait:
            return
        if wait:
            for thread in feeders:
                thread.join()
            self.close()
        else:
            threading.Thread(target=lambda: self.shutdown(True), daemon=True).start()

    def close(self, timeout: typing.Optional[float] = 10) -> None:
        """Ends the workers now."""
        with self._changed:
            self._ending = self._closing = True
            self._changed.notify_all()
        if not self.closed:
            with self.used() as handle:
                lib.muster_cluster_close(handle, ns(timeout))
            self._events.join(10)
            Handle.close(self)

    def __exit__(self, *_):
        self.shutdown(wait=True)
        return False

    def __repr__(self):
        return f"<muster.Executor: {'closed' if self.closed else f'workers {self.workers}'}>"


__all__ = ["BrokenWorker", "Executor"]
