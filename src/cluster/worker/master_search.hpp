// SPDX-License-Identifier: MIT
#pragma once
// A search for the address of a master that has published it in a store.
#include "base/result.hpp"
#include "base/time.hpp"
#include "context/context.hpp"

#include <muster/store.h>

#include <memory>
#include <string>

namespace muster {

// One thread at a time.
class MasterSearch {
  public:
    // Waits until the store is open, not for the address.
    static Result<std::unique_ptr<MasterSearch>> open(Context &context, const std::string &url, const std::string &name,
                                                      Deadline &deadline);
    // In an open store, whose handle the search takes over.
    static std::unique_ptr<MasterSearch> in(muster_store *store, const std::string &url, const std::string &name);
    MasterSearch(const MasterSearch &) = delete;
    MasterSearch &operator=(const MasterSearch &) = delete;
    ~MasterSearch();
    const std::string &url() const noexcept { return url_; }
    Error begin(int64_t timeout_ns, muster_queue *queue, uint64_t tag); // completes when an address was found
    static Result<std::string> address(const muster_completion &entry, const Error &why); // of that completion; once

  private:
    MasterSearch(muster_store *store, std::string url, const std::string &name);
    muster_store *const store_;
    const std::string url_, key_;
    uint64_t request_ = 0;
};

} // namespace muster
