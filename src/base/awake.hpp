// SPDX-License-Identifier: MIT
#pragma once
// How long to wait awake before sleeping, learnt from what has paid. To sleep costs the one who sleeps a system call
// and the other side another, and on a machine whose idle cores doze 50 us and more until it runs again.
//
// A wait that paid is followed by ones of full length, one that did not by ones of half, down to none. Then there is a
// trial now and again. A trial has full length: when both sides have come to sleep, the answer to one that stays awake
// comes only after the other's waking up; and from then on the other is answered at once, so that its own trial pays,
// too.
#include <cstdint>

namespace muster {

// A turn is what the user makes of it. Not synchronised: one waiter at a time.
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
