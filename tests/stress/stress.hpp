// SPDX-License-Identifier: MIT
#pragma once
// What the stress programs share: a time to run, and a way to fail that works on any thread.
#include "context/context.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace stress {

inline double seconds() {
    const char *text = std::getenv("STRESS_SECONDS");
    return text ? std::atof(text) : 1.0;
}

// True until the time of this scenario is over.
class Clock {
  public:
    explicit Clock(double share = 1.0)
        : end_(std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                      std::chrono::duration<double>(seconds() * share))) {}
    bool running() const { return std::chrono::steady_clock::now() < end_; }

  private:
    std::chrono::steady_clock::time_point end_;
};

#define STRESS_CHECK(condition)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                              \
            std::abort();                                                                                              \
        }                                                                                                              \
    } while (0)

inline muster::Ref<muster::Context> make_context(uint32_t flags) {
    muster::ContextSettings settings;
    settings.flags = flags;
    settings.secret.assign(32, 7);
    auto made = muster::Context::create(settings);
    STRESS_CHECK(made);
    return std::move(*made);
}

// Ends what would otherwise hang: a lost wake-up shows as a message and a core, not as a silent time-out.
class Watchdog {
  public:
    explicit Watchdog(const char *what) : what_(what), thread_([this] { watch(); }) {}
    ~Watchdog() {
        done_ = true;
        thread_.join();
    }
    void beat() { beats_.fetch_add(1, std::memory_order_relaxed); }

  private:
    void watch() {
        uint64_t seen = 0;
        int still = 0;
        while (!done_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            const uint64_t now = beats_.load(std::memory_order_relaxed);
            still = now == seen ? still + 1 : 0;
            seen = now;
            if (still > 400) { // 20 s without progress
                std::fprintf(stderr, "%s: no progress, a wake-up was lost\n", what_);
                std::abort();
            }
        }
    }
    const char *what_;
    std::atomic<uint64_t> beats_{0};
    std::atomic<bool> done_{false};
    std::thread thread_;
};

} // namespace stress
