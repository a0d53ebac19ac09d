// SPDX-License-Identifier: MIT
#pragma once
// The head that precedes the bytes of a broadcast on a stream, and accompanies the descriptor of shared memory.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The member that broadcasts, and the number of its broadcast. A value.
struct BroadcastKey {
    uint32_t origin = 0;
    uint64_t number = 0;
    auto operator<=>(const BroadcastKey &) const = default;
};

// Members on one host: the first receives the bytes, and shares them with the others.
using Station = std::vector<uint32_t>;

// A value.
struct BroadcastHead {
    BroadcastKey key{};
    uint64_t size = 0;
    std::string label{};
    std::vector<Station> stations{}; // the receiver's own, and those it relays to; empty: it relays to none
};

constexpr size_t max_broadcast_head = 1 << 20;

std::string encode(const BroadcastHead &head);
BroadcastKey key_of_broadcast(std::string_view head) noexcept;         // of an encoded head; zeros: it is too short
std::optional<BroadcastHead> decode_broadcast(std::string_view bytes); // none: malformed

constexpr size_t broadcast_fan = 3; // branches of a node of the tree

// The branches of a node, each served through its first station: as even as possible, in order. The origin and its
// relays compute the same.
std::vector<std::vector<Station>> branches(const std::vector<Station> &stations, size_t most);

} // namespace muster
