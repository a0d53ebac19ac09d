// SPDX-License-Identifier: MIT
#pragma once
// What a worker and its master say to each other, on a link of the library's own.
//
// A message is a length of four bytes, lowest first, and so many bytes: kind (1), member (4), status (4), number (8),
// the length of the text (2), the text, and what is left, the address. A link that sends anything else is cut.
#include "base/result.hpp"

#include <muster/stream.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// A value.
struct ControlMessage {
    enum Kind : uint8_t {
        hello = 1,   // worker: member, process id, name of the host (and a zero, and its shelf), address it listens at
        welcome = 2, // master: member, address it listens at, its shelf
        refused = 3, // master: status, text; the link ends
        where = 4,   // worker: how is `member` reached? `number` names the question
        there = 5,   // master: the answer; status, text (OK: its shelf), address (empty: it has to call)
        call = 6,    // `member` is to dial (to the master: from whom, to whom), with `number`; label and address;
                     // status 1: for a broadcast
        call_failed = 7, // the call `number` of `member` was in vain: status, text
        gone = 8,        // master: `member` is gone; status, text
        interrupt = 9,   // master
        leave = 10,      // master: leave
        leaving = 11,    // worker: it leaves, in order
        die = 12,        // master: end your process by force
        fares = 13,      // to the origin of broadcast `number`: status of whom the text begins with (4), and a sentence
        broadcast_over = 14 // of the origin of broadcast `number`: nothing of it is wanted any more
    };
    uint8_t kind = 0;
    uint32_t member = 0;
    int32_t status = 0;
    uint64_t number = 0;
    std::string text{}, address{};
};

constexpr size_t control_text_max = 4096, control_address_max = 1023;
constexpr size_t control_head_bytes = 1 + 4 + 4 + 8 + 2;

std::string encode(const ControlMessage &message);                   // with its length; texts that are too long are cut
std::optional<ControlMessage> decode_control(std::string_view body); // without it; none: that is no message
Error error_in(const ControlMessage &message) noexcept;              // its status and text

struct ReleaseStream {
    void operator()(muster_stream *stream) const noexcept { muster_stream_release(stream); }
};
using StreamHandle = std::unique_ptr<muster_stream, ReleaseStream>;

// One end of such a link. One thread.
class ControlLink {
  public:
    explicit ControlLink(StreamHandle stream) noexcept : stream_(stream.release()) {}
    ControlLink(const ControlLink &) = delete;
    ControlLink &operator=(const ControlLink &) = delete;
    ~ControlLink();

    Status watch(muster_queue *queue, uint64_t tag) noexcept;
    // Goes out as there is room; a link whose other end reads nothing is cut when a megabyte waits. False: it is over.
    bool send(const ControlMessage &message);
    bool flush();
    // OK: a message; AGAIN: none yet, the watch is armed; else why the link is over.
    Error next(ControlMessage &out);
    muster_stream *stream() const noexcept { return stream_; }

  private:
    Error why(Status status) const noexcept;
    muster_stream *const stream_;
    std::string in_, out_;
    size_t sent_ = 0; // of out_
    bool over_ = false;
};

} // namespace muster
