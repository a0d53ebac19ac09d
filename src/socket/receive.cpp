// SPDX-License-Identifier: MIT
// Receiving: the role of the receiver, the inbox, and the streams of the peers.
#include "base/trace.hpp"
#include "socket/socket.hpp"

namespace muster {

namespace {
constexpr size_t min_placed_bytes = 4096;
constexpr int64_t interrupt_again_ns = 1'000'000;
constexpr int64_t arm_after_ns = 50'000'000;
} // namespace

Status Socket::receive(Deadline &deadline, Ref<Message> &out) {
    bool first = true;
    uint32_t cancels = 0;
    for (;;) {
        const uint32_t seen = in_signal_.seen();
        {
            std::unique_lock hold(lock_);
            if (std::exchange(first, false)) cancels = cancels_;
            if (!inbox_.empty()) {
                out = std::move(inbox_.front());
                inbox_.pop_front();
                stats_.messages_in++;
                stats_.bytes_in += out->payload_bytes();
                const bool more = !inbox_.empty() && waiting_receivers_ != 0;
                hold.unlock();
                if (more) context_->notify(in_signal_);
                if (Trace::is_on()) Trace::mark("socket", "receive", {}, flow_of(out->header));
                return MUSTER_OK;
            }
            if (ended_) return MUSTER_E_CLOSED;
            if (cancels != cancels_) return MUSTER_E_CANCELED;
            if (!has_receiver_) {
                has_receiver_ = true;
                receiver_cancels_ = cancels;
                hold.unlock();
                Status status;
                try {
                    status = read_as_receiver(deadline);
                } catch (const std::bad_alloc &) {
                    status = MUSTER_E_NOMEM;
                }
                hold.lock();
                has_receiver_ = false;
                const bool others = waiting_receivers_ != 0;
                const bool has_more = !inbox_.empty();
                // A peer that became readable after the last look: the loop saw that there is a receiver, so the queue
                // has no event of it.
                const bool has_missed = !others && !readable_.empty();
                hold.unlock();
                if (others) context_->notify(in_signal_); // one of them takes the role
                if (status == MUSTER_OK || has_more || (has_missed && status == MUSTER_AGAIN)) continue;
                if (has_missed) readiness(MUSTER_SOCKET_RECEIVABLE);
                return status;
            }
            if (deadline.look_once() && !is_looking_) return MUSTER_AGAIN; // the receiver gets what arrives
            waiting_receivers_++;
        }
        Deadline endless(-1); // the loop thread gives the role up at once
        const Status status = context_->sleep(in_signal_, seen, deadline.look_once() ? endless : deadline);
        {
            const std::lock_guard hold(lock_);
            waiting_receivers_--;
        }
        if (status != MUSTER_OK) return status;
    }
}

// OK: look at the inbox and the state of the socket again.
Status Socket::read_as_receiver(Deadline &deadline) {
    const uint32_t seen = in_signal_.seen();
    Ref<SocketPeer> only;
    {
        const std::lock_guard hold(lock_);
        if (receiver_cancels_ != cancels_ || ended_) return MUSTER_OK;
        if (peers_.size() == 1) {
            const Ref<SocketPeer> &peer = peers_.begin()->second;
            if (deadline.look_once())
                add_readable(*peer); // its watch may be disarmed by earlier reads
            else
                only = direct_ = peer; // from now on a change of the peers interrupts the read
        }
    }
    if (only) {
        const Status status = read_one_peer(*only, deadline);
        bool arm = false;
        {
            const std::lock_guard hold(lock_);
            direct_.reset();
            direct_reads_++;
            arm = !std::exchange(is_arming_, true);
        }
        if (arm) arm_soon_.post(*context_);
        return status == MUSTER_E_CANCELED ? MUSTER_OK : status; // the caller looks at the reason
    }
    const Status status = read_ready_peers();
    if (status != MUSTER_AGAIN || deadline.look_once()) return status;
    return context_->sleep(in_signal_, seen, deadline);
}

// Reads the peers that are readable until the inbox has messages. AGAIN: it has none.
Status Socket::read_ready_peers() {
    for (;;) {
        Ref<SocketPeer> peer;
        {
            const std::lock_guard hold(lock_);
            if (readable_.empty()) return MUSTER_AGAIN;
            peer = Ref<SocketPeer>::adopt(readable_.pop_front());
        }
        Deadline once(0);
        const Status status = read_one_peer(*peer, once);
        if (status == MUSTER_OK && !peer->in_ended) mark_readable(*peer); // there may be more; others come first
        if (status == MUSTER_E_NOMEM) return status;
        const std::lock_guard hold(lock_);
        if (!inbox_.empty()) return MUSTER_OK;
    }
}

// OK: something was read, or the peer has ended.
Status Socket::read_one_peer(SocketPeer &peer, Deadline &deadline) {
    const Status status = read_once(peer, deadline);
    if (status == MUSTER_OK || status == MUSTER_AGAIN || status == MUSTER_TIMEOUT || status == MUSTER_E_CANCELED ||
        status == MUSTER_E_WOULD_DEADLOCK)
        return status;
    if (status == MUSTER_E_PROTOCOL) {
        const std::lock_guard hold(lock_);
        stats_.malformed++;
    }
    end_input(peer);
    return status == MUSTER_E_NOMEM ? status : Status{MUSTER_OK};
}

Status Socket::read_once(SocketPeer &peer, Deadline &deadline) {
    size_t moved = 0;
    const auto take_one = [&](Ref<Message> message) { taken_.push_back(std::move(message)); };
    const MessageReader::Place place = peer.reader.place();
    try {
        if (place.bytes >= min_placed_bytes) {
            const Status status = peer.stream.read(place.to, 1, place.bytes, deadline, moved);
            if (moved == 0) return status;
            peer.reader.placed(moved, take_one);
            take_all(peer);
            if (*peer.reader.why() == '\0') return MUSTER_OK;
            return end_of_messages(peer);
        }
        const Status status = peer.stream.read(in_buffer_.data(), 1, in_buffer_.size(), deadline, moved);
        if (moved == 0) return status;
        const bool is_good = peer.reader.feed(in_buffer_.data(), moved, take_one);
        take_all(peer);
        if (is_good) return MUSTER_OK;
    } catch (const std::bad_alloc &) {
        taken_.clear();
        peer.stream.abort(0, "out of memory");
        return MUSTER_E_NOMEM;
    }
    return end_of_messages(peer);
}

// The messages of the peer cannot be read any further.
Status Socket::end_of_messages(SocketPeer &peer) noexcept {
    peer.stream.abort(0, peer.reader.why());
    end_output(peer, MUSTER_SOCKET_LOST, peer.reader.why());
    return peer.reader.is_malformed() ? MUSTER_E_PROTOCOL : MUSTER_E_PEER;
}

void Socket::take_all(SocketPeer &peer) {
    if (taken_.empty()) return;
    {
        const std::lock_guard hold(lock_);
        for (Ref<Message> &message : taken_) {
            if (settings.hello.kind == MUSTER_SOCKET_ROUTER && !peer.out_ended) learn(peer, message->header.source);
            inbox_.push_back(std::move(message));
        }
    }
    taken_.clear();
}

// Under the lock. False: it is in the list, or is not read any more.
bool Socket::add_readable(SocketPeer &peer) noexcept {
    if (peer.in_ended || ended_ || List<SocketPeer>::holds(peer)) return false;
    peer.retain();
    readable_.push_back(peer);
    return true;
}

// The stream has bytes, or has ended.
void Socket::mark_readable(SocketPeer &peer) noexcept {
    bool is_awaited = false;
    {
        const std::lock_guard hold(lock_);
        if (!add_readable(peer)) return;
        is_awaited = has_receiver_;
    }
    if (is_awaited)
        context_->notify(in_signal_);
    else
        readiness(MUSTER_SOCKET_RECEIVABLE);
}

// A read of the only peer leaves the watch of its stream disarmed, so that a message that a thread waits for does not
// wake the loop as well. These two, loop thread: when no thread has read for a while it is armed, and then the end of a
// peer is noticed although the host receives nothing.
void Socket::arm_later() noexcept {
    const std::lock_guard hold(lock_);
    armed_reads_ = direct_reads_;
    context_->loop().start_timer(arm_, now_ns() + arm_after_ns);
}

void Socket::arm_due() noexcept {
    std::vector<Ref<SocketPeer>> peers;
    {
        const std::lock_guard hold(lock_);
        const bool again = !ended_ && armed_reads_ != direct_reads_ && !has_receiver_;
        is_arming_ = again;
        armed_reads_ = direct_reads_;
        if (again) return context_->loop().start_timer(arm_, now_ns() + arm_after_ns);
        if (ended_ || has_receiver_) return; // a receiver arms it, or this is called again
        try {
            for (const auto &[id, peer] : peers_) peers.push_back(peer);
        } catch (const std::bad_alloc &) {
            return;
        }
    }
    for (const Ref<SocketPeer> &peer : peers) look_for_end(*peer);
}

// Loop thread. A peer that has finished is noticed also if the host receives nothing: its stream is readable then.
void Socket::look_for_end(SocketPeer &peer) noexcept {
    {
        const std::lock_guard hold(lock_);
        // The receiver notices it, or arm_due() calls this when no thread reads any more: until then the watch is not
        // armed again.
        if (has_receiver_ || is_arming_ || peer.in_ended) return;
        has_receiver_ = is_looking_ = true;
    }
    Status status = MUSTER_OK;
    try {
        Deadline once(0);
        const void *data = nullptr;
        size_t bytes = 0;
        status = peer.stream.peek(1, once, data, bytes);
        if (status == MUSTER_OK) peer.stream.consume(0);
    } catch (const std::bad_alloc &) { // it is noticed later
    }
    bool is_awaited = false;
    {
        const std::lock_guard hold(lock_);
        has_receiver_ = is_looking_ = false;
        is_awaited = waiting_receivers_ != 0;
    }
    if (is_awaited) context_->notify(in_signal_);
    if (status == MUSTER_OK) mark_readable(peer);
    if (status == MUSTER_E_END || status == MUSTER_E_PEER || status == MUSTER_E_ABORTED) end_input(peer);
}

// The receiver waits in the read of the only peer: it has to look at the socket again. A read that had not begun when
// it was cancelled is cancelled again.
void Socket::interrupt_receiver() noexcept {
    Ref<SocketPeer> direct;
    {
        const std::lock_guard hold(lock_);
        direct = direct_;
        if (!direct || (peers_.size() == 1 && receiver_cancels_ == cancels_ && !ended_)) return;
    }
    direct->stream.cancel(MUSTER_STREAM_READ);
    if (context_->on_loop()) context_->loop().start_timer(interrupt_again_, now_ns() + interrupt_again_ns);
}

void Socket::readiness(uint32_t events) noexcept {
    if (settings.queue) settings.queue->raise(*this, events);
}

} // namespace muster
