// SPDX-License-Identifier: MIT
#pragma once
// A request to a peer until its reply.
#include "queue/operation.hpp"

#include <algorithm>

namespace muster {

// Any thread. Its thread waits for it, or its queue gets an entry, or nothing (`is_unattended`): then the peer keeps a
// failure.
class AmCall final : public Object, public QueueOperation {
  public:
    AmCall(Context &context, void *reply, size_t capacity, bool unattended, int32_t kind = MUSTER_DONE_AM) noexcept
        : QueueOperation(context, kind), is_unattended(unattended), reply_(reply), capacity_(capacity) {}
    const bool is_unattended;
    uint64_t id = 0; // of the request; set before it is made

    // What the entry of a success says, where that is not the size of the reply. Before the request.
    void set_entry_bytes(uint64_t bytes) noexcept { entry_bytes_ = bytes; }

    // The reply is a piece of a copy of so many bytes. Before the request.
    void set_whole_bytes(size_t bytes) noexcept { whole_bytes_ = bytes; }
    size_t whole_bytes() const noexcept { return whole_bytes_; }

    // For a thread that will wait for it: if this thread reads the reply itself, the bytes are read to their place,
    // since nothing else ends the call and gives that place back meanwhile.
    void set_reader() noexcept { reader_ = pthread_self(), has_reader_ = true; }
    // Where a reply of so many bytes is to be read; null: it is not. `reads_at_once`: this thread never waits while it
    // reads, so that it may fill the memory of a call that has a queue, which ends at any moment: see while_open().
    unsigned char *place_for(size_t bytes, bool reads_at_once) noexcept {
        const bool is_reader = has_queue() ? reads_at_once : has_reader_ && pthread_equal(reader_, pthread_self());
        return is_reader && reply_ != nullptr && bytes <= capacity_ && !is_over() ? place() : nullptr;
    }
    // Runs `body`, which fills a part of that place. False: the call is over, and the place was given back.
    template <class Body>
    bool while_open(const Body &body) noexcept {
        if (has_queue()) return unless_over(body);
        body();
        return true;
    }

    // Without data: it is in its place.
    void answer(Status status, const unsigned char *data, size_t bytes) noexcept {
        const bool fits = reply_ == nullptr || bytes <= capacity_;
        Outcome outcome;
        if (!fits && status >= 0)
            outcome.why =
                Error::make(MUSTER_E_LIMIT, "the reply has %zu bytes, and there is room for %zu", bytes, capacity_);
        else if (status != MUSTER_OK)
            outcome.why = Error::from_status(status);
        outcome.bytes = entry_bytes_ == UINT64_MAX ? bytes : fits && status >= 0 ? entry_bytes_ : 0;
        complete(std::move(outcome), [&] {
            if (reply_ != nullptr && data != nullptr && bytes != 0)
                std::copy_n(data, std::min(bytes, capacity_), place());
        });
    }
    void end(const Error &why, size_t bytes = 0) noexcept {
        Outcome outcome;
        outcome.why = why;
        outcome.bytes = bytes;
        complete(std::move(outcome));
    }
    // The reply's memory belongs to the caller again when it returns.
    Outcome wait_for(Deadline &deadline) noexcept {
        return wait(deadline, [this](Status status) {
            end(status == MUSTER_AGAIN || status == MUSTER_TIMEOUT ? Error::make(MUSTER_TIMEOUT, "no reply in time")
                                                                   : Error::from_status(status));
        });
    }

  private:
    unsigned char *place() const noexcept { return static_cast<unsigned char *>(reply_); }
    void end_early(Ending why) noexcept override {
        end(Error::from_status(why == Ending::timeout          ? MUSTER_TIMEOUT
                               : why == Ending::context_closed ? MUSTER_E_CLOSED
                                                               : MUSTER_E_CANCELED));
    }
    Object &owner() noexcept override { return *this; }

    void *const reply_;
    const size_t capacity_;
    pthread_t reader_{};
    bool has_reader_ = false;
    uint64_t entry_bytes_ = UINT64_MAX;
    size_t whole_bytes_ = 0;
};

} // namespace muster
