# SPDX-License-Identifier: MIT
"""Functions in other processes: results, failures, deaths, interrupts, and the ends of an executor."""
import array
import concurrent.futures
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from helpers import muster, until

HERE = os.path.dirname(os.path.abspath(__file__))


def square(x):
    return x * x


def fail(text):
    raise LookupError(text)


def own_process(_):
    time.sleep(0.002)
    return os.getpid()


def sleep_until(path):
    while not os.path.exists(path):
        time.sleep(0.005)
    return os.getpid()


def begin_and_wait(path):
    with open(path + str(os.getpid()), "w", encoding="ascii"):
        pass
    time.sleep(100)


def end(_):
    os.kill(os.getpid(), signal.SIGKILL)


def total(numbers):
    return sum(numbers), numbers


class Unfit:
    def __reduce__(self):
        raise pickle.PicklingError("this is not for others")


def give_unfit():
    return Unfit()


def greet_and_say_who(key):
    store = muster.worker.store()
    store.set("here", str(muster.worker.number()))
    return store.get(key, timeout=30)


def sum_of_ranks(size):
    rank = muster.worker.number()
    with muster.Group(store=muster.worker.store(), rank=rank, size=size) as group:
        mine = array.array("q", [rank, 1])
        group.all_reduce(mine)
        return list(mine)


def executor(workers, **more):
    return muster.Executor(workers, env={"PYTHONPATH": os.pathsep.join([HERE, sys.path[0], *sys.path[1:2]])}, **more)


class Executors(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def begun(self, prefix, count):
        """The functions that make a file with this prefix run."""
        until(lambda: len([name for name in os.listdir(self.folder.name) if name.startswith(prefix)]) >= count)

    def test_calls(self):
        with executor(3) as workers:
            self.assertEqual(workers.submit(square, 7).result(30), 49)
            self.assertEqual(list(workers.map(square, range(10_000))), [x * x for x in range(10_000)])
            self.assertEqual(list(workers.map(pow, [2, 3], [5, 2], chunksize=1)), [32, 9])
            self.assertEqual(list(workers.map(square, [])), [])
            workers.wait_for(3)
            self.assertGreater(len(set(workers.map(own_process, range(200), chunksize=1))), 1)
            numbers = array.array("d", range(500_000))
            summed, back = workers.submit(total, numbers).result(30)
            self.assertEqual((summed, back), (sum(numbers), numbers))
            large = pickle.PickleBuffer(bytearray(10_000_000))
            self.assertEqual(workers.submit(len, large).result(30), 10_000_000)
        with self.assertRaises(RuntimeError):
            workers.submit(square, 1)

    def test_the_store_that_all_share(self):
        with executor(2) as workers:
            workers.wait_for(2)
            store = workers.store()
            store.set("greeting", "hello")
            self.assertEqual(workers.submit(greet_and_say_who, "greeting").result(30), b"hello")
            store.wait("here", timeout=30)
        with self.assertRaises(RuntimeError):
            muster.worker.number()

    def test_a_group_of_master_and_workers(self):
        with executor(2) as workers:
            workers.wait_for(2)
            sums = [workers.submit(sum_of_ranks, 3) for _ in range(2)]
            with muster.Group(store=workers.store(), rank=0, size=3) as group:
                mine = array.array("q", [0, 1])
                group.all_reduce(mine)
            self.assertEqual([list(mine)] + [one.result(30) for one in sums], [[3, 3]] * 3)

    def test_an_end_right_after_a_worker_has_joined(self):
        begin = threading.Thread.start

        def begin_late(thread):  # as on a busy machine
            if thread.name.startswith("muster worker"):
                time.sleep(0.1)
            begin(thread)
        with unittest.mock.patch.object(threading.Thread, "start", begin_late):
            with executor(1) as workers:
                workers.wait_for(1)

    def test_failures_of_functions(self):
        with executor(1) as workers:
            with self.assertRaises(LookupError) as caught:
                workers.submit(fail, "not here").result(30)
            self.assertIn("in fail", str(caught.exception.__cause__))
            with self.assertRaises(LookupError):
                list(workers.map(fail, ["a", "b"]))
            with self.assertRaises((pickle.PicklingError, AttributeError)):
                workers.submit(lambda: 1).result(30)
            with self.assertRaises(TypeError):
                workers.submit(give_unfit).result(30)
            self.assertEqual(workers.submit(square, 3).result(30), 9)  # it goes on

    def test_a_worker_that_is_killed(self):
        with executor(3) as workers:
            workers.wait_for(3)
            results = workers.map(own_process, range(600), chunksize=1)
            first = next(results)
            os.kill(first, signal.SIGKILL)
            others = list(results)
            self.assertEqual(len(others), 599)
            self.assertNotIn(first, others[300:])
            self.assertEqual(len(workers.workers), 2)

    def test_a_task_that_ends_its_workers(self):
        with executor(4) as workers:
            workers.wait_for(4)
            with self.assertRaisesRegex(muster.BrokenWorker, "3 workers have ended"):
                workers.submit(end, 0).result(30)
            self.assertEqual(workers.submit(square, 2).result(30), 4)
            with self.assertRaises(concurrent.futures.BrokenExecutor):
                workers.submit(end, 0).result(30)
            with self.assertRaises(muster.BrokenWorker):
                workers.submit(square, 2).result(30)

    def test_workers_are_replaced(self):
        with executor(1, restart=True, max_tries=2) as workers:
            with self.assertRaises(muster.BrokenWorker):
                workers.submit(end, 0).result(60)
            self.assertEqual(workers.submit(square, 5).result(60), 25)

    def test_an_interrupt(self):
        with executor(1) as workers:
            future = workers.submit(begin_and_wait, self.path("begun"))
            self.begun("begun", 1)
            workers.interrupt(workers.workers[0])
            with self.assertRaises(KeyboardInterrupt):
                future.result(30)
            workers.interrupt(workers.workers[0])  # between calls it has no effect
            self.assertEqual(workers.submit(square, 4).result(30), 16)

    def test_cancelling_and_limits_of_time(self):
        with executor(1) as workers:
            running = workers.submit(sleep_until, self.path("now"))
            later = workers.submit(square, 2)
            self.assertTrue(later.cancel())
            with self.assertRaises(concurrent.futures.TimeoutError):
                next(workers.map(square, [1], timeout=0.1))
            with open(self.path("now"), "w", encoding="ascii"):
                pass
            self.assertEqual(running.result(30), workers.pid_of(workers.workers[0]))
            self.assertTrue(later.cancelled())
            workers.shutdown(wait=False, cancel_futures=True)

    def test_workers_that_cannot_be_started(self):
        with muster.Executor(2, argv=["/nowhere/python"], join_timeout=20, restart=True) as workers:
            with self.assertRaises(muster.Error):
                workers.wait_for(1, timeout=20)
            with self.assertRaises(muster.Error):
                workers.submit(square, 1).result(20)

    def test_other_transports(self):
        for where in (f"unix://@python-executor-{os.getpid()}-{{}}", f"shm://python-executor-{os.getpid()}-{{}}"):
            with executor(2, worker_listen=where) as workers:
                self.assertEqual(sum(workers.map(square, range(100))), sum(x * x for x in range(100)))

    def test_all_processes_are_gone(self):
        workers = executor(2)
        workers.wait_for(2)
        processes = [workers.pid_of(one) for one in workers.workers]
        futures = [workers.submit(begin_and_wait, self.path("last")) for _ in range(2)]
        self.begun("last", 2)
        workers.close(timeout=1)
        for future in futures:
            with self.assertRaises(muster.BrokenWorker):
                future.result(20)
        for process in processes:
            self.assertFalse(os.path.isdir(f"/proc/{process}"))


if __name__ == "__main__":
    unittest.main()
