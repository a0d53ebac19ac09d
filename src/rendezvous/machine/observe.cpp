// SPDX-License-Identifier: MIT
// What follows for a member from what it sees in the store.
#include "rendezvous/machine/machine.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace muster {

// ---- observations ---------------------------------------------------------------------------------------------------

// Answers can overtake each other: an observation that is older than the last one of a key does not count.
void Machine::see(std::string_view key, bool present, uint64_t version, uint64_t revision, std::string_view value,
                  uint32_t flags) {
    auto found = seen_.find(key);
    if (found == seen_.end()) found = seen_.emplace(std::string(key), 0).first;
    if (revision < found->second) return;
    found->second = revision;
    if (key == keys::leader) {
        if (!present && leader_version_ != 0) {
            lead_from_ns_ = now_ns_ + turn_ns();
            if (flags != 0) lost_term_ = leader_version_;
        }
        leader_version_ = present ? version : 0;
        if (present && value != settings_.id) leader_gone_ = Note::How::dead;
        if (!present && flags != 0) leader_gone_ = Note::how(flags);
        leader_id_ = present ? std::string(value) : std::string();
        if (leader_ && (leader_id_ != settings_.id || leader_version_ != leader_->term())) leader_over_ = true;
    } else if (key == keys::round) {
        round_ = present ? RoundRecord::read(value) : std::nullopt;
        round_version_ = present ? version : 0;
        if (round_ && round_->attempt.number >= known_round_) {
            known_round_ = round_->attempt.number;
            known_world_ = round_->world;
        }
        if (leader_) leader_->see_round(round_, round_version_);
    } else if (key == keys::aborted) {
        aborted_ = present ? RoundRecord::read(value) : std::nullopt;
    } else if (key == keys::note) {
        note_ = present ? Note::read(value) : std::nullopt;
        note_version_ = present ? version : 0;
        last_call_end_ns_ = note_ && note_->called ? now_ns_ + note_->last_call_remaining_ns : -1;
    } else if (key == keys::closed) {
        closed_ = present ? ClosedRecord::read(value) : std::nullopt;
        if (present && !closed_) closed_ = ClosedRecord{}; // invalid, but present
        closed_version_ = version;
        if (leader_) leader_->see_closed(closed_.has_value());
    } else if (key == keys::promise) {
        promise_wanted_ = 0;
        std::from_chars(value.data(), value.data() + value.size(), promise_wanted_);
        host_is_asked_ = value.ends_with(Promises::of_host_too);
    } else if (key == keys::quorum) {
        verdict_version_ = present ? version : 0;
        verdict_ = value;
        make_printable(verdict_.data(), verdict_.size());
    } else if (key == keys::moved) {
        moved_ = present ? MovedRecord::read(value) : std::nullopt;
        if (leader_ && moved_) leader_over_ = true; // no rounds are made here any more
    } else if (key == keys::place(settings_.id)) {
        mine_ = present ? RoundPlace::read(value) : std::nullopt;
        mine_bytes_ = present ? std::string(value) : std::string();
        place_gone_ = !present;
    }
}

// Of READ, of SET where it was done, and of whatever failed.
void Machine::see_entries(const AskOps &ops, const StoreAnswer &answer) {
    const bool done = answer.error.status == MUSTER_OK;
    for (const StoreEntry &entry : answer.result->entries) {
        const AskOp &op = ops[entry.op];
        const bool set = op.kind == MUSTER_STORE_SET;
        if (op.kind == MUSTER_STORE_DELETE) continue;
        see(op.key, entry.version != 0, entry.version, answer.result->revision,
            done && set   ? std::string_view(op.value)
            : entry.value ? entry.value->bytes()
                          : std::string_view());
    }
}

void Machine::watch(What what, uint64_t revision) {
    AskOp op{MUSTER_STORE_WATCH, what == What::watch_place ? keys::place(settings_.id) : std::string(keys::everybody)};
    op.version = revision;
    ask(what, {op});
}

void Machine::look() {
    ask(What::look, {{MUSTER_STORE_READ, keys::leader},
                     {MUSTER_STORE_READ, keys::round},
                     {MUSTER_STORE_READ, keys::aborted},
                     {MUSTER_STORE_READ, keys::note},
                     {MUSTER_STORE_READ, keys::closed},
                     {MUSTER_STORE_READ, keys::promise},
                     {MUSTER_STORE_READ, keys::moved},
                     {MUSTER_STORE_READ, keys::place(settings_.id)}});
}

void Machine::look_around() {
    if (place_gone_ && place_written_) lose_lease();
    if (lease_ != 0 && round_ && !round_->aborted) knows_peers_of(round_->attempt.number);
    consider_promising();
    see_place();
    see_closed();
    see_round();
    see_loss_of_leader();
    see_note();
    see_verdict();
    consider_moving();
    publish_home();
    consider_leading();
}

// Is there a place in a round for the join that waits?
void Machine::see_place() {
    if (phase_ != Phase::seeking || !mine_ || mine_->ticket != ticket_ || mine_->attempt.number == 0) return;
    const bool same = round_ && round_->attempt == mine_->attempt;
    // Two watches: the record of the round may arrive later. If both were written by one request it will not differ.
    if ((same && !round_->aborted) || (mine_->whole && (!round_ || round_->attempt.number < mine_->attempt.number))) {
        adopt_round();
        if (base_.promised) return;                         // another follows
        if (!knows_peers_of(mine_->attempt.number)) return; // will follow
        if (settings_.keeps_state && !saved(mine_->attempt, Membership::undecided)) {
            if (!under_way(What::save)) save(Membership::undecided, *mine_);
            return; // will follow
        }
        phase_ = Phase::in;
        gone_told_ = 0;
        left_told_ = dead_told_ = waiting_emitted_ = 0;
        leader_told_ = false;
        actions_.push_back({.kind = Action::begin, .tag = position_call_, .place = place_});
        position_call_ = 0;
        return emit(MUSTER_RENDEZVOUS_COMPLETE, place_.rank, place_.world, {});
    }
    // The record will follow, or the attempt was abandoned.
    if (!round_ || (!same && round_->attempt.number <= mine_->attempt.number)) return;
    // The round is over before it was seen here.
    if (same) adopt_round();
    if (same || looked_) return seek_anew();
    if (!under_way(What::look)) look();
}

void Machine::see_closed() {
    if (!closed_) return;
    discard_state(); // the run is over
    if (std::exchange(closed_told_, closed_version_) != closed_version_)
        emit(MUSTER_RENDEZVOUS_CLOSED, UINT32_MAX, 0, closed_->text());
    if (phase_ != Phase::seeking) return;
    finish(position_call_, Error::make(MUSTER_E_CLOSED, "%s: join: %s", where().c_str(), closed_->text().c_str()));
    go_out();
    sync();
}

void Machine::see_round() {
    if (phase_ != Phase::in || !round_) return;
    const bool same = round_->attempt == place_.attempt;
    if (same ? !round_->aborted : round_->attempt.number <= place_.attempt.number) return;
    std::string why = "round " + std::to_string(round_->attempt.number) + " is under way";
    // The next round may have begun, which this member need not join, before it has observed that.
    if (same)
        why = round_->abort_text();
    else if (aborted_ && aborted_->aborted && aborted_->attempt == place_.attempt)
        why = aborted_->abort_text();
    round_over(MUSTER_E_STALE, why); // first: a caller that receives the event finds the round over
    emit(MUSTER_RENDEZVOUS_ABORTED, UINT32_MAX, 0, why);
    phase_ = Phase::out;
    if (want_ == Want::exiting || want_ == Want::confirmed) want_ = Want::nothing;
    end_exit(why);
}

// All members see that its lease has ended: that need not wait for the next leader, which has to read the state first.
void Machine::see_loss_of_leader() {
    if (phase_ != Phase::in || leader_told_ || lost_term_ != place_.attempt.term) return;
    if (place_.leader >= place_.world || place_.leader == place_.rank) return;
    leader_told_ = true;
    dead_told_++;
    emit(MUSTER_RENDEZVOUS_DEAD, place_.leader, 1, Note::text_of(leader_gone_));
}

void Machine::see_note() {
    if (!note_) return;
    if (phase_ == Phase::seeking) {
        if (note_->seeking != seeking_emitted_) emit(MUSTER_RENDEZVOUS_JOINED, UINT32_MAX, note_->seeking, {});
        if (note_->called && !called_emitted_) emit(MUSTER_RENDEZVOUS_LAST_CALL, UINT32_MAX, note_->seeking, {});
        seeking_emitted_ = note_->seeking;
        called_emitted_ = note_->called;
    }
    if (phase_ != Phase::in || note_->round != place_.attempt.number) return;
    const auto lost = [&](Note::How how, uint32_t rank, uint32_t count) {
        if (rank == place_.rank) return;
        emit(how == Note::How::left ? MUSTER_RENDEZVOUS_LEFT : MUSTER_RENDEZVOUS_DEAD, rank, count, Note::text_of(how));
    };
    for (; gone_told_ < note_->gone.size(); gone_told_++) {
        const Note::Gone &one = note_->gone[gone_told_];
        if (leader_told_ && one.rank == place_.leader) continue;
        (one.how == Note::How::left ? left_told_ : dead_told_)++;
        lost(one.how, one.rank, 1);
    }
    if (note_->left > left_told_)
        lost(Note::How::left, UINT32_MAX, note_->left - std::exchange(left_told_, note_->left));
    if (note_->dead > dead_told_)
        lost(Note::How::dead, UINT32_MAX, note_->dead - std::exchange(dead_told_, note_->dead));
    if (note_->waiting != waiting_emitted_) {
        waiting_emitted_ = note_->waiting;
        emit(MUSTER_RENDEZVOUS_WAITING, UINT32_MAX, waiting_emitted_, {});
    }
    if (position_what_ != MUSTER_RENDEZVOUS_EXIT || note_->exited < place_.attempt.number) return;
    // The process that serves the store may end next, so its exit completes after the other members have confirmed
    // theirs.
    if (hosted() && want_ == Want::exiting) {
        want_ = Want::confirmed;
        sync();
    }
    if (!serves_store() || note_->confirmed >= place_.attempt.number) finish(position_call_, Error());
}

// ---- intentions -----------------------------------------------------------------------------------------------------

// With the known version as a condition: a request that was given up, and arrives late, has no effect.
AskOp Machine::set_record(MemberRecord::State state) const {
    const MemberRecord record{state,
                              ticket_,
                              lease_,
                              old_round_,
                              old_rank_,
                              settings_.preferred,
                              settings_.address,
                              settings_.order_key,
                              settings_.peer,
                              may_promise() ? base_.round : 0,
                              may_promise() && base_.promise(home_) == Promises::with_host,
                              is_host()};
    return AskOp{MUSTER_STORE_SET, keys::member(settings_.id), record.write()}
        .if_version(record_version_)
        .on_lease(lease_);
}

// Writes the intended record to the store.
void Machine::sync() {
    if (released_ || under_way(What::grant) || under_way(What::enter) || under_way(What::write)) return;
    switch (want_) {
    case Want::nothing:
        return;
    case Want::left: {
        if (has_state_ && state_.say != leave_say_ && state_.say != Membership::left) {
            if (!under_way(What::save)) save(leave_say_, state_.place);
            return; // a promise is on the disk before it is sent
        }
        if (lease_ == 0 || have_ == Want::nothing || have_ == Want::left) return settled();
        if (leader_ && !leader_->may_leave()) return; // it will lead to that
        AskOps ops{set_record(MemberRecord::left)};
        if (leader_) {
            ops.push_back(AskOp{MUSTER_STORE_DELETE, keys::leader}.if_version(leader_->term()));
            ops.push_back({MUSTER_STORE_SET, keys::note, leader_->last_note().write()});
        }
        if (leaving_.may_promise(home_))
            ops.push_back({MUSTER_STORE_SET, keys::promise_of(leaving_.round, leaving_.rank),
                           std::string(leaving_.promise(home_))});
        ask(What::write, std::move(ops), static_cast<uint64_t>(Want::left));
        return;
    }
    case Want::exiting:
    case Want::confirmed:
        if (have_ == want_ || lease_ == 0) return;
        ask(What::write, {set_record(want_ == Want::confirmed ? MemberRecord::confirmed : MemberRecord::exiting)},
            static_cast<uint64_t>(want_));
        return;
    case Want::seeking:
        break;
    }
    if (search_.under_way) return; // there is no store
    if (lease_ == 0) {
        ask_lease(What::grant, settings_.keep_alive_ns, false);
        return;
    }
    if (have_ == Want::seeking && have_ticket_ == ticket_) return;
    const AskOp set = set_record(MemberRecord::seeking);
    if (have_ != Want::nothing && have_ticket_ == ticket_) { // it does not exit after all
        ask(What::write, {set}, static_cast<uint64_t>(Want::seeking));
        return;
    }
    AskOps ops{AskOp{MUSTER_STORE_NONE, keys::config}.if_value(config_.write()),
               AskOp{MUSTER_STORE_NONE, keys::closed}.if_absent(),
               set,
               {MUSTER_STORE_READ, keys::leader},
               {MUSTER_STORE_READ, keys::round},
               {MUSTER_STORE_READ, keys::note}};
    if (hosted()) {
        ops.push_back({MUSTER_STORE_READ, keys::promise});
        ops.push_back({MUSTER_STORE_READ, keys::moved});
    }
    // On the lease: its deletion shows this member that it counts as dead.
    if (!place_written_)
        ops.push_back(AskOp{MUSTER_STORE_SET, keys::place(settings_.id),
                            RoundPlace{ticket_, {}, 0, 0, {}, false, no_rank, no_rank}.write()}
                          .on_lease(lease_));
    ask(What::enter, std::move(ops), ticket_);
}

void Machine::seek_anew() {
    ticket_++;
    sync();
}

void Machine::go_out(Membership::Say say) {
    phase_ = Phase::out;
    want_ = Want::left;
    leave_say_ = say;
    end_base();
}

// A join has ended without a round. At the store of its last round this member gives its promise, unless it is the
// host, so that the other members can make the next round without it. At another store it keeps its promise: that store
// may be lost before this member, or the process that is restarted in its place, joins again.
void Machine::stop_seeking() {
    phase_ = Phase::out;
    want_ = Want::left;
    if (base_.round != 0 && !base_.promised && home_ == base_.made_at && base_.rank != base_.host) {
        base_.promised = true;
        base_.promised_to = home_;
    }
    leaving_ = base_.promised ? base_ : Base{};
    leave_say_ = base_.promised || !has_state_ ? Membership::promised : state_.say;
}

// No store is known: nothing is promised to any, and the next join continues.
void Machine::pause_search() {
    withdraw(What::find);
    phase_ = Phase::out;
    want_ = Want::nothing;
}

// The member has left, and the store has recorded that.
void Machine::settled() {
    want_ = have_ = Want::nothing;
    stop_watching();
    leaving_ = {};
    if (lease_ != 0) actions_.push_back({.kind = Action::end_lease, .number = std::exchange(lease_, 0)});
    if (position_what_ == MUSTER_RENDEZVOUS_LEAVE) finish(position_call_, Error());
}

void Machine::stop_watching() {
    stop_leading();
    for (const What what : {What::watch_everybody, What::watch_place, What::look, What::lead}) withdraw(what);
    place_written_ = place_gone_ = false;
    record_version_ = 0;
    mine_.reset();
    note_.reset();
    leader_version_ = 0;
}

// This member counts as dead.
void Machine::lose_lease() {
    if (lease_ != 0) actions_.push_back({.kind = Action::end_lease, .number = std::exchange(lease_, 0)});
    have_ = Want::nothing;
    record_version_ = 0;
    place_written_ = place_gone_ = false;
    mine_.reset();
    stop_leading();
    for (const What what : {What::enter, What::write, What::lead}) withdraw(what);
    if (phase_ == Phase::seeking) return seek_anew();
    if (phase_ == Phase::in) {
        const std::string why = "this member was taken for dead";
        round_over(MUSTER_E_STALE, why);
        emit(MUSTER_RENDEZVOUS_EXPELLED, place_.rank, 0, why);
        phase_ = Phase::out;
        end_exit(why);
    }
    settled();
}

void Machine::end_exit(const std::string &why) {
    if (position_what_ == MUSTER_RENDEZVOUS_EXIT)
        finish(position_call_, Error::make(MUSTER_E_STALE, "%s: exit: round %llu: %s", where().c_str(),
                                           static_cast<unsigned long long>(place_.attempt.number), why.c_str()));
}

void Machine::lose_store(const Error &why) {
    if (search_.under_way) return end_calls(why); // it was lost before
    emit(MUSTER_RENDEZVOUS_LOST, UINT32_MAX, 0, {why.message, why.message_bytes});
    if (phase_ == Phase::in) round_over(MUSTER_E_STALE, "the store is lost");
    if (can_go_on(why)) return go_on_elsewhere(why);
    Error error =
        Error::make(why.status, "%s: %.*s", where().c_str(), static_cast<int>(why.message_bytes), why.message);
    error.os_errno = why.os_errno;
    // A member that has left a lost store has left.
    const bool has_left = position_what_ == MUSTER_RENDEZVOUS_LEAVE && why.status == MUSTER_E_STORE_LOST;
    finish(position_call_, has_left ? Error() : error);
    end_calls(error);
    phase_ = Phase::out;
    leader_.reset();
    settled();
}

// Requests in progress at the store: calls end, others are dropped.
void Machine::end_calls(const Error &why) {
    for (auto &[tag, asked] : asked_) {
        if (asked.what == What::abort || asked.what == What::close) finish(asked.detail, why);
        if (asked.under_way) actions_.push_back({.kind = Action::withdraw, .tag = tag});
    }
    asked_.clear();
}

// ---- leading --------------------------------------------------------------------------------------------------------

bool Machine::takes_part() const noexcept {
    return lease_ != 0 && have_ != Want::nothing && have_ != Want::left && want_ != Want::left;
}

// Of thousands of members that see the leader end, those of the first few ranks try at once; the others later, in case
// all of these have ended.
int64_t Machine::turn_ns() const noexcept {
    const uint32_t rank = phase_ == Phase::in ? place_.rank : old_rank_;
    return rank < first_to_lead ? 0 : next_to_lead_ns * (std::bit_width(rank / first_to_lead));
}

bool Machine::may_lead() const noexcept {
    if (leader_ || moved_ || !takes_part() || under_way(What::lead)) return false;
    if (leader_version_ != 0 && leader_id_ != settings_.id) return false;
    return under_way(What::watch_everybody); // otherwise the observations may be old
}

void Machine::consider_leading() {
    if (!may_lead() || now_ns_ < lead_from_ns_) return;
    ask(What::lead, {AskOp{MUSTER_STORE_SET, keys::leader, settings_.id}.if_absent().on_lease(lease_),
                     {MUSTER_STORE_READ, keys::round},
                     {MUSTER_STORE_READ, keys::note},
                     {MUSTER_STORE_READ, keys::closed}});
}

void Machine::stop_leading() {
    leader_.reset();
    leader_over_ = false;
    announce_at_ns_ = INT64_MAX;
    origin_says_.reset();
    withdraw(What::announce);
    withdraw(What::of_leader);
    withdraw(What::grant_of_leader);
}

// The conclusions of the leader about itself, after it has returned.
void Machine::settle_leader() {
    if (failed_.status != MUSTER_OK) {
        const Error why = std::exchange(failed_, Error());
        return lose_store(why);
    }
    if (!leader_over_) return;
    stop_leading();
    if (want_ == Want::left) sync();
    consider_leading();
}

void Machine::leader_sees(std::string_view key, bool present, uint64_t version, uint64_t revision,
                          std::string_view value) {
    see(key, present, version, revision, value);
}

void Machine::end_lease_of_leader(uint64_t lease) {
    actions_.push_back({.kind = Action::end_lease, .number = lease});
}

// ---- events ---------------------------------------------------------------------------------------------------------

void Machine::round_over(Status status, const std::string &why) {
    actions_.push_back({.kind = Action::over,
                        .error = Error::make(status, "%s: round %llu is over: %s", where().c_str(),
                                             static_cast<unsigned long long>(place_.attempt.number), why.c_str())});
}

void Machine::emit(uint32_t kind, uint32_t rank, uint32_t count, std::string_view text) {
    const uint64_t round = phase_ == Phase::in ? place_.attempt.number : round_ ? round_->attempt.number : 0;
    actions_.push_back({.kind = Action::emit, .event = make_event(kind, round, rank, count, text)});
}

} // namespace muster
