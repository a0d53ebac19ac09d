// SPDX-License-Identifier: MIT
// What a store's server does for its clients.
#include "store/server/server.hpp"

namespace muster {

namespace {
constexpr size_t max_hanging = 65536, max_hanging_bytes = 32 << 20; // of one client
constexpr size_t max_answered = 65536, max_answered_bytes = 32 << 20;
constexpr size_t max_spare_bytes = 4096, max_spare_entries = 64;
constexpr int64_t late_ns = 100'000'000;
constexpr int64_t longest_lease_ns = 86'400'000'000'000;
constexpr size_t max_leases = 65536;
constexpr size_t room_for_others = 1 << 20; // on a disk that is full: for clients that connect then to read
} // namespace

// ---- requests -------------------------------------------------------------------------------------------------------

Result<StoreRequest> StoreServer::understand(const std::vector<muster_store_op> &ops, StoreRequest &before) {
    const muster_store_op &first = ops.front();
    if (ops.size() == 1 && first.kind == store_grant && first.number > 0 && first.number <= longest_lease_ns)
        return StoreRequest::grant(first.number, static_cast<uint32_t>(first.version));
    if (ops.size() == 1 && first.kind == store_end_lease) return StoreRequest::end_lease(first.lease);
    return StoreRequest::read(ops.data(), ops.size(), {}, {}, &before);
}

// Most are over at once: then the next one gets the memory of the last.
std::unique_ptr<ServerRequest> StoreServer::take_request(StoreSession &session, uint64_t number) {
    if (!spare_) return std::make_unique<ServerRequest>(session, number);
    spare_->session = &session;
    spare_->number = number;
    return std::move(spare_);
}

void StoreServer::give_request(std::unique_ptr<ServerRequest> request) noexcept {
    if (spare_ || request->request.bytes() > max_spare_bytes) return;
    request->spare = std::move(request->answer.result);
    if (request->spare && request->spare->entries.capacity() > max_spare_entries)
        request->spare.reset();
    else if (request->spare)
        request->spare->entries.clear();
    request->answer = {};
    request->note.reset();
    request->listed = false;
    request->hanging_bytes = 0;
    spare_ = std::move(request);
}

bool StoreServer::ask(StoreSession &session, const StoreHead &head, std::string_view body) {
    uint64_t floor = 0;
    uint32_t prefix = 0;
    if (head.number == 0 || !get_ask(body, floor, prefix, ops_)) return false;
    requests_.fetch_add(1, std::memory_order_relaxed);
    session.answered.forget_below(floor);
    if (const std::string_view before = session.answered.find(head.number); !before.empty()) {
        send(session, before);
        return true;
    }
    if (head.number < floor || session.hanging.count(head.number) != 0) return false;
    auto who = take_request(session, head.number);
    ServerRequest &asked = *who;
    auto what = understand(ops_, asked.request);
    if (!what) {
        answer(session, head.number, {what.error(), {}});
        return true;
    }
    asked.request = std::move(*what);
    asked.request.hide_prefix(prefix);
    if (asked.request.changes() &&
        (session.answered.count() >= max_answered || session.answered.bytes() >= max_answered_bytes)) {
        answer(session, head.number,
               {Error::make(MUSTER_E_LIMIT,
                            "more than %zu answers are kept for this client, since an older request "
                            "that changes something still waits",
                            max_answered - 1),
                {}});
        return true;
    }
    if (asked.request.changes() && !has_room(body.size() + room_for_others)) {
        const Error why = journal_->why_no_room();
        answer(session, head.number,
               {Error::make(why.status, "%s: %s", asked.request.name(0).c_str(), why.message), {}});
        return true;
    }
    const bool waits = (head.flags & store_ask_once) == 0;
    List<StoreWaiter> over;
    try {
        if (writes_down() && asked.request.changes()) asked.note = note_of_request(asked);
        if (asked.request.of_lease())
            see_to_lease(asked, over);
        else
            table_.submit(asked, over);
    } catch (const std::bad_alloc &) { // nothing was done
        asked.answer = {Error::make(MUSTER_E_NOMEM, "out of memory"), {}};
        over.push_back(asked);
    }
    if (replaying_ && asked.answer.error.status == MUSTER_E_NOMEM) {
        over.remove(asked);
        throw std::bad_alloc(); // it was done before, and has to be done
    }
    if (asked.hangs() && !keep_hanging(who, waits, body.size())) over.push_back(asked);
    if (who) (void)who.release(); // it is in `over`
    settle(over);
    return true;
}

// False: it does not wait, and its answer has the reason.
bool StoreServer::keep_hanging(std::unique_ptr<ServerRequest> &who, bool waits, size_t bytes) {
    ServerRequest &asked = *who;
    StoreSession &session = *asked.session;
    try {
        if (waits && session.hanging.size() < max_hanging && session.hanging_bytes + bytes <= max_hanging_bytes) {
            if (!asked.note && asked.request.changes()) asked.note = note_of_request(asked); // a standby may connect
            session.hanging[asked.number].swap(who);
            asked.listed = true;
            asked.hanging_bytes = bytes;
            session.hanging_bytes += bytes;
            waiting_.fetch_add(1, std::memory_order_relaxed);
            return true;
        }
        const std::string missing = table_.missing(asked.request);
        asked.answer = {waits
                            ? Error::make(MUSTER_E_LIMIT, "%s: too much waits for this client already", missing.c_str())
                            : Error::make(MUSTER_AGAIN, "%s", missing.c_str()),
                        {}};
    } catch (const std::bad_alloc &) {
        asked.answer = {Error::make(MUSTER_E_NOMEM, "out of memory"), {}};
    }
    table_.withdraw(asked);
    return false;
}

void StoreServer::withdraw(StoreSession &session, uint64_t number) {
    const auto found = session.hanging.find(number);
    if (found == session.hanging.end()) { // perhaps its answer is in transit; otherwise it has changed nothing
        if (const std::string_view before = session.answered.find(number); !before.empty())
            return send(session, before);
        return answer(session, number, {Error::make(MUSTER_E_CANCELED, "it was not done"), {}});
    }
    ServerRequest &asked = *found->second;
    const std::string missing = table_.missing(asked.request);
    table_.withdraw(asked);
    asked.answer = {Error::make(MUSTER_E_CANCELED, "%s", missing.c_str()), {}};
    List<StoreWaiter> over;
    over.push_back(asked);
    settle(over);
}

void StoreServer::withdraw_all(StoreSession &session) noexcept {
    for (auto &[number, asked] : session.hanging) {
        table_.withdraw(*asked);
        waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    session.hanging.clear();
    session.hanging_bytes = 0;
}

// Requests that are over leave, in the order they were done.
void StoreServer::settle(List<StoreWaiter> &over) noexcept {
    while (StoreWaiter *const one = over.pop_front()) {
        auto &asked = static_cast<ServerRequest &>(*one);
        StoreSession &session = *asked.session;
        if (asked.answer.changed && asked.note) {
            complete_note(asked);
            write_down(std::move(asked.note));
        }
        std::unique_ptr<ServerRequest> last(&asked);
        if (asked.listed) {
            session.hanging_bytes -= asked.hanging_bytes;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            const auto place = session.hanging.find(asked.number);
            [[maybe_unused]] const ServerRequest *const same = place->second.release();
            session.hanging.erase(place);
        }
        try {
            answer(session, last->number, last->answer);
        } catch (const std::bad_alloc &) {
            session.spoiled = spoiled_ = true;
        }
        give_request(std::move(last));
    }
    while (std::exchange(spoiled_, false)) {
        for (auto at = sessions_.begin(); at != sessions_.end();) {
            StoreSession &session = *(at++)->second;
            if (!session.spoiled) continue;
            StoreConnection *const connection = session.connection;
            forget(session); // the client reconnects, and learns that the outcome of its requests is unknown
            if (connection != nullptr) connection->shut("out of memory for its answers");
        }
    }
    show_figures();
}

void StoreServer::show_figures() noexcept {
    keys_.store(table_.keys(), std::memory_order_relaxed);
    bytes_.store(table_.bytes(), std::memory_order_relaxed);
    revision_.store(table_.revision(), std::memory_order_relaxed);
    session_count_.store(sessions_.size(), std::memory_order_relaxed);
    lease_count_.store(leases_.size(), std::memory_order_relaxed);
}

void StoreServer::answer(StoreSession &session, uint64_t number, const StoreAnswer &answer) {
    if (!answer.changed && is_durable()) {
        if (!can_take(session.connection)) return;
        put_answer(session.connection->out(), number, answer);
        return touch(*session.connection);
    }
    if (is_durable() && can_take(session.connection)) { // the stored answer is the one that was sent
        std::string &out = session.connection->out();
        const size_t from = out.size();
        put_answer(out, number, answer);
        session.answered.add(number, std::string_view(out).substr(from));
        return touch(*session.connection);
    }
    std::string record;
    put_answer(record, number, answer);
    send(session, record);
    if (answer.changed) session.answered.add(number, record);
}

void StoreServer::send(StoreSession &session, std::string_view record) {
    if (!can_take(session.connection)) return;
    if (!is_durable()) {
        held_.push_back(
            {journal_ ? journal_->appended() : 0, pair_ ? pair_->hold() : 0, &session, std::string(record)});
        session.held_bytes += record.size();
        return;
    }
    session.connection->out().append(record);
    touch(*session.connection);
}

// ---- leases ---------------------------------------------------------------------------------------------------------

void StoreServer::see_to_lease(ServerRequest &who, List<StoreWaiter> &over) {
    const StoreOp &op = who.request.ops().front();
    auto result = make_ref<StoreResult>();
    result->entries.resize(1);
    if (op.kind == store_grant && leases_.size() >= max_leases && !replaying_) {
        who.answer.error = Error::make(MUSTER_E_LIMIT, "the store has %zu leases already", max_leases);
        return over.push_back(who);
    }
    if (op.kind == store_grant) {
        const auto flags = static_cast<uint32_t>(op.version);
        const uint64_t lease = table_.grant(now_ns() + op.number);
        try {
            leases_.emplace(
                lease, Lease{who.session, op.number, flags, note_of_lease(lease, false), note_of_lease(lease, true)});
            who.session->leases.insert(lease);
        } catch (...) {
            leases_.erase(lease);
            table_.end_lease(lease, 0, over);
            throw;
        }
        result->entries[0].number = static_cast<int64_t>(lease);
        look_again();
    } else if (leases_.count(op.lease) == 0) {
        who.answer.error = Error::make(MUSTER_E_STALE, "the lease had ended before");
    } else {
        end_lease(op.lease, MUSTER_STORE_LEASE_ENDED, over);
    }
    who.answer.changed = true;
    if (who.answer.error.status == MUSTER_OK) who.answer.result = std::move(result);
    over.push_back(who);
}

void StoreServer::keep(StoreSession &session, uint64_t lease, bool abandon) {
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return tell_ended(&session, lease);
    table_.keep(lease, now_ns() + found->second.ttl_ns);
    if (abandon) {
        found->second.flags |= MUSTER_LEASE_MANUAL; // from now on it expires after this time
        write_down(std::move(found->second.abandoned));
        look_again();
    }
}

void StoreServer::end_lease(uint64_t lease, uint32_t why, List<StoreWaiter> &over) noexcept {
    const auto found = leases_.find(lease);
    if (found != leases_.end()) {
        if (found->second.session != nullptr) found->second.session->leases.erase(lease);
        leases_.erase(found);
    }
    table_.end_lease(lease, why, over);
    lease_count_.store(leases_.size(), std::memory_order_relaxed);
}

void StoreServer::tell_ended(StoreSession *session, uint64_t lease) noexcept {
    if (session == nullptr || session->connection == nullptr) return;
    try {
        put_record(session->connection->out(), {0, StoreRecord::ended, 0, lease});
        touch(*session->connection);
    } catch (const std::bad_alloc &) { // the client notices that its keys are gone
    }
}

// A lease that is due may have been renewed by a record of its client. If this process itself was stopped, records of
// its clients may be unread: they get their time once more.
void StoreServer::look_at_leases() noexcept {
    if (!serves() || clogged()) return;
    const int64_t now = now_ns();
    if (lease_look_ns_ != INT64_MAX && now - lease_look_ns_ > late_ns) grace_from_ns_ = now;
    List<StoreWaiter> over;
    while (table_.next_end_ns() <= now) {
        const uint64_t lease = table_.next_to_end();
        const auto found = leases_.find(lease);
        const bool broken = table_.next_end_ns() == INT64_MIN; // lost() has set that
        int64_t until = INT64_MIN;
        if (found != leases_.end() && !broken) {
            const Lease &kept = found->second;
            const bool by_being_there = kept.session != nullptr && (kept.flags & MUSTER_LEASE_MANUAL) == 0;
            until = std::max(by_being_there ? kept.session->heard_ns : INT64_MIN / 2, grace_from_ns_) + kept.ttl_ns;
        }
        if (until > now) {
            table_.keep(lease, until);
            continue;
        }
        if (found != leases_.end()) {
            tell_ended(found->second.session, lease);
            write_down(std::move(found->second.ended));
        }
        end_lease(lease, broken ? MUSTER_STORE_LEASE_BROKEN : MUSTER_STORE_LEASE_SILENT, over);
    }
    settle(over);
    look_again();
    flush();
}

void StoreServer::look_again() noexcept {
    if (replaying_ || !serves()) return;
    lease_count_.store(leases_.size(), std::memory_order_relaxed);
    const int64_t next = table_.next_end_ns();
    if (next == INT64_MAX || stopped_) {
        lease_look_ns_ = INT64_MAX;
        return hub_.stop_timer(lease_timer_);
    }
    // The timer checks when it expires, and is started again.
    if (lease_timer_.running() && lease_look_ns_ <= next) return;
    lease_look_ns_ = next;
    hub_.start_timer(lease_timer_, next);
}

} // namespace muster
