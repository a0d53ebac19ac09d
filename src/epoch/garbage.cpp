// SPDX-License-Identifier: MIT
// Deferred objects: the queue of a token, the stamps of its batches, and freeing.
#include "base/back_off.hpp"
#include "epoch/epoch.hpp"

#include <algorithm>
#include <sched.h>

namespace muster {

// The next 64 positions get the bag that became empty last. An owner that is killed meanwhile loses nothing: see
// find_free_bags().
void Epoch::take_bag(EpochSlot &slot, uint64_t tail) noexcept {
    const uint32_t *const stack = bag_table(slot) + table_entries_;
    const bool is_fresh = slot.free_bags == 0;
    bag_of(slot, tail) = is_fresh ? slot.fresh_bags : stack[slot.free_bags - 1];
    is_fresh ? slot.fresh_bags++ : slot.free_bags--;
}

DeferredObject Epoch::pop(EpochSlot &slot) noexcept {
    const uint64_t head = slot.head.load(std::memory_order_relaxed);
    const DeferredObject object = entry(slot, head);
    // First: a process that is killed now loses the object, and does not free it twice.
    slot.head.store(head + 1, std::memory_order_release);
    if ((head + 1) % bag_objects == 0) bag_table(slot)[table_entries_ + slot.free_bags++] = bag_of(slot, head);
    return object;
}

// After the owner was killed: every bag is free that has no position from head to tail.
void Epoch::find_free_bags(EpochSlot &slot) noexcept {
    uint32_t *const stack = bag_table(slot) + table_entries_;
    const uint32_t fresh = slot.fresh_bags;
    std::fill_n(stack, fresh, 0);
    const uint64_t head = slot.head.load(std::memory_order_relaxed), tail = slot.tail.load(std::memory_order_relaxed);
    for (uint64_t at = head / bag_objects * bag_objects; at < tail; at += bag_objects) stack[bag_of(slot, at)] = 1;
    slot.free_bags = 0;
    for (uint32_t bag = 0; bag < fresh; bag++)
        if (stack[bag] == 0) stack[slot.free_bags++] = bag;
}

// False: as many objects wait as may.
bool Epoch::push(EpochSlot &slot, const DeferredObject &what) noexcept {
    const uint64_t tail = slot.tail.load(std::memory_order_relaxed);
    if (tail - slot.head.load(std::memory_order_relaxed) >= capacity_) return false;
    if (tail % bag_objects == 0) take_bag(slot, tail);
    entry(slot, tail) = what;
    slot.tail.store(tail + 1, std::memory_order_release); // a successor of a killed owner finds the object complete
    return true;
}

Status Epoch::defer(EpochSlot &slot, const DeferredObject &what) noexcept {
    if (!push(slot, what)) return MUSTER_AGAIN;
    slot.deferred.store(slot.deferred.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return MUSTER_OK;
}

uint64_t Epoch::stamp_now() noexcept {
    return (is_led() ? header_->stamp_epoch : header_->epoch).load(std::memory_order_seq_cst);
}

// Stamps what was added since the last time with the global epoch, which is read after everything was unlinked.
void Epoch::seal(EpochSlot &slot) noexcept {
    const uint64_t tail = slot.tail.load(std::memory_order_relaxed);
    if (tail == slot.sealed.load(std::memory_order_relaxed)) return;
    full_fence();
    const uint64_t stamp = stamp_now();
    const uint64_t first = slot.seal_head.load(std::memory_order_relaxed);
    const uint64_t next = slot.seal_tail.load(std::memory_order_relaxed);
    constexpr uint64_t seals = std::extent_v<decltype(EpochSlot::seals)>;
    Seal *const last = next == first ? nullptr : &slot.seals[(next - 1) % seals];
    if (last != nullptr && (last->stamp.load(std::memory_order_relaxed) == stamp || next - first == seals)) {
        // Its objects wait longer than they have to if the stamp grows. The stamp first: see take_from_dead().
        last->stamp.store(stamp, std::memory_order_release);
        last->end.store(tail, std::memory_order_release);
    } else {
        slot.seals[next % seals].stamp.store(stamp, std::memory_order_relaxed);
        slot.seals[next % seals].end.store(tail, std::memory_order_relaxed);
        slot.seal_tail.store(next + 1, std::memory_order_release);
    }
    slot.sealed.store(tail, std::memory_order_release);
}

void Epoch::refresh_ripe(EpochSlot &slot) noexcept {
    uint64_t first = slot.seal_head.load(std::memory_order_relaxed);
    const uint64_t next = slot.seal_tail.load(std::memory_order_relaxed);
    if (first == next) return;
    const uint64_t epoch = now(); // acquire: pairs with the step that made the objects ripe
    for (; first != next; first++) {
        const Seal &seal = slot.seals[first % std::size(slot.seals)];
        if (seal.stamp.load(std::memory_order_relaxed) + 2 > epoch) break;
        slot.ripe_end = seal.end.load(std::memory_order_relaxed);
    }
    slot.seal_head.store(first, std::memory_order_relaxed);
}

bool Epoch::is_protected(uint64_t object) noexcept {
    if (header_->hazard_users.load(std::memory_order_acquire) == 0) return false;
    for (uint32_t i = 0, used = used_tokens(); i < used; i++) {
        EpochSlot &one = slot(i);
        if (one.uses_hazards.load(std::memory_order_acquire) == 0) continue;
        for (const auto &hazard : one.hazards)
            if (hazard.load(std::memory_order_acquire) == object) return true;
    }
    return false;
}

// Frees the first object of a token, which is ripe. False: it has to be handed back, and there is no room.
bool Epoch::free_first(EpochSlot &slot, Poll &poll) noexcept {
    if (poll.count == poll.capacity && entry(slot, slot.head.load(std::memory_order_relaxed)).free == nullptr)
        return false;
    const DeferredObject object = pop(slot);
    if (is_protected(object.object)) {
        push(slot, object); // there is room for one
        return true;
    }
    if (object.free == nullptr) // there is room, see above: NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
        poll.objects[poll.count++] = object.object;
    else
        object.free(object.user, reinterpret_cast<void *>(static_cast<uintptr_t>(object.object)));
    slot.freed.store(slot.freed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    poll.freed++;
    return true;
}

// True: no ripe object is left.
bool Epoch::free_ripe(EpochSlot &slot, Poll &poll) noexcept {
    slot.is_freeing = true;
    bool done = true;
    while (slot.head.load(std::memory_order_relaxed) < slot.ripe_end && done)
        done = poll.has_room() && free_first(slot, poll);
    slot.is_freeing = false;
    return done;
}

bool Epoch::free_orphans(Poll &poll) noexcept {
    bool done = true;
    for (uint32_t i = 0, used = used_tokens(); i < used && done; i++) {
        EpochSlot &one = slot(i);
        const uint64_t seen = one.state().load(std::memory_order_acquire);
        if (kind_of(seen) != MUSTER_EPOCH_TOKEN_ORPHANED || !claim(one, seen)) continue;
        header_->orphans.fetch_sub(1, std::memory_order_relaxed);
        seal(one);
        refresh_ripe(one);
        done = free_ripe(one, poll);
        abandon(one);
    }
    return done;
}

Status Epoch::poll(EpochSlot &slot, Poll &poll) noexcept {
    if (slot.is_freeing) return MUSTER_E_WOULD_DEADLOCK;
    const uint64_t tail = slot.tail.load(std::memory_order_relaxed);
    if (tail - slot.sealed.load(std::memory_order_relaxed) >= batch_objects) seal(slot);
    refresh_ripe(slot);
    const bool has_ripe = slot.head.load(std::memory_order_relaxed) < slot.ripe_end;
    // Objects that wait are freed by polls alone, also if no more are deferred: perhaps none can be, since all wait.
    const bool waits = slot.pending() != 0 || header_->orphans.load(std::memory_order_relaxed) != 0 || can_die();
    const bool is_idle = !has_ripe && waits && ++slot.idle_polls >= idle_polls_limit;
    if (!has_ripe && (tail - slot.tried_tail >= batch_objects || is_idle)) {
        if (is_idle) seal(slot);
        slot.idle_polls = 0;
        slot.tried_tail = tail;
        muster_epoch_attempt attempt;
        attempt.epoch = header_->epoch.load(std::memory_order_relaxed);
        if (attempt.epoch == slot.tried_epoch) { // no other thread has advanced it since
            advance(attempt);
            if (attempt.outcome == MUSTER_EPOCH_HELD && queue_ && slot.pending() > capacity_ / 2)
                queue_->raise(*this, MUSTER_EPOCH_BLOCKED);
        }
        slot.tried_epoch = attempt.epoch;
        refresh_ripe(slot);
    }
    bool done = free_ripe(slot, poll);
    if (done && header_->orphans.load(std::memory_order_relaxed) != 0 && poll.has_room()) {
        slot.is_freeing = true; // their functions must not poll with this token, either
        done = free_orphans(poll);
        slot.is_freeing = false;
    }
    return done ? MUSTER_OK : MUSTER_AGAIN;
}

// Readers do not notify when they unpin: that would cost them a fence. So a wait tries again, with growing pauses.
Status Epoch::synchronize(EpochSlot &slot, Deadline &deadline, muster_epoch_attempt &out) noexcept {
    if (slot.epoch().load(std::memory_order_relaxed) != 0) return MUSTER_E_WOULD_DEADLOCK;
    seal(slot);   // the next poll frees what this token has deferred
    full_fence(); // what the caller has unlinked comes before the epoch that is read here
    const uint64_t wanted = stamp_now() + 2;
    BackOff back_off(10'000, 1'000'000);
    for (;;) {
        const Status status = advance(out);
        if (out.epoch >= wanted) return MUSTER_OK;
        if (status == MUSTER_OK) continue;
        if (deadline.look_once() || deadline.passed()) return MUSTER_TIMEOUT;
        if (out.outcome == MUSTER_EPOCH_LOST && !is_led()) {
            ::sched_yield();
            continue;
        }
        const timespec pause{0, static_cast<long>(back_off.next_ns())};
        ::nanosleep(&pause, nullptr);
    }
}

Status Epoch::barrier(EpochSlot &slot, Deadline &deadline) noexcept {
    if (slot.is_freeing || slot.epoch().load(std::memory_order_relaxed) != 0) return MUSTER_E_WOULD_DEADLOCK;
    BackOff back_off(10'000, 1'000'000);
    while (slot.pending() != 0) {
        seal(slot);
        muster_epoch_attempt attempt;
        if (const Status status = synchronize(slot, deadline, attempt); status != MUSTER_OK) return status;
        refresh_ripe(slot);
        Poll poll;
        poll.max_objects = UINT32_MAX;
        if (!free_ripe(slot, poll)) return MUSTER_AGAIN;
        if (poll.freed != 0 || slot.pending() == 0) continue;
        if (deadline.look_once() || deadline.passed()) return MUSTER_TIMEOUT; // what is left is protected
        const timespec pause{0, static_cast<long>(back_off.next_ns())};
        ::nanosleep(&pause, nullptr);
    }
    return MUSTER_OK;
}

// Objects that have to be handed back stay.
uint64_t Epoch::free_all_functions(EpochSlot &slot) noexcept {
    uint64_t freed = 0;
    slot.is_freeing = true;
    for (uint64_t left = slot.pending(); left != 0; left--) {
        const DeferredObject object = pop(slot);
        if (object.free == nullptr) {
            push(slot, object);
            continue;
        }
        object.free(object.user, reinterpret_cast<void *>(static_cast<uintptr_t>(object.object)));
        slot.freed.store(slot.freed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        freed++;
    }
    slot.is_freeing = false;
    return freed;
}

Status Epoch::clear(uint64_t &freed) noexcept {
    const uint32_t used = used_tokens();
    for (uint32_t i = 0; i < used; i++) {
        if (slot(i).epoch().load(std::memory_order_acquire) != 0 || slot(i).is_freeing) return MUSTER_E_BUSY;
        for (const auto &hazard : slot(i).hazards)
            if (hazard.load(std::memory_order_acquire) != 0) return MUSTER_E_BUSY;
    }
    freed = 0;
    for (uint32_t i = 0; i < used; i++) freed += free_all_functions(slot(i));
    return MUSTER_OK;
}

} // namespace muster
