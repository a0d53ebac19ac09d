// SPDX-License-Identifier: MIT
#pragma once
// The details of each side, inside its proof.
#include "transport/handshake.hpp"

#include <string_view>

namespace muster {

// A value.
struct HandshakeDetails {
    bool local = false, external = false, upgrade = false, shared = false, here = false, aside = false, covered = false,
         direct = false, aes = false;
    uint64_t window = 0;
    int64_t heartbeat_ns = 0;
    HostIdentity host;
    std::string hello;
    // The listener's choice, and the address for it.
    Passing pairing = Passing::none;
    DescriptorOffer offer;

    static constexpr size_t fixed_bytes = 4 + 8 + 8 + 16 + 8 + 8 + 4 + 2; // before the hello
    static constexpr size_t offer_bytes = 1 + 32 + 1;                     // after it, before the name
    static constexpr size_t name_max_bytes = 100;
    static constexpr size_t max_bytes = fixed_bytes + hello_max_bytes + offer_bytes + name_max_bytes;

    std::string encode() const;
    bool decode(std::string_view text); // false: no details, or a value out of its range
};

} // namespace muster
