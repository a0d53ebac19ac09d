// SPDX-License-Identifier: MIT
#include "stream/pipe.hpp"

#include "base/uncancelled.hpp"
#include "stream/copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <sched.h>

namespace muster {

namespace {
constexpr uint64_t first_ring_bytes = 4096;
constexpr std::align_val_t ring_alignment{128};
void free_ring(unsigned char *data) noexcept {
    ::operator delete(data, ring_alignment);
}
constexpr int max_owned = 64;
// Large writes are published in pieces so that copying in and copying out overlap.
constexpr uint64_t piece_bytes = 64 * 1024;
// A handed-over buffer is used for at most so many bytes at a time: the bound on muster_stream_cancel().
constexpr uint64_t owned_piece_bytes = 256 * 1024;
} // namespace

// A link of the chain. A ring stays in place while the producer continues in a larger one; `end` and `next` are written
// once, when the producer has put its last byte into this buffer.
struct Pipe::Buffer {
    uint64_t base = 0;     // position of the first byte
    uint64_t capacity = 0; // of a ring (power of two), or the size of a buffer handed over or lent
    unsigned char *data = nullptr;
    bool is_ring = true;
    bool is_owned = false;
    uint64_t end = 0;                    // position of the next buffer's first byte; valid once next is set
    std::atomic<Buffer *> next{nullptr}; // release: publishes *next and end; pairs with front()
    Ref<Object> lent_memory;             // the consumer's, once it is linked
    // handed-over buffers, under owned_lock_
    Owned owned;
    uint64_t owned_taken = 0;
    bool shown = false; // peek() has copied from it
    bool revoked = false;
    bool begun() const noexcept { return owned_taken != 0 || shown; }
    Buffer *owned_next = nullptr;

    unsigned char *at(uint64_t position) const noexcept {
        return data + (is_ring ? (position - base) & (capacity - 1) : position - base);
    }
    // Bytes from `position` up to where the memory wraps or the buffer ends.
    uint64_t contiguous(uint64_t position) const noexcept {
        return is_ring ? capacity - ((position - base) & (capacity - 1)) : base + capacity - position;
    }
};

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
    publish_step_ = std::min(window_ / 8, piece_bytes / 4);
    read_ = write_ = new Buffer; // an empty ring: the first push grows it
}

bool Pipe::init_shared(PipeControl *control, unsigned char *ring, uint64_t capacity) noexcept {
    read_ = write_ = new (std::nothrow) Buffer;
    if (read_ == nullptr) return false;
    control_ = control;
    shared_ = true;
    window_ = capacity;
    publish_step_ = std::min(window_ / 8, piece_bytes / 4);
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

// ---- parking
// ---------------------------------------------------------------------------------------------------------

bool Pipe::wake(Park &park, int fd, Waker *&waker, WakeFn fn) noexcept {
    // seq_cst: of many wakers one clears the flag of the sleeper, and has to send the wake-up.
    switch (park.state.exchange(Park::AWAKE, std::memory_order_seq_cst)) {
    case Park::FUTEX:
        futex_wake(park.state, 1, shared_);
        return true;
    case Park::FD:
        break;
    default:
        return false;
    }
    if (fd >= 0) {
        const uint64_t one = 1;
        // Fails when the counter is full, and then the event is set already.
        [[maybe_unused]] const ssize_t written = uncancelled::write(fd, &one, sizeof one);
        return true;
    }
    const std::lock_guard guard(waker_lock_);
    if (waker != nullptr) (waker->*fn)();
    return true;
}

// Another process may have cleared the flag and died (or lied) before it sent the wake-up: of it the flag is no proof.
void Pipe::unpark(Park &park, int own_fd, Waker *&waker, WakeFn fn) noexcept {
    if (!shared_) {
        wake(park, own_fd, waker, fn);
        return;
    }
    park.state.store(Park::AWAKE, std::memory_order_seq_cst); // before the wake-up; pairs with the check after a park
    futex_wake(park.state, INT_MAX, true);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(own_fd, &one, sizeof one);
}

// Called after the index moved with seq_cst: pairs with the store of `state` in park_reader().
void Pipe::wake_reader_if(uint64_t have) noexcept {
    Park &park = control_->reader;
    if (park.state.load(std::memory_order_seq_cst) == Park::AWAKE) return;
    // relaxed: `need` was stored before the state that was just read.
    if (have < park.need.load(std::memory_order_relaxed)) return;
    if (wake(park, reader_fd_, reader_waker_, &Waker::wake_reader))
        wakeups_of_reader.store(wakeups_of_reader.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void Pipe::wake_writer_if(uint64_t have) noexcept {
    Park &park = control_->writer;
    if (park.state.load(std::memory_order_seq_cst) == Park::AWAKE) return;
    if (have < park.need.load(std::memory_order_relaxed)) return;
    if (wake(park, writer_fd_, writer_waker_, &Waker::wake_writer))
        wakeups_of_writer.store(wakeups_of_writer.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

bool Pipe::park_reader(uint32_t state, size_t need) noexcept {
    Park &park = control_->reader;
    publish_tail();
    park.need.store(static_cast<uint32_t>(std::min<size_t>(need, UINT32_MAX)), std::memory_order_relaxed);
    park.state.store(state, std::memory_order_seq_cst); // pairs with wake_reader_if(): at least one side sees the other
    const uint64_t head = control_->head.load(std::memory_order_seq_cst);
    if (head - tail_ >= need || finished()) {
        park.state.store(Park::AWAKE, std::memory_order_relaxed); // as in Park::sleep()
        return false;
    }
    // If both sides slept, each waiting for more than the other can provide, they would wait forever: let the writer
    // check.
    wake_writer_if(UINT64_MAX);
    return true;
}

bool Pipe::park_writer(uint32_t state, size_t need) noexcept {
    Park &park = control_->writer;
    park.need.store(static_cast<uint32_t>(std::min<size_t>(need, UINT32_MAX)), std::memory_order_relaxed);
    park.state.store(state, std::memory_order_seq_cst); // pairs with wake_writer_if()
    const uint64_t tail = control_->tail.load(std::memory_order_seq_cst);
    if (free_of_window(head_, tail) >= need || reader_gone()) {
        park.state.store(Park::AWAKE, std::memory_order_relaxed); // as in Park::sleep()
        return false;
    }
    wake_reader_if(UINT64_MAX);
    return true;
}

void Pipe::park_flusher(uint32_t state) noexcept {
    Park &park = control_->writer;
    park.need.store(UINT32_MAX, std::memory_order_relaxed);
    park.state.store(state, std::memory_order_seq_cst); // pairs with publish_tail() and sent_all()
    wake_reader_if(UINT64_MAX);
}

void Pipe::set_reader_waker(Waker *waker) noexcept {
    const std::lock_guard guard(waker_lock_);
    reader_waker_ = waker;
}

void Pipe::set_writer_waker(Waker *waker) noexcept {
    const std::lock_guard guard(waker_lock_);
    writer_waker_ = waker;
}

// ---- producer
// --------------------------------------------------------------------------------------------------------

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
        if (fits < std::min(left, piece_bytes)) {
            if (!load_tail()) return MUSTER_E_PROTOCOL;
            const uint64_t free = free_of_window(head_, tail_seen_);
            if (free == 0) return MUSTER_OK;
            if (ring_room() < left) grow(std::min(left, free));
            fits = room();
            // The window had room, but the memory does not; or the reader of a handed-over buffer has consumed some of
            // it, which counts as less room until its tail is seen.
            if (fits == 0) return ring_room() == 0 ? MUSTER_E_NOMEM : MUSTER_OK;
        }
        const uint64_t k = std::min({left, fits, piece_bytes});
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

// ---- consumer
// --------------------------------------------------------------------------------------------------------

bool Pipe::load_head() noexcept {
    const uint64_t head =
        control_->head.load(std::memory_order_acquire);  // pairs with publish_head(): the bytes are visible
    if (shared_ && head - tail_ > window_) return false; // hostile or broken peer
    head_seen_ = head;
    return true;
}

size_t Pipe::readable() noexcept {
    if (!load_head()) return 0;
    return head_seen_ - tail_;
}

// The buffer that holds tail_; frees the buffers before it. Call after load_head(): a byte seen there was put after
// `next`.
Pipe::Buffer *Pipe::front() noexcept {
    for (;;) {
        Buffer *next = read_->next.load(std::memory_order_acquire); // pairs with grow(), push_owned()
        if (next == nullptr || tail_ != read_->end) return read_;
        if (read_->is_ring) free_ring(read_->data);
        delete std::exchange(read_, next);
    }
}

void Pipe::publish_tail() noexcept {
    if (tail_published_ == tail_) return;
    tail_published_ = tail_;
    // seq_cst (so also release): the room is free; ordered before the check for a sleeper, pairs with park_writer().
    control_->tail.store(tail_, std::memory_order_seq_cst);
    if (control_->writer.state.load(std::memory_order_seq_cst) == Park::AWAKE) return;
    // relaxed: the values that the writer published before it parked are seen with its state.
    const uint64_t head = control_->head.load(std::memory_order_relaxed);
    wake_writer_if(head == tail_ ? UINT64_MAX : free_of_window(head, tail_)); // drained: for every need
}

// The bytes that pull_quickly() may use: they are in the front buffer, whatever the producer does.
void Pipe::know_read() noexcept {
    read_left_ = 0;
    if (read_->is_owned || head_seen_ == tail_) return;
    Buffer *b = front();
    if (b->is_owned) return;
    read_left_ = std::min(head_seen_ - tail_, b->contiguous(tail_));
    if (!b->is_ring)
        read_left_--; // the last lent byte is consumed by pull(), which releases the loan
    else if (b->next.load(std::memory_order_acquire) != nullptr)
        read_left_ = std::min(read_left_, b->end - tail_);
    read_at_ = b->at(tail_);
}

// A reader that consumes one piece after another yields here to a thread that takes buffers back.
void Pipe::lock_owned() noexcept {
    while (taking_back_.load(std::memory_order_relaxed) != 0) sched_yield();
    owned_lock_.lock();
}

// Bytes of a handed-over buffer were consumed; the last one completes it. Under owned_lock_.
void Pipe::owned_progress(Buffer *b, uint64_t bytes) noexcept {
    owned_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    b->owned_taken += bytes;
    if (b->revoked || b->owned_taken != b->capacity) return;
    owned_first_ = b->owned_next; // buffers are consumed in order
    if (owned_first_ == nullptr) owned_last_ = nullptr;
    owned_waiting_.fetch_sub(1, std::memory_order_relaxed);
    b->owned.release(b->capacity, MUSTER_OK);
}

// Lent bytes were consumed; the last one ends the loan, before the producer may assume that there is room again.
void Pipe::lent_progress(Buffer *b, uint64_t bytes) noexcept {
    if (tail_ + bytes == b->base + b->capacity) b->lent_memory.reset();
}

void Pipe::note_look(uint64_t found) noexcept {
    constexpr uint64_t crumbs = 512, little = 4096, plenty = 16384;
    if (std::exchange(gathered_, false))
        little_looks_ = found < crumbs ? 0 : little_looks_ - (found > plenty); // crumbs: the producer is not hurried
    else if (found >= little)
        little_looks_ -= little_looks_ > 0;
    else
        little_looks_ += little_looks_ < max_little_looks;
}

Status Pipe::pull(void *data, size_t size, size_t &moved, bool past_cache) noexcept {
    moved = 0;
    read_left_ = 0;
    auto *to = static_cast<unsigned char *>(data);
    while (moved < size) {
        if (head_seen_ == tail_) {
            if (moved != 0) break; // bytes that arrived meanwhile belong to the next call
            if (!load_head()) return MUSTER_E_PROTOCOL;
            if (head_seen_ == tail_) return MUSTER_OK;
            note_look(head_seen_ - tail_);
        }
        Buffer *b = front();
        uint64_t k = std::min<uint64_t>(size - moved, head_seen_ - tail_);
        if (b->is_ring) {
            if (b->next.load(std::memory_order_acquire) != nullptr) k = std::min(k, b->end - tail_);
            k = std::min(k, piece_bytes);
            const uint64_t first = std::min(k, b->contiguous(tail_));
            copy_out(to + moved, b->at(tail_), first, past_cache);
            if (k > first) copy_out(to + moved + first, b->data, k - first, past_cache);
        } else if (!b->is_owned) {
            k = std::min(k, b->contiguous(tail_));
            copy_out(to + moved, b->at(tail_), k, past_cache);
            lent_progress(b, k);
        } else {
            lock_owned();
            const std::lock_guard guard(owned_lock_, std::adopt_lock);
            if (b->revoked) {
                if (b->begun()) return MUSTER_E_ABORTED;
                owned_bytes_.fetch_sub(b->capacity, std::memory_order_relaxed);
                advance(b->capacity); // not begun: skip it
                continue;
            }
            k = std::min({k, b->contiguous(tail_), owned_piece_bytes});
            copy_out(to + moved, b->at(tail_), k, past_cache);
            owned_progress(b, k);
        }
        moved += k;
        advance(k);
    }
    know_read();
    return MUSTER_OK;
}

Status Pipe::gather(iovec *spans, int max, size_t limit, int &count) noexcept {
    count = 0;
    read_left_ = 0;
    if (!load_head()) return MUSTER_E_PROTOCOL;
    uint64_t at = tail_;
    Buffer *b = head_seen_ == tail_ ? nullptr : front();
    while (b != nullptr && at != head_seen_ && count < max && limit != 0) {
        Buffer *next = b->next.load(std::memory_order_acquire);
        if (next != nullptr && at == b->end) {
            b = next;
            continue;
        }
        if (b->is_owned && !gathering_) lock_owned(), gathering_ = true;
        if (b->is_owned && b->revoked) {
            if (count != 0) break; // the bytes before it go first
            owned_lock_.unlock(), gathering_ = false;
            if (b->begun()) return MUSTER_E_ABORTED;
            owned_bytes_.fetch_sub(b->capacity, std::memory_order_relaxed);
            advance(b->capacity);
            at = tail_;
            b = head_seen_ == tail_ ? nullptr : front();
            continue;
        }
        if (!b->is_ring && count != 0 && b->owned.shared) break; // it begins on its own
        uint64_t k = std::min({head_seen_ - at, b->contiguous(at), static_cast<uint64_t>(limit)});
        if (b->is_ring && next != nullptr) k = std::min(k, b->end - at);
        if (b->is_owned) k = std::min(k, owned_piece_bytes);
        spans[count++] = {b->at(at), static_cast<size_t>(k)};
        at += k;
        limit -= k;
        if (b->is_owned && at != b->base + b->capacity) break; // one piece of a handed-over buffer at a time
    }
    if (count == 0 && gathering_) owned_lock_.unlock(), gathering_ = false;
    return MUSTER_OK;
}

void Pipe::consume(size_t size) noexcept {
    read_left_ = 0;
    const bool locked = std::exchange(gathering_, false);
    uint64_t left = size;
    while (left != 0) {
        Buffer *b = front();
        Buffer *next = b->next.load(std::memory_order_acquire);
        uint64_t k = left;
        if (b->is_ring) {
            if (next != nullptr) k = std::min(k, b->end - tail_);
            left -= k;
        } else if (!b->is_owned) {
            k = std::min(k, b->contiguous(tail_));
            lent_progress(b, k);
            left -= k;
        } else {
            if (!locked) lock_owned();
            if (b->revoked && !b->begun()) { // peek() did not show it
                k = b->capacity;
                owned_bytes_.fetch_sub(k, std::memory_order_relaxed);
            } else {
                k = std::min(k, b->base + b->capacity - tail_);
                owned_progress(b, k);
                left -= k;
            }
            if (!locked) owned_lock_.unlock();
        }
        advance(k);
    }
    if (locked) owned_lock_.unlock();
}

Pipe::Buffer *Pipe::front_owned() noexcept {
    read_left_ = 0;
    if (!load_head() || head_seen_ == tail_) return nullptr;
    Buffer *b = front();
    return b->is_ring ? nullptr : b;
}

Ref<SharedPiece> Pipe::shared_piece() noexcept {
    Buffer *b = front_owned();
    if (b == nullptr) return {};
    lock_owned();
    const std::lock_guard guard(owned_lock_, std::adopt_lock);
    return b->owned.shared;
}

void Pipe::part_shared_piece() noexcept {
    Buffer *b = front_owned();
    if (b == nullptr) return;
    lock_owned();
    const std::lock_guard guard(owned_lock_, std::adopt_lock);
    b->owned.part();
}

Status Pipe::peek(size_t min, const unsigned char *&data, size_t &size) noexcept {
    read_left_ = 0;
    hidden_ = 0;
    size = 0;
    if (!load_head()) return MUSTER_E_PROTOCOL;
    const uint64_t there = head_seen_ - tail_;
    if (there < min) {
        size = there;
        return MUSTER_AGAIN;
    }
    Buffer *b = front();
    if (!b->is_owned) {
        uint64_t k = std::min(there, b->contiguous(tail_));
        if (b->is_ring && b->next.load(std::memory_order_acquire) != nullptr) k = std::min(k, b->end - tail_);
        if (k >= min) {
            data = b->at(tail_);
            size = k;
            return MUSTER_OK;
        }
    }
    // Across an edge, or out of a handed-over buffer (which its owner may take back at any time): return a copy.
    const uint64_t want = std::min(there, std::max<uint64_t>(min, 4096));
    if (want > assembled_bytes_) {
        unsigned char *grown = new (std::nothrow) unsigned char[want];
        if (grown == nullptr) return MUSTER_E_NOMEM;
        assembled_.reset(grown);
        assembled_bytes_ = want;
    }
    uint64_t at = tail_;
    while (at != head_seen_ && size < want) {
        Buffer *next = b->next.load(std::memory_order_acquire);
        if (next != nullptr && at == b->end) {
            b = next;
            continue;
        }
        uint64_t k = std::min({want - size, head_seen_ - at, b->contiguous(at)});
        if (!b->is_owned) {
            if (b->is_ring && next != nullptr) k = std::min(k, b->end - at);
            memcpy(assembled_.get() + size, b->at(at), k);
        } else {
            lock_owned();
            const std::lock_guard guard(owned_lock_, std::adopt_lock);
            if (b->revoked) {
                if (b->begun()) return MUSTER_E_ABORTED;
                hidden_ += b->capacity; // as if it did not exist
                at += b->capacity;
                continue;
            }
            k = std::min(k, owned_piece_bytes);
            memcpy(assembled_.get() + size, b->at(at), k);
            b->shown = true;
        }
        at += k;
        size += k;
    }
    if (size < min) return MUSTER_AGAIN;
    data = assembled_.get();
    return MUSTER_OK;
}

void Pipe::drop_reader() noexcept {
    control_->reader_gone.store(1, std::memory_order_seq_cst); // pairs with park_writer() and push_owned()
    wake_writer_if(UINT64_MAX);
    take_back_owned(MUSTER_E_PEER);
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
