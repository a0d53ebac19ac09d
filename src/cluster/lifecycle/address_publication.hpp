// SPDX-License-Identifier: MIT
#pragma once
// The address of a master in a store, where workers that it has not launched find it.
#include "cluster/lifecycle/master.hpp"

#include <muster/store.h>

namespace muster {

// Has a lease, so that it is deleted when the process of the master ends. Nothing here waits: results arrive among the
// completions of the cluster. The cluster's thread.
class AddressPublication final : public std::enable_shared_from_this<AddressPublication> {
  public:
    AddressPublication(ClusterMaster &master, std::string store_url, const std::string &name);
    AddressPublication(const AddressPublication &) = delete;
    AddressPublication &operator=(const AddressPublication &) = delete;
    ~AddressPublication();

    // `before`: right before the address can be found. `done`: it can, or why not. Neither after abandon().
    using Done = std::function<void(const Error &)>;
    void begin(std::function<void()> before, Done done);
    void withdraw(std::function<void()> done); // `done` is called in any case, within two seconds
    void abandon() noexcept;

  private:
    uint64_t await(void (AddressPublication::*next)(const muster_completion &, const Error &));
    void opened(const muster_completion &entry, const Error &why);
    void leased(const muster_completion &entry, const Error &why);
    void written(const muster_completion &entry, const Error &why);
    void not_begun(const Error &why);
    void finish(const Error &why);

    ClusterMaster &master_;
    const std::string url_, key_;
    std::function<void()> before_;
    Done done_;
    muster_store *store_ = nullptr;
    muster_lease *lease_ = nullptr;
    uint64_t pending_ = 0; // tag of the operation in progress; 0: none
    ClusterTimer withdrawal_timer_;
};

} // namespace muster
