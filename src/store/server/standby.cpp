// SPDX-License-Identifier: MIT
// A server as one of a pair: it serves, is fed, or waits.
#include "store/server/server.hpp"

namespace muster {

bool StoreServer::starts_serving() const noexcept {
    return settings_.pair.standby_of.empty() && !settings_.pair.alone &&
           (mark_.kind == PairMark::none || mark_.kind == PairMark::alone);
}

void StoreServer::make_pair() {
    pair_ = std::make_unique<StorePair>(*this, settings_.pair, mark_, has_journal());
}

Status StoreServer::go_alone() noexcept {
    return go_alone_.post(*context_) ? MUSTER_OK : MUSTER_E_CLOSED;
}

std::string StoreServer::address_for_others() const {
    const size_t options = settings_.url.find('?');
    return options == std::string::npos ? address_ : address_ + settings_.url.substr(options);
}

void StoreServer::publish_role() noexcept {
    static const char *const names[] = {"serves", "paired", "halted", "standby", "catching-up", "waiting"};
    const auto role = static_cast<uint64_t>(pair_->roles().role());
    const uint64_t epoch = pair_->roles().epoch();
    if (shown_role_ != role || epoch_.load(std::memory_order_relaxed) != epoch)
        context_->log(MUSTER_LOG_INFO, "store: %s: role %s epoch %llu", address_.c_str(), names[role],
                      static_cast<unsigned long long>(epoch));
    shown_role_ = role;
    role_.store(role, std::memory_order_relaxed);
    epoch_.store(epoch, std::memory_order_relaxed);
    lag_.store(pair_->lag(), std::memory_order_relaxed);
    look_at_clog();
}

// Clients whose records were not read could not renew their leases.
void StoreServer::look_at_clog() noexcept {
    const bool clogged_now = clogged();
    if (std::exchange(was_clogged_, clogged_now) == clogged_now || clogged_now) return;
    grace_from_ns_ = now_ns();
    for (StoreConnection *one = connections_.first(); one != nullptr; one = List<StoreConnection>::after(*one))
        one->look_again();
    look_again();
}

// Clients have their time from now on.
void StoreServer::begin_serving() noexcept {
    replaying_ = false;
    known_instance_ = true;
    const int64_t now = now_ns();
    for (const auto &[number, lease] : leases_) table_.keep(number, now + lease.ttl_ns);
    for (const auto &[id, session] : sessions_) {
        session->heard_ns = now;
        if (session->connection == nullptr) session->start_leaving(now + settings_.session_ns);
    }
    show_figures();
    look_again();
}

void StoreServer::resume_serving() noexcept {
    grace_from_ns_ = now_ns();
    release_held();
    look_again();
    flush();
}

void StoreServer::clear_held_positions() noexcept {
    for (Held &held : held_) held.number = 0;
}

void StoreServer::dismiss_clients(bool for_another) noexcept {
    if (for_another) {
        replaying_ = true; // later changes are those of the folder, not of the store
        held_.clear();
        for (const auto &[id, session] : sessions_) session->held_bytes = 0;
        hub_.stop_timer(lease_timer_);
        for (const auto &[id, session] : sessions_) session->stop_leaving();
    }
    while (StoreConnection *const connection = connections_.first()) {
        const Ref<StoreConnection> self(connection);
        try {
            put_record(connection->out(), {0, StoreRecord::bye, 0, 0});
        } catch (const std::bad_alloc &) {
        }
        connection->send_all();
        if (!connection->over()) connection->shut("");
    }
}

// ---- standing by ----------------------------------------------------------------------------------------------------

void StoreServer::clear() noexcept {
    replaying_ = true;
    dismiss_clients(true);
    while (!sessions_.empty()) forget(*sessions_.begin()->second);
    leases_.clear();
    table_.clear();
    known_instance_ = false;
    show_figures();
}

bool StoreServer::apply_change(std::string_view note) {
    Ref<StoreNote> written;
    if (journal_) written = make_ref<StoreNote>(note);
    const bool fine = replay(note);
    if (fine && journal_) journal_->append(std::move(written));
    show_figures();
    return fine;
}

StoreServer::Installing StoreServer::install_snapshot(bool begun) {
    if (journal_->writing_snapshot()) return Installing::busy;
    if (begun) return journal_->snapshot_is_complete() ? Installing::done : Installing::failed;
    const PairMark mark = pair_->roles().mark();
    return journal_->begin_snapshot(make_snapshot(&mark), true) ? Installing::begun : Installing::failed;
}

} // namespace muster
