// SPDX-License-Identifier: MIT
#pragma once
// Programs that measure what each of several threads does: options, and the time of the slowest thread.
//   --over X --what W --threads N --scale PERCENT
#include "bench.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

struct Setting {
    std::string over = "muster", what = "pin";
    int threads = 1;
    long scale = 100;
};
inline Setting setting;

inline void read_setting(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string key = argv[i];
        if (key == "--over")
            setting.over = argv[i + 1];
        else if (key == "--what")
            setting.what = argv[i + 1];
        else if (key == "--threads")
            setting.threads = std::atoi(argv[i + 1]);
        else if (key == "--scale")
            setting.scale = std::atol(argv[i + 1]);
        else
            die("unknown option", argv[i]);
    }
}

// Nanoseconds per operation of the slowest thread. body(i, wait) calls wait() when it is ready, and returns
// microseconds.
template <class Body>
double run_threads(long count, Body &&body) {
    std::atomic<int> ready{0};
    std::vector<double> took(static_cast<size_t>(setting.threads));
    std::vector<std::thread> threads;
    for (int i = 0; i < setting.threads; i++)
        threads.emplace_back([&, i] {
            take_core(CORES_TWO, i % 2);
            took[static_cast<size_t>(i)] = body(i, [&] {
                ready++;
                while (ready != setting.threads) sched_yield();
            });
        });
    for (auto &thread : threads) thread.join();
    return *std::max_element(took.begin(), took.end()) * 1e3 / static_cast<double>(count);
}
