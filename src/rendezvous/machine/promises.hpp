// SPDX-License-Identifier: MIT
#pragma once
// Promises: which store may make the next round, where the store can be lost with the member that serves it.
//
// A member of round N promises the successor of N to one store, once: from then on it takes part in no later round that
// is made at another store. It promises at the request of the leader at that store, which is sent when all other
// conditions hold. A member that leaves promises the same. The store where N was made needs the promises of half of its
// members, any other store those of more than half. So at most one store makes the round after N, whatever was lost,
// disconnected or stopped, and no clock is needed for that.
//
// A dead member cannot promise. It counts as promised to the store where N was made if the leader has observed its
// death and its standby store refuses a dial soon after. A member that loses the store while its process runs waits
// longer than that before it promises anything to another store.
//
// A member with a state file (membership.hpp) that is killed and restarted is an heir: it inherits the vote of the
// former process, unless that had promised already, which the file records. The former process may have been counted as
// dead where N was made. So heirs count at another store only together with the host of N (the member whose process
// served that store) or the host's heir; and where N was made, the next round needs the promise of the host. The host's
// promise to another store then proves that no round was made at the old one. So a member other than the host that has
// promised at the old store and then loses it promises once more to another store, as an heir does: that counts
// together with the host only. At the old store the host is asked last: if it dies while the others promise, its heir
// is free to promise elsewhere, and the run continues. tests/models/promises.pml checks all of it.
#include "rendezvous/machine/records.hpp"

#include <map>
#include <set>

namespace muster {

class Promises {
  public:
    static constexpr std::string_view given = "given", with_host = "heir", dead = "dead"; // values of keys
    static constexpr std::string_view of_host_too = " host"; // appended to the round whose members are asked to promise

    // `key`: after keys::promises.
    void see(std::string_view key, std::string_view value);
    void add(uint64_t round, uint32_t rank, bool with_host) { (with_host ? with_host_ : given_)[round].insert(rank); }
    bool by_member(uint64_t round, uint32_t rank) const { // or its heir
        return of(given_, round, rank) || of(with_host_, round, rank);
    }
    bool has(uint64_t round, uint32_t rank) const { return by_member(round, rank) || of(dead_, round, rank); }
    // Whether this store may make the round after `last`, by the promises that are here.
    bool suffice(const RoundRecord &last) const;
    uint32_t count(const RoundRecord &last) const; // of promises that count
    static uint32_t needed(uint32_t world, bool elsewhere) noexcept {
        return elsewhere ? world / 2 + 1 : (world + 1) / 2;
    }
    // Forgets those of earlier rounds, and returns their keys.
    std::vector<std::string> take_before(uint64_t round);
    void clear() noexcept { given_.clear(), with_host_.clear(), dead_.clear(), settled_.clear(); }

  private:
    using Ranks = std::map<uint64_t, std::set<uint32_t>>;
    static bool of(const Ranks &ranks, uint64_t round, uint32_t rank) {
        const auto found = ranks.find(round);
        return found != ranks.end() && found->second.count(rank) != 0;
    }
    Ranks given_, with_host_, dead_;
    std::set<uint64_t> settled_; // rounds after which the run was reopened
};

} // namespace muster
