// SPDX-License-Identifier: MIT
// The baton: in a context that several threads may drive, the thread that has it is the loop thread.
#include "context/engine.hpp"

#include "base/uncancelled.hpp"

namespace muster {

namespace {
constexpr int max_turns = 16;           // in a row, before the baton is passed on
constexpr uint32_t max_drives = 1024;   // rounds in a row, before descriptors have their turn
constexpr uint32_t drives_per_look = 8; // at the clock, for timers that are due
} // namespace

bool Context::Engine::take_baton() noexcept {
    if (driving.load(std::memory_order_relaxed) || driving.exchange(true, std::memory_order_acquire)) return false;
    loop.enter();
    // libuv's system calls are cancellation points, and so may be those of a task: none while this thread drives.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &drivers_cancel_state);
    return true;
}

void Context::Engine::pass_baton() noexcept {
    const int cancel_state = drivers_cancel_state;
    loop.leave();
    driving.store(false, std::memory_order_release);
    if (context.external()) notify(); // others may wait for it
    pthread_setcancelstate(cancel_state, nullptr);
}

void Context::Engine::take_turns() noexcept {
    for (int turn = 0; turn < max_turns; turn++) {
        loop.turn(0);
        if (!host_drives_now.load(std::memory_order_relaxed))
            turned();
        else if (is_left_to_thread()) // the end of a shared context: this turn may have served the wake-up for it
            loop.wake();
        if (ending) return;
        if (baton_wanted.load(std::memory_order_relaxed) != 0 || !loop.is_due()) break;
    }
    drives = 0;
    loop.show_timers();
}

// For a caller that does for a moment the work of the loop, without polling its descriptors.
bool Context::Engine::begin_drive() noexcept {
    if (!context.external()) return begin_shared_drive();
    return !stopped.load(std::memory_order_acquire) && take_baton();
}

// The continuation is as after a turn of the loop: tasks have run, and the descriptor of the loop shows its timers.
void Context::Engine::end_drive() noexcept {
    if (stopped.load(std::memory_order_relaxed)) return pass_baton(); // an external context, by a wait of this drive
    loop.run_tasks();
    const bool is_turn = ++drives >= max_drives || (drives % drives_per_look == 0 && loop.is_due());
    if (!is_turn)
        loop.show_timers();
    else if (context.external())
        serve();
    else
        take_turns();
    if (!context.external()) {
        host_drives.fetch_add(1, std::memory_order_relaxed);
        host_drives_now.store(false, std::memory_order_relaxed);
    }
    pass_baton();
}

// 0 at the deadline.
int Context::Engine::wait_readable(pollfd *fds, nfds_t count, Deadline &deadline) noexcept {
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

} // namespace muster
