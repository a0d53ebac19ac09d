// SPDX-License-Identifier: MIT
#pragma once
// Polling the memory of sources. A thread that polls before it sleeps (base/awake.hpp) looks into the memory of the
// sources that were ready lately, so the peer of a stream need not write to a descriptor, and this thread need not ask
// the system: a message of 64 B between two processes that wait at queues takes 1.4 us in place of 3.7
// (tests/bench/cluster --what trip --over queue).
#include "queue/state.hpp"

namespace muster {

class Queue::Looks {
  public:
    Looks() = default;
    Looks(const Looks &) = delete;
    Looks &operator=(const Looks &) = delete;

    // With the lock of the queue held. While sources are held here, detach() waits for them.
    void take(State &state) noexcept;
    // The events that were found are reported, the sources belong to others again. True: there is an event. Unlocks
    // for a moment if a source was held: their last references may be released.
    bool give_back(State &state, std::unique_lock<std::mutex> &hold) noexcept;

    // Without the lock.
    bool begin() noexcept; // true: there is something to look at
    bool look() noexcept;  // true: an event was found
    void end() noexcept;   // descriptors show the events of the sources again; may find one

  private:
    struct One {
        Source *source;
        Ref<Object> owner;
        uint32_t events;
        bool begun;
    };
    One ones_[State::recent_sources];
    uint32_t count_ = 0;
};

} // namespace muster
