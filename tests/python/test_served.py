# SPDX-License-Identifier: MIT
"""Transports and cluster managers that are written in Python."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from helpers import SECRET, muster, together, until


class Pipes(muster.Transport):
    """Unix sockets in a folder: pipes:///folder/name."""
    scheme = "pipes"
    local = True

    def __init__(self, opener=None):
        self.opened = []
        super().__init__(opener)

    def open(self, address):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address.split("://")[1])
        except OSError:
            connection.close()
            raise
        self.opened.append(connection)
        return connection

    def listen(self, address, accepted):
        path = address.split("://")[1]
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()

        def serve():
            while True:
                try:
                    accepted(server.accept()[0], "a program")
                except OSError:
                    return
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()

        def stop():
            server.shutdown(socket.SHUT_RDWR)
            thread.join(20)
            server.close()
            os.unlink(path)
        return address, stop


class OnlyDials(muster.Transport):
    scheme = "dials"

    def open(self, address):
        raise muster.Error(-1, "no way there")


def square(x):
    return x * x


def own_process(_):
    return os.getpid()


class Popen(muster.Manager):
    """Workers by subprocess; the second one cannot be started the first time."""
    name = "popen"

    def __init__(self, opener=None):
        self.processes, self.events, self.refuses = {}, [], {2}
        super().__init__(opener)

    def launch(self, launch):
        for member in launch.members:
            if member in self.refuses:
                launch.failed(member, "no bread")
                continue
            self.processes[member] = launch.popen(member)
            launch.ready(member, data=1000 + member)
            threading.Thread(target=self.watch, args=(launch, member), daemon=True).start()

    def watch(self, launch, member):
        code = self.processes[member].wait()
        try:
            launch.ended(member, f"code {code} of the test")
        except muster.Error:
            pass  # the cluster is closed

    def kill(self, member, data):
        self.events.append(("kill", member, data))
        self.processes[member].kill()

    def joined(self, member, data):
        self.events.append(("joined", member, data))

    def gone(self, member, data):
        self.events.append(("gone", member, data))


class Transports(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.address = f"pipes://{self.folder.name}/a"

    def tearDown(self):
        self.folder.cleanup()

    def pair(self):
        listener = muster.listen(self.address)
        here = muster.dial(self.address)
        return listener, here, listener.accept(20)

    def test_bytes_in_both_directions(self):
        with Pipes():
            listener, here, there = self.pair()
            self.assertEqual(there.peer, "a program")
            data = os.urandom(5_000_000)

            def send(by):
                by.write(data)
                by.finish()
            _, one, _, other = together(lambda: send(here), there.read, lambda: send(there), here.read)
            self.assertTrue(one == data and other == data)
            for stream in (here, there):
                stream.close()
            listener.close()
            until(lambda: not os.path.exists(f"{self.folder.name}/a"))

    def test_how_streams_end(self):
        with Pipes() as pipes:
            listener, here, there = self.pair()
            there.abort(5, "enough")
            with self.assertRaisesRegex(muster.PeerGone, "enough"):
                here.read()
            here.close()
            # A connection that breaks is no end of the data.
            here = muster.dial(self.address)
            there = listener.accept(20)
            here.write(b"x")
            self.assertEqual(there.read(1), b"x")
            pipes.opened[-1].shutdown(socket.SHUT_RDWR)
            with self.assertRaises(muster.PeerGone):
                there.read()
            # The secret is proved.
            other_job = muster.Context(secret=b"the secret of another job")
            with Pipes(other_job), self.assertRaises(muster.Error):
                muster.dial(self.address, timeout=10, opener=other_job)
            listener.close()
            with self.assertRaisesRegex(muster.Error, "No such file"):
                muster.dial(f"pipes://{self.folder.name}/none", timeout=10)
            with self.assertRaises(muster.Error):
                Pipes()  # the scheme has one
        with self.assertRaises(muster.Error):
            muster.dial(self.address, timeout=5)
        with OnlyDials():
            with self.assertRaisesRegex(muster.Error, "no way there"):
                muster.dial("dials://anywhere", timeout=10)
            with self.assertRaises(muster.Error):
                muster.listen("dials://anywhere")

    def test_a_killed_process_is_no_end(self):
        program = ("import sys; sys.path.insert(0, sys.argv[2])\nimport test_served as t\nwith t.Pipes():\n"
                   "    s = t.muster.dial(sys.argv[1]); s.write(b'here'); s.read()\n")
        with Pipes():
            listener = muster.listen(self.address)
            other = subprocess.Popen([sys.executable, "-c", program, self.address, os.path.dirname(os.path.abspath(__file__))],
                                     env={**os.environ, "MUSTER_SECRET": SECRET})
            there = listener.accept(30)
            self.assertEqual(there.readexactly(4), b"here")
            other.send_signal(signal.SIGKILL)
            with self.assertRaises(muster.PeerGone):
                there.read()
            other.wait(30)
            listener.close()


class Managers(unittest.TestCase):
    def test_workers_of_a_manager(self):
        with Popen() as manager:
            with muster.Executor(3, manager="popen", max_tries=1) as pool:
                until(lambda: pool.workers == [1, 3])  # and worker 2 has failed
                self.assertEqual(list(pool.map(square, range(20))), [x * x for x in range(20)])
                pids = {process.pid for process in manager.processes.values()}
                self.assertTrue(set(pool.map(own_process, range(50))) <= pids)
                self.assertIn(("joined", 3, 1003), manager.events)
                manager.processes[3].kill()
                until(lambda: pool.workers == [1])
                until(lambda: ("gone", 3, 1003) in manager.events)
                self.assertEqual(pool.submit(square, 5).result(60), 25)
            self.assertEqual(manager.processes[1].wait(30), 0)
        with self.assertRaises(muster.Error):
            muster.Executor(1, manager="popen")

    def test_a_launch_that_fails(self):
        class Broken(muster.Manager):
            name = "broken"

            def launch(self, launch):
                raise RuntimeError("the queue is closed today")
        with Broken(), muster.Executor(2, manager="broken") as pool:
            with self.assertRaisesRegex(muster.BrokenWorker, "the queue is closed today"):
                pool.submit(square, 1).result(60)


if __name__ == "__main__":
    unittest.main()
