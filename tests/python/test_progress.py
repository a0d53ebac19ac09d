# SPDX-License-Identifier: MIT
"""MUSTER_PROGRESS=1: one line on a terminal about what the master of a cluster waits for, and none in a file."""
import ctypes
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from helpers import muster

from muster import _surface as c
from muster._core import lib, ns

LIMIT = 60


def host(folder, seconds):
    """Launches two workers, which start when the file `go` exists; broadcasts to both while one worker is stopped; closes."""
    start = f"until [ -e {folder}/go ]; do sleep 0.02; done; exec {sys.executable} -c 'from muster.worker import main; main()'"
    pool = muster.Executor(2, argv=["sh", "-c", start])
    pool.wait_for(2)
    stopped = pool.workers[1]
    process = pool.pid_of(stopped)
    os.kill(process, signal.SIGSTOP)
    os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOWAIT)  # until all its threads have stopped: they run for a while
    bytes_, statuses = b"x" * (1 << 20), (ctypes.c_int32 * 2)()
    members = (ctypes.c_uint32 * 2)(*pool.workers)
    print("broadcasts", flush=True)
    status = lib.muster_cluster_broadcast(pool.handle, members, 2, b"b", 1, bytes_, len(bytes_), ns(seconds), statuses, None)
    print("broadcast", status, list(statuses), flush=True)
    # A worker that is stopped cannot leave: it is killed after a while.
    pool.close(2.5)
    print("closed", flush=True)


class Progress(unittest.TestCase):
    def run_host(self, folder, stderr, seconds):
        words = [sys.executable, __file__, "host", folder, str(seconds)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True,
                                env=dict(os.environ, MUSTER_PROGRESS="1", TERM="xterm"))

    def read_until(self, terminal, pattern):
        deadline = time.monotonic() + LIMIT
        while not re.search(pattern, self.text):
            ready = select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]
            self.assertTrue(ready, f"no {pattern!r} in {self.text!r}")
            self.text += os.read(terminal, 4096).decode(errors="replace")

    def test_on_a_terminal(self):
        self.text = ""
        with tempfile.TemporaryDirectory() as folder:
            terminal, inner = pty.openpty()
            process = self.run_host(folder, inner, 8)  # a line is shown after one second; on a busy machine later
            os.close(inner)
            self.read_until(terminal, r"\rmuster: 0 of 2 workers joined \(\d+ s\)")
            open(os.path.join(folder, "go"), "w").close()
            self.assertEqual(process.stdout.readline(), "broadcasts\n")
            self.read_until(terminal, r"\rmuster: broadcast received by 1 of 2 members \(\d+ s\)")
            self.assertEqual(process.stdout.readline(), f"broadcast {c.MUSTER_TIMEOUT} [0, {c.MUSTER_TIMEOUT}]\n")
            self.read_until(terminal, r"\rmuster: closing, 1 worker left \(\d+ s\)")
            self.assertEqual(process.stdout.readline(), "closed\n")
            try:
                while more := os.read(terminal, 4096):
                    self.text += more.decode(errors="replace")
            except OSError:  # the other end is closed
                pass
            self.assertEqual(process.wait(LIMIT), 0, self.text)
            process.stdout.close()
            self.assertTrue(self.text.endswith("\r\x1b[K"), self.text)  # the line is gone in the end

    def test_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "err"), "w+") as err:
            open(os.path.join(folder, "go"), "w").close()
            process = self.run_host(folder, err, 2.5)
            self.assertIn("closed\n", process.communicate(timeout=LIMIT)[0])
            err.seek(0)
            self.assertEqual((process.returncode, err.read()), (0, ""))


if __name__ == "__main__":
    if sys.argv[1:2] == ["host"]:
        host(sys.argv[2], float(sys.argv[3]))
    else:
        unittest.main()
