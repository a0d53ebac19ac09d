// SPDX-License-Identifier: MIT
// Streams over shared memory: two contexts connected by one memfd that is mapped twice, as two processes have it.
#include "stream_fixture.hpp"

using namespace muster;
using namespace muster::test;

namespace {

constexpr uint32_t external = MUSTER_CONTEXT_EXTERNAL;

// Sends `total` patterned bytes in pieces of any size, by every way there is.
void send_all(Findings &f, Stream &s, Queue &queue, uint64_t total, uint64_t seed, uint64_t most) {
    Random random(seed);
    std::vector<unsigned char> data(most);
    std::vector<std::vector<unsigned char>> handed_over;
    uint64_t at = 0, back = 0;
    while (at < total && !f.failed()) {
        const size_t size = std::min<uint64_t>(random.of_any_size(most), total - at);
        switch (random.below(5)) {
        case 0: {
            Deadline deadline(20 * second);
            void *room;
            size_t there;
            const size_t want = std::min<size_t>(size, s.duplex().outgoing(s.side()).window() / 4);
            if (!f.expect_status(s.reserve(want, deadline, room, there), MUSTER_OK, "reserve")) return;
            const size_t filled = std::min<uint64_t>(there, total - at);
            fill(static_cast<unsigned char *>(room), filled, at);
            s.commit(filled);
            at += filled;
            break;
        }
        case 1: {
            auto &owned = handed_over.emplace_back(size);
            fill(owned.data(), size, at);
            const Status status = s.write_owned(owned.data(), size, queue, handed_over.size());
            if (status == MUSTER_OK)
                at += size;
            else if (status == MUSTER_AGAIN)
                handed_over.pop_back(); // 64 wait already
            else
                return f.note("write_owned: status %d", status);
            break;
        }
        default: {
            size_t moved;
            fill(data.data(), size, at);
            if (!f.expect_status(put(s, data.data(), size, 20 * second, &moved), MUSTER_OK, "write")) return;
            at += moved;
        }
        }
        while (take(queue, 0).status == MUSTER_OK) back++;
    }
    Deadline deadline(20 * second);
    f.expect_status(s.flush(deadline), MUSTER_OK, "flush");
    while (back < handed_over.size() && !f.failed()) {
        const Taken t = take(queue, 10 * second);
        if (f.expect_status(t.status, MUSTER_OK, "a buffer back"))
            f.expect_status(t.completion.status, MUSTER_OK, "its status");
        back++;
    }
    s.finish();
}

void receive_all(Findings &f, Stream &s, uint64_t total, uint64_t seed, uint64_t most) {
    Random random(seed);
    std::vector<unsigned char> data(most);
    uint64_t at = 0;
    while (!f.failed()) {
        size_t moved = 0;
        Status status;
        if (random.one_in(4)) {
            const void *shown;
            const size_t want = random.of_any_size(s.duplex().incoming(s.side()).window() / 4);
            Deadline deadline(20 * second);
            status = s.peek(want, deadline, shown, moved);
            if (status == MUSTER_OK) {
                f.expect(matches(static_cast<const unsigned char *>(shown), moved, at), "bytes shown");
                moved = random.below(moved + 1);
                s.consume(moved);
            } else if (status == MUSTER_E_END && moved != 0) {
                moved = 0, status = MUSTER_OK;
                get(s, data.data(), 1, most, 0, &moved);
                f.expect(matches(data.data(), moved, at), "last bytes");
            }
        } else {
            const size_t capacity = random.of_any_size(most);
            status = get(s, data.data(), random.one_in(2) ? capacity : 1, capacity, 20 * second, &moved);
            f.expect(matches(data.data(), moved, at), "bytes read");
        }
        at += moved;
        if (status == MUSTER_E_END) break;
        f.expect_status(status, MUSTER_OK, "read");
    }
    if (at != total) f.note("read %llu bytes of %llu", (unsigned long long)at, (unsigned long long)total);
}

void both_ways(Findings &f, uint64_t window, uint32_t first, uint32_t second_flags, uint64_t total) {
    SharedPair p(window, first, second_flags);
    const uint64_t most = window * 3;
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; i++) {
        threads.emplace_back([&, i] { send_all(f, *p.streams[i], *p.queues[i], total, window + i, most); });
        threads.emplace_back([&, i] { receive_all(f, *p.streams[i], total, window + 7 + i, most); });
    }
    for (auto &t : threads) t.join();
}

void test_every_size_both_ways(void **) {
    run([](Findings &f) { both_ways(f, 4096, 0, 0, 2'000'000); });
    run([](Findings &f) { both_ways(f, 65536, 0, 0, 10'000'000); });
    run([](Findings &f) { both_ways(f, 1 << 20, 0, 0, 40'000'000); });
}

void test_every_size_both_ways_in_external_contexts(void **) {
    run([](Findings &f) { both_ways(f, 4096, external, 0, 300'000); });
    run([](Findings &f) { both_ways(f, 65536, external, external, 3'000'000); });
}

// A host loop that never blocks: it sleeps in its queue, and moves bytes when it is notified.
void pump_by_events(Findings &f, Stream &s, Queue &queue, uint64_t out_total, uint64_t in_total, uint64_t seed) {
    Random random(seed);
    std::vector<unsigned char> data(20'000);
    uint64_t out = 0, in = 0;
    bool finished = false, ended = false;
    f.expect_status(s.watch(MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE, &queue, 1), MUSTER_OK, "watch");
    while ((!finished || !ended) && !f.failed()) {
        const Taken t = take(queue, 20 * second);
        if (!f.expect_status(t.status, MUSTER_OK, "an event")) break;
        if (t.completion.events & MUSTER_STREAM_WRITABLE)
            while (out < out_total) {
                const size_t size = std::min<uint64_t>(random.of_any_size(data.size()), out_total - out);
                size_t moved;
                fill(data.data(), size, out);
                const Status status = put(s, data.data(), size, 0, &moved);
                out += moved;
                if (status == MUSTER_AGAIN) break;
                if (!f.expect_status(status, MUSTER_OK, "write")) return;
            }
        if (out == out_total && !finished) finished = true, s.finish();
        if (t.completion.events & MUSTER_STREAM_READABLE)
            for (;;) {
                size_t moved;
                const Status status = get(s, data.data(), 1, random.of_any_size(data.size()), 0, &moved);
                f.expect(matches(data.data(), moved, in), "bytes read");
                in += moved;
                if (status == MUSTER_AGAIN) break;
                if (status == MUSTER_E_END) {
                    ended = true;
                    break;
                }
                if (!f.expect_status(status, MUSTER_OK, "read")) return;
            }
    }
    f.expect(in == in_total, "all was read");
    s.watch(0, nullptr, 0);
}

void test_a_loop_that_never_blocks(void **) {
    for (const uint32_t flags : {0u, external})
        run([&](Findings &f) {
            SharedPair p(16384, flags, 0);
            std::thread other([&] { pump_by_events(f, *p.streams[1], *p.queues[1], 3'000'000, 5'000'000, 1); });
            pump_by_events(f, *p.streams[0], *p.queues[0], 5'000'000, 3'000'000, 2);
            other.join();
        });
}

void test_a_loop_against_a_blocking_peer(void **) {
    run([](Findings &f) {
        SharedPair p(16384);
        std::thread sender([&] { send_all(f, *p.streams[1], *p.queues[1], 3'000'000, 3, 50'000); });
        std::thread receiver([&] { receive_all(f, *p.streams[1], 5'000'000, 4, 50'000); });
        pump_by_events(f, *p.streams[0], *p.queues[0], 5'000'000, 3'000'000, 5);
        sender.join();
        receiver.join();
    });
}

void test_operations_are_moved_by_the_engine(void **) {
    run([](Findings &f) {
        SharedPair p(8192);
        std::vector<unsigned char> data(1'000'000), into(1'000'000);
        fill(data.data(), data.size(), 0);
        for (int i = 0; i < 10; i++)
            f.expect_status(p.streams[1]->read_begin(into.data() + i * 100'000, 100'000, *p.queues[1], i), MUSTER_OK,
                            "read_begin");
        for (int i = 0; i < 4; i++)
            f.expect_status(p.streams[0]->write_owned(data.data() + i * 250'000, 250'000, *p.queues[0], i), MUSTER_OK,
                            "write_owned");
        for (unsigned i = 0; i < 10; i++) {
            const Taken t = take(*p.queues[1], 10 * second);
            f.expect(t.status == MUSTER_OK && t.completion.tag == i && t.completion.bytes == 100'000,
                     "reads, in order");
        }
        for (unsigned i = 0; i < 4; i++) {
            const Taken t = take(*p.queues[0], 10 * second);
            f.expect(t.status == MUSTER_OK && t.completion.tag == i && t.completion.bytes == 250'000,
                     "buffers, in order");
        }
        f.expect(into == data, "the bytes");
    });
}

void test_the_end_is_told_after_the_bytes(void **) {
    run([](Findings &f) {
        SharedPair p(8192);
        put(*p.streams[0], "last words", 10, 0);
        p.streams[0]->finish();
        char words[16];
        size_t moved;
        f.expect_status(get(*p.streams[1], words, 10, 16, second, &moved), MUSTER_OK, "the bytes");
        f.expect_status(get(*p.streams[1], words, 1, 16, second, &moved), MUSTER_E_END, "then the end");
        f.expect_status(put(*p.streams[1], "answer", 6, 0), MUSTER_OK, "the other direction goes on");
        f.expect_status(get(*p.streams[0], words, 6, 16, second), MUSTER_OK, "and arrives");
        f.expect_status(put(*p.streams[0], "x", 1, 0), MUSTER_E_CLOSED, "nothing after finish");
    });
}

void test_an_abort_reaches_sleepers_on_both_sides(void **) {
    for (const uint32_t flags : {0u, external})
        run([&](Findings &f) {
            SharedPair p(4096, flags, 0);
            std::vector<unsigned char> data(10'000);
            Status statuses[3];
            std::vector<std::thread> threads;
            threads.emplace_back([&] { statuses[0] = get(*p.streams[0], data.data(), 1, 1, 30 * second); });
            const std::vector<unsigned char> words(10'000);
            threads.emplace_back([&] { statuses[1] = put(*p.streams[0], words.data(), words.size(), 30 * second); });
            threads.emplace_back([&] {
                unsigned char c;
                for (Status s = MUSTER_OK; s == MUSTER_OK;) s = statuses[2] = get(*p.streams[1], &c, 1, 1, 30 * second);
            });
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            const int64_t before = now_ns();
            p.streams[0]->abort(42, "enough");
            for (auto &t : threads) t.join();
            f.expect(now_ns() - before < 10 * second, "at once");
            for (const Status s : {statuses[0], statuses[2]}) f.expect_status(s, MUSTER_E_ABORTED, "a sleeper");
            f.expect(statuses[1] == MUSTER_E_ABORTED || statuses[1] == MUSTER_OK, "the writer");
            uint64_t reason = 0;
            f.expect_status(p.streams[1]->reason(&reason, nullptr), MUSTER_E_ABORTED, "the reason");
            f.expect(reason == 42, "its number");
        });
}

void test_buffers_left_behind_by_a_released_stream_still_arrive(void **) {
    for (const uint32_t flags : {0u, external})
        run([&](Findings &f) {
            SharedPair p(8192, flags, 0);
            std::vector<unsigned char> data(500'000);
            fill(data.data(), data.size(), 5);
            unsigned char head[5];
            fill(head, 5, 0);
            put(*p.streams[0], head, 5, 0);
            f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queues[0], 9), MUSTER_OK, "owned");
            p.drop(0); // in the external context its engine is driven by the queue's waits below
            std::thread reader([&] { receive_all(f, *p.streams[1], 500'005, 11, 30'000); });
            const Taken t = take(*p.queues[0], 20 * second);
            f.expect(t.status == MUSTER_OK && t.completion.tag == 9 && t.completion.status == MUSTER_OK &&
                         t.completion.bytes == data.size(),
                     "the buffer comes back whole");
            reader.join();
        });
}

void test_buffers_of_a_released_stream_come_back_when_the_peer_goes(void **) {
    run([](Findings &f) {
        SharedPair p(8192);
        std::vector<unsigned char> data(500'000);
        f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queues[0], 9), MUSTER_OK, "write_owned");
        p.drop(0);
        p.drop(1);
        const Taken t = take(*p.queues[0], 10 * second);
        f.expect(t.status == MUSTER_OK && t.completion.status == MUSTER_E_PEER && t.completion.bytes < data.size(),
                 "with the peer's end");
    });
}

void test_cancel_gives_buffers_back(void **) {
    run([](Findings &f) {
        SharedPair p(8192);
        std::vector<unsigned char> data(100'000), into(100'000, 'i');
        f.expect_status(p.streams[1]->read_begin(into.data(), into.size(), *p.queues[1], 1), MUSTER_OK, "read_begin");
        f.expect_status(p.streams[1]->cancel(MUSTER_STREAM_READ), MUSTER_OK, "cancel");
        Taken t = take(*p.queues[1], second);
        f.expect(t.status == MUSTER_OK && t.completion.status == MUSTER_E_CANCELED, "the read is back");
        f.expect_status(put(*p.streams[0], "hello", 5, 0), MUSTER_OK, "write");
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        f.expect(into[0] == 'i', "its target is left alone");
        f.expect_status(get(*p.streams[1], into.data(), 5, 5, second), MUSTER_OK, "the stream goes on");
        // A buffer that is being read: its reader has to be notified.
        f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queues[0], 2), MUSTER_OK, "write_owned");
        f.expect_status(get(*p.streams[1], into.data(), 10'000, 10'000, second), MUSTER_OK, "some of it");
        f.expect_status(p.streams[0]->cancel(MUSTER_STREAM_WRITE), MUSTER_OK, "cancel");
        t = take(*p.queues[0], second);
        f.expect(t.status == MUSTER_OK && t.completion.status == MUSTER_E_CANCELED && t.completion.bytes >= 10'000,
                 "the buffer is back");
        Status status = MUSTER_OK;
        while (status == MUSTER_OK) status = get(*p.streams[1], into.data(), 1, into.size(), second);
        f.expect_status(status, MUSTER_E_ABORTED, "its reader was told");
    });
}

void test_close_waits_for_buffers_handed_over(void **) {
    for (const uint32_t flags : {0u, external})
        run([&](Findings &f) {
            SharedPair p(8192, flags, 0);
            std::vector<unsigned char> data(300'000);
            fill(data.data(), data.size(), 0);
            f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queues[0], 2), MUSTER_OK, "owned");
            std::thread reader([&] { receive_all(f, *p.streams[1], data.size(), 1, 5'000); });
            Deadline deadline(20 * second);
            f.expect_status(p.streams[0]->close(deadline), MUSTER_OK, "close");
            const Taken t = take(*p.queues[0], 0);
            f.expect(t.status == MUSTER_OK && t.completion.status == MUSTER_OK, "the buffer is back by then");
            reader.join();
        });
}

void test_close_and_wait_sleep(void **) {
    run([](Findings &f) {
        SharedPair p(8192);
        std::vector<unsigned char> data(300'000);
        f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queues[0], 2), MUSTER_OK, "write_owned");
        timespec before, after;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        Deadline shortly(300 * ms);
        f.expect_status(p.streams[0]->close(shortly), MUSTER_TIMEOUT, "close");
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        const int64_t used = (after.tv_sec - before.tv_sec) * second + after.tv_nsec - before.tv_nsec;
        f.expect(used < 150 * ms, "nobody was awake meanwhile");
    });
}

// ---- a hostile peer ------------------------------------------------------------------------------------------------

bool known(Status s) {
    switch (s) {
    case MUSTER_OK:
    case MUSTER_AGAIN:
    case MUSTER_TIMEOUT:
    case MUSTER_E_PEER:
    case MUSTER_E_END:
    case MUSTER_E_CLOSED:
    case MUSTER_E_ABORTED:
    case MUSTER_E_CANCELED:
    case MUSTER_E_BUSY:
        return true;
    default:
        return false;
    }
}

// Writes what no Muster writes.
void lie(Random &random, PipeControl &c) {
    const auto number = [&]() -> uint64_t {
        switch (random.below(5)) {
        case 0:
            return random.next();
        case 1:
            return UINT64_MAX - random.below(3);
        case 2:
            return c.head.load() + random.below(9) - 4;
        case 3:
            return c.tail.load() + random.below(9) - 4;
        default:
            return random.below(1 << 20);
        }
    };
    switch (random.below(8)) {
    case 0:
        c.head.store(number());
        break;
    case 1:
        c.tail.store(number());
        break;
    case 2:
        c.reader.state.store(static_cast<uint32_t>(random.below(5)));
        break;
    case 3:
        c.writer.state.store(static_cast<uint32_t>(random.below(5)));
        break;
    case 4:
        c.reader.need.store(static_cast<uint32_t>(number()));
        break;
    case 5:
        c.writer.need.store(static_cast<uint32_t>(number()));
        break;
    case 6:
        if (random.one_in(20)) c.finished.store(static_cast<uint32_t>(number()));
        break;
    default:
        if (random.one_in(20)) c.reader_gone.store(static_cast<uint32_t>(number()));
    }
}

void test_a_lying_peer_gets_a_status_and_nothing_else(void **) {
    int rounds = 150;
    for (uint64_t seed = 1; rounds-- > 0; seed++)
        run([&](Findings &f) {
            SharedPair p(seed % 3 == 0 ? 4096 : 65536, seed % 4 == 0 ? external : 0, 0);
            std::atomic<bool> stop{false};
            const int64_t began = now_ns();
            std::thread liar([&] {
                Random random(seed);
                while (!stop.load()) {
                    for (uint64_t n = random.below(20); n-- > 0;)
                        lie(random, p.control(static_cast<int>(random.below(2))));
                    if (random.one_in(3)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(300)));
                }
            });
            std::vector<unsigned char> data(100'000);
            std::vector<std::thread> victims;
            for (int v = 0; v < 2; v++)
                victims.emplace_back([&, v] {
                    Random random(seed * 10 + v);
                    std::vector<unsigned char> own(100'000);
                    Stream &s = *p.streams[0];
                    for (int n = 0; n < 60 && !f.failed(); n++) {
                        Deadline shortly(static_cast<int64_t>(random.below(2 * ms)));
                        size_t moved = 0;
                        void *room;
                        const void *shown;
                        Status status = MUSTER_OK;
                        const size_t size = random.of_any_size(own.size());
                        switch (random.below(v == 0 ? 4 : 5)) {
                        case 0:
                            status = v == 0 ? s.write(own.data(), size, shortly, moved)
                                            : s.read(own.data(), random.one_in(2) ? size : 1, size, shortly, moved);
                            break;
                        case 1:
                            if (v == 0) {
                                status = s.reserve(std::min<size_t>(size, p.window / 4), shortly, room, moved);
                                if (status == MUSTER_OK) memset(room, 1, moved), s.commit(moved);
                            } else {
                                status = s.peek(std::min<size_t>(size, p.window / 4), shortly, shown, moved);
                                if (status == MUSTER_OK)
                                    memcpy(own.data(), shown, std::min(moved, own.size())), s.consume(moved);
                            }
                            break;
                        case 2:
                            status = v == 0 ? s.write_owned(data.data(), size, *p.queues[0], 1)
                                            : s.read_begin(own.data(), 1 + size / 2, *p.queues[0], 1);
                            break;
                        case 3:
                            status =
                                v == 0 ? s.flush(shortly)
                                       : s.watch(MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE, p.queues[0].get(), 5);
                            break;
                        default:
                            status = s.cancel(MUSTER_STREAM_READ);
                        }
                        if (!known(status)) f.note("seed %d: status %d", static_cast<int>(seed), status);
                        if (moved > std::max<size_t>(own.size(), p.window)) f.note("moved %zu", moved);
                        while (take(*p.queues[0], 0).status == MUSTER_OK) {
                        }
                    }
                    if (v == 1) s.cancel(MUSTER_STREAM_READ); // `own` goes
                });
            for (auto &t : victims) t.join();
            p.streams[0]->cancel(MUSTER_STREAM_READ | MUSTER_STREAM_WRITE);
            p.drop(0);
            stop.store(true);
            liar.join();
            if (now_ns() - began > 20 * second)
                f.note("seed %d took %d ms", static_cast<int>(seed), static_cast<int>((now_ns() - began) / ms));
        });
}

// The peer took the flag down and was killed before it woke the sleeper. The end must reach him all the same.
void test_a_sleeper_whose_flag_was_taken_down_is_woken_by_the_end(void **) {
    run([](Findings &f) {
        for (int round = 0; round < 4; round++) {
            SharedPair p(4096);
            std::vector<unsigned char> data(10'000);
            Status status = MUSTER_OK;
            const bool reads = round % 2 == 0;
            std::thread sleeper([&] {
                status = reads ? get(*p.streams[0], data.data(), 1, 1, 60 * second)
                               : put(*p.streams[0], data.data(), data.size(), 60 * second);
            });
            Park &park = reads ? p.control(0).reader : p.control(1).writer;
            while (park.state.load() != Park::FUTEX) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            park.state.store(Park::AWAKE);
            const int64_t before = now_ns();
            if (round < 2) {
                p.duplexes[0]->end(Error::from_status(MUSTER_E_PEER));
            } else {
                p.streams[0]->cancel(MUSTER_STREAM_READ | MUSTER_STREAM_WRITE);
            }
            sleeper.join();
            f.expect(now_ns() - before < 5 * second, "woken");
            f.expect_status(status, round < 2 ? MUSTER_E_PEER : MUSTER_E_CANCELED, "told why");
        }
    });
}

void test_a_layout_of_another_kind_is_refused(void **) {
    run([](Findings &f) {
        const size_t bytes = Duplex::shared_bytes(8192);
        for (int way = 0; way < 4; way++) {
            auto *at = static_cast<unsigned char *>(
                mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
            {
                auto *other = static_cast<unsigned char *>(
                    mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
                auto made = Duplex::make_shared(other, 8192, 0, eventfd(0, 0), eventfd(0, 0), true);
                memcpy(at, other, 4096);
            }
            if (way == 0) memset(at, 0, 4096);              // nothing
            if (way == 1) at[0] ^= 1;                       // another magic
            if (way == 2) at[8] ^= 1;                       // another version
            const uint64_t window = way == 3 ? 4096 : 8192; // another size than agreed
            auto made = Duplex::make_shared(at, window, 1, eventfd(0, 0), eventfd(0, 0), false);
            f.expect(!made && made.error().status == MUSTER_E_PROTOCOL, "refused");
        }
    });
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_every_size_both_ways),
        cmocka_unit_test(test_every_size_both_ways_in_external_contexts),
        cmocka_unit_test(test_a_loop_that_never_blocks),
        cmocka_unit_test(test_a_loop_against_a_blocking_peer),
        cmocka_unit_test(test_operations_are_moved_by_the_engine),
        cmocka_unit_test(test_the_end_is_told_after_the_bytes),
        cmocka_unit_test(test_an_abort_reaches_sleepers_on_both_sides),
        cmocka_unit_test(test_buffers_left_behind_by_a_released_stream_still_arrive),
        cmocka_unit_test(test_buffers_of_a_released_stream_come_back_when_the_peer_goes),
        cmocka_unit_test(test_cancel_gives_buffers_back),
        cmocka_unit_test(test_close_waits_for_buffers_handed_over),
        cmocka_unit_test(test_close_and_wait_sleep),
        cmocka_unit_test(test_a_lying_peer_gets_a_status_and_nothing_else),
        cmocka_unit_test(test_a_sleeper_whose_flag_was_taken_down_is_woken_by_the_end),
        cmocka_unit_test(test_a_layout_of_another_kind_is_refused),
    };
    return cmocka_run_group_tests_name("stream_shared", tests, nullptr, nullptr);
}
