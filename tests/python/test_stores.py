# SPDX-License-Identifier: MIT
"""Stores, rendezvous and groups of the Python binding."""
import array
import asyncio
import threading
import unittest

from helpers import SECRET, muster, process, together, until


class Stores(unittest.TestCase):
    def setUp(self):
        self.server = muster.StoreServer()
        self.store = muster.Store(self.server.address)

    def tearDown(self):
        self.store.close()
        self.server.close()

    def test_operations(self):
        store = self.store
        first = store.set("greeting", "hello")
        self.assertEqual(store.get("greeting"), b"hello")
        self.assertGreater(store.set("greeting", b"bytes \0 and more"), first)
        self.assertEqual(store.read("greeting"), b"bytes \0 and more")
        self.assertIsNone(store.read("nothing"))
        self.assertEqual(store.set("empty", "") and store.read("empty"), b"")
        self.assertEqual((store.add("n", 5), store.add("n", -7), store.read("n")), (5, -2, b"-2"))
        self.assertEqual(store.append("text", "ab") + store.append("text", "c"), 5)
        self.assertTrue(store.check("n", "text") and not store.check("n", "nothing"))
        self.assertEqual([entry.key for entry in store.list()], [b"empty", b"greeting", b"n", b"text"])
        self.assertEqual(store.list("t")[0].value, b"abc")
        self.assertEqual(store.count(), 4)
        self.assertTrue(store.delete("n") and not store.delete("n"))
        self.assertEqual((store.push("q", "1"), store.push("q", "2"), store.length("q")), (1, 2, 2))
        self.assertEqual((store.pop("q"), store.try_pop("q"), store.try_pop("q")), (b"1", b"2", None))
        self.assertEqual(store.view("text").list("")[0].value if store.view("text").count() else None, b"abc")

    def test_conditions(self):
        store = self.store
        store.compare_set("a", None, "1")
        with self.assertRaises(muster.Changed) as caught:
            store.compare_set("a", None, "2")
        self.assertEqual(caught.exception.entries[0].value, b"1")
        version = store.compare_set("a", "1", "2")
        with self.assertRaises(muster.Changed):
            store.transact(muster.op("set", "b", "x"), muster.op("set", "a", "y", if_version=version + 7))
        self.assertIsNone(store.read("b"))
        store.transact(muster.op("set", "b", "x"), muster.op("set", "a", "y", if_version=version))
        self.assertEqual((store.read("a"), store.read("b")), (b"y", b"x"))

    def test_waits(self):
        store, other = self.store, muster.Store(self.server.address)
        waits = lambda: self.server.stats()["waiting"] == 1  # noqa: E731
        value, _ = together(lambda: store.get("later"), lambda: (until(waits), other.set("later", "now")))
        self.assertEqual(value, b"now")
        with self.assertRaises(TimeoutError):
            store.get("never", timeout=0.1)
        revision = store.list("watched/").revision
        found, _ = together(lambda: store.changes("watched/", revision),
                            lambda: (until(waits), other.set("watched/x", "1")))
        self.assertEqual((found[0].key, found[0].value), (b"watched/x", b"1"))
        together(*(lambda rank=rank: (store if rank else other).barrier("all", rank, 3) for rank in range(3)))
        other.close()

    def test_bad_input(self):
        for call in (lambda: self.store.get(""), lambda: muster.Store("nonsense"), lambda: muster.op("set", 5)):
            with self.assertRaises((ValueError, TypeError)):
                call()
        with self.assertRaises(muster.Error) as caught:
            self.store.get("x" * 9000)
        self.assertIn("8192", str(caught.exception))
        with self.assertRaises(muster.PeerGone):
            muster.Store("tcp://127.0.0.1:9", timeout=2)
        closed = muster.Store(self.server.address)
        closed.close()
        with self.assertRaises(muster.Invalid):
            closed.get("a")

    def test_the_server_ends(self):
        waiting = []

        def wait():
            with self.assertRaises(muster.Error) as caught:
                self.store.get("never", timeout=30)
            waiting.append(caught.exception)

        def end():
            until(lambda: self.server.stats()["waiting"] == 1)
            self.server.close()
        together(wait, end)
        self.assertIsInstance(waiting[0], muster.Error)


class StoresOfCoroutines(unittest.IsolatedAsyncioTestCase):
    async def test_requests_at_the_same_time(self):
        with muster.StoreServer() as server, muster.Store(server.address) as store:
            waits = [asyncio.ensure_future(store.aget(f"k{n}")) for n in range(100)]
            await asyncio.gather(*(store.aset(f"k{n}", str(n)) for n in range(100)))
            self.assertEqual(await asyncio.gather(*waits), [str(n).encode() for n in range(100)])
            cancelled = asyncio.ensure_future(store.apop("queue"))
            await asyncio.get_running_loop().run_in_executor(None, until, lambda: server.stats()["waiting"] == 1)
            cancelled.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await cancelled
            await asyncio.get_running_loop().run_in_executor(None, until, lambda: server.stats()["waiting"] == 0)
            await store.apush("queue", "kept")
            self.assertEqual(await store.apop("queue"), b"kept")
            with self.assertRaises(muster.Changed):
                await store.acompare_set("k1", "2", "3")


class Members(unittest.TestCase):
    """Members with a context each, as processes have."""

    def setUp(self):
        self.context = muster.Context(secret=SECRET)
        self.server = muster.StoreServer(opener=self.context)

    def tearDown(self):
        self.server.close()
        self.context.close()

    def members(self, count, body):
        def one(rank):
            with muster.Context(secret=SECRET) as context, muster.Store(self.server.address, opener=context) as store:
                return body(rank, context, store)
        return together(*(lambda rank=rank: one(rank) for rank in range(count)))

    def test_rounds(self):
        gone = threading.Barrier(3)

        def member(_, context, store):
            with muster.Rendezvous("run", store=store, min=3, address=f"at {id(context)}", opener=context) as run:
                round_ = run.join(timeout=30)
                view = round_.store()
                view.set(f"from {round_.rank}", "here")
                view.wait("from 0", "from 1", "from 2")
                addresses = {round_.member(rank) for rank in range(3)}
                gone.wait()
                if round_.rank == 2:
                    run.abort("that is enough")
                events = []
                while not events or events[-1].kind != "aborted":
                    events.append(run.next_event(timeout=20))
                self.assertIn("that is enough", events[-1].text)
                with self.assertRaises(muster.Stale):
                    while True:
                        view.set("late", "write")
                again = run.join(timeout=30)
                self.assertEqual(again.number, round_.number + 1)
                gone.wait()
                return round_.rank, round_.world, len(addresses), again.rank
        found = self.members(3, member)
        self.assertEqual(sorted(one[0] for one in found), [0, 1, 2])
        self.assertTrue(all(one[1:3] == (3, 3) and one[3] == one[0] for one in found))

    def test_a_closed_run(self):
        with muster.Store(self.server.address, opener=self.context) as store:
            run = muster.Rendezvous("closed", store=store, min=2, opener=self.context)
            self.assertFalse(run.is_closed)
            run.close_run("over")
            self.assertTrue(run.is_closed)
            with self.assertRaises(muster.Error) as caught:
                run.join(timeout=10)
            self.assertIn("over", str(caught.exception))
            run.close()

    def test_collective_operations(self):
        def member(rank, context, store):
            group = muster.Group(store=store, name="all", rank=rank, size=3, opener=context)
            self.assertEqual((group.rank, group.size), (rank, 3))
            sums = array.array("d", [rank, 1, 2.5])
            self.assertIs(group.all_reduce(sums), sums)
            most = array.array("i", [0, 0])
            group.all_reduce(array.array("i", [rank, -rank]), most, "max")
            places = array.array("H", bytes(12))
            group.all_gather(array.array("H", [rank, 10 * rank]), places)
            words = bytearray(b"root!" if rank == 1 else b".....")
            group.broadcast(words, root=1)
            at_root = array.array("q", [7 ** rank])
            group.reduce(at_root, reduction="product", root=2)
            block = array.array("B", [0])
            group.scatter(b"abc" if rank == 0 else None, block, root=0)
            mixed = bytearray(3)
            group.all_to_all(bytes([rank * 3, rank * 3 + 1, rank * 3 + 2]), mixed)
            part = array.array("f", [0])
            group.reduce_scatter(array.array("f", [1, 2, 3]), part)
            partial = array.array("l", [rank + 1])
            group.scan(partial)
            group.barrier()
            with self.assertRaises(muster.Invalid):
                group.all_reduce(sums, reduction="median")
            with self.assertRaises(muster.Invalid):
                group.reduce_scatter(array.array("f", [1, 2]), part)
            asyncio.run(self.awaited(group))
            group.close()
            return (list(sums), list(most), list(places), bytes(words), at_root[0], block[0], list(mixed), part[0],
                    partial[0])
        for rank, found in enumerate(self.members(3, member)):
            self.assertEqual(found, ([3, 3, 7.5], [2, 0], [0, 0, 1, 10, 2, 20], b"root!", 343 if rank == 2 else 7 ** rank,
                                     b"abc"[rank], [rank, 3 + rank, 6 + rank], 3 * (rank + 1), [1, 3, 6][rank]))

    async def awaited(self, group):
        numbers = array.array("d", [1.0] * 1000)
        await group.aall_reduce(numbers)
        self.assertEqual(numbers[999], group.size)

    def test_a_member_that_dies_is_named(self):
        code = """if True:
            import array, muster, os, sys
            store = muster.Store(sys.argv[1])
            group = muster.Group(store=store, name="dies", rank=1, size=2)
            group.barrier()
            os._exit(0)"""
        dying = process(code, self.server.address)
        with muster.Store(self.server.address, opener=self.context) as store:
            group = muster.Group(store=store, name="dies", rank=0, size=2, opener=self.context)
            group.barrier()
            with self.assertRaises(muster.PeerGone) as caught:
                group.all_reduce(array.array("d", [1.0]), timeout=30)
            self.assertEqual(caught.exception.rank, 1)
        self.assertEqual(dying.wait(), 0)
        dying.stdout.close()

    def test_another_secret(self):
        with muster.Context(secret="not that secret at all") as context:
            with self.assertRaises(muster.Refused):
                muster.Store(self.server.address, opener=context, timeout=10)


if __name__ == "__main__":
    unittest.main()
