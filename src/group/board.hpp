// SPDX-License-Identifier: MIT
#pragma once
// The shared memory of a group whose members are on one host: a barrier, and slots that each member fills for the
// others.
//
// An operation is a sequence of steps. In a step a member writes its slot of this step, meets the others at the
// barrier, and then reads their slots. There are two slots of each kind per member, used in turn: a member that is one
// step ahead writes the other slot, and no member can be two steps ahead, since all have to arrive at the barrier in
// between. So a slot that was filled before barrier n may be read until the reader arrives at barrier n + 1.
//
// The barrier counts arrivals; the last member turns the sense and wakes the others (sense-reversing barrier;
// Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors", 1991).
#include "base/time.hpp"
#include "group/reduction.hpp"
#include "transport/segment.hpp"

#include <array>
#include <atomic>

namespace muster {

// What a member is about to do; a value. Equal at all members, except `own`.
struct Fingerprint {
    static constexpr size_t words = 4;
    std::array<uint64_t, words> word{}; // sequence; kind, type, reduction, root, flags; count; hash of the counts
    uint64_t own = 0;                   // a number of this member's, for the others
    bool operator==(const Fingerprint &other) const noexcept { return word == other.word; }
};

// The thread that performs operations; fail() and progress(): any thread. Values in the memory are those of processes
// of the same user, and are never used as offsets or sizes.
class Board {
  public:
    static size_t memory_bytes(uint32_t size, uint64_t slot_bytes) noexcept;
    // The memory has memory_bytes().
    Board(Segment memory, uint32_t rank, uint32_t size, uint64_t slot_bytes) noexcept;

    uint64_t slot_bytes() const noexcept { return slot_bytes_; }
    // Of this step, and of the step before it: filled before the last barrier.
    unsigned char *slot(uint32_t rank) const noexcept { return slot_at(rank, step_); }
    const unsigned char *slot_before(uint32_t rank) const noexcept { return slot_at(rank, step_ - 1); }
    // The place of a result, one for all members: written in this step, and written in the step before.
    unsigned char *result() const noexcept { return slot_at(size_, step_); }
    const unsigned char *result_before() const noexcept { return slot_at(size_, step_ - 1); }
    void publish(const Fingerprint &fingerprint) noexcept; // of this step
    Fingerprint published_before(uint32_t rank) const noexcept;

    // The barrier, after which the next step begins. MUSTER_OK; MUSTER_TIMEOUT; MUSTER_E_ABORTED: fail() was called, by
    // this or another member.
    Status meet(Deadline &deadline) noexcept;

    void set_progress(uint64_t sequence, uint32_t kind, bool is_active) noexcept;
    void progress(uint32_t rank, uint64_t &sequence, uint32_t &kind, bool &is_active) const noexcept;
    // The barrier can be met no more: all that wait, here and elsewhere, are woken. The first failure is kept.
    void fail(Status status, uint32_t rank, const char *text) noexcept;
    bool failure(Error &out) const noexcept; // false: there is none

  private:
    static constexpr uint32_t sense = 1, failed = 2; // bits of Head::turn
    static constexpr size_t text_words = 25;
    struct Head {
        alignas(128) std::atomic<uint32_t> turn; // seq_cst: see meet(); a futex
        alignas(128) std::atomic<uint32_t> arrived;
        alignas(128) std::atomic<uint32_t> sleepers;
        // relaxed: written by the first failure, before the bit `failed`. Another member may see the bit, set for a
        // second failure, before the text is complete.
        std::atomic<uint64_t> failure; // status and rank
        std::atomic<uint64_t> text[text_words];
    };
    struct Member {
        alignas(128) std::atomic<uint64_t> progress;
        // relaxed, both parities: published and read on the two sides of a barrier
        alignas(128) std::atomic<uint64_t> words[2][Fingerprint::words + 1];
    };
    Head &head() const noexcept { return *static_cast<Head *>(memory_.mapping); }
    Member &member(uint32_t rank) const noexcept { return reinterpret_cast<Member *>(&head() + 1)[rank]; }
    unsigned char *slot_at(uint32_t rank, uint64_t step) const noexcept {
        return slots_ + (2 * rank + (step & 1)) * slot_bytes_;
    }

    Segment memory_;
    const uint32_t rank_, size_;
    const uint64_t slot_bytes_;
    unsigned char *const slots_;
    const uint32_t spins_; // before it yields: 0 where members have to share processors
    uint64_t step_ = 1;
};

} // namespace muster
