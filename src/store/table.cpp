// SPDX-License-Identifier: MIT
// Who waits, and who goes on.
#include "store/table.hpp"

#include "store/changes.hpp"

#include <utility>

namespace muster {

// A request whose memory cannot be had is over with that; one that hangs and cannot be tried, too.
void StoreTable::submit(StoreWaiter &who, List<StoreWaiter> &over) noexcept {
    std::vector<std::string> came;
    try {
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

bool StoreTable::withdraw(StoreWaiter &who) noexcept {
    if (who.at_ == nullptr) return false;
    take_down(who);
    return true;
}

// What comes may let requests go on that make more come.
void StoreTable::let_go_on(std::vector<std::string> &came, List<StoreWaiter> &over) noexcept {
    for (size_t i = 0; i < came.size(); i++) {
        const auto found = places_.find(came[i]);
        if (found == places_.end()) continue;
        StorePlace &place = *found->second;
        bool used_up = false; // what has come was taken by somebody in front
        for (StoreWaiter *who = place.waiters.first(); who != nullptr && !used_up;) {
            StoreWaiter &next = *std::exchange(who, List<StoreWaiter>::after(*who));
            const StoreOp *lacking = nullptr;
            try {
                lacking = attempt(next, came);
                if (lacking != nullptr && place_name(lacking->key, lacking->of_queue()) == place.name) {
                    used_up = true;
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
        if (place.waiters.empty()) places_.erase(places_.find(place.name));
    }
}

std::string StoreTable::place_name(std::string_view name, bool queue) {
    std::string place(1, queue ? 'q' : 'k');
    return place.append(name);
}

bool StoreTable::hang(StoreWaiter &who, const StoreOp &op) noexcept {
    try {
        std::string name = place_name(op.key, op.of_queue());
        std::unique_ptr<StorePlace> &place = places_[name];
        if (!place) {
            try {
                place = std::make_unique<StorePlace>();
                place->name = name;
            } catch (...) {
                places_.erase(name);
                throw;
            }
        }
        place->waiters.push_back(who);
        who.at_ = place.get();
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

void StoreTable::take_down(StoreWaiter &who) noexcept {
    StorePlace &place = *std::exchange(who.at_, nullptr);
    place.waiters.remove(who);
    if (place.waiters.empty()) places_.erase(places_.find(place.name));
}

std::string StoreTable::missing(const StoreRequest &request) const {
    constexpr size_t most = 4;
    std::string text;
    size_t count = 0;
    for (size_t i = 0; i < request.ops().size(); i++) {
        if (!lacks(request.ops()[i]) || ++count > most) continue;
        if (!text.empty()) text += ", ";
        text += request.name(i);
    }
    if (count > most) text += " and " + std::to_string(count - most) + " more";
    return text;
}

} // namespace muster
