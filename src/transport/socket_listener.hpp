// SPDX-License-Identifier: MIT
#pragma once
// A listening socket: accepts connections, runs their handshakes, and offers the authenticated ones.
#include "transport/handshake_driver.hpp"
#include "transport/listener.hpp"
#include "transport/pending_handshakes.hpp"

#include <mutex>

namespace muster {

// The files that close() removes with the socket. A value.
struct SocketFile {
    std::string path; // empty: none
    uint64_t device = 0, inode = 0;
};

// Any thread, unless a member says otherwise.
class SocketListener final : public TransportListener, private Watch, private HandshakeOwner {
  public:
    // `config` has everything except what depends on the connection.
    SocketListener(Hub &hub, Fd fd, std::string address, Ref<ListenerCore> core, SocketTaker *taker,
                   HandshakeConfig config, SocketFile file);
    Result<void> start() noexcept;
    std::string address() override { return address_; }
    void close() noexcept override;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    bool admit() override { return taker_ != nullptr ? taker_->admit() : core_->reserve(); }
    void handshake_ended(HandshakeDriver &driver, Result<Ref<Stream>> result) noexcept override;
    void proved(HandshakeDriver &driver, ProvedSocket socket) noexcept override;
    void leaves(HandshakeDriver &driver) noexcept;
    Object &owner_object() noexcept override { return *this; }
    void accept_some() noexcept;
    void begin_handshake(Fd fd);
    uint32_t limit() const noexcept; // of connections that have not proved themselves
    bool make_place() noexcept;
    bool has_waiting() noexcept;
    bool displace(PendingHandshake *connection) noexcept; // NULL: none
    void report_displaced() noexcept;
    void drop_handshakes() noexcept; // loop thread

    Hub &hub_;
    const std::string address_;
    const Ref<ListenerCore> core_;
    SocketTaker *const taker_; // or NULL
    const Ref<Object> taker_alive_;
    const HandshakeConfig config_;
    const SocketFile file_;
    std::mutex lock_; // guards fd_: close() waits for an accept() in progress
    Fd fd_;
    // loop thread
    PendingHandshakes pending_;
    bool full_ = false; // new connections wait in the kernel's queue until one of these has gone, or has had its time
    uint64_t displaced_ = 0; // not reported yet
    Timer<SocketListener, &SocketListener::accept_some> pause_{*this};
    Timer<SocketListener, &SocketListener::report_displaced> report_{*this};
    PostedTask<SocketListener, &SocketListener::drop_handshakes> drop_handshakes_{*this};
};

} // namespace muster
