# SPDX-License-Identifier: MIT
"""Transports and cluster managers that are written in Python: subclasses of Transport and Manager."""
import ctypes
import os
import socket
import subprocess
import threading
import typing

from . import _surface as c
from ._core import Error, Handle, SLICE_NS, call, check, clusters, context, encoded, lib, text_of
from .streams import Stream

PIECE = 256 * 1024


def _failure(problem):
    """Status and text for the other side of a request."""
    status = problem.status if isinstance(problem, Error) and problem.status < 0 else c.MUSTER_E_UNREACHABLE
    return status, (str(problem) or type(problem).__name__).encode()[:200].decode(errors="ignore").encode()


class Server(Handle):
    """A queue of requests, and the thread that takes them; what Transport, Manager and Endpoint have in common."""
    _release = "muster_queue_release"

    def __init__(self, opener, name):
        self._context = opener or context()
        made = ctypes.c_void_p()
        call("muster_queue_create", self._context.handle, None, ctypes.byref(made))
        super().__init__(made.value, self._context)
        self._lock = threading.Lock()
        self._name, self._text = name, encoded(name)

    def _begin(self):
        self._thread = threading.Thread(target=self._serve, name=f"muster {self._name}", daemon=True)
        self._thread.start()

    def _serve(self):
        entry, detail = c.muster_completion(), c.muster_error()
        try:
            with self.used() as queue:
                while self._open:
                    status = lib.muster_queue_next(queue, SLICE_NS, ctypes.byref(entry), ctypes.byref(detail))
                    if status == c.MUSTER_OK:
                        self._take(queue, entry)
                    elif status != c.MUSTER_TIMEOUT:
                        return
        except Error:
            pass  # it is closed

    def _take(self, queue, entry):
        raise NotImplementedError

    def _apart(self, body, *arguments):
        """What a subclass does may wait: in a thread of its own."""
        threading.Thread(target=body, args=arguments, name=f"muster {self._name} request", daemon=True).start()


class Transport(Server):
    """A transport of this program. A subclass names a `scheme`, and says how to connect; its connections are sockets, or have
    the methods recv(), sendall(), shutdown() and close() of one. The library does the rest: it proves the secret, seals,
    half-closes, aborts, and notices silence.

        class Far(muster.Transport):
            scheme = "far"

            def open(self, address):                        # far://host:port
                host, port = address.split("://")[1].split(":")
                return socket.create_connection((host, int(port)))

            def listen(self, address, accepted): ...

        with Far():
            stream = muster.dial("far://host:1234")

    It serves until it is closed. `local`: bytes never leave this host. `seals`: connections are encrypted already."""
    scheme = ""
    local = False
    seals = False

    def open(self, address: str):
        """A connection to this address. An exception refuses the dial, and the dial raises its text. May wait."""
        raise NotImplementedError

    def listen(self, address: str, accepted: typing.Callable) -> typing.Tuple[str, typing.Callable]:
        """Listens: `accepted(connection, peer)` is to be called for each connection, in any thread. Returns the address that
        others dial, and a function that ends the listener. By default the transport cannot listen."""
        raise NotImplementedError

    def __init__(self, opener=None):
        super().__init__(opener, self.scheme)
        self._connections: typing.Dict[int, typing.Any] = {}
        self._listeners: typing.Dict[int, typing.Callable] = {}
        flags = (c.MUSTER_TRANSPORT_LOCAL if self.local else 0) | (c.MUSTER_TRANSPORT_SEALS if self.seals else 0)
        if type(self).listen is Transport.listen:
            flags |= c.MUSTER_TRANSPORT_NO_LISTEN
        call("muster_transport_serve", self._context.handle, self._text, len(self._text), flags, self.handle, 0)
        self._begin()

    def close(self) -> None:
        """Withdraws it; connections that are open end."""
        if not self.closed:
            lib.muster_transport_withdraw(self._context.handle, self._text, len(self._text))
        super().close()
        with self._lock:
            connections, listeners = list(self._connections.values()), list(self._listeners.values())
            self._connections.clear()
            self._listeners.clear()
        for connection in connections:
            _shut(connection)
        for stop in listeners:
            stop()

    def _take(self, queue, entry):
        kind, request = entry.kind, entry.request
        if kind == c.MUSTER_REQUEST_OPEN:
            self._apart(self._answer_open, queue, request)
        elif kind == c.MUSTER_REQUEST_LISTEN:
            self._apart(self._answer_listen, queue, request)
        elif kind == c.MUSTER_REQUEST_CLOSE:
            with self._lock:
                connection, stop = self._connections.pop(request, None), self._listeners.pop(request, None)
            if connection is not None:
                _shut(connection)
            if stop is not None:
                self._apart(stop)

    def _address(self, queue, request):
        return text_of(lambda _, place, size, out: lib.muster_request_address(queue, request, place, size, out), None)

    def _answer_open(self, _, request):
        try:
            with self.used() as queue:
                connection = None
                try:
                    connection = self.open(self._address(queue, request))
                    pump = ctypes.c_void_p()
                    call("muster_request_stream", queue, request, ctypes.byref(pump))
                except Exception as problem:  # pylint: disable=broad-except
                    if connection is not None:
                        connection.close()
                    status, text = _failure(problem)
                    lib.muster_request_fail(queue, request, status, text, len(text))
                    return
                self._pump(request, connection, Stream(pump.value, self._context))
        except Error:
            pass  # it is closed

    def _answer_listen(self, _, request):
        try:
            with self.used() as queue:
                try:
                    address, stop = self.listen(self._address(queue, request), lambda *of: self._accepted(request, *of))
                    with self._lock:
                        self._listeners[request] = stop
                    text = encoded(address)
                    call("muster_request_listening", queue, request, text, len(text))
                except Exception as problem:  # pylint: disable=broad-except
                    status, text = _failure(problem)
                    lib.muster_request_fail(queue, request, status, text, len(text))
        except Error:
            pass

    def _accepted(self, listener, connection, peer=""):
        request, pump, text = ctypes.c_uint64(), ctypes.c_void_p(), encoded(peer)[:200]
        try:
            with self.used() as queue:
                call("muster_transport_incoming", queue, listener, text, len(text), ctypes.byref(request), ctypes.byref(pump))
        except Error:
            connection.close()  # too many, or the listener is closed
            return
        self._pump(request.value, connection, Stream(pump.value, self._context))

    def _pump(self, request, connection, pump):
        with self._lock:
            self._connections[request] = connection
        out = threading.Thread(target=self._out, args=(connection, pump), name=f"muster {self._name} out", daemon=True)
        out.start()
        threading.Thread(target=self._in, args=(request, connection, pump, out), name=f"muster {self._name} in",
                         daemon=True).start()

    @staticmethod
    def _out(connection, pump):
        """From the library to the connection, until the library has no more."""
        place = bytearray(PIECE)
        view = memoryview(place)
        is_taken = True
        try:
            while True:
                size = pump.readinto(place)
                if size == 0:
                    if is_taken:
                        connection.shutdown(socket.SHUT_WR)
                    return
                try:
                    if is_taken:
                        connection.sendall(view[:size])
                except (BrokenPipeError, ConnectionResetError):
                    is_taken = False  # the peer receives no more; what it has sent is still received, and the end with it
        except Error:
            _shut(connection)  # the stream has failed
        except Exception as problem:  # pylint: disable=broad-except  # of the connection, whatever it is
            _abort(pump, problem)

    def _in(self, request, connection, pump, out):
        """From the connection to the library; then both are released."""
        try:
            while True:
                data = connection.recv(PIECE)
                if not data:
                    pump.finish()
                    break
                pump.write(data)
        except Error:
            pass  # the library wants no more: what it sends still goes out
        except Exception as problem:  # pylint: disable=broad-except
            _abort(pump, problem)
        out.join()
        pump.close()
        with self._lock:
            self._connections.pop(request, None)
        connection.close()


def _shut(connection):
    """Ends the calls of other threads on it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended


def _abort(pump, problem):
    try:
        pump.abort(0, str(problem)[:200])
    except Error:
        pass  # it has ended


class Launch:
    """Workers that a manager is to start: `count` of them, the first one with the number `first`."""

    def __init__(self, manager, request, what):
        self._manager, self._request, self._cluster = manager, request, clusters.get(what.cluster)
        launch = what.launch.contents
        self.first, self.count = what.member, what.count
        self.argv = _texts(launch.argv)
        self.env = dict(text.split("=", 1) for text in _texts(launch.envp))
        self.options = (launch.options or b"").decode()
        self.directory = (launch.directory or b"").decode() or None
        self.listen = (launch.listen or b"").decode() or None
        self._left = set(range(self.first, self.first + self.count))

    @property
    def members(self) -> range:
        """Their numbers."""
        return range(self.first, self.first + self.count)

    def ticket(self, member: int) -> bytes:
        """What the worker needs to join: a line, which has the secret. It gets it in MUSTER_WORKER_TICKET, or on the descriptor
        that MUSTER_WORKER_FD names."""
        text = text_of(lambda _, place, size, out: lib.muster_manager_ticket(self._manager.handle, self._request, member, place,
                                                                           size, out), None)
        return text.encode()

    def popen(self, member: int, argv: typing.Sequence[str] = (), **more) -> subprocess.Popen:
        """Starts a worker of this host, by subprocess.Popen: `argv` goes before its own, such as ["nice"]."""
        inner, outer = os.pipe()
        try:
            os.write(outer, self.ticket(member))
            return subprocess.Popen([*argv, *self.argv], env={**os.environ, **self.env, "MUSTER_WORKER_FD": str(inner)},
                                    cwd=self.directory, pass_fds=[inner], start_new_session=True, **more)
        finally:
            os.close(inner)
            os.close(outer)

    def ready(self, member: int, address: str = "", data: int = 0) -> None:
        """The worker was started. `address`: where it listens, if that is known here. `data`: a number that comes with every
        later request about it."""
        self._left.discard(member)
        text = encoded(address)
        call("muster_manager_worker_ready", self._manager.handle, self._request, member, text or None, len(text), data)

    def failed(self, member: int, why: str) -> None:
        """The worker could not be started."""
        self._left.discard(member)
        text = encoded(why)[:200]
        call("muster_manager_worker_failed", self._manager.handle, self._request, member, c.MUSTER_E_SYSTEM, text, len(text))

    def ended(self, member: int, how: str = "") -> None:
        """A worker that was started has ended: how, for people. The first sign of a worker that has not joined."""
        text = encoded(how)[:200]
        if self._cluster is None:
            raise Error(c.MUSTER_E_CLOSED, "the cluster is closed")
        with self._cluster.used() as cluster:
            call("muster_manager_worker_ended", self._manager.handle, cluster, member, text, len(text))


def _texts(array):
    found, at = [], 0
    array = ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))
    while array and array[at]:
        found.append(array[at].decode())
        at += 1
    return found


class Manager(Server):
    """A cluster manager of this program: it starts workers where only it can, and ends them. A subclass has a `name` for
    muster.Executor(manager=...), launch(), and of the other methods those that it needs; they may wait.

        class Queue(muster.Manager):
            name = "queue"

            def launch(self, launch):
                for member in launch.members:
                    submit(launch.argv, {**launch.env, "MUSTER_WORKER_TICKET": launch.ticket(member).decode()})
                    launch.ready(member)"""
    name = ""

    def launch(self, launch: Launch) -> None:
        """Starts workers: launch.ready() or launch.failed() for each. Those of which it has said nothing when it returns, or
        raises, have failed."""
        raise NotImplementedError

    def connect(self, member: int, address: str, data: int) -> str:
        """The address at which the master reaches a worker that listens at `address`."""
        raise NotImplementedError

    def interrupt(self, member: int, data: int) -> None:
        """Interrupts what a worker does."""
        raise NotImplementedError

    def kill(self, member: int, data: int) -> None:
        """Ends a worker by force."""
        raise NotImplementedError

    def joined(self, member: int, data: int) -> None:
        """A worker has joined."""
        raise NotImplementedError

    def gone(self, member: int, data: int) -> None:
        """A worker is gone, for whatever reason."""
        raise NotImplementedError

    def __init__(self, opener=None):
        super().__init__(opener, self.name)
        kinds = {"connect": c.MUSTER_MANAGER_CONNECT, "interrupt": c.MUSTER_MANAGER_INTERRUPT, "kill": c.MUSTER_MANAGER_KILL,
                 "joined": c.MUSTER_MANAGER_REGISTER, "gone": c.MUSTER_MANAGER_DEREGISTER}
        self._does = {kind: getattr(self, name) for name, kind in kinds.items()
                      if getattr(type(self), name) is not getattr(Manager, name)}
        call("muster_manager_serve", self._context.handle, self._text, len(self._text), sum(self._does), self.handle, 0)
        self._begin()

    def close(self) -> None:
        """Withdraws it; workers that have joined stay."""
        if not self.closed:
            lib.muster_manager_withdraw(self._context.handle, self._text, len(self._text))
        super().close()

    def _take(self, queue, entry):
        request = entry.request
        if entry.kind != c.MUSTER_REQUEST_MANAGER:
            return
        what = c.muster_manager_request()
        what.struct_size = ctypes.sizeof(what)
        if lib.muster_manager_request_read(queue, request, ctypes.byref(what)) != c.MUSTER_OK:
            return  # cancelled
        if what.operation == c.MUSTER_MANAGER_LAUNCH:
            try:
                launch = Launch(self, request, what)  # it copies what is good until the answer
            except ValueError as problem:  # text that is not UTF-8
                status, text = _failure(problem)
                lib.muster_manager_request_fail(queue, request, status, text, len(text))
                return
            self._apart(self._launch, request, launch)
        else:
            self._apart(self._answer, request, what.operation, what.member, what.data, (what.address or b"").decode())

    def _launch(self, request, launch):
        status, text = c.MUSTER_E_SYSTEM, b"the manager has not said that it was started"
        try:
            self.launch(launch)
        except Exception as problem:  # pylint: disable=broad-except
            status, text = _failure(problem)
        if launch._left and not self.closed:  # pylint: disable=protected-access
            lib.muster_manager_request_fail(self.handle, request, status, text, len(text))

    def _answer(self, request, operation, member, data, address):
        try:
            does = self._does.get(operation)
            if operation == c.MUSTER_MANAGER_CONNECT:
                found = encoded(does(member, address, data))
                call("muster_manager_request_done", self.handle, request, found, len(found))
                return
            if does is not None:
                does(member, data)
            call("muster_manager_request_done", self.handle, request, None, 0)
        except Exception as problem:  # pylint: disable=broad-except
            status, text = _failure(problem)
            if not self.closed:
                lib.muster_manager_request_fail(self.handle, request, status, text, len(text))


__all__ = ["Launch", "Manager", "Transport"]
