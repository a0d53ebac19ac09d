# SPDX-License-Identifier: MIT
"""What the tests of the Python binding share."""
import os
import subprocess
import sys
import threading
import time

SECRET = "a secret of the tests"
os.environ["MUSTER_SECRET"] = SECRET
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bindings", "python"))

import muster  # noqa: E402  pylint: disable=wrong-import-position,unused-import


def together(*bodies):
    """Runs them at the same time, and returns their results; the first failure is raised."""
    results, problems = [None] * len(bodies), []

    def run(index, body):
        try:
            results[index] = body()
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(problem)
    threads = [threading.Thread(target=run, args=(index, body), daemon=True) for index, body in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if problems:
        raise problems[0]
    assert not any(thread.is_alive() for thread in threads), "a body did not end"
    return results


def until(condition, seconds=30):
    """Looks again and again until it holds: for what another process does, of which there is no event here."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.002)


def process(code, *arguments):
    """Another Python that runs this code, with the binding in its path; its output is a pipe."""
    environment = dict(os.environ, PYTHONPATH=sys.path[0])
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, stdout=subprocess.PIPE, text=True)
