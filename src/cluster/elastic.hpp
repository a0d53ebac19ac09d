// SPDX-License-Identifier: MIT
#pragma once
// Workers that come by themselves: whoever proves the secret is given a number. Where the master listens they know, or
// read in a store.
#include "base/time.hpp"
#include "cluster/manager.hpp"

#include <muster/store.h>

#include <memory>

namespace muster {

// The master's address in a store, as long as this lives: under a lease, so that it goes with the master.
class Beacon {
  public:
    // Waits for the store.
    static Result<std::unique_ptr<Beacon>> light(Context &context, const std::string &url, const std::string &name,
                                                 const std::string &address);
    Beacon(const Beacon &) = delete;
    Beacon &operator=(const Beacon &) = delete;
    ~Beacon(); // a moment's wait for the store

  private:
    Beacon() noexcept = default;
    muster_store *store_ = nullptr;
    muster_lease *lease_ = nullptr;
};

// What a worker finds there; waits until there is one.
Result<std::string> find_master(Context &context, const std::string &url, const std::string &name, Deadline &deadline);

// Under which a launch is to be found.
struct ElasticPlace {
    std::string store{}, name{}; // store empty: whoever comes knows the address
    static Result<ElasticPlace> read(const LaunchPlan &plan);
};

} // namespace muster
