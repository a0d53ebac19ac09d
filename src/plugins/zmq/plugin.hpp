// SPDX-License-Identifier: MIT
#pragma once
// The plug-in in one context: its stars, and the numbers of peers.
#include "star.hpp"

#include <memory>

namespace star {

muster_status fail(muster_error *error, muster_status status, const std::string &text) noexcept;

// Loop thread only, except host().
class Plugin {
  public:
    explicit Plugin(const muster_host *host);
    ~Plugin();
    Plugin(const Plugin &) = delete;
    Plugin &operator=(const Plugin &) = delete;

    const muster_host *host() const noexcept { return host_; }
    muster_endpoint *endpoint() const noexcept { return endpoint_; }
    Scratch &scratch() { // shared by all connections of this context
        if (!scratch_) scratch_ = std::make_unique<Scratch>();
        return *scratch_;
    }
    Keys &keys() noexcept { return keys_; }
    const std::string &own_name() const noexcept { return own_name_; } // used where the address has none
    void log(int32_t level, std::string_view text) const noexcept;
    void answer(bool claim, uint64_t id, muster_status status, uint64_t peer, std::string_view text) const noexcept;
    void withdraw(std::string_view authority) noexcept; // as Star::claim() has answered it

    void start(muster_endpoint *endpoint);
    Star *star(std::string_view authority, BrokerAddress &address, muster_error *error); // nullptr: see the error
    // The library's numbers of members are made here, as the numbers of two brokers may be equal, and one broker may be
    // reached under two addresses.
    struct Owned {
        Star *star = nullptr;
        uint64_t id = 0;      // the broker's number
        bool is_lost = false; // reported to the library, which has not forgotten it yet
    };
    uint64_t own(Star &star, uint64_t id);
    Owned owned(uint64_t peer) const noexcept; // no star: unknown
    void lose(uint64_t peer) noexcept { owned_.at(peer).is_lost = true; }
    void disown(uint64_t peer) noexcept { owned_.erase(peer); }
    void disown_all(const Star &star) noexcept;

  private:
    muster_status keys_for(const BrokerAddress &address, std::optional<CurveKeys> &out, std::optional<CurveKey> &pinned,
                           std::string &why);

    const muster_host *const host_;
    muster_endpoint *endpoint_ = nullptr;
    std::unique_ptr<Scratch> scratch_;
    Keys keys_;
    std::string own_name_;
    std::map<std::string, std::unique_ptr<Star>, std::less<>> stars_; // by key of the address
    std::unordered_map<uint64_t, Owned> owned_;
    uint64_t next_peer_ = 1;
};

} // namespace star
