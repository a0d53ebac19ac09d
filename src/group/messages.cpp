// SPDX-License-Identifier: MIT
// Messages between two members of a group, over a stream that the operations do not use: a size of 8 bytes, and the
// bytes.
#include "base/codec.hpp"
#include "group/group.hpp"

#include <chrono>

namespace muster {

namespace {
constexpr uint64_t max_message_of_group = uint64_t{1} << 62;

// Another thread that sends or receives has the turn. A failure of the group ends its call, and so this wait.
bool lock_until(std::unique_lock<std::timed_mutex> &hold, Deadline &deadline) {
    if (hold.try_lock()) return true;
    if (!deadline.endless()) return hold.try_lock_for(std::chrono::nanoseconds(deadline.left()));
    hold.lock();
    return true;
}
} // namespace

Result<Group::Peer *> Group::peer_for_messages(uint32_t rank) {
    if (rank >= size() || rank == this->rank())
        return Error::make(MUSTER_E_ARG, "rank is %u: not another member of a group of %u", rank, size());
    if (context_->on_loop() && !context_->external())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "a message of a group inside a callback of the engine");
    if (Error before = failure(); before.status != MUSTER_OK) return before;
    Peer &peer = peers_[rank];
    if (peer.messages == nullptr)
        return Error::make(MUSTER_E_UNSUPPORTED, "the group was opened without MUSTER_GROUP_MESSAGES");
    return &peer;
}

// A part of a message may have been moved, after which nothing else can follow.
Result<void> Group::message_failed(Peer &peer, uint32_t rank, Status status, const char *what) {
    {
        const std::lock_guard hold(lock_);
        if (closed_) return Error::make(MUSTER_E_CLOSED, "the group is closed");
    }
    if (status < 0) return stream_ended(*peer.messages, rank, status);
    Error why = Error::make(MUSTER_E_ABORTED, "rank %u: a message %s rank %u: timed out", this->rank(), what, rank);
    why.rank = this->rank();
    const Error first = fail(why);
    if (first.status != MUSTER_E_ABORTED || first.rank != this->rank()) return first;
    return Error::make(MUSTER_TIMEOUT, "%s", first.message);
}

Result<void> Group::send(uint32_t to, const void *data, uint64_t bytes, Deadline &deadline) {
    auto found = peer_for_messages(to);
    if (!found) return found.error();
    if (bytes > max_message_of_group)
        return Error::make(MUSTER_E_ARG, "data_bytes is %llu, at most 2^62", static_cast<unsigned long long>(bytes));
    Peer &peer = **found;
    std::unique_lock turn(peer.sends, std::defer_lock);
    if (!lock_until(turn, deadline)) return message_failed(peer, to, MUSTER_TIMEOUT, "to");
    unsigned char head[sizeof bytes];
    put_u64(head, bytes);
    size_t moved = 0;
    Status status = peer.messages->write(head, sizeof head, deadline, moved);
    if (status == MUSTER_OK && bytes != 0) status = peer.messages->write(data, bytes, deadline, moved);
    return status == MUSTER_OK ? Result<void>() : message_failed(peer, to, status, "to");
}

Result<void> Group::receive(uint32_t from, void *data, uint64_t capacity, Deadline &deadline, uint64_t &out_bytes) {
    auto found = peer_for_messages(from);
    if (!found) return found.error();
    Peer &peer = **found;
    std::unique_lock turn(peer.receives, std::defer_lock);
    if (!lock_until(turn, deadline)) return message_failed(peer, from, MUSTER_TIMEOUT, "from");
    size_t moved = 0;
    if (!peer.has_head) {
        unsigned char head[sizeof peer.bytes];
        const Status status = peer.messages->read(head, sizeof head, sizeof head, deadline, moved);
        if (status != MUSTER_OK) return message_failed(peer, from, status, "from");
        peer.bytes = get_u64(head);
        if (peer.bytes > max_message_of_group) {
            Error why = Error::make(MUSTER_E_PROTOCOL, "rank %u sent bytes that are no message of a group", from);
            why.rank = from;
            return fail(why);
        }
        peer.has_head = true;
    }
    out_bytes = peer.bytes;
    if (peer.bytes > capacity)
        return Error::make(MUSTER_E_LIMIT, "the message of rank %u has %llu bytes, room for %llu", from,
                           static_cast<unsigned long long>(peer.bytes), static_cast<unsigned long long>(capacity));
    if (peer.bytes != 0) {
        const Status status = peer.messages->read(data, peer.bytes, peer.bytes, deadline, moved);
        if (status != MUSTER_OK) return message_failed(peer, from, status, "from");
    }
    peer.has_head = false;
    return {};
}

} // namespace muster
