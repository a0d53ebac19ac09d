// SPDX-License-Identifier: MIT
#pragma once
// How long a peer may be silent.
#include "context/context.hpp"
#include "transport/handshake.hpp"

#include <algorithm>

namespace muster {

// A value.
struct PeerTimeouts {
    static constexpr int64_t max_heartbeat_ns = 3'600'000'000'000; // between heartbeats that a peer may announce

    int64_t silent_ns = 0;
    int64_t dead_ns = -1; // negative: never

    PeerTimeouts() noexcept = default;
    // A peer whose heartbeat interval is longer than this side expects is not silent yet; one without a thread of its
    // own is not dead.
    PeerTimeouts(const ContextSettings &own, const Agreement &terms) noexcept
        : PeerTimeouts(own, terms, std::clamp<int64_t>(terms.peer_heartbeat_ns, 0, max_heartbeat_ns)) {}
    PeerTimeouts(const ContextSettings &own, const Agreement &terms, int64_t heartbeat_ns) noexcept {
        silent_ns = std::max(own.silent_ns, 3 * heartbeat_ns);
        if (own.dead_ns >= 0 && !terms.peer_external) dead_ns = std::max(own.dead_ns, 4 * heartbeat_ns);
    }
};

} // namespace muster
