// SPDX-License-Identifier: MIT
#pragma once
// Messages on a stream: metadata, then the bytes of the frames. docs/wire.md has the format.
#include "base/codec.hpp"
#include "message/message.hpp"

#include <vector>

namespace muster {

// The metadata of a message: header and sizes of the frames.
struct MessageHead {
    static constexpr size_t fixed_bytes = 56;

    // Of the whole metadata of this message.
    static size_t bytes(const Message &message) noexcept;
    static void put(PlacedByteWriter &to, const Message &message) noexcept;

    // The length of metadata whose first `fixed_bytes` are these; 0: they are malformed, and `why` says how.
    static size_t whole(const unsigned char *fixed, const char *&why) noexcept;
    // Reads complete metadata. Empty: malformed, or the frames have more than `max_payload` bytes.
    static std::optional<MessageHead> get(std::string_view whole, uint64_t max_payload, const char *&why);

    muster_message_header header{};
    std::vector<uint64_t> sizes; // of the frames
};

// Cuts the bytes of a stream into messages. One thread at a time.
class MessageReader {
  public:
    explicit MessageReader(uint64_t max_payload) noexcept : max_payload_(max_payload) {}

    // Calls take(Ref<Message>) for each complete message. False: the bytes are malformed, and why() says how; the
    // reader is then at its end.
    template <class Take>
    bool feed(const unsigned char *data, size_t size, Take &&take) {
        while (size != 0 || is_complete()) {
            if (is_complete()) {
                take(finish());
                continue;
            }
            const size_t used = step(data, size);
            if (*why_ != '\0') return false;
            data += used, size -= used;
        }
        return true;
    }
    // The rest of a frame whose bytes can be read to their place, if that is long; then call placed().
    struct Place {
        unsigned char *to = nullptr;
        size_t bytes = 0;
    };
    Place place() const noexcept { return message_ ? Place{to_, left_} : Place{}; }
    template <class Take>
    void placed(size_t bytes, Take &&take) {
        to_ += bytes, left_ -= bytes;
        next_frame();
        if (is_complete()) take(finish());
    }
    const char *why() const noexcept { return why_; }

  private:
    bool is_complete() const noexcept { return message_ && left_ == 0 && frame_ == head_.sizes.size(); }
    size_t step(const unsigned char *data, size_t size);
    size_t read_head(const unsigned char *data, size_t size);
    void begin(std::string_view whole);
    void next_frame();
    Ref<Message> finish() noexcept { return std::move(message_); }

    const uint64_t max_payload_;
    std::string partial_; // the beginning of the metadata
    MessageHead head_;
    Ref<Message> message_; // its metadata is complete
    size_t frame_ = 0;     // frames that were begun
    unsigned char *to_ = nullptr;
    size_t left_ = 0; // of the latest one
    const char *why_ = "";
};

} // namespace muster
