// SPDX-License-Identifier: MIT
// The inside of the context: mailbox, sleeping and waking, parts, and how it all ends.
#include "context/context.hpp"

#include "context/loop_watch.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "context_fixture.hpp"

using namespace muster;

namespace {

constexpr int64_t ms = 1'000'000;

constexpr int kinds = 3;

// Runs the test with a thread, without one, and with a thread that takes turns with those of the host.
template <class Body>
void with_each(const Body &body) {
    for (int kind = 0; kind < kinds; kind++) {
        Ref<Context> context = make_context(kind == 1 ? uint32_t{MUSTER_CONTEXT_EXTERNAL} : 0u);
        if (kind == 2 && !context->share()) fail_msg("no descriptors");
        body(*context);
    }
}

void wait_until(Context &context, const std::atomic<bool> &flag) {
    while (!flag.load()) {
        Deadline soon(ms);
        if (context.external())
            context.progress(soon);
        else
            std::this_thread::yield();
    }
}

} // namespace

static void test_tasks_run_in_order_on_the_loop_thread(void **) {
    bool ordered = true, on_loop = true;
    with_each([&](Context &context) {
        std::vector<int> seen;
        std::atomic<bool> done{false};
        for (int i = 0; i < 1000; i++)
            context.post([&, i] {
                seen.push_back(i);
                on_loop = on_loop && context.on_loop();
                if (i == 999) done = true;
            });
        wait_until(context, done);
        for (int i = 0; i < 1000; i++) ordered = ordered && seen[static_cast<size_t>(i)] == i;
        on_loop = on_loop && !context.on_loop();
    });
    assert_true(ordered);
    assert_true(on_loop);
}

static void test_a_task_may_post_for_ever_without_starving_the_loop(void **) {
    bool fired = true;
    with_each([&](Context &context) {
        struct Again {
            Context &context;
            std::atomic<bool> &stop;
            void operator()() const {
                if (!stop) context.post(Again{context, stop});
            }
        };
        std::atomic<bool> stop{false}, done{false};
        std::unique_ptr<LoopTimer> timer;
        context.post(Again{context, stop});
        context.post([&] {
            timer = std::make_unique<LoopTimer>(context.loop(), [&] { stop = true; });
            timer->start(5'000'000, 0);
        });
        wait_until(context, stop); // the timer has its turn although there is always a task
        context.post([&] {
            timer.reset();
            done = true;
        });
        wait_until(context, done);
        fired = fired && stop;
    });
    assert_true(fired);
}

static void test_posts_after_the_end_are_refused_and_destroyed(void **) {
    int destroyed = 0;
    bool refused = true;
    with_each([&](Context &context) {
        Deadline endless(-1);
        context.close(endless);
        struct Count final : Task {
            explicit Count(int &n) : n(n) {}
            ~Count() override { n++; }
            void run() noexcept override { n = 100; }
            int &n;
        };
        refused = refused && !context.post(std::make_unique<Count>(destroyed));
    });
    assert_int_equal(destroyed, kinds);
    assert_true(refused);
}

static void test_tasks_posted_before_the_end_are_run(void **) {
    int run = 0;
    with_each([&](Context &context) {
        for (int i = 0; i < 100; i++) context.post([&] { run++; });
        Deadline endless(-1);
        context.close(endless);
    });
    assert_int_equal(run, kinds * 100);
}

static void test_many_posters(void **) {
    std::atomic<int> run{0};
    with_each([&](Context &context) {
        std::vector<std::thread> posters;
        std::atomic<int> left{4};
        std::atomic<bool> done{false};
        for (int t = 0; t < 4; t++)
            posters.emplace_back([&] {
                for (int i = 0; i < 20000; i++) context.post([&] { run++; });
                if (left.fetch_sub(1) == 1) context.post([&] { done = true; });
            });
        wait_until(context, done);
        for (auto &poster : posters) poster.join();
        Deadline endless(-1);
        context.close(endless);
    });
    assert_int_equal(run.load(), kinds * 4 * 20000);
}

static void test_the_last_reference_may_go_on_the_loop_thread(void **) {
    std::atomic<bool> gone{false};
    {
        struct Tell {
            std::atomic<bool> *flag;
            explicit Tell(std::atomic<bool> *flag) : flag(flag) {}
            Tell(Tell &&other) noexcept : flag(std::exchange(other.flag, nullptr)) {}
            ~Tell() {
                if (flag) *flag = true;
            }
        };
        Ref<Context> context = make_context(0);
        Context &raw = *context;
        raw.post([held = std::move(context), tell = Tell(&gone)]() mutable { held.reset(); });
    }
    while (!gone) std::this_thread::yield();
    assert_true(gone.load());
}

static void test_sleepers_wake_by_notify_and_by_time(void **) {
    std::vector<Status> got;
    with_each([&](Context &context) {
        Signal signal;
        Deadline once(0), soon(5 * ms), endless(-1);
        got.push_back(context.sleep(signal, signal.seen(), once));
        got.push_back(context.sleep(signal, signal.seen(), soon));
        got.push_back(context.sleep(signal, signal.seen() - 1, endless)); // it has changed already
        const uint32_t seen = signal.seen();
        std::thread notifier([&] { context.notify(signal); });
        got.push_back(context.sleep(signal, seen, endless));
        notifier.join();
    });
    const Status expected[] = {MUSTER_TIMEOUT, MUSTER_TIMEOUT, MUSTER_OK, MUSTER_OK};
    assert_int_equal(got.size(), kinds * 4);
    for (size_t i = 0; i < got.size(); i++) assert_int_equal(got[i], expected[i % 4]);
}

static void test_sleeping_on_the_loop_thread_is_refused(void **) {
    Status slept = 0, closed = 0, waited = 0;
    with_each([&](Context &context) {
        Signal signal;
        std::atomic<bool> done{false};
        context.post([&] {
            Deadline endless(-1);
            slept = context.sleep(signal, signal.seen(), endless);
            waited = context.wait_fd(0, endless);
            closed = context.close(endless);
            done = true;
        });
        wait_until(context, done);
    });
    assert_int_equal(slept, MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(waited, MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(closed, MUSTER_E_WOULD_DEADLOCK);
}

// Threads take turns at waking each other; in an external context one of the sleepers drives at any time.
static void test_sleepers_hand_the_baton_on(void **) {
    int rounds = 0;
    with_each([&](Context &context) {
        constexpr int players = 4, laps = 500;
        Signal signal;
        std::atomic<int> turn{0};
        std::vector<std::thread> threads;
        for (int me = 0; me < players; me++)
            threads.emplace_back([&, me] {
                for (int lap = 0; lap < laps; lap++) {
                    for (;;) {
                        const uint32_t seen = signal.seen();
                        if (turn.load() % players == me) break;
                        Deadline endless(-1);
                        context.sleep(signal, seen, endless);
                    }
                    turn++;
                    context.notify(signal);
                }
            });
        for (auto &thread : threads) thread.join();
        rounds += turn;
    });
    assert_int_equal(rounds, kinds * 4 * 500);
}

// A driver that leaves must not leave the others asleep: some wait on a signal, some on a descriptor, the loop serves
// all.
static void test_the_engine_goes_on_when_a_driver_leaves(void **) {
    Ref<Context> context = make_context(MUSTER_CONTEXT_EXTERNAL);
    constexpr int count = 3;
    int served = 0;
    {
        Signal signals[count];
        int fds[count];
        std::vector<std::thread> threads;
        std::atomic<int> finished{0};
        for (int i = 0; i < count; i++) {
            fds[i] = eventfd(0, EFD_CLOEXEC);
            threads.emplace_back([&, i] {
                Deadline endless(-1);
                context->sleep(signals[i], 0, endless);
                finished++;
            });
            threads.emplace_back([&, i] {
                pollfd one{fds[i], POLLIN, 0};
                while (poll(&one, 1, 0) == 0) {
                    Deadline endless(-1);
                    context->wait_fd(fds[i], endless);
                }
                finished++;
            });
        }
        // Only the loop can end these waits, one by one.
        for (int i = 0; i < count; i++) {
            context->post([&, i] { context->notify(signals[i]); });
            while (finished < 2 * i + 1) std::this_thread::yield();
            context->post([&, i] {
                const uint64_t one = 1;
                if (write(fds[i], &one, sizeof one) != sizeof one) abort();
            });
            while (finished < 2 * i + 2) std::this_thread::yield();
        }
        for (auto &thread : threads) thread.join();
        for (int fd : fds) close(fd);
        served = finished;
    }
    assert_int_equal(served, 2 * count);
}

static void test_external_timers_show_in_the_descriptor(void **) {
    Ref<Context> context = make_context(MUSTER_CONTEXT_EXTERNAL);
    int before = -1, within = -1;
    bool fired = false;
    {
        Deadline once(0);
        std::unique_ptr<LoopTimer> timer;
        context->post([&] {
            timer = std::make_unique<LoopTimer>(context->loop(), [&] { fired = true; });
            timer->start(30'000'000, 0);
        });
        while (context->progress(once) == MUSTER_OK) {
        }
        const Fd fd(*context->external_fd());
        while (context->progress(once) == MUSTER_OK) {
        }
        pollfd ready{fd.get(), POLLIN, 0};
        before = poll(&ready, 1, 0);
        within = poll(&ready, 1, 5000);
        while (!fired && context->progress(once) == MUSTER_OK) {
        }
        Deadline endless(-1);
        context->close(endless);
    }
    assert_int_equal(before, 0);
    assert_int_equal(within, 1);
    assert_true(fired);
}

// Posts of other threads reach a host that waits for the descriptor, from the moment it has it, and threads that wait
// in calls, of which one after the other drives.
static void test_posts_reach_all_that_wait(void **) {
    Ref<Context> context = make_context(MUSTER_CONTEXT_EXTERNAL);
    constexpr int rounds = 20'000;
    std::atomic<int> run{0};
    bool shown_before = true, shown_after = false;
    int fd = -1;
    {
        context->post([&] { run++; });
        std::thread poster([&] {
            for (int i = 0; i < rounds; i++) {
                while (run.load() <= i) std::this_thread::yield();
                context->post([&] { run++; });
            }
        });
        Deadline endless(-1);
        while (run <= rounds / 2) context->progress(endless); // one post at a time: a lost one would be waited for
        fd = *context->external_fd();
        while (run <= rounds) {
            pollfd ready{fd, POLLIN, 0};
            if (poll(&ready, 1, 10'000) != 1) break;
            Deadline once(0);
            context->progress(once);
        }
        poster.join();
        shown_before = run == rounds + 1;
        Deadline once(0);
        while (context->progress(once) == MUSTER_OK) {
        }
        context->post([&] { run++; });
        pollfd ready{fd, POLLIN, 0};
        shown_after = poll(&ready, 1, 0) == 1;
        context->close(endless);
        close(fd);
    }
    assert_true(shown_before);
    assert_true(shown_after);
    assert_int_equal(run, rounds + 2);
}

namespace {

std::mutex diary_lock;
std::vector<int> diary; // under diary_lock

void write_down(int what) {
    const std::lock_guard hold(diary_lock);
    diary.push_back(what);
}

// Waits for so many entries, since a context may be freed on its own thread, and takes them.
std::vector<int> take_diary(size_t count) {
    for (;;) {
        const std::lock_guard hold(diary_lock);
        if (diary.size() >= count) return std::exchange(diary, {});
    }
}

struct Diary : ContextPart {
    explicit Diary(int name, int busy_turns = 0) : name(name), busy(busy_turns) {}
    ~Diary() override { write_down(name + 3); }
    void close() noexcept override { write_down(name); }
    bool drained() noexcept override { return busy-- <= 0; }
    void stop() noexcept override { write_down(name + 2); }
    int name, busy;
};

char first_key, second_key, stuck_key;

std::unique_ptr<ContextPart> make_first(Context &) {
    return std::make_unique<Diary>(10);
}

std::unique_ptr<ContextPart> make_second(Context &context) {
    context.part(&first_key, make_first); // rests on the first
    return std::make_unique<Diary>(20);
}

std::unique_ptr<ContextPart> make_stuck(Context &) {
    return std::make_unique<Diary>(30, INT32_MAX);
}

} // namespace

static void test_parts_are_made_once_and_told_latest_first(void **) {
    for (const uint32_t flags : {0u, uint32_t{MUSTER_CONTEXT_EXTERNAL}}) {
        bool same = true;
        {
            Ref<Context> context = make_context(flags);
            ContextPart &second = context->part(&second_key, make_second);
            same = same && &second == &context->part(&second_key, make_second);
            Deadline endless(-1);
            context->close(endless);
            same = same && &second == &context->part(&second_key, make_second); // good as long as the context is
        }
        const std::vector<int> expected = {20, 10, 22, 12, 23, 13};
        const bool equal = take_diary(6) == expected;
        assert_true(same);
        assert_true(equal);
    }
}

static void test_close_waits_for_parts_until_its_deadline(void **) {
    Status status = 0;
    bool waited = true;
    with_each([&](Context &context) {
        context.part(&stuck_key, make_stuck);
        const int64_t begin = now_ns();
        Deadline deadline(20 * ms);
        status = context.close(deadline);
        waited = waited && now_ns() - begin >= 20 * ms;
    });
    take_diary(3 * kinds);
    assert_int_equal(status, MUSTER_TIMEOUT);
    assert_true(waited);
}

static void test_a_shorter_deadline_of_another_closer_counts(void **) {
    Status patient = 0, hasty = 0;
    with_each([&](Context &context) {
        context.part(&stuck_key, make_stuck);
        std::thread waiter([&] {
            Deadline endless(-1);
            patient = context.close(endless);
        });
        while (!context.closed()) std::this_thread::yield();
        Deadline now(0);
        hasty = context.close(now);
        waiter.join();
    });
    take_diary(3 * kinds);
    assert_int_equal(patient, MUSTER_TIMEOUT);
    assert_int_equal(hasty, MUSTER_TIMEOUT);
}

static void test_release_does_not_wait_for_parts(void **) {
    // Parts that would never drain; the contexts end all the same, one on its own thread.
    with_each([&](Context &context) { context.part(&stuck_key, make_stuck); });
    assert_int_equal(take_diary(3 * kinds).size(), 3 * kinds);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_run_in_order_on_the_loop_thread),
        cmocka_unit_test(test_a_task_may_post_for_ever_without_starving_the_loop),
        cmocka_unit_test(test_posts_after_the_end_are_refused_and_destroyed),
        cmocka_unit_test(test_tasks_posted_before_the_end_are_run),
        cmocka_unit_test(test_many_posters),
        cmocka_unit_test(test_the_last_reference_may_go_on_the_loop_thread),
        cmocka_unit_test(test_sleepers_wake_by_notify_and_by_time),
        cmocka_unit_test(test_sleeping_on_the_loop_thread_is_refused),
        cmocka_unit_test(test_sleepers_hand_the_baton_on),
        cmocka_unit_test(test_the_engine_goes_on_when_a_driver_leaves),
        cmocka_unit_test(test_external_timers_show_in_the_descriptor),
        cmocka_unit_test(test_posts_reach_all_that_wait),
        cmocka_unit_test(test_parts_are_made_once_and_told_latest_first),
        cmocka_unit_test(test_close_waits_for_parts_until_its_deadline),
        cmocka_unit_test(test_a_shorter_deadline_of_another_closer_counts),
        cmocka_unit_test(test_release_does_not_wait_for_parts),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
