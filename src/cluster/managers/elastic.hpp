// SPDX-License-Identifier: MIT
#pragma once
// Workers without a launch: a process that proves the secret gets a number. It knows the address of the master, or
// reads it in a store.
#include "cluster/managers/manager.hpp"

#include <string>

namespace muster {

// The options of such a launch.
struct ElasticOptions {
    std::string store{}, name{}; // empty store: workers know the address
    static Result<ElasticOptions> read(const LaunchPlan &plan);
};

} // namespace muster
