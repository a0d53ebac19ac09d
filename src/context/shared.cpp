// SPDX-License-Identifier: MIT
// Shared contexts: they have a thread, and threads of the host that wait for a transport that is polled drive the
// engine in its place, so that a message costs no change of threads.
//
// The thread polls the descriptor of the loop without the baton, and takes it when there is something to do. While
// threads of the host drive, the loop does without it: it naps, until one nap passes without such a drive.
//
// No event waits longer than a nap for a thread that drives:
// - tasks: a post wakes the thread if it waits for the descriptor (Loop::begin_wait()), and otherwise it will look;
// - timers, and descriptors: both show in the descriptor of the loop, see Loop::show_timers().
// The model is tests/models/shared_loop.pml.
#include "context/engine.hpp"

#include "base/futex.hpp"
#include "base/pause.hpp"
#include "base/uncancelled.hpp"

#include <algorithm>
#include <sched.h>
#include <sys/prctl.h>

namespace muster {

namespace {
constexpr int64_t max_nap_ns = 800'000;
constexpr int pauses_per_round = 32, rounds_without_yield = 16; // of a thread that wants the baton
} // namespace

// Any thread.
Result<void> Context::Engine::share() {
    if (Result<void> prepared = loop.prepare_polled(); !prepared) return prepared;
    share_wanted.store(true, std::memory_order_release);
    loop.wake();
    return {};
}

void Context::Engine::run_shared() noexcept {
    prctl(PR_SET_TIMERSLACK, 1000); // ns: of the naps
    take_baton();                   // the first one
    loop.become_polled();
    is_shared.store(true, std::memory_order_relaxed);
    Naps naps;
    for (;;) {
        take_turns();
        if (ending) return; // with the baton
        pass_baton();
        sched_yield(); // threads of the host may share this core
        pollfd readable{loop.fd(), POLLIN, 0};
        if (loop.begin_wait()) uncancelled::wait_poll(&readable, 1, nullptr);
        loop.end_wait();
        nap_until_left(naps);
    }
}

// Returns with the baton, when threads of the host have stopped driving, or one of them leaves it to this thread.
void Context::Engine::nap_until_left(Naps &naps) noexcept {
    if (host_drives.load(std::memory_order_relaxed) == naps.seen_drives) naps.next_ns = min_nap_ns;
    for (;;) {
        const uint32_t left = left_to_thread.load(std::memory_order_acquire); // pairs with leave_to_thread()
        const uint32_t drives_now = host_drives.load(std::memory_order_relaxed);
        const bool is_left = drives_now == naps.seen_drives || left != naps.seen_left;
        naps.seen_drives = drives_now, naps.seen_left = left;
        if (is_left && baton_wanted.load(std::memory_order_relaxed) == 0 && take_baton()) return;
        const bool parks = host_waits.load(std::memory_order_relaxed);
        is_parked.store(parks, std::memory_order_seq_cst);
        is_napping.store(true, std::memory_order_seq_cst); // then the kernel checks the word
        if (!parks || host_waits.load(std::memory_order_seq_cst)) {
            Deadline nap(parks ? -1 : naps.next_ns);
            naps.next_ns = std::min(2 * naps.next_ns, max_nap_ns);
            futex_wait(left_to_thread, left, nap, false);
        }
        is_napping.store(false, std::memory_order_relaxed);
        is_parked.store(false, std::memory_order_relaxed);
    }
}

// The thread continues at once.
void Context::Engine::leave_to_thread() noexcept {
    left_to_thread.fetch_add(1, std::memory_order_seq_cst);
    if (is_napping.load(std::memory_order_seq_cst)) futex_wake(left_to_thread, 1, false);
}

void Context::leave_loop() noexcept {
    if (engine_->is_shared.load(std::memory_order_relaxed)) engine_->leave_to_thread();
}

// ---- threads of the host
// ----------------------------------------------------------------------------------------------

// A context that closes is left to its thread. relaxed: it gets the baton a moment later otherwise.
bool Context::Engine::is_left_to_thread() const noexcept {
    return closing.load(std::memory_order_relaxed) || orphaned.load(std::memory_order_relaxed);
}

bool Context::Engine::begin_shared_drive() noexcept {
    if (!is_shared.load(std::memory_order_relaxed) || is_left_to_thread() || !take_baton()) return false;
    host_drives_now.store(true, std::memory_order_relaxed);
    return true;
}

// The thread of the context leaves its turns as soon as it sees this.
bool Context::begin_wanting() noexcept {
    if (!engine_->is_shared.load(std::memory_order_relaxed) || engine_->is_left_to_thread() ||
        engine_->host_drives_now.load(std::memory_order_relaxed) || on_loop())
        return false;
    engine_->baton_wanted.fetch_add(1, std::memory_order_relaxed);
    return true;
}

void Context::end_wanting() noexcept {
    engine_->baton_wanted.fetch_sub(1, std::memory_order_relaxed);
}

bool Context::wait_to_drive(int round) noexcept {
    for (int i = 0; i < pauses_per_round; i++) pause_cpu();
    if (round >= rounds_without_yield) sched_yield(); // the thread may need this core
    return engine_->begin_shared_drive();
}

bool Context::Driver::begin_wait() noexcept {
    context_.loop_.show_timers(); // those that the tasks have started
    context_.engine_->host_waits.store(true, std::memory_order_seq_cst);
    return context_.loop_.begin_wait();
}

// What ends a context wakes its loop, after it has set what is checked here.
Status Context::Driver::wait_for_event(bool is_idle, Deadline &deadline) noexcept {
    if (!is_idle || context_.engine_->is_left_to_thread()) return MUSTER_OK;
    pollfd readable{context_.loop_.fd(), POLLIN, 0};
    return Engine::wait_readable(&readable, 1, deadline) != 0 ? MUSTER_OK : MUSTER_TIMEOUT;
}

void Context::Driver::end_wait() noexcept {
    context_.loop_.end_wait();
    Engine &engine = *context_.engine_;
    engine.host_waits.store(false, std::memory_order_seq_cst);
    if (engine.is_parked.load(std::memory_order_seq_cst)) engine.leave_to_thread();
}

Status Context::Driver::serve() noexcept {
    Engine &engine = *context_.engine_;
    if (context_.external()) {
        engine.serve();
        return engine.stopped.load(std::memory_order_relaxed) ? MUSTER_E_CLOSED : MUSTER_OK;
    }
    if (engine.is_left_to_thread()) return MUSTER_E_CLOSED;
    engine.take_turns();
    return MUSTER_OK;
}

} // namespace muster
