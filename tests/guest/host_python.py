# SPDX-License-Identifier: MIT
"""Python as a host, with nothing but ctypes: the scenarios of README.md that an interpreter meets.

Each runs in a fork of this process, which itself never loads the library."""
import asyncio
import atexit
import ctypes
import gc
import os
import select
import signal
import subprocess
import sys
import threading
import time

OK, AGAIN, TIMEOUT, FORKED, END = 0, 1, 2, -7, -21
EXTERNAL = 1
DONE_EXIT = 4
EXITED, KILLED, UNKNOWN = 1, 2, 3
SECOND = 1_000_000_000
LIBRARY = os.environ["MUSTER_LIBRARY"]
muster = None


class Completion(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("status", ctypes.c_int32), ("tag", ctypes.c_uint64),
                ("object", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("request", ctypes.c_uint64),
                ("events", ctypes.c_uint32), ("reserved", ctypes.c_uint32 * 5)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("os_errno", ctypes.c_int32), ("provider_code", ctypes.c_int64),
                ("rank", ctypes.c_uint32), ("message_bytes", ctypes.c_uint32), ("message", ctypes.c_char * 232)]


class ContextConfig(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32), ("secret", ctypes.c_char_p),
                ("secret_bytes", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 6)]


class ProcessConfig(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("argv", ctypes.POINTER(ctypes.c_char_p)), ("envp", ctypes.c_void_p), ("directory", ctypes.c_char_p),
                ("fds", ctypes.c_void_p), ("fd_count", ctypes.c_uint64)]


class ProcessExit(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("value", ctypes.c_int32)]


def load(mode=os.RTLD_NOW):
    global muster
    muster = ctypes.CDLL(LIBRARY, mode=mode)
    return muster


def check(status, expected=OK, error=None):
    assert status == expected, (status, expected, error.message.decode() if error else "")


def i64(value):
    return ctypes.c_int64(value)


class Host:
    """A context with a queue, as small as a binding can be."""

    def __init__(self, flags=0):
        self.context, self.queue, error = ctypes.c_void_p(), ctypes.c_void_p(), Error()
        config = ContextConfig(struct_size=ctypes.sizeof(ContextConfig), flags=flags)
        check(muster.muster_context_create(ctypes.byref(config), ctypes.byref(self.context), ctypes.byref(error)),
              OK, error)
        check(muster.muster_queue_create(self.context, None, ctypes.byref(self.queue), None))

    def post(self, tag):
        return muster.muster_queue_post(self.queue, ctypes.c_uint64(tag), ctypes.c_uint64(0))

    def next(self, timeout_ns):
        entry = Completion()
        return muster.muster_queue_next(self.queue, i64(timeout_ns), ctypes.byref(entry), None), entry

    def fd(self):
        fd = ctypes.c_int32()
        check(muster.muster_queue_fd(self.queue, ctypes.byref(fd)))
        return fd.value

    def pair(self):
        one, other = ctypes.c_void_p(), ctypes.c_void_p()
        check(muster.muster_stream_pair(self.context, None, ctypes.byref(one), ctypes.byref(other), None))
        return one, other

    def spawn(self, *argv):
        words = (ctypes.c_char_p * (len(argv) + 1))(*[word.encode() for word in argv], None)
        config = ProcessConfig(struct_size=ctypes.sizeof(ProcessConfig), argv=words)
        process, error = ctypes.c_void_p(), Error()
        check(muster.muster_process_spawn(self.context, ctypes.byref(config), ctypes.byref(process),
                                          ctypes.byref(error)), OK, error)
        return process

    def connect(self, address):
        """Two streams over an address; the dialling thread is Python's."""
        listener, accepted, dialled = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        text, size, error = ctypes.create_string_buffer(256), ctypes.c_size_t(), Error()
        check(muster.muster_transport_listen(self.context, address, ctypes.c_size_t(len(address)), None,
                                             ctypes.byref(listener), ctypes.byref(error)), OK, error)
        check(muster.muster_listener_address(listener, text, ctypes.c_size_t(256), ctypes.byref(size)))
        done = []
        thread = threading.Thread(target=lambda: done.append(muster.muster_transport_dial(
            self.context, text, size, None, i64(20 * SECOND), ctypes.byref(dialled), None)))
        thread.start()
        check(muster.muster_listener_accept(listener, i64(20 * SECOND), ctypes.byref(accepted), ctypes.byref(error)),
              OK, error)
        thread.join()
        assert done == [OK], done
        muster.muster_listener_release(listener)
        return dialled, accepted

    def close(self):
        check(muster.muster_queue_close(self.queue))
        muster.muster_queue_release(self.queue)
        assert muster.muster_context_close(self.context, i64(20 * SECOND)) >= 0
        muster.muster_context_release(self.context)


def talk(one, other, text=b"hello" * 1000):
    moved, got = ctypes.c_size_t(), ctypes.create_string_buffer(len(text))
    for source, target in ((one, other), (other, one)):
        check(muster.muster_stream_write(source, text, ctypes.c_size_t(len(text)), i64(20 * SECOND),
                                         ctypes.byref(moved)))
        check(muster.muster_stream_read_into(target, got, ctypes.c_size_t(len(text)), ctypes.c_uint32(0),
                                             i64(20 * SECOND), ctypes.byref(moved)))
        assert got.raw == text


def release(*streams):
    for stream in streams:
        muster.muster_stream_release(stream)


def addresses(number=0):
    return (b"inproc://guest", b"tcp://127.0.0.1:0", b"unix://@muster-python-%d-%d" % (os.getpid(), number),
            b"shm://python-%d-%d" % (os.getpid(), number))


def workout(number=0):
    for flags in (0, EXTERNAL):
        host = Host(flags)
        check(host.post(5))
        status, entry = host.next(20 * SECOND)
        assert (status, entry.tag) == (OK, 5)
        for address in addresses(number * 2 + flags):
            streams = host.connect(address)
            talk(*streams)
            release(*streams)
        host.close()


def dlopen_modes():
    before = [None]
    try:  # in a process of its own: the scenario below wants to load it at the right moment
        subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libuv.so.1')"], check=True,
                       stderr=subprocess.DEVNULL)
        before.append("libuv.so.1")
    except subprocess.CalledProcessError:
        print("        (without libuv.so.1, which is not there)")
    modes = [binding | scope | deep for binding in (os.RTLD_LAZY, os.RTLD_NOW)
             for scope in (os.RTLD_LOCAL, os.RTLD_GLOBAL) for deep in (0, os.RTLD_DEEPBIND)]
    for other in before:
        for mode in modes:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    if other:
                        ctypes.CDLL(other, mode=os.RTLD_GLOBAL)
                    load(mode)
                    workout()
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0, (other, mode)


def an_event_loop_polls_the_queue():
    load()
    host = Host()
    tags = []

    async def main():
        loop, drained = asyncio.get_running_loop(), asyncio.Event()

        def readable():
            while True:
                status, entry = host.next(0)
                if status == AGAIN:
                    break
                check(status)
                tags.append(entry.tag)
            if len(tags) == 1000:
                drained.set()

        fd = host.fd()
        loop.add_reader(fd, readable)

        def post():
            for tag in range(1000):
                check(host.post(tag))
                if tag % 100 == 0:
                    time.sleep(0.001)

        poster = threading.Thread(target=post)
        poster.start()
        await asyncio.wait_for(drained.wait(), 20)
        loop.remove_reader(fd)
        os.close(fd)
        poster.join()

    asyncio.run(main())
    assert tags == list(range(1000))
    host.close()


def an_event_loop_drives_an_external_context():
    load()
    host = Host(EXTERNAL)
    fd = ctypes.c_int32()
    check(muster.muster_context_fd(host.context, ctypes.byref(fd)))
    process = host.spawn("sh", "-c", "exit 7")
    check(muster.muster_process_watch(process, host.queue, ctypes.c_uint64(3)))
    end = time.monotonic() + 20
    while True:
        assert time.monotonic() < end
        select.select([fd.value], [], [], 1)
        assert muster.muster_context_progress(host.context, i64(0)) in (OK, AGAIN)
        status, entry = host.next(0)
        if status == OK:
            break
    assert (entry.kind, entry.tag, entry.bytes) == (DONE_EXIT, 3, EXITED << 32 | 7)
    muster.muster_process_release(process)
    os.close(fd.value)
    host.close()


def children_of_both_kinds():
    load()
    host = Host()
    for _ in range(10):
        own = subprocess.Popen(["sh", "-c", "exit 5"])
        process, how = host.spawn("sh", "-c", "exit 7"), ProcessExit()
        check(muster.muster_process_wait(process, i64(20 * SECOND), ctypes.byref(how)))
        assert (how.kind, how.value) == (EXITED, 7)
        assert own.wait() == 5
        muster.muster_process_release(process)
    host.close()


def sigchld_ignored():
    load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    host = Host()
    process, how = host.spawn("sh", "-c", "exit 7"), ProcessExit()
    check(muster.muster_process_wait(process, i64(20 * SECOND), ctypes.byref(how)))
    assert how.kind == UNKNOWN
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    muster.muster_process_release(process)
    host.close()


def sigchld_handler_reaps_everything():
    load()

    def reap(*_):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    signal.signal(signal.SIGCHLD, reap)
    host = Host()
    for _ in range(20):
        process, how = host.spawn("sh", "-c", "exit 7"), ProcessExit()
        check(muster.muster_process_wait(process, i64(20 * SECOND), ctypes.byref(how)))
        assert (how.kind, how.value) in ((UNKNOWN, 0), (EXITED, 7))
        muster.muster_process_release(process)
    host.close()


def signals_reach_python():
    load()
    host, seen = Host(), []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))
    for _ in range(100):
        count = len(seen)
        os.kill(os.getpid(), signal.SIGUSR1)
        host.next(1_000_000)
        assert len(seen) == count + 1
    assert all(seen)
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/status") as status:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        if fields["Name"] == "muster" and int(task) != os.getpid():
            blocked = int(fields["SigBlk"], 16)
            assert blocked >> (signal.SIGUSR1 - 1) & 1 and blocked >> (signal.SIGINT - 1) & 1
            assert not blocked >> (signal.SIGSEGV - 1) & 1
            break
    else:
        raise AssertionError("no thread of the library")
    host.close()


def an_interrupt_ends_a_wait_made_of_slices():
    load()
    host = Host()
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        while True:  # as a binding waits: no longer than it takes to look for signals
            host.next(10_000_000)
    except KeyboardInterrupt:
        pass
    host.close()


def children_inherit_nothing():
    load()
    host = Host()
    streams = [host.connect(address) for address in addresses()]
    # The descriptor by which the folder itself was listed is gone when each name is looked at.
    listing = ["sh", "-c", 'for f in /proc/$$/fd/*; do [ -e "$f" ] && echo "${f##*/}"; done']
    before = set(subprocess.run(listing, close_fds=True, capture_output=True, text=True).stdout.split())
    after = set(subprocess.run(listing, close_fds=False, capture_output=True, text=True).stdout.split())
    for fd in after - before:  # what this program was itself started with may be there
        assert not os.path.exists(f"/proc/self/fd/{fd}") or os.get_inheritable(int(fd)), fd
    for pair in streams:
        release(*pair)
    host.close()


def a_fork_is_told():
    load()
    host = Host()
    pairs = [host.connect(address) for address in addresses()]
    for way in range(2):
        pid = os.fork()
        if pid == 0:
            moved = ctypes.c_size_t()
            right = host.post(1) == FORKED and host.next(-1)[0] == FORKED
            for pair in pairs:
                right = right and muster.muster_stream_write(pair[0], b"x", ctypes.c_size_t(1), i64(-1),
                                                             ctypes.byref(moved)) == FORKED
                release(*pair)
            muster.muster_queue_release(host.queue)
            muster.muster_context_release(host.context)
            if way == 0:
                os._exit(41 if right else 1)
            sys.exit(41 if right else 1)  # through the interpreter's end
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 41
        for pair in pairs:
            talk(*pair)
    for pair in pairs:
        release(*pair)
    host.close()


def live_host():
    host = Host()
    pairs = [host.connect(address) for address in addresses()]
    got, moved = ctypes.create_string_buffer(10), ctypes.c_size_t()
    waits = [lambda: host.next(-1)]
    waits += [lambda pair=pair: muster.muster_stream_read(pair[1], got, ctypes.c_size_t(10), i64(-1),
                                                          ctypes.byref(moved)) for pair in pairs]
    for wait in waits:
        threading.Thread(target=wait, daemon=True).start()
    time.sleep(0.01)
    return host, pairs


def leave_by_the_end_of_main():
    load()
    globals()["kept"] = live_host()
    sys.exit(42)


def leave_by_os_exit():
    load()
    kept = live_host()
    os._exit(42 + (not kept))


def leave_by_an_exception():
    load()
    kept = live_host()
    sys.stderr = open(os.devnull, "w")
    raise RuntimeError(f"on purpose {kept}")


def leave_with_late_use():
    load()
    host, pairs = live_host()

    def late():
        host.post(1)
        for pair in pairs:
            release(*pair)
        muster.muster_queue_release(host.queue)
        muster.muster_context_release(host.context)

    atexit.register(late)
    sys.exit(42)


def leave_by_exec():
    load()
    kept = live_host()
    os.execlp("sh", "sh", "-c", "exit 42", str(kept))


def unload():
    import _ctypes
    for number in range(3):
        library = load()
        workout(number)
        host = Host()
        pair = host.connect(addresses(100 + number)[2])
        _ctypes.dlclose(library._handle)
        time.sleep(0.02)
        check(host.post(1))
        assert host.next(SECOND)[0] == OK
        talk(*pair)
        if number % 2:
            release(*pair)
            host.close()
    os._exit(0)


def finalizers_release_what_threads_use():
    load()

    class Stream:
        def __init__(self, handle):
            self.handle = handle

        def __del__(self):
            muster.muster_stream_release(self.handle)

    host = Host()
    for _ in range(100):
        one, other = (Stream(handle) for handle in host.pair())
        got, moved, results = ctypes.create_string_buffer(1), ctypes.c_size_t(), []
        inside = threading.Event()

        def read(handle=other.handle):
            inside.set()
            results.append(muster.muster_stream_read(handle, got, ctypes.c_size_t(1), i64(SECOND), ctypes.byref(moved)))

        reader = threading.Thread(target=read)
        reader.start()
        inside.wait()
        time.sleep(0.001)  # inside by now
        one.cycle, other.cycle = other, one
        del one, other
        gc.collect()  # on this thread, while the other is in there
        reader.join()
        assert results[0] in (END, TIMEOUT, -5), results
    host.close()


def two_contexts():
    load()
    first, second = Host(), Host(EXTERNAL)
    check(first.post(1))
    assert second.next(0)[0] == AGAIN
    first.close()
    check(second.post(2))
    assert second.next(0)[1].tag == 2
    second.close()


def wake_functions_come_and_go():
    load()
    host = Host()
    libc = ctypes.CDLL(None)
    stop = threading.Event()

    def post():
        while not stop.is_set():
            host.post(1)
            host.next(0)

    posters = [threading.Thread(target=post) for _ in range(2)]
    for poster in posters:
        poster.start()
    for _ in range(2000):
        check(muster.muster_queue_set_wake(host.queue, libc.sched_yield, None))
        check(muster.muster_queue_set_wake(host.queue, None, None))
    stop.set()
    for poster in posters:
        poster.join()
    host.close()


failures = 0


def run(body, how=0):
    global failures
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        body()
        sys.exit(0)  # the interpreter's whole end is part of every scenario
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    name = body.__name__.replace("_", " ")
    if code == how:
        print("ok     ", name)
    else:
        failures += 1
        print("FAILED ", name + ": ended by", code, "not", how)


for scenario in (dlopen_modes, an_event_loop_polls_the_queue, an_event_loop_drives_an_external_context,
                 children_of_both_kinds, sigchld_ignored, sigchld_handler_reaps_everything, signals_reach_python,
                 an_interrupt_ends_a_wait_made_of_slices, children_inherit_nothing, a_fork_is_told, unload,
                 finalizers_release_what_threads_use, two_contexts, wake_functions_come_and_go):
    run(scenario)
for _ in range(5):
    for scenario, code in ((leave_by_the_end_of_main, 42), (leave_by_os_exit, 42), (leave_by_an_exception, 1),
                           (leave_with_late_use, 42), (leave_by_exec, 42)):
        run(scenario, code)
sys.exit(failures != 0)
