# SPDX-License-Identifier: MIT
"""Streams of the Python binding: threads, coroutines, buffers, signals, ends."""
import array
import asyncio
import io
import os
import pickle
import signal
import threading
import time
import unittest

from helpers import muster, process, together


def connected(address="tcp://127.0.0.1:0", **options):
    with muster.listen(address) as listener:
        return together(lambda: muster.dial(listener.address, **options), listener.accept)


class Threads(unittest.TestCase):
    def test_bytes_go_both_ways(self):
        for address in ("tcp://127.0.0.1:0", "tcp://127.0.0.1:0?upgrade=no", f"shm://python-{os.getpid()}",
                        f"unix://@muster-python-{os.getpid()}"):
            with self.subTest(address):
                a, b = connected(address, hello="it is me")
                with a, b:
                    self.assertEqual(b.hello, b"it is me")
                    self.assertEqual(a.write(b"hello"), 5)
                    self.assertEqual(b.readexactly(5), b"hello")
                    data = os.urandom(3_000_000)
                    _, got = together(lambda: b.write(data), lambda: a.readexactly(len(data)))
                    self.assertEqual(got, data)
                    self.assertEqual(a.stats()["bytes_in"], len(data))
                    self.assertIsNone(a.reason)
                    a.finish()
                    self.assertEqual(b.read(), b"")

    def test_memory_of_the_caller_is_used(self):
        a, b = muster.pair()
        numbers, place = array.array("d", range(1000)), array.array("d", bytes(8000))
        a.write(numbers)
        view = memoryview(place).cast("B")
        done = 0
        while done < len(view):
            done += b.readinto(view[done:])
        self.assertEqual(place, numbers)
        a.write(memoryview(b"abcdef")[2:4])
        self.assertEqual(b.read(10), b"cd")
        self.assertRaises(BufferError, a.write, memoryview(b"abcdef")[::2])
        self.assertRaises(BufferError, b.readinto, b"constant")
        self.assertRaises(TypeError, a.write, "text")
        a.write(b"")
        self.assertRaises(muster.TimedOut, b.read, 1, 0)

    def test_a_stream_is_a_file(self):
        a, b = muster.pair()
        with a.makefile() as out, b.makefile() as into:
            pickle.dump({"a": [1, 2, 3]}, out)
            out.write(b"\nline\n")
            out.flush()
            self.assertEqual(pickle.load(into), {"a": [1, 2, 3]})
            self.assertEqual(into.readline(), b"\n")
            self.assertEqual(io.TextIOWrapper(into).readline(), "line\n")

    def test_limits_of_time(self):
        a, b = muster.pair()
        begun = time.monotonic()
        with self.assertRaises(TimeoutError):
            b.read(1, timeout=0.3)
        self.assertTrue(0.3 <= time.monotonic() - begun < 5)
        with self.assertRaises(muster.TimedOut):
            a.write(bytes(100_000_000), timeout=0.1)
        self.assertRaises(muster.TimedOut, muster.listen("tcp://127.0.0.1:0").accept, 0)
        with self.assertRaises(muster.PeerGone):
            muster.dial("tcp://127.0.0.1:9", timeout=5)

    def test_another_thread_closes(self):
        a, _b = muster.pair()
        begun = threading.Event()

        def read():
            begun.set()
            with self.assertRaises(muster.Error):
                a.read(1)

        def close():
            begun.wait()
            a.close()
        together(read, close)
        self.assertTrue(a.closed)
        a.close()
        with self.assertRaises(muster.Invalid):
            a.write(b"x")

    def test_the_end_has_a_reason(self):
        a, b = connected()
        a.abort(3, "out of paper")
        with self.assertRaises(muster.PeerGone) as caught:
            b.read(1)
        self.assertIn("out of paper", str(caught.exception))
        self.assertIn("out of paper", b.reason)
        with self.assertRaises(ConnectionError):
            b.write(bytes(10_000_000))

    def test_a_peer_that_is_killed(self):
        with muster.listen("tcp://127.0.0.1:0") as listener:
            other = process("import muster, sys, time; s = muster.dial(sys.argv[1]); s.write(b'x'); time.sleep(100)",
                            listener.address)
            stream = listener.accept(timeout=30)
            self.assertEqual(stream.read(1), b"x")
            other.kill()
            with self.assertRaises(muster.PeerGone):
                stream.read(1, timeout=30)
            other.wait()
            other.stdout.close()

    def test_an_interrupt_ends_a_wait(self):
        other = process("""if True:
            import muster
            a, b = muster.pair()
            try:
                print("reads", flush=True)
                b.read(1)
            except KeyboardInterrupt:
                pass
            try:
                print("interrupted", flush=True)
                muster.Store("memory:").get("never", timeout=None)
            except KeyboardInterrupt:
                print("twice", flush=True)
            """)
        self.assertEqual(other.stdout.readline(), "reads\n")
        other.send_signal(signal.SIGINT)
        self.assertEqual(other.stdout.readline(), "interrupted\n")
        other.send_signal(signal.SIGINT)
        self.assertEqual(other.stdout.readline(), "twice\n")
        self.assertEqual(other.wait(30), 0)
        other.stdout.close()

    def test_a_child_has_a_context_of_its_own(self):
        a, b = muster.pair()
        muster.Store("memory:").set("a", "b")
        child = os.fork()
        if child == 0:
            c, d = muster.pair()
            c.write(b"child")
            os._exit(0 if d.read(5) == b"child" else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        a.write(b"parent")
        self.assertEqual(b.read(6), b"parent")


class Coroutines(unittest.IsolatedAsyncioTestCase):
    async def test_many_streams_on_one_loop(self):
        listener = muster.listen("tcp://127.0.0.1:0")

        async def echo(stream):
            while data := await stream.aread():
                await stream.awrite(data)
            stream.finish()

        async def serve():
            return [asyncio.ensure_future(echo(await listener.aaccept())) for _ in range(20)]
        server = asyncio.ensure_future(serve())

        async def client(number):
            stream = await muster.adial(listener.address)
            for size in (1, 1000, 300_000 + number):
                data = os.urandom(size)
                _, got = await asyncio.gather(stream.awrite(data), stream.areadexactly(size))
                self.assertEqual(got, data)
            stream.finish()
            self.assertEqual(await stream.aread(), b"")
            stream.close()
        await asyncio.gather(*(client(number) for number in range(20)))
        await asyncio.gather(*await server)
        listener.close()

    async def test_a_task_is_cancelled(self):
        a, b = muster.pair()
        reader = asyncio.ensure_future(b.aread())
        await asyncio.sleep(0)
        reader.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await reader
        await a.awrite(b"still")
        self.assertEqual(await b.aread(), b"still")
        large = bytes(50_000_000)
        writer = asyncio.ensure_future(a.awrite(large))
        await asyncio.sleep(0.01)
        writer.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await writer

    async def test_memory_stays_lent_after_a_cancellation(self):
        a, b = muster.pair()
        large = bytearray(20_000_000)
        writer = asyncio.ensure_future(a.awrite(large))
        while not a.stats()["bytes_out"] and not b.stats()["buffered_in"]:
            await asyncio.sleep(0)
        writer.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await writer
        writer = None
        with self.assertRaises(BufferError):  # it cannot change its size until the library has given it back
            large.clear()
        a.abort()
        while large:
            try:
                large.clear()
            except BufferError:
                await asyncio.sleep(0)

    async def test_failures(self):
        a, b = muster.pair()
        a.abort(1, "no more")
        with self.assertRaises(muster.PeerGone):
            await b.aread()
        with self.assertRaises(muster.PeerGone):
            await muster.adial("tcp://127.0.0.1:9", timeout=5)
        with self.assertRaises(muster.Invalid):
            await muster.adial("nonsense")


if __name__ == "__main__":
    unittest.main()
