// SPDX-License-Identifier: MIT
#pragma once
// How long to poll before sleeping, learnt from the success of earlier waits. Sleeping costs the sleeping side a system
// call and the other side another one, and on a machine with deep idle states 50 us and more until the thread runs
// again.
//
// A wait in which polling succeeded is followed by waits of full length, an unsuccessful one by waits of half the
// length, down to none. Then there is a trial from time to time. A trial has full length: when both sides sleep, the
// answer arrives only after the other side has woken up; from then on the other side is answered at once, so that its
// own trial succeeds, too.
#include <cstdint>

namespace muster {

// The caller decides what a turn is. Not synchronised: one waiter at a time.
template <uint32_t longest, uint32_t shortest, uint32_t first = longest>
class Awake {
  public:
    uint32_t turns() noexcept {
        if (turns_ >= shortest) return turns_;
        if (++sleeps_ < sleeps_between_trials) return 0;
        sleeps_ = 0;
        return longest;
    }
    void paid() noexcept { turns_ = longest; }
    void did_not() noexcept { turns_ /= 2; }

  private:
    static constexpr uint32_t sleeps_between_trials = 64;
    uint32_t turns_ = first, sleeps_ = 0;
};

} // namespace muster
