// SPDX-License-Identifier: MIT
// At the owner of memory, on the loop thread, or on a thread that waits for a reply: what other locales request. What a
// request says is not trusted: it may change the memory of this locale, as any locale may, and nothing else.
#include "memory/memory.hpp"
#include "memory/remote.hpp"
#include "memory/remote_wire.hpp"

#include <cstring>

namespace muster {

namespace {

muster_status run_for_peer(void *user, uint32_t, const void *data, size_t bytes, void *reply, size_t capacity,
                           size_t *out_bytes) {
    Memory &memory = *static_cast<Memory *>(user);
    auto what = RemoteOperation::get(static_cast<const unsigned char *>(data), bytes);
    if (!what) return MUSTER_E_PROTOCOL;
    if (memory.shape.locale_of(what->target) != memory.locale()) return MUSTER_E_ARG;
    if (what->signal != 0 && memory.shape.locale_of(what->signal) != memory.locale()) return MUSTER_E_ARG;
    muster_memory_result found{};
    if (what->kind == MUSTER_MEMORY_GET) {
        if (what->bytes > capacity)
            return memory.has(what->target, what->bytes) ? MUSTER_E_LIMIT : memory.shape.why_refused(what->target);
        what->local = reply;
        const Status status = memory.run_here(*what, found);
        if (status == MUSTER_OK) *out_bytes = what->bytes;
        return status;
    }
    const Status status = memory.run_here(*what, found);
    if (status < 0) return status;
    PlacedByteWriter(static_cast<char *>(reply)).number(found.value).number(found.count);
    *out_bytes = RemoteOperation::reply_bytes;
    return status;
}

// Large payloads, which are copied once: a put is read to its place, and a get written from there. The rest of what
// run_for_peer() checks is checked before; what is not well-formed is left to it.

std::optional<muster_memory_operation> copy_of_peer(Memory &memory, const unsigned char *data, size_t bytes,
                                                    size_t placed, uint32_t kind, unsigned char *&out_place) noexcept {
    auto what = RemoteOperation::get(data, bytes, placed);
    if (!what || what->kind != kind || memory.shape.locale_of(what->target) != memory.locale()) return std::nullopt;
    if (what->signal != 0 && memory.shape.locale_of(what->signal) != memory.locale()) return std::nullopt;
    what->local = nullptr;
    unsigned char *const place = memory.address(what->target, what->bytes);
    what->bytes = 0;
    if (place == nullptr || memory.check(*what) != MUSTER_OK) return std::nullopt;
    out_place = place;
    return what;
}

unsigned char *place_for_peer(void *user, const unsigned char *data, size_t total) {
    unsigned char *place = nullptr;
    copy_of_peer(*static_cast<Memory *>(user), data, RemoteOperation::bytes, total - RemoteOperation::bytes,
                 MUSTER_MEMORY_PUT, place);
    return place;
}

muster_status run_placed_for_peer(void *user, uint32_t, const void *data, size_t bytes, void *reply, size_t,
                                  size_t *out_bytes) {
    Memory &memory = *static_cast<Memory *>(user);
    const auto *const head = static_cast<const unsigned char *>(data);
    unsigned char *place = nullptr;
    const auto what =
        copy_of_peer(memory, head, bytes, get_u64(head + RemoteOperation::size_at), MUSTER_MEMORY_PUT, place);
    if (!what) return MUSTER_E_ARG;
    muster_memory_result ignored{};
    const Status status = memory.run_here(*what, ignored); // the signal
    if (status < 0) return status;
    PlacedByteWriter(static_cast<char *>(reply)).number(uint64_t{0}).number(uint64_t{0});
    *out_bytes = RemoteOperation::reply_bytes;
    return status;
}

const unsigned char *lend_to_peer(void *user, const unsigned char *data, size_t bytes, size_t &out_bytes) {
    if (bytes != RemoteOperation::bytes) return nullptr;
    const uint64_t wanted = get_u64(data + RemoteOperation::size_at);
    if (wanted < direct_bytes || wanted > RemoteLocales::piece_bytes) return nullptr;
    unsigned char *place = nullptr;
    if (copy_of_peer(*static_cast<Memory *>(user), data, bytes, 0, MUSTER_MEMORY_GET, place)) out_bytes = wanted;
    return place;
}

muster_status allocate_for_peer(void *user, uint32_t, const void *data, size_t bytes, void *reply, size_t,
                                size_t *out_bytes) {
    Memory &memory = *static_cast<Memory *>(user);
    if (bytes != sizeof(uint64_t)) return MUSTER_E_PROTOCOL;
    const uint64_t wanted = get_u64(static_cast<const unsigned char *>(data));
    uint64_t offset = 0;
    if (wanted == 0) return MUSTER_E_ARG;
    const Status status = memory.heap(memory.locale()).allocate(wanted, offset);
    if (status != MUSTER_OK) return status;
    put_u64(static_cast<unsigned char *>(reply), offset);
    *out_bytes = sizeof offset;
    return MUSTER_OK;
}

// The first failure, after all were tried.
muster_status release_for_peer(void *user, uint32_t, const void *data, size_t bytes, void *, size_t, size_t *) {
    Memory &memory = *static_cast<Memory *>(user);
    if (bytes % sizeof(uint64_t) != 0) return MUSTER_E_PROTOCOL;
    Status first = MUSTER_OK;
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t offset = get_u64(static_cast<const unsigned char *>(data) + at);
        const Status status =
            offset < memory.shape.segment_bytes ? memory.heap(memory.locale()).release(offset) : Status{MUSTER_E_ARG};
        if (first == MUSTER_OK) first = status;
    }
    return first;
}

muster_status stats_for_peer(void *user, uint32_t, const void *, size_t bytes, void *reply, size_t, size_t *out_bytes) {
    Memory &memory = *static_cast<Memory *>(user);
    if (bytes != 0) return MUSTER_E_PROTOCOL;
    muster_memory_stats found{};
    memory.heap(memory.locale()).stats(found);
    uint64_t words[RemoteLocales::stats_words];
    std::memcpy(words, &found, sizeof words);
    for (size_t i = 0; i < RemoteLocales::stats_words; i++)
        put_u64(static_cast<unsigned char *>(reply) + 8 * i, words[i]);
    *out_bytes = sizeof words;
    return MUSTER_OK;
}

// Of what any thread may execute: it changes cells, and lists without locks.
size_t reply_bytes_for_peer(const unsigned char *data, size_t bytes) {
    const auto what = RemoteOperation::get(data, bytes);
    return what && what->kind == MUSTER_MEMORY_GET ? what->bytes : RemoteOperation::reply_bytes;
}
size_t reply_bytes_of_few(const unsigned char *, size_t) {
    return sizeof(uint64_t) * RemoteLocales::stats_words;
}

muster_status answer_round(void *user, uint32_t, const void *data, size_t bytes, void *reply, size_t,
                           size_t *out_bytes) {
    EpochRounds *const rounds = static_cast<Memory *>(user)->rounds();
    if (rounds == nullptr) return MUSTER_E_UNSUPPORTED;
    return rounds->answer(static_cast<const unsigned char *>(data), bytes, static_cast<unsigned char *>(reply),
                          *out_bytes);
}

bool relay_round(void *user, AmPeer &peer, uint64_t id, const unsigned char *data, size_t bytes) {
    EpochRounds *const rounds = static_cast<Memory *>(user)->rounds();
    return rounds != nullptr && rounds->relay(peer, id, data, bytes);
}

} // namespace

void RemoteLocales::set_handlers(ActiveMessages &am, Memory &memory) {
    const std::pair<MemoryHandler, muster_am_fn> handlers[] = {{MemoryHandler::run, run_for_peer},
                                                               {MemoryHandler::allocate, allocate_for_peer},
                                                               {MemoryHandler::release, release_for_peer},
                                                               {MemoryHandler::stats, stats_for_peer},
                                                               {MemoryHandler::epoch, answer_round}};
    for (const auto &[number, function] : handlers) {
        ActiveMessages::Handler handler{function, &memory, {}, 0};
        if (number == MemoryHandler::run) {
            handler.place = place_for_peer;
            handler.place_after = RemoteOperation::bytes;
            handler.placed = run_placed_for_peer;
            handler.lend = lend_to_peer;
        }
        if (number == MemoryHandler::epoch)
            handler.later = relay_round;
        else
            handler.reply_bytes = number == MemoryHandler::run ? reply_bytes_for_peer : reply_bytes_of_few;
        am.set_handler(number_of(number), std::move(handler));
    }
}

} // namespace muster
