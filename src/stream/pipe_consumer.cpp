// SPDX-License-Identifier: MIT
// The consumer of a pipe.
#include "stream/copy.hpp"
#include "stream/pipe_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <sched.h>

namespace muster {

namespace {
// A handed-over buffer is used for at most so many bytes at a time: the bound on muster_stream_cancel().
constexpr uint64_t owned_piece_bytes = 256 * 1024;
} // namespace

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
            k = std::min(k, pipe_piece_bytes);
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

} // namespace muster
