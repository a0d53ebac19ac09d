// SPDX-License-Identifier: MIT
#pragma once
// The frames of links and sessions, after both sides have proved the secret. Eight bytes of header, then the payload:
//   type (1), stream (3, zero on a link, which has one), length of what follows (4); little-endian
// On a sealed connection the payload is 17 bytes longer than its contents, and the header is authenticated with it.
#include "base/codec.hpp"
#include "base/result.hpp"
#include "transport/seal.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sys/uio.h>

namespace muster {

enum class FrameType : uint8_t {
    data = 1,      // bytes of the host
    heartbeat = 2, // empty
    credit = 3,    // u64: so many more bytes may be sent
    finish = 4,    // empty: no more data frames
    abort = 5,     // u64 reason, text of at most 200 bytes
    goodbye = 6,   // empty: the last frame; on a link: the host has closed its stream
    // only in sessions
    open = 7,          // u64 window, u16 length of the service, service, hello of the host
    accept = 8,        // u64 window, hello of the host
    refuse = 9,        // i32 status, text of at most 200 bytes
    closed = 10,       // empty: the host has closed its stream and reads nothing more
    pair_offer = 11,   // see pairing.cpp
    pair_answer = 12,  // i32 status
    query_routes = 13, // service: where else is it served?
    routes = 14        // addresses, a newline between them; none: nowhere else
};

constexpr size_t frame_header_bytes = 8;
constexpr size_t frame_data_max = 256 * 1024;
constexpr size_t frame_text_max = 200;
constexpr size_t service_max_bytes = 1024;
constexpr size_t routes_max_bytes = 2048;
constexpr size_t frame_control_max = 8 + frame_text_max; // of a link

inline void put_frame_header(unsigned char *to, FrameType type, size_t length, uint32_t stream = 0) noexcept {
    put_u32(to, static_cast<uint32_t>(type) | stream << 8);
    put_u32(to + 4, static_cast<uint32_t>(length));
}
// Bytes of a whole frame.
constexpr size_t frame_bytes(size_t payload, bool sealed) noexcept {
    return frame_header_bytes + payload + (sealed ? seal_overhead_bytes : 0);
}
// Writes a complete frame, sealed if there is a sealer. The spans have `size` bytes of payload. Returns frame_bytes().
size_t put_frame(unsigned char *to, FrameType type, uint32_t stream, const iovec *spans, size_t size,
                 Sealer *sealer) noexcept;

// The destination of the contents of frames. A negative status ends the reading and is returned by feed().
class FrameSink {
  public:
    // Of unsealed frames in pieces.
    virtual Status on_data(uint32_t stream, const unsigned char *data, size_t size) noexcept = 0;
    // A whole frame of another type, of a length that its type may have.
    virtual Status on_frame(FrameType type, uint32_t stream, const unsigned char *payload, size_t size) noexcept = 0;

  protected:
    ~FrameSink() = default;
};

// The frames that a reader accepts.
struct FrameRules {
    FrameType last_type;
    bool has_streams;
    size_t data_max;
    bool keeps_buffer; // between frames
};
constexpr FrameRules link_frames{FrameType::goodbye, false, frame_data_max, true};
// There may be thousands of sessions, and their staged bytes fit into a segment with its headroom.
constexpr size_t session_data_max = frame_data_max - 4096;
constexpr FrameRules session_frames{FrameType::routes, true, session_data_max, false};

// Accepts bytes as they arrive, in pieces of any size, and passes their contents on. Data of unsealed frames is passed
// on as it arrives; other frames are gathered until they are complete and authenticated. One user at a time.
class FrameReader {
  public:
    explicit FrameReader(const FrameRules &rules = link_frames) noexcept : rules_(rules) {}
    // From here on frames are sealed. Before the first byte.
    void set_opener(std::unique_ptr<Opener> opener) noexcept { opener_ = std::move(opener); }
    bool is_sealed() const noexcept { return opener_ != nullptr; }

    // MUSTER_OK, MUSTER_E_PROTOCOL with why() set, MUSTER_E_NOMEM, or the status of the sink.
    Status feed(const unsigned char *data, size_t size, FrameSink &sink) noexcept;
    const char *why() const noexcept { return why_; }
    Status complain(const char *why) noexcept { // for a sink that rejects a frame
        why_ = why;
        return MUSTER_E_PROTOCOL;
    }

    // The number of payload bytes of an unsealed data frame that come next; 0: not within one.
    size_t data_left() const noexcept { return type_ == FrameType::data && !opener_ ? left_ : 0; }
    // So many of the next bytes belong to a header; 0: the next byte does not.
    size_t header_left() const noexcept { return in_frame_ ? 0 : frame_header_bytes - have_; }
    bool is_between_frames() const noexcept { return !in_frame_ && have_ == 0; }
    size_t last_data_length() const noexcept { return last_data_; } // of the latest data frame's payload

  private:
    Status begin() noexcept;
    Status gather(const unsigned char *&data, size_t &size, FrameSink &sink) noexcept;

    const FrameRules rules_;
    std::unique_ptr<Opener> opener_;
    std::unique_ptr<unsigned char[]> buffer_; // a whole frame that is larger than small_
    size_t capacity_ = 0;
    unsigned char small_[frame_control_max];
    unsigned char header_[frame_header_bytes];
    size_t have_ = 0; // bytes of the header; within a frame that is gathered: of its payload
    size_t left_ = 0; // bytes of the payload that have not arrived yet
    size_t last_data_ = 0;
    bool in_frame_ = false;
    FrameType type_ = FrameType::heartbeat;
    uint32_t stream_ = 0;
    const char *why_ = "";
};

} // namespace muster
