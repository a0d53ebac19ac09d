// SPDX-License-Identifier: MIT
#pragma once
// What the members of a group say about themselves: by the handshake of their connections, and in the store.
#include "transport/handshake.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// A value.
struct GroupHello {
    // Flags: this member shares no memory; the group has messages; this is the stream for them.
    static constexpr uint32_t no_memory = 1, has_messages = 2, for_messages = 4;

    uint32_t rank = 0, size = 0, flags = 0;
    uint64_t name = 0;     // a hash of the group's name
    uint64_t instance = 0; // a random number of this open call
    uint64_t slot_bytes = 0;
    HostIdentity host;

    std::string write() const;
    static std::optional<GroupHello> read(std::string_view bytes) noexcept;
};

// The value of a member's key.
struct GroupRecord {
    uint32_t size = 0;
    uint64_t instance = 0;
    std::string address;

    std::string write() const;
    static std::optional<GroupRecord> read(std::string_view bytes);
};

} // namespace muster
