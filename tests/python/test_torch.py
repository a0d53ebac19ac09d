# SPDX-License-Identifier: MIT
"""muster.torch: the store, torchrun with --rdzv-backend=muster, init_method="muster://...", and the backend `muster`."""
import datetime
import os
import re
import socket
import subprocess
import sys
import unittest

from helpers import muster, together

import muster.torch
import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = dict(os.environ, PYTHONPATH=sys.path[0], OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def resolves(name):
    try:
        return bool(socket.getaddrinfo(name, 0))
    except OSError:
        return False


def run_all(commands, seconds=200, **more):
    """Their outputs, once all of them have succeeded."""
    running = [subprocess.Popen(command, env=dict(ENVIRONMENT, **more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True) for command in commands]
    outputs = together(*(lambda one=one: one.communicate(timeout=seconds)[0] for one in running))
    if any(one.returncode != 0 for one in running):
        raise AssertionError("\n".join(f"status {one.returncode}:\n{output}" for one, output in zip(running, outputs)))
    return "".join(outputs)


def expected(size, low=5):
    """The lines of job.py."""
    total = [float(size * (size + 1) // 2), float(size)]
    parts = [float(rank) for rank in range(size)]
    most = [[size - 1, 2], [1, 0]]
    return sorted(f"result {rank} {size} {total} {parts} {[size - 1, size]} {most} {low if rank == 0 else None} True"
                  for rank in range(size))


def lines_of(output):
    return sorted(re.findall(r"result \d+ \d+ .*?(?:True|False)", output))


class Store(unittest.TestCase):
    def setUp(self):
        self.server = muster.StoreServer()
        self.store = muster.torch.Store(self.server.address)

    def tearDown(self):
        self.server.close()

    def test_operations(self):
        store = self.store
        store.set("a", "b")
        self.assertEqual(store.get("a"), b"b")
        self.assertEqual((store.add("n", 3), store.add("n", 4), store.get("n")), (3, 7, b"7"))
        self.assertTrue(store.check(["a", "n"]) and not store.check(["a", "zz"]))
        self.assertEqual(store.num_keys(), 2)
        self.assertEqual(store.compare_set("a", "b", "c"), b"c")
        self.assertEqual(store.compare_set("a", "b", "d"), b"c")
        self.assertEqual(store.compare_set("new", "", "first"), b"first")
        self.assertEqual(store.compare_set("none", "expected", "y"), b"expected")
        self.assertTrue(store.delete_key("a") and not store.delete_key("a"))
        store.append("text", "x")
        store.append("text", "y")
        store.multi_set(["m1", "m2"], ["v1", "v2"])
        self.assertEqual(store.multi_get(["m1", "m2", "text"]), [b"v1", b"v2", b"xy"])
        store.queue_push("q", "1")
        self.assertEqual((store.queue_len("q"), store.queue_pop("q"), store.queue_len("q")), (1, b"1", 0))
        with self.assertRaises(RuntimeError):
            store.queue_pop("q", block=False)

    def test_below_a_prefix(self):
        prefix = dist.PrefixStore("outer", dist.PrefixStore("inner", self.store))
        prefix.set("k", "v")
        self.assertEqual(prefix.get("k"), b"v")
        self.assertEqual(self.store.get("inner/outer/k"), b"v")
        self.assertEqual(prefix.add("c", 2), 2)
        self.assertTrue(prefix.delete_key("k"))
        prefix.set("k2", b"x")
        prefix.wait(["k2", "c"], datetime.timedelta(seconds=5))

    def test_limits_of_time(self):
        with self.assertRaises(TimeoutError):
            self.store.wait(["never"], datetime.timedelta(seconds=0.2))
        self.store.set_timeout(datetime.timedelta(seconds=0.2))
        with self.assertRaises(muster.torch.StoreTimeout):
            self.store.get("never")
        with self.assertRaises(RuntimeError):  # what torch's own stores raise
            self.store.get("never")
        with self.assertRaisesRegex(Exception, "absent after"):
            dist.PrefixStore("p", self.store).wait(["never"], datetime.timedelta(seconds=0.2))

    def test_a_round_that_is_over(self):
        with muster.Store(self.server.address) as store:
            run = muster.Rendezvous("over", store=store, min=1)
            of_round = muster.torch.Store(run.join().store())
            of_round.set("a", "b")
            run.leave()
            with self.assertRaisesRegex(RuntimeError, "round of this store is over"):
                for _ in range(1000):
                    of_round.set("a", "c")
            run.close()


class Jobs(unittest.TestCase):
    def job(self, backend, url, count):
        return run_all([[sys.executable, os.path.join(HERE, "job.py"), backend, url]] * count)

    def test_gloo_by_a_rendezvous(self):
        self.assertEqual(lines_of(self.job("gloo", f"muster://127.0.0.1:{free_port()}/gloo?min=3", 3)), expected(3))

    def test_the_backend_muster(self):
        self.assertEqual(lines_of(self.job("muster", f"muster://127.0.0.1:{free_port()}/own?min=3", 3)), expected(3))

    @unittest.skipUnless(resolves("localhost") and resolves(socket.gethostname()),
                         "torchrun needs the names of this host, and they are not in /etc/hosts")
    def test_torchrun_goes_on_after_a_kill(self):
        agent = [sys.executable, "-m", "muster.torch", "--rdzv_backend=muster", f"--rdzv_endpoint=127.0.0.1:{free_port()}",
                 "--rdzv_id=job", "--nnodes=2", "--nproc_per_node=2", "--max_restarts=3", "--monitor_interval=0.2",
                 os.path.join(HERE, "job.py"), "gloo", "env://"]
        output = run_all([agent, agent], die="1")
        self.assertIn("exitcode: -9", output)
        self.assertEqual(lines_of(output), expected(4), output)

    def test_torchrun_of_a_closed_run(self):
        with muster.StoreServer() as server, muster.Store(server.address) as store:
            run = muster.Rendezvous("closed", store=store, min=1)
            run.close_run("nothing to do")
            handler = muster.torch.Handler("closed", server.address, 1, 1, join_timeout=20)
            with self.assertRaises(dist.elastic.rendezvous.RendezvousClosedError):
                handler.next_rendezvous()
            self.assertTrue(handler.is_closed())
            run.close()


if __name__ == "__main__":
    unittest.main()
