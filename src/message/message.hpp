// SPDX-License-Identifier: MIT
#pragma once
// A message: header and frames. Small frames are stored in the message itself, others in memory that copies share.
#include "base/object.hpp"
#include "base/result.hpp"
#include "base/small_vector.hpp"

#include <muster/message.h>

#include <string>
#include <string_view>

namespace muster {

class Queue;

// Memory of frames, shared by the messages that have them. It ends with its last reference, on any thread.
class FrameMemory : public Object {
  public:
    // Uninitialised memory with a zero byte after it; the caller fills it before another thread has it.
    static Ref<FrameMemory> make(size_t bytes, unsigned char *&out_data);
    // Memory of the host, which is returned by an entry of the queue; AGAIN: it has no slot.
    static Result<Ref<FrameMemory>> lend(size_t bytes, Queue &queue, uint64_t tag);
    static Ref<FrameMemory> take(void *data, muster_free_fn release);
    // The pool of a socket, if this is memory of it that other processes read in place; else NULL.
    virtual const void *loaned_by() const noexcept { return nullptr; }

  protected:
    ~FrameMemory() override = default;
};

struct Frame {
    const unsigned char *data = nullptr;
    size_t bytes = 0;
    Ref<FrameMemory> memory; // empty: the message's own
    std::string_view text() const noexcept { return {reinterpret_cast<const char *>(data), bytes}; }
};

// One thread at a time.
class Message final : public Object {
  public:
    static constexpr size_t max_frames = 65535;
    static constexpr uint64_t max_bytes = uint64_t{1} << 62;

    // Not `= default`: then make_ref() would write zeros to all of it first.
    Message() noexcept {} // NOLINT(modernize-use-equals-default,cppcoreguidelines-pro-type-member-init)
    static void *operator new(size_t bytes);
    static void operator delete(void *memory) noexcept;
    // As that of Object, which it hides. Only memory of others can meet a cancellation point when it ends.
    void release() noexcept {
        if (!release_last()) return;
        if (has_memory_) return end();
        delete this;
    }

    muster_message_header header{};
    bool has_pointers = false; // in a format frame: it cannot leave the process
    bool has_loans = false;    // a frame is in memory that other processes can read in place

    const SmallVector<Frame, 2> &frames() const noexcept { return frames_; }
    uint64_t payload_bytes() const noexcept { return payload_bytes_; }
    Ref<Message> copy() const;

    bool has_room(uint64_t bytes) const noexcept {
        return frames_.size() < max_frames && bytes <= max_bytes - payload_bytes_;
    }
    // has_room() was true. Bytes that the caller fills before it adds another frame.
    unsigned char *add(size_t bytes);
    void add(std::string_view bytes) {
        unsigned char *to = add(bytes.size());
        if (!bytes.empty()) memcpy(to, bytes.data(), bytes.size());
    }
    void add(const void *data, size_t bytes, Ref<FrameMemory> memory);
    // Afterwards the next add() of memory cannot fail.
    void reserve_frame() {
        if (frames_.size() == frames_.capacity()) frames_.reserve(2 * frames_.capacity());
    }

    // The cursor: NULL past the last frame, where it stays.
    const Frame *first() noexcept { return at(0); }
    const Frame *last() noexcept { return frames_.empty() ? nullptr : at(frames_.size() - 1); }
    const Frame *next() noexcept { return at(next_); }

    std::string metadata; // of muster_message_to_buffers()

  private:
    ~Message() override = default;
    void end() noexcept {
        const Uncancelled guard;
        delete this;
    }
    const Frame *at(size_t index) noexcept {
        if (index >= frames_.size()) return nullptr;
        next_ = index + 1;
        return &frames_[index];
    }
    SmallVector<Frame, 2> frames_;
    uint64_t payload_bytes_ = 0;
    size_t next_ = 0;
    bool has_memory_ = false; // of a frame
    size_t used_ = 0;         // of room_
    unsigned char room_[160];
};

// In traces: of a message that has the context of one; otherwise 0.
uint64_t flow_of(const muster_message_header &header) noexcept;

inline Message *unwrap(muster_message *handle) noexcept {
    return reinterpret_cast<Message *>(handle);
}
inline const Message *unwrap(const muster_message *handle) noexcept {
    return reinterpret_cast<const Message *>(handle);
}
inline muster_message *wrap(Message *object) noexcept {
    return reinterpret_cast<muster_message *>(object);
}

} // namespace muster
