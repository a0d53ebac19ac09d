// SPDX-License-Identifier: MIT
#pragma once
// The keys of a run in the store, below `muster/rdzv/<run>/`:
//
//   config            min, max and last call of the run; the first member's
//   all/leader        the leader; on the lease of that member. Its version fences the leader's changes
//   all/round         the latest round: running, or aborted
//   all/aborted       the latest round that was aborted, as `all/round` was then
//   all/note          how many members are present, and which have gone: published by the leader
//   all/closed        why and by which member the run was closed
//   in/m/<member>     a member that seeks a round or is in one; on its lease
//   in/called         the last call for a round has begun; it lasts as long as `in/lastcall`, on a lease of its own
//   to/<member>       its place in a round; on the lease of the member
//   r/<round>/t/<n>   pages of the table; r/<round>/v/...: keys of the members' view
//
// and where a member's process serves the store and may end at any time (promises.hpp):
//
//   all/promise       the round whose members are asked for a promise; " host" after it: the host, too
//   all/quorum        the leader did not get enough promises in time
//   in/a/<round>/<rank>  the promise of one member of that round; `all`: the run was opened anew since
//   r/<round>/p       stores of the first ranks, where the run can continue
//   stands            this store may be the next host; withdrawn when its member has left
//   all/moved         at a store that the run has left: where it continues
//
// Readers check every record: any client of the store may have written it.
#include "rendezvous/machine/round.hpp"

#include <array>
#include <optional>

namespace muster {

// Identity of a run: random, made by its first member; different for runs of the same name.
using RunIdentity = std::array<unsigned char, 16>;

struct RunConfig {
    uint32_t min = 0, max = 0;
    int64_t last_call_ns = 0; // negative: none
    RunIdentity identity = {};
    bool operator==(const RunConfig &) const = default;
    bool same_limits(const RunConfig &other) const noexcept {
        return min == other.min && max == other.max && last_call_ns == other.last_call_ns;
    }
    std::string write() const;
    static std::optional<RunConfig> read(std::string_view bytes);
    std::string text() const; // for people
};

struct MemberRecord {
    // seeking: or in the round of its ticket; confirmed: exiting, and the member has seen Note::exited of its round
    enum State : uint8_t { seeking, left, exiting, confirmed };
    State state = seeking;
    uint64_t ticket = 0; // counts the joins of the member
    uint64_t lease = 0;
    uint64_t old_round = 0; // latest round it was in, 0: none
    uint32_t old_rank = 0;
    uint32_t preferred = UINT32_MAX; // UINT32_MAX: any
    std::string address, order_key;
    std::string peer;   // host:port of its own store; empty: it has none
    uint64_t base = 0;  // round in whose end it has a vote, with `old_rank`; 0: none
    bool heir = false;  // its promise counts only together with that of the host (promises.hpp)
    bool hosts = false; // its process serves this store, and keeps a state file
    std::string write() const;
    static std::optional<MemberRecord> read(std::string_view bytes);
};

inline constexpr uint32_t no_rank = UINT32_MAX;

// An attempt to make a round; each is different.
struct RoundAttempt {
    uint64_t number = 0, term = 0, sequence = 0; // of the round; version of the leader's key; of its attempts
    bool operator==(const RoundAttempt &) const = default;
};

struct RoundRecord {
    RoundAttempt attempt;
    uint32_t world = 0;
    Digest digest = {};
    bool aborted = false;
    std::string author, reason; // of an abort
    bool elsewhere = false;     // made at a store that is lost
    uint32_t host = no_rank;    // of the member whose record says that it hosts the store; no_rank: none
    std::string write() const;
    static std::optional<RoundRecord> read(std::string_view bytes);
    std::string abort_text() const; // for people
};

struct RoundPlace {
    uint64_t ticket = 0;
    RoundAttempt attempt; // number 0: none so far
    uint32_t rank = 0, world = 0;
    Digest digest = {};
    bool whole = false;           // the round was made in the very transaction that wrote this
    uint32_t leader = UINT32_MAX; // rank of the member that made the round; UINT32_MAX: it is not in it
    uint32_t host = no_rank;      // as in the record of the round
    std::string write() const;
    static std::optional<RoundPlace> read(std::string_view bytes);
    RoundRecord round() const { return {attempt, world, digest, false, {}, {}, false, host}; }
};

struct Note {
    static constexpr size_t max_gone = 128;
    enum class How : uint8_t { left, dead, ended, silent, broken }; // dead: cause unknown; after it: the cause is known
    struct Gone {
        uint32_t rank = 0;
        How how = How::left;
    };
    static How how(uint32_t lease_flags) noexcept; // a member's keys have gone
    static const char *text_of(How how) noexcept;  // for people; empty for a member that left
    uint64_t round = 0;
    uint64_t exited = 0;    // the latest round all of whose members have arrived at the exit
    uint64_t confirmed = 0; // the latest round whose remaining members have all confirmed the exit
    uint32_t seeking = 0, waiting = 0, present = 0, exiting = 0;
    uint32_t left = 0, dead = 0;         // of the round, all of them
    std::vector<Gone> gone;              // of these, the first, in the order they went
    bool called = false;                 // the last call runs
    int64_t last_call_remaining_ns = -1; // when this was written
    std::string write() const;
    static std::optional<Note> read(std::string_view bytes);
    bool has_content_of(const Note &other) const; // but for the clock
};

struct ClosedRecord {
    std::string author, reason;
    std::string write() const;
    static std::optional<ClosedRecord> read(std::string_view bytes);
    std::string text() const;
};

// Written to a store that the run has left: where it continues.
struct MovedRecord {
    RunIdentity identity = {};
    uint64_t round = 0;  // the latest that the writer knows of
    std::string address; // host:port of the store
    std::string write() const;
    static std::optional<MovedRecord> read(std::string_view bytes);
};

namespace keys {
inline const std::string config = "config", leader = "all/leader", round = "all/round", note = "all/note",
                         closed = "all/closed", called = "in/called", last_call = "in/lastcall",
                         promise = "all/promise", aborted = "all/aborted", quorum = "all/quorum", moved = "all/moved",
                         stands = "stands";
inline constexpr std::string_view everybody = "all/", incoming = "in/", members = "in/m/", places = "to/",
                                  promises = "in/a/", rounds = "r/";
inline std::string member(std::string_view id) {
    return std::string(members).append(id);
}
inline std::string place(std::string_view id) {
    return std::string(places).append(id);
}
std::string of_round(uint64_t number); // r/<number>/
std::string promise_of(uint64_t number, uint32_t rank);
std::string promise_of_all(uint64_t number);
inline std::string peers(uint64_t number) {
    return of_round(number) + "p";
}
uint64_t number_of(std::string_view key); // of r/<number>/...; 0: it is none
} // namespace keys

} // namespace muster
