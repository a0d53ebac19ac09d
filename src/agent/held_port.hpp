// SPDX-License-Identifier: MIT
#pragma once
#include "base/fd.hpp"

#include <cstdint>

namespace muster {

// A free TCP port of this host, reserved as long as this object holds it: no process can listen there, not even the one
// for which it is meant, so it is released immediately before that process is started. The port is outside the range
// from which the system assigns ports, so that another process is unlikely to take it in between.
class HeldPort {
  public:
    static Result<HeldPort> find() noexcept;
    uint16_t number() const noexcept { return number_; }
    void release() noexcept { socket_.reset(); }

  private:
    Fd socket_;
    uint16_t number_ = 0;
};

} // namespace muster
