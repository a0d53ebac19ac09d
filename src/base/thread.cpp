// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

#include "base/fork.hpp"
#include "base/futex.hpp"
#include "base/libc.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <unistd.h>

namespace muster {

namespace {

// The end of a thread calls the destructors of its thread-specific data, those of other libraries included. While the
// process exits these must not run beside the clean-up of such a library, which frees the same memory (OpenSSL 3.0
// does: a double free in one of 100 runs of a program that used a store of etcd). So the exit waits for threads that
// are at their end, and threads that reach it later stay until the process is gone.
constexpr uint32_t exiting_bit = uint32_t{1} << 31;
constexpr int64_t exit_wait_ns = 1'000'000'000;

struct Ends {
    ForkMark mark;                  // threads of a parent process are not here
    std::atomic<uint32_t> state{0}; // acq_rel: threads at their end, and whether the process exits
    pthread_key_t key{};
    bool has_key = pthread_key_create(&key, &Ends::destroyed) == 0;

    static Ends &get() noexcept {
        static Ends ends;
        return ends;
    }
    // Destructors are called in rounds, as long as there is a value. In the second one those of all others have run.
    static void destroyed(void *round) {
        if (round == reinterpret_cast<void *>(1) && pthread_setspecific(get().key, reinterpret_cast<void *>(2)) == 0)
            return;
        get().leave();
    }
    void leave() noexcept {
        state.fetch_sub(1, std::memory_order_acq_rel);
        futex_wake(state, INT_MAX, false);
    }
    void reach() noexcept {
        if (!has_key || mark.forked()) return;
        if (state.fetch_add(1, std::memory_order_acq_rel) & exiting_bit) {
            leave();
            for (;;) pause();
        }
        if (pthread_setspecific(key, reinterpret_cast<void *>(1)) == 0) return;
        leave();
    }
    static void at_exit() {
        Ends &ends = get();
        if (ends.mark.forked()) return;
        uint32_t seen = ends.state.fetch_or(exiting_bit, std::memory_order_acq_rel) | exiting_bit;
        Deadline deadline(exit_wait_ns);
        while (seen != exiting_bit && futex_wait(ends.state, seen, deadline, false) == 0)
            seen = ends.state.load(std::memory_order_acquire);
    }
};

struct Body {
    void *(*function)(void *);
    void *argument;
};

void *run_body(void *given) {
    const Body body = *static_cast<Body *>(given);
    delete static_cast<Body *>(given);
    body.function(body.argument);
    Ends::get().reach();
    return nullptr;
}

} // namespace

void end_threads_before(const void *library) noexcept {
    static std::atomic<const void *> seen[16];
    for (std::atomic<const void *> &one : seen) {
        const void *known = nullptr;
        if (one.compare_exchange_strong(known, library, std::memory_order_relaxed)) {
            std::atexit(&Ends::at_exit);
            return;
        }
        if (known == library) return;
    }
}

int start_thread(void *(*body)(void *), void *argument) noexcept {
    end_threads_before(&Ends::get()); // those that were loaded before this library
    auto *const given = new (std::nothrow) Body{body, argument};
    if (given == nullptr) return ENOMEM;
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc == 0) {
        const sigset_t set = asynchronous_signals();
        rc = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_t thread;
        if (rc == 0) rc = libc::create_thread(&thread, &attributes, set, run_body, given);
        pthread_attr_destroy(&attributes);
    }
    if (rc != 0) delete given;
    return rc;
}

} // namespace muster
