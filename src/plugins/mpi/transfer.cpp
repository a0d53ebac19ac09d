// SPDX-License-Identifier: MIT
// Sending and receiving. MPI keeps the order of messages between two ranks with one tag, so the order here is that of
// the matched probes; a large one that is not complete holds back those behind it, of that rank alone.
#include "endpoint.hpp"
#include "error.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mpi {

namespace {
constexpr size_t max_sends = 256; // requests per link; credits bound their bytes
constexpr int matches_per_poll = 16;
constexpr size_t min_lend_bytes = 16 * 1024; // less is copied anyhow
} // namespace

// ---- out ------------------------------------------------------------------------------------------------------------

muster_status Endpoint::room(uint64_t peer, Link *&link) {
    link = find(peer);
    if (link == nullptr || link->state != Link::State::open || failed_) return MUSTER_E_PEER;
    if (link->sending.size() < max_sends && node_.usable_here()) return MUSTER_OK;
    link->full = true; // or left to the thread that may call MPI
    wake();
    return MUSTER_AGAIN;
}

muster_status Endpoint::send(uint64_t peer, const muster_span *spans, uint32_t count) {
    Link *link = nullptr;
    if (const muster_status status = room(peer, link); status != MUSTER_OK) return status;
    return begin_send(*link, kind_data, spans, count) ? MUSTER_OK : MUSTER_E_PEER;
}

muster_status Endpoint::send_buffer(uint64_t peer, void *segment, uint64_t offset, uint64_t size) {
    Link *link = nullptr;
    if (const muster_status status = room(peer, link); status != MUSTER_OK) return status;
    const Head head{head_mark, kind_data, link->remote_link};
    const Sending sending{MPI_REQUEST_NULL, {static_cast<unsigned char *>(segment), 0}};
    memcpy(sending.buffer.data + offset - head_bytes, &head, head_bytes);
    return begin_send(*link, sending, offset - head_bytes, head_bytes + size) ? MUSTER_OK : MUSTER_E_PEER;
}

bool Endpoint::begin_send(Link &link, uint32_t kind, const muster_span *spans, uint32_t count) {
    size_t size = head_bytes;
    for (uint32_t i = 0; i < count; i++) size += spans[i].size_bytes;
    const Sending sending{MPI_REQUEST_NULL, buffers_.take(size)};
    const Head head{head_mark, kind, link.remote_link};
    unsigned char *to = sending.buffer.data;
    memcpy(to, &head, head_bytes);
    to += head_bytes;
    for (uint32_t i = 0; i < count; to += spans[i++].size_bytes) memcpy(to, spans[i].data, spans[i].size_bytes);
    if (begin_send(link, sending, 0, size)) return true;
    buffers_.give(sending.buffer);
    return false;
}

void Endpoint::give(const Buffer &buffer) {
    if (buffer.room == 0)
        host_->release_buffer(host_, buffer.data);
    else
        buffers_.give(buffer);
}

// False: MPI refuses, and all links will be lost soon; the buffer still belongs to the caller.
bool Endpoint::begin_send(Link &link, Sending sending, size_t offset, size_t size) {
    int done = 0;
    {
        const Node::Hold mpi(node_);
        int code = MPI_ERR_OTHER;
        if (mpi)
            code = MPI_Isend(sending.buffer.data + offset, static_cast<int>(size), MPI_BYTE, link.rank,
                             static_cast<int>(link.slot), node_.comm(), &sending.request);
        if (mpi && code != MPI_SUCCESS) node_.fail("mpi: MPI_Isend failed: " + mpi_text(code));
        if (code != MPI_SUCCESS) {
            wake();
            return false;
        }
        // Small messages are done at once. One that waits for others is not tested now.
        if (link.sending.empty() && MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) done = 0;
    }
    link.sent++;
    if (done) {
        give(sending.buffer);
    } else {
        link.sending.push_back(sending);
        sends_++;
    }
    if (link.peer_asleep) {
        link.peer_asleep = false;
        link.control.send(Control::wake, link.sent);
    }
    wake();
    return true;
}

bool Endpoint::finish_sends() {
    bool moved = false;
    for (auto &[id, link] : links_)
        if (!link->sending.empty()) moved |= finish_sends(*link);
    return moved;
}

bool Endpoint::finish_sends(Link &link) {
    bool moved = false;
    while (!link.sending.empty()) {
        int done = 0;
        const int code = MPI_Test(&link.sending.front().request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) {
            node_.fail("mpi: sending failed: " + mpi_text(code));
            break;
        }
        if (!done) break;
        give(link.sending.front().buffer);
        link.sending.pop_front();
        sends_--;
        moved = true;
    }
    return moved;
}

// ---- in -------------------------------------------------------------------------------------------------------------

// MPI may complete a receive without an error and without its bytes: MPICH 4.0 over UCX does when the sender has died
// before they were copied. The buffer then contains an earlier message. So the beginning and the end of the buffer are
// marked before the receive, and a mark that is still there afterwards means that bytes are missing.
void Endpoint::mark_missing(const Receiving &one) const {
    memset(one.buffer.data, 0, std::min(one.bytes, head_bytes)); // no message has such a head
    if (one.bytes >= head_bytes + sizeof missing_mark_)
        memcpy(one.buffer.data + one.bytes - sizeof missing_mark_, &missing_mark_, sizeof missing_mark_);
}

bool Endpoint::is_missing(const Receiving &one) const {
    Head head{head_mark, 0, 0};
    if (one.bytes >= head_bytes) memcpy(&head, one.buffer.data, head_bytes);
    uint64_t end = ~missing_mark_;
    if (one.bytes >= head_bytes + sizeof end) memcpy(&end, one.buffer.data + one.bytes - sizeof end, sizeof end);
    return head.mark == 0 || end == missing_mark_;
}

// False: MPI has failed.
bool Endpoint::test(Receiving &one) {
    int done = 0;
    if (const int code = MPI_Test(&one.request, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS) {
        node_.fail("mpi: receiving failed: " + mpi_text(code));
        return false;
    }
    one.missing = done != 0 && is_missing(one);
    one.done = done != 0 && !one.missing;
    return true;
}

bool Endpoint::take_messages() {
    bool moved = false;
    for (int round = 0; round < matches_per_poll; round++) {
        int there = 0, size = 0;
        MPI_Message message;
        MPI_Status status;
        int code = MPI_Improbe(MPI_ANY_SOURCE, slot_, node_.comm(), &there, &message, &status);
        if (code == MPI_SUCCESS && !there) break;
        if (code == MPI_SUCCESS) code = MPI_Get_count(&status, MPI_BYTE, &size);
        if (code == MPI_SUCCESS) {
            Receiving one{MPI_REQUEST_NULL, buffers_.take(static_cast<size_t>(size)), static_cast<size_t>(size), false,
                          false};
            mark_missing(one);
            code = MPI_Imrecv(one.buffer.data, size, MPI_BYTE, &message, &one.request);
            const bool is_well = code != MPI_SUCCESS || test(one);
            std::deque<Receiving> &queue = receiving_[status.MPI_SOURCE];
            if (queue.empty()) receiving_from_.push_back(status.MPI_SOURCE);
            queue.push_back(one);
            moved = true;
            if (!is_well) break;
        }
        if (code != MPI_SUCCESS) {
            node_.fail("mpi: receiving failed: " + mpi_text(code));
            break;
        }
    }
    return moved;
}

bool Endpoint::finish_receives() {
    bool moved = false;
    for (const int rank : receiving_from_)
        for (Receiving &one : receiving_[rank]) {
            if (one.done) continue;
            if (one.missing || !test(one)) break;
            moved |= one.done || one.missing;
            if (!one.done) break;
        }
    return moved;
}

// Delivers complete messages, in the order of each rank. Not with a Hold: the library may send in the callback.
void Endpoint::deliver() {
    std::vector<int> broken; // ranks of which a message is missing
    for (size_t i = 0; i < receiving_from_.size();) {
        std::deque<Receiving> &queue = receiving_[receiving_from_[i]];
        while (!queue.empty() && queue.front().done) {
            const Receiving one = queue.front();
            queue.pop_front();
            deliver_one(one.buffer, one.bytes);
        }
        if (!queue.empty()) {
            if (queue.front().missing) broken.push_back(receiving_from_[i]);
            i++;
            continue;
        }
        receiving_from_[i] = receiving_from_.back();
        receiving_from_.pop_back();
    }
    for (const int rank : broken) lose_rank(rank);
}

// The library has the buffer until a stream has read its content.
void Endpoint::deliver_one(const Buffer &buffer, size_t size) {
    Head head{};
    if (size >= head_bytes) memcpy(&head, buffer.data, head_bytes);
    Link *const link = head.mark == head_mark ? find(head.link) : nullptr;
    if (link == nullptr || (link->state != Link::State::open && link->state != Link::State::draining))
        return buffers_.give(buffer); // of a context that is gone, or of a peer that was given up
    const unsigned char *const bytes = buffer.data + head_bytes;
    size -= head_bytes;
    link->received++;
    link->received_at = last_;
    if (head.kind == kind_credit && size == sizeof(uint64_t)) {
        uint64_t credit;
        memcpy(&credit, bytes, sizeof credit);
        buffers_.give(buffer);
        host_->credit(endpoint_, link->id, credit);
        return;
    }
    link->known = true;
    if (size >= min_lend_bytes) {
        const auto release = [](void *memory, void *room) {
            Buffers::all().give({static_cast<unsigned char *>(memory), reinterpret_cast<uintptr_t>(room)});
        };
        const muster_loan loan{buffer.room, release, buffer.data, reinterpret_cast<void *>(buffer.room)};
        host_->message_lent(endpoint_, link->id, bytes, size, &loan);
    } else {
        host_->message(endpoint_, link->id, bytes, size);
        buffers_.give(buffer);
    }
    link->credit_due += size;
    if (link->credit_due < credit_bytes / 4 || link->state != Link::State::open) return;
    const uint64_t credit = std::exchange(link->credit_due, 0);
    const muster_span span{&credit, sizeof credit};
    begin_send(*link, kind_credit, &span, 1);
}

// Nothing that follows a missing message may be delivered.
void Endpoint::lose_rank(int rank) {
    std::vector<uint64_t> all;
    for (const auto &[id, link] : links_)
        if (link->rank == rank && (link->state == Link::State::open || link->state == Link::State::draining))
            all.push_back(id);
    for (const uint64_t id : all)
        if (Link *const link = find(id))
            lose(*link, "rank " + std::to_string(rank) + " is gone: MPI has lost a message of it");
}

// Requests in progress stay with the node: MPI may still use the memory. Those to or from a rank that is gone are never
// tested again.
void Endpoint::abandon(Link &link) {
    const bool gone = link.state == Link::State::lost && !link.said_goodbye;
    const Node::Hold mpi(node_);
    for (const Sending &one : link.sending) {
        sends_--;
        if (gone || !mpi)
            node_.keep_forever(one.buffer.data);
        else // there is no callback to return a segment of the library when it is done
            node_.adopt(one.request, one.buffer.room == 0 ? nullptr : one.buffer.data);
    }
    link.sending.clear();
    if (!gone || std::any_of(links_.begin(), links_.end(), [&](const auto &other) {
            return other.second->rank == link.rank && other.second->state == Link::State::open;
        }))
        return;
    const auto found = receiving_.find(link.rank);
    if (found == receiving_.end()) return;
    for (const Receiving &one : found->second)
        if (one.done)
            buffers_.give(one.buffer);
        else
            node_.keep_forever(one.buffer.data);
    receiving_.erase(found);
    receiving_from_.erase(std::remove(receiving_from_.begin(), receiving_from_.end(), link.rank),
                          receiving_from_.end());
}

} // namespace mpi
