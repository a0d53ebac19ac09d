// SPDX-License-Identifier: MIT
#include "am/peer.hpp"

namespace muster {

namespace {
constexpr size_t whole_bytes = 2048;             // frames up to this size are written by one call
constexpr size_t copied_bytes = 128 * 1024;      // to a socket: up to here a copy takes less time than a second call
constexpr size_t max_waiting_bytes = 256 * 1024; // copied ones; beyond that no request is added
constexpr size_t max_deferred_bytes = 1024 * 1024;
} // namespace

AmPeer::AmPeer(Stream &stream, uint32_t place, Limits own)
    : number(place), stream_(&stream), own_(own), direction_to_(Trace::fresh_number()) {}

void AmPeer::set_limits(const AmHello &of_peer) noexcept {
    const Limits both{std::min(own_.max_bytes, of_peer.max_bytes), std::min(own_.max_requests, of_peer.max_requests)};
    direction_from_.store(of_peer.direction, std::memory_order_relaxed);
    limits_.store(uint64_t{both.max_bytes} << 32 | both.max_requests, std::memory_order_release);
    has_limits_.store(true, std::memory_order_release); // pairs with has_limits()
}

// Writes blocks until one is not written whole, which then begins with what is left of it.
void AmPeer::write_blocks(Blocks &blocks, Deadline &deadline) noexcept {
    for (; blocks.next < blocks.count; blocks.next++) {
        std::string_view &one = blocks.all[blocks.next];
        if (one.empty()) continue;
        size_t moved = 0;
        if (!deadline.look_once() || !stream_->write_quickly(one.data(), one.size()))
            stream_->write(one.data(), one.size(), deadline, moved);
        else
            moved = one.size();
        one.remove_prefix(moved);
        if (!one.empty()) return;
    }
}

// Under the lock: what was not written waits in out_, before what waits there already.
void AmPeer::keep_rest(const Blocks &blocks) {
    const auto left = [&](int i) { return i < blocks.next ? std::string_view() : blocks.all[i]; };
    try {
        out_.put_back({left(0), left(1), left(2)});
    } catch (const std::bad_alloc &) { // a part was written: nothing else can follow
        stream_->abort(static_cast<uint32_t>(MUSTER_E_NOMEM), "out of memory");
        throw;
    }
}

// Under the lock. What the stream does not take now waits in out_. A stream that has ended takes nothing: the loop
// notices that, too, and ends the peer.
void AmPeer::write(const AmHead &head, AmPayload payload) {
    char start[AmHead::bytes + whole_bytes];
    head.put(start);
    Blocks blocks{{{start, AmHead::bytes}, payload.data_view(), payload.body_view()}, 3};
    size_t size = AmHead::bytes;
    const auto merge = [&](std::string_view &block) { // fewer calls
        if (size + block.size() > sizeof start) return;
        if (!block.empty()) memcpy(start + size, block.data(), block.size());
        size += block.size();
        block = {};
    };
    merge(blocks.all[1]);
    if (blocks.all[1].empty()) merge(blocks.all[2]);
    blocks.all[0] = {start, size};
    uint64_t published;
    const bool is_memory = stream_->published(published);
    if (is_memory && !is_written_) flush_held(); // there may be room again: it costs no system call to find out
    if (!out_.is_empty() || is_written_) {
        out_.add({blocks.all[0], blocks.all[1], blocks.all[2]});
        return;
    }
    const bool is_one = blocks.all[1].empty() && blocks.all[2].empty();
    if (!is_one && payload.total() <= copied_bytes && !is_memory) {
        out_.add({blocks.all[0], blocks.all[1], blocks.all[2]});
        flush_held();
        return;
    }
    Deadline once(0);
    write_blocks(blocks, once);
    if (blocks.next != blocks.count) keep_rest(blocks);
}

void AmPeer::hello() {
    char payload[AmHello::bytes];
    AmHello{own_.max_bytes, own_.max_requests, direction_to_}.put(payload);
    AmHead head;
    head.payload = AmHello::bytes;
    const std::lock_guard hold(lock_);
    write(head, {payload, sizeof payload});
}

// Under the lock. The slot is the request's once free_ has lost it. A call that has ended while it waited for room is
// not made: what the host has requested since must not be executed before it.
Status AmPeer::take_slot(AmCall &call, uint32_t handler, size_t bytes, AmHead &out_head) {
    if (ended_) return why_.status;
    if (call.is_over() && !call.has_queue()) return MUSTER_E_CANCELED;
    if (bytes > limits().max_bytes || outstanding_ >= limits().max_requests || out_.copied_bytes() > max_waiting_bytes)
        return MUSTER_AGAIN;
    if (free_.empty()) {
        slots_.emplace_back();
        free_.reserve(slots_.capacity());
        free_.push_back(static_cast<uint32_t>(slots_.size() - 1));
    }
    const uint32_t index = free_.back();
    Slot &slot = slots_[index];
    out_head.kind = AmKind::request;
    out_head.handler = static_cast<uint16_t>(handler);
    out_head.payload = static_cast<uint32_t>(bytes);
    out_head.id = uint64_t{slot.uses} << 32 | index;
    free_.pop_back();
    slot.call = Ref<AmCall>(&call);
    call.id = out_head.id;
    outstanding_++;
    sent_++;
    return MUSTER_OK;
}

Status AmPeer::request(AmCall &call, uint32_t handler, AmPayload payload) {
    const std::lock_guard hold(lock_);
    AmHead head;
    if (const Status status = take_slot(call, handler, payload.total(), head); status != MUSTER_OK) return status;
    try {
        write(head, payload);
    } catch (const std::bad_alloc &) {
        const auto index = static_cast<uint32_t>(head.id);
        slots_[index].call = {};
        free_.push_back(index);
        outstanding_--;
        sent_--;
        throw;
    }
    return MUSTER_OK;
}

Status AmPeer::begin_direct(AmCall &call, uint32_t handler, AmPayload payload, AmHead &out_head) {
    const std::lock_guard hold(lock_);
    if (!ended_ && (is_written_ || !out_.is_empty())) return MUSTER_AGAIN;
    const Status status = take_slot(call, handler, payload.total(), out_head);
    is_written_ = is_written_ || status == MUSTER_OK;
    return status;
}

void AmPeer::write_directly(const AmHead &head, AmPayload payload, Deadline &deadline) {
    char start[AmHead::bytes + AmPayload::max_direct_data];
    head.put(start);
    memcpy(start + AmHead::bytes, payload.data, payload.bytes);
    Blocks blocks{{{start, AmHead::bytes + payload.bytes}, payload.body_view()}, 2};
    write_blocks(blocks, deadline);
    const std::lock_guard hold(lock_);
    is_written_ = false;
    if (!ended_ && blocks.next != blocks.count) keep_rest(blocks);
    flush_held();
}

Ref<AmCall> AmPeer::find(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto index = static_cast<uint32_t>(id);
    if (index >= slots_.size() || !slots_[index].call || slots_[index].uses != id >> 32) return {};
    return slots_[index].call;
}

Ref<AmCall> AmPeer::replied(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto index = static_cast<uint32_t>(id);
    if (index >= slots_.size() || !slots_[index].call || slots_[index].uses != id >> 32) return {};
    Slot &slot = slots_[index];
    slot.uses++;
    free_.push_back(index);
    outstanding_--;
    return std::move(slot.call);
}

// The peer has at most max_requests requests without a reply, so these bound what may wait.
Status AmPeer::reply(uint64_t id, Status status, const void *data, size_t bytes) {
    const std::lock_guard hold(lock_);
    if (ended_) return MUSTER_E_PEER;
    AmHead head;
    head.kind = AmKind::reply;
    head.status = status;
    head.payload = static_cast<uint32_t>(bytes);
    head.id = id;
    const uint64_t most = uint64_t{own_.max_requests} * (AmHead::bytes + limits().max_bytes) + max_waiting_bytes;
    if (out_.copied_bytes() + AmHead::bytes + bytes > 2 * most) return MUSTER_E_PROTOCOL;
    write(head, {data, bytes});
    return MUSTER_OK;
}

// The peer has at most max_requests of them, too, and they have no copy.
Status AmPeer::reply_lent(uint64_t id, std::string_view lent) {
    const std::lock_guard hold(lock_);
    if (ended_) return MUSTER_E_PEER;
    AmHead head;
    head.kind = AmKind::reply;
    head.payload = static_cast<uint32_t>(lent.size());
    head.id = id;
    char start[AmHead::bytes];
    head.put(start);
    out_.add_lent({start, sizeof start}, lent);
    return MUSTER_OK;
}

void AmPeer::flush() noexcept {
    const std::lock_guard hold(lock_);
    if (!is_written_) flush_held();
}

// Under the lock; no thread writes without it.
void AmPeer::flush_held() noexcept {
    if (ended_) out_.clear();
    while (!out_.is_empty()) {
        const std::string_view next = out_.front();
        Deadline once(0);
        size_t moved = 0;
        stream_->write(next.data(), next.size(), once, moved);
        out_.written(moved);
        if (moved != next.size()) return;
    }
}

bool AmPeer::begin_writing(size_t least_bytes) noexcept {
    const std::lock_guard hold(lock_);
    if (ended_ || is_written_ || out_.bytes() < least_bytes) return false;
    is_written_ = true;
    return true;
}

void AmPeer::write_waiting(int64_t patience_ns) noexcept {
    for (;;) {
        std::string_view next;
        {
            const std::lock_guard hold(lock_);
            if (!ended_ && !out_.is_empty()) next = out_.front();
        }
        if (next.empty()) break;
        Deadline soon(patience_ns);
        size_t moved = 0;
        stream_->write(next.data(), next.size(), soon, moved);
        const std::lock_guard hold(lock_);
        out_.written(moved);
        if (moved == 0) break;
    }
    end_writing();
}

void AmPeer::end_writing() noexcept {
    const std::lock_guard hold(lock_);
    is_written_ = false;
    flush_held();
}

void AmPeer::keep_failure(Status status) noexcept {
    const std::lock_guard hold(lock_);
    if (failure_ == MUSTER_OK) failure_ = status;
}

Status AmPeer::take_failure() noexcept {
    const std::lock_guard hold(lock_);
    return std::exchange(failure_, MUSTER_OK);
}

uint32_t AmPeer::outstanding() noexcept {
    const std::lock_guard hold(lock_);
    return outstanding_;
}

bool AmPeer::has_ended(Error *why) noexcept {
    if (!has_ended()) return false;
    const std::lock_guard hold(lock_); // why_ is written after the mark
    if (ended_ && why != nullptr) *why = why_;
    return ended_;
}

bool AmPeer::end(const Error &why, std::string_view text_for_peer) noexcept {
    std::vector<Slot> left;
    {
        const std::lock_guard hold(lock_);
        if (ended_.exchange(true, std::memory_order_acq_rel)) return false;
        why_ = why;
        left.swap(slots_);
        free_.clear();
        outstanding_ = 0;
        if (!is_written_) out_.clear(); // otherwise the thread that writes does
    }
    stream_->abort(static_cast<uint64_t>(static_cast<uint32_t>(why.status)), text_for_peer);
    for (const Slot &slot : left) {
        if (!slot.call) continue;
        if (slot.call->is_unattended) keep_failure(why.status);
        slot.call->end(why);
    }
    return true;
}

void AmPeer::get(muster_am_peer &out, Error &why) noexcept {
    const std::lock_guard hold(lock_);
    out = {};
    out.status = ended_ ? why_.status : MUSTER_OK;
    if (ended_) why = why_;
    out.requests = outstanding_;
    out.sent = sent_;
    out.executed = executed_.get();
    out.unsent_bytes = out_.bytes();
    out.max_bytes = limits().max_bytes;
    out.max_requests = limits().max_requests;
}

bool AmPeer::begin_reading(bool is_loop) noexcept {
    const std::lock_guard hold(lock_);
    if (ended_) return false;
    if (is_read_) {
        if (is_loop) loop_was_refused_.store(true, std::memory_order_release);
        return false;
    }
    if (!is_loop && placed.to != nullptr) return false; // memory of the host: the loop thread reads until it is full
    is_read_ = true;
    return true;
}

bool AmPeer::leave_reading() noexcept {
    const std::lock_guard hold(lock_);
    is_read_ = false;
    return loop_was_refused_.exchange(false, std::memory_order_relaxed);
}

bool AmPeer::defer(Frame frame) {
    const std::lock_guard hold(lock_);
    const size_t size = frame.size();
    deferred_.push_back(std::move(frame));
    deferred_bytes_ += size;
    // relaxed: those that look have had the role of the reader, or the lock, since
    deferred_count_.fetch_add(1, std::memory_order_relaxed);
    return deferred_.size() <= own_.max_requests;
}

bool AmPeer::defers_much() noexcept {
    if (!has_deferred()) return false;
    const std::lock_guard hold(lock_);
    return deferred_bytes_ > max_deferred_bytes;
}

std::vector<AmPeer::Frame> AmPeer::take_deferred() noexcept {
    if (!has_deferred()) return {};
    const std::lock_guard hold(lock_);
    deferred_bytes_ = 0;
    return std::exchange(deferred_, {});
}

bool AmPeer::serve_begins() noexcept {
    const std::lock_guard hold(lock_);
    if (served_ >= own_.max_requests) return false;
    served_++;
    return true;
}

void AmPeer::serve_ends() noexcept {
    const std::lock_guard hold(lock_);
    served_--;
}

} // namespace muster
