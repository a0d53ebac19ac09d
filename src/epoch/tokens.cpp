// SPDX-License-Identifier: MIT
// Registration of tokens, their owners, and what happens when an owner dies.
#include "epoch/epoch.hpp"
#include "process/identity.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace muster {

namespace {

constexpr int64_t check_owner_every_ns = 1'000'000; // of a token that blocks the epoch
constexpr int64_t look_for_dead_ns = 10'000'000;    // one token that does not

} // namespace

// Makes this process the owner of a token in state `seen`; it is ADOPTED then. acquire: the objects as the last owner
// left them.
bool Epoch::claim(EpochSlot &slot, uint64_t seen) noexcept {
    const uint64_t generation = (generation_of(seen) + 1) & 0xffffff;
    const uint64_t mine = slot_state(generation, MUSTER_EPOCH_TOKEN_ADOPTED, process_);
    if (!slot.state().compare_exchange_strong(seen, mine, std::memory_order_seq_cst)) return false;
    const bool bound = header_->is_thread_bound != 0;
    const int32_t thread = static_cast<int32_t>(::syscall(SYS_gettid));
    slot.owner_thread.store(thread, std::memory_order_relaxed);
    slot.owner_start.store(bound ? thread_start_time(process_, thread) : process_start_, std::memory_order_relaxed);
    slot.owner_home.store(reinterpret_cast<uintptr_t>(home_), std::memory_order_relaxed);
    // release: a thread that reads this generation reads the fields above. Until then it has only the process id.
    slot.owner_generation.store(generation, std::memory_order_release);
    return true;
}

// release: the next owner finds the slot as it is now.
void Epoch::become(EpochSlot &slot, uint32_t state) noexcept {
    const uint64_t generation = generation_of(slot.state().load(std::memory_order_relaxed));
    const int32_t process = state == MUSTER_EPOCH_TOKEN_IN_USE ? process_ : 0;
    slot.state().store(slot_state(generation, state, process), std::memory_order_release);
}

Result<EpochSlot *> Epoch::register_token() {
    const auto take = [&](EpochSlot &one) {
        const uint64_t seen = one.state().load(std::memory_order_acquire);
        if (kind_of(seen) != MUSTER_EPOCH_TOKEN_FREE && kind_of(seen) != MUSTER_EPOCH_TOKEN_ORPHANED) return false;
        if (!claim(one, seen)) return false;
        if (kind_of(seen) == MUSTER_EPOCH_TOKEN_ORPHANED) header_->orphans.fetch_sub(1, std::memory_order_relaxed);
        one.token.index = index_of(one);
        one.token.to_global =
            (reinterpret_cast<char *>(&header_->epoch) - reinterpret_cast<char *>(&one)) | (fence_ == Fence::per_pin);
        become(one, MUSTER_EPOCH_TOKEN_IN_USE);
        retain();
        return true;
    };
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0;; i++) {
            uint32_t used = used_tokens();
            if (i == used) {
                if (used == max_tokens_) break;
                // seq_cst: comes before the first pin, so a scan that misses this token comes before all its reads.
                header_->used_tokens.compare_exchange_strong(used, used + 1, std::memory_order_seq_cst);
            }
            if (take(slot(i))) return &slot(i);
        }
        bool found = false;
        if (can_die())
            for (uint32_t i = 0; i < max_tokens_; i++) found |= take_from_dead(slot(i));
        if (!found) break;
    }
    return Error::make(MUSTER_E_LIMIT, "all %u tokens are registered", static_cast<unsigned>(max_tokens_));
}

// Unpins and hands the deferred objects over. The slot is claimed by this process, or its own.
void Epoch::abandon(EpochSlot &slot) noexcept {
    for (auto &hazard : slot.hazards) hazard.store(0, std::memory_order_release);
    // release, both: a thread that finds nothing protected by them frees what was, after all reads of it.
    if (slot.uses_hazards.exchange(0, std::memory_order_release) != 0)
        header_->hazard_users.fetch_sub(1, std::memory_order_release);
    slot.token.depth = 0;
    slot.epoch().store(0, std::memory_order_release); // all reads by the owner came before
    const bool has_objects = slot.pending() != 0;
    if (has_objects) header_->orphans.fetch_add(1, std::memory_order_relaxed);
    become(slot, has_objects ? MUSTER_EPOCH_TOKEN_ORPHANED : MUSTER_EPOCH_TOKEN_FREE);
}

// A function of an object that this token frees must not: its objects are in use.
Status Epoch::unregister_token(EpochSlot &slot) noexcept {
    if (slot.is_freeing) return MUSTER_E_WOULD_DEADLOCK;
    seal(slot);
    abandon(slot);
    release();
    return MUSTER_OK;
}

// True if the owner of the token was found dead, and the token was taken from it.
bool Epoch::take_from_dead(EpochSlot &slot) noexcept {
    const uint64_t seen = slot.state().load(std::memory_order_acquire);
    if (kind_of(seen) != MUSTER_EPOCH_TOKEN_IN_USE && kind_of(seen) != MUSTER_EPOCH_TOKEN_ADOPTED) return false;
    const bool complete = slot.owner_generation.load(std::memory_order_acquire) == generation_of(seen);
    const int32_t process = process_of(seen), thread = slot.owner_thread.load(std::memory_order_relaxed);
    const uint64_t start = slot.owner_start.load(std::memory_order_relaxed);
    const uint64_t home = slot.owner_home.load(std::memory_order_relaxed); // before the claim replaces it
    const bool bound = header_->is_thread_bound != 0 && complete;
    if (may_be_alive(process, bound ? thread : process, complete ? start : 0)) return false;
    if (!claim(slot, seen)) return false; // another thread has taken it
    header_->deaths.fetch_add(1, std::memory_order_relaxed);
    // The owner may have died between any two stores: all its objects are stamped again, which is later and safe.
    slot.is_freeing = false;
    slot.ripe_end = 0;
    find_free_bags(slot);
    slot.seal_head.store(slot.seal_tail.load(std::memory_order_relaxed), std::memory_order_relaxed);
    slot.sealed.store(slot.head.load(std::memory_order_relaxed), std::memory_order_relaxed);
    seal(slot);
    abandon(slot);
    // A thread of this process: the reference of its token, which keeps the opening that has registered it. (An earlier
    // process with our number had threads that began before us.)
    if (bound && kind_of(seen) == MUSTER_EPOCH_TOKEN_IN_USE && process == process_ && start >= process_start_)
        reinterpret_cast<EpochHome *>(home)->manager.load(std::memory_order_relaxed)->release();
    return true;
}

// A process that dies without a pin blocks no other, but its objects wait. One token is checked at a time.
void Epoch::look_for_dead() noexcept {
    int64_t before = header_->looked_at_ns.load(std::memory_order_relaxed);
    const int64_t now = now_ns();
    if (now - before < look_for_dead_ns) return;
    if (!header_->looked_at_ns.compare_exchange_strong(before, now, std::memory_order_relaxed)) return;
    const uint32_t used = used_tokens();
    if (used != 0) take_from_dead(slot(header_->next_look.fetch_add(1, std::memory_order_relaxed) % used));
}

// Describes a token that is pinned at an earlier epoch. `out` stays unchanged if the owner of the token is dead.
void Epoch::find_blocking(EpochSlot &slot, uint64_t epoch, muster_epoch_attempt &out) noexcept {
    const int64_t now = now_ns();
    if (slot.blocked_epoch.load(std::memory_order_acquire) != epoch) {
        slot.blocked_since_ns.store(now, std::memory_order_relaxed);
        slot.owner_checked_ns.store(now, std::memory_order_relaxed);
        slot.blocked_epoch.store(epoch, std::memory_order_release);
    }
    const int64_t since = slot.blocked_since_ns.load(std::memory_order_relaxed);
    if (can_die() && now - slot.owner_checked_ns.load(std::memory_order_relaxed) >= check_owner_every_ns) {
        slot.owner_checked_ns.store(now, std::memory_order_relaxed);
        if (take_from_dead(slot)) return;
    }
    out.outcome = MUSTER_EPOCH_HELD;
    out.token = index_of(slot);
    out.process = process_of(slot.state().load(std::memory_order_relaxed));
    out.thread = slot.owner_thread.load(std::memory_order_relaxed);
    out.since_ns = static_cast<uint64_t>(now > since ? now - since : 0);
}

// The store is published by the unpin or by the next pin, both release: a thread that advances the epoch past this pin
// has seen one of them, and the objects of this time are freed only after that.
void Epoch::protect(EpochSlot &slot, uint32_t hazard, uint64_t object) noexcept {
    if (object != 0 && slot.uses_hazards.load(std::memory_order_relaxed) == 0) {
        slot.uses_hazards.store(1, std::memory_order_relaxed);
        header_->hazard_users.fetch_add(1, std::memory_order_seq_cst);
    }
    // release: reads of the object that was protected before come before.
    slot.hazards[hazard].store(object, std::memory_order_release);
}

} // namespace muster
