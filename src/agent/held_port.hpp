// SPDX-License-Identifier: MIT
#pragma once
#include "base/fd.hpp"

#include <cstdint>

namespace muster {

// A TCP port of this host that is free, and stays so as long as this holds it: nobody can listen there, the one it is
// meant for included. It is let go right before that one is started. It lies outside of the range from which the
// system takes ports by itself, so that what is left to chance is small.
class HeldPort {
  public:
    static Result<HeldPort> find() noexcept;
    uint16_t number() const noexcept { return number_; }
    void let_go() noexcept { socket_.reset(); }

  private:
    Fd socket_;
    uint16_t number_ = 0;
};

} // namespace muster
