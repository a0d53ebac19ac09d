// SPDX-License-Identifier: MIT
#include "group/board.hpp"

#include "base/futex.hpp"
#include "base/hash.hpp"
#include "base/pause.hpp"

#include <algorithm>
#include <cstring>
#include <sched.h>

namespace muster {

namespace {
constexpr size_t page = 4096;
// A member that waits yields so often before it sleeps. Where members share processors, the member that runs next is
// often one that the barrier waits for, and then no wake-up by futex is needed.
constexpr int yields = 100;
constexpr uint32_t spins_with_processors = 2000;

size_t whole_pages(size_t bytes) noexcept {
    return (bytes + page - 1) / page * page;
}
uint32_t processors() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}
} // namespace

size_t Board::bytes_before_slots(uint32_t size) noexcept {
    return whole_pages(sizeof(Head) + size * (sizeof(Member) + announcements * sizeof(Announcement)));
}

size_t Board::memory_bytes(uint32_t size, uint64_t slot_bytes) noexcept {
    return bytes_before_slots(size) + 2 * (size + size_t{1}) * slot_bytes;
}

Board::Board(Segment memory, uint32_t rank, uint32_t size, uint64_t slot_bytes) noexcept
    : memory_(std::move(memory)), rank_(rank), size_(size), slot_bytes_(slot_bytes),
      slots_(static_cast<unsigned char *>(memory_.mapping) + bytes_before_slots(size)),
      spins_(size <= processors() ? spins_with_processors : 0) {
    static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
    static_assert(sizeof(Announcement) == 256 && sizeof(Head) % 128 == 0 && sizeof(Member) % 128 == 0);
}

void Board::publish(const Fingerprint &fingerprint) noexcept {
    published_ = fingerprint;
    auto &words = member(rank_).words[step_ & 1];
    words[0].store(0, std::memory_order_relaxed);
    // release, each: a member that reads a new word reads 0, or what follows, from the first one after it. After a
    // barrier nothing is written here until all have passed the next one.
    for (size_t i = 1; i < Fingerprint::words; i++) words[i].store(fingerprint.word[i], std::memory_order_release);
    words[Fingerprint::words].store(fingerprint.own, std::memory_order_release);
    words[0].store(fingerprint.word[0], std::memory_order_release);
}

Fingerprint Board::published_before(uint32_t rank) const noexcept {
    const auto &words = member(rank).words[(step_ - 1) & 1];
    Fingerprint fingerprint; // relaxed: the barrier is between
    for (size_t i = 0; i < Fingerprint::words; i++) fingerprint.word[i] = words[i].load(std::memory_order_relaxed);
    fingerprint.own = words[Fingerprint::words].load(std::memory_order_relaxed);
    return fingerprint;
}

// Before a member sleeps. All that sleep change or read one word: of two that perform different operations under one
// number, the second finds the other there, whatever they wait for. A member that is ahead can only have left small
// broadcasts behind, whose announcements a sleeper finds in the word on which it sleeps.
bool Board::registers() noexcept {
    std::atomic<uint64_t> &registered = head().registered;
    constexpr uint64_t hash_mask = 0xFFFFFF; // the number is above it
    const uint64_t number = published_.word[0] << 24, own = number | (mix64(fnv1a(published_.word)) & hash_mask);
    // acquire, also where the exchange fails: find_other() reads what the other member published before its release.
    uint64_t seen = registered.load(std::memory_order_acquire);
    for (;;) {
        const auto ahead = static_cast<int64_t>((seen & ~hash_mask) - number); // the member that registered last
        if (ahead == 0) return seen == own;
        if (ahead > 0) return true;
        if (registered.compare_exchange_weak(seen, own, std::memory_order_acq_rel, std::memory_order_acquire))
            return true;
    }
}

bool Board::find_other(const Fingerprint &own, uint32_t &rank, Fingerprint &other) const noexcept {
    for (rank = 0; rank < size_; rank++) {
        if (rank == rank_) continue;
        const auto &words = member(rank).words[step_ & 1];
        const uint64_t number = words[0].load(std::memory_order_acquire);
        other.word[0] = number;
        for (size_t i = 1; i < Fingerprint::words; i++) other.word[i] = words[i].load(std::memory_order_acquire);
        if (number == own.word[0] && words[0].load(std::memory_order_relaxed) == number && !(other == own)) return true;
        const Announcement &place = next_announcement(rank);
        if (place.number.load(std::memory_order_acquire) != announced_ + 1) continue;
        other.word = place.word;
        if (!(other == own)) return true;
    }
    return false;
}

// Until done(turn) is true.
template <class Done>
Status Board::wait(Deadline &deadline, uint32_t spins, Done &&done) noexcept {
    Head &head = this->head();
    int left = yields;
    for (;;) {
        // acquire: pairs with the turn of the sense, with an announcement, and with fail()
        const uint32_t now = head.turn.load(std::memory_order_acquire);
        if (done(now)) return MUSTER_OK;
        if (now & failed) return MUSTER_E_ABORTED;
        if (announced_more(now) > 0) return MUSTER_E_MISMATCH; // this member waits for none of them
        if (spins != 0) {
            spins--;
            pause_cpu();
        } else if (left != 0) {
            left--;
            sched_yield();
        } else {
            if (!registers()) return MUSTER_E_MISMATCH;
            // seq_cst: the change of the turn finds this mark, or futex_wait() finds that the turn has changed.
            head.sleepers.store(1, std::memory_order_seq_cst);
            const int rc = futex_wait(head.turn, now, deadline, true);
            if (rc == ETIMEDOUT && head.turn.load(std::memory_order_relaxed) == now) return MUSTER_TIMEOUT;
        }
    }
}

// take_sleepers() before and wake() after a change of the turn by seq_cst. Members that set the mark before it is taken
// have seen an earlier turn: wake() wakes these members, which set the mark again before they sleep again. A mark that
// is set after that stays, since a member that has seen the new turn may have set it; the next change then makes a
// system call that may wake no member.
bool Board::take_sleepers() noexcept {
    std::atomic<uint32_t> &sleepers = head().sleepers;
    return sleepers.load(std::memory_order_relaxed) != 0 && sleepers.exchange(0, std::memory_order_seq_cst) != 0;
}

void Board::wake(bool had_sleepers) noexcept {
    Head &head = this->head();
    // seq_cst: see wait()
    if (had_sleepers || head.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake(head.turn, INT_MAX, true);
}

Status Board::meet(Deadline &deadline) noexcept {
    Head &head = this->head();
    // The last barrier was left, so the sense does not turn before this member arrives. acquire: pairs with fail().
    const uint32_t before = head.turn.load(std::memory_order_acquire);
    if (before & failed) return MUSTER_E_ABORTED;
    if (announced_more(before) > 0) return MUSTER_E_MISMATCH;
    // acq_rel: the last one to arrive has seen what all others wrote before they arrived.
    if (head.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
        head.arrived.store(0, std::memory_order_relaxed); // seen with the sense, before a member arrives again
        const bool had_sleepers = take_sleepers();
        // seq_cst (so also release): publishes what all wrote; see wake()
        head.turn.fetch_xor(sense, std::memory_order_seq_cst);
        wake(had_sleepers);
    } else {
        const Status status = wait(deadline, spins_, [&](uint32_t now) { return (now ^ before) & sense; });
        if (status != MUSTER_OK) return status;
    }
    step_++;
    met_after_ = announced_;
    return MUSTER_OK;
}

// The number before the count: a turn that counts an announcement shows its number, too. Until the root of the
// announcement before has counted that, which is its next step, the turn belongs to it.
Status Board::announce(const Fingerprint &fingerprint, const void *data, uint64_t bytes, Deadline &deadline) noexcept {
    Announcement &place = next_announcement(rank_);
    if (bytes != 0) memcpy(place.data, data, bytes);
    place.word = fingerprint.word;
    place.number.store(announced_ + 1, std::memory_order_release); // release: a member that reads it reads the rest
    std::atomic<uint32_t> &turn = head().turn;
    if (announced_more(turn.load(std::memory_order_relaxed)) < 0) {
        publish(fingerprint); // for the case that this member sleeps
        const auto is_counted = [&](uint32_t now) { return announced_more(now) >= 0; };
        if (const Status status = wait(deadline, spins_, is_counted); status != MUSTER_OK) return status;
    }
    const bool had_sleepers = take_sleepers();
    uint32_t now = turn.load(std::memory_order_relaxed);
    do {
        if (now & failed) return MUSTER_E_ABORTED;
        if (announced_more(now) > 0) return MUSTER_E_MISMATCH; // another member has announced in place of this one
    } while (!turn.compare_exchange_weak(now, now + one_announcement, std::memory_order_seq_cst)); // see wake()
    announced_++;
    wake(had_sleepers);
    return MUSTER_OK;
}

Status Board::receive(const Fingerprint &fingerprint, uint32_t root, Deadline &deadline, Announced &out) noexcept {
    const Announcement &place = next_announcement(root);
    // acquire: pairs with announce()
    const auto is_announced = [&] { return place.number.load(std::memory_order_acquire) == announced_ + 1; };
    for (uint32_t spins = spins_; spins != 0 && !is_announced(); spins--) pause_cpu();
    if (!is_announced()) {
        publish(fingerprint); // for the case that this member sleeps
        const Status status = wait(deadline, 0, [&](uint32_t) { return is_announced(); });
        if (status != MUSTER_OK) return status;
    }
    announced_++;
    out.fingerprint.word = place.word;
    out.data = place.data;
    return MUSTER_OK;
}

// relaxed, both: for people, and for the text of a failure.
void Board::set_progress(uint64_t sequence, uint32_t kind, bool is_active) noexcept {
    member(rank_).progress.store(sequence << 8 | kind << 1 | (is_active ? 1 : 0), std::memory_order_relaxed);
}

void Board::progress(uint32_t rank, uint64_t &sequence, uint32_t &kind, bool &is_active) const noexcept {
    const uint64_t value = member(rank).progress.load(std::memory_order_relaxed);
    sequence = value >> 8;
    kind = value >> 1 & 0x7F;
    is_active = value & 1;
}

void Board::fail(Status status, uint32_t rank, const char *text) noexcept {
    Head &head = this->head();
    uint64_t none = 0;
    const uint64_t failure = uint64_t{static_cast<uint32_t>(status)} << 32 | rank;
    if (head.failure.compare_exchange_strong(none, failure, std::memory_order_relaxed)) {
        uint64_t words[text_words] = {};
        memcpy(words, text, std::min(strlen(text), sizeof words - 1));
        for (size_t i = 0; i < text_words; i++) head.text[i].store(words[i], std::memory_order_relaxed);
    }
    head.turn.fetch_or(failed,
                       std::memory_order_seq_cst); // release: publishes the failure; a sleeper's word has changed
    futex_wake(head.turn, INT_MAX, true);
}

bool Board::failure(Error &out) const noexcept {
    const Head &head = this->head();
    if (!(head.turn.load(std::memory_order_acquire) & failed)) return false; // acquire: pairs with fail()
    const uint64_t failure = head.failure.load(std::memory_order_relaxed);
    uint64_t words[text_words];
    for (size_t i = 0; i < text_words; i++) words[i] = head.text[i].load(std::memory_order_relaxed);
    char text[sizeof words + 1] = {};
    memcpy(text, words, sizeof words);
    out = Error::make(static_cast<Status>(static_cast<uint32_t>(failure >> 32)), "%s", text);
    out.rank = static_cast<uint32_t>(failure);
    return true;
}

} // namespace muster
