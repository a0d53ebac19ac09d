// SPDX-License-Identifier: MIT
#pragma once
// The link between a worker and its master: messages in both directions.
//
// A message is its length in four bytes, lowest first, and its body: kind (1), member (4), status (4), number (8), the
// length of the text (2), the text, and the address, which is the rest. A link on which anything else arrives is cut.
#include "base/result.hpp"
#include "cluster/member/stream_handle.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// A value.
struct ControlMessage {
    enum Kind : uint8_t {
        hello = 1,     // worker: member, process id, name of the host (and a zero byte and its inbox), listen address
        welcome = 2,   // master: member, id of the cluster, its inbox, listen address
        refused = 3,   // master: status, text; the link ends
        locate = 4,    // worker: how is `member` reached? `number` names the question
        location = 5,  // master: the answer; status, text (OK: its inbox), address (empty: it has to dial)
        dial_back = 6, // worker: `member` is to dial the sender (master: the member that is to be dialled), with
                       // `number`; label and address; status 1: for a broadcast
        dial_back_failed = 7, // the dial with `number` of `member` failed: status, text
        gone = 8,             // master: `member` is gone; status, text
        interrupt = 9,        // master
        leave = 10,           // master: leave
        leaving = 11,         // worker: it leaves, in order
        die = 12,             // master: kill your own process
        delivery_status = 13, // to the origin of broadcast `number`: the member it is about (4), status, text
        broadcast_over = 14,  // of the origin of broadcast `number`: nothing of it is needed any more
        find_store = 15       // worker: at which address is the store of the cluster? Answered by a location
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
std::optional<ControlMessage> decode_control(std::string_view body); // without its length
Error error_in(const ControlMessage &message) noexcept;              // its status and text

// One end of such a link. One thread.
class ControlLink {
  public:
    explicit ControlLink(StreamHandle stream) noexcept : stream_(std::move(stream)) {}
    ControlLink(const ControlLink &) = delete;
    ControlLink &operator=(const ControlLink &) = delete;
    ~ControlLink();

    Status watch(Queue &queue, uint64_t tag) noexcept;
    // Sends as there is room; a link whose peer does not read is cut when a megabyte waits. False: the link is over.
    bool send(const ControlMessage &message);
    bool flush();
    // OK: a message; AGAIN: none yet, the watch is armed; else why the link is over.
    Error next(ControlMessage &out);
    StreamHandle &stream() noexcept { return stream_; }

  private:
    Error why(Status status) const noexcept;
    StreamHandle stream_;
    std::string in_, out_;
    size_t sent_ = 0; // of out_
    bool over_ = false;
};

} // namespace muster
