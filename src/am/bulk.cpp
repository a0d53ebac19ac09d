// SPDX-License-Identifier: MIT
// Large payloads that are read to their place, or written from it, for a peer: by threads that may block, so that they
// move as fast as the stream does, and the loop thread serves others meanwhile.
#include "am/active_messages.hpp"
#include "queue/call_threads.hpp"

namespace muster {

namespace {

constexpr size_t buffer_bytes = 4096;
// Without progress for this time a thread gives its role back to the loop thread: there are few such threads, and a
// peer that stands still must not keep one.
constexpr int64_t patience_ns = 10'000'000;
constexpr int64_t until_next_frame_ns = 200'000;

// Holds a role of the peer until run() ends.
class AmBulkTask final : public CallTask {
  public:
    AmBulkTask(ActiveMessages &am, AmPeer &peer, bool reads) noexcept : am_(&am), peer_(&peer), reads_(reads) {}
    void run() noexcept override {
        if (reads_)
            am_->read_bulk(*peer_);
        else
            am_->write_bulk(*peer_);
    }

  private:
    ~AmBulkTask() override = default;
    const Ref<ActiveMessages> am_;
    const Ref<AmPeer> peer_;
    const bool reads_;
};

} // namespace

// Only if a thread is free: those that are not may wait for what this task moves. Otherwise the loop thread moves it.
bool ActiveMessages::add_bulk_task(AmPeer &peer, bool reads) noexcept {
    try {
        return CallThreads::add_at_once(*make_ref<AmBulkTask>(*this, peer, reads));
    } catch (const std::bad_alloc &) {
        return false;
    }
}

// Loop thread, which has the role of the reader: does another thread have it now?
bool ActiveMessages::give_bulk_reading(AmPeer &from) noexcept {
    const AmPeer::Placed &placed = from.placed;
    if (context_->external() || placed.to == nullptr || placed.call || placed.bytes - placed.done < bulk_bytes)
        return false;
    from.is_read_in_bulk = true;
    if (add_bulk_task(from, true)) return true;
    from.is_read_in_bulk = false;
    return false;
}

void ActiveMessages::read_bulk(AmPeer &from) noexcept {
    unsigned char buffer[buffer_bytes];
    Status status = MUSTER_OK;
    from.stream().pause_watch(true);
    // Until another request was read: the loop thread executes it, and what follows.
    while (status == MUSTER_OK && from.is_read_in_bulk) {
        Deadline soon(from.placed.to != nullptr ? patience_ns : until_next_frame_ns);
        status = try_read(from, buffer, sizeof buffer, soon, false);
    }
    from.is_read_in_bulk = false;
    from.stream().pause_watch(false);
    from.leave_reading();
    read_later(from); // which notices the end of the stream, too
}

// What waits for a peer, if it is enough for a thread of its own.
void ActiveMessages::give_bulk_writing(AmPeer &to) noexcept {
    if (context_->external() || !to.begin_writing(bulk_bytes)) return;
    if (!add_bulk_task(to, false)) to.end_writing();
}

void ActiveMessages::write_bulk(AmPeer &to) noexcept {
    {
        const std::shared_lock memory(memory_lock_);
        to.write_waiting(patience_ns);
    }
    context_->notify(changed_);
}

} // namespace muster
