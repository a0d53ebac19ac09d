// SPDX-License-Identifier: MIT
#pragma once
// From addresses to a connected socket to a stream, without ever waiting.
#include "transport/greeter.hpp"
#include "transport/sockets.hpp"

namespace muster {

// What the handshake is told by context, address and options; the connection adds the rest. E_ADDRESS: a value of an
// option makes no sense.
Result<HandshakeConfig> greeting_for(Hub &hub, const Address &address, const TransportOptions &options, bool dialer);
// yes or no. E_ADDRESS: neither.
Result<bool> yes_or_no(const Address &address, const char *option, bool otherwise);

// Loop thread only.
class SocketDial final : public Object, private Pollable {
  public:
    SocketDial(Hub &hub, const Address &address, HandshakeConfig config, Ref<Dial> dial);
    void start(std::vector<SocketAddress> addresses); // tried in this order
    void fail(const Error &why) noexcept;
    bool wanted(); // false: nobody waits any more

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &pollable_object() noexcept override { return *this; }
    void try_next();
    void try_one(const SocketAddress &address);
    void connected();
    void not_this_one(int why);
    void stop() noexcept;
    void leave_socket() noexcept;

    Hub &hub_;
    const std::string text_;
    const HandshakeConfig config_;
    Ref<Dial> dial_;
    std::vector<SocketAddress> addresses_;
    size_t next_ = 0;
    Fd fd_;
    bool registered_ = false, paused_ = false;
    uint64_t timer_ = 0;
    int last_errno_ = 0;
    Ref<Greeter> greeter_;
};

} // namespace muster
