// SPDX-License-Identifier: MIT
#pragma once
// Which store may make the next round, where the store can be lost with the member that serves it.
//
// A member of round N promises the end of N to one store, once: from then on it takes no part in a round after N that
// is made at another store. It promises when the leader at that store asks for it, which happens when nothing else is
// missing. A member that leaves promises the same. The store that N was made at needs the promises of half of its
// members, any other store the promises of more than half: so whatever was lost, cut off or stopped, at most one store
// makes the round after N, and no clock is needed for that.
//
// A dead member can promise nothing. It counts as if it had promised to the store where N was made, if the leader has
// seen it go and its own store refuses a dial soon: a member that loses a store without knowing that its process has
// ended waits for longer than that before it promises another store anything.
//
// A member with a state file (membership.hpp) that is killed and restarted is an heir: it has the say of the process
// that has ended, unless that had promised already, which the file tells. The process that has ended may have been
// counted as dead where N was made. So heirs count at another store only together with the host of N, the member whose
// process served that store, or its heir; and where N was made, the next round needs the promise of its host. Then the
// promise of the host elsewhere proves that no round was made where N was. So a member, other than the host, that has
// promised where N was made and then loses that store promises once more elsewhere, in the way of an heir: that counts
// with the host alone. And where N was made the host is asked last: if it dies while the others promise, its heir is
// free to do so elsewhere, and the run goes on. tests/models/promises.pml checks all of it.
#include "rendezvous/machine/records.hpp"

#include <map>
#include <set>

namespace muster {

class Promises {
  public:
    static constexpr std::string_view given = "given", with_host = "heir", dead = "dead"; // values of keys
    static constexpr std::string_view of_host_too = " host"; // behind the round of whose members promises are wanted

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
    std::set<uint64_t> settled_; // rounds whose run was opened anew since
};

} // namespace muster
