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

// What a worker finds there. One thread at a time.
class MasterSearch {
  public:
    // Waits for the store, not for what is in it.
    static Result<std::unique_ptr<MasterSearch>> open(Context &context, const std::string &url, const std::string &name,
                                                      Deadline &deadline);
    // In a store that is open, which becomes its own.
    static std::unique_ptr<MasterSearch> in(muster_store *store, const std::string &url, const std::string &name);
    MasterSearch(const MasterSearch &) = delete;
    MasterSearch &operator=(const MasterSearch &) = delete;
    ~MasterSearch();
    const std::string &url() const noexcept { return url_; }
    Error begin(int64_t timeout_ns, muster_queue *queue, uint64_t tag); // a completion tells when there is a master
    static Result<std::string> address(const muster_completion &entry, const Error &why); // in that completion; once

  private:
    MasterSearch(muster_store *store, std::string url, const std::string &name);
    muster_store *const store_;
    const std::string url_, key_;
    uint64_t request_ = 0;
};

// Under which a launch is to be found.
struct ElasticPlace {
    std::string store{}, name{}; // store empty: whoever comes knows the address
    static Result<ElasticPlace> read(const LaunchPlan &plan);
};

} // namespace muster
