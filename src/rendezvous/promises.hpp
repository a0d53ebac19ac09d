// SPDX-License-Identifier: MIT
#pragma once
// Who decides on the next round where the store may be lost with the member that serves it.
//
// A member of round N promises the end of N to one store, once: from then on it takes no part in a round after N that
// is made at another store. It does so when the leader there asks for it, which it does when nothing else is missing.
// One who leaves promises the same. The store that N was made at needs the promises of half of its members, any other
// the promises of more than half: so whatever was lost, cut off or stopped, one store at most makes the round after N,
// and no clock is needed for that.
//
// A member that is dead can promise nothing. It counts as if it had for the store where N was made, if the leader has
// seen it go and its own store refuses a dial soon: one that loses a store without knowing that its process has ended
// waits for longer than that before it promises another store anything.
#include "rendezvous/records.hpp"

#include <map>
#include <set>

namespace muster {

class Promises {
  public:
    static constexpr std::string_view given = "given", dead = "dead";

    // `key`: behind keys::promises.
    void see(std::string_view key, std::string_view value);
    bool has(uint64_t round, uint32_t rank) const { return of(given_, round, rank) || of(dead_, round, rank); }
    // Of those who have promised; `elsewhere`: the round was made at another store.
    uint32_t count(uint64_t round, bool elsewhere) const;
    static uint32_t needed(uint32_t world, bool elsewhere) noexcept {
        return elsewhere ? world / 2 + 1 : (world + 1) / 2;
    }
    // Forgets those of earlier rounds, and tells their keys.
    std::vector<std::string> take_before(uint64_t round);
    void clear() noexcept { given_.clear(), dead_.clear(), settled_.clear(); }

  private:
    using Ranks = std::map<uint64_t, std::set<uint32_t>>;
    static bool of(const Ranks &ranks, uint64_t round, uint32_t rank) {
        const auto found = ranks.find(round);
        return found != ranks.end() && found->second.count(rank) != 0;
    }
    Ranks given_, dead_;
    std::set<uint64_t> settled_; // rounds whose run was opened anew since
};

} // namespace muster
