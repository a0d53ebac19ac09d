// SPDX-License-Identifier: MIT
// Contexts without a thread: whoever waits drives the engine, one at a time, and passes the baton on.
#include "context/engine.hpp"

#include "base/futex.hpp"
#include "base/thread.hpp"
#include "base/uncancelled.hpp"
#include "context/uv_memory.hpp"

#include <algorithm>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace muster {

namespace {

constexpr int most_turns = 16;         // in a row, before the host gets its thread back
constexpr uint32_t most_drives = 1024; // rounds in a row, before descriptors and timers have their turn

// Waits until one of the descriptors is readable. 0 at the deadline.
int wait_readable(pollfd *fds, nfds_t count, Deadline &deadline) noexcept {
    for (;;) {
        timespec left{}, *limit = nullptr;
        if (!deadline.endless()) {
            const int64_t ns = deadline.look_once() ? 0 : deadline.left();
            left = {ns / 1'000'000'000, ns % 1'000'000'000};
            limit = &left;
        }
        const int n = uncancelled::wait_poll(fds, count, limit);
        if (n >= 0) return n;
        if (errno != EINTR) return 0;
    }
}

void ring(int fd) noexcept {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        uncancelled::write(fd, &one, sizeof one); // fails only when it rings already
}

void silence(int fd) noexcept {
    uint64_t count;
    [[maybe_unused]] const ssize_t got =
        uncancelled::read(fd, &count, sizeof count); // fails only when another thread was faster
}

} // namespace

Result<void> Context::Engine::open_external() {
    timer = Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    baton_fd = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!timer || !baton_fd) return Error::from_errno(errno, MUSTER_OK, "start an external context: descriptors");
    int rc = prepare_poll(&loop, &timer_watch, timer.get());
    // Nothing to do when it fires: serve() sets it anew after each turn, which makes it quiet.
    if (rc == 0) rc = uv_poll_start(&timer_watch, UV_READABLE, [](uv_poll_t *, int, int) {});
    if (rc < 0) return Error::from_errno(-rc, MUSTER_OK, "start an external context: watch its timer");
    if (take_baton()) { // hands the first registrations to the kernel
        serve();
        pass_baton();
    }
    // Without its timer nothing would be tried again while the host polls.
    if (has_refused(&loop)) return Error::make(MUSTER_E_LIMIT, "start an external context: watch its descriptors");
    started = true;
    return {};
}

bool Context::Engine::take_baton() noexcept {
    const std::lock_guard hold(baton_lock);
    if (driving) return false;
    driving = true;
    driver.store(pthread_self(), std::memory_order_relaxed);
    // libuv's system calls are cancellation points, and so may be those of a task: none while this thread drives.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &drivers_cancel_state);
    return true;
}

void Context::Engine::pass_baton() noexcept {
    int cancel_state;
    {
        const std::lock_guard hold(baton_lock);
        cancel_state = drivers_cancel_state;
        driving = false;
        driver.store(pthread_t{}, std::memory_order_relaxed);
    }
    notify();
    pthread_setcancelstate(cancel_state, nullptr);
}

// seq_cst on `word`, `word_waiters`, `fd_waiters` and `polling`: a waiter announces itself and then looks, a notifier
// changes and then looks for waiters; one of the two sees the other.
void Context::Engine::notify() noexcept {
    word.fetch_add(1, std::memory_order_seq_cst);
    if (word_waiters.load(std::memory_order_seq_cst) != 0) futex_wake(word, INT_MAX, false);
    if (fd_waiters.load(std::memory_order_seq_cst) != 0) ring(baton_fd.get());
    if (polling.load(std::memory_order_seq_cst)) wake();
}

int Context::Engine::wait_word(uint32_t seen, Deadline &deadline) noexcept {
    word_waiters.fetch_add(1, std::memory_order_seq_cst); // then the kernel looks at the word; pairs with notify()
    const int why = futex_wait(word, seen, deadline, false);
    word_waiters.fetch_sub(1, std::memory_order_relaxed);
    return why;
}

void Context::Engine::serve() noexcept {
    for (int turn = 0; turn < most_turns; turn++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        if (ending) return teardown();
        // A backend timeout of 0 means registrations not yet with the kernel, or callbacks that are due.
        if (!has_tasks() && uv_backend_timeout(&loop) != 0) break;
    }
    drives = 0;
    uv_update_time(&loop);
    set_timer();
}

// A timer that is set to the same moment still has not rung, or is due by now: then the moment is another one.
void Context::Engine::set_timer() noexcept {
    int left_ms = has_tasks() ? 0 : uv_backend_timeout(&loop);
    if (has_refused(&loop)) left_ms = left_ms < 0 ? retry_registration_ms : std::min(left_ms, retry_registration_ms);
    const int64_t due = left_ms < 0 ? -1 : static_cast<int64_t>(uv_now(&loop)) + left_ms;
    if (left_ms != 0 && due == timer_due) return;
    timer_due = left_ms == 0 ? 0 : due;
    itimerspec when{}; // all zero: off
    if (left_ms > 0)
        when.it_value = {left_ms / 1000, left_ms % 1000 * 1'000'000L};
    else if (left_ms == 0)
        when.it_value.tv_nsec = 1; // due now: the descriptor says so
    timerfd_settime(timer.get(), 0, &when, nullptr);
}

// For a caller that does for a moment what the loop would do, without a look at its descriptors.
bool Context::Engine::begin_drive() noexcept {
    return !stopped.load(std::memory_order_acquire) && take_baton();
}

// What was begun goes on as after a turn of the loop: tasks have run, the kernel knows descriptors and timers.
void Context::Engine::end_drive() noexcept {
    drain();
    if (++drives >= most_drives || has_tasks() || uv_backend_timeout(&loop) == 0)
        serve();
    else
        set_timer();
    pass_baton();
}

// Waits until done() holds or `fd` (if not -1) is readable, driving the engine, or waiting for whoever drives it.
template <class Done>
Status Context::Engine::await(const Done &done, int fd, Deadline &deadline) noexcept {
    const nfds_t count = fd < 0 ? 1 : 2;
    for (;;) {
        const uint32_t seen = word.load(std::memory_order_seq_cst);
        if (done()) return MUSTER_OK;
        if (!stopped.load(std::memory_order_acquire) && take_baton()) {
            Status status = MUSTER_AGAIN;
            while (status == MUSTER_AGAIN && !stopped.load(std::memory_order_acquire)) {
                pollfd fds[2] = {{engine_fd(), POLLIN, 0}, {fd, POLLIN, 0}};
                polling.store(true, std::memory_order_seq_cst);
                const bool now = done();
                const int ready = now ? 0 : wait_readable(fds, count, deadline);
                polling.store(false, std::memory_order_relaxed);
                if (now || (count == 2 && fds[1].revents != 0))
                    status = MUSTER_OK;
                else if (ready == 0)
                    status = MUSTER_TIMEOUT;
                if (fds[0].revents != 0) {
                    serve();
                    if (status == MUSTER_AGAIN && deadline.passed()) status = MUSTER_TIMEOUT;
                }
                if (done()) status = MUSTER_OK;
            }
            pass_baton();
            if (status != MUSTER_AGAIN) return status;
            continue;
        }
        if (fd < 0) {
            if (deadline.look_once() || wait_word(seen, deadline) == ETIMEDOUT)
                return done() ? MUSTER_OK : MUSTER_TIMEOUT;
            continue;
        }
        fd_waiters.fetch_add(1, std::memory_order_seq_cst);
        pollfd fds[2] = {{baton_fd.get(), POLLIN, 0}, {fd, POLLIN, 0}};
        const int ready = word.load(std::memory_order_seq_cst) != seen ? -1 : wait_readable(fds, 2, deadline);
        fd_waiters.fetch_sub(1, std::memory_order_relaxed);
        if (fds[0].revents != 0) silence(baton_fd.get());
        if (fds[1].revents == 0 && ready != 0) continue;
        if (fds[0].revents != 0) notify(); // the baton was offered, and this thread leaves without it
        return fds[1].revents != 0 ? MUSTER_OK : MUSTER_TIMEOUT;
    }
}

Status Context::Engine::await_change(const std::atomic<uint32_t> &sequence, uint32_t seen,
                                     Deadline &deadline) noexcept {
    // acquire: pairs with Context::notify().
    return await([&] { return sequence.load(std::memory_order_acquire) != seen; }, -1, deadline);
}

Status Context::Engine::await_fd(int fd, Deadline &deadline) noexcept {
    return await([] { return false; }, fd, deadline);
}

Status Context::Engine::progress(Deadline &deadline) noexcept {
    if (on_loop()) return MUSTER_E_BUSY;
    for (;;) {
        const uint32_t seen = word.load(std::memory_order_seq_cst);
        if (stopped.load(std::memory_order_acquire) || context.handle_left()) return MUSTER_E_CLOSED;
        if (take_baton()) break;
        if (deadline.look_once()) return MUSTER_E_BUSY;
        if (wait_word(seen, deadline) == ETIMEDOUT) return MUSTER_TIMEOUT;
    }
    Status status = MUSTER_E_CLOSED;
    if (!stopped.load(std::memory_order_acquire)) {
        pollfd one{engine_fd(), POLLIN, 0};
        polling.store(true, std::memory_order_seq_cst); // pairs with notify(), which comes after the mark is set
        const int ready = context.handle_left() ? 0 : wait_readable(&one, 1, deadline);
        polling.store(false, std::memory_order_relaxed);
        status = ready > 0 ? MUSTER_OK : deadline.look_once() ? MUSTER_AGAIN : MUSTER_TIMEOUT;
        if (ready > 0) serve();
    }
    pass_baton();
    return status;
}

void Context::Engine::finish_released() noexcept {
    if (stopped.load(std::memory_order_acquire)) {
        delete &context;
        return;
    }
    driver.store(pthread_self(), std::memory_order_relaxed); // nobody else is left
    each_part([](ContextPart &part) { part.close(); });
    begin_teardown();
    // Handles close within a turn or two. Only a name lookup under way takes longer; a thread waits for that.
    bool alive = true;
    for (int turn = 0; alive && turn < most_turns; turn++) alive = uv_run(&loop, UV_RUN_NOWAIT) != 0;
    const auto last = [](void *self) -> void * {
        auto &engine = *static_cast<Engine *>(self);
        engine.driver.store(pthread_self(), std::memory_order_relaxed);
        while (uv_run(&engine.loop, UV_RUN_DEFAULT) != 0) {
        }
        engine.end_teardown();
        delete &engine.context;
        return nullptr;
    };
    if (!alive)
        last(this);
    else
        start_thread(last, this); // without memory for a thread the rest of the context is left behind
}

} // namespace muster
