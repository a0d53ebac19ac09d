// SPDX-License-Identifier: MIT
// How a round is made. One request, if it is small enough: then the change of its place notifies each member.
// Else the places and the table are written first, in parts, and count once the record of the round names their
// attempt.
#include "rendezvous/machine/leader.hpp"
#include "rendezvous/machine/ranks.hpp"

#include <sodium.h>

#include <algorithm>
#include <tuple>

namespace muster {

namespace {

constexpr size_t commit_ops = 7; // besides places and pages
constexpr size_t part_conditions = 2;
constexpr size_t sweep_keys = 90;

Digest digest_of(const std::vector<std::string> &pages) {
    crypto_generichash_state state;
    Digest digest = {};
    crypto_generichash_init(&state, nullptr, 0, digest.size());
    for (const std::string &page : pages)
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char *>(page.data()), page.size());
    crypto_generichash_final(&state, digest.data(), digest.size());
    return digest;
}

} // namespace

// The members of the latest round first, then in the order of arrival.
std::vector<const Leader::Members::value_type *> Leader::choose() const {
    std::vector<const Members::value_type *> all;
    for (const auto &one : members_)
        if (one.second.as == Class::seeking) all.push_back(&one);
    const uint64_t latest = next_number() - 1;
    std::sort(all.begin(), all.end(), [&](const auto *a, const auto *b) {
        const auto key = [&](const auto *one) {
            const bool new_here = latest == 0 || one->second.record.old_round != latest;
            return std::tuple(new_here, one->second.version, std::string_view(one->first));
        };
        return key(a) < key(b);
    });
    if (all.size() > config_.max) all.resize(config_.max);
    return all;
}

void Leader::begin_commit() {
    const auto all = choose();
    std::vector<RankRequest> requests;
    for (const auto *one : all) {
        const MemberRecord &record = one->second.record;
        requests.push_back({record.old_round, record.old_round == 0 ? RankRequest::none : record.old_rank,
                            record.preferred, record.order_key, one->first, one->second.version});
    }
    const std::vector<uint32_t> ranks = give_ranks(requests);
    std::vector<const Members::value_type *> by_rank(all.size());
    for (size_t i = 0; i < all.size(); i++) by_rank[ranks[i]] = all[i];
    const auto rank_of = [&](const auto &is_it) {
        const auto found = std::find_if(by_rank.begin(), by_rank.end(), is_it);
        return found == by_rank.end() ? no_rank : static_cast<uint32_t>(found - by_rank.begin());
    };

    std::vector<std::string> pages;
    for (size_t first = 0; first < by_rank.size(); first += Round::default_page) {
        std::vector<std::string_view> addresses;
        for (size_t i = first; i < std::min<size_t>(first + Round::default_page, by_rank.size()); i++)
            addresses.push_back(by_rank[i]->second.record.address);
        pages.push_back(write_page(addresses));
    }

    std::vector<std::string_view> peers; // only of the first ranks: one of them will be present
    for (size_t i = 0; hosting_.hosted && i < std::min<size_t>(Round::default_page, by_rank.size()); i++)
        peers.push_back(by_rank[i]->second.record.peer);

    committing_ = true;
    commit_broken_ = somebody_died_ = false;
    changes_at_commit_ = changes_;
    attempt_ = {};
    attempt_.attempt = {next_number(), term_, ++sequence_};
    attempt_.world = static_cast<uint32_t>(by_rank.size());
    attempt_.digest = digest_of(pages);
    chosen_.clear();
    AskOps places;
    const bool whole = by_rank.size() + pages.size() + (peers.empty() ? 0 : 1) + commit_ops <= max_ops_;
    const uint32_t leader = rank_of([&](const auto *one) { return one->first == id_; });
    if (hosting_.hosted) attempt_.host = rank_of([](const auto *one) { return one->second.record.hosts; });
    for (uint32_t rank = 0; rank < by_rank.size(); rank++) {
        const MemberRecord &record = by_rank[rank]->second.record;
        const RoundPlace place{record.ticket, attempt_.attempt, rank,         attempt_.world, attempt_.digest,
                               whole,         leader,           attempt_.host};
        chosen_.emplace_back(by_rank[rank]->first, place);
        // On the lease of the member: if that has ended the request fails, so no member is in a round that is known to
        // be dead.
        places.push_back(
            AskOp{MUSTER_STORE_SET, keys::place(by_rank[rank]->first), place.write()}.on_lease(record.lease));
    }
    const std::string prefix = keys::of_round(attempt_.attempt.number) + "t/";
    for (size_t i = 0; i < pages.size(); i++)
        places.push_back({MUSTER_STORE_SET, prefix + std::to_string(i), std::move(pages[i])});

    if (!peers.empty()) places.push_back({MUSTER_STORE_SET, keys::peers(attempt_.attempt.number), write_page(peers)});

    if (whole) return send_final(std::move(places));
    for (size_t first = 0; first < places.size(); first += max_ops_ - part_conditions) {
        // A part that was given up, and arrives at the store late, has no effect when another attempt has succeeded.
        AskOps part_ops{if_leader(), AskOp{MUSTER_STORE_NONE, keys::round}.if_version(round_version_)};
        const size_t end = std::min(first + max_ops_ - part_conditions, places.size());
        for (size_t i = first; i < end; i++) part_ops.push_back(std::move(places[i]));
        parts_left_++;
        host_.ask_for_leader(part, std::move(part_ops));
    }
}

void Leader::send_final(AskOps places) {
    Note now;
    now.round = attempt_.attempt.number;
    now.exited = exited_;
    now.confirmed = confirmed_;
    now.present = attempt_.world;
    const uint32_t seeking = count(Class::seeking);
    now.seeking = seeking - std::min(seeking, attempt_.world);
    now.waiting = std::min(now.seeking, config_.max - attempt_.world);
    sent_note_ = now;
    AskOps ops{if_leader(),
               AskOp{MUSTER_STORE_SET, keys::round, attempt_.write()}.if_version(round_version_),
               AskOp{MUSTER_STORE_NONE, keys::closed}.if_absent(),
               {MUSTER_STORE_SET, keys::note, now.write()},
               {MUSTER_STORE_DELETE, keys::called},
               {MUSTER_STORE_DELETE, keys::last_call},
               AskOp{MUSTER_STORE_NONE, keys::moved}.if_absent()}; // where the run has moved from no round is made
    ops.insert(ops.end(), std::make_move_iterator(places.begin()), std::make_move_iterator(places.end()));
    host_.ask_for_leader(commit, std::move(ops));
}

void Leader::part_answered(const StoreAnswer &answer) {
    if (answer.error.status == MUSTER_E_CHANGED) {
        const StoreEntry &leader = answer.result->entries[0], &round = answer.result->entries[1];
        if ((leader.flags & MUSTER_STORE_FAILED) != 0) return host_.leader_ends();
        host_.leader_sees(keys::round, round.version != 0, round.version, answer.result->revision,
                          round.value ? round.value->bytes() : std::string_view());
    }
    commit_broken_ = commit_broken_ || answer.error.status != MUSTER_OK;
    somebody_died_ = somebody_died_ || answer.error.status == MUSTER_E_STALE;
    if (--parts_left_ != 0) return;
    if (commit_broken_) return give_up_commit();
    send_final({});
}

void Leader::commit_answered(const StoreAnswer &answer) {
    if (answer.error.status == MUSTER_OK) {
        note_version_ = answer.result->entries[3].version;
        return committed(answer.result->entries[1].version);
    }
    if (answer.error.status == MUSTER_E_STALE) {
        somebody_died_ = true;
        return give_up_commit();
    }
    const StoreResult &result = *answer.result;
    const auto value = [&](size_t i) {
        return result.entries[i].value ? result.entries[i].value->bytes() : std::string_view();
    };
    // The request had been applied before, and its answer was lost.
    if (value(1) == attempt_.write()) return committed(result.entries[1].version);
    if ((result.entries[0].flags & MUSTER_STORE_FAILED) != 0) return host_.leader_ends();
    constexpr std::pair<size_t, const std::string *> seen[] = {
        {1, &keys::round}, {2, &keys::closed}, {6, &keys::moved}};
    for (const auto &[i, key] : seen)
        host_.leader_sees(*key, result.entries[i].version != 0, result.entries[i].version, result.revision, value(i));
    give_up_commit();
}

// If a member has died whose end was not seen, it will be seen, and another attempt follows. If it was seen meanwhile,
// or if there was another obstacle, which is known now, another attempt follows at once.
void Leader::give_up_commit() {
    committing_ = false;
    hold_ = somebody_died_ && changes_ == changes_at_commit_;
}

void Leader::committed(uint64_t version) {
    committing_ = false;
    if (version > round_version_) { // a watch may have shown already that the round was aborted
        round_ = attempt_;
        round_version_ = version;
    }
    const bool is_running = round_->attempt == attempt_.attempt && !round_->aborted;
    gone_.clear();
    left_ = dead_ = 0;
    for (const auto &[id, place] : chosen_)
        if (const auto member = members_.find(id); member != members_.end()) member->second.place = place;
    reclassify_all();
    for (const auto &[id, place] : chosen_) { // members that left while the request was in progress
        if (!is_running) break;               // members leave an aborted round anyway
        const auto member = members_.find(id);
        if (member == members_.end())
            note_gone(place.rank, Note::How::dead);
        else if (member->second.as != Class::present && member->second.as != Class::exiting)
            note_gone(place.rank, Note::How::left);
    }
    see(keys::called, false, version, {});
    see(keys::last_call, false, version, {});
    if (call_lease_ != 0) host_.end_lease_of_leader(std::exchange(call_lease_, 0));
    sent_before_ns_ = std::exchange(sent_ns_, now_ns_);
    forget_promises();
    if (!sweeping_) begin_sweep();
}

// The remains of earlier rounds, the oldest first: no member may read them any more. Each round has pages of its table,
// so a search through the keys misses none.
void Leader::begin_sweep() {
    sweeping_ = true;
    AskOp op{MUSTER_STORE_KEYS, std::string(keys::rounds)};
    op.number = sweep_keys;
    host_.ask_for_leader(sweep, {op});
}

void Leader::swept(const StoreAnswer &answer) {
    AskOps ops{if_leader()};
    uint64_t oldest = 0;
    for (const StoreEntry &entry : answer.result->entries) {
        const std::string_view key = entry.key->bytes().substr(answer.result->prefix_bytes);
        const uint64_t number = keys::number_of(key);
        if (number == 0 || !round_ || number >= round_->attempt.number || (oldest != 0 && number != oldest)) continue;
        if (oldest == 0 && queues_) ops.push_back({MUSTER_STORE_CLEAR, keys::of_round(number)});
        oldest = number;
        ops.push_back({MUSTER_STORE_DELETE, std::string(key)});
    }
    sweeping_ = oldest != 0;
    if (sweeping_) host_.ask_for_leader(sweep_delete, std::move(ops));
}

void Leader::sweep_answered(const AskOps &ops, const StoreAnswer &answer) {
    if (queues_ && (answer.result->entries[1].flags & MUSTER_STORE_MORE) != 0)
        return host_.ask_for_leader(sweep_delete, {if_leader(), ops[1]});
    begin_sweep();
}

} // namespace muster
