// SPDX-License-Identifier: MIT
// Calls, requests and their answers. What follows from what is seen: machine_sees.cpp.
#include "rendezvous/machine/machine.hpp"

#include <algorithm>
#include <cerrno>

namespace muster {

namespace {

constexpr int64_t again_ns = 100'000'000; // until a request is repeated for which the connection to the store broke

const char *name_of(uint32_t what) noexcept {
    constexpr const char *names[] = {"", "join", "leave", "exit", "abort", "close"};
    return what < sizeof names / sizeof names[0] ? names[what] : "";
}

} // namespace

// A restarted process begins as one that has lost the store: it searches for the run where that was.
Machine::Machine(MachineSettings settings) : settings_(std::move(settings)) {
    if (!settings_.former) return;
    state_ = *settings_.former;
    has_state_ = true;
    config_.identity = state_.config.identity;
    place_ = state_.place;
    old_round_ = known_round_ = peers_of_ = place_.attempt.number;
    old_rank_ = place_.rank;
    known_world_ = place_.world;
    peers_ = state_.peers;
    home_ = made_at_ = state_.home;
    if (state_.say == Membership::undecided || (state_.say == Membership::promised && !state_.promised_to.empty())) {
        base_ = {place_.attempt.number, place_.rank, place_.host, made_at_, false, state_.promised_to, true};
        base_.promised = state_.say == Membership::promised;
    }
    search_.under_way = true;
    search_.back = home_;
    search_.next = peers_.size();
    search_.why = Error::make(MUSTER_E_QUORUM, "this host's state file says that the run is not new");
}

// ---- calls ----------------------------------------------------------------------------------------------------------

void Machine::call(uint64_t id, uint32_t what, const std::string &reason, int64_t now_ns) {
    now_ns_ = now_ns;
    const bool of_position = what <= MUSTER_RENDEZVOUS_EXIT;
    const auto refuse = [&](Status status, const char *why) {
        finish(id, Error::make(status, "%s: %s: %s", where().c_str(), name_of(what), why));
    };
    if (of_position && position_call_ != 0) return refuse(MUSTER_E_BUSY, "the member joins, leaves or exits already");
    if ((what == MUSTER_RENDEZVOUS_EXIT || what == MUSTER_RENDEZVOUS_ABORT) && phase_ != Phase::in)
        return refuse(MUSTER_E_STALE, "this member is in no round");
    if (of_position) {
        position_call_ = id;
        position_what_ = what;
    }
    const std::string author = settings_.address.substr(0, 256);
    switch (what) {
    case MUSTER_RENDEZVOUS_JOIN:
        if (phase_ == Phase::in) round_over(MUSTER_E_STALE, "this member joined again");
        if (lease_ == 0 && !search_.under_way) closed_.reset(); // the last observation is old
        phase_ = Phase::seeking;
        want_ = Want::seeking;
        ticket_++;
        seeking_emitted_ = 0;
        called_emitted_ = false;
        search_.until_ns = 0;
        search_.other_run = false;
        if (search_.under_way) closed_ ? see_closed() : search();
        break;
    case MUSTER_RENDEZVOUS_LEAVE:
        if (phase_ == Phase::in) round_over(MUSTER_E_STALE, "this member has left");
        if (search_
                .under_way) { // no store is known, so there is nothing to leave, and its next process goes on looking
            pause_search();
            finish(position_call_, Error());
            break;
        }
        go_out(Membership::left);
        break;
    case MUSTER_RENDEZVOUS_EXIT:
        want_ = Want::exiting;
        break;
    case MUSTER_RENDEZVOUS_ABORT: {
        RoundRecord record = place_.round();
        const std::string running = record.write();
        record.aborted = true;
        record.author = author;
        record.reason = reason;
        ask(What::abort,
            {AskOp{MUSTER_STORE_SET, keys::round, record.write()}.if_value(running),
             {MUSTER_STORE_SET, keys::aborted, record.write()}},
            id);
        break;
    }
    default:
        ask(What::close, {AskOp{MUSTER_STORE_SET, keys::closed, ClosedRecord{author, reason}.write()}.if_absent()}, id);
        break;
    }
    sync();
}

void Machine::stop(uint64_t id, Status why, double seconds, int64_t now_ns) {
    now_ns_ = now_ns;
    uint32_t what = position_call_ == id ? position_what_ : 0;
    if (what == 0) // an abort or a close: the request may still be applied
        for (auto &[tag, asked] : asked_)
            if ((asked.what == What::abort || asked.what == What::close) && asked.detail == id) {
                what =
                    asked.what == What::abort ? uint32_t{MUSTER_RENDEZVOUS_ABORT} : uint32_t{MUSTER_RENDEZVOUS_CLOSE};
                asked.detail = 0;
            }
    if (what == 0) return; // it is over
    char detail[256] = "the store has not answered";
    if (what == MUSTER_RENDEZVOUS_JOIN && note_)
        std::snprintf(detail, sizeof detail, "%u of at least %u are there%s", note_->seeking, settings_.config.min,
                      note_->present != 0 ? ", and a round is under way" : "");
    if (what == MUSTER_RENDEZVOUS_EXIT && note_)
        std::snprintf(detail, sizeof detail, "%u of %u are there", note_->exiting, note_->present);
    if (what == MUSTER_RENDEZVOUS_JOIN && search_.under_way)
        std::snprintf(detail, sizeof detail, "too few of the %u of round %llu are in reach: %.160s", known_world_,
                      static_cast<unsigned long long>(known_round_), search_.why.message);
    if (what == MUSTER_RENDEZVOUS_JOIN && moved_)
        std::snprintf(detail, sizeof detail, "the run has moved to %.40s, which does not answer",
                      moved_->address.c_str());
    const Error error = Error::make(why, "%s: %s: %s after %.3f s%s", where().c_str(), name_of(what), detail, seconds,
                                    why == MUSTER_E_CANCELED ? ", cancelled" : "");
    if (position_call_ != id) {
        finish(id, error);
        return;
    }
    finish(position_call_, error);
    if (what == MUSTER_RENDEZVOUS_JOIN && search_.under_way) return pause_search();
    if (what == MUSTER_RENDEZVOUS_JOIN) stop_seeking();
    if (what == MUSTER_RENDEZVOUS_EXIT && phase_ == Phase::in) want_ = Want::seeking;
    sync();
}

void Machine::release(int64_t now_ns) {
    now_ns_ = now_ns;
    finish(position_call_, Error::make(MUSTER_E_CLOSED, "%s: the member was released", where().c_str()));
    for (const auto &[tag, asked] : asked_) {
        if (asked.what == What::abort || asked.what == What::close) {
            uint64_t call = asked.detail;
            finish(call, Error::make(MUSTER_E_CLOSED, "%s: the member was released", where().c_str()));
        }
        if (asked.under_way) actions_.push_back({.kind = Action::withdraw, .tag = tag});
    }
    asked_.clear();
    leader_.reset();
    if (phase_ == Phase::in) round_over(MUSTER_E_STALE, "the member was released");
    phase_ = Phase::out;
    want_ = have_ = Want::nothing;
    if (lease_ != 0) actions_.push_back({.kind = Action::end_lease, .number = std::exchange(lease_, 0)});
    released_ = true;
}

void Machine::wake(int64_t now_ns) {
    now_ns_ = now_ns;
    for (auto &[tag, asked] : asked_)
        if (!asked.under_way && asked.again_at_ns <= now_ns) submit(tag, asked);
    if (leader_) leader_->go_on(now_ns);
    settle_leader();
    consider_leading();
    search_on();
    consider_promising();
    consider_moving();
    announce();
}

int64_t Machine::wake_at_ns() const noexcept {
    int64_t at = leader_ ? leader_->wake_at_ns() : INT64_MAX;
    if (search_.under_way && phase_ == Phase::seeking) at = std::min({at, search_.visit_until_ns, search_.again_at_ns});
    if (promise_is_wanted() && !base_.promised && !search_.under_way) at = std::min(at, promise_from_ns_);
    if (may_lead()) at = std::min(at, lead_from_ns_);
    if (leader_) at = std::min(at, announce_at_ns_);
    if (moved_ && phase_ == Phase::seeking && !search_.under_way && move_from_ns_ > now_ns_)
        at = std::min(at, move_from_ns_);
    for (const auto &[tag, asked] : asked_)
        if (!asked.under_way) at = std::min(at, asked.again_at_ns);
    return at;
}

muster_rendezvous_state Machine::state(int64_t now_ns) const {
    muster_rendezvous_state state{};
    state.phase = static_cast<uint32_t>(phase_);
    if (closed_) state.flags |= MUSTER_RENDEZVOUS_IS_CLOSED;
    if (leads()) state.flags |= MUSTER_RENDEZVOUS_IS_LEADER;
    state.round = known_round_;
    if (phase_ == Phase::in) state.round = std::max(state.round, place_.attempt.number);
    state.last_call_remaining_ns = -1;
    if (!note_) {
        state.missing = settings_.config.min;
        return state;
    }
    state.joined = note_->seeking;
    state.missing = settings_.config.min - std::min(settings_.config.min, note_->seeking);
    state.waiting = note_->waiting;
    state.spares = note_->seeking - note_->waiting;
    state.present = note_->present;
    state.exiting = note_->exiting;
    if (note_->called) {
        state.flags |= MUSTER_RENDEZVOUS_IS_LAST_CALL;
        state.last_call_remaining_ns = std::max<int64_t>(0, last_call_end_ns_ - now_ns);
    }
    return state;
}

// ---- requests -------------------------------------------------------------------------------------------------------

uint64_t Machine::ask(What what, AskOps ops, uint64_t detail) {
    const uint64_t tag = next_tag_++;
    Asked &asked = asked_[tag];
    asked.what = what;
    asked.detail = detail;
    asked.ops = std::move(ops);
    submit(tag, asked);
    return tag;
}

uint64_t Machine::ask_lease(What what, int64_t ttl_ns, bool manual, uint64_t detail) {
    const uint64_t tag = next_tag_++;
    Asked &asked = asked_[tag];
    asked.what = what;
    asked.detail = detail;
    asked.ttl_ns = ttl_ns;
    asked.manual = manual;
    submit(tag, asked);
    return tag;
}

void Machine::submit(uint64_t tag, Asked &asked) {
    asked.under_way = true;
    if (asked.what == What::save)
        actions_.push_back({.kind = Action::save, .tag = tag, .membership = asked.membership});
    else if (asked.ttl_ns != 0)
        actions_.push_back({.kind = Action::lease, .tag = tag, .ttl_ns = asked.ttl_ns, .manual = asked.manual});
    else
        actions_.push_back({.kind = Action::ask, .tag = tag, .ops = asked.ops});
}

bool Machine::under_way(What what) const noexcept {
    return std::any_of(asked_.begin(), asked_.end(), [&](const auto &one) { return one.second.what == what; });
}

void Machine::withdraw(What what) {
    for (auto at = asked_.begin(); at != asked_.end();) {
        if (at->second.what != what) {
            ++at;
            continue;
        }
        if (at->second.under_way) actions_.push_back({.kind = Action::withdraw, .tag = at->first});
        at = asked_.erase(at);
    }
}

// Each request can be repeated: it has a condition, or has the same effect again. So if the connection to the store
// breaks and it is unknown whether the request was applied, it is repeated; at most until the lease of the member has
// ended.
bool Machine::try_again(Asked &asked, const StoreAnswer &answer) {
    if (!may_pass(answer.error.status) || asked.what == What::find || asked.what == What::dial_of_leader ||
        asked.what == What::announce || asked.what == What::save)
        return false;
    if (asked.failing_since_ns == 0) asked.failing_since_ns = std::max<int64_t>(now_ns_, 1);
    if (now_ns_ - asked.failing_since_ns > settings_.keep_alive_ns) return false;
    asked.under_way = false;
    asked.again_at_ns = now_ns_ + again_ns;
    return true;
}

void Machine::answer(uint64_t tag, const StoreAnswer &answer, int64_t now_ns) {
    now_ns_ = now_ns;
    const auto found = asked_.find(tag);
    if (found == asked_.end() || try_again(found->second, answer)) return;
    if (leader_) leader_->at(now_ns);
    const Asked asked = std::move(found->second);
    asked_.erase(found);
    looked_ = asked.what == What::look;
    take(asked, answer);
    if (released_) return;
    look_around();
    if (want_ == Want::left) sync(); // perhaps it has waited for the leader it is
    if (leader_) leader_->go_on(now_ns);
    settle_leader();
}

void Machine::take(const Asked &asked, const StoreAnswer &answer) {
    const Status status = answer.error.status;
    const bool known = status == MUSTER_OK || status == MUSTER_E_CHANGED || status == MUSTER_E_STALE;
    if (asked.what == What::of_leader || asked.what == What::grant_of_leader) {
        if (leader_) leader_->answer(asked.detail, asked.ops, answer);
        return;
    }
    if (asked.what == What::dial_of_leader) {
        if (leader_) leader_->dialled(static_cast<uint32_t>(asked.detail), answer.error.os_errno == ECONNREFUSED);
        return;
    }
    if (asked.what == What::find) return found(asked, answer);
    if (asked.what == What::announce) return announced(answer);
    if (asked.what == What::save) return state_saved(asked, answer);
    if (!known) {
        if (asked.what == What::abort || asked.what == What::close) finish(uint64_t{asked.detail}, answer.error);
        return lose_store(answer.error);
    }
    switch (asked.what) {
    case What::peers:
        return peers_read(asked, answer);
    case What::promise:
        return;
    case What::grant:
        if (status != MUSTER_OK) return lose_store(answer.error);
        lease_ = static_cast<uint64_t>(answer.result->entries[0].number);
        return sync();
    case What::enter:
        return entered(asked, answer);
    case What::write:
        return written(asked, answer);
    case What::watch_everybody:
    case What::watch_place:
        return watched(asked, answer);
    case What::look:
        see_entries(asked.ops, answer);
        if (!under_way(What::watch_everybody)) watch(What::watch_everybody, answer.result->revision);
        if (!under_way(What::watch_place)) watch(What::watch_place, answer.result->revision);
        return;
    case What::lead:
        return led(asked, answer);
    case What::abort:
        return was_aborted(asked, answer);
    default:
        return was_closed(asked, answer);
    }
}

void Machine::entered(const Asked &asked, const StoreAnswer &answer) {
    if (answer.error.status == MUSTER_E_STALE) return lose_lease();
    see_entries(asked.ops, answer);
    const auto &entries = answer.result->entries;
    if (record_written(answer, 2, asked.ops)) {
        have_ = Want::seeking;
        have_ticket_ = asked.detail;
        place_written_ = true;
        entered_at_ = answer.result->revision;
        if (!settings_.peer.empty() && home_ == settings_.peer) // it may have left, and joins again
            actions_.push_back({.kind = Action::own, .ops = {{MUSTER_STORE_SET, keys::stands}}});
        if (!under_way(What::watch_everybody)) watch(What::watch_everybody, answer.result->revision);
        if (!under_way(What::watch_place)) watch(What::watch_place, answer.result->revision);
        return sync();
    }
    const bool closed = (entries[1].flags & MUSTER_STORE_FAILED) != 0;
    if (closed && phase_ == Phase::seeking) return; // look_around() sees to it
    if ((entries[0].flags & MUSTER_STORE_FAILED) != 0 && phase_ == Phase::seeking) {
        const auto there = RunConfig::read(entries[0].value ? entries[0].value->bytes() : std::string_view());
        finish(position_call_,
               Error::make(MUSTER_E_ARG, "%s: join: the run was opened anew with %s, here %s", where().c_str(),
                           there ? there->text().c_str() : "nothing", config_.text().c_str()));
        go_out();
    }
    sync();
}

void Machine::written(const Asked &asked, const StoreAnswer &answer) {
    if (answer.error.status == MUSTER_E_STALE) return lose_lease();
    if (record_written(answer, 0, asked.ops)) {
        have_ = static_cast<Want>(asked.detail);
    } else {
        if (leader_) leader_->stay();
        if (asked.ops.size() > 1 && (answer.result->entries[1].flags & MUSTER_STORE_FAILED) != 0) stop_leading();
    }
    sync();
}

// Also if it was written before, and the answer was lost.
bool Machine::record_written(const StoreAnswer &answer, size_t index, const AskOps &ops) {
    const StoreEntry &entry = answer.result->entries[index];
    record_version_ = entry.version;
    return answer.error.status == MUSTER_OK || (entry.value && entry.value->bytes() == ops[index].value);
}

void Machine::watched(const Asked &asked, const StoreAnswer &answer) {
    if (answer.error.status != MUSTER_OK) { // more has changed than the store remembers
        if (under_way(What::look)) withdraw(What::look);
        look();
        return;
    }
    const StoreResult &result = *answer.result;
    for (const StoreEntry &entry : result.entries)
        see(entry.key->bytes().substr(result.prefix_bytes), (entry.flags & MUSTER_STORE_PRESENT) != 0, entry.version,
            entry.version, entry.value ? entry.value->bytes() : std::string_view(), entry.flags);
    if (lease_ != 0) watch(asked.what, result.revision);
}

void Machine::led(const Asked &asked, const StoreAnswer &answer) {
    if (answer.error.status == MUSTER_E_STALE) return lose_lease();
    see_entries(asked.ops, answer);
    const StoreEntry &entry = answer.result->entries[0];
    if (answer.error.status == MUSTER_OK)
        see(keys::leader, true, entry.version, answer.result->revision, settings_.id);
    else if (leader_id_ != settings_.id || leader_version_ == 0)
        return; // another was faster
    if (leader_ || !takes_part()) return;
    const Hosting hosting{hosted(), settings_.keep_alive_ns};
    leader_ = std::make_unique<Leader>(static_cast<LeaderHost &>(*this), settings_.id, config_, hosting,
                                       settings_.max_ops, settings_.queues, leader_version_, now_ns_);
    leader_->begin(answer.result->revision, round_, round_version_, note_, note_version_, closed_.has_value(),
                   leader_gone_);
    announce_at_ns_ = now_ns_;
}

void Machine::was_aborted(const Asked &asked, const StoreAnswer &answer) {
    const RoundAttempt attempt = RoundRecord::read(asked.ops[0].value)->attempt;
    see_entries(asked.ops, answer);
    if (answer.error.status == MUSTER_OK) {
        const StoreEntry &entry = answer.result->entries[0];
        see(keys::round, true, entry.version, answer.result->revision, asked.ops[0].value);
    }
    uint64_t call = asked.detail;
    if (round_ && round_->attempt == attempt && round_->aborted) return finish(call, Error());
    finish(call, Error::make(MUSTER_E_STALE, "%s: abort: round %llu is over", where().c_str(),
                             static_cast<unsigned long long>(attempt.number)));
}

void Machine::was_closed(const Asked &asked, const StoreAnswer &answer) {
    const StoreEntry &entry = answer.result->entries[0];
    const std::string_view mine = asked.ops[0].value;
    see(keys::closed, true, entry.version, answer.result->revision,
        answer.error.status == MUSTER_OK || !entry.value ? mine : entry.value->bytes());
    uint64_t call = asked.detail;
    finish(call, Error());
}

void Machine::finish(uint64_t &call, const Error &error) {
    if (call != 0) actions_.push_back({.kind = Action::finish, .tag = call, .error = error});
    call = 0;
}

void Machine::finish(uint64_t &&call, const Error &error) {
    uint64_t here = call;
    finish(here, error);
}

} // namespace muster
