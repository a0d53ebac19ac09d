# SPDX-License-Identifier: MIT
"""Dealers and routers of the Python binding."""
import array
import asyncio
import os
import sys
import threading
import unittest
import unittest.mock

from helpers import muster, process, together, until
from muster import messages


class Sockets(unittest.TestCase):
    def test_requests_and_replies(self):
        for where in ("tcp://127.0.0.1:0", f"shm://python-router-{os.getpid()}"):
            with muster.Router(bind=where) as router:
                dealers = [muster.Dealer(messages.address(0, number, 1), connect=router.bound) for number in range(3)]

                def serve():
                    for _ in range(30):
                        request = router.receive(timeout=30)
                        router.send(request.reply(request.frames[0] * 2, "and more", type=7))

                def ask(dealer):
                    for number in range(10):
                        dealer.send(muster.Message([str(number), b""], type=5, target=9), timeout=30)
                        reply = dealer.receive(timeout=30)
                        self.assertEqual(reply.frames, [str(number).encode() * 2, b"and more"])
                        self.assertEqual((reply.type, reply.target, reply.source), (7, 9, router.address))
                together(serve, *(lambda dealer=dealer: ask(dealer) for dealer in dealers))
                self.assertEqual(router.stats()["messages_in"], 30)
                for dealer in dealers:
                    dealer.close()

    def test_frames(self):
        router = muster.Router(bind="tcp://127.0.0.1:0")
        dealer = muster.Dealer(connect=router.bound)
        numbers = array.array("d", range(100_000))
        dealer.send(muster.Message([numbers, memoryview(b"part of it")[5:], "text"]))
        frames = router.receive(timeout=30).frames
        self.assertEqual((array.array("d", frames[0]), frames[1:]), (numbers, [b"of it", b"text"]))
        dealer.send(b"one frame")
        self.assertEqual(router.receive(timeout=30).frames, [b"one frame"])
        dealer.close(), router.close()

    def test_failures(self):
        router = muster.Router(bind="tcp://127.0.0.1:0", max_message_bytes=10_000)
        with self.assertRaises(muster.TimedOut):
            router.receive(timeout=0.1)
        with self.assertRaises(muster.TimedOut):
            router.wait_peers(timeout=0)
        with self.assertRaises(muster.Invalid):
            router.send(b"to nowhere")
        with self.assertRaises(muster.Error):
            router.send(muster.Message([bytes(20_000)], destination=5))
        with self.assertRaises(TypeError):
            router.send(muster.Message([5], destination=5))
        with self.assertRaises(muster.Invalid):
            muster.Dealer(connect="nonsense")
        router.close()
        with self.assertRaises(muster.Invalid):
            router.receive()

    def test_a_peer_that_is_killed(self):
        router = muster.Router(bind="tcp://127.0.0.1:0")
        code = "import muster, sys, time; d = muster.Dealer(77, connect=sys.argv[1]); d.send(b'x'); time.sleep(100)"
        other = process(code, router.bound)
        message = router.receive(timeout=30)
        other.kill()
        other.wait()
        other.stdout.close()
        with self.assertRaises(muster.PeerGone):
            while True:
                router.send(message.reply(bytes(100_000)), timeout=30)
        again = muster.Dealer(77, connect=router.bound)  # it is that peer, restarted
        again.send("back")
        self.assertEqual(router.receive(timeout=30).frames, [b"back"])
        router.send(message.reply("welcome"))
        self.assertEqual(again.receive(timeout=30).frames, [b"welcome"])
        again.close(), router.close()


class Coroutines(unittest.TestCase):
    def test_many_dealers_in_one_loop(self):
        async def dealer(number, where):
            with muster.Dealer(messages.address(0, number, 1), connect=where) as one:
                for turn in range(20):
                    await one.asend(muster.Message([f"{number}/{turn}"], type=5), timeout=30)
                    reply = await one.areceive(timeout=30)
                    self.assertEqual(reply.frames, [f"{number}/{turn}".encode(), b"yes"])

        async def serve(router, count):
            for _ in range(count):
                request = await router.areceive(timeout=30)
                await router.asend(request.reply(request.frames[0], "yes"), timeout=30)

        async def main():
            with muster.Router(bind="tcp://127.0.0.1:0") as router:
                workers = [dealer(number, router.bound) for number in range(8)]
                await asyncio.gather(serve(router, 8 * 20), *workers)
                kinds = set()
                while "lost" not in kinds:
                    kinds.add((await router.anext_event(timeout=30)).kind)
                self.assertEqual(kinds, {"connected", "lost"})
        asyncio.run(main())

    def test_waits_end(self):
        async def main():
            with muster.Router(bind="tcp://127.0.0.1:0") as router, muster.Dealer() as dealer:
                for call in (router.areceive, router.await_peers, router.anext_event):
                    with self.assertRaises(muster.TimedOut):
                        await call(timeout=0.05)
                    with self.assertRaises(muster.TimedOut):
                        await call(timeout=0)
                receiving = asyncio.ensure_future(router.areceive())
                await asyncio.sleep(0)
                receiving.cancel()  # takes no message with it
                with self.assertRaises(asyncio.CancelledError):
                    await receiving
                dealer.connect(router.bound)
                await asyncio.gather(router.await_peers(timeout=30), dealer.await_peers(timeout=30))
                await dealer.asend(b"one")
                self.assertEqual((await router.areceive(timeout=30)).frames, [b"one"])
                receiving = asyncio.ensure_future(router.areceive())
                await asyncio.sleep(0)
                router.close(0)
                with self.assertRaises(muster.Error):
                    await receiving
        asyncio.run(main())

    def test_of_another_loop(self):
        router = muster.Router(bind="tcp://127.0.0.1:0")
        with self.assertRaises(RuntimeError):
            asyncio.run(router.areceive())
        router.close()

    def test_what_was_not_delivered(self):
        async def in_a_loop():
            found, arrived = [], asyncio.Event()
            with muster.Router(undelivered=lambda message: (found.append(message.frames), arrived.set())) as router:
                await router.asend(muster.Message([b"to nothing"], destination=messages.address(1, 1, 1)))
                router.close(0)
                await asyncio.wait_for(arrived.wait(), 30)
            return found

        def in_a_thread():
            found, arrived = [], threading.Event()
            with muster.Router(undelivered=lambda message: (found.append(message.frames), arrived.set())) as router:
                router.send(muster.Message([b"to nothing"], destination=messages.address(1, 1, 1)))
                router.close(0)
                self.assertTrue(arrived.wait(30))
            return found
        self.assertEqual(asyncio.run(in_a_loop()), [[b"to nothing"]])
        self.assertEqual(in_a_thread(), [[b"to nothing"]])
        watchers = muster.context().completions._watchers  # pylint: disable=protected-access
        until(lambda: not watchers)  # nothing is kept for sockets that are closed
        collected = muster.Router(undelivered=print)
        self.assertEqual(len(watchers), 1)
        del collected
        until(lambda: not watchers)

    def test_undelivered_that_raises(self):
        arrived, shown = threading.Event(), []

        def fails(_):
            arrived.set()
            raise LookupError("as it should")
        with unittest.mock.patch.object(sys, "excepthook", lambda kind, *_: shown.append(kind)):
            with muster.Router(undelivered=fails) as router:
                router.send(muster.Message([b"to nothing"], destination=messages.address(1, 1, 1)))
                router.close(0)
                self.assertTrue(arrived.wait(30))
            until(lambda: shown == [LookupError])
        with muster.Store("memory:") as store:  # the thread goes on
            store.set("a", "b")

    def test_a_socket_outlives_its_context(self):
        opener = muster.Context(secret="a secret of this test")
        router = muster.Router(undelivered=print, opener=opener)
        opener.close()
        router.close(0)


if __name__ == "__main__":
    unittest.main()
