// SPDX-License-Identifier: MIT
#pragma once
// Drives the handshake on a connected socket until it is a link: proof, shared memory if both sides support it, stream.
#include "transport/descriptor_channel.hpp"
#include "transport/pending_handshakes.hpp"
#include "transport/segment.hpp"
#include "transport/transport.hpp"

namespace muster {

class HandshakeDriver;

// The owner of a handshake. Loop thread.
class HandshakeOwner {
  public:
    // Listener: the dialer has proved the secret. False: there is no place for it. May throw bad_alloc.
    virtual bool admit() { return true; }
    virtual void handshake_ended(HandshakeDriver &driver, Result<Ref<Stream>> result) noexcept = 0; // the last call
    // Instead of that, if the setup requests it.
    virtual void proved(HandshakeDriver &driver, ProvedSocket socket) noexcept = 0;
    virtual Object &owner_object() noexcept = 0; // kept alive until then

  protected:
    ~HandshakeOwner() = default;
};

struct HandshakeSetup {
    std::string what;   // for errors: "dial tcp://n3:4100"
    std::string peer;   // text of the stream's peer
    std::string origin; // listener: the origin of the connection, which is the same for connections of one peer
    uint64_t window = 0;
    bool unix_socket = false;
    bool bare = false; // only the socket is needed, not a stream
};

// Loop thread only.
class HandshakeDriver final : public Object, public PendingHandshake, private Watch, private DescriptorChannel::Owner {
  public:
    HandshakeDriver(Hub &hub, Fd fd, HandshakeConfig config, HandshakeSetup setup, HandshakeOwner &owner);
    void start() noexcept;
    void stop() noexcept; // abandons the handshake; handshake_ended() does not follow
    int64_t since() const noexcept override { return since_; }
    bool admitted() const noexcept { return admitted_; } // admit() was called and returned true
    const std::string &origin() const noexcept override { return setup_.origin; }
    bool has_hello() const noexcept override { return handshake_.has_hello(); }
    bool was_busy() const noexcept { return handshake_.busy(); } // a dialer: the listener has refused it for now
    bool lingers() const noexcept override { return why_not_.status < 0; }
    Object &pending_object() noexcept override { return *this; }
    void displace() noexcept override;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    HandshakeConfig with_callbacks(HandshakeConfig config);
    template <class Step>
    void guarded(Step &&step) noexcept;
    void progress();
    bool send_output();
    bool send_segment();
    void token_shown(Fd socket) noexcept override; // the other process fetches its segment, on another socket
    ssize_t receive();
    void begin_fetch();
    void receive_segment_message();
    void segment_taken(bool ok);
    void finish(Result<Ref<Stream>> result) noexcept;
    void fail(const Error &why) noexcept;
    void linger() noexcept;
    void drain() noexcept;
    void complete();
    void hand_over();
    bool make_own_segment() noexcept;
    bool lay_out(const Error &why, uint64_t window, bool fresh) noexcept;
    void too_late() noexcept;
    void context_closes() noexcept { fail(Error::make(MUSTER_E_CANCELED, "the context was closed")); }
    void fetch_too_late() noexcept;

    Hub &hub_;
    const Ref<Context> context_;
    Fd fd_;
    HandshakeOwner *owner_; // until the last call
    Ref<Object> owner_alive_;
    const HandshakeConfig config_;
    Handshake handshake_;
    const HandshakeSetup setup_;
    Segment segment_;
    Ref<Duplex> shared_; // over the segment
    Fd fds_[segment_descriptors];
    Fd fetch_socket_; // where the segment is fetched from, when not from fd_
    std::string output_, segment_text_;
    Status status_ = MUSTER_AGAIN;
    Error why_not_; // once it lingers
    size_t drained_ = 0;
    bool send_broken_ = false; // what the other side has sent before is still read
    bool registered_ = false, segment_sent_ = false, fetch_begun_ = false, admitted_ = false, refuses_ = false,
         displaced_ = false;
    Timer<HandshakeDriver, &HandshakeDriver::too_late> limit_{*this};
    Timer<HandshakeDriver, &HandshakeDriver::fetch_too_late> fetch_limit_{*this};
    Closing<HandshakeDriver, &HandshakeDriver::context_closes> closing_{*this};
    int64_t since_ = 0;
};

} // namespace muster
