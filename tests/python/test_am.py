# SPDX-License-Identifier: MIT
"""Active messages: calls in both directions, of threads and coroutines, failures, limits, and the end of a peer."""
import asyncio
import contextlib
import io
import os
import signal
import threading
import unittest

from helpers import muster, together, until


class Endpoints(unittest.TestCase):
    def setUp(self):
        self.counted = 0
        self.there = muster.Endpoint({1: lambda peer, data: data.upper(), 2: self.count, 3: lambda peer, data: 1 // 0,
                                      4: lambda peer, data: bytes(100_000), 5: lambda peer, data: None})
        self.here = muster.Endpoint({7: lambda peer, data: f"{peer} {data.decode()}"})
        near, far = muster.pair()
        self.peer = self.here.add(near)
        self.back = self.there.add(far)
        self.assertTrue(near.closed)

    def tearDown(self):
        self.here.close()
        self.there.close()

    def count(self, _peer, data):
        self.counted += 1
        return data

    def test_calls(self):
        self.assertEqual(self.here.call(self.peer, 1, "hello"), b"HELLO")
        self.assertEqual(self.here.call(self.peer, 5), b"")
        self.assertEqual(self.there.call(self.back, 7, "back"), f"{self.peer} back".encode())
        data = bytes(range(256)) * 200
        self.assertEqual(self.here.call(self.peer, 2, data), data)

        def calls(number):
            return [self.here.call(self.peer, 2, f"{number} {i}") for i in range(200)]
        for number, replies in enumerate(together(*[lambda n=n: calls(n) for n in range(4)])):
            self.assertEqual(replies, [f"{number} {i}".encode() for i in range(200)])
        self.here.flush()
        self.assertEqual(self.counted, 801)
        self.assertEqual(self.here.peer(self.peer)["sent"], 803)

    def test_coroutines(self):
        async def all_at_once():
            return await asyncio.gather(*[self.here.acall(self.peer, 2, str(i)) for i in range(1000)])  # more than may
        self.assertEqual(asyncio.run(all_at_once()), [str(i).encode() for i in range(1000)])

    def test_failures(self):
        with contextlib.redirect_stderr(io.StringIO()) as printed, self.assertRaises(muster.Error) as caught:
            self.here.call(self.peer, 3)
        self.assertEqual(caught.exception.name, "MUSTER_E_INTERNAL")
        self.assertIn("ZeroDivisionError", printed.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as printed, self.assertRaises(muster.Error):
            self.here.call(self.peer, 4)
        self.assertIn("larger than the peer accepts", printed.getvalue())
        with self.assertRaises(muster.Error) as caught:
            self.here.call(self.peer, 99)
        self.assertEqual(caught.exception.name, "MUSTER_E_UNSUPPORTED")
        with self.assertRaises(muster.Invalid):
            self.here.call(self.peer, 1, bytes(70_000))
        with self.assertRaises(muster.Invalid):
            self.here.call(5, 1)
        self.assertEqual(self.here.call(self.peer, 1, "still"), b"STILL")

    def test_an_interrupt_ends_the_wait(self):
        entered, leave = threading.Event(), threading.Event()
        slow = muster.Endpoint({1: lambda peer, data: (entered.set(), leave.wait(30), b"")[2]})
        near, far = muster.pair()
        peer = self.here.add(near)
        slow.add(far)

        def interrupt():
            entered.wait(30)
            os.kill(os.getpid(), signal.SIGINT)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            self.here.call(peer, 1, timeout=30)
        thread.join()
        leave.set()
        slow.close()

    def test_the_end_of_a_peer(self):
        entered, leave = threading.Event(), threading.Event()

        def wait(_peer, _data):
            entered.set()
            leave.wait(30)
        slow = muster.Endpoint({1: wait})
        near, far = muster.pair()
        peer = self.here.add(near)
        slow.add(far)
        with self.assertRaises(muster.TimedOut):
            self.here.call(peer, 1, timeout=0.05)
        self.assertTrue(entered.wait(30))
        slow.disconnect(0, "enough")
        with self.assertRaisesRegex(muster.PeerGone, "enough"):
            self.here.call(peer, 1)
        until(lambda: self.here.peer(peer)["error"] is not None)
        leave.set()
        slow.close()
        with self.assertRaises(muster.Error):
            slow.call(0, 1)
        self.assertEqual(self.here.call(self.peer, 1, "others go on"), b"OTHERS GO ON")


if __name__ == "__main__":
    unittest.main()
