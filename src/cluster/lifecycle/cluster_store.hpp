// SPDX-License-Identifier: MIT
#pragma once
// The store that the members of a cluster share. The master serves it from the moment at which the first member needs
// it, in memory, until the cluster ends.
#include "context/context.hpp"

#include <muster/store_server.h>

#include <mutex>
#include <string>

namespace muster {

// Any thread.
class ClusterStore {
  public:
    // `listen`: where to serve it; empty: beside the listener of the cluster, on the same host.
    ClusterStore(Context &context, std::string listen) : context_(context), listen_(std::move(listen)) {}
    ~ClusterStore() { close(); }
    ClusterStore(const ClusterStore &) = delete;
    ClusterStore &operator=(const ClusterStore &) = delete;

    Result<std::string> address(const std::string &of_cluster); // for muster_store_open(); serves it if it is not yet
    void close() noexcept;                                      // for good; waits until the store has ended

  private:
    static Result<std::string> beside(const std::string &of_cluster);

    Context &context_;
    const std::string listen_;
    std::mutex lock_; // guards the rest
    muster_store_server *server_ = nullptr;
    bool is_closed_ = false;
};

} // namespace muster
