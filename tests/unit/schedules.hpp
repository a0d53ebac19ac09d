// SPDX-License-Identifier: MIT
// Random schedules of a simulated world: each has a number, its seed, and is the same every time it is run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

namespace muster::test {

struct Broken : std::exception { // what a schedule has shown to be wrong
    std::string what_is;
    explicit Broken(std::string what) : what_is(std::move(what)) {}
    const char *what() const noexcept override { return what_is.c_str(); }
};

inline uint64_t number_from(const char *name, uint64_t usual) {
    const char *const text = std::getenv(name);
    return text == nullptr ? usual : std::strtoull(text, nullptr, 0);
}

// The first seed whose schedule shows a fault, or all went well. MUSTER_SEED says where to begin, MUSTER_SCHEDULES how
// many times the usual number to run: `count` becomes how many have been run.
inline std::string run_schedules(uint64_t &count, const std::function<void(uint64_t seed)> &run) {
    const uint64_t first = number_from("MUSTER_SEED", 1);
    count *= number_from("MUSTER_SCHEDULES", 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        try {
            run(seed);
        } catch (const Broken &broken) {
            return "seed " + std::to_string(seed) + ": " + broken.what_is;
        }
    }
    return {};
}

} // namespace muster::test
