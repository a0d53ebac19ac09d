#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""progress.py <muster>: what `muster run` shows of its waits: one line on a terminal, and none in a file."""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

muster = sys.argv[1]
os.environ.update(MUSTER_SECRET="a secret of the test", TERM="xterm", MUSTER_STATE_DIR="")
LIMIT = 60


class Terminal:
    """A command whose stderr is a terminal."""

    def __init__(self, *words):
        self.fd, inner = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen([muster, "run", *words], stdin=subprocess.DEVNULL, stdout=inner, stderr=inner)
        os.close(inner)

    def read_until(self, pattern):
        """Fails if it is not shown in time."""
        deadline = time.monotonic() + LIMIT
        while not re.search(pattern, self.text):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                sys.exit(f"FAILED: no {pattern!r} in {self.text!r}")
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:  # the other end is closed
                sys.exit(f"FAILED: no {pattern!r} before the end, in {self.text!r}")

    def end(self, status):
        """Reads the rest; the exit status has to be this one."""
        while True:
            try:
                more = os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                break
            if not more:
                break
            self.text += more
        found = self.process.wait(LIMIT)
        if found != status:
            sys.exit(f"FAILED: status {found}, not {status}: {self.text!r}")


with tempfile.TemporaryDirectory() as folder:
    store = subprocess.Popen([muster, "store", "--listen", "tcp://127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        url = store.stdout.readline().split()[-1]
        job = ["--rdzv", url, "--run-id", "j", "--nnodes", "2", "--", "sh", "-c", "echo works; until [ -e " + folder + "/go ]; do sleep 0.05; done"]

        # Joining; the line is gone before the log of the round and the output of the workers, which come in any order.
        first = Terminal(*job)
        first.read_until(r"\rmuster run: joining: 1 of 2 nodes \([1-9][0-9]* s\)\x1b\[K\r")
        with open(folder + "/log", "w+", encoding="utf-8") as log:
            second = subprocess.Popen([muster, "run", *job], stdout=log, stderr=log)
            first.read_until(r"round 1: ranks ([01]) to \1 of 2 here, node \1 of 2\r\n")
            first.read_until(r"works\r\n")
            if "\r\x1b[K" not in first.text[first.text.rindex("joining:"):]:
                sys.exit(f"FAILED: the line is left: {first.text!r}")
            with open(folder + "/go", "w", encoding="utf-8"):
                pass
            second.wait(LIMIT)
            first.end(0)
            log.seek(0)
            text = log.read()
        if "\r" in text or "\x1b" in text or "joining:" in text:
            sys.exit(f"FAILED: a file has {text!r}")

        # A worker that does not end when it is asked to.
        stubborn = Terminal("--grace", "3", "--", "sh", "-c", 'trap "" TERM; echo works; exec sleep 100')
        stubborn.read_until("works")
        stubborn.process.send_signal(signal.SIGTERM)
        stubborn.read_until(r"\rmuster run: stopping: 1 of 1 workers still run \([1-3] s\)\x1b\[K\r")
        stubborn.end(128 + signal.SIGTERM)
        if not stubborn.text.endswith("\r\x1b[K"):
            sys.exit(f"FAILED: the line is left: {stubborn.text!r}")
    finally:
        store.terminate()
        store.wait(LIMIT)
print("progress on a terminal, and none in a file")
