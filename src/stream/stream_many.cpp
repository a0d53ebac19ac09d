// SPDX-License-Identifier: MIT
// One block of bytes to many streams: copied, or handed over.
#include "stream/stream.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace muster {

namespace {
// Read from memory once and then, from the cache of the processor, once for each stream.
constexpr size_t gathered_piece_bytes = 256 * 1024;

struct Share { // of one stream
    size_t bytes = 0;
    Status status = MUSTER_OK;
};

// Writes the next piece to one stream, or the rest of the piece to one that is late.
void give(Stream &stream, Share &share, const unsigned char *data, size_t until, Deadline &deadline) noexcept {
    if (share.status < 0 || share.bytes >= until) return;
    size_t moved = 0;
    share.status =
        stream.forked() ? MUSTER_E_FORKED : stream.write(data + share.bytes, until - share.bytes, deadline, moved);
    share.bytes += moved;
}

Status verdict(const std::vector<Share> &shares) noexcept {
    Status slow = MUSTER_OK;
    for (const Share &share : shares) {
        if (share.status < 0) return share.status;
        if (slow == MUSTER_OK) slow = share.status;
    }
    return slow;
}
} // namespace

// In each round every stream is offered the piece without waiting, so that the fast ones have it before the call waits
// for a slow one.
Status write_many(muster_stream *const *streams, uint32_t count, const unsigned char *data, size_t size,
                  Deadline &deadline, Status *out_statuses, size_t *out_bytes) {
    std::vector<Share> shares(count);
    for (size_t at = 0; at < size;) {
        at = std::min(size, at + gathered_piece_bytes);
        Deadline look(0);
        for (uint32_t i = 0; i < count; i++) give(*unwrap(streams[i]), shares[i], data, at, look);
        if (deadline.look_once()) continue;
        for (uint32_t i = 0; i < count; i++) give(*unwrap(streams[i]), shares[i], data, at, deadline);
        if (deadline.passed()) break;
    }
    for (uint32_t i = 0; i < count; i++) {
        Share &share = shares[i];
        if (share.status >= 0)
            share.status = share.bytes == size ? MUSTER_OK : deadline.look_once() ? MUSTER_AGAIN : MUSTER_TIMEOUT;
        if (out_statuses != nullptr) out_statuses[i] = share.status;
        if (out_bytes != nullptr) out_bytes[i] = share.bytes;
    }
    return verdict(shares);
}

// Streams of one multicast group share one block; other streams are independent.
Status write_owned_many(muster_stream *const *streams, uint32_t count, const void *data, size_t size, Queue &queue,
                        const uint64_t *tags, Status *out_statuses) {
    std::vector<Ref<SharedPiece>> shared(count);
    std::map<MulticastGroup *, std::vector<uint32_t>> groups;
    if (size >= MulticastGroup::min_bytes)
        for (uint32_t i = 0; i < count; i++)
            if (MulticastGroup *const group = unwrap(streams[i])->multicast_group()) groups[group].push_back(i);
    for (const auto &[group, members] : groups)
        for (size_t first = 0; first < members.size(); first += MulticastGroup::max_members) {
            const size_t end = std::min<size_t>(members.size(), first + MulticastGroup::max_members);
            if (end - first < 2) break;
            const Ref<SharedPiece> piece = group->share(static_cast<uint32_t>(end - first), data, size);
            for (size_t i = first; i < end; i++) shared[members[i]] = piece;
        }
    Status verdict = MUSTER_OK;
    for (uint32_t i = 0; i < count; i++) {
        Status status;
        try {
            status = unwrap(streams[i])->write_owned(data, size, queue, tags != nullptr ? tags[i] : i, shared[i]);
        } catch (const std::bad_alloc &) { // nothing was accepted; the other streams continue
            status = MUSTER_E_NOMEM;
        }
        if (status != MUSTER_OK && shared[i]) shared[i]->piece_over();
        if (out_statuses != nullptr) out_statuses[i] = status;
        if (verdict == MUSTER_OK) verdict = status;
    }
    return verdict;
}

} // namespace muster
