// SPDX-License-Identifier: MIT
// The inside of the queue: reservations, sources and their descriptors, what close() ends.
#include "queue/queue.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "context_fixture.hpp"

using namespace muster;

namespace {

constexpr int64_t ms = 1'000'000;

Ref<Queue> make_queue(uint32_t capacity = 64) {
    auto made = Queue::create(*make_context(), capacity); // the queue keeps the context
    if (!made) fail_msg("%s", made.error().message);
    return std::move(*made);
}

Status look(Queue &queue, muster_completion &out, muster_error *error = nullptr) {
    Deadline once(0);
    out = {};
    return queue.next(once, &out, error);
}

struct Counted : Object {
    explicit Counted(std::atomic<int> &alive) : alive(alive) { alive++; }
    ~Counted() override { alive--; }
    std::atomic<int> &alive;
};

// A watched object with an eventfd, as a stream has one.
struct Watched final : Object, Source {
    Watched() : fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Watched() override { close(fd); }
    uint32_t on_fd(uint32_t) noexcept override {
        calls++;
        while (hold.load()) std::this_thread::yield();
        return tells;
    }
    Object &owner() noexcept override { return *this; }
    void ring() const {
        const uint64_t one = 1;
        if (write(fd, &one, sizeof one) != sizeof one) abort();
    }
    int fd;
    uint32_t tells = 1;
    std::atomic<int> calls{0};
    std::atomic<bool> hold{false};
};

} // namespace

static void test_reserved_slots_are_kept_for_their_completions(void **) {
    Ref<Queue> queue = make_queue(2);
    bool right = queue->reserve() && queue->reserve() && !queue->reserve() && !queue->try_post({});
    queue->unreserve();
    right = right && queue->try_post({}) && !queue->try_post({});
    Entry entry;
    entry.completion.tag = 9;
    queue->complete(std::move(entry));
    muster_completion out;
    right = right && look(*queue, out) == MUSTER_OK && out.tag == 0;
    right = right && look(*queue, out) == MUSTER_OK && out.tag == 9;
    right = right && look(*queue, out) == MUSTER_AGAIN;
    queue.reset();
    assert_true(right);
}

static void test_error_texts_come_with_failed_entries(void **) {
    Ref<Queue> queue = make_queue();
    Entry entry;
    entry.completion.status = MUSTER_E_PEER;
    entry.error = Error::make(MUSTER_E_PEER, "peer 5 died");
    queue->try_post(std::move(entry));
    queue->context().set_log(MUSTER_LOG_WARN, queue.get(), 33);
    queue->context().log(MUSTER_LOG_INFO, "not wanted");
    queue->context().log(MUSTER_LOG_WARN, "listener %s refused %d", "tcp://x", 4);
    muster_completion first, second, third;
    muster_error error{}, record{};
    Status status[3] = {look(*queue, first, &error), look(*queue, second, &record), look(*queue, third)};
    queue.reset();
    assert_int_equal(status[0], MUSTER_OK);
    assert_int_equal(first.status, MUSTER_E_PEER);
    assert_string_equal(error.message, "peer 5 died");
    assert_int_equal(status[1], MUSTER_OK);
    assert_int_equal(second.kind, MUSTER_EVENT_LOG);
    assert_int_equal(second.status, MUSTER_LOG_WARN);
    assert_int_equal(second.tag, 33);
    assert_string_equal(record.message, "listener tcp://x refused 4");
    assert_int_equal(status[2], MUSTER_AGAIN);
}

static void test_log_records_are_dropped_and_counted_when_full(void **) {
    Ref<Queue> queue = make_queue(1);
    queue->context().set_log(MUSTER_LOG_DEBUG, queue.get(), 0);
    for (int i = 0; i < 5; i++) queue->context().log(MUSTER_LOG_ERROR, "record");
    muster_queue_stats stats;
    queue->stats(stats);
    queue.reset();
    assert_int_equal(stats.depth, 1);
    assert_int_equal(stats.log_dropped, 4);
}

static void test_the_log_does_not_keep_its_queue(void **) {
    Ref<Context> context = make_context();
    {
        auto queue = Queue::create(*context, 4);
        context->set_log(MUSTER_LOG_DEBUG, queue->get(), 0);
    }
    const bool logs = context->logs(MUSTER_LOG_ERROR);
    context->log(MUSTER_LOG_ERROR, "to nobody");
    context.reset();
    assert_false(logs);
}

static void test_objects_in_entries_are_released_with_the_queue(void **) {
    std::atomic<int> alive{0};
    int waiting = 0, after_close = 0;
    {
        Ref<Queue> queue = make_queue();
        const auto entry = [&] {
            Entry e;
            e.object = Ref<Object>(make_ref<Counted>(alive));
            return e;
        };
        queue->try_post(entry());
        bool reserved = queue->reserve();
        waiting = alive + !reserved;
        queue->close();
        queue->complete(entry()); // dropped
        after_close = alive;
    }
    assert_int_equal(waiting, 1);
    assert_int_equal(after_close, 1);
    assert_int_equal(alive.load(), 0);
}

static void test_objects_taken_are_the_takers(void **) {
    std::atomic<int> alive{0};
    bool same = false;
    {
        Ref<Queue> queue = make_queue();
        auto *object = new Counted(alive);
        Entry entry;
        entry.completion.object = object;
        entry.object = Ref<Object>::adopt(object);
        queue->try_post(std::move(entry));
        muster_completion out;
        look(*queue, out);
        same = out.object == object && alive == 1;
        static_cast<Counted *>(out.object)->release();
    }
    assert_true(same);
    assert_int_equal(alive.load(), 0);
}

static void test_readiness_is_one_coalesced_event(void **) {
    Ref<Queue> queue = make_queue();
    auto watched = make_ref<Watched>();
    queue->attach(*watched, 77);
    queue->raise(*watched, 1);
    queue->raise(*watched, 4);
    queue->raise(*watched, 1);
    muster_completion out, none;
    const Status first = look(*queue, out), second = look(*queue, none);
    queue->detach(*watched);
    queue->raise(*watched, 1); // not attached: nothing
    const Status third = look(*queue, none);
    queue.reset();
    assert_int_equal(first, MUSTER_OK);
    assert_int_equal(out.kind, MUSTER_EVENT_READY);
    assert_int_equal(out.tag, 77);
    assert_int_equal(out.events, 5);
    assert_int_equal(second, MUSTER_AGAIN);
    assert_int_equal(third, MUSTER_AGAIN);
}

static void test_entries_and_readiness_keep_their_order(void **) {
    Ref<Queue> queue = make_queue();
    auto a = make_ref<Watched>(), b = make_ref<Watched>();
    queue->attach(*a, 100);
    queue->attach(*b, 200);
    const auto post = [&](uint64_t tag) {
        Entry entry;
        entry.completion.tag = tag;
        queue->try_post(std::move(entry));
    };
    post(1);
    queue->raise(*b, 1);
    post(2);
    queue->raise(*a, 1);
    queue->raise(*b, 2); // keeps its place
    std::vector<uint64_t> tags;
    muster_completion out;
    while (look(*queue, out) == MUSTER_OK) tags.push_back(out.tag);
    queue->detach(*a);
    queue->detach(*b);
    queue.reset();
    const std::vector<uint64_t> expected = {1, 200, 2, 100};
    const bool equal = tags == expected;
    tags = {};
    assert_true(equal);
}

static void test_detach_takes_back_what_was_raised(void **) {
    Ref<Queue> queue = make_queue();
    auto a = make_ref<Watched>(), b = make_ref<Watched>();
    queue->attach(*a, 1);
    queue->attach(*b, 2);
    queue->raise(*a, 1);
    queue->raise(*b, 1);
    queue->detach(*a);
    muster_completion out;
    const bool right = look(*queue, out) == MUSTER_OK && out.tag == 2 && look(*queue, out) == MUSTER_AGAIN;
    queue->detach(*b);
    queue.reset();
    assert_true(right);
}

static void test_descriptor_edges_become_events(void **) {
    Ref<Queue> queue = make_queue();
    auto watched = make_ref<Watched>();
    queue->attach(*watched, 5);
    bool right = bool(queue->add_fd(*watched, watched->fd, EPOLLIN));
    muster_completion out;
    right = right && look(*queue, out) == MUSTER_AGAIN;
    for (int round = 0; round < 3; round++) {
        watched->ring();
        right = right && look(*queue, out) == MUSTER_OK && out.tag == 5 && out.events == 1;
        right = right && look(*queue, out) == MUSTER_AGAIN; // an edge, although the counter was never read
    }
    queue->modify_fd(*watched, watched->fd, EPOLLIN); // raises the edge again: it is still readable
    right = right && look(*queue, out) == MUSTER_OK;
    watched->tells = 0; // a false alarm
    watched->ring();
    right = right && look(*queue, out) == MUSTER_AGAIN && watched->calls == 5;
    queue->remove_fd(*watched, watched->fd);
    watched->ring();
    right = right && look(*queue, out) == MUSTER_AGAIN && watched->calls == 5;
    queue->detach(*watched);
    queue.reset();
    assert_true(right);
}

static void test_descriptor_edges_wake_a_waiting_thread(void **) {
    for (const uint32_t flags : {0u, uint32_t{MUSTER_CONTEXT_EXTERNAL}}) {
        Ref<Context> context = make_context(flags);
        Ref<Queue> queue = std::move(*Queue::create(*context, 8));
        auto watched = make_ref<Watched>();
        queue->attach(*watched, 5);
        bool right = bool(queue->add_fd(*watched, watched->fd, EPOLLIN));
        for (int round = 0; round < 200; round++) {
            std::thread ringer([&] { watched->ring(); });
            muster_completion out{};
            Deadline endless(-1);
            right = right && queue->next(endless, &out, nullptr) == MUSTER_OK && out.tag == 5;
            ringer.join();
        }
        queue->detach(*watched);
        queue.reset();
        context.reset();
        assert_true(right);
    }
}

static void test_a_busy_queue_still_sees_descriptors(void **) {
    Ref<Queue> queue = make_queue(1000);
    auto watched = make_ref<Watched>();
    queue->attach(*watched, 5);
    bool right = bool(queue->add_fd(*watched, watched->fd, EPOLLIN));
    for (int i = 0; i < 10; i++) queue->try_post({});
    watched->ring();
    bool seen = false;
    for (int i = 0; i < 500 && !seen; i++) { // never empty
        queue->try_post({});
        muster_completion out;
        right = right && look(*queue, out) == MUSTER_OK;
        seen = out.tag == 5;
    }
    queue->detach(*watched);
    queue.reset();
    assert_true(right);
    assert_true(seen);
}

static void test_detach_waits_for_on_fd(void **) {
    Ref<Queue> queue = make_queue();
    auto watched = make_ref<Watched>();
    queue->attach(*watched, 5);
    bool right = bool(queue->add_fd(*watched, watched->fd, EPOLLIN));
    watched->hold = true;
    watched->ring();
    Status taken = 0;
    muster_completion out;
    std::thread taker([&] { taken = look(*queue, out); });
    while (watched->calls == 0) std::this_thread::yield();
    std::atomic<bool> detached{false};
    std::thread detacher([&] {
        queue->detach(*watched);
        detached = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // gives a wrong detach the time to return
    right = right && !detached;
    watched->hold = false;
    taker.join();
    detacher.join();
    queue.reset();
    assert_true(right);
    assert_int_equal(taken, MUSTER_AGAIN); // no event of a detached source is taken
}

// Sources come and go under the same descriptor numbers while another thread harvests.
static void test_sources_may_go_while_their_edges_are_harvested(void **) {
    Ref<Queue> queue = make_queue();
    std::atomic<bool> stop{false};
    std::thread taker([&] {
        muster_completion out;
        while (!stop) {
            Deadline soon(ms);
            queue->next(soon, &out, nullptr);
        }
    });
    for (int round = 0; round < 3000; round++) {
        auto watched = make_ref<Watched>();
        queue->attach(*watched, 1);
        if (!queue->add_fd(*watched, watched->fd, EPOLLIN)) abort();
        watched->ring();
        queue->raise(*watched, 2);
        if (round % 2) queue->remove_fd(*watched, watched->fd);
        queue->detach(*watched);
    }
    stop = true;
    taker.join();
    queue.reset();
}

namespace {

// Operations with a buffer that a thread of the test fills until it is told to stop.
struct Operations final : Object, QueueUser {
    void end_operations() noexcept override {
        stop = true;
        while (running) std::this_thread::yield();
        ended++;
    }
    Object &owner() noexcept override { return *this; }
    std::atomic<bool> stop{false}, running{false};
    std::atomic<int> ended{0};
};

} // namespace

static void test_close_ends_the_operations_under_way(void **) {
    Ref<Queue> queue = make_queue();
    auto user = make_ref<Operations>(), idle = make_ref<Operations>();
    bool right = queue->enlist(*user) && queue->enlist(*user) && queue->enlist(*idle) && queue->reserve();
    queue->delist(*idle);
    queue->delist(*idle);
    std::vector<char> buffer(1000);
    user->running = true;
    std::thread worker([&] {
        while (!user->stop)
            for (char &byte : buffer) byte++;
        user->running = false;
    });
    queue->close();
    std::fill(buffer.begin(), buffer.end(), 0); // ours again: a race here is seen by ThreadSanitizer
    worker.join();
    queue->complete({}); // the operation ends afterwards, without an entry
    muster_completion out;
    right =
        right && look(*queue, out) == MUSTER_E_CLOSED && user->ended == 1 && idle->ended == 0 && !queue->enlist(*user);
    queue->delist(*user);
    queue.reset();
    assert_true(right);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved_slots_are_kept_for_their_completions),
        cmocka_unit_test(test_error_texts_come_with_failed_entries),
        cmocka_unit_test(test_log_records_are_dropped_and_counted_when_full),
        cmocka_unit_test(test_the_log_does_not_keep_its_queue),
        cmocka_unit_test(test_objects_in_entries_are_released_with_the_queue),
        cmocka_unit_test(test_objects_taken_are_the_takers),
        cmocka_unit_test(test_readiness_is_one_coalesced_event),
        cmocka_unit_test(test_entries_and_readiness_keep_their_order),
        cmocka_unit_test(test_detach_takes_back_what_was_raised),
        cmocka_unit_test(test_descriptor_edges_become_events),
        cmocka_unit_test(test_descriptor_edges_wake_a_waiting_thread),
        cmocka_unit_test(test_a_busy_queue_still_sees_descriptors),
        cmocka_unit_test(test_detach_waits_for_on_fd),
        cmocka_unit_test(test_sources_may_go_while_their_edges_are_harvested),
        cmocka_unit_test(test_close_ends_the_operations_under_way),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
