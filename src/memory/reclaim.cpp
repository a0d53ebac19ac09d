// SPDX-License-Identifier: MIT
// Objects whose time has come go back to the heaps of their locales, here and elsewhere.
#include "memory/memory.hpp"

#include "base/back_off.hpp"
#include "epoch/layout.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr uint32_t batch = 512; // objects that are freed together
constexpr uint64_t max_wait_ns = uint64_t{1} << 62;
constexpr int64_t turn_ns = 100'000'000; // then the context may have been closed
} // namespace

Status Memory::reclaim(muster_epoch_token *token, uint32_t max_objects, uint64_t max_ns, uint32_t &out_freed) noexcept {
    const int64_t until = max_ns == 0 ? INT64_MAX : now_ns() + static_cast<int64_t>(std::min(max_ns, max_wait_ns));
    Status first = MUSTER_OK;
    bool all_sent = remote_ == nullptr || remote_->send_freed() == MUSTER_OK;
    while (out_freed < max_objects) {
        uint64_t objects[batch];
        uint32_t count = 0;
        const Status status =
            muster_epoch_poll(token, std::min(batch, max_objects - out_freed), max_ns, objects, batch, &count, nullptr);
        if (status < 0) return status;
        out_freed += count;
        // One message for each owner that is elsewhere.
        std::sort(objects, objects + count);
        for (uint32_t i = 0, next = 0; i < count; i = next) {
            const uint32_t locale = shape.locale_of(objects[i]);
            Status freed = MUSTER_OK;
            uint32_t good = i; // those before it are offsets
            for (next = i; next < count && shape.locale_of(objects[next]) == locale; next++)
                if (has(objects[next], 1))
                    objects[good++] = shape.offset_of(objects[next]);
                else
                    freed = shape.why_refused(objects[next]);
            if (good != i && !is_here(locale))
                all_sent = remote_->release_later(locale, objects + i, good - i) == MUSTER_OK && all_sent;
            else
                for (uint32_t k = i; k < good; k++)
                    if (const Status one = heap(locale).release(objects[k]); one != MUSTER_OK) freed = one;
            if (first == MUSTER_OK) first = freed;
        }
        if (first == MUSTER_OK && !all_sent && status == MUSTER_OK) return MUSTER_AGAIN;
        if (status == MUSTER_OK || now_ns() >= until) return first != MUSTER_OK ? first : status;
    }
    return first != MUSTER_OK ? first : Status{MUSTER_AGAIN};
}

Status Memory::clear(muster_epoch_token *token, Deadline &deadline, uint64_t &out_freed) noexcept {
    Status first = MUSTER_OK;
    BackOff back_off(10'000, 1'000'000);
    for (;;) {
        const int64_t left = deadline.look_once() ? 0
                             : deadline.endless() ? turn_ns
                                                  : std::min(deadline.left(), turn_ns);
        const Status waited = muster_epoch_synchronize(token, left, nullptr);
        if (group_->context().closed()) return MUSTER_E_CLOSED;
        if (waited == MUSTER_TIMEOUT && !deadline.look_once() && !deadline.passed()) continue;
        if (waited != MUSTER_OK) return waited;
        uint32_t freed = 0;
        const Status status = reclaim(token, UINT32_MAX, 0, freed);
        out_freed += freed;
        if (status < 0 && first == MUSTER_OK) first = status;
        const bool is_empty = reinterpret_cast<const EpochSlot *>(token)->pending() == 0;
        if (is_empty && (remote_ == nullptr || remote_->send_freed() == MUSTER_OK)) break;
        if (deadline.look_once() || deadline.passed()) return MUSTER_TIMEOUT; // protected objects, or a full stream
        const timespec pause{0, static_cast<long>(back_off.next_ns())};
        ::nanosleep(&pause, nullptr);
    }
    // The owners have freed theirs when they have replied.
    const Status flushed = remote_ == nullptr ? Status{MUSTER_OK} : remote_->flush(UINT32_MAX, deadline);
    if (flushed == MUSTER_AGAIN || flushed == MUSTER_TIMEOUT) return MUSTER_TIMEOUT;
    return first;
}

} // namespace muster
