// SPDX-License-Identifier: MIT
#include "message/message.hpp"

#include "base/trace.hpp"

#include "queue/queue.hpp"

#include <new>
#include <optional>
#include <pthread.h>

namespace muster {

namespace {

class OwnMemory final : public FrameMemory {
  public:
    // The bytes follow the object, and a zero byte follows the bytes.
    static OwnMemory *make(size_t bytes) {
        auto *made = new (::operator new(sizeof(OwnMemory) + bytes + 1)) OwnMemory();
        made->data()[bytes] = 0;
        return made;
    }
    unsigned char *data() noexcept { return reinterpret_cast<unsigned char *>(this + 1); }

  private:
    void last_reference_gone() noexcept override {
        this->~OwnMemory();
        ::operator delete(this);
    }
};

class LentMemory final : public FrameMemory {
  public:
    LentMemory(Queue &queue, uint64_t tag, size_t bytes) noexcept : queue_(&queue), tag_(tag), bytes_(bytes) {}

  private:
    ~LentMemory() override {
        Entry entry;
        entry.completion.kind = MUSTER_DONE_RELEASED;
        entry.completion.tag = tag_;
        entry.completion.bytes = bytes_;
        queue_->complete(std::move(entry));
    }
    const Ref<Queue> queue_;
    const uint64_t tag_;
    const size_t bytes_;
};

class TakenMemory final : public FrameMemory {
  public:
    TakenMemory(void *data, muster_free_fn release) noexcept : data_(data), release_(release) {}

  private:
    ~TakenMemory() override { release_(data_); }
    void *const data_;
    const muster_free_fn release_;
};

// Memory of released messages, for the next ones of the thread: a receiver makes hundreds in a row, and its program
// releases them in a row, more than the C library keeps for a thread. Sanitizers see each message instead.
#ifdef MUSTER_SANITIZED
constexpr uint32_t max_spares = 0;
#else
constexpr uint32_t max_spares = 128;
#endif
struct Spare {
    Spare *next;
};
struct Spares {
    Spare *first;
    uint32_t count;
    bool are_freed; // at the end of the thread
};
constinit thread_local Spares spares{};

void free_spares(void *) noexcept {
    spares.count = max_spares; // for messages that end after this
    while (Spare *const one = spares.first) {
        spares.first = one->next;
        ::operator delete(one);
    }
}
// A key, not a C++ destructor: if there is no memory to register that, the C library ends the process.
bool will_be_freed() noexcept {
    static const std::optional<pthread_key_t> key = [] {
        pthread_key_t made;
        return pthread_key_create(&made, free_spares) == 0 ? std::optional(made) : std::nullopt;
    }();
    return key && pthread_setspecific(*key, &spares) == 0;
}

} // namespace

void *Message::operator new(size_t bytes) {
    Spare *const one = spares.first;
    if (one == nullptr) return ::operator new(bytes);
    spares.first = one->next;
    spares.count--;
    return one;
}

void Message::operator delete(void *memory) noexcept {
    if (spares.count >= max_spares) return ::operator delete(memory);
    if (!spares.are_freed && !(spares.are_freed = will_be_freed())) return ::operator delete(memory);
    spares.first = new (memory) Spare{spares.first};
    spares.count++;
}

Ref<FrameMemory> FrameMemory::make(size_t bytes, unsigned char *&out_data) {
    OwnMemory *const made = OwnMemory::make(bytes);
    out_data = made->data();
    return Ref<FrameMemory>::adopt(made);
}

Result<Ref<FrameMemory>> FrameMemory::lend(size_t bytes, Queue &queue, uint64_t tag) {
    if (queue.closed()) return Error::from_status(MUSTER_E_CLOSED);
    if (!queue.reserve()) return Error::from_status(queue.closed() ? MUSTER_E_CLOSED : MUSTER_AGAIN);
    try {
        return Ref<FrameMemory>(make_ref<LentMemory>(queue, tag, bytes));
    } catch (const std::bad_alloc &) {
        queue.unreserve();
        throw;
    }
}

Ref<FrameMemory> FrameMemory::take(void *data, muster_free_fn release) {
    return make_ref<TakenMemory>(data, release);
}

unsigned char *Message::add(size_t bytes) {
    if (bytes < sizeof room_ - used_) { // with the zero byte
        Frame &frame = frames_.emplace_back();
        unsigned char *const to = room_ + used_;
        to[bytes] = 0;
        frame.data = to;
        frame.bytes = bytes;
        used_ += bytes + 1;
        payload_bytes_ += bytes;
        return to;
    }
    unsigned char *to = nullptr;
    Ref<FrameMemory> memory = FrameMemory::make(bytes, to);
    add(to, bytes, std::move(memory));
    return to;
}

void Message::add(const void *data, size_t bytes, Ref<FrameMemory> memory) {
    Frame &frame = frames_.emplace_back();
    frame.data = static_cast<const unsigned char *>(data);
    frame.bytes = bytes;
    frame.memory = std::move(memory);
    has_memory_ = true;
    has_loans = has_loans || (frame.memory && frame.memory->loaned_by() != nullptr);
    payload_bytes_ += bytes;
}

Ref<Message> Message::copy() const {
    auto made = make_ref<Message>();
    made->header = header;
    made->has_pointers = has_pointers;
    made->frames_.reserve(frames_.size());
    for (const Frame &frame : frames_) {
        if (frame.memory)
            made->add(frame.data, frame.bytes, frame.memory);
        else
            made->add(frame.text());
    }
    return made;
}

uint64_t flow_of(const muster_message_header &header) noexcept {
    const uint64_t trace = header.trace_id[0] ^ header.trace_id[1];
    return (trace | header.span_id) == 0 ? 0 : Trace::flow_of(trace, header.span_id);
}

} // namespace muster
