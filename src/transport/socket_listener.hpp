// SPDX-License-Identifier: MIT
#pragma once
// A listening socket: accepts, greets, and offers what has proved itself.
#include "transport/greeter.hpp"
#include "transport/listener.hpp"

#include <list>
#include <mutex>

namespace muster {

// What close() removes with the socket. A value.
struct SocketFile {
    std::string path; // empty: none
    uint64_t device = 0, inode = 0;
};

// Any thread, unless a member says otherwise.
class SocketListener final : public TransportListener, private Pollable {
  public:
    // `greeting` has everything but what depends on the connection.
    SocketListener(Hub &hub, Fd fd, std::string address, Ref<ListenerCore> core, HandshakeConfig greeting,
                   SocketFile file);
    Result<void> start();
    std::string address() override { return address_; }
    void close() noexcept override;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &pollable_object() noexcept override { return *this; }
    void accept_some() noexcept;
    void greet(Fd fd);
    bool make_place() noexcept;

    Hub &hub_;
    const std::string address_;
    const Ref<ListenerCore> core_;
    const HandshakeConfig config_;
    const SocketFile file_;
    std::mutex lock_; // guards fd_: close() waits for an accept() under way
    Fd fd_;
    // loop thread
    std::list<Ref<Greeter>> greeting_; // oldest first
    bool pausing_ = false;
};

} // namespace muster
