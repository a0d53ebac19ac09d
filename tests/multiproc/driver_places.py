# SPDX-License-Identifier: MIT
"""Where the nodes of run_driver.py are, and the store between them: networks of their own, and servers."""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
THIS_HOST, FIRST_NODE = "10.99.0.1", 10  # node i has 10.99.0.(10 + i)


class Broken(Exception):
    """What a sequence has shown to be wrong."""


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def enter_own_network():
    """Begins this program again in a network namespace of its own, without root in a user namespace too; returns there.
    False: this user can have none."""
    if os.environ.get("DRIVER_INSIDE") == "yes":
        return True
    how = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-Urn"]
    if not shutil.which("ip") or not shutil.which("unshare") or subprocess.run(
            how + ["true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return False
    os.environ["DRIVER_INSIDE"] = "yes"
    os.execvp("unshare", how + ["--kill-child", "--fork", sys.executable] + sys.argv)


class Network:
    """A bridge in the network namespace of this process, and for each node a namespace that is joined to it by a pair of
    interfaces. All of it ends with this process: descriptors hold the namespaces, nothing has a name."""

    def __init__(self, count):
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("addr", "add", THIS_HOST + "/24", "dev", "bridge")
        ip("link", "set", "bridge", "up")
        self.namespaces = [self.make(i) for i in range(count)]
        self.cut_off = set()

    def make(self, i):
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        checked(LIBC.unshare(CLONE_NEWNET))
        made = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        checked(LIBC.setns(own, CLONE_NEWNET))
        os.close(own)
        ip("link", "add", "node%d" % i, "type", "veth", "peer", "name", "out", "netns", "/proc/%d/fd/%d" % (os.getpid(), made))
        ip("link", "set", "node%d" % i, "master", "bridge")
        ip("link", "set", "node%d" % i, "up")
        for words in (("link", "set", "lo", "up"), ("addr", "add", self.address(i) + "/24", "dev", "out"),
                      ("link", "set", "out", "up")):
            subprocess.run(("ip",) + words, check=True, preexec_fn=lambda: checked(LIBC.setns(made, CLONE_NEWNET)))
        return made

    @staticmethod
    def address(i):
        return "10.99.0.%d" % (FIRST_NODE + i)

    def enter(self, i):
        checked(LIBC.setns(self.namespaces[i], CLONE_NEWNET))

    def cut(self, i):
        ip("link", "set", "node%d" % i, "down")
        self.cut_off.add(i)

    def heal(self, i):
        ip("link", "set", "node%d" % i, "up")
        self.cut_off.discard(i)


def ip(*words):
    subprocess.run(("ip",) + words, check=True)


def checked(status):
    if status != 0:
        raise OSError(ctypes.get_errno(), "a call about namespaces failed")


class Store:
    """The store of a sequence: a process, or what a node serves, or what the URL names."""
    KINDS = ("hosted", "tcp", "unix", "kept", "etcd")

    def __init__(self, muster, kind, folder, environment, host, node_host):
        self.muster, self.kind, self.folder, self.environment = muster, kind, folder, environment
        self.process, self.reader, self.port = None, None, free_port()
        if kind == "hosted":
            self.url = "tcp://%s:%d?host=auto" % (node_host, self.port)
        elif kind == "unix":
            self.url = "unix://%s/socket" % folder
        elif kind == "etcd":
            self.url = "etcd://%s:%d/driver" % (host, self.port)
        elif kind in ("tcp", "kept"):
            self.url = "tcp://%s:%d?host=no" % (host, self.port)
        else:
            self.url = kind
        self.host = host
        if kind in ("tcp", "unix", "kept", "etcd"):
            self.start()

    def can_restart(self):
        return self.kind in ("kept", "etcd")

    # Seconds between two signs of life: an etcd has no lease under 2 s; a lease is three times as long.
    def keep_alive(self):
        return 1 if self.url.startswith("etcd") else 0.2

    def start(self):
        if self.kind == "etcd":
            url = "http://%s:%d" % (self.host, self.port)
            command = ["etcd", "--data-dir", os.path.join(self.folder, "store"), "--listen-client-urls", url,
                       "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:0", "--logger", "zap",
                       "--log-outputs", "stdout"]
            ready = b"serving client traffic"
        else:
            command = [self.muster, "store", "--listen", self.url.split("?")[0]]
            if self.kind == "kept":
                command += ["--no-sync", "--data-dir", os.path.join(self.folder, "store")]
            ready = b"listening"
        with open(os.path.join(self.folder, "store.log"), "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                            env=self.environment, preexec_fn=die_with_parent)
        if not any(ready in line for line in self.process.stdout):
            raise Broken("the store does not start")
        self.reader = threading.Thread(target=self.process.stdout.read)  # what it logs must not fill the pipe
        self.reader.start()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            self.process.stdout.close()

    def restart(self):
        self.stop()
        self.start()
