// SPDX-License-Identifier: MIT
// Sending: the choice of a peer, its queue, and what remains of a message that did not fit into the stream.
#include "base/hash.hpp"
#include "base/trace.hpp"
#include "socket/socket.hpp"

#include <algorithm>

namespace muster {

namespace {
// While a trace is on, a message has its trace and a span of its own, unless the host has set others.
uint64_t traced_flow(muster_message_header &header) noexcept {
    if ((header.trace_id[0] | header.trace_id[1]) == 0) {
        header.trace_id[0] = Trace::id(), header.trace_id[1] = mix64(Trace::id());
        header.span_id = Trace::fresh_number();
        header.trace_flags = 1; // as in W3C Trace Context: it is recorded
    }
    return flow_of(header);
}
} // namespace

Result<void> Socket::loan_frame(Message &message, size_t bytes, unsigned char *&out_data) {
    if (!loans_) return Error::make(MUSTER_E_UNSUPPORTED, "the socket was made without MUSTER_SOCKET_LOANS");
    const uint64_t most = std::min(settings.max_message_bytes, loans_->max_bytes());
    if (bytes == 0 || bytes > most)
        return Error::make(bytes == 0 ? MUSTER_E_ARG : MUSTER_E_LIMIT,
                           "a loaned frame of %zu bytes: 1 to %llu are possible", bytes,
                           static_cast<unsigned long long>(most));
    if (!message.has_room(bytes)) return Error::make(MUSTER_E_LIMIT, "the message has too many frames or bytes");
    message.reserve_frame();
    Ref<FrameMemory> memory;
    const Status status = loans_->acquire(bytes, memory, out_data);
    if (status != MUSTER_OK) return Result<void>::positive(status);
    message.add(out_data, bytes, std::move(memory));
    return {};
}

Result<void> Socket::send(Message &message, Deadline &deadline, uint64_t next_hop) {
    if (message.has_pointers) return Error::make(MUSTER_E_UNSUPPORTED, "a format frame has a pointer");
    if (message.payload_bytes() > settings.max_message_bytes)
        return Error::make(MUSTER_E_LIMIT, "the message has %llu bytes, at most %llu",
                           static_cast<unsigned long long>(message.payload_bytes()),
                           static_cast<unsigned long long>(settings.max_message_bytes));
    if (message.header.source == 0) message.header.source = settings.hello.address;
    const bool is_router = settings.hello.kind == MUSTER_SOCKET_ROUTER;
    if (next_hop == 0) next_hop = message.header.destination;
    if (is_router && next_hop == 0)
        return Error::make(MUSTER_E_ARG, "a router sends to the destination of a message, which is 0");
    const int64_t from_ns = Trace::is_on() ? now_ns() : 0;
    const uint64_t flow = from_ns != 0 ? traced_flow(message.header) : 0;
    std::optional<uint32_t> cancels;
    for (;;) {
        const uint32_t seen = room_signal_.seen();
        Error why;
        const Status status = route(message, next_hop, cancels, why);
        if (status == MUSTER_OK) {
            if (from_ns != 0)
                Trace::write({Trace::Kind::span, "socket", "send", {}, flow, from_ns, now_ns() - from_ns});
            return {};
        }
        if (status == no_slot) return Result<void>::positive(MUSTER_AGAIN); // nothing here notifies when it has one
        if (status < 0) return why;
        if (deadline.look_once()) return Result<void>::positive(MUSTER_AGAIN);
        if (const Status slept = context_->sleep(room_signal_, seen, deadline); slept != MUSTER_OK)
            return slept > 0 ? Result<void>::positive(slept) : Error::from_status(slept);
    }
}

// OK: the message is in the queue of a peer, in its stream, or among those that wait for a peer. AGAIN: there is no
// room. `cancels`: the number of cancels when the call began; empty at first.
Status Socket::route(Message &message, uint64_t next_hop, std::optional<uint32_t> &cancels, Error &why) {
    Ref<SocketPeer> peer;
    const bool is_router = settings.hello.kind == MUSTER_SOCKET_ROUTER;
    size_t attempts = 0;
    bool is_armed = false;
    for (;;) {
        {
            const std::lock_guard hold(lock_);
            if (closing_ || ended_) {
                why = Error::make(MUSTER_E_CLOSED, "the socket is closed");
                return why.status;
            }
            if (!cancels) cancels = cancels_;
            if (*cancels != cancels_) {
                why = Error::from_status(MUSTER_E_CANCELED);
                return why.status;
            }
            if (is_router) {
                const auto found = routes_.find(next_hop);
                if (found == routes_.end() || found->second.empty()) return keep_unrouted(message, next_hop, why);
                peer = found->second.back();
            } else {
                if (live_.empty()) return keep_unrouted(message, next_hop, why);
                peer = live_[turn_at_++ % live_.size()];
            }
            attempts++;
        }
        const Status status = push(*peer, message);
        if (status == MUSTER_OK || status == no_slot) return status;
        if (status == MUSTER_AGAIN) {
            const std::lock_guard hold(lock_);
            if (!is_router && attempts < live_.size()) continue;
            if (is_armed) {
                stats_.full++;
                return MUSTER_AGAIN;
            }
            // From now on SENDABLE is raised when a queue has room again. A queue that had room again just before that
            // is found by a second attempt.
            is_armed = wants_room_ = true;
            attempts = 0;
            continue;
        }
        Error reason;
        peer->stream.reason(nullptr, &reason);
        end_output(*peer, MUSTER_SOCKET_LOST, reason.message);
        if (!is_router) continue;
        why = Error::make(MUSTER_E_PEER, "the peer with the address 0x%llx is lost: %.160s",
                          static_cast<unsigned long long>(next_hop), reason.message);
        return why.status;
    }
}

// Under the lock.
Status Socket::keep_unrouted(Message &message, uint64_t next_hop, Error &why) {
    const bool is_router = settings.hello.kind == MUSTER_SOCKET_ROUTER;
    if (is_router && lost_.count(next_hop) != 0) {
        why = Error::make(MUSTER_E_PEER, "the peer with the address 0x%llx is lost",
                          static_cast<unsigned long long>(next_hop));
        return why.status;
    }
    const bool full = unrouted_.size() >= settings.max_unrouted_messages ||
                      (!unrouted_.empty() && unrouted_bytes_ + message.payload_bytes() > settings.max_queued_bytes);
    if (full) {
        stats_.full++;
        wants_room_ = true;
        if (!is_router) return MUSTER_AGAIN;
        why = Error::make(MUSTER_E_NOT_FOUND, "no peer has the address 0x%llx, and %zu messages wait for peers already",
                          static_cast<unsigned long long>(next_hop), unrouted_.size());
        return why.status;
    }
    unrouted_.emplace_back(); // before anything that has to be undone: this may throw
    if (!reserve_slot(unrouted_.back())) {
        unrouted_.pop_back();
        return no_slot;
    }
    unrouted_.back().message = Ref<Message>::adopt(&message);
    unrouted_.back().next_hop = next_hop;
    unrouted_bytes_ += message.payload_bytes();
    return MUSTER_OK;
}

// A slot of the host's queue, for the case that a message comes back. False: there is none.
bool Socket::reserve_slot(Outgoing &outgoing) noexcept {
    if (!settings.queue) return true;
    return outgoing.has_slot = settings.queue->reserve();
}

// OK: the message belongs to the peer. AGAIN, no_slot: no room. Otherwise the stream has ended.
Status Socket::push(SocketPeer &peer, Message &message) {
    const uint64_t bytes = message.payload_bytes();
    Outgoing outgoing; // ends without the lock: a frame may end in a function of the host
    const std::lock_guard hold(peer.out_lock);
    if (peer.out_ended) return MUSTER_E_PEER;
    const bool waits = !peer.out.empty();
    if (waits &&
        (peer.out.size() >= settings.max_queued_messages || peer.out_bytes + bytes > settings.max_queued_bytes))
        return MUSTER_AGAIN;
    if (!reserve_slot(outgoing)) return no_slot;
    outgoing.message = Ref<Message>::adopt(&message); // given back unless the result is OK
    Status status = MUSTER_AGAIN;
    try {
        if (!waits) status = peer.write_first(outgoing);
        if (status == MUSTER_AGAIN) peer.out.push_back(std::move(outgoing));
    } catch (const std::bad_alloc &) {
        if (outgoing.has_slot) settings.queue->unreserve();
        outgoing.message.detach();
        if (!waits) peer.stream.abort(0, "out of memory"); // a part of the message was written
        throw;
    }
    // NOLINTNEXTLINE(bugprone-use-after-move): it was moved only if the status is AGAIN
    if (status != MUSTER_AGAIN && outgoing.has_slot) settings.queue->unreserve();
    if (status < 0) {
        outgoing.message.detach();
        return status;
    }
    if (status == MUSTER_OK) {
        peer.messages_out++;
        peer.bytes_out += bytes;
    } else {
        peer.out_bytes += bytes;
    }
    return MUSTER_OK;
}

// Loop thread, or a thread that has just added a peer: the stream accepts bytes again.
void Socket::flush(SocketPeer &peer) noexcept {
    bool made = false;
    Status status = MUSTER_OK;
    std::list<Outgoing> sent; // end without the lock, see push()
    {
        const std::lock_guard hold(peer.out_lock);
        while (status == MUSTER_OK && !peer.out.empty() && !peer.out_ended) {
            size_t written = 0;
            try {
                status = peer.write_next(written);
            } catch (const std::bad_alloc &) {
                peer.stream.abort(0, "out of memory");
                status = MUSTER_E_NOMEM;
            }
            made = made || written != 0;
            for (; written != 0; written--) {
                const Outgoing &front = peer.out.front();
                if (front.has_slot) settings.queue->unreserve();
                peer.messages_out++;
                peer.bytes_out += front.bytes();
                peer.out_bytes -= front.bytes();
                sent.splice(sent.end(), peer.out, peer.out.begin());
            }
        }
    }
    if (made) made_room();
    if (status >= 0) return;
    Error why;
    peer.stream.reason(nullptr, &why);
    end_output(peer, MUSTER_SOCKET_LOST, why.message);
}

void Socket::made_room() noexcept {
    bool wanted = false;
    {
        const std::lock_guard hold(lock_);
        wanted = std::exchange(wants_room_, false);
    }
    context_->notify(room_signal_);
    if (wanted) readiness(MUSTER_SOCKET_SENDABLE);
}

} // namespace muster
