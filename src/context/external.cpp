// SPDX-License-Identifier: MIT
// Contexts without a thread: a thread that waits drives the engine, one at a time, and passes the baton on.
#include "context/engine.hpp"

#include "base/futex.hpp"
#include "base/uncancelled.hpp"

#include <sys/eventfd.h>

namespace muster {

namespace {

void signal_event(int fd) noexcept {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        uncancelled::write(fd, &one, sizeof one); // fails only when it is readable already
}

void clear_event(int fd) noexcept {
    uint64_t count;
    [[maybe_unused]] const ssize_t got =
        uncancelled::read(fd, &count, sizeof count); // fails only when another thread was faster
}

} // namespace

// As wait_readable(), where the first descriptor is that of a loop: it counts as readable if that has tasks.
int Context::Engine::wait_events(bool is_idle, pollfd *fds, nfds_t count, Deadline &deadline) noexcept {
    if (is_idle) return wait_readable(fds, count, deadline);
    fds[0].revents = POLLIN;
    if (count == 1) return 1;
    Deadline once(0);
    return 1 + wait_readable(fds + 1, count - 1, once);
}

Result<void> Context::Engine::open_external() {
    baton_fd = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!baton_fd) return Error::from_errno(errno, MUSTER_OK, "start an external context: eventfd");
    started = true;
    return {};
}

// seq_cst on `word`, `word_waiters`, `fd_waiters` and the mark of Loop::begin_wait(): a waiter announces itself and
// then checks, a notifier changes and then checks for waiters; one of the two sees the other.
void Context::Engine::notify() noexcept {
    word.fetch_add(1, std::memory_order_seq_cst);
    if (word_waiters.load(std::memory_order_seq_cst) != 0) futex_wake(word, INT_MAX, false);
    if (fd_waiters.load(std::memory_order_seq_cst) != 0) signal_event(baton_fd.get());
    if (loop.is_waited_for()) loop.wake();
}

int Context::Engine::wait_word(uint32_t seen, Deadline &deadline) noexcept {
    word_waiters.fetch_add(1, std::memory_order_seq_cst); // then the kernel checks the word; pairs with notify()
    const int why = futex_wait(word, seen, deadline, false);
    word_waiters.fetch_sub(1, std::memory_order_relaxed);
    return why;
}

void Context::Engine::serve() noexcept {
    take_turns();
    if (!ending) return;
    begin_teardown();
    teardown();
}

// Waits until done() holds or `fd` (if not -1) is readable, driving the engine, or waiting for the thread that drives
// it.
template <class Done>
Status Context::Engine::await(const Done &done, int fd, Deadline &deadline) noexcept {
    const nfds_t count = fd < 0 ? 1 : 2;
    for (;;) {
        const uint32_t seen = word.load(std::memory_order_seq_cst);
        if (done()) return MUSTER_OK;
        if (!stopped.load(std::memory_order_acquire) && take_baton()) {
            Status status = MUSTER_AGAIN;
            while (status == MUSTER_AGAIN && !stopped.load(std::memory_order_acquire)) {
                pollfd fds[2] = {{loop.fd(), POLLIN, 0}, {fd, POLLIN, 0}};
                const bool is_idle = loop.begin_wait();
                const bool now = done();
                const int ready = now ? 0 : wait_events(is_idle, fds, count, deadline);
                loop.end_wait();
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
        if (fds[0].revents != 0) clear_event(baton_fd.get());
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
    if (loop.on_loop()) return MUSTER_E_BUSY;
    for (;;) {
        const uint32_t seen = word.load(std::memory_order_seq_cst);
        if (stopped.load(std::memory_order_acquire) || context.handle_left()) return MUSTER_E_CLOSED;
        if (take_baton()) break;
        if (deadline.look_once()) return MUSTER_E_BUSY;
        if (wait_word(seen, deadline) == ETIMEDOUT) return MUSTER_TIMEOUT;
    }
    Status status = MUSTER_E_CLOSED;
    if (!stopped.load(std::memory_order_acquire)) {
        pollfd one{loop.fd(), POLLIN, 0};
        const bool is_idle = loop.begin_wait(); // pairs with notify(), which follows the setting of the mark
        const int ready = context.handle_left() ? 0 : wait_events(is_idle, &one, 1, deadline);
        loop.end_wait();
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
    loop.enter(); // no other thread is left
    each_part([](ContextPart &part) { part.close(); });
    begin_teardown();
    teardown();
    delete &context;
}

} // namespace muster
