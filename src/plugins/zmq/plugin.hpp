// SPDX-License-Identifier: MIT
#pragma once
// The plug-in in one context: its libzmq context, its stars, and whose peer is whose.
#include "star.hpp"

#include <memory>

namespace star {

int64_t now_ns() noexcept;

// libzmq's context, with its threads: one for all members of a process. Any thread.
class Zmq {
  public:
    static std::shared_ptr<Zmq> of_process(); // empty: errno tells
    ~Zmq();                                   // with the last member; sockets still have their linger
    void *get() const noexcept { return context_; }

  private:
    void *context_ = nullptr;
};

muster_status fail(muster_error *error, muster_status status, const std::string &text) noexcept;

// Loop thread only, but for host().
class Plugin {
  public:
    explicit Plugin(const muster_host *host);
    ~Plugin();
    Plugin(const Plugin &) = delete;
    Plugin &operator=(const Plugin &) = delete;

    const muster_host *host() const noexcept { return host_; }
    muster_endpoint *endpoint() const noexcept { return endpoint_; }
    void *zmq() const noexcept { return zmq_->get(); }
    Keys &keys() noexcept { return keys_; }
    const std::string &own_name() const noexcept { return own_name_; } // where none was given
    void log(int32_t level, const std::string &text) const;
    void answer(bool claim, uint64_t question, muster_status status, uint64_t peer, const std::string &text) const;
    void withdraw(std::string_view authority);

    muster_status start(muster_endpoint *endpoint, muster_error *error);
    Star *star(std::string_view authority, BrokerAddress &address, std::string &why); // nullptr: why
    Star *star_of(uint64_t peer) noexcept;
    void own(uint64_t peer, Star &star) { owners_[peer] = &star; }
    void disown(uint64_t peer) noexcept { owners_.erase(peer); }

  private:
    const muster_host *const host_;
    muster_endpoint *endpoint_ = nullptr;
    std::shared_ptr<Zmq> zmq_;
    Keys keys_;
    std::string own_name_;
    std::map<std::string, std::unique_ptr<Star>> stars_;
    // Numbers of two brokers differ by their random prefixes.
    std::unordered_map<uint64_t, Star *> owners_;
};

} // namespace star
