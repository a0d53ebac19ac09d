// SPDX-License-Identifier: MIT
// What the leader knows, and what it decides. How a round is made: commit.cpp.
#include "rendezvous/machine/leader.hpp"

#include <algorithm>
#include <charconv>

namespace muster {

namespace {

constexpr int64_t page_size = 1000;

uint64_t number_in(std::string_view text) noexcept {
    uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

bool is_in(bool present, bool exiting) noexcept {
    return present || exiting;
}

} // namespace

// ---- loading ------------------------------------------------------------------------------------------------------

void Leader::begin(uint64_t revision, const std::optional<RoundRecord> &round, uint64_t round_version,
                   const std::optional<Note> &note, uint64_t note_version, bool closed, Note::How leader_before) {
    leader_before_ = leader_before;
    note_version_ = note_version;
    round_ = round;
    round_version_ = round_version;
    closed_ = closed;
    if (note) sent_note_ = *note;
    exited_ = sent_note_.exited;
    confirmed_ = sent_note_.confirmed;
    if (round_ && sent_note_.round == round_->attempt.number) {
        gone_ = sent_note_.gone;
        left_ = sent_note_.left;
        dead_ = sent_note_.dead;
    }
    load(revision);
}

void Leader::load(uint64_t revision) {
    revision_ = revision;
    loaded_ = members_listed_ = places_listed_ = false;
    members_.clear();
    places_.clear();
    std::fill(std::begin(counts_), std::end(counts_), 0);
    called_for_ = 0;
    last_call_key_ = false;
    promises_.clear();
    list(keys::incoming, {}, list_members);
    list(keys::places, {}, list_places);
}

void Leader::list(std::string_view prefix, std::string_view behind, Detail detail) {
    AskOp op{MUSTER_STORE_LIST, std::string(prefix), std::string(behind)};
    op.number = page_size;
    host_.ask_for_leader(detail, {op});
}

void Leader::listed(Detail detail, const StoreAnswer &answer) {
    const StoreResult &result = *answer.result;
    std::string_view last;
    for (const StoreEntry &entry : result.entries) {
        last = entry.key->bytes().substr(result.prefix_bytes);
        if (detail == list_members) {
            see(last, true, entry.version, entry.value->bytes());
        } else if (const auto place = RoundPlace::read(entry.value->bytes())) {
            places_.insert_or_assign(std::string(last.substr(keys::places.size())), *place);
        }
    }
    if (!result.entries.empty() && (result.entries.back().flags & MUSTER_STORE_MORE) != 0)
        return list(detail == list_members ? keys::incoming : keys::places, last, detail);
    (detail == list_members ? members_listed_ : places_listed_) = true;
    if (members_listed_ && places_listed_) loaded();
}

// Only the leader writes places, and they are deleted with their members: from here on they are known.
void Leader::loaded() {
    for (auto &[id, place] : places_)
        if (const auto member = members_.find(id); member != members_.end()) member->second.place = place;
    reclassify_all();
    find_missing();
    places_.clear();
    loaded_ = true;
    update_call();
    if (call_ == Call::runs) call_end_ns_ = now_ns_ + config_.last_call_ns; // at most
    watch_on(revision_);
}

// Ranks that no member has any more, and that ended while there was no leader.
void Leader::find_missing() {
    if (!round_ || round_->aborted) return;
    std::vector<bool> known(round_->world);
    for (const Note::Gone &one : gone_)
        if (one.rank < known.size()) known[one.rank] = true;
    std::vector<bool> left(round_->world);
    for (const auto &[id, member] : members_) {
        if (!member.place || member.place->attempt != round_->attempt || member.place->rank >= known.size()) continue;
        if (is_in(member.as == Class::present, member.as == Class::exiting))
            known[member.place->rank] = true;
        else
            left[member.place->rank] = true;
    }
    // Some of the ranks that are not in the list were counted, but not listed.
    uint32_t unlisted = left_ + dead_ - static_cast<uint32_t>(gone_.size());
    std::vector<uint32_t> missing;
    for (uint32_t rank = 0; rank < known.size(); rank++) {
        if (known[rank]) continue;
        if (unlisted != 0)
            unlisted--;
        else
            missing.push_back(rank);
    }
    // If only one is missing it is the last leader, whose end was observed.
    const Note::How how = missing.size() == 1 ? leader_before_ : Note::How::dead;
    for (const uint32_t rank : missing) note_gone(rank, left[rank] ? Note::How::left : how);
    leader_before_ = Note::How::dead;
}

void Leader::watch_on(uint64_t revision) {
    AskOp op{MUSTER_STORE_WATCH, std::string(keys::incoming)};
    op.version = revision;
    host_.ask_for_leader(watch, {op});
}

void Leader::watched(const StoreAnswer &answer) {
    if (answer.error.status != MUSTER_OK) { // too much has changed meanwhile
        reload_ = true;
        return;
    }
    const StoreResult &result = *answer.result;
    for (const StoreEntry &entry : result.entries)
        see(entry.key->bytes().substr(result.prefix_bytes), (entry.flags & MUSTER_STORE_PRESENT) != 0, entry.version,
            entry.value ? entry.value->bytes() : std::string_view(), entry.flags);
    watch_on(result.revision);
}

void Leader::begin_reload() {
    reload_ = false;
    loaded_ = false;
    host_.ask_for_leader(look, {{MUSTER_STORE_READ, keys::round}, {MUSTER_STORE_READ, keys::closed}});
}

void Leader::looked(const StoreAnswer &answer) {
    const StoreResult &result = *answer.result;
    const std::string *const names[] = {&keys::round, &keys::closed};
    for (size_t i = 0; i < 2; i++) {
        const StoreEntry &entry = result.entries[i];
        host_.leader_sees(*names[i], entry.version != 0, entry.version, result.revision,
                          entry.value ? entry.value->bytes() : std::string_view());
    }
    load(result.revision);
}

// ---- observations ---------------------------------------------------------------------------------------------------

void Leader::see(std::string_view key, bool present, uint64_t version, std::string_view value, uint32_t flags) {
    if (key.starts_with(keys::members))
        return member_seen(key.substr(keys::members.size()), present, version, value, Note::how(flags));
    if (key.starts_with(keys::promises)) return promises_.see(key.substr(keys::promises.size()), value);
    if (key == keys::called && version >= called_version_) {
        called_version_ = version;
        called_for_ = present ? number_in(value) : 0;
    } else if (key == keys::last_call && version >= last_call_version_) {
        last_call_version_ = version;
        last_call_key_ = present;
    }
    update_call();
}

void Leader::member_seen(std::string_view id, bool present, uint64_t version, std::string_view value, Note::How gone) {
    auto found = members_.find(id);
    if (found != members_.end() && version <= found->second.version) return;
    changes_++;
    hold_ = false;
    auto record = present ? MemberRecord::read(value) : std::nullopt;
    if (found == members_.end()) {
        if (!record) return; // an invalid record counts as absent
        found = members_.try_emplace(std::string(id)).first;
        counts_[static_cast<size_t>(Class::idle)]++;
    }
    Known &member = found->second;
    const bool was_in = is_in(member.as == Class::present, member.as == Class::exiting);
    const uint32_t rank = member.place ? member.place->rank : 0;
    if (!record) {
        const Note::How how = member.record.state == MemberRecord::left ? Note::How::left : gone;
        if (how == Note::How::broken || how == Note::How::ended) see_gone(member); // silence is no proof
        counts_[static_cast<size_t>(member.as)]--;
        members_.erase(found);
        if (was_in) note_gone(rank, how);
        return;
    }
    member.record = std::move(*record);
    member.version = version;
    reclassify(member);
    if (was_in && !is_in(member.as == Class::present, member.as == Class::exiting)) note_gone(rank, Note::How::left);
}

Leader::Class Leader::classify(const Known &member) const {
    const MemberRecord &record = member.record;
    if (record.state == MemberRecord::left) return Class::idle;
    const bool placed = member.place && member.place->attempt.number != 0 && member.place->ticket == record.ticket;
    if (placed && round_ && member.place->attempt == round_->attempt) {
        if (round_->aborted) return Class::idle; // it will join again
        return record.state == MemberRecord::exiting || record.state == MemberRecord::confirmed ? Class::exiting
                                                                                                : Class::present;
    }
    if (placed && round_ && member.place->attempt.number < round_->attempt.number)
        return Class::idle; // so will this one
    return record.state == MemberRecord::seeking ? Class::seeking
                                                 : Class::idle; // a place of an attempt that was abandoned
}

void Leader::reclassify(Known &member) {
    counts_[static_cast<size_t>(member.as)]--;
    member.as = classify(member);
    counts_[static_cast<size_t>(member.as)]++;
}

void Leader::reclassify_all() {
    for (auto &[id, member] : members_) reclassify(member);
}

void Leader::see_round(const std::optional<RoundRecord> &round, uint64_t version) {
    if (version <= round_version_) return;
    round_ = round;
    round_version_ = version;
    reclassify_all();
    update_call();
}

void Leader::note_gone(uint32_t rank, Note::How how) {
    (how == Note::How::left ? left_ : dead_)++;
    if (gone_.size() < Note::max_gone) gone_.push_back({rank, how});
}

// ---- requests -------------------------------------------------------------------------------------------------------

void Leader::answer(uint64_t detail, const AskOps &ops, const StoreAnswer &answer) {
    const Status status = answer.error.status;
    // A store without queues, or an older server, which cannot clear them. Their remains are deleted with the store.
    const bool cannot_clear = status == MUSTER_E_ARG || status == MUSTER_E_UNSUPPORTED;
    if (detail == sweep_delete && cannot_clear && std::exchange(queues_, false)) return begin_sweep();
    const bool of_watch = detail == watch && status == MUSTER_E_STALE;
    const bool of_lease = status == MUSTER_E_STALE && (detail == commit || detail == part || detail == call);
    if (status != MUSTER_OK && status != MUSTER_E_CHANGED && !of_watch && !of_lease)
        return host_.leader_fails(answer.error);
    if (status == MUSTER_E_CHANGED && detail != commit && detail != part &&
        (answer.result->entries[0].flags & MUSTER_STORE_FAILED) != 0)
        return host_.leader_ends();
    switch (detail) {
    case list_members:
    case list_places:
        return listed(static_cast<Detail>(detail), answer);
    case watch:
        return watched(answer);
    case look:
        return looked(answer);
    case part:
        return part_answered(answer);
    case commit:
        return commit_answered(answer);
    case note:
        is_sending_ = false;
        note_version_ = answer.result->entries[1].version;
        if (status == MUSTER_E_CHANGED) sent_note_ = {}; // it has another value: write it again
        return;
    case grant_call:
        return call_granted(answer);
    case call:
        return call_answered(ops, answer);
    case drop_call:
        drop_asked_ = false;
        see(keys::called, false, answer.result->revision, {});
        return see(keys::last_call, false, answer.result->revision, {});
    case sweep:
        return swept(answer);
    case sweep_delete:
        return sweep_answered(ops, answer);
    default:
        return;
    }
}

void Leader::go_on(int64_t now_ns) {
    at(now_ns);
    if (reload_ && !committing_) begin_reload();
    if (!loaded_ || leaving_) return;
    if (running() && count(Class::present) == 0) {
        exited_ = round_->attempt.number;
        if (confirmed_ != exited_ && is_exit_confirmed()) confirmed_ = exited_;
    }
    if (!committing_ && !hold_ && !closed_) decide();
    seek_promises(false);
    send_note();
}

// Members that have left or died count as confirmed.
bool Leader::is_exit_confirmed() const noexcept {
    return std::all_of(members_.begin(), members_.end(), [](const auto &one) {
        return one.second.as != Class::exiting || one.second.record.state == MemberRecord::confirmed;
    });
}

void Leader::decide() {
    const uint32_t seeking = count(Class::seeking);
    if (!running() && seeking >= config_.max) return promised(true) ? begin_commit() : void();
    if (!running() && seeking >= config_.min) {
        if (config_.last_call_ns < 0 || call_ == Call::over) return promised(true) ? begin_commit() : void();
        if (call_ == Call::none && !drop_asked_) begin_call();
        return;
    }
    if ((call_ == Call::runs || call_ == Call::over) && !drop_asked_) drop_call_keys();
}

// ---- the last call: a key with a lease that is not renewed, so the clock of the store decides -----------------------

void Leader::update_call() {
    if (call_ == Call::asked) return;
    call_ = called_for_ == 0 || called_for_ != next_number() ? Call::none : last_call_key_ ? Call::runs : Call::over;
}

void Leader::begin_call() {
    call_ = Call::asked;
    host_.lease_for_leader(grant_call, config_.last_call_ns);
}

void Leader::call_granted(const StoreAnswer &answer) {
    call_lease_ = static_cast<uint64_t>(answer.result->entries[0].number);
    call_end_ns_ = now_ns_ + config_.last_call_ns;
    host_.ask_for_leader(call, {if_leader(),
                                {MUSTER_STORE_SET, keys::called, std::to_string(next_number())},
                                AskOp{MUSTER_STORE_SET, keys::last_call}.on_lease(call_lease_)});
}

void Leader::call_answered(const AskOps &ops, const StoreAnswer &answer) {
    call_ = Call::none;
    if (answer.error.status == MUSTER_E_STALE) { // it was over before it was written down
        called_for_ = number_in(ops[1].value);
        last_call_key_ = false;
        return update_call();
    }
    see(keys::called, true, answer.result->entries[1].version, ops[1].value);
    see(keys::last_call, true, answer.result->entries[2].version, {});
}

void Leader::drop_call_keys() {
    drop_asked_ = true;
    host_.ask_for_leader(drop_call,
                         {if_leader(), {MUSTER_STORE_DELETE, keys::called}, {MUSTER_STORE_DELETE, keys::last_call}});
    if (call_lease_ != 0) host_.end_lease_of_leader(std::exchange(call_lease_, 0));
}

// ---- notes ----------------------------------------------------------------------------------------------------------

Note Leader::make_note() const {
    Note note;
    note.round = round_ ? round_->attempt.number : 0;
    note.exited = exited_;
    note.confirmed = confirmed_;
    note.seeking = count(Class::seeking);
    note.present = count(Class::present) + count(Class::exiting);
    note.exiting = count(Class::exiting);
    note.waiting = std::min(note.seeking, config_.max - std::min(config_.max, note.present));
    note.left = left_;
    note.dead = dead_;
    note.gone = gone_;
    note.called = call_ == Call::runs;
    note.last_call_remaining_ns = note.called ? std::max<int64_t>(0, call_end_ns_ - now_ns_) : -1;
    return note;
}

Note Leader::last_note() {
    leaving_ = true;
    Note note = make_note();
    const auto found = members_.find(id_);
    if (found == members_.end() || !is_in(found->second.as == Class::present, found->second.as == Class::exiting))
        return note;
    note.present--;
    if (found->second.as == Class::exiting) note.exiting--;
    note.left++;
    if (note.gone.size() < Note::max_gone) note.gone.push_back({found->second.place->rank, Note::How::left});
    return note;
}

// Each note is sent to all members: so the interval grows with their number. One note may follow another at once, so
// that a death just after the beginning of a round is not delayed; the intervals after it make up for that.
void Leader::send_note() {
    note_at_ns_ = INT64_MAX;
    if (is_sending_ || committing_) return;
    Note now = make_note();
    if (now.has_content_of(sent_note_)) return;
    const int64_t due = sent_before_ns_ + 2 * pace_ns * static_cast<int64_t>(members_.size());
    if (now_ns_ < due) {
        note_at_ns_ = due;
        return;
    }
    is_sending_ = true;
    sent_before_ns_ = std::exchange(sent_ns_, now_ns_);
    AskOps ops{if_leader(), AskOp{MUSTER_STORE_SET, keys::note, now.write()}.if_version(note_version_)};
    // The leader sees its own note before its watch returns: it must not complete its exit without a close that
    // precedes it.
    if (now.round != 0 && now.exited == now.round) ops.push_back({MUSTER_STORE_READ, keys::closed});
    host_.ask_for_leader(note, std::move(ops));
    sent_note_ = std::move(now);
}

} // namespace muster
