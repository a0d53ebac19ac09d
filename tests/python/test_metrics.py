# SPDX-License-Identifier: MIT
"""Metrics of a process, those of a job in a store, and the server that answers Prometheus with them."""
import http.client
import os
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

from helpers import muster, until
from muster.exporter import serve
from muster.metrics import published


class Metrics(unittest.TestCase):
    def setUp(self):
        self.server = muster.StoreServer()
        self.store = muster.Store(self.server.address)

    def tearDown(self):
        self.store.close()
        self.server.close()

    def test_text(self):
        self.store.set("a", "1")
        text = muster.metrics()
        self.assertIn("muster_store_server_keys{object=", text)
        self.assertIn(f'address="{self.server.address}"}} 1\n', text)
        self.assertIn("# TYPE muster_read_bytes_total counter\n", text)

    def test_round_trips(self):
        listener = muster.listen("tcp://127.0.0.1:0?upgrade=no")
        there = muster.dial(listener.address + "?upgrade=no")
        here = listener.accept()
        there.write(b"hello")
        here.read(5)
        until(lambda: "\nmuster_stream_round_trip_seconds{" in muster.metrics())
        with muster.Metrics(self.store, name="me", interval=0.1) as metrics:
            until(lambda: metrics.state()["published"] > 0)
            shown = subprocess.run([os.environ["MUSTER_COMMAND"], "top", "--of", self.server.address, "--once", "--interval", "0.2"],
                                   check=True, capture_output=True, text=True).stdout
            self.assertRegex(shown, r"\nme +store .*, round trips up to [0-9.]+ ms\n")
        for one in (there, here, listener):
            one.close()

    def test_publication(self):
        with muster.Metrics(self.store, name="me", interval=0.1) as metrics:
            until(lambda: metrics.state()["published"] > 2)
            self.assertEqual(metrics.state()["failed"], 0)
            self.store.set("muster/metrics/other \"one\"", "# HELP x y\n# TYPE x gauge\nx 5\nx{a=\"b\"} 6\n")
            text = published(self.store)
            self.assertIn('\nmuster_streams{process="me"} ', text)
            self.assertIn('# HELP x y\n# TYPE x gauge\nx{process="other \\"one\\""} 5\nx{process="other \\"one\\"",a="b"} 6\n', text)
            self.assertEqual(text.count("# TYPE muster_streams gauge"), 1)
        until(lambda: self.store.read("muster/metrics/me") is None)
        with self.assertRaises(muster.Invalid):
            muster.Metrics(self.store, name="a/b")

    def ask(self, port, path="/metrics", token=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    def test_server(self):
        with self.assertRaises(ValueError):
            serve(self.store)
        server = serve(self.store, ("127.0.0.1", 0), b"a token")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = server.server_address[1]
        with muster.Metrics(self.store, name="me", interval=0.1) as metrics:
            until(lambda: metrics.state()["published"] > 0)
            status, text = self.ask(port, token="a token")
            self.assertEqual(status, 200)
            self.assertIn('muster_process_cpu_seconds_total{process="me"} ', text)
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w")
        try:
            self.assertEqual(self.ask(port, token="another token")[0], 401)
            self.assertEqual(self.ask(port)[0], 401)
            self.assertEqual(self.ask(port, "/", "a token")[0], 404)
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        server.shutdown()
        server.server_close()
        thread.join(30)

    def test_command(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("the token\n")
            file.flush()
            command = [sys.executable, "-m", "muster.exporter", "--of", self.server.address, "--listen", "127.0.0.1:0",
                       "--token-file", file.name]
            environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(muster.__file__)))
            os.chmod(file.name, stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP)
            refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("other users can read", refused.stderr)
            os.chmod(file.name, stat.S_IRUSR | stat.S_IWUSR)
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
                try:
                    line = running.stdout.readline()
                    self.assertTrue(line.startswith("listening http://127.0.0.1:"), line)
                    port = int(line.rsplit(":", 1)[1].split("/")[0])
                    self.assertEqual(self.ask(port, token="the token")[0], 200)
                finally:
                    running.terminate()


if __name__ == "__main__":
    unittest.main()
