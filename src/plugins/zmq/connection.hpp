// SPDX-License-Identifier: MIT
#pragma once
// One connection between a member or broker and a broker, either side of it: ZMTP 3.x (RFC 23) with the mechanism NULL
// or CURVE. What the peer calls itself is ignored. Everything here reads what a stranger may have sent: no length is
// believed before it is compared with a bound, and nothing is allocated before that. One thread.
#include "curve.hpp"
#include "message.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace star {

using Route = uint64_t; // a connection's number

// What a connection tells of itself, from inside read().
class ConnectionOwner {
  public:
    virtual void received(Route route, Message &message) = 0;

  protected:
    ~ConnectionOwner() = default;
};

// Memory that all connections of a thread share, one at a time.
struct Scratch {
    static constexpr size_t in_bytes = 128 * 1024, out_bytes = 512 * 1024;
    // Not filled with zeros: the kernel gives the pages that are used.
    std::unique_ptr<unsigned char[]> in{new unsigned char[in_bytes]};
    std::unique_ptr<unsigned char[]> out{new unsigned char[out_bytes]};
};

void tune_connection(int fd) noexcept; // a connected or connecting socket

class Connection {
  public:
    static constexpr size_t frame_max = head_bytes + message_max + 4096 * 8; // of a member
    static constexpr size_t early_frame_max = 1024;                          // before it is one
    enum class End : uint8_t { none, peer, protocol, stranger };             // why it is over

    // `curve`: of the same side; none, no CURVE. The descriptor is closed with the connection.
    Connection(int fd, Route route, ZmtpSide side, std::unique_ptr<Curve> curve, int64_t now_ns);
    ~Connection();
    Connection(const Connection &) = delete;

    // Takes what is there, within a bound. False: it is over, end() tells why.
    bool read(Scratch &scratch, ConnectionOwner &owner);
    // Writes what the kernel takes. False: it is over.
    bool write(Scratch &scratch);
    // The message moves.
    void send(Message &message);
    void hang_up();                                     // after what is to be written; nothing is listened to
    void admit() noexcept { frame_limit_ = frame_max; } // it is a member

    int fd() const noexcept { return fd_; }
    Route route() const noexcept { return route_; }
    End end() const noexcept { return end_; }
    // There is something to write, and it can be written.
    bool waiting() const noexcept { return !out_.empty() || (state_ == State::traffic && !queue_.empty()); }
    bool handshaken() const noexcept { return state_ == State::traffic; }
    bool admitted() const noexcept { return frame_limit_ == frame_max; }
    uint64_t queued_bytes() const noexcept { return queued_ + out_.size(); }
    uint64_t queued_words() const noexcept { return queued_words_; } // the part of it that is no data

    int64_t since_ns;              // when it came, or was hung up on
    bool spoke = false;            // the owner has received something
    bool dirty = false;            // the server's: is to be written to in this turn
    bool wants_out = false;        // the server's: the kernel tells when it can be written to
    uint64_t older = 0, newer = 0; // the server's: its neighbours among those not admitted

  private:
    enum class State : uint8_t { greeting, handshake, traffic };
    struct Outgoing {
        Message message;
        bool command = false;
        bool word = false; // of the star, and no data
    };
    bool parse(unsigned char *data, size_t size, ConnectionOwner &owner);
    bool greeted();
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
    size_t frame_limit_ = early_frame_max;
    const std::unique_ptr<Curve> curve_;
    // What has come of the greeting or of a frame's beginning, then of its body.
    unsigned char begin_[64];
    size_t begin_size_ = 0;
    bool in_body_ = false;
    unsigned char flags_ = 0;
    size_t body_size_ = 0;
    Message body_;
    // What is to be written: first the bytes, then the messages.
    std::vector<unsigned char> out_;
    size_t out_at_ = 0, first_at_ = 0; // what has been written of the bytes, of the first message
    std::deque<Outgoing> queue_;
    uint64_t queued_ = 0, queued_words_ = 0;
};

} // namespace star
