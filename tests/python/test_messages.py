# SPDX-License-Identifier: MIT
"""Dealers and routers of the Python binding."""
import array
import os
import unittest

from helpers import muster, process, together
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


if __name__ == "__main__":
    unittest.main()
