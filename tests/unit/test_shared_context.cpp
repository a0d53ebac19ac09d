// SPDX-License-Identifier: MIT
// Contexts whose thread takes turns with threads of the host that wait in the loop.
#include "base/pause.hpp"
#include "context/context.hpp"

#include "context/loop_watch.hpp"
#include "context/timers.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstdlib>
#include <random>
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

constexpr int64_t ms = 1'000'000, s = 1'000 * ms;

Ref<Context> make_shared_context() {
    Ref<Context> context = make_context();
    if (!context->share()) fail_msg("no descriptors");
    return context;
}

// Drives until `done`, as a stream does whose transport has nothing to poll for. False: it could not drive.
template <class Done>
bool drive_until(Context &context, Deadline &deadline, const Done &done, Status *out = nullptr) {
    Status status = MUSTER_OK;
    const bool driven = context.drive(true, done, [&](Context::Driver &driver) {
        while (status == MUSTER_OK && !done()) {
            driver.run_posted();
            if (!done()) status = driver.wait(deadline, done);
        }
    });
    if (out != nullptr) *out = status;
    return driven;
}

// The thread takes the first turn, at a moment that the test does not know.
template <class Done>
Status drive_at_last(Context &context, Deadline &deadline, const Done &done) {
    Status status = MUSTER_OK;
    while (!drive_until(context, deadline, done, &status) && !done()) std::this_thread::yield();
    return status;
}

} // namespace

static void test_a_driver_runs_tasks_timers_and_descriptors(void **) {
    Ref<Context> context = make_shared_context();
    std::atomic<bool> fired{false}, ready{false}, posted{false};
    std::unique_ptr<LoopTimer> timer;
    std::unique_ptr<LoopWatch> watch;
    const int fd = eventfd(0, EFD_CLOEXEC);
    {
        Deadline deadline(10 * s);
        context->post([&] { // the timer begins while a thread drives, too
            timer = std::make_unique<LoopTimer>(context->loop(), [&] { fired = true; });
            timer->start(5 * ms, 0);
        });
        drive_at_last(*context, deadline, [&] { return fired.load(); });
        std::thread other([&] {
            const uint64_t one = 1;
            if (write(fd, &one, sizeof one) != sizeof one) abort();
        });
        context->post([&] {
            watch = std::move(*LoopWatch::make(context->loop(), fd, [&](uint32_t) {
                uint64_t count;
                ready = read(fd, &count, sizeof count) == sizeof count;
            }));
            watch->set_events(EPOLLIN);
        });
        drive_at_last(*context, deadline, [&] { return ready.load(); });
        other.join();
        std::thread poster([&] { context->post([&] { posted = true; }); });
        drive_at_last(*context, deadline, [&] { return posted.load(); });
        poster.join();
        context->post([&] {
            timer.reset();
            watch.reset();
        });
        Deadline endless(-1);
        context->close(endless);
    }
    close(fd);
    assert_true(fired);
    assert_true(ready);
    assert_true(posted);
}

static void test_a_driver_leaves_at_its_deadline_and_by_an_interrupt(void **) {
    Ref<Context> context = make_shared_context();
    Deadline short_time(20 * ms), endless(-1);
    const Status late = drive_at_last(*context, short_time, [] { return false; });
    std::atomic<bool> interrupted{false};
    std::thread other([&] {
        interrupted = true;
        context->interrupt_driver();
    });
    const Status status = drive_at_last(*context, endless, [&] { return interrupted.load(); });
    other.join();
    assert_int_equal(late, MUSTER_TIMEOUT);
    assert_int_equal(status, MUSTER_OK);
}

static void test_the_thread_continues_after_the_last_driver(void **) {
    Ref<Context> context = make_shared_context();
    bool all = true;
    for (int i = 0; i < 300 && all; i++) {
        std::atomic<bool> done{false}, later{false};
        Deadline deadline(10 * s);
        context->post([&] { done = true; });
        drive_at_last(*context, deadline, [&] { return done.load(); });
        context->post([&] { later = true; }); // no thread drives any more
        const int64_t until = now_ns() + 10 * s;
        while (!later && now_ns() < until) std::this_thread::yield();
        all = later;
    }
    assert_true(all);
}

static void test_a_close_ends_the_wait_of_a_driver(void **) {
    Status status = MUSTER_OK, closed = MUSTER_TIMEOUT;
    for (int i = 0; i < 100; i++) { // an external context is ended by the thread that drives it
        Ref<Context> context = i < 50 ? make_shared_context() : make_context(MUSTER_CONTEXT_EXTERNAL);
        std::atomic<bool> drives{false};
        std::thread driver([&] {
            Deadline endless(-1);
            const auto never = [&] {
                drives = true;
                return false;
            };
            Status left = MUSTER_OK;
            while (left == MUSTER_OK && !context->closed()) drive_until(*context, endless, never, &left);
            status = left;
        });
        while (i % 2 != 0 && !drives) std::this_thread::yield();
        Deadline deadline(10 * s);
        closed = context->close(deadline);
        driver.join();
        assert_int_equal(closed, MUSTER_OK);
    }
    assert_true(status == MUSTER_OK || status == MUSTER_E_CLOSED);
}

// Threads that drive, or wait for others that do, threads that post, timers, interrupts, and at last a close: every
// wait ends. MUSTER_SEED selects one sequence.
static void test_random_drivers(void **) {
    const char *text = getenv("MUSTER_SEED");
    const unsigned first = text != nullptr ? static_cast<unsigned>(atoi(text)) : 1, count = text != nullptr ? 1 : 60;
    for (unsigned seed = first; seed < first + count; seed++) {
        std::minstd_rand random(seed);
        const int drivers = 1 + static_cast<int>(random() % 3), waits = 30;
        std::vector<unsigned> seeds;
        for (int i = 0; i < drivers; i++) seeds.push_back(static_cast<unsigned>(random()));
        Ref<Context> context = make_shared_context();
        std::vector<std::thread> threads;
        std::atomic<int> late{0};
        for (int i = 0; i < drivers; i++)
            threads.emplace_back([&, i] {
                std::minstd_rand choice(seeds[static_cast<size_t>(i)]);
                for (int k = 0; k < waits; k++) {
                    Signal signal; // for threads that do not drive
                    std::atomic<bool> done{false};
                    std::unique_ptr<LoopTimer> timer;
                    const unsigned kind = choice() % 3;
                    const int64_t delay = static_cast<int64_t>(choice() % 2'000) * 1'000;
                    std::thread other;
                    const auto finish = [&] {
                        done = true;
                        context->notify(signal);
                    };
                    if (kind == 0) other = std::thread([&] { context->post(finish); });
                    if (kind == 1)
                        other = std::thread([&] {
                            finish();
                            context->interrupt_driver();
                        });
                    if (kind == 2)
                        context->post([&] {
                            timer = std::make_unique<LoopTimer>(context->loop(), finish);
                            timer->start(delay, 0);
                        });
                    Deadline deadline(20 * s);
                    while (!done && !deadline.passed()) {
                        const uint32_t seen = signal.seen();
                        if (drive_until(*context, deadline, [&] { return done.load(); }) || done) continue;
                        context->sleep(signal, seen, deadline);
                    }
                    if (!done) late++;
                    if (other.joinable()) other.join();
                    std::atomic<bool> over{false};
                    context->post([&] {
                        timer.reset();
                        over = true;
                    });
                    while (!over) std::this_thread::yield();
                    if (choice() % 4 == 0) // it computes, and the thread naps or takes over
                        for (const int64_t until = now_ns() + delay / 4; now_ns() < until;) pause_cpu();
                }
            });
        for (std::thread &thread : threads) thread.join();
        Deadline deadline(10 * s);
        const Status closed = context->close(deadline);
        if (late != 0 || closed != MUSTER_OK) fail_msg("seed %u: %d waits late, close %d", seed, late.load(), closed);
    }
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_driver_runs_tasks_timers_and_descriptors),
        cmocka_unit_test(test_a_driver_leaves_at_its_deadline_and_by_an_interrupt),
        cmocka_unit_test(test_the_thread_continues_after_the_last_driver),
        cmocka_unit_test(test_a_close_ends_the_wait_of_a_driver),
        cmocka_unit_test(test_random_drivers),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
