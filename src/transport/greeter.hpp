// SPDX-License-Identifier: MIT
#pragma once
// A connected socket until it is a link: the handshake, the shared memory if there is to be some, then the stream.
#include "transport/hub.hpp"
#include "transport/pending_handshakes.hpp"
#include "transport/segment.hpp"
#include "transport/transport.hpp"

namespace muster {

class Greeter;

// Whoever has the socket greeted. Loop thread.
class GreeterOwner {
  public:
    // A listener: the dialer has proved itself. False: there is no place for it. May throw bad_alloc.
    virtual bool admit() { return true; }
    virtual void greeted(Greeter &greeter, Result<Ref<Stream>> result) noexcept = 0; // the last call
    // In place of it, where the setup says so.
    virtual void proved(Greeter &greeter, ProvedSocket socket) noexcept = 0;
    virtual Object &greeter_owner() noexcept = 0; // kept alive until then

  protected:
    ~GreeterOwner() = default;
};

struct GreeterSetup {
    std::string what;   // for errors: "dial tcp://n3:4100"
    std::string peer;   // text of the stream's peer
    std::string origin; // a listener: what connections of one origin have in common
    uint64_t window = 0;
    bool unix_socket = false;
    bool bare = false; // the socket is wanted, not a stream
};

// Loop thread only.
class Greeter final : public Object, public PendingHandshake, private Watch {
  public:
    Greeter(Hub &hub, Fd fd, HandshakeConfig config, GreeterSetup setup, GreeterOwner &owner);
    void start() noexcept;
    void stop() noexcept; // not wanted any more; greeted() does not follow
    int64_t since() const noexcept override { return since_; }
    bool admitted() const noexcept { return admitted_; } // admit() was asked and said yes
    const std::string &origin() const noexcept override { return setup_.origin; }
    bool has_hello() const noexcept override { return handshake_.has_hello(); }
    bool was_busy() const noexcept { return handshake_.busy(); } // a dialer: the listener has refused it for now
    bool lingers() const noexcept override { return why_not_.status < 0; }
    Object &pending_object() noexcept override { return *this; }
    void displace() noexcept override;
    // The other process has come for its segment, on another socket.
    void send_segment_aside(Fd socket) noexcept;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    HandshakeConfig ask_here(HandshakeConfig config);
    template <class Step>
    void guarded(Step &&step) noexcept;
    void progress();
    bool send_output();
    bool send_segment();
    ssize_t receive();
    void fetch_aside();
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
    void aside_too_late() noexcept;

    Hub &hub_;
    const Ref<Context> context_;
    Fd fd_;
    GreeterOwner *owner_; // until it was told
    Ref<Object> owner_alive_;
    const HandshakeConfig config_;
    Handshake handshake_;
    const GreeterSetup setup_;
    Segment segment_;
    Ref<Duplex> shared_; // over the segment
    Fd fds_[segment_descriptors];
    Fd aside_; // where the segment is fetched from, when not from fd_
    std::string output_, segment_text_;
    Status status_ = MUSTER_AGAIN;
    Error why_not_; // once it lingers
    size_t drained_ = 0;
    bool registered_ = false, segment_sent_ = false, asked_aside_ = false, admitted_ = false, refuses_ = false,
         displaced_ = false;
    Timer<Greeter, &Greeter::too_late> limit_{*this};
    Timer<Greeter, &Greeter::aside_too_late> aside_limit_{*this};
    Closing<Greeter, &Greeter::context_closes> closing_{*this};
    int64_t since_ = 0;
};

} // namespace muster
