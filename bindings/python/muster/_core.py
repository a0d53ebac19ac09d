# SPDX-License-Identifier: MIT
"""The library, errors, memory of callers, the context of this process, and its completions."""
import asyncio
import atexit
import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import threading
import time
import weakref

from . import _surface as c

SLICE_NS = 100_000_000  # a blocking call returns so often, so that Python can handle signals


# ---- the library

def _load():
    """MUSTER_LIBRARY, the library inside this package (wheels), or that of the system."""
    packaged = os.path.join(os.path.dirname(__file__), "lib", "libmuster.so.0.1")
    named = os.environ.get("MUSTER_LIBRARY")
    tried = []
    for path in [named] if named else [packaged, "libmuster.so.0.1", "libmuster.so"]:
        if path == packaged and not os.path.exists(path):
            continue
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as problem:
            tried.append(str(problem))
    else:
        raise ImportError("libmuster was not found; name it in MUSTER_LIBRARY, or install it. Tried: " + "; ".join(tried))
    for name, (result, parameters) in c.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    plugins = os.path.join(os.path.dirname(packaged), "plugins")
    if os.path.isdir(plugins):
        os.environ.setdefault("MUSTER_PLUGIN_PATH", plugins)
    return library


lib = _load()


def version():
    """The version of the library, as text."""
    return lib.muster_version(None, None, None).decode()


# ---- errors

class Error(Exception):
    """A call of the library failed. `status`: a MUSTER_E_... value of the C surface; `name`: its name; `os_errno`: of
    the system call that failed, or 0; `rank`: of the member that caused it, or None."""

    def __init__(self, status, text="", os_errno=0, rank=None):
        self.status, self.os_errno, self.rank = status, os_errno, rank
        self.name = lib.muster_status_name(status).decode()
        super().__init__(text or lib.muster_status_text(status).decode())


class TimedOut(Error, TimeoutError):
    """The limit of time was over."""


class PeerGone(Error, ConnectionError):
    """The other side has ended, cannot be reached, or has aborted."""


class Canceled(Error):
    """The operation was cancelled."""


class Invalid(Error, ValueError):
    """An argument is not valid."""


class Refused(Error, PermissionError):
    """The secrets of the two sides differ, or the system does not permit it."""


class Stale(Error):
    """The call used an object of an earlier state: a round that is over, a block that was freed, changes that the store has discarded."""


_KINDS = {c.MUSTER_TIMEOUT: TimedOut, c.MUSTER_E_PEER: PeerGone, c.MUSTER_E_ABORTED: PeerGone,
          c.MUSTER_E_UNREACHABLE: PeerGone, c.MUSTER_E_STORE_LOST: PeerGone,
          c.MUSTER_E_CANCELED: Canceled, c.MUSTER_E_ARG: Invalid, c.MUSTER_E_ADDRESS: Invalid, c.MUSTER_E_STALE: Stale,
          c.MUSTER_E_AUTH: Refused, c.MUSTER_E_PERMISSION: Refused}
NO_RANK = 2 ** 32 - 1


def error_of(status, detail=None):
    """The exception of a status, with the detail if it belongs to it."""
    text, os_errno, rank = "", 0, None
    if detail is not None and detail.status == status and detail.message_bytes:
        text = detail.message.decode(errors="replace")
        os_errno = detail.os_errno
        rank = None if detail.rank == NO_RANK else detail.rank
    return _KINDS.get(status, Error)(status, text, os_errno, rank)


def check(status, detail=None):
    """Raises unless the status is MUSTER_OK."""
    if status != c.MUSTER_OK:
        raise error_of(status, detail)


def call(name, *arguments):
    """A call whose last parameter is the place of an error."""
    detail = c.muster_error()
    check(getattr(lib, name)(*arguments, ctypes.byref(detail)), detail)


def interruptible(body):
    """Runs a call that waits in the library in a thread, if this is the thread that gets signals: Ctrl-C ends the wait,
    and the call goes on until its limit of time."""
    if threading.current_thread() is not threading.main_thread():
        return body()
    future = concurrent.futures.Future()

    def run():
        try:
            future.set_result(body())
        except BaseException as problem:  # pylint: disable=broad-except
            future.set_exception(problem)
    threading.Thread(target=run, daemon=True, name="muster call").start()
    return future.result()


# ---- time and memory

def ns(seconds):
    """Of a limit of time in seconds; None: no limit."""
    return -1 if seconds is None else max(0, min(int(seconds * 1e9), 2 ** 62))


def in_slices(seconds, attempt):
    """Calls `attempt(timeout_ns)` until it returns another status than MUSTER_TIMEOUT, or the time is over."""
    until = None if seconds is None else time.monotonic_ns() + ns(seconds)
    if seconds == 0:
        return attempt(0)
    while True:
        left = SLICE_NS if until is None else max(1, min(SLICE_NS, until - time.monotonic_ns()))
        status = attempt(left)
        if status != c.MUSTER_TIMEOUT or (until is not None and time.monotonic_ns() >= until):
            return status


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_SIMPLE, _WRITABLE = 0, 1
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int], ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.c_void_p], None


class Memory:
    """The contiguous memory of an object with the buffer protocol, held until release(): nothing is copied."""

    def __init__(self, owner, writable=False):
        self._view = _PyBuffer()
        self._held = False
        _get_buffer(owner, ctypes.addressof(self._view), _WRITABLE if writable else _SIMPLE)  # raises BufferError
        self._held = True
        self.address, self.bytes = self._view.buf, self._view.len

    def release(self):
        if self._held:
            self._held = False
            _release_buffer(ctypes.addressof(self._view))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    __del__ = release


def encoded(text):
    """Bytes of a text or of bytes."""
    return text.encode() if isinstance(text, str) else bytes(memoryview(text))


def text_of(function, handle):
    """A text that the library writes to memory of the caller."""
    size = ctypes.c_size_t()
    check(function(handle, None, 0, ctypes.byref(size)))
    place = ctypes.create_string_buffer(size.value + 1)
    check(function(handle, place, len(place), ctypes.byref(size)))
    return place.raw[:size.value].decode(errors="replace")


class Handle:
    """An object of the library: released once, when no call uses it any more, at the latest when it is collected."""
    _release = None  # name of the function

    def __init__(self, handle, *kept):
        self._handle, self._pid, self._kept = handle, os.getpid(), kept
        self._uses, self._uses_lock = 1, threading.Lock()
        self._open = True

    @property
    def handle(self):
        """For a call that does not wait."""
        if not self._open:
            raise Invalid(c.MUSTER_E_CLOSED, f"the {type(self).__name__} is closed")
        return self._handle

    @contextlib.contextmanager
    def used(self):
        """The handle, for calls that wait: another thread may close the object meanwhile."""
        with self._uses_lock:
            handle = self.handle
            self._uses += 1
        try:
            yield handle
        finally:
            self._leave()

    def in_slices(self, seconds, attempt):
        """As in_slices(); ends when another thread closes the object."""
        def attempt_if_open(left):
            return attempt(left) if self._open else c.MUSTER_E_CLOSED
        return in_slices(seconds, attempt_if_open)

    def _leave(self):
        with self._uses_lock:
            self._uses -= 1
            is_last = self._uses == 0
        if is_last and self._pid == os.getpid():
            getattr(lib, self._release)(self._handle)

    @property
    def closed(self):
        return not self._open

    def close(self):
        """Releases it; a second call does nothing."""
        with self._uses_lock:
            was_open, self._open = self._open, False
        if was_open:
            self._leave()

    def detach(self):
        """The library has taken the handle over: this object is closed, and releases nothing."""
        with self._uses_lock:
            self._open = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_open", False):
            Handle.close(self)


clusters = weakref.WeakValueDictionary()  # what has the handle of a cluster, by the handle, for managers of this program


# ---- completions

class Completions:
    """A queue of the library, and what waits for its entries. A thread serves it, or an event loop of asyncio by the one
    descriptor of the queue."""

    def __init__(self, context, loop=None):
        self.context, self._loop = context, loop
        handle = ctypes.c_void_p()
        call("muster_queue_create", context.handle, None, ctypes.byref(handle))
        self.queue, self._pid = handle.value, os.getpid()
        self._taken_from = self.queue  # by the thread or loop, which ends before it is released
        self._waiting, self._tags, self._lock = {}, itertools.count(1), threading.Lock()
        self._watchers = {}
        if loop is None:
            self._thread = threading.Thread(target=self._serve, name="muster completions", daemon=True)
            self._thread.start()
            # Python ends a thread where it takes the GIL, which may be inside C++ of torch; so this one ends before.
            atexit.register(self.close)
        else:
            fd = ctypes.c_int32()
            check(lib.muster_queue_fd(self.queue, ctypes.byref(fd)))
            self._fd = fd.value
            loop.add_reader(self._fd, self._drain)

    def begin(self, start, convert=None, *kept):
        """Begins an operation by `start(queue, tag, error)`; the future that has `convert(entry)` when its entry comes.
        `kept` lives as long. A future that is cancelled cancels the operation."""
        future = self._loop.create_future() if self._loop else concurrent.futures.Future()
        tag = next(self._tags)
        with self._lock:
            self._waiting[tag] = (future, convert, kept)
        detail = c.muster_error()
        status = start(self.queue, tag, ctypes.byref(detail))
        if status != c.MUSTER_OK:
            with self._lock:
                del self._waiting[tag]
            raise error_of(status, detail)
        future.add_done_callback(
            lambda done: lib.muster_queue_cancel_operation(self.queue, tag) if done.cancelled() else None)
        return future

    def watch(self, notice, other=None):
        """A tag whose entries of readiness call `notice(events)`, and those of another kind `other(entry)`."""
        tag = next(self._tags)
        with self._lock:
            self._watchers[tag] = (notice, other)
        return tag

    def forget(self, tag):
        with self._lock:
            self._watchers.pop(tag, None)

    def forget_later(self, tag):
        """Behind the entries that are in the queue now."""
        def both(_):
            self.forget(tag)
            self.forget(behind)
        behind = self.watch(None, both)
        with self._lock:  # the queue is not closed meanwhile
            status = lib.muster_queue_post(self.queue, behind, 0)
        if status != c.MUSTER_OK:
            both(None)

    def _take(self, timeout_ns):
        entry, detail = c.muster_completion(), c.muster_error()
        status = lib.muster_queue_next(self._taken_from, timeout_ns, ctypes.byref(entry), ctypes.byref(detail))
        if status != c.MUSTER_OK:
            return status
        with self._lock:
            notice, other = self._watchers.get(entry.tag, (None, None))
        if entry.kind == c.MUSTER_EVENT_READY:
            if notice is not None:
                notice(entry.events)
            return status
        if other is not None:
            other(entry)
            return status
        with self._lock:
            future, convert, _ = self._waiting.pop(entry.tag, (None, None, None))
        if future is None:
            return status
        try:
            result = convert(entry, detail) if convert else check(entry.status, detail)
        except BaseException as problem:  # pylint: disable=broad-except
            self._settle(future, future.set_exception, problem)
        else:
            self._settle(future, future.set_result, result)
        return status

    def _settle(self, future, how, what):
        if self._loop is None and not future.set_running_or_notify_cancel():
            return
        if not future.done():
            how(what)

    def _serve(self):
        while self._take(-1) in (c.MUSTER_OK, c.MUSTER_E_CANCELED):
            pass

    def _drain(self):
        while self._take(0) == c.MUSTER_OK:
            pass

    def close(self):
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
        if self._pid != os.getpid():
            return
        with self._lock:
            queue, self.queue = self.queue, None  # calls that come later fail, and find no queue that was released
        lib.muster_queue_close(queue)
        if self._loop is None:
            atexit.unregister(self.close)
            if threading.current_thread() is not self._thread:
                self._thread.join(10)
        if self._loop is not None or not self._thread.is_alive():
            lib.muster_queue_release(queue)


def wait(future):
    """The result of an operation that was begun; an interrupt cancels it."""
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


# ---- the context

class Context:
    """An instance of the library in this process: a thread of the library, the secret, and what is opened with it. Most
    programs use `muster.context()`, the one of the process. `secret`: bytes or text that all members share; by default
    the environment variable MUSTER_SECRET, or a random one, which processes that this one starts by muster inherit."""

    def __init__(self, secret=None, window=0):
        config = c.muster_context_config()
        config.struct_size = ctypes.sizeof(config)
        self._secret = None if secret is None else ctypes.create_string_buffer(encoded(secret))
        if secret is not None:
            config.secret, config.secret_bytes = ctypes.addressof(self._secret), len(self._secret) - 1
        config.window_bytes = window
        handle = ctypes.c_void_p()
        call("muster_context_create", ctypes.byref(config), ctypes.byref(handle))
        self._adopt(handle.value)

    def _adopt(self, handle):
        self.handle, self._pid = handle, os.getpid()
        self._threaded, self._loops, self._lock = None, weakref.WeakKeyDictionary(), threading.Lock()

    @property
    def completions(self):
        """Those that a thread serves."""
        with self._lock:
            if self._threaded is None:
                self._threaded = Completions(self)
            return self._threaded

    def completions_of_loop(self):
        """Those of the running event loop of asyncio."""
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._loops.get(loop)
            if found is None:
                found = self._loops[loop] = Completions(self, loop)
            return found

    def close(self, timeout=10):
        """Ends everything that was opened with it."""
        if self.handle is None or self._pid != os.getpid():
            return
        with self._lock:
            for one in [self._threaded, *self._loops.values()]:
                if one is not None:
                    one.close()
            self._threaded, self._loops = None, weakref.WeakKeyDictionary()
        handle, self.handle = self.handle, None
        lib.muster_context_close(handle, ns(timeout))
        lib.muster_context_release(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


_default, _default_lock, _default_options = None, threading.Lock(), {}


def context():
    """The context of this process, which is made on first use."""
    global _default  # pylint: disable=global-statement
    with _default_lock:
        if _default is None:
            _default = Context(**_default_options)
        return _default


def adopt_context(made):
    """Makes it the context of this process, if there is none."""
    global _default  # pylint: disable=global-statement
    with _default_lock:
        _default = _default or made


def configure(**options):
    """Options of the context of this process, before it is used: see Context."""
    with _default_lock:
        if _default is not None:
            raise Invalid(c.MUSTER_E_BUSY, "the context of this process is in use already: configure it before")
        _default_options.update(options)


def _after_fork():
    global _default, _default_lock  # pylint: disable=global-statement
    _default, _default_lock = None, threading.Lock()  # that of the parent cannot be used here


os.register_at_fork(after_in_child=_after_fork)
