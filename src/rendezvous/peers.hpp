// SPDX-License-Identifier: MIT
#pragma once
// A member's own store, which sleeps until the one of the run is lost, and the way to those of the others.
#include "store/server.hpp"
#include "store/store.hpp"

namespace muster {

// Any thread.
class Peers {
  public:
    // Nothing where the store does not live in the process of one of those who use it.
    static Result<std::optional<Peers>> open(Context &context, std::string_view url, const Store &store,
                                             int64_t lease_ns);
    const std::string &own() const noexcept { return own_; }   // host:port
    const std::string &home() const noexcept { return home_; } // that of the URL

    // The keys of the run at the store of `address`, which is reached for meanwhile.
    Result<Ref<Store>> reach(Context &context, const std::string &address, std::string_view prefix) const;

  private:
    Ref<StoreServerHandle> server_;
    std::string own_, home_, options_; // options: of the URL, as far as they are for all
    int64_t lease_ns_ = 0;
};

} // namespace muster
