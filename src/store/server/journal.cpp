// SPDX-License-Identifier: MIT
// What a store's server writes down, and how it is what it was again.
//
// The log holds what was asked and has changed something, in the order it was done: doing it again gives the same keys,
// versions and answers. Beside that, what the clock has done: ends of leases and sessions.
#include "store/server/server.hpp"

#include <algorithm>

namespace muster {

namespace {

enum class Note : uint8_t {
    instance = 1,
    session = 2,   // id (16): begins
    forgotten = 3, // id
    asked = 4,     // id, number (8), body of an ask
    ended = 5,     // lease (8)
    abandoned = 6, // lease
    pair = 12,     // epoch (8), kind (1), has the other a folder (1), the other's address; only in the server's own log
    // of snapshots
    revision = 7, // revision (8), last lease (8)
    lease = 8,    // lease (8), time (8), flags (4), id of its session; zero: none
    key = 9,      // version (8), lease (8), length of the key (4), key, value
    queued = 10,  // length of the name (4), name, value
    answered = 11 // id, number (8), record
};

constexpr uint64_t shortest_log = 64 << 20; // before a snapshot is worth its while

std::string mark_note(const PairMark &mark) {
    ByteWriter to;
    to.number(Note::pair).number(mark.epoch).number(static_cast<uint8_t>(mark.kind));
    return to.number(static_cast<uint8_t>(mark.other_keeps ? 1 : 0)).bytes(mark.other).take();
}

} // namespace

// ---- writing --------------------------------------------------------------------------------------------------------

void StoreServer::write_down(Ref<StoreNote> note) noexcept {
    if (replaying_ || !note) return;
    if (pair_ && pair_->gathers()) pair_->note(note);
    if (journal_) journal_->append(std::move(note));
}

Ref<StoreNote> note_of_session(const StoreId &session, bool begins) {
    const Note kind = begins ? Note::session : Note::forgotten;
    return make_ref<StoreNote>(ByteWriter().number(kind).bytes(session).take());
}

Ref<StoreNote> note_of_lease(uint64_t lease, bool ends) {
    return make_ref<StoreNote>(ByteWriter().number(ends ? Note::ended : Note::abandoned).number(lease).take());
}

// The answer of a barrier is recorded: members that have arrived repeat their request; those that were released must
// get their answer. Until it is known there is a placeholder of the same length.
Ref<StoreNote> note_of_request(const ServerRequest &asked) {
    const StoreOp &first = asked.request.ops().front();
    const bool at_barrier = first.kind == MUSTER_STORE_BARRIER;
    std::string record, rest;
    ByteWriter(record)
        .number(at_barrier ? Note::answered : Note::asked)
        .bytes(asked.session->id())
        .number(asked.number);
    if (at_barrier) {
        StoreAnswer answer;
        answer.result = make_ref<StoreResult>();
        answer.result->entries.resize(1);
        answer.result->entries[0].number = first.count;
        put_answer(rest, asked.number, answer);
        record.append(rest);
    } else {
        put_ask(rest, asked.number, 0, false, asked.request);
        record.append(rest, store_head_bytes);
    }
    return make_ref<StoreNote>(record);
}

// Needs no memory.
void complete_note(const ServerRequest &asked) noexcept {
    constexpr size_t at = StoreNote::head_bytes + 1 + sizeof(StoreId) + 8; // after kind, session and number
    std::string &bytes = asked.note->bytes;
    if (asked.request.ops().front().kind == MUSTER_STORE_BARRIER) {
        bytes.resize(at);
        put_answer(bytes, asked.number, asked.answer);
    } else {
        put_u64(as_bytes(bytes) + at, asked.session->answered.floor());
    }
}

// A session and a lease may each have to be recorded as ended when there is no room for anything else any more.
bool StoreServer::has_room(size_t bytes) noexcept {
    constexpr size_t note_bytes = 40;
    return !journal_ || replaying_ ||
           journal_->has_room(bytes + note_bytes * (2 + 2 * leases_.size() + sessions_.size()));
}

uint64_t StoreServer::write_mark(const PairMark &mark) {
    return journal_->append(mark_note(mark));
}

void StoreServer::give_up_journal(const Error &why) noexcept {
    context_->log(MUSTER_LOG_ERROR, "store: data folder %s: %s; nothing can be promised any more",
                  settings_.data_dir.c_str(), why.message);
    failed_.store(true, std::memory_order_relaxed);
    stop();
}

// An answer is sent when all earlier changes are durable.
bool StoreServer::is_durable() const noexcept {
    if (journal_ && journal_->durable() < journal_->appended()) return false;
    return !pair_ || pair_->settled();
}

void StoreServer::journal_moved() noexcept {
    if (stopped_) return;
    if (!journal_) return;
    if (const int why = journal_->failed())
        return give_up_journal(Error::from_errno(why, MUSTER_OK, "write the journal"));
    if (pair_) pair_->journal_moved();
    if (stopped_) return;
    release_held();
    flush();
    const bool installing = pair_ && pair_->roles().role() == PairRole::catching_up;
    if (journal_->log_bytes() > std::max(shortest_log, 2 * journal_->snapshot_bytes()) &&
        !journal_->writing_snapshot() && !installing)
        begin_snapshot();
}

void StoreServer::release_held() noexcept {
    while (!held_.empty() && (!journal_ || held_.front().position <= journal_->durable()) &&
           (!pair_ || pair_->settled(held_.front().number))) {
        const Held &first = held_.front();
        if (first.session != nullptr) first.session->held_bytes -= first.record.size();
        if (first.session != nullptr && first.session->connection != nullptr) {
            try {
                first.session->connection->out().append(first.record);
                touch(*first.session->connection);
            } catch (const std::bad_alloc &) {
                first.session->connection->shut("out of memory for its answers"); // the client repeats its request
            }
        }
        held_.pop_front();
    }
}

void StoreServer::begin_snapshot() noexcept {
    try {
        journal_->begin_snapshot(make_snapshot(pair_ ? &pair_->roles().mark() : nullptr));
    } catch (const std::bad_alloc &) { // later, then
    }
}

// The current content: values are shared, so this takes little time, and another thread may write it.
std::function<bool(std::string &)> StoreServer::make_snapshot(const PairMark *mark) const {
    struct Everything {
        std::vector<std::string> notes; // the small records
        StoreTable::Image image;
        size_t at = 0;
    };
    const auto all = std::make_shared<Everything>();
    all->notes.push_back(ByteWriter().number(Note::instance).bytes(instance_).take());
    if (mark != nullptr) all->notes.push_back(mark_note(*mark));
    for (const auto &[id, session] : sessions_) {
        all->notes.push_back(ByteWriter().number(Note::session).bytes(id).take());
        session->answered.each([&all, &of = id](uint64_t number, std::string_view answer) {
            all->notes.push_back(ByteWriter().number(Note::answered).bytes(of).number(number).bytes(answer).take());
        });
    }
    for (const auto &[number, lease] : leases_) {
        ByteWriter to;
        to.number(Note::lease).number(number).number(lease.ttl_ns).number(lease.flags);
        to.bytes(lease.session == nullptr ? StoreId{} : lease.session->id());
        all->notes.push_back(to.take());
    }
    all->image = table_.image();
    ByteWriter to;
    to.number(Note::revision).number(all->image.revision).number(all->image.last_lease);
    all->notes.push_back(to.take());
    return [all](std::string &out) {
        size_t i = all->at++;
        if (i < all->notes.size()) {
            out = std::move(all->notes[i]);
            return true;
        }
        i -= all->notes.size();
        if (i < all->image.keys.size()) {
            const StoreTable::Image::Key &key = all->image.keys[i];
            out.clear();
            ByteWriter to(out);
            to.number(Note::key).number(key.version).number(key.lease);
            to.number(static_cast<uint32_t>(key.key.size())).bytes(key.key).bytes(key.value->bytes());
            return true;
        }
        i -= all->image.keys.size();
        if (i >= all->image.queued.size()) return false;
        const auto &[name, value] = all->image.queued[i];
        out.clear();
        ByteWriter to(out);
        to.number(Note::queued).number(static_cast<uint32_t>(name.size())).bytes(name).bytes(value->bytes());
        return true;
    };
}

// ---- reading --------------------------------------------------------------------------------------------------------

Result<void> StoreServer::open_journal() {
    replaying_ = !starts_serving();
    if (settings_.data_dir.empty()) return {};
    table_.limit(UINT64_MAX);
    replaying_ = true;
    auto journal = StoreJournal::open(settings_.data_dir, settings_.sync,
                                      [this](std::string_view record) { return replay(record); });
    replaying_ = !starts_serving(); // later changes are replayed, too
    table_.limit(settings_.max_bytes);
    if (!journal) return journal.error();
    journal_ = std::move(*journal);
    if (!known_instance_ && !replaying_) {
        journal_->append(ByteWriter().number(Note::instance).bytes(instance_).take());
    }
    show_figures();
    return {};
}

// Applies a recorded change again. False: it is invalid.
bool StoreServer::replay(std::string_view record) {
    ByteReader reader(record);
    switch (reader.number<Note>()) {
    case Note::instance:
        instance_ = reader.array<sizeof(StoreId)>();
        known_instance_ = true;
        return reader.is_valid();
    case Note::session: {
        const StoreId id = reader.array<sizeof(StoreId)>();
        return reader.is_valid() && sessions_.emplace(id, make_ref<StoreSession>(*this, id)).second;
    }
    case Note::forgotten: {
        const auto found = sessions_.find(reader.array<sizeof(StoreId)>());
        if (found == sessions_.end()) return false;
        forget(*found->second);
        return true;
    }
    case Note::asked: {
        const auto found = sessions_.find(reader.array<sizeof(StoreId)>());
        const uint64_t number = reader.number<uint64_t>();
        const std::string_view body = reader.rest();
        return reader.is_valid() && found != sessions_.end() &&
               ask(*found->second, {static_cast<uint32_t>(body.size()), StoreRecord::ask, 0, number}, body) &&
               found->second->hanging.empty();
    }
    case Note::ended: {
        List<StoreWaiter> over;
        end_lease(reader.number<uint64_t>(), 0, over);
        return reader.is_valid() && over.empty();
    }
    case Note::abandoned: {
        const auto found = leases_.find(reader.number<uint64_t>());
        if (found == leases_.end()) return false;
        found->second.flags |= MUSTER_LEASE_MANUAL;
        return true;
    }
    case Note::pair: {
        if (pair_) return false; // it is not for others
        mark_.epoch = reader.number<uint64_t>();
        const auto kind = reader.number<uint8_t>();
        mark_.other_keeps = reader.number<uint8_t>() != 0;
        if (!reader.is_valid() || kind > PairMark::alone) return false;
        mark_.kind = static_cast<PairMark::Kind>(kind);
        mark_.other = reader.rest();
        return true;
    }
    case Note::revision: {
        const uint64_t revision = reader.number<uint64_t>();
        table_.put_back(revision, reader.number<uint64_t>());
        return reader.is_valid();
    }
    case Note::lease: {
        const uint64_t number = reader.number<uint64_t>();
        const auto ttl = reader.number<int64_t>();
        const uint32_t flags = reader.number<uint32_t>();
        const auto session = sessions_.find(reader.array<sizeof(StoreId)>());
        if (!reader.is_valid() || ttl <= 0) return false;
        table_.put_back_lease(number, now_ns() + ttl);
        leases_.emplace(number, Lease{session == sessions_.end() ? nullptr : session->second.get(), ttl, flags,
                                      note_of_lease(number, false), note_of_lease(number, true)});
        if (session != sessions_.end()) session->second->leases.insert(number);
        return true;
    }
    case Note::key: {
        StoreTable::Image::Key key;
        key.version = reader.number<uint64_t>();
        key.lease = reader.number<uint64_t>();
        key.key = reader.bytes(reader.number<uint32_t>());
        key.value = Blob::make(reader.rest());
        if (reader.is_valid()) table_.put_back(std::move(key));
        return reader.is_valid();
    }
    case Note::queued: {
        const std::string name(reader.bytes(reader.number<uint32_t>()));
        const std::string_view value = reader.rest();
        if (reader.is_valid()) table_.put_back(name, Blob::make(value));
        return reader.is_valid();
    }
    case Note::answered: {
        const auto found = sessions_.find(reader.array<sizeof(StoreId)>());
        const uint64_t number = reader.number<uint64_t>();
        if (!reader.is_valid() || found == sessions_.end()) return false;
        found->second->answered.add(number, reader.rest());
        return true;
    }
    }
    return false;
}

} // namespace muster
