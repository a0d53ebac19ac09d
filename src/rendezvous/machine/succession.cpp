// SPDX-License-Identifier: MIT
// What a member does when the store is lost with the process that served it. Each member has a store of its own, where
// the run can go on, and knows those of the first ranks of its round. It seeks the one of the lowest rank that is there
// and has lost the store too. Where it seeks does not matter for what may happen: that is a matter of promises
// (promises.hpp).
#include "base/text.hpp"
#include "rendezvous/machine/machine.hpp"

#include <algorithm>
#include <cerrno>

namespace muster {

namespace {

// All in leases, how long a member lasts unheard of.
// For a member that does not know that the process has ended; see leader_promises.cpp.
constexpr int64_t wait_to_promise = 2;
constexpr int64_t search_for = 6;
constexpr int64_t visit_for = 2; // the members there may not have noticed the loss so far

} // namespace

// ---- the vote of the member in the end of its round -----------------------------------------------------------------

bool Machine::knows_peers_of(uint64_t round) {
    if (!hosted() || peers_of_ >= round) return true;
    if (!under_way(What::peers)) ask(What::peers, {{MUSTER_STORE_READ, keys::peers(round)}}, round);
    return false;
}

void Machine::peers_read(const Asked &asked, const StoreAnswer &answer) {
    peers_of_ = asked.detail;
    const StoreEntry &entry = answer.result->entries[0];
    if (!entry.value) return; // it is over
    peers_.clear();
    std::string_view peer;
    while (peers_.size() < Round::default_page &&
           read_page(entry.value->bytes(), static_cast<uint32_t>(peers_.size()), peer))
        peers_.emplace_back(peer);
}

// The member has seen that it is in a round: from here on it has a vote in the end of that round, also if the store is
// lost before the round has begun for it.
void Machine::adopt_round() {
    if (place_.attempt == mine_->attempt) return;
    place_ = *mine_;
    old_round_ = place_.attempt.number;
    old_rank_ = place_.rank;
    base_ = {};
    if (!hosted()) return;
    made_at_ = home_;
    base_.round = place_.attempt.number;
    base_.rank = place_.rank;
    base_.host = place_.host;
    base_.made_at = made_at_;
    known_round_ = base_.round;
    known_world_ = place_.world;
    search_.until_ns = 0;
    promise_sent_ = false;
}

// The member has no vote any more: it leaves. Its own store remains available if others use it.
void Machine::end_base() {
    if (base_.round == 0) return;
    leaving_ = std::exchange(base_, {});
    if (!settings_.peer.empty() && home_ != settings_.peer)
        actions_.push_back({.kind = Action::own, .ops = {{MUSTER_STORE_DELETE, keys::stands}}});
}

void Machine::consider_promising() {
    if (!promise_is_wanted() || !may_promise() || promise_sent_ || search_.under_way) return;
    if (!base_.promised && now_ns_ < promise_from_ns_) return;
    if (!base_.promised) {
        base_.promised = true; // even if this is never sent
        base_.promised_to = home_;
    }
    if (under_way(What::save)) return;
    if (has_state_ && !saved(place_.attempt, Membership::promised))
        return save(Membership::promised, place_); // it is sent once it is on the disk
    promise_sent_ = true;
    ask(What::promise,
        {{MUSTER_STORE_SET, keys::promise_of(base_.round, base_.rank), std::string(base_.promise(home_))}});
}

// At the store where the round was made its host is asked last (leader_promises.cpp).
bool Machine::promise_is_wanted() const noexcept {
    return base_.round != 0 && promise_wanted_ == base_.round &&
           (host_is_asked_ || base_.rank != base_.host || home_ != base_.made_at);
}

// ---- the store is lost ----------------------------------------------------------------------------------------------

bool Machine::can_go_on(const Error &why) const noexcept {
    return !settings_.peer.empty() && want_ != Want::left && !peers_.empty() &&
           (phase_ == Phase::seeking || base_.round != 0) &&
           (why.status == MUSTER_E_STORE_LOST || may_pass(why.status));
}

void Machine::go_on_elsewhere(const Error &why) {
    const bool gone = why.os_errno == ECONNREFUSED;
    if (!gone) promise_from_ns_ = now_ns_ + wait_to_promise * settings_.keep_alive_ns;
    if (phase_ != Phase::seeking) {
        if (position_what_ == MUSTER_RENDEZVOUS_EXIT)
            finish(position_call_, Error::make(why.status, "%s: exit: %s", where().c_str(), why.message));
        phase_ = Phase::out;
        want_ = Want::nothing;
    }
    end_calls(Error::make(why.status, "%s: %s", where().c_str(), why.message));
    search_.back = gone ? std::string() : home_;
    search_.next = search_.walked = search_.verdicts = 0;
    search_.why = why;
    search_.refused.clear();
    search_.hints.clear();
    leave_store();
    stand_for_host();
    if (phase_ == Phase::seeking) search();
}

// The observations of the store, and the state of this member there, do not count any more.
void Machine::leave_store() {
    search_.under_way = true;
    stop_watching();
    for (const What what : {What::grant, What::enter, What::write, What::peers, What::promise, What::find})
        withdraw(what);
    lease_ = 0;
    have_ = Want::nothing;
    seen_.clear();
    moved_.reset();
    leader_id_.clear();
    round_.reset(); // closed_ is kept
    round_version_ = note_version_ = 0;
    promise_wanted_ = verdict_version_ = entered_at_ = 0;
    host_is_asked_ = false;
    lost_term_ = 0; // terms are versions, which begin again at each store
    promise_sent_ = false;
}

// From now on the others may use this member's own store as that of the run.
void Machine::stand_for_host() {
    if (!base_.may_promise(settings_.peer)) return;
    // Once, and not at the store where the round was made: others may have made the next one there, and may have
    // published its address at the origin.
    if (base_.made_at == settings_.peer || std::exchange(stood_for_, base_.round) == base_.round) return;
    published_ = settings_.peer;
    point_to(settings_.peer);
    RoundRecord lost = place_.round();
    lost.aborted = lost.elsewhere = true;
    lost.author = settings_.address.substr(0, 256);
    lost.reason = "the store was lost";
    AskOps ops{{MUSTER_STORE_SET, keys::config, config_.write()},
               {MUSTER_STORE_SET, keys::round, lost.write()},
               {MUSTER_STORE_DELETE, keys::note},
               {MUSTER_STORE_DELETE, keys::called},
               {MUSTER_STORE_DELETE, keys::last_call},
               {MUSTER_STORE_DELETE, keys::moved},
               {MUSTER_STORE_SET, keys::stands}};
    if (closed_)
        ops.push_back({MUSTER_STORE_SET, keys::closed, closed_->write()});
    else
        ops.push_back({MUSTER_STORE_DELETE, keys::closed});
    actions_.push_back({.kind = Action::own, .ops = std::move(ops)});
}

// ---- another one is sought ------------------------------------------------------------------------------------------

// First the address that another store names; then the members' own stores, by rank, then the former store of the run,
// and last the origin, where newcomers search. A member's own store is available only when that member has lost the
// store.
std::string Machine::next_store(bool &has_to_stand) {
    has_to_stand = false;
    if (!search_.hint.empty()) return std::exchange(search_.hint, {});
    while (search_.next < peers_.size()) {
        const std::string &peer = peers_[search_.next++];
        const bool stands = base_.may_promise(settings_.peer);
        has_to_stand = true;
        if (!peer.empty() && (peer != settings_.peer || stands)) return peer;
    }
    has_to_stand = false;
    if (search_.next++ == peers_.size() && !search_.back.empty()) {
        search_.tried_back = true;
        return search_.back;
    }
    if (search_.next == peers_.size() + 1) search_.next++;
    return search_.next == peers_.size() + 2 && settings_.origin != search_.back ? settings_.origin : std::string();
}

int64_t Machine::search_until_ns() const noexcept {
    if (settings_.majority_ns < 0) return INT64_MAX;
    const int64_t longest = settings_.majority_ns == 0 ? search_for * settings_.keep_alive_ns : settings_.majority_ns;
    return std::max(now_ns_, promise_from_ns_) + longest;
}

// So many processes have ended that the rest is less than the majority. They may be restarted: but if no longer wait
// was requested, the search ends.
bool Machine::too_few() const noexcept {
    if (settings_.majority_ns != 0 || known_world_ == 0) return false;
    return known_world_ - std::min<size_t>(known_world_, search_.refused.size()) < known_world_ / 2 + 1;
}

void Machine::search() {
    const int64_t lease = settings_.keep_alive_ns;
    withdraw(What::find);
    search_.under_way = true;
    search_.visit_until_ns = search_.again_at_ns = INT64_MAX;
    if (search_.until_ns == 0) search_.until_ns = search_until_ns();
    if (now_ns_ >= search_.until_ns || too_few()) return give_up();
    if (base_.heir && search_.tried_back && !std::exchange(search_.stood, true)) stand_for_host();
    bool has_to_stand = false;
    home_ = next_store(has_to_stand);
    if (home_.empty()) { // once more, from the first
        search_.next = 0;
        search_.hints.clear();
        search_.again_at_ns = now_ns_ + lease / 4;
        return;
    }
    search_.visit_until_ns = now_ns_ + visit_for * lease;
    actions_.push_back({.kind = Action::visit, .address = home_});
    ask(What::find, {{has_to_stand ? uint32_t{MUSTER_STORE_GET} : uint32_t{MUSTER_STORE_READ}, keys::stands},
                     {MUSTER_STORE_READ, keys::round},
                     {MUSTER_STORE_READ, keys::moved},
                     {MUSTER_STORE_READ, keys::config}});
}

void Machine::search_on() {
    if (search_.under_way && phase_ == Phase::seeking &&
        now_ns_ >= std::min(search_.visit_until_ns, search_.again_at_ns))
        search();
}

void Machine::found(const Asked &, const StoreAnswer &answer) {
    if (phase_ != Phase::seeking) return; // the next join searches again
    const bool of_peer = std::find(peers_.begin(), peers_.end(), home_) != peers_.end();
    if (answer.error.os_errno == ECONNREFUSED && of_peer) search_.refused.insert(home_);
    if (answer.error.status != MUSTER_OK) return search();
    const auto value = [&](size_t i) {
        const Ref<Blob> &bytes = answer.result->entries[i].value;
        return bytes ? bytes->bytes() : std::string_view();
    };
    if (!same_run(value(3))) return search();
    if (const auto moved = MovedRecord::read(value(2))) {
        const bool news = moved->identity == config_.identity && moved->round >= known_round_ &&
                          moved->address != home_ && search_.hints.insert(moved->address).second;
        if (news) search_.hint = moved->address;
        if (home_ == settings_.origin && moved->identity == config_.identity && moved->round < known_round_)
            correct(*moved);
        return search();
    }
    const auto round = RoundRecord::read(value(1));
    const uint64_t number = round ? round->attempt.number : 0;
    if (number < known_round_) return search(); // it has missed something
    search_.under_way = false;
    search_.visit_until_ns = INT64_MAX;
    seek_anew(); // a place that it may have had there does not count any more
}

// A newcomer takes the identity of the run to which it is redirected.
bool Machine::same_run(std::string_view bytes) {
    const auto there = RunConfig::read(bytes);
    if (!there) return false;
    if (known_round_ == 0) config_.identity = there->identity;
    if (there->identity == config_.identity) return true;
    search_.other_run = true;
    return false;
}

// The leader there could not obtain enough promises.
void Machine::see_verdict() {
    if (phase_ != Phase::seeking || search_.under_way || verdict_version_ <= entered_at_ || entered_at_ == 0) return;
    search_.why = Error::make(MUSTER_E_QUORUM, "%s", verdict_.c_str());
    if (settings_.peer.empty()) { // there is no other place to search
        finish(position_call_, Error::make(MUSTER_E_QUORUM, "%s: join: %s", where().c_str(), search_.why.message));
        go_out();
        return sync();
    }
    if (lease_ != 0) actions_.push_back({.kind = Action::end_lease, .number = lease_});
    search_.back = home_;
    choose_where_to_go_on();
    search_.hints.clear();
    leave_store();
    stand_for_host();
    search();
}

// Two groups, neither of which is large enough, may be at two stores. If all continued along the list they could follow
// each other forever: so in two of three cases a member begins with the first store again, and all meet there.
void Machine::choose_where_to_go_on() {
    constexpr uint64_t turns = 3;
    if (search_.verdicts % turns == 0) search_.walked = search_.next;
    search_.next = ++search_.verdicts % turns != 0 ? 0 : search_.walked;
}

// The member keeps its vote, and its knowledge: the next join continues. The errno says whether the process that served
// the store is known to have ended.
void Machine::give_up() {
    const char *const other =
        search_.other_run ? "; a store that answers has another run of this name, which was begun anew" : "";
    Error why = known_world_ == 0
                    ? Error::make(MUSTER_E_STORE_LOST, "%s: join: %s", where().c_str(), search_.why.message)
                    : Error::make(MUSTER_E_QUORUM, "%s: join: too few of the %u of round %llu are in reach: %s%s",
                                  where().c_str(), known_world_, static_cast<unsigned long long>(known_round_),
                                  search_.why.message, other);
    why.os_errno = search_.why.os_errno;
    finish(position_call_, why);
    pause_search();
}

void Machine::dial_for_leader(uint32_t rank, const std::string &peer) {
    const uint64_t tag = next_tag_++;
    asked_[tag].what = What::dial_of_leader;
    asked_[tag].detail = rank;
    actions_.push_back({.kind = Action::dial, .tag = tag, .address = peer});
}

} // namespace muster
