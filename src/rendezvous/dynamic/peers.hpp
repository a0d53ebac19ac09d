// SPDX-License-Identifier: MIT
#pragma once
// A member's standby store, which serves no client until the run's store is lost, and connections to those of its
// peers.
#include "rendezvous/machine/ask.hpp"
#include "store/backend/store.hpp"
#include "store/server/server.hpp"

namespace muster {

// Any thread; point() one at a time.
class Peers {
  public:
    // Empty if the store is not served by the process of a member.
    static Result<std::optional<Peers>> open(Context &context, std::string_view url, const Store &store,
                                             int64_t lease_ns);
    // Without a store, for a restarted process, whose former process listened at `host`.
    static Result<Peers> open_again(Context &context, std::string_view url, const std::string &host, int64_t lease_ns);
    // host:port of a URL; empty if a store at this URL is never served by a member.
    static Result<std::string> origin_of(std::string_view url);

    const std::string &own() const noexcept { return own_; }           // host:port
    const std::string &own_host() const noexcept { return own_host_; } // without the port
    const std::string &origin() const noexcept { return origin_; }     // that of the URL

    // The keys of the run at the store of `address`, which is reached for meanwhile.
    Result<Ref<Store>> reach(Context &context, const std::string &address, std::string_view prefix) const;
    // Serves a store at the origin, if this process can, or already does, and applies `ops` there. It has the keys of
    // these before any client can connect. False: it cannot.
    bool point(Context &context, std::string_view prefix, const AskOps &ops);
    bool refused(Context &context, const std::string &address, Deadline &deadline) const; // no process listens there

  private:
    Result<void> listen(Context &context, const std::string &host);

    Ref<StoreServerHandle> server_, front_; // front_: at the origin
    // options_: the options of the URL that are meant for all.
    std::string own_, own_host_, origin_, options_, origin_options_;
    int64_t lease_ns_ = 0;
};

} // namespace muster
