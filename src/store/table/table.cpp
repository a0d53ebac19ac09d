// SPDX-License-Identifier: MIT
// Waiting requests, and their continuation.
#include "store/table/table.hpp"

#include "store/table/changes.hpp"

#include <algorithm>
#include <utility>

namespace muster {

// A request for which memory runs out is over with that; a hanging one that cannot be tried, too.
void StoreTable::submit(StoreWaiter &who, List<StoreWaiter> &over) noexcept {
    std::vector<std::string> came;
    try {
        if (who.request.ops().front().kind == MUSTER_STORE_BARRIER) {
            if (arrive(who, over)) over.push_back(who);
            return;
        }
        const StoreOp *const lacking = attempt(who, came);
        if (lacking == nullptr) {
            over.push_back(who);
            return let_go_on(came, over);
        }
        if (hang(who, *lacking)) return;
    } catch (const std::bad_alloc &) {
    }
    who.answer = {Error::make(MUSTER_E_NOMEM, "out of memory"), {}};
    over.push_back(who);
}

bool StoreTable::do_now(StoreWaiter &who) noexcept {
    List<StoreWaiter> over;
    submit(who, over);
    const bool hangs = withdraw(who);
    while (over.pop_front() != nullptr) {
    }
    return !hangs;
}

bool StoreTable::withdraw(StoreWaiter &who) noexcept {
    if (who.at_ == nullptr) return false;
    take_down(who);
    return true;
}

// New values may let requests continue that make more new values.
void StoreTable::let_go_on(std::vector<std::string> &came, List<StoreWaiter> &over) noexcept {
    seen_before_ = came.empty() ? 0 : revision_ - 1;
    for (size_t i = 0; i < came.size(); i++) {
        const auto found = places_.find(came[i]);
        if (found == places_.end()) continue;
        StorePlace &place = *found->second;
        bool used_up = false; // an earlier request has consumed the new value
        for (StoreWaiter *who = place.waiters.first(); who != nullptr && !used_up;) {
            StoreWaiter &next = *std::exchange(who, List<StoreWaiter>::after(*who));
            const StoreOp *lacking = nullptr;
            try {
                lacking = attempt(next, came);
                if (lacking != nullptr && place_name(*lacking) == place.name) {
                    used_up = lacks(*lacking); // otherwise it needs more than is present: another request may need less
                    continue;
                }
            } catch (const std::bad_alloc &) {
                next.answer = {Error::make(MUSTER_E_NOMEM, "out of memory"), {}};
                lacking = nullptr;
            }
            place.waiters.remove(next);
            next.at_ = nullptr;
            if (lacking != nullptr && hang(next, *lacking)) continue;
            if (lacking != nullptr) next.answer = {Error::make(MUSTER_E_NOMEM, "out of memory"), {}};
            over.push_back(next);
        }
        if (place.waiters.empty()) drop_place(place);
    }
    seen_before_ = 0;
}

std::string StoreTable::place_name(const StoreOp &op) {
    if (op.kind == MUSTER_STORE_WATCH) return place_name('w', op.key);
    if (op.kind == MUSTER_STORE_BARRIER) return place_name('b', op.key);
    return place_name(op.of_queue() ? 'q' : 'k', op.key);
}

std::string StoreTable::place_name(char kind, std::string_view name) {
    std::string place(1, kind);
    return place.append(name);
}

StorePlace &StoreTable::place(const std::string &name) {
    if (const auto found = places_.find(name); found != places_.end()) return *found->second;
    auto fresh = std::make_unique<StorePlace>();
    fresh->name = name;
    size_t *const watched = name[0] == 'w' ? &watched_[name.size() - 1] : nullptr; // 0 does no harm if it ends here
    StorePlace &made = *places_.emplace(name, std::move(fresh)).first->second;
    if (watched != nullptr) ++*watched;
    return made;
}

void StoreTable::drop_place(StorePlace &empty) noexcept {
    if (empty.name[0] == 'w') {
        const auto watched = watched_.find(empty.name.size() - 1);
        if (--watched->second == 0) watched_.erase(watched);
    }
    places_.erase(places_.find(empty.name));
}

// The places where requests wait for such a change.
void StoreTable::note_change(std::string_view key, bool fresh, std::vector<std::string> &came) const {
    if (places_.empty()) return;
    const auto note = [&](std::string name) {
        if (places_.count(name) != 0) came.push_back(std::move(name));
    };
    if (fresh) note(place_name('k', key));
    for (const auto &[length, count] : watched_)
        if (length <= key.size()) note(place_name('w', key.substr(0, length)));
}

bool StoreTable::hang(StoreWaiter &who, const StoreOp &op) noexcept {
    try {
        StorePlace &at = place(place_name(op));
        at.waiters.push_back(who);
        who.at_ = &at;
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

void StoreTable::take_down(StoreWaiter &who) noexcept {
    StorePlace &at = *std::exchange(who.at_, nullptr);
    at.waiters.remove(who);
    if (at.members != 0) at.arrived.erase(who.request.ops().front().rank);
    if (at.waiters.empty()) drop_place(at);
}

void StoreTable::end_watches(List<StoreWaiter> &over) noexcept {
    log_.forget_all(revision_);
    for (auto next = places_.begin(); next != places_.end();) {
        StorePlace &at = *(next++)->second;
        if (at.name[0] != 'w') continue;
        while (StoreWaiter *const who = at.waiters.first()) {
            at.waiters.remove(*who);
            who->at_ = nullptr;
            who->answer = {Error::make(MUSTER_E_STALE, "watch: no memory was left to write a change down"), {}};
            over.push_back(*who);
        }
        drop_place(at);
    }
}

// The last one releases the others.
bool StoreTable::arrive(StoreWaiter &who, List<StoreWaiter> &over) {
    const StoreOp &op = who.request.ops().front();
    auto result = make_ref<StoreResult>();
    result->entries.resize(1);
    result->entries[0].number = op.count;
    StorePlace &at = place(place_name(op));
    if (at.members == 0) at.members = op.count;
    try {
        if (at.members != op.count) {
            who.answer = {Error::make(MUSTER_E_ARG, "%s: of %u members, others say %u", who.request.name(0).c_str(),
                                      op.count, at.members),
                          {}};
            return true;
        }
        if (!at.arrived.insert(op.rank).second) {
            who.answer = {
                Error::make(MUSTER_E_EXISTS, "%s: rank %u is there already", who.request.name(0).c_str(), op.rank), {}};
            return true;
        }
    } catch (...) {
        if (at.waiters.empty()) drop_place(at);
        throw;
    }
    who.answer.result = std::move(result);
    who.answer.changed = true; // it must not be applied again
    if (at.arrived.size() != at.members) {
        at.waiters.push_back(who);
        who.at_ = &at;
        return false;
    }
    who.answer.result->revision = revision_;
    while (StoreWaiter *const other = at.waiters.first()) {
        at.waiters.remove(*other);
        other->at_ = nullptr;
        other->answer.result->revision = revision_;
        over.push_back(*other);
    }
    drop_place(at);
    return true;
}

std::string StoreTable::missing_at_barrier(const StoreOp &op) const {
    constexpr size_t most = 8;
    const auto found = places_.find(place_name(op));
    if (found == places_.end()) return {};
    std::string text;
    size_t count = 0;
    for (uint32_t rank = 0; rank < op.count && count < most; rank++) {
        if (found->second->arrived.count(rank) != 0) continue;
        if (count++ != 0) text += ", ";
        text += std::to_string(rank);
    }
    const size_t all = op.count - found->second->arrived.size();
    if (all > count) text += " and " + std::to_string(all - count) + " more";
    return " of " + std::to_string(op.count) + ", rank " + text;
}

// ---- leases ---------------------------------------------------------------------------------------------------------

uint64_t StoreTable::grant(int64_t until_ns) {
    const uint64_t lease = last_lease_ + 1;
    leases_[lease].until_ns = until_ns;
    try {
        ends_.emplace(until_ns, lease);
    } catch (...) {
        leases_.erase(lease);
        throw;
    }
    return last_lease_ = lease;
}

bool StoreTable::keep(uint64_t lease, int64_t until_ns) noexcept {
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return false;
    auto place = ends_.extract({found->second.until_ns, lease}); // inserted again as it is: no memory is allocated
    place.value().first = found->second.until_ns = until_ns;
    ends_.insert(std::move(place));
    return true;
}

int64_t StoreTable::next_end_ns() const noexcept {
    return ends_.empty() ? INT64_MAX : ends_.begin()->first;
}

uint64_t StoreTable::next_to_end() const noexcept {
    return ends_.empty() ? 0 : ends_.begin()->second;
}

void StoreTable::end_leases(int64_t now_ns, List<StoreWaiter> &over) noexcept {
    while (next_end_ns() <= now_ns) end_lease(next_to_end(), MUSTER_STORE_LEASE_SILENT, over);
}

// The keys are removed in any case. If the change cannot be recorded, watchers have to read them again.
bool StoreTable::end_lease(uint64_t lease, uint32_t why, List<StoreWaiter> &over) noexcept {
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return false;
    std::vector<std::string> came;
    bool changed = false, written = true;
    for (const std::string &key : found->second.keys) {
        const auto record = keys_.find(key);
        if (record == keys_.end() || record->second.lease != lease) continue;
        try {
            note_change(key, false, came);
            log_.append(revision_ + 1, record->first, {}, why);
        } catch (const std::bad_alloc &) {
            written = false;
        }
        bytes_ -= Changes::bytes_of(record->first->bytes(), *record->second.value);
        keys_.erase(record);
        changed = true;
    }
    ends_.erase({found->second.until_ns, lease});
    leases_.erase(found);
    if (!changed) return true;
    revision_++;
    if (!written) end_watches(over);
    log_.trim();
    let_go_on(came, over);
    return true;
}

std::string StoreTable::missing(const StoreRequest &request) const {
    constexpr size_t most = 4;
    if (request.ops().front().kind == MUSTER_STORE_BARRIER)
        return request.name(0) + missing_at_barrier(request.ops().front());
    std::string text;
    const std::vector<const StoreOp *> all = lacking(request, store_ops_max);
    for (size_t i = 0; i < all.size() && i < most; i++) {
        if (i != 0) text += ", ";
        text += request.name(static_cast<size_t>(all[i] - request.ops().data()));
    }
    if (all.size() > most) text += " and " + std::to_string(all.size() - most) + " more";
    return text;
}

} // namespace muster
