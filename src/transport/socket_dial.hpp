// SPDX-License-Identifier: MIT
#pragma once
// From addresses to a connected socket to a stream, without ever waiting.
#include "base/back_off.hpp"
#include "transport/handshake_driver.hpp"
#include "transport/sockets.hpp"

namespace muster {

// The configuration from context, address and options; the connection adds the rest. E_ADDRESS: an option has an
// invalid value.
Result<HandshakeConfig> handshake_config_for(Hub &hub, const Address &address, const TransportOptions &options,
                                             bool dialer);
// yes or no. E_ADDRESS: neither.
Result<bool> yes_or_no(const Address &address, const char *option, bool otherwise);

// Loop thread only, but for stop().
class SocketDial final : public Attempt, private Watch, private HandshakeOwner {
  public:
    SocketDial(Hub &hub, const Address &address, HandshakeConfig config, SocketTaker *taker, Ref<Dial> dial);
    bool wanted() noexcept;                                    // false: the dial is over
    void start(std::vector<SocketAddress> addresses) noexcept; // tried in this order
    void fail(const Error &why) noexcept;
    void stop() noexcept override;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    void handshake_ended(HandshakeDriver &driver, Result<Ref<Stream>> result) noexcept override;
    void proved(HandshakeDriver &driver, ProvedSocket socket) noexcept override;
    Object &owner_object() noexcept override { return *this; }
    template <class Step>
    void guarded(Step &&step) noexcept;
    void try_next();
    void try_one(const SocketAddress &address);
    void connected();
    void not_this_one(int why) noexcept;
    void next_turn() noexcept; // of an address, or of one that had no room
    bool dial_again() noexcept;
    void stop_here() noexcept;
    void leave_socket() noexcept;

    Hub &hub_;
    const std::string text_;
    const HandshakeConfig config_;
    SocketTaker *const taker_; // or NULL; as long as the dial
    const Ref<Object> taker_alive_;
    Ref<Dial> dial_;
    std::vector<SocketAddress> addresses_;
    size_t next_ = 0;
    Fd fd_;
    bool registered_ = false, paused_ = false;
    Timer<SocketDial, &SocketDial::next_turn> timer_{*this};
    PostedTask<SocketDial, &SocketDial::stop_here> stop_{*this};
    int last_errno_ = 0;
    int64_t busy_since_ = 0; // the listener has refused this dial for now
    BackOff back_off_{5'000'000, 160'000'000};
    Ref<HandshakeDriver> handshake_;
};

} // namespace muster
