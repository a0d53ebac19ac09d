// SPDX-License-Identifier: MIT
#pragma once
// How long a peer may be silent.
#include "context/context.hpp"
#include "transport/handshake.hpp"

#include <algorithm>

namespace muster {

// A value.
struct Patience {
    static constexpr int64_t slowest_ns = 3'600'000'000'000; // beats that a peer may claim to be apart

    int64_t silent_ns = 0;
    int64_t dead_ns = -1; // negative: never

    Patience() noexcept = default;
    // A peer that beats slower than this side expects is not silent yet; one without a thread of its own is not dead.
    Patience(const ContextSettings &own, const Agreement &terms) noexcept
        : Patience(own, terms, std::clamp<int64_t>(terms.peer_heartbeat_ns, 0, slowest_ns)) {}
    Patience(const ContextSettings &own, const Agreement &terms, int64_t beat) noexcept {
        silent_ns = std::max(own.silent_ns, 3 * beat);
        if (own.dead_ns >= 0 && !terms.peer_external) dead_ns = std::max(own.dead_ns, 4 * beat);
    }
};

} // namespace muster
