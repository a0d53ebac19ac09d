// SPDX-License-Identifier: MIT
#pragma once
// The frames of a link, after both sides have proved the secret. Eight bytes of header, then the payload:
//   type (1), flags (1, zero), reserved (2, zero), length of what follows (4, little-endian)
// On a sealed link the payload is 17 bytes longer than what it holds, and the header is authenticated with it.
#include "base/codec.hpp"
#include "base/result.hpp"
#include "transport/seal.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace muster {

enum class FrameType : uint8_t {
    data = 1,      // bytes of the host
    heartbeat = 2, // empty: I am here
    credit = 3,    // u64: so many more bytes may be sent to me
    finish = 4,    // empty: no more data frames
    abort = 5,     // u64 reason, text of at most 200 bytes
    goodbye = 6    // empty: the last frame; my host has closed its stream
};

constexpr size_t frame_header_bytes = 8;
constexpr size_t frame_data_max = 256 * 1024;
constexpr size_t frame_control_max = 8 + 200;

inline void put_frame_header(unsigned char *to, FrameType type, size_t length) noexcept {
    put_u32(to, static_cast<uint32_t>(type));
    put_u32(to + 4, static_cast<uint32_t>(length));
}

// Where the contents of frames go. A negative status ends the reading and comes back from feed().
class FrameSink {
  public:
    virtual Status on_data(const unsigned char *data, size_t size) noexcept = 0;
    virtual Status on_credit(uint64_t bytes) noexcept = 0;
    virtual Status on_finish() noexcept = 0;
    virtual Status on_abort(uint64_t reason, const char *text, size_t text_bytes) noexcept = 0;
    virtual Status on_goodbye() noexcept = 0;

  protected:
    ~FrameSink() = default;
};

// Takes a link's bytes as they come, in pieces of any size, and hands on what they say. Data of unsealed frames is
// handed on as it comes; sealed frames are gathered until they are whole and proved. One user at a time.
class FrameReader {
  public:
    // From here on frames are sealed. Before the first byte.
    void set_opener(std::unique_ptr<Opener> opener) noexcept { opener_ = std::move(opener); }
    bool sealed() const noexcept { return opener_ != nullptr; }

    // MUSTER_OK, MUSTER_E_PROTOCOL with why() set, or what the sink answered.
    Status feed(const unsigned char *data, size_t size, FrameSink &sink) noexcept;
    const char *why() const noexcept { return why_; }
    Status complain(const char *why) noexcept { // for a sink that will not have it
        why_ = why;
        return MUSTER_E_PROTOCOL;
    }

    // What the next bytes are: so many of an unsealed data frame's payload; 0: not within one.
    size_t data_left() const noexcept { return type_ == FrameType::data && !opener_ ? left_ : 0; }
    // So many of the next bytes belong to a header; 0: the next byte does not.
    size_t header_left() const noexcept { return in_frame_ ? 0 : frame_header_bytes - have_; }
    size_t last_data_length() const noexcept { return last_data_; } // of the latest data frame's payload
    bool over() const noexcept { return over_; }                    // the goodbye was read

  private:
    Status begin(const unsigned char *header) noexcept;
    Status sealed_piece(const unsigned char *&data, size_t &size, FrameSink &sink) noexcept;
    Status dispatch(const unsigned char *payload, size_t size, FrameSink &sink) noexcept;

    std::unique_ptr<Opener> opener_;
    std::unique_ptr<unsigned char[]> sealed_; // a whole sealed frame
    size_t sealed_room_ = 0;
    unsigned char header_[frame_header_bytes];
    unsigned char control_[frame_control_max];
    size_t have_ = 0; // bytes of the header; within a control or sealed frame: of its payload
    size_t left_ = 0; // bytes of the payload still to come
    size_t last_data_ = 0;
    bool in_frame_ = false;
    bool finished_ = false, over_ = false;
    FrameType type_ = FrameType::heartbeat;
    const char *why_ = "";
};

} // namespace muster
