// SPDX-License-Identifier: MIT
// The event loop by itself: tasks, timers and descriptors are served in each turn, and what is left at its end is
// notified. ctest: quick timeout=60
#include "context/loop_watch.hpp"

#include "base/time.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

class Owner final : public Object {
  public:
    Loop loop{*this};
};

class Counted final : public Object, public Watch {
  public:
    explicit Counted(int &ends, int &alive) noexcept : ends_(ends), alive_(alive) { alive_++; }
    int events = 0;

  private:
    ~Counted() override { alive_--; }
    void on_events(uint32_t) noexcept override { events++; }
    void on_loop_end() noexcept override { ends_++; }
    Object &watch_owner() noexcept override { return *this; }
    int &ends_, &alive_;
};

Ref<Owner> make_owner(Loop::Mode mode) {
    auto owner = make_ref<Owner>();
    if (auto opened = owner->loop.open(mode); !opened) fail_msg("%s", opened.error().message);
    owner->loop.enter();
    return owner;
}

} // namespace

static void test_a_turn_waits_for_the_earliest_timer(void **) {
    const auto owner = make_owner(Loop::Mode::waits);
    Loop &loop = owner->loop;
    int order = 0, first = 0, second = 0;
    LoopTimer late(loop, [&] { second = ++order; }), early(loop, [&] { first = ++order; });
    const int64_t begin = now_ns();
    late.start(30'000'000, 0);
    early.start(5'000'000, 0);
    while (second == 0) loop.turn(INT64_MAX);
    const int64_t took = now_ns() - begin;
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
    assert_true(took >= 30'000'000);
    assert_true(loop.turns() < 20);  // it did not spin
    loop.turn(now_ns() + 2'000'000); // ends by itself
    loop.refuse_tasks();
    loop.close();
}

static void test_a_post_from_another_thread_ends_the_wait(void **) {
    const auto owner = make_owner(Loop::Mode::waits);
    constexpr int rounds = 1000; // the next is posted when the one before has run: the loop is about to wait, or waits
    std::atomic<int> ran{0};
    std::thread poster([&] {
        for (int i = 0; i < rounds; i++) {
            owner->loop.post(make_task([&] {
                ran++;
                ran.notify_one();
            }));
            ran.wait(i);
        }
    });
    while (ran < rounds) owner->loop.turn(INT64_MAX);
    poster.join();
    owner->loop.refuse_tasks();
    const bool refused = !owner->loop.post(make_task([] {}));
    owner->loop.close();
    assert_true(refused);
}

static void test_a_polled_loop_shows_what_is_due(void **) {
    const auto owner = make_owner(Loop::Mode::polled);
    Loop &loop = owner->loop;
    int before, after;
    bool due = false;
    {
        LoopTimer timer(loop, [&] { due = true; });
        timer.start(20'000'000, 0);
        loop.show_timers();
        pollfd ready{loop.fd(), POLLIN, 0};
        before = poll(&ready, 1, 0);
        after = poll(&ready, 1, 5'000);
        loop.turn(0);
        loop.show_timers();
    }
    pollfd quiet{loop.fd(), POLLIN, 0};
    const int last = poll(&quiet, 1, 0);
    loop.refuse_tasks();
    loop.close();
    assert_int_equal(before, 0);
    assert_int_equal(after, 1);
    assert_true(due);
    assert_int_equal(last, 0);
}

static void test_the_end_notifies_and_releases_watches(void **) {
    int ends = 0, alive = 0, events = 0;
    const int left = eventfd(0, EFD_CLOEXEC), gone = eventfd(0, EFD_CLOEXEC);
    {
        const auto owner = make_owner(Loop::Mode::waits);
        Loop &loop = owner->loop;
        const auto one = make_ref<Counted>(ends, alive), two = make_ref<Counted>(ends, alive);
        assert_true(static_cast<bool>(loop.watch(*one, left, EPOLLIN | EPOLLET)));
        assert_true(static_cast<bool>(loop.watch(*two, gone, EPOLLIN)));
        eventfd_write(left, 1);
        loop.turn(INT64_MAX);
        loop.turn(0); // an edge is reported once
        events = one->events;
        loop.unwatch(*two, gone);
        eventfd_write(gone, 1);
        loop.turn(0);
        events += two->events;
        loop.refuse_tasks();
        loop.close();
        assert_int_equal(loop.watch(*two, gone, EPOLLIN).status(), MUSTER_E_CLOSED);
    }
    close(left);
    close(gone);
    assert_int_equal(events, 1);
    assert_int_equal(ends, 1);
    assert_int_equal(alive, 0);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_turn_waits_for_the_earliest_timer),
        cmocka_unit_test(test_a_post_from_another_thread_ends_the_wait),
        cmocka_unit_test(test_a_polled_loop_shows_what_is_due),
        cmocka_unit_test(test_the_end_notifies_and_releases_watches),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
