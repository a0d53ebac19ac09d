// SPDX-License-Identifier: MIT
#include "memory/remote.hpp"

#include "memory/memory.hpp"
#include "memory/remote_wire.hpp"
#include "queue/begun_call.hpp"

#include <cstring>
#include <deque>

namespace muster {

namespace {

constexpr uint32_t max_requests_of_memory = 256;
constexpr size_t puts_under_way = 4, gets_under_way = 12; // pieces of one copy
constexpr size_t stats_words = sizeof(muster_memory_stats) / sizeof(uint64_t);

uint32_t number_of(MemoryHandler handler) noexcept {
    return static_cast<uint32_t>(handler);
}

// ---- at the owner, on the loop thread. What a request says is not trusted: it may change the memory of this locale,
// as any locale may, and nothing else.

muster_status run_for_peer(void *user, uint32_t, const void *data, size_t bytes, void *reply, size_t capacity,
                           size_t *out_bytes) {
    Memory &memory = *static_cast<Memory *>(user);
    auto what = RemoteOperation::get(static_cast<const unsigned char *>(data), bytes);
    if (!what) return MUSTER_E_PROTOCOL;
    if (memory.shape.locale_of(what->target) != memory.locale()) return MUSTER_E_ARG;
    if (what->signal != 0 && memory.shape.locale_of(what->signal) != memory.locale()) return MUSTER_E_ARG;
    muster_memory_result found{};
    if (what->kind == MUSTER_MEMORY_GET) {
        if (what->bytes > capacity) return MUSTER_E_LIMIT;
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
    if (wanted < direct_bytes || wanted > RemoteLocales::get_piece_bytes) return nullptr;
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
    uint64_t words[stats_words];
    std::memcpy(words, &found, sizeof words);
    for (size_t i = 0; i < stats_words; i++) put_u64(static_cast<unsigned char *>(reply) + 8 * i, words[i]);
    *out_bytes = sizeof words;
    return MUSTER_OK;
}

muster_status answer_round(void *user, uint32_t, const void *data, size_t bytes, void *reply, size_t,
                           size_t *out_bytes) {
    EpochRounds *const rounds = static_cast<Memory *>(user)->rounds();
    if (rounds == nullptr) return MUSTER_E_UNSUPPORTED;
    return rounds->answer(static_cast<const unsigned char *>(data), bytes, static_cast<unsigned char *>(reply),
                          *out_bytes);
}

} // namespace

Result<std::unique_ptr<RemoteLocales>> RemoteLocales::open(Memory &memory, Deadline &deadline) {
    Group &group = memory.group();
    auto streams = connect_members(group, deadline);
    if (!streams) return streams.error();
    struct Handles { // those that no endpoint has
        std::vector<Ref<Stream>> &all;
        ~Handles() {
            for (Ref<Stream> &one : all)
                if (one) one.detach()->host_release();
        }
    } handles{*streams};
    Error why;
    std::unique_ptr<RemoteLocales> made;
    ActiveMessages::Settings settings;
    settings.limits = {RemoteOperation::bytes + put_piece_bytes, max_requests_of_memory};
    if (auto am = ActiveMessages::make(group.context(), std::move(settings)); !am) {
        why = am.error();
    } else {
        made.reset(new RemoteLocales(memory, std::move(*am), group.size()));
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
            made->am_->set_handler(number_of(number), std::move(handler));
        }
        for (uint32_t r = 0; r < group.size() && why.status == MUSTER_OK; r++) {
            if (!(*streams)[r] || memory.nodes.place_of(r) != MemoryNodes::elsewhere) continue;
            auto added = made->am_->add_peer(*(*streams)[r]);
            if (!added) {
                why = added.error();
                continue;
            }
            (void)(*streams)[r].detach(); // the endpoint has it
            made->peers_[r] = *added;
        }
    }
    if (auto agreed = agree_on_result(group, why, deadline); !agreed) return agreed.error();
    return made;
}

RemoteLocales::~RemoteLocales() {
    am_->close();
    am_->context().host_calls().end_all_on(*am_);
}

bool RemoteLocales::has_ended(uint32_t locale, Error *why) noexcept {
    const Ref<AmPeer> peer = am_->peer(peers_[locale]);
    return peer && peer->has_ended(why);
}

// ---- at the locale that makes a request

Status RemoteLocales::run(const muster_memory_operation &what, Deadline &deadline, muster_memory_result &out) noexcept {
    try {
        const bool copies = what.kind == MUSTER_MEMORY_PUT || what.kind == MUSTER_MEMORY_GET;
        if (copies) return copy(what, deadline);
        char request[RemoteOperation::bytes];
        unsigned char reply[RemoteOperation::reply_bytes] = {};
        RemoteOperation::put(request, what);
        const auto outcome = am_->call({peers_[memory_.shape.locale_of(what.target)], number_of(MemoryHandler::run),
                                        request, sizeof request, reply, sizeof reply},
                                       deadline);
        if (outcome.why.status != MUSTER_OK && outcome.why.status != MUSTER_AGAIN) return outcome.why.status;
        if (what.kind != MUSTER_MEMORY_WRITE) out = {get_u64(reply), get_u64(reply + 8)};
        return outcome.why.status;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    }
}

// Memory of the host that a copy uses that was begun. Any thread; after end() it is not used any more.
struct RemoteLocales::Lent {
    std::mutex lock; // held while it is read, too
    bool is_over = false;
    std::deque<Ref<AmCall>> calls; // those that may write to it
    void end() noexcept {
        const std::lock_guard hold(lock);
        is_over = true;
        for (const Ref<AmCall> &call : calls) call->end(Error::from_status(MUSTER_E_CANCELED));
    }
};

// In pieces, which the owner performs in their order: the signal is part of the last one. A get has the role of the
// reader from its beginning, so that the replies are read to their places; a put writes directly, where it waits.
Status RemoteLocales::copy(const muster_memory_operation &what, Deadline &deadline, Lent *lent) {
    Lent own;
    const bool may_read = lent == nullptr; // otherwise its wait has to end early
    if (may_read) lent = &own;
    const bool is_put = what.kind == MUSTER_MEMORY_PUT;
    const size_t piece_bytes = is_put ? put_piece_bytes : get_piece_bytes;
    const size_t under_way = is_put ? puts_under_way : gets_under_way;
    const uint32_t peer = peers_[memory_.shape.locale_of(what.target)];
    ActiveMessages::Reader reader(*am_, am_->peer(peer));
    std::deque<ActiveMessages::Started> started;
    Error why;
    const auto finish_first = [&] {
        const auto outcome = am_->finish(started.front(), deadline, may_read ? &reader : nullptr);
        started.pop_front();
        {
            const std::lock_guard hold(lent->lock);
            lent->calls.pop_front();
        }
        if (why.status == MUSTER_OK) why = outcome.why;
    };
    uint64_t done = 0;
    do {
        if (started.size() == under_way) finish_first();
        if (why.status != MUSTER_OK) break;
        muster_memory_operation piece = what;
        piece.bytes = std::min<uint64_t>(what.bytes - done, piece_bytes);
        piece.target += done;
        if (done + piece.bytes != what.bytes) piece.signal = piece.value = piece.notify = 0;
        char request[RemoteOperation::bytes];
        RemoteOperation::put(request, piece);
        auto *const local = static_cast<char *>(what.local) + done;
        void *const reply = is_put ? nullptr : local;
        const auto call = make_ref<AmCall>(am_->context(), reply, is_put ? 0 : piece.bytes, false);
        ActiveMessages::Request made{peer, number_of(MemoryHandler::run), request, sizeof request,
                                     reply, is_put ? 0 : piece.bytes};
        std::vector<char> copied;
        {
            const std::lock_guard hold(lent->lock);
            if (lent->is_over) {
                why = Error::from_status(MUSTER_E_CANCELED);
                break;
            }
            lent->calls.push_back(call);
            if (is_put && piece.bytes != 0) {
                if (!may_read) copied.assign(local, local + piece.bytes); // the host may have it back at any moment
                made.body = may_read ? local : copied.data();
                made.body_bytes = piece.bytes;
            }
        }
        if (may_read) call->set_reader();
        Deadline once(0);
        const bool keeps_role = may_read && !is_put && reader.take();
        started.push_back(am_->start(made, keeps_role ? once : deadline, call));
        if (!started.back().call && keeps_role && started.back().why.status == MUSTER_TIMEOUT && !deadline.passed()) {
            reader.leave(); // others may have to read before there is room
            started.back() = am_->start(made, deadline, call);
        }
        if (is_put) reader.leave();
        if (!started.back().call) break; // finish() says why
        done += piece.bytes;
    } while (done != what.bytes);
    while (!started.empty()) finish_first();
    return why.status;
}

Status RemoteLocales::begin(const muster_memory_operation &what, muster_memory_result *out, Queue *queue,
                            uint64_t tag) {
    const bool is_put = what.kind == MUSTER_MEMORY_PUT, is_get = what.kind == MUSTER_MEMORY_GET;
    if ((is_put || is_get) && what.bytes > begun_bytes) {
        if (queue == nullptr) return MUSTER_E_ARG;
        const Ref<Memory> memory(&memory_);
        const auto lent = std::make_shared<Lent>();
        const auto body = [memory, what, lent]() -> BegunCall::Outcome {
            BegunCall::Outcome outcome;
            Deadline endless(-1);
            outcome.why = Error::from_status(memory->remote().copy(what, endless, lent.get()));
            outcome.bytes = outcome.why.status == MUSTER_OK ? what.bytes : 0;
            return outcome;
        };
        return BegunCall::begin({am_->context(), MUSTER_DONE_MEMORY, body, [lent] { lent->end(); }}, wrap(queue), tag)
            .status();
    }
    std::vector<char> request(RemoteOperation::bytes + (is_put ? what.bytes : 0));
    RemoteOperation::put(request.data(), what);
    if (is_put && what.bytes != 0) std::memcpy(&request[RemoteOperation::bytes], what.local, what.bytes);
    void *const reply = is_get ? what.local : is_put ? nullptr : out;
    const size_t capacity = reply == nullptr ? 0 : is_get ? what.bytes : sizeof *out;
    return am_
        ->begin({peers_[memory_.shape.locale_of(what.target)], number_of(MemoryHandler::run), request.data(),
                 request.size(), reply, capacity, nullptr, 0, what.bytes},
                queue, tag, MUSTER_DONE_MEMORY)
        .status();
}

Status RemoteLocales::allocate(uint32_t locale, uint64_t bytes, Deadline &deadline, uint64_t &out_offset) noexcept {
    try {
        unsigned char request[sizeof bytes], reply[sizeof out_offset];
        put_u64(request, bytes);
        const auto outcome = am_->call(
            {peers_[locale], number_of(MemoryHandler::allocate), request, sizeof request, reply, sizeof reply},
            deadline);
        if (outcome.why.status != MUSTER_OK) return outcome.why.status;
        out_offset = get_u64(reply);
        return outcome.bytes == sizeof reply && out_offset != 0 && out_offset < memory_.shape.segment_bytes
                   ? MUSTER_OK
                   : MUSTER_E_PROTOCOL;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    }
}

Status RemoteLocales::release(uint32_t locale, const uint64_t *offsets, uint32_t count, Deadline &deadline) noexcept {
    try {
        std::vector<unsigned char> request(count * sizeof(uint64_t));
        for (uint32_t i = 0; i < count; i++) put_u64(&request[i * sizeof(uint64_t)], offsets[i]);
        return am_
            ->call({peers_[locale], number_of(MemoryHandler::release), request.data(), request.size(), nullptr, 0},
                   deadline)
            .why.status;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    }
}

bool RemoteLocales::release_later(uint32_t locale, const uint64_t *offsets, size_t count) noexcept {
    try {
        std::vector<unsigned char> request(count * sizeof(uint64_t));
        for (size_t i = 0; i < count; i++) put_u64(&request[i * sizeof(uint64_t)], offsets[i]);
        for (;;) {
            auto begun = am_->begin(
                {peers_[locale], number_of(MemoryHandler::release), request.data(), request.size(), nullptr, 0},
                nullptr, 0);
            if (!begun) return false;
            if (begun.status() == MUSTER_OK) return true;
            Deadline endless(-1);
            if (am_->flush(peers_[locale], endless) == MUSTER_E_WOULD_DEADLOCK) return false;
        }
    } catch (const std::bad_alloc &) {
        return false;
    }
}

Status RemoteLocales::stats(uint32_t locale, Deadline &deadline, muster_memory_stats &out) noexcept {
    try {
        unsigned char reply[sizeof(uint64_t) * stats_words];
        const auto outcome =
            am_->call({peers_[locale], number_of(MemoryHandler::stats), nullptr, 0, reply, sizeof reply}, deadline);
        if (outcome.why.status != MUSTER_OK) return outcome.why.status;
        if (outcome.bytes != sizeof reply) return MUSTER_E_PROTOCOL;
        uint64_t words[stats_words];
        for (size_t i = 0; i < stats_words; i++) words[i] = get_u64(reply + 8 * i);
        std::memcpy(&out, words, sizeof words);
        return MUSTER_OK;
    } catch (const std::bad_alloc &) {
        return MUSTER_E_NOMEM;
    }
}

Status RemoteLocales::flush(uint32_t locale, Deadline &deadline) noexcept {
    return am_->flush(locale == UINT32_MAX ? UINT32_MAX : peers_[locale], deadline);
}

} // namespace muster
