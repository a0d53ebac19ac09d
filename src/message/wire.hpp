// SPDX-License-Identifier: MIT
#pragma once
// Messages on a stream: metadata, then the bytes of the frames. docs/wire.md has the format.
#include "base/codec.hpp"
#include "message/message.hpp"

#include <vector>

namespace muster {

// A frame that the receiver reads in place: in memory of the sender (socket/loan.hpp). A value.
struct LoanReference {
    uint16_t slot = 0, sheet = 0;
    uint32_t generation = 0;
};

// Where the receiver finds such frames.
class LoanSource {
  public:
    // OK: the memory, which the message then has. STALE: the sender has given it up. Otherwise the connection ends,
    // too.
    virtual Status resolve(const LoanReference &reference, size_t bytes, Ref<FrameMemory> &out,
                           const unsigned char *&data) = 0;

  protected:
    ~LoanSource() = default;
};

// Which frames of a message are sent as references, in their order: so few that they need no memory. A value.
class LoanReferences {
  public:
    static constexpr size_t max = 4;
    size_t size() const noexcept { return count_; }
    bool is_full() const noexcept { return count_ == max; }
    void clear() noexcept { count_ = 0; }
    void add(size_t frame, const LoanReference &reference) noexcept {
        items_[count_++] = {static_cast<uint16_t>(frame), reference};
    }
    const LoanReference *find(size_t frame) const noexcept {
        for (size_t i = 0; i < count_; i++)
            if (items_[i].frame == frame) return &items_[i].reference;
        return nullptr;
    }
    LoanReference &operator[](size_t i) noexcept { return items_[i].reference; }
    const LoanReference &operator[](size_t i) const noexcept { return items_[i].reference; }

  private:
    struct Item {
        uint16_t frame = 0;
        LoanReference reference;
    };
    uint32_t count_ = 0;
    Item items_[max];
};

// The metadata of a message: header and sizes of the frames.
struct MessageHead {
    static constexpr size_t fixed_bytes = 56;

    // Of the whole metadata of this message.
    static size_t bytes(const Message &message, const LoanReferences &loans = {}) noexcept;
    static void put(PlacedByteWriter &to, const Message &message, const LoanReferences &loans = {}) noexcept;

    // The length of metadata whose first `fixed_bytes` are these; 0: they are malformed, and `why` says how.
    static size_t whole(const unsigned char *fixed, const char *&why) noexcept;
    // Reads complete metadata, in place of what was read before. False: malformed, or the frames have more than
    // `max_payload` bytes.
    bool get(std::string_view whole, uint64_t max_payload, const char *&why);

    muster_message_header header{};
    std::vector<uint64_t> sizes; // of the frames
    LoanReferences loans;
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
    bool is_malformed() const noexcept { return is_malformed_; } // if there is a reason: the peer has broken the format
    // Messages may refer to this memory from now on; the caller keeps it.
    void set_loans(LoanSource *source) noexcept { loan_source_ = source; }

  private:
    bool is_complete() const noexcept { return message_ && left_ == 0 && frame_ == head_.sizes.size(); }
    size_t step(const unsigned char *data, size_t size);
    size_t read_head(const unsigned char *data, size_t size);
    void begin(std::string_view whole);
    void next_frame();
    bool add_loan();
    Ref<Message> finish() noexcept { return std::move(message_); }

    const uint64_t max_payload_;
    LoanSource *loan_source_ = nullptr;
    std::string partial_; // the beginning of the metadata
    MessageHead head_;
    Ref<Message> message_; // its metadata is complete
    size_t frame_ = 0;     // frames that were begun
    unsigned char *to_ = nullptr;
    size_t left_ = 0; // of the latest one
    const char *why_ = "";
    bool is_malformed_ = true;
};

} // namespace muster
