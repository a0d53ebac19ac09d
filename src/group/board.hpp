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
// A small broadcast needs no barrier: the root announces it, and goes on. An announcement has a number, the bytes and
// the fingerprint, by which each reader finds that it performs another operation. Each member has `announcements`
// places for its own, which are used again after the next barrier, so as many small broadcasts may follow each other
// without one; all members count them alike. The head has the number of announcements, too: a number that is greater
// than a member expects shows that the others perform another operation. Members that sleep have registered what they
// perform, so of two that wait for each other in different operations, the second finds it.
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

// What the root of a small broadcast has announced.
struct Announced {
    Fingerprint fingerprint;
    const unsigned char *data = nullptr; // until this member arrives at the next barrier
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
    // this or another member; MUSTER_E_MISMATCH: another member performs another operation, see find_other().
    Status meet(Deadline &deadline) noexcept;

    // A broadcast of `bytes` bytes is performed by an announcement: the same at all members.
    bool is_announced(uint64_t bytes) const noexcept {
        return bytes <= announced_bytes && announced_ - met_after_ < announcements;
    }
    // The root: a result of meet(). It waits for the root of the announcement before, if that has not counted it yet.
    Status announce(const Fingerprint &fingerprint, const void *data, uint64_t bytes, Deadline &deadline) noexcept;
    // All others: waits for the announcement of the root.
    Status receive(const Fingerprint &fingerprint, uint32_t root, Deadline &deadline, Announced &out) noexcept;
    // After MUSTER_E_MISMATCH: a member that performs another operation than this one; false: it is not known any more.
    bool find_other(const Fingerprint &own, uint32_t &rank, Fingerprint &other) const noexcept;

    void set_progress(uint64_t sequence, uint32_t kind, bool is_active) noexcept;
    void progress(uint32_t rank, uint64_t &sequence, uint32_t &kind, bool &is_active) const noexcept;
    // The barrier can be met no more: all that wait, here and elsewhere, are woken. The first failure is kept.
    void fail(Status status, uint32_t rank, const char *text) noexcept;
    bool failure(Error &out) const noexcept; // false: there is none

  private:
    // Of Head::turn; the bits above are the number of announcements.
    static constexpr uint32_t sense = 1, failed = 2, one_announcement = 4;
    static constexpr size_t text_words = 25;
    static constexpr uint64_t announcements = 256, announced_bytes = 216;
    struct Head {
        alignas(128) std::atomic<uint32_t> turn; // seq_cst: see wait(); a futex
        alignas(128) std::atomic<uint32_t> arrived;
        alignas(128) std::atomic<uint32_t> sleepers; // not 0: a member sleeps, or is about to
        // Number and hash of the latest operation in which a member slept; see registers().
        std::atomic<uint64_t> registered;
        // relaxed: written by the first failure, before the bit `failed`. Another member may see the bit, set for a
        // second failure, before the text is complete.
        std::atomic<uint64_t> failure; // status and rank
        std::atomic<uint64_t> text[text_words];
    };
    struct Member {
        alignas(128) std::atomic<uint64_t> progress;
        // Both parities: published and read on the two sides of a barrier, or found by find_other(), which
        // reads the first word before and after the others; 0 while they are written.
        alignas(128) std::atomic<uint64_t> words[2][Fingerprint::words + 1];
    };
    struct Announcement {
        alignas(64) std::atomic<uint64_t> number; // from 1; release, after the rest was written
        std::array<uint64_t, Fingerprint::words> word;
        unsigned char data[announced_bytes];
    };
    Head &head() const noexcept { return *static_cast<Head *>(memory_.mapping); }
    Member &member(uint32_t rank) const noexcept { return reinterpret_cast<Member *>(&head() + 1)[rank]; }
    // The place of the next announcement, if that of this rank is next.
    Announcement &next_announcement(uint32_t rank) const noexcept {
        return reinterpret_cast<Announcement *>(&member(size_))[rank * announcements + announced_ % announcements];
    }
    // The number of announcements in the turn, less the number that this member has made and received; -1: the root of
    // the last announcement that it has received has not counted that yet.
    int32_t announced_more(uint32_t turn) const noexcept {
        return static_cast<int32_t>((turn & ~(sense | failed)) - static_cast<uint32_t>(announced_) * one_announcement);
    }
    static size_t bytes_before_slots(uint32_t size) noexcept;
    bool registers() noexcept; // false: another member performs another operation
    bool take_sleepers() noexcept;
    void wake(bool had_sleepers) noexcept;
    template <class Done>
    Status wait(Deadline &deadline, uint32_t spins, Done &&done) noexcept;
    unsigned char *slot_at(uint32_t rank, uint64_t step) const noexcept {
        return slots_ + (2 * rank + (step & 1)) * slot_bytes_;
    }

    Segment memory_;
    const uint32_t rank_, size_;
    const uint64_t slot_bytes_;
    unsigned char *const slots_;
    const uint32_t spins_; // before it yields: 0 where members have to share processors
    uint64_t step_ = 1;
    uint64_t announced_ = 0, met_after_ = 0; // announcements: all, and those before the last barrier
    Fingerprint published_;
};

} // namespace muster
