// SPDX-License-Identifier: MIT
#pragma once
// One connection of a member or broker to a broker, either side of it: ZMTP 3.x (RFC 23) with the mechanism NULL or
// CURVE. The identity that a peer announces is ignored. The bytes read here may come from an unauthenticated peer: each
// length is compared with a bound before it is used, and before anything is allocated. One thread.
#include "curve.hpp"
#include "message.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace star {

using Route = uint64_t; // a connection's number

// Receives the messages of a connection, from inside read().
class ConnectionOwner {
  public:
    virtual void received(Route route, Message &message) = 0;

  protected:
    ~ConnectionOwner() = default;
};

// Memory that all connections of a thread share, one at a time.
struct Scratch {
    static constexpr size_t in_bytes = 128 * 1024, out_bytes = 512 * 1024;
    // Not zeroed, so that the kernel allocates only the pages that are used.
    std::unique_ptr<unsigned char[]> in{new unsigned char[in_bytes]};
    std::unique_ptr<unsigned char[]> out{new unsigned char[out_bytes]};
};

void tune_connection(int fd) noexcept; // a connected or connecting socket

class Connection {
  public:
    static constexpr size_t max_frame_bytes = head_bytes + max_message_bytes + 4096 * 8; // of a member
    static constexpr size_t max_early_frame_bytes = 1024;                                // before admit()
    enum class End : uint8_t { none, peer, protocol, unauthenticated, memory };          // why the connection has ended

    // `curve`: of the same side; NULL: no CURVE. The connection owns the descriptor.
    Connection(int fd, Route route, ZmtpSide side, std::unique_ptr<Curve> curve, int64_t now_ns);
    ~Connection();
    Connection(const Connection &) = delete;

    // Reads the available bytes, within a bound. Returns false after the end; end() is the reason, also if there was no
    // memory for what was received, here or at the owner.
    bool read(Scratch &scratch, ConnectionOwner &owner) noexcept;
    // Writes as much as the kernel accepts. Returns false after the end.
    bool write(Scratch &scratch) noexcept;
    // Moves the content of the message out. Throws without memory, and has queued nothing then.
    void send(Message &message);
    void hang_up(); // after the queued bytes are written; nothing is read any more
    void admit() noexcept { frame_limit_ = max_frame_bytes; } // the peer is a member

    int fd() const noexcept { return fd_; }
    Route route() const noexcept { return route_; }
    End end() const noexcept { return end_; }
    // Something is queued that can be written now.
    bool waiting() const noexcept { return !out_.empty() || (state_ == State::traffic && !queue_.empty()); }
    bool handshaken() const noexcept { return state_ == State::traffic; }
    bool admitted() const noexcept { return frame_limit_ == max_frame_bytes; }
    uint64_t queued_bytes() const noexcept { return queued_ + out_.size(); }
    uint64_t queued_control() const noexcept { return queued_control_; } // the part of it that is not data

    int64_t since_ns;       // of accept() or hang_up()
    bool spoke = false;     // the owner has received a message
    bool dirty = false;     // the server's: flush() will write to it
    bool wants_out = false; // the server's: EPOLLOUT is watched

  private:
    enum class State : uint8_t { greeting, handshake, traffic };
    struct Outgoing {
        Message message;
        bool command = false;
        bool control = false; // a message of the star that is not data
    };
    bool read_some(Scratch &scratch, ConnectionOwner &owner);
    bool parse(unsigned char *data, size_t size, ConnectionOwner &owner);
    bool greeted();
    bool write_failed(); // false
    bool keep_out(const unsigned char *bytes, size_t size);
    bool frame(unsigned char *data, size_t size, Message *holder, ConnectionOwner &owner);
    bool handshake(std::string_view body);
    bool command(std::string_view body);
    bool deliver(unsigned char flags, std::string_view payload, Message *holder, ConnectionOwner &owner);
    bool over(End end) noexcept;
    void put_command(std::string_view body);
    bool flush_plain();
    bool flush_sealed(Scratch &scratch);
    bool flush_out();
    void written_one();

    const int fd_;
    const Route route_;
    const ZmtpSide side_;
    State state_ = State::greeting;
    End end_ = End::none;
    bool hung_up_ = false, shut_ = false;
    size_t frame_limit_ = max_early_frame_bytes;
    const std::unique_ptr<Curve> curve_;
    // The received part of the greeting or of a frame's head, then of its body.
    unsigned char begin_[64];
    size_t begin_size_ = 0;
    bool in_body_ = false;
    unsigned char flags_ = 0;
    size_t body_size_ = 0;
    Message body_;
    // The output queue: first the bytes, then the messages.
    std::vector<unsigned char> out_;
    size_t out_at_ = 0, first_at_ = 0; // the written part of the bytes, and of the first message
    std::deque<Outgoing> queue_;
    uint64_t queued_ = 0, queued_control_ = 0;
};

} // namespace star
