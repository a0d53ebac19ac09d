// SPDX-License-Identifier: MIT
// Whether the members of the last round have left the decision on the next one to this store (promises.hpp).
#include "rendezvous/machine/leader.hpp"

namespace muster {

namespace {
constexpr int64_t missing_leases = 2;      // for members that are missing
constexpr int64_t promise_leases = 4;      // with those that are: they may have to wait before they promise
constexpr int64_t ticks_in_lease = 8;      // to notice that this process was stopped
constexpr int64_t proof_part_of_lease = 4; // the time after its end in which a member's store has to refuse
} // namespace

// A process that was stopped itself does not know when others ended.
void Leader::at(int64_t now_ns) noexcept {
    if (now_ns - now_ns_ > hosting_.lease_ns / 4) awake_since_ns_ = now_ns;
    now_ns_ = now_ns;
}

bool Leader::promised(bool wanted) {
    if (!hosting_.hosted || !round_) return true;
    if (promises_.suffice(*round_)) return true;
    if (wanted) seek_promises(true);
    return false;
}

// The rank of a member in the last round, if it has a vote in its end.
std::optional<uint32_t> Leader::rank_in_last(const Known &member) const {
    if (!round_) return std::nullopt;
    if (member.place && member.place->attempt == round_->attempt) return member.place->rank;
    if (member.record.base == round_->attempt.number) return member.record.old_rank;
    return std::nullopt;
}

// With those of the members that are present.
Promises Leader::possible_promises() const {
    Promises possible = promises_;
    const uint64_t last = round_->attempt.number;
    for (const auto &[id, member] : members_)
        if (const auto rank = rank_in_last(member); rank && !promises_.by_member(last, *rank))
            possible.add(last, *rank, member.record.heir);
    return possible;
}

bool Leader::may_go_on() const {
    return round_ && possible_promises().suffice(*round_);
}

// At the store where the round was made the host promises last. So if the host dies while the others promise, it leaves
// a state file which says that it has not promised, and thus that no round followed here.
bool Leader::host_is_next() const {
    if (round_->elsewhere || round_->host == no_rank) return true;
    Promises with_it = promises_;
    with_it.add(round_->attempt.number, round_->host, false);
    return with_it.suffice(*round_);
}

// Asks for promises when they are `wanted` for a round that could begin. If they cannot be obtained, the joining
// members are notified.
void Leader::seek_promises(bool wanted) {
    if (!hosting_.hosted) return;
    look_at_ns_ = now_ns_ + hosting_.lease_ns / ticks_in_lease;
    if (running() || count(Class::seeking) == 0 || closed_ || committing_ || promised(false)) {
        stuck_since_ns_ = -1;
        return;
    }
    const uint64_t last = round_->attempt.number;
    const Promises possible = possible_promises();
    const bool enough = possible.suffice(*round_);
    if (enough) {
        if (wanted && (promises_asked_ != last || (!host_asked_ && host_is_next()))) {
            if (promises_asked_ != last) stuck_since_ns_ = now_ns_;
            promises_asked_ = last;
            host_asked_ = host_is_next();
            std::string value = std::to_string(last);
            if (host_asked_) value += Promises::of_host_too;
            host_.ask_for_leader(other, {if_leader(), {MUSTER_STORE_SET, keys::promise, value}});
        }
        if (promises_asked_ != last) stuck_since_ns_ = -1; // others are missing
    } else if (stuck_since_ns_ < 0) {
        stuck_since_ns_ = now_ns_;
    }
    const int64_t limit_ns = hosting_.lease_ns * (enough ? promise_leases : missing_leases);
    if (stuck_since_ns_ < 0 || now_ns_ < stuck_since_ns_ + limit_ns) return;
    stuck_since_ns_ = now_ns_;
    const uint32_t needed = Promises::needed(round_->world, round_->elsewhere);
    const uint32_t count = possible.count(*round_);
    std::string verdict = std::to_string(count) + " have met, and " + std::to_string(needed) + " are needed";
    if (count >= needed) verdict += ", with rank " + std::to_string(round_->host) + ", which served the store";
    host_.ask_for_leader(other, {if_leader(), {MUSTER_STORE_SET, keys::quorum, verdict}});
}

void Leader::see_gone(const Known &member) {
    const auto rank = rank_in_last(member);
    if (!hosting_.hosted || !rank || member.record.peer.empty()) return;
    if (promises_.has(round_->attempt.number, *rank) || now_ns_ - awake_since_ns_ < hosting_.lease_ns) return;
    dialled_[*rank] = {round_->attempt.number, now_ns_};
    host_.dial_for_leader(*rank, member.record.peer);
}

void Leader::dialled(uint32_t rank, bool refused) {
    const auto found = dialled_.find(rank);
    if (found == dialled_.end()) return;
    const Dialled of = found->second;
    dialled_.erase(found);
    if (!refused || now_ns_ - of.gone_ns > hosting_.lease_ns / proof_part_of_lease || awake_since_ns_ > of.gone_ns)
        return;
    host_.ask_for_leader(
        other, {if_leader(), {MUSTER_STORE_SET, keys::promise_of(of.round, rank), std::string(Promises::dead)}});
}

void Leader::forget_promises() {
    const std::vector<std::string> keys = promises_.take_before(round_->attempt.number);
    for (size_t first = 0; first < keys.size(); first += max_ops_ - 1) {
        AskOps ops{if_leader()};
        for (size_t i = first; i < std::min(first + max_ops_ - 1, keys.size()); i++)
            ops.push_back({MUSTER_STORE_DELETE, keys[i]});
        host_.ask_for_leader(other, std::move(ops));
    }
}

} // namespace muster
