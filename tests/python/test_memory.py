# SPDX-License-Identifier: MIT
"""Global memory of the Python binding: members with a context each, mapped and by messages."""
import array
import asyncio
import os
import unittest

from helpers import SECRET, muster, together


class Memories(unittest.TestCase):
    def members(self, count, body, **more):
        with muster.Context(secret=SECRET) as own, muster.StoreServer(opener=own) as server:
            def one(rank):
                with muster.Context(secret=SECRET) as context, muster.Store(server.address, opener=context) as store:
                    group = muster.Group(store=store, name="memory", rank=rank, size=count, opener=context)
                    memory = muster.GlobalMemory(group, 1 << 20, **more)
                    result = body(memory, group)
                    group.barrier()
                    memory.close()
                    group.close()
                    return result
            return together(*(lambda rank=rank: one(rank) for rank in range(count)))

    def both_ways(self, count, body):
        for shared in (True, False):
            with self.subTest(shared_memory=shared):
                self.members(count, body, shared_memory=shared)

    def test_operations(self):
        def body(memory, group):
            offset = memory.symmetric(64)
            following = (memory.locale + 1) % memory.locales
            word, sums = memory.pointer(following, offset), memory.pointer(0, offset + 8)
            memory.write(word, memory.locale + 10)
            self.assertEqual(memory.exchange(word, 5), memory.locale + 10)
            self.assertEqual(memory.compare_exchange(word, 4, 9), (False, 5))
            self.assertEqual(memory.compare_exchange(word, 5, -1), (True, 5))
            self.assertEqual(memory.read(word), 2**64 - 1)
            for _ in range(100):
                memory.fetch(sums, "add", 1)
            self.assertEqual(asyncio.run(memory.afetch(word, "add", 3)), 2**64 - 1)
            group.barrier()
            self.assertEqual(memory.read(sums), 100 * memory.locales)
            block = memory.allocate(300_000, following)
            data = os.urandom(300_000)
            signal = memory.pointer(following, offset + 16)
            memory.put(block, data, signal=signal)
            self.assertEqual(memory.get(block, 300_000), data)
            self.assertEqual(memory.read(signal), 1)
            numbers = array.array("d", [1.5, 2.5])
            memory.put(block + 8, numbers)
            back = array.array("d", [0.0, 0.0])
            memory.get_into(block + 8, back)
            self.assertEqual(back, numbers)
            own = memory.view(memory.pointer(memory.locale, offset + 32), 4)
            own[:] = b"here"
            self.assertEqual(memory.get(memory.pointer(memory.locale, offset + 32), 4), b"here")
            memory.free(block)
            with self.assertRaises(muster.Stale):
                memory.free(block)
            with self.assertRaises(muster.Invalid):
                memory.read(memory.pointer(following, offset) + 3)
            with self.assertRaises(ValueError):
                memory.fetch(word, "median", 1)
            group.barrier()
            blocks = []
            with self.assertRaises(MemoryError):
                while True:
                    blocks.append(memory.allocate(100_000))
            for block in blocks:
                memory.free(block)
            with self.assertRaisesRegex(muster.Error, "limit"):
                memory.allocate(1 << 24)
            self.assertIsNone(memory.problem(following))
        self.both_ways(3, body)

    def test_blocks_that_others_read(self):
        def body(memory, group):
            top = memory.pointer(0, memory.symmetric(8))
            token = memory.token()
            popped = pushed = 0
            for number in range(1, 60):
                block = memory.allocate(16, number % memory.locales)
                first = 0
                while True:  # a stack, as of R. K. Treiber
                    memory.put(block, array.array("Q", [first, number]))
                    done, first = memory.compare_exchange(top, first, block)
                    if done:
                        break
                pushed += number
                with token:
                    first = memory.read(top)
                    while first:
                        following, value = array.array("Q", bytes(memory.get(first, 16)))
                        done, seen = memory.compare_exchange(top, first, following)
                        if done:
                            break
                        first = seen
                if first:
                    popped += value
                    token.retire(first)
                token.reclaim(8)
            group.barrier()
            all_of_it = array.array("q", [pushed - popped])
            group.all_reduce(all_of_it)
            self.assertEqual(all_of_it[0], 0)
            token.clear()
            group.barrier()
            self.assertEqual([memory.stats(locale)["used_blocks"] for locale in range(memory.locales)], [0] * memory.locales)
            token.close()
        self.both_ways(2, body)


if __name__ == "__main__":
    unittest.main()
