// SPDX-License-Identifier: MIT
// What a member keeps in its state file (membership.hpp), and what it publishes of the place where the run is: at its
// own store, for members that look for the run there; at the origin, the address in the URL, for newcomers and for
// restarted processes.
#include "rendezvous/machine/machine.hpp"

namespace muster {

// ---- the state file -------------------------------------------------------------------------------------------------

bool Machine::saved(const RoundAttempt &attempt, Membership::Say say) const noexcept {
    return has_state_ && state_.place.attempt == attempt && state_.say == say;
}

void Machine::save(Membership::Say say, const RoundPlace &place) {
    const uint64_t tag = next_tag_++;
    Asked &asked = asked_[tag];
    asked.what = What::save;
    const Base &base = want_ == Want::left ? leaving_ : base_;
    const std::string &made_at = place.attempt == place_.attempt ? made_at_ : state_.home;
    asked.membership = {config_, place, say, made_at, {}, {}, peers_};
    if (say == Membership::promised) asked.membership.promised_to = base.promised ? base.promised_to : home_;
    submit(tag, asked);
}

void Machine::state_saved(const Asked &asked, const StoreAnswer &answer) {
    if (answer.error.status == MUSTER_OK) {
        state_ = asked.membership;
        has_state_ = true;
        return sync();
    }
    // Without a file a restarted process knows nothing of the run, and has no vote in it.
    discard_state();
    if (asked.membership.say == Membership::undecided && phase_ == Phase::seeking) {
        finish(position_call_, Error::make(answer.error.status, "%s: join: %s", where().c_str(), answer.error.message));
        go_out();
    }
    sync();
}

void Machine::discard_state() {
    if (!settings_.keeps_state || !has_state_) return;
    has_state_ = false;
    actions_.push_back({.kind = Action::discard});
}

// ---- where the run is -----------------------------------------------------------------------------------------------

bool Machine::is_host() const noexcept {
    return settings_.keeps_state && serves_store();
}

bool Machine::serves_store() const noexcept {
    if (!hosted()) return false;
    return home_ == settings_.peer || (settings_.serves && home_ == settings_.origin);
}

std::string Machine::moved_record(const std::string &address) const {
    return MovedRecord{config_.identity, known_round_, address}.write();
}

// Once a round was made at the store where this member is: then none is made elsewhere.
void Machine::publish_home() {
    if (!hosted() || settings_.peer.empty() || home_ == published_) return;
    if (lease_ == 0 || search_.under_way || !round_ || round_->elsewhere) return;
    const bool moved = home_ != settings_.origin;
    if (!moved && published_.empty()) return; // the run has not moved so far
    published_ = home_;
    AskOps ops{{MUSTER_STORE_SET, keys::config, config_.write()}, {MUSTER_STORE_SET, keys::stands}};
    if (home_ == settings_.peer)
        ops.push_back({MUSTER_STORE_DELETE, keys::moved});
    else
        ops.push_back({MUSTER_STORE_SET, keys::moved, moved_record(home_)});
    actions_.push_back({.kind = Action::own, .ops = std::move(ops)});
    if (moved) point_to(home_);
}

void Machine::point_to(const std::string &address) {
    if (settings_.origin.empty() || settings_.origin == settings_.peer) return;
    actions_.push_back({.kind = Action::point,
                        .ops = {{MUSTER_STORE_SET, keys::config, config_.write()},
                                {MUSTER_STORE_SET, keys::moved, moved_record(address)}}});
}

// The leader of a run that has moved checks the origin periodically: a process that knows nothing of the run may serve
// a new store there. If that store has made no round so far, the leader replaces the address of the store that is lost:
// a member that does not know of the loss may have written that after the others met here. If enough members for a
// round have met here, it also replaces the address of another store where some have met.
void Machine::announce() {
    if (!leader_ || now_ns_ < announce_at_ns_) return;
    announce_at_ns_ = now_ns_ + settings_.keep_alive_ns / 4;
    const bool here = home_ == settings_.origin || settings_.origin.empty() || settings_.peer.empty();
    if (!hosted() || here || !leader_->ready() || !round_ || under_way(What::announce)) return;
    AskOp moved{MUSTER_STORE_SET, keys::moved, moved_record(home_)};
    if (round_->elsewhere) {
        const bool replaces = origin_says_ && origin_says_->identity == config_.identity &&
                              origin_says_->round <= known_round_ && leader_->may_go_on();
        moved = std::move(moved).if_value(replaces ? origin_says_->write() : moved_record(made_at_));
    }
    write_at_origin(std::move(moved));
}

void Machine::write_at_origin(AskOp moved) {
    const uint64_t tag = next_tag_++;
    asked_[tag].what = What::announce;
    actions_.push_back({.kind = Action::announce, .tag = tag, .ops = {std::move(moved)}, .address = settings_.origin});
}

// `old` was written by a member that has missed rounds and serves the store at the origin. The first member that knows
// a later round replaces it by the address of its own store, and the members after it find that address.
void Machine::correct(const MovedRecord &old) {
    if (!base_.may_promise(settings_.peer) || under_way(What::announce)) return;
    stand_for_host();
    write_at_origin(AskOp{MUSTER_STORE_SET, keys::moved, moved_record(settings_.peer)}.if_value(old.write()));
}

void Machine::announced(const StoreAnswer &answer) {
    if (answer.error.status != MUSTER_E_CHANGED) return;
    const Ref<Blob> &value = answer.result->entries[0].value;
    origin_says_ = value ? MovedRecord::read(value->bytes()) : std::nullopt;
}

// ---- addresses of the run at other stores ---------------------------------------------------------------------------

// The record of this store says that the run is at another one.
void Machine::consider_moving() {
    if (phase_ != Phase::seeking || search_.under_way || !moved_ || entered_at_ == 0 || now_ns_ < move_from_ns_) return;
    if (settings_.peer.empty() || moved_->address == home_ || moved_->round < known_round_) return;
    if (moved_->identity != config_.identity && known_round_ != 0) return;
    if (round_ && !round_->elsewhere && round_->attempt.number >= moved_->round) return; // that record is old
    move_from_ns_ = now_ns_ + settings_.keep_alive_ns / 4;
    follow(moved_->address);
}

void Machine::follow(const std::string &address) {
    if (lease_ != 0) actions_.push_back({.kind = Action::end_lease, .number = lease_});
    search_.why = Error::make(MUSTER_E_STORE_LOST, "the run has moved to %s, which does not answer", address.c_str());
    search_.back = home_;
    search_.hint = address;
    search_.hints = {address};
    search_.until_ns = 0;
    leave_store();
    stand_for_host();
    search();
}

} // namespace muster
