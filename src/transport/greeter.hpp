// SPDX-License-Identifier: MIT
#pragma once
// A connected socket until it is a link: the handshake, the shared memory if there is to be some, then the stream.
#include "transport/hub.hpp"
#include "transport/segment.hpp"
#include "transport/transport.hpp"

#include <functional>

namespace muster {

struct GreeterSetup {
    std::string what; // for errors: "dial tcp://n3:4100"
    std::string peer; // text of the stream's peer
    uint64_t window = 0;
    bool unix_socket = false;
};

// Loop thread only.
class Greeter final : public Object, private Pollable {
  public:
    using Done = std::function<void(Result<Ref<Stream>>)>;
    Greeter(Hub &hub, Fd fd, HandshakeConfig config, GreeterSetup setup, Done done);
    void start();
    void stop() noexcept; // not wanted any more; done is not called
    int64_t since() const noexcept { return since_; }
    void refuse(Refusal why) noexcept; // says so, if that needs no waiting, and ends
    // The other process has come for its segment, on another socket.
    void send_segment_aside(Fd socket) noexcept;

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &pollable_object() noexcept override { return *this; }
    void progress();
    bool send_output() noexcept;
    bool send_segment() noexcept;
    ssize_t receive();
    void fetch_aside() noexcept;
    void receive_segment_message();
    void segment_taken(bool ok);
    void finish(Result<Ref<Stream>> result) noexcept;
    void fail(const Error &why) noexcept;
    void complete();
    bool make_own_segment() noexcept;
    bool lay_out(const Error &why, uint64_t window, bool fresh) noexcept;

    Hub &hub_;
    const Ref<Context> context_;
    Fd fd_;
    Handshake handshake_;
    const HandshakeConfig config_;
    const GreeterSetup setup_;
    Done done_;
    Segment segment_;
    Ref<Duplex> shared_; // over the segment
    Fd fds_[segment_descriptors];
    Fd aside_; // where the segment is fetched from, when not from fd_
    std::string output_, segment_text_;
    Status status_ = MUSTER_AGAIN;
    bool registered_ = false, segment_sent_ = false;
    uint64_t timer_ = 0, closing_ = 0, aside_timer_ = 0;
    int64_t since_ = 0;
};

} // namespace muster
