// SPDX-License-Identifier: MIT
// Lives of streams in one process: what one thread does to a stream that another one is using, and what must come of
// it.
#include "stream_fixture.hpp"

using namespace muster;
using namespace muster::test;

namespace {

void sleep_ms(int n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(n));
}

// Waits until a thread sleeps in this direction of the stream.
void until_asleep(PipeControl &control, bool reader) {
    Park &park = reader ? control.reader : control.writer;
    for (int i = 0; i < 5000 && park.state.load() == Park::AWAKE; i++) sleep_ms(1);
}

void test_closing_a_context_ends_reads_under_way(void **) {
    run([](Findings &f) {
        auto context = make_context();
        auto queue = make_queue(*context);
        Ref<Stream> a, b;
        Stream::pair(*context, 65536, "pair", a, b);
        char data[8];
        f.expect_status(a->read_begin(data, sizeof data, *queue, 5), MUSTER_OK, "read_begin");
        Deadline deadline(5 * second);
        context->close(deadline);
        const Taken t = take(*queue, 0);
        if (f.expect_status(t.status, MUSTER_OK, "a completion"))
            f.expect(t.completion.tag == 5 && t.completion.status < 0, "the read ended with a failure");
        a.detach()->host_release();
        b.detach()->host_release();
    });
}

void test_releasing_a_stream_with_a_sleeping_writer_tells_the_reader(void **) {
    run([](Findings &f) {
        LocalPair p(4096);
        std::vector<unsigned char> data(100'000, 'x');
        Status wrote = MUSTER_OK;
        std::thread writer([&] { wrote = put(*p.streams[0], data.data(), data.size(), 10 * second); });
        until_asleep(p.streams[1]->duplex().incoming(1).control(), false);
        p.drop(0);
        writer.join();
        f.expect_status(wrote, MUSTER_E_CLOSED, "the writer");
        Status status = MUSTER_OK;
        while (status == MUSTER_OK) status = get(*p.streams[1], data.data(), 1, data.size(), 2 * second);
        f.expect_status(status, MUSTER_E_END, "the reader");
    });
}

void test_closing_a_stream_with_a_sleeping_writer_tells_the_reader(void **) {
    run([](Findings &f) {
        LocalPair p(4096);
        std::vector<unsigned char> data(100'000, 'x');
        Status wrote = MUSTER_OK;
        std::thread writer([&] { wrote = put(*p.streams[0], data.data(), data.size(), 10 * second); });
        until_asleep(p.streams[1]->duplex().incoming(1).control(), false);
        Deadline once(0);
        p.streams[0]->close(once);
        writer.join();
        f.expect_status(wrote, MUSTER_E_CLOSED, "the writer");
        Status status = MUSTER_OK;
        while (status == MUSTER_OK) status = get(*p.streams[1], data.data(), 1, data.size(), 2 * second);
        f.expect_status(status, MUSTER_E_END, "the reader");
    });
}

void test_finishing_ends_a_sleeping_write(void **) {
    run([](Findings &f) {
        LocalPair p(4096);
        std::vector<unsigned char> data(100'000, 'x');
        Status wrote = MUSTER_OK;
        size_t moved = 0;
        std::thread writer([&] { wrote = put(*p.streams[0], data.data(), data.size(), 10 * second, &moved); });
        until_asleep(p.streams[1]->duplex().incoming(1).control(), false);
        const int64_t before = now_ns();
        p.streams[0]->finish();
        writer.join();
        f.expect(now_ns() - before < 5 * second, "the write ended at once");
        f.expect_status(wrote, MUSTER_E_CLOSED, "the writer");
        size_t got = 0;
        const Status status = get(*p.streams[1], data.data(), data.size(), data.size(), 2 * second, &got);
        f.expect_status(status, MUSTER_E_END, "the reader");
        f.expect(got == moved, "what was accepted was read");
    });
}

void test_releasing_with_a_reservation_out_tells_the_reader(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        void *room;
        size_t size;
        Deadline once(0);
        f.expect_status(p.streams[0]->reserve(100, once, room, size), MUSTER_OK, "reserve");
        p.drop(0);
        char c;
        f.expect_status(get(*p.streams[1], &c, 1, 1, 2 * second), MUSTER_E_END, "the reader");
    });
}

void test_a_watched_peek_for_more_than_there_is_says_again(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        f.expect_status(p.streams[1]->watch(MUSTER_STREAM_READABLE, p.queue.get(), 3), MUSTER_OK, "watch");
        put(*p.streams[0], "12345", 5, 0);
        while (take(*p.queue, 0).status == MUSTER_OK) {
        }
        const void *data;
        size_t size;
        Deadline once(0);
        f.expect_status(p.streams[1]->peek(10, once, data, size), MUSTER_AGAIN, "peek");
        f.expect(size == 5, "it says what there is");
        f.expect_status(take(*p.queue, 0).status, MUSTER_AGAIN, "nothing to tell yet");
        put(*p.streams[0], "67890", 5, 0);
        f.expect_status(take(*p.queue, second).status, MUSTER_OK, "told once it is there");
        f.expect_status(p.streams[1]->peek(10, once, data, size), MUSTER_OK, "peek again");
        p.streams[1]->consume(10);
    });
}

void test_a_watched_reserve_for_more_than_is_free_says_again(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        f.expect_status(p.streams[0]->watch(MUSTER_STREAM_WRITABLE, p.queue.get(), 3), MUSTER_OK, "watch");
        std::vector<unsigned char> data(65536);
        put(*p.streams[0], data.data(), 60000, 0);
        while (take(*p.queue, 0).status == MUSTER_OK) {
        }
        void *room;
        size_t size;
        Deadline once(0);
        f.expect_status(p.streams[0]->reserve(16384, once, room, size), MUSTER_AGAIN, "reserve");
        get(*p.streams[1], data.data(), 60000, 60000, 0);
        f.expect_status(take(*p.queue, second).status, MUSTER_OK, "told once there is room");
        f.expect_status(p.streams[0]->reserve(16384, once, room, size), MUSTER_OK, "reserve again");
        p.streams[0]->commit(0);
    });
}

void test_a_peek_over_many_small_pieces_sees_them_all(void **) {
    run([](Findings &f) {
        LocalPair p(1 << 20);
        std::string expected;
        static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+/";
        for (int i = 0; i < 64; i++) {
            put(*p.streams[0], "-", 1, 0);
            f.expect_status(p.streams[0]->write_owned(text + i, 1, *p.queue, 0), MUSTER_OK, "write_owned");
            expected += "-";
            expected += text[i];
        }
        const void *data;
        size_t size;
        Deadline deadline(second);
        if (f.expect_status(p.streams[1]->peek(128, deadline, data, size), MUSTER_OK, "peek"))
            f.expect(size == 128 && memcmp(data, expected.data(), 128) == 0, "all of them in order");
        f.expect_status(p.streams[1]->consume(128), MUSTER_OK, "consume");
        int back = 0;
        while (take(*p.queue, 0).status == MUSTER_OK) back++;
        f.expect(back == 64, "every buffer came back");
    });
}

void test_a_peek_into_a_large_buffer_handed_over_is_not_cut_short(void **) {
    run([](Findings &f) {
        LocalPair p(4 << 20);
        std::vector<unsigned char> data(3 << 20);
        fill(data.data(), data.size(), 0);
        f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queue, 0), MUSTER_OK, "write_owned");
        const void *shown;
        size_t size;
        Deadline deadline(second);
        if (f.expect_status(p.streams[1]->peek(1 << 20, deadline, shown, size), MUSTER_OK, "peek"))
            f.expect(size >= 1 << 20 && matches(static_cast<const unsigned char *>(shown), size, 0), "the bytes");
    });
}

void test_a_peek_skips_a_buffer_taken_back(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        put(*p.streams[0], "12345", 5, 0);
        unsigned char gone[1000];
        memset(gone, 'g', sizeof gone);
        f.expect_status(p.streams[0]->write_owned(gone, sizeof gone, *p.queue, 0), MUSTER_OK, "write_owned");
        f.expect_status(p.streams[0]->cancel(MUSTER_STREAM_WRITE), MUSTER_OK, "cancel");
        const void *data;
        size_t size;
        Deadline shortly(20 * ms);
        f.expect_status(p.streams[1]->peek(10, shortly, data, size), MUSTER_TIMEOUT, "peek for more than is left");
        f.expect(size == 5, "it says what there is");
        put(*p.streams[0], "67890", 5, 0);
        Deadline deadline(second);
        if (f.expect_status(p.streams[1]->peek(10, deadline, data, size), MUSTER_OK, "peek"))
            f.expect(size == 10 && memcmp(data, "1234567890", 10) == 0, "around the buffer that is gone");
        f.expect_status(p.streams[1]->consume(7), MUSTER_OK, "consume");
        char rest[3];
        f.expect_status(get(*p.streams[1], rest, 3, 3, 0), MUSTER_OK, "the rest");
        f.expect(memcmp(rest, "890", 3) == 0, "in order");
    });
}

void test_cancelling_a_buffer_that_was_shown_tells_the_reader(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        unsigned char data[1000];
        memset(data, 'g', sizeof data);
        f.expect_status(p.streams[0]->write_owned(data, sizeof data, *p.queue, 0), MUSTER_OK, "write_owned");
        const void *shown;
        size_t size;
        Deadline once(0);
        f.expect_status(p.streams[1]->peek(10, once, shown, size), MUSTER_OK, "peek");
        f.expect_status(p.streams[0]->cancel(MUSTER_STREAM_WRITE), MUSTER_OK, "cancel");
        p.streams[1]->consume(10);
        f.expect_status(get(*p.streams[1], data, 1, sizeof data, 0), MUSTER_E_ABORTED, "the reader has begun it");
    });
}

void test_read_begin_while_bytes_are_shown_is_refused(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        put(*p.streams[0], "12345", 5, 0);
        const void *data;
        size_t size;
        char more[4];
        Deadline once(0);
        f.expect_status(p.streams[1]->peek(3, once, data, size), MUSTER_OK, "peek");
        f.expect_status(p.streams[1]->read_begin(more, 4, *p.queue, 1), MUSTER_E_BUSY, "read_begin");
        f.expect(size == 5 && memcmp(data, "12345", 5) == 0, "what is shown stays");
        p.streams[1]->consume(5);
    });
}

void test_the_window_bounds_what_is_buffered(void **) {
    run([](Findings &f) {
        constexpr uint64_t window = 1 << 20;
        LocalPair p(window);
        std::vector<unsigned char> data(window);
        uint64_t total = 0;
        size_t moved = 1;
        for (size_t size = 100; moved != 0; size = size * 3 / 2) { // the rings grow under it, none is emptied
            put(*p.streams[0], data.data(), std::min(size, data.size()), 0, &moved);
            total += moved;
        }
        f.expect(total == window, "neither more nor less than the window");
    });
}

void test_the_window_holds_with_buffers_handed_over_between(void **) {
    run([](Findings &f) {
        constexpr uint64_t window = 1 << 20;
        LocalPair p(window);
        std::vector<unsigned char> data(2 * window);
        size_t first = 0, second_part = 0;
        put(*p.streams[0], data.data(), window / 2, 0, &first);
        f.expect_status(p.streams[0]->write_owned(data.data(), 5000, *p.queue, 1), MUSTER_OK, "write_owned");
        put(*p.streams[0], data.data(), 2 * window, 0, &second_part);
        f.expect(first + second_part == window, "the window, not counting the buffer handed over");
    });
}

// A thread that waits must not burn its core.
int64_t cpu_ns() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * second + t.tv_nsec;
}

void test_closing_waits_for_a_buffer_handed_over_asleep(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        std::vector<unsigned char> data(200'000);
        f.expect_status(p.streams[0]->write_owned(data.data(), data.size(), *p.queue, 1), MUSTER_OK, "write_owned");
        const int64_t before = cpu_ns();
        Deadline shortly(300 * ms);
        f.expect_status(p.streams[0]->close(shortly), MUSTER_TIMEOUT, "close");
        f.expect(cpu_ns() - before < 100 * ms, "close slept");
    });
}

void test_an_armed_watch_outlives_a_blocking_read(void **) {
    run([](Findings &f) {
        for (int round = 0; round < 300 && !f.failed(); round++) {
            LocalPair p(65536);
            f.expect_status(p.streams[1]->watch(MUSTER_STREAM_READABLE, p.queue.get(), 3), MUSTER_OK, "watch");
            std::thread writer([&] { put(*p.streams[0], "x", 1, second); });
            char c;
            get(*p.streams[1], &c, 1, 1, 5 * second);
            writer.join();
            const bool told = take(*p.queue, 0).status == MUSTER_OK; // of the first byte, or not
            put(*p.streams[0], "y", 1, 0);
            // When the first event was reported, the watch is spent until a read returns AGAIN; otherwise it must
            // report the second.
            if (!told) f.expect_status(take(*p.queue, second).status, MUSTER_OK, "the watch still tells");
        }
    });
}

void test_a_read_refused_because_another_thread_reads_is_told_later(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        f.expect_status(p.streams[1]->watch(MUSTER_STREAM_READABLE, p.queue.get(), 3), MUSTER_OK, "watch");
        put(*p.streams[0], "a", 1, 0);
        f.expect_status(take(*p.queue, second).status, MUSTER_OK, "told: the watch is spent");
        char c, d[2];
        get(*p.streams[1], &c, 1, 1, 0);
        std::thread reader([&] { get(*p.streams[1], d, 1, 1, 5 * second); });
        until_asleep(p.streams[1]->duplex().incoming(1).control(), true);
        f.expect_status(get(*p.streams[1], &c, 1, 1, 0), MUSTER_AGAIN, "the direction is taken");
        put(*p.streams[0], "bc", 2, 0);
        reader.join();
        f.expect_status(take(*p.queue, second).status, MUSTER_OK, "told when it is free and there is something");
        f.expect_status(get(*p.streams[1], &c, 1, 1, 0), MUSTER_OK, "the rest is there");
    });
}

void test_buffers_handed_over_come_back_when_the_stream_ends_meanwhile(void **) {
    run([](Findings &f) {
        for (int round = 0; round < 2000 && !f.failed(); round++) {
            LocalPair p(4096);
            unsigned char data[64] = {};
            std::thread ender([&] { p.streams[1]->abort(1, "over"); });
            const Status status = p.streams[0]->write_owned(data, sizeof data, *p.queue, 1);
            ender.join();
            f.expect(status == MUSTER_OK || status == MUSTER_E_ABORTED, "taken");
            f.expect_status(take(*p.queue, 0).status, MUSTER_OK, "and back at once, since nobody will read it");
        }
    });
}

void test_submitting_does_not_wait_behind_a_sleeper(void **) {
    run([](Findings &f) {
        LocalPair p(4096);
        std::vector<unsigned char> data(100'000);
        std::thread writer([&] { put(*p.streams[0], data.data(), data.size(), 30 * second); });
        char c, d[4];
        std::thread reader([&] { get(*p.streams[0], &c, 1, 1, 30 * second); });
        until_asleep(p.streams[1]->duplex().incoming(1).control(), false);
        until_asleep(p.streams[1]->duplex().outgoing(1).control(), true);
        const int64_t before = now_ns();
        f.expect_status(p.streams[0]->write_owned(data.data(), 8, *p.queue, 1), MUSTER_AGAIN, "write_owned");
        f.expect_status(p.streams[0]->read_begin(d, 4, *p.queue, 1), MUSTER_AGAIN, "read_begin");
        f.expect(now_ns() - before < 5 * second, "neither waited");
        f.expect_status(take(*p.queue, 0).status, MUSTER_AGAIN, "nothing was taken, nothing comes back");
        p.streams[0]->cancel(MUSTER_STREAM_READ | MUSTER_STREAM_WRITE);
        writer.join();
        reader.join();
        muster_queue_stats stats;
        p.queue->stats(stats);
        f.expect(stats.outstanding == 0, "no slot stays reserved");
    });
}

void test_closing_a_queue_gives_buffers_back(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        unsigned char data[1000], into[16];
        memset(data, 'a', sizeof data);
        memset(into, 'i', sizeof into);
        f.expect_status(p.streams[0]->write_owned(data, sizeof data, *p.queue, 1), MUSTER_OK, "write_owned");
        f.expect_status(p.streams[0]->read_begin(into, sizeof into, *p.queue, 2), MUSTER_OK, "read_begin");
        p.queue->close();
        memset(data, 'z', sizeof data); // ours again
        put(*p.streams[1], "0123456789abcdef", 16, 0);
        f.expect(into[0] == 'i', "the target of the read is not written any more");
        char c;
        const Status status = get(*p.streams[1], &c, 1, 1, 20 * ms);
        f.expect(status != MUSTER_OK || c != 'z', "nor is the buffer handed over read");
    });
}

void test_an_abort_after_the_peer_s_end_changes_nothing(void **) {
    run([](Findings &f) {
        LocalPair p(65536);
        put(*p.streams[0], "last words", 10, 0);
        p.streams[0]->abort(7, "first");
        p.streams[1]->abort(9, "second");
        char words[10];
        f.expect_status(get(*p.streams[1], words, 10, 10, 0), MUSTER_OK, "what came before stays readable");
        uint64_t reason = 0;
        muster_error error;
        p.streams[1]->reason(&reason, &error);
        f.expect(reason == 7 && strstr(error.message, "first") != nullptr, "the first reason stays");
    });
}

void test_watches_may_be_set_from_several_threads(void **) {
    run([](Findings &f) {
        LocalPair p(4096);
        auto other = make_queue(*p.context);
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; i++)
            threads.emplace_back([&, i] {
                for (int n = 0; n < 2000; n++) {
                    Queue *q = (n + i) % 2 == 0 ? p.queue.get() : other.get();
                    p.streams[0]->watch(n % 5 == 0 ? 0 : MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE, q, 1);
                }
            });
        std::thread taker([&] {
            while (!stop.load()) {
                take(*p.queue, 0);
                take(*other, 0);
            }
        });
        for (auto &t : threads) t.join();
        stop.store(true);
        taker.join();
        f.expect_status(p.streams[0]->watch(0, nullptr, 0), MUSTER_OK, "stop");
        while (take(*p.queue, 0).status == MUSTER_OK) {
        }
        while (take(*other, 0).status == MUSTER_OK) {
        }
        p.streams[0]->watch(MUSTER_STREAM_WRITABLE, other.get(), 77);
        const Taken t = take(*other, second);
        f.expect(t.status == MUSTER_OK && t.completion.tag == 77, "the last watch works");
    });
}

void test_cancel_of_a_large_buffer_does_not_wait_for_its_reader(void **) {
    run([](Findings &f) {
        LocalPair p(1 << 20);
        const size_t size = size_t{512} << 20;
        auto *data = static_cast<unsigned char *>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        f.expect_status(p.streams[0]->write_owned(data, size, *p.queue, 1), MUSTER_OK, "write_owned");
        std::vector<unsigned char> into(64 << 20);
        std::thread reader([&] {
            while (get(*p.streams[1], into.data(), into.size(), into.size(), 5 * second) == MUSTER_OK) {
            }
        });
        sleep_ms(2);
        const int64_t before = now_ns();
        p.streams[0]->cancel(MUSTER_STREAM_WRITE);
        const int64_t took = now_ns() - before;
        munmap(data, size); // a reader still inside would crash
        reader.join();
        f.expect(took < 50 * ms, "cancel waits for one piece only");
    });
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_closing_a_context_ends_reads_under_way),
        cmocka_unit_test(test_releasing_a_stream_with_a_sleeping_writer_tells_the_reader),
        cmocka_unit_test(test_closing_a_stream_with_a_sleeping_writer_tells_the_reader),
        cmocka_unit_test(test_finishing_ends_a_sleeping_write),
        cmocka_unit_test(test_releasing_with_a_reservation_out_tells_the_reader),
        cmocka_unit_test(test_a_watched_peek_for_more_than_there_is_says_again),
        cmocka_unit_test(test_a_watched_reserve_for_more_than_is_free_says_again),
        cmocka_unit_test(test_a_peek_over_many_small_pieces_sees_them_all),
        cmocka_unit_test(test_a_peek_into_a_large_buffer_handed_over_is_not_cut_short),
        cmocka_unit_test(test_a_peek_skips_a_buffer_taken_back),
        cmocka_unit_test(test_cancelling_a_buffer_that_was_shown_tells_the_reader),
        cmocka_unit_test(test_read_begin_while_bytes_are_shown_is_refused),
        cmocka_unit_test(test_the_window_bounds_what_is_buffered),
        cmocka_unit_test(test_the_window_holds_with_buffers_handed_over_between),
        cmocka_unit_test(test_closing_waits_for_a_buffer_handed_over_asleep),
        cmocka_unit_test(test_an_armed_watch_outlives_a_blocking_read),
        cmocka_unit_test(test_a_read_refused_because_another_thread_reads_is_told_later),
        cmocka_unit_test(test_buffers_handed_over_come_back_when_the_stream_ends_meanwhile),
        cmocka_unit_test(test_submitting_does_not_wait_behind_a_sleeper),
        cmocka_unit_test(test_closing_a_queue_gives_buffers_back),
        cmocka_unit_test(test_an_abort_after_the_peer_s_end_changes_nothing),
        cmocka_unit_test(test_watches_may_be_set_from_several_threads),
        cmocka_unit_test(test_cancel_of_a_large_buffer_does_not_wait_for_its_reader),
    };
    return cmocka_run_group_tests_name("duplex", tests, nullptr, nullptr);
}
