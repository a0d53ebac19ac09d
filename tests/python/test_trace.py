# SPDX-License-Identifier: MIT
"""Traces: spans, marks, files, and the arrows of tasks from process to process."""
import os
import re
import subprocess
import tempfile
import unittest

from helpers import muster


def square(x):
    return x * x


def summary_of(folder):
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".pftrace")]
    return subprocess.run([os.environ["MUSTER_COMMAND"], "trace", *files], check=True, capture_output=True, text=True).stdout


class Traces(unittest.TestCase):
    def tearDown(self):
        muster.trace.stop()

    def assert_times(self, text, name, times):
        found = re.search(rf"^  {re.escape(name)} +(\d+) times", text, re.MULTILINE)
        self.assertIsNotNone(found, f"no {name!r} in:\n{text}")
        self.assertEqual(int(found[1]), times, text)

    def test_spans_and_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pftrace")
            self.assertFalse(muster.trace.state()["on"])
            muster.trace.start("a test", 256)
            with self.assertRaises(muster.Error):
                muster.trace.start()
            with muster.trace.span("outer"):
                with muster.trace.span("inner"):
                    muster.trace.mark("now")
                with self.assertRaises(LookupError), muster.trace.span("fails"):
                    raise LookupError
            self.assertEqual(muster.trace.state(), {"on": True, "events": 7, "threads": 1, "offset": 0.0, "offset_error": None})
            muster.trace.save(path)
            with self.assertRaises(muster.Error) as caught:
                muster.trace.save("/no/such/folder")
            self.assertIn("/no/such/folder", str(caught.exception))
            text = summary_of(folder)
            for name in ("host outer", "host inner", "host now", "host fails"):
                self.assert_times(text, name, 1)

    def test_tasks_lead_from_process_to_process(self):
        with tempfile.TemporaryDirectory() as folder:
            muster.trace.start("master")
            with muster.Executor(2, env={"MUSTER_TRACE": folder}) as pool:
                pool.wait_for(2)
                self.assertEqual(list(pool.map(square, range(8), chunksize=1)), [x * x for x in range(8)])
            muster.trace.save(os.path.join(folder, "master.pftrace"))
            text = summary_of(folder)
            self.assert_times(text, "host task -> host begins", 8)
            self.assert_times(text, "host begins -> host task done", 8)
            self.assert_times(text, "cluster dial -> cluster stream", 2)
            self.assertEqual(len(re.findall("^python.*, process [0-9]+: ", text, re.MULTILINE)), 2, text)


if __name__ == "__main__":
    unittest.main()
