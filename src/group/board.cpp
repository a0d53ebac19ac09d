// SPDX-License-Identifier: MIT
#include "group/board.hpp"

#include "base/futex.hpp"
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

size_t bytes_before_slots(size_t head, size_t member, uint32_t size) noexcept {
    return (head + member * size + page - 1) / page * page;
}
uint32_t processors() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 1;
}
} // namespace

size_t Board::memory_bytes(uint32_t size, uint64_t slot_bytes) noexcept {
    return bytes_before_slots(sizeof(Head), sizeof(Member), size) + 2 * (size + size_t{1}) * slot_bytes;
}

Board::Board(Segment memory, uint32_t rank, uint32_t size, uint64_t slot_bytes) noexcept
    : memory_(std::move(memory)), rank_(rank), size_(size), slot_bytes_(slot_bytes),
      slots_(static_cast<unsigned char *>(memory_.mapping) + bytes_before_slots(sizeof(Head), sizeof(Member), size)),
      spins_(size <= processors() ? spins_with_processors : 0) {
    static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
}

void Board::publish(const Fingerprint &fingerprint) noexcept {
    auto &words = member(rank_).words[step_ & 1];
    for (size_t i = 0; i < Fingerprint::words; i++) words[i].store(fingerprint.word[i], std::memory_order_relaxed);
    words[Fingerprint::words].store(fingerprint.own, std::memory_order_relaxed);
}

Fingerprint Board::published_before(uint32_t rank) const noexcept {
    const auto &words = member(rank).words[(step_ - 1) & 1];
    Fingerprint fingerprint;
    for (size_t i = 0; i < Fingerprint::words; i++) fingerprint.word[i] = words[i].load(std::memory_order_relaxed);
    fingerprint.own = words[Fingerprint::words].load(std::memory_order_relaxed);
    return fingerprint;
}

Status Board::meet(Deadline &deadline) noexcept {
    Head &head = this->head();
    // The last barrier was left, so the sense does not turn before this member arrives. acquire: pairs with fail().
    const uint32_t before = head.turn.load(std::memory_order_acquire);
    if (before & failed) return MUSTER_E_ABORTED;
    // acq_rel: the last one to arrive has seen what all others wrote before they arrived.
    if (head.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
        head.arrived.store(0, std::memory_order_relaxed); // seen with the sense, before a member arrives again
        // seq_cst (so also release): publishes what all wrote; ordered before the load of sleepers, which pairs with
        // that of a member that goes to sleep: it is counted here, or it finds that the sense has turned.
        head.turn.fetch_xor(sense, std::memory_order_seq_cst);
        if (head.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake(head.turn, INT_MAX, true);
        step_++;
        return MUSTER_OK;
    }
    uint32_t spins = spins_;
    int left = yields;
    for (;;) {
        const uint32_t now = head.turn.load(std::memory_order_acquire); // acquire: pairs with the turn of the sense
        if ((now ^ before) & sense) {
            step_++;
            return MUSTER_OK;
        }
        if (now & failed) return MUSTER_E_ABORTED;
        if (spins != 0) {
            spins--;
            pause_cpu();
        } else if (left != 0) {
            left--;
            sched_yield();
        } else {
            head.sleepers.fetch_add(1, std::memory_order_seq_cst); // see above
            const int rc = futex_wait(head.turn, now, deadline, true);
            head.sleepers.fetch_sub(1, std::memory_order_relaxed);
            if (rc == ETIMEDOUT && head.turn.load(std::memory_order_relaxed) == now) return MUSTER_TIMEOUT;
        }
    }
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
