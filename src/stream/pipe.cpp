// SPDX-License-Identifier: MIT
// The life of a pipe, and its producer. The consumer is in pipe_consumer.cpp, sleeping and waking in pipe_park.cpp.
#include "stream/pipe_buffer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace muster {

namespace {
constexpr uint64_t first_ring_bytes = 4096;
constexpr std::align_val_t ring_alignment{128};
constexpr int max_owned = 64;
} // namespace

void Pipe::free_ring(unsigned char *data) noexcept {
    ::operator delete(data, ring_alignment);
}

Pipe::~Pipe() {
    take_back_owned(MUSTER_E_CLOSED);
    for (Buffer *b = read_; b != nullptr;) {
        Buffer *next = b->next.load(std::memory_order_relaxed);
        if (b->is_ring && !shared_) free_ring(b->data);
        delete b;
        b = next;
    }
}

void Pipe::init_private(uint64_t window) {
    own_control_ = std::make_unique<PipeControl>();
    control_ = own_control_.get();
    window_ = window;
    publish_step_ = std::min(window_ / 8, pipe_piece_bytes / 4);
    read_ = write_ = new Buffer; // an empty ring: the first push grows it
}

bool Pipe::init_shared(PipeControl *control, unsigned char *ring, uint64_t capacity) noexcept {
    read_ = write_ = new (std::nothrow) Buffer;
    if (read_ == nullptr) return false;
    control_ = control;
    shared_ = true;
    window_ = capacity;
    publish_step_ = std::min(window_ / 8, pipe_piece_bytes / 4);
    read_->data = ring;
    read_->capacity = capacity;
    return true;
}

// Room by the window; bytes in handed-over buffers are memory of the host and do not count.
uint64_t Pipe::free_of_window(uint64_t head, uint64_t tail) const noexcept {
    const uint64_t between = head - tail;
    const uint64_t owned = owned_bytes_.load(std::memory_order_relaxed);
    const uint64_t buffered = between > owned ? between - owned : 0;
    return buffered < window_ ? window_ - buffered : 0;
}

bool Pipe::load_tail() noexcept {
    const uint64_t tail = control_->tail.load(std::memory_order_acquire); // pairs with publish_tail(): the room is free
    // Another process may write any value there: accept only values that move forward, and not past what was published.
    if (tail - tail_seen_ > head_ - tail_seen_) return false;
    tail_seen_ = tail;
    return true;
}

uint64_t Pipe::ring_room() const noexcept {
    if (!write_->is_ring) return 0;
    const uint64_t from = std::max(tail_seen_, write_->base);
    return write_->capacity - (head_ - from);
}

// Appends a larger ring (or, after a handed-over buffer, any ring) to the chain. False: at full size, or no memory. The
// content of the chain stays within the window, so it is short: a few rings, and one after each handed-over buffer.
bool Pipe::grow(uint64_t want) noexcept {
    if (shared_) return false;
    uint64_t capacity = first_ring_bytes;
    if (write_->is_ring && write_->capacity != 0) {
        if (write_->capacity >= window_) return false;
        capacity = write_->capacity * 4;
    }
    capacity = std::min(window_, std::max(capacity, std::bit_ceil(std::min(want, window_))));
    Buffer *b = new (std::nothrow) Buffer;
    // Aligned, so that a message of the size of a cache line is in one line.
    auto *data = static_cast<unsigned char *>(::operator new(capacity, ring_alignment, std::nothrow));
    if (b == nullptr || data == nullptr) {
        delete b;
        free_ring(data);
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    b->base = head_;
    write_left_ = 0;
    write_->end = head_;
    write_->next.store(b, std::memory_order_release);
    write_ = b;
    return true;
}

// The room that push_quickly() may use until another operation changes the end of the chain.
void Pipe::know_write() noexcept {
    write_left_ = write_->is_ring ? std::min(room(), write_->contiguous(head_)) : 0;
    if (write_left_ != 0) write_at_ = write_->at(head_);
}

Status Pipe::push(const void *data, size_t size, size_t &moved) noexcept {
    moved = 0;
    write_left_ = 0;
    const auto *from = static_cast<const unsigned char *>(data);
    while (moved < size) {
        const uint64_t left = size - moved;
        uint64_t fits = room();
        if (fits < std::min(left, pipe_piece_bytes)) {
            if (!load_tail()) return MUSTER_E_PROTOCOL;
            const uint64_t free = free_of_window(head_, tail_seen_);
            if (free == 0) return MUSTER_OK;
            if (ring_room() < left) grow(std::min(left, free));
            fits = room();
            // The window had room, but the memory does not; or the reader of a handed-over buffer has consumed some of
            // it, which counts as less room until its tail is seen.
            if (fits == 0) return ring_room() == 0 ? MUSTER_E_NOMEM : MUSTER_OK;
        }
        const uint64_t k = std::min({left, fits, pipe_piece_bytes});
        const uint64_t first = std::min(k, write_->contiguous(head_));
        memcpy(write_->at(head_), from + moved, first);
        if (k > first) memcpy(write_->data, from + moved + first, k - first);
        moved += k;
        publish_head(k);
    }
    know_write();
    return MUSTER_OK;
}

Status Pipe::reserve(size_t min, unsigned char *&data, size_t &size) noexcept {
    if (!load_tail()) return MUSTER_E_PROTOCOL;
    const uint64_t free = free_of_window(head_, tail_seen_);
    if (free < min) return MUSTER_AGAIN;
    if (ring_room() < min) grow(min * 4);
    const uint64_t fits = room();
    if (fits < min) return ring_room() < min ? MUSTER_E_NOMEM : MUSTER_AGAIN; // as in push()
    size = std::min(fits, write_->contiguous(head_)); // may be less at the edge of the ring: see Stream::reserve()
    data = write_->at(head_);
    return MUSTER_OK;
}

void Pipe::commit(size_t size) noexcept {
    write_left_ = 0;
    if (size != 0) publish_head(size);
}

Status Pipe::push_owned(Owned &owned) noexcept {
    if (owned_waiting_.load(std::memory_order_relaxed) >= max_owned) return MUSTER_AGAIN;
    auto *b = new (std::nothrow) Buffer;
    if (b == nullptr) return MUSTER_E_NOMEM;
    b->is_ring = false;
    b->is_owned = true;
    b->base = head_;
    b->capacity = owned.size;
    b->data = const_cast<unsigned char *>(owned.data); // read only: the producer never writes into such a buffer
    b->owned = std::move(owned);
    owned_waiting_.fetch_add(1, std::memory_order_relaxed);
    {
        const std::lock_guard guard(owned_lock_);
        (owned_last_ != nullptr ? owned_last_->owned_next : owned_first_) = b;
        owned_last_ = b;
    }
    write_left_ = 0;
    write_->end = head_;
    const uint64_t bytes = b->capacity; // the buffer itself may be gone once it is linked and read
    owned_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    write_->next.store(b, std::memory_order_release); // pairs with front(): publishes the buffer
    write_ = b;
    publish_head(bytes);
    if (reader_gone()) take_back_owned(MUSTER_E_PEER); // it may have left before it could see this buffer
    return MUSTER_OK;
}

Status Pipe::push_lent(Lent &lent) noexcept {
    if (!load_tail()) return MUSTER_E_PROTOCOL;
    if (free_of_window(head_, tail_seen_) < lent.size) return MUSTER_AGAIN;
    auto *b = new (std::nothrow) Buffer;
    if (b == nullptr) return MUSTER_E_NOMEM;
    b->is_ring = false;
    b->base = head_;
    b->capacity = lent.size;
    b->data = const_cast<unsigned char *>(lent.data); // read only, as in push_owned()
    b->lent_memory = std::move(lent.memory);
    write_left_ = 0;
    write_->end = head_;
    const uint64_t bytes = b->capacity;
    write_->next.store(b, std::memory_order_release); // pairs with front(): publishes the buffer
    write_ = b;
    publish_head(bytes);
    return MUSTER_OK;
}

bool Pipe::holds_owned_of(const Queue &queue) noexcept {
    const std::lock_guard guard(owned_lock_);
    for (const Buffer *b = owned_first_; b != nullptr; b = b->owned_next)
        if (b->owned.queue.get() == &queue) return true;
    return false;
}

void Pipe::finish() noexcept {
    control_->finished.store(1, std::memory_order_seq_cst); // after the last head; pairs with park_reader()
    wake_reader_if(UINT64_MAX);
}

Pipe::TakenBack Pipe::take_back_owned(Status status, const Queue *queue, const uint64_t *tag) noexcept {
    TakenBack back;
    taking_back_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard guard(owned_lock_);
    taking_back_.fetch_sub(1, std::memory_order_relaxed);
    Buffer **link = &owned_first_;
    owned_last_ = nullptr;
    while (Buffer *b = *link) {
        if ((queue != nullptr && b->owned.queue.get() != queue) || (tag != nullptr && b->owned.tag != *tag)) {
            owned_last_ = b;
            link = &b->owned_next;
            continue;
        }
        *link = b->owned_next;
        b->revoked = true;
        back.any = true;
        back.begun |= b->begun();
        owned_waiting_.fetch_sub(1, std::memory_order_relaxed);
        b->owned.release(b->owned_taken, status);
    }
    return back;
}

} // namespace muster
