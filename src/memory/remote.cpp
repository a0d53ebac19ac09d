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
constexpr size_t pieces_under_way = 4;          // of one copy
constexpr uint32_t max_small_reply = 64 * 1024; // of requests that do not lend their reply
constexpr size_t freed_per_request = 512;       // objects

const char *name_of_operation(const muster_memory_operation &what) noexcept {
    return what.kind == MUSTER_MEMORY_PUT ? "put" : what.kind == MUSTER_MEMORY_GET ? "get" : "atomic";
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
    settings.limits = {RemoteOperation::bytes + piece_bytes, max_requests_of_memory};
    settings.max_handler_reply = max_small_reply;
    if (auto am = ActiveMessages::make(group.context(), std::move(settings)); !am) {
        why = am.error();
    } else {
        made.reset(new RemoteLocales(memory, std::move(*am), group.size()));
        set_handlers(*made->am_, memory);
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
    AmPeer *const peer = am_->peer(peers_[locale]);
    return peer != nullptr && peer->has_ended(why);
}

// ---- at the locale that makes a request

namespace {
// Of an operation that is one message: a copy moves between the memory of the host and the peer, any other operation
// has a result.
ActiveMessages::Request request_of(const muster_memory_operation &what, uint32_t peer,
                                   char (&head)[RemoteOperation::bytes], void *result, size_t result_bytes) noexcept {
    RemoteOperation::put(head, what);
    ActiveMessages::Request made{peer, number_of(MemoryHandler::run), head, sizeof head, result, result_bytes};
    if (what.kind == MUSTER_MEMORY_GET) {
        made.reply = what.local, made.capacity = what.bytes;
    } else if (what.kind == MUSTER_MEMORY_PUT) {
        made.reply = nullptr, made.capacity = 0;
        made.body = what.local, made.body_bytes = what.bytes;
    }
    made.category = "memory";
    return made;
}
} // namespace

Status RemoteLocales::run(const muster_memory_operation &what, Deadline &deadline, muster_memory_result &out) noexcept {
    try {
        const bool is_put = what.kind == MUSTER_MEMORY_PUT, is_get = what.kind == MUSTER_MEMORY_GET;
        if ((is_put || is_get) && what.bytes >= direct_bytes) {
            const TraceSpan span("memory", name_of_operation(what));
            return copy(what, deadline);
        }
        char request[RemoteOperation::bytes];
        unsigned char reply[RemoteOperation::reply_bytes] = {};
        ActiveMessages::Request made =
            request_of(what, peers_[memory_.shape.locale_of(what.target)], request, reply, sizeof reply);
        made.name = name_of_operation(what);
        const auto outcome = am_->call(made, deadline);
        if (outcome.why.status != MUSTER_OK && outcome.why.status != MUSTER_AGAIN) return outcome.why.status;
        if (!is_put && !is_get && what.kind != MUSTER_MEMORY_WRITE) out = {get_u64(reply), get_u64(reply + 8)};
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

// Of direct_bytes and more. In pieces, which the owner performs in their order: the signal is part of the last one. A
// get has the role of the reader from its beginning, so that the replies are read to their places; a put writes
// directly, where it waits.
Status RemoteLocales::copy(const muster_memory_operation &what, Deadline &deadline, Lent *lent) {
    Lent own;
    const bool may_read = lent == nullptr; // a begun copy does not read: the end of its queue ends its wait
    if (may_read) lent = &own;
    const bool is_put = what.kind == MUSTER_MEMORY_PUT;
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
        if (started.size() == pieces_under_way) finish_first();
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
        ActiveMessages::Request made{peer,  number_of(MemoryHandler::run), request, sizeof request,
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
        if (!is_put) call->set_whole_bytes(what.bytes);
        const int64_t from_ns = Trace::is_on() ? now_ns() : 0;
        Deadline once(0);
        const bool keeps_role = may_read && !is_put && reader.take();
        if (what.bytes >= bulk_bytes) reader.expect_much();
        started.push_back(am_->start(made, keeps_role ? once : deadline, call));
        if (!started.back().call && keeps_role && started.back().why.status == MUSTER_TIMEOUT && !deadline.passed()) {
            reader.leave(); // others may have to read before there is room
            started.back() = am_->start(made, deadline, call);
        }
        if (is_put) reader.leave();
        if (const ActiveMessages::Started &one = started.back(); from_ns != 0 && one.call)
            Trace::write({Trace::Kind::mark, "memory", "piece", {}, one.peer->flow_to(one.call->id), from_ns});
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
    char request[RemoteOperation::bytes];
    ActiveMessages::Request made =
        request_of(what, peers_[memory_.shape.locale_of(what.target)], request, out, out != nullptr ? sizeof *out : 0);
    made.entry_bytes = what.bytes;
    return am_->begin(made, queue, tag, MUSTER_DONE_MEMORY).status();
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

Status RemoteLocales::release_later(uint32_t locale, const uint64_t *offsets, size_t count) noexcept {
    const std::lock_guard hold(freed_lock_);
    Freed &freed = freed_[locale];
    try {
        freed.unsent.insert(freed.unsent.end(), offsets, offsets + count);
    } catch (const std::bad_alloc &) {
        freed.dropped += count;
    }
    return send_freed_of(freed, peers_[locale]);
}

Status RemoteLocales::send_freed(uint32_t locale) noexcept {
    const std::lock_guard hold(freed_lock_);
    Status worst = MUSTER_OK;
    const auto count = static_cast<uint32_t>(freed_.size());
    for (uint32_t r = locale == UINT32_MAX ? 0 : locale; r < (locale == UINT32_MAX ? count : locale + 1); r++) {
        const Status sent = freed_[r].unsent.empty() ? Status{MUSTER_OK} : send_freed_of(freed_[r], peers_[r]);
        if (worst == MUSTER_OK || sent == MUSTER_E_NOMEM) worst = sent;
    }
    return worst;
}

uint64_t RemoteLocales::dropped(uint32_t locale) noexcept {
    const std::lock_guard hold(freed_lock_);
    return freed_[locale].dropped;
}

// Under the lock.
Status RemoteLocales::send_freed_of(Freed &freed, uint32_t peer) noexcept {
    std::vector<uint64_t> &unsent = freed.unsent;
    size_t sent = 0;
    Status status = MUSTER_OK;
    while (status == MUSTER_OK && sent != unsent.size()) {
        const size_t count = std::min(freed_per_request, unsent.size() - sent);
        unsigned char request[freed_per_request * sizeof(uint64_t)];
        for (size_t i = 0; i < count; i++) put_u64(request + i * sizeof(uint64_t), unsent[sent + i]);
        try {
            status =
                am_->begin({peer, number_of(MemoryHandler::release), request, count * sizeof(uint64_t), nullptr, 0},
                           nullptr, 0)
                    .status();
        } catch (const std::bad_alloc &) {
            status = MUSTER_E_NOMEM;
        }
        if (status == MUSTER_OK) sent += count;
    }
    if (status < 0 && status != MUSTER_E_NOMEM) { // the locale has ended
        freed.dropped += unsent.size() - sent;
        sent = unsent.size();
        status = MUSTER_OK;
    }
    unsent.erase(unsent.begin(), unsent.begin() + static_cast<std::ptrdiff_t>(sent));
    return status;
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

// What was freed and had no room is sent first, when there is some.
Status RemoteLocales::flush(uint32_t locale, Deadline &deadline) noexcept {
    Status sent = MUSTER_AGAIN;
    const Status waited = am_->wait_for_room(deadline, [&] { return (sent = send_freed(locale)) != MUSTER_AGAIN; });
    if (waited != MUSTER_OK) return waited;
    const Status flushed = am_->flush(locale == UINT32_MAX ? UINT32_MAX : peers_[locale], deadline);
    return flushed != MUSTER_OK ? flushed : sent;
}

} // namespace muster
