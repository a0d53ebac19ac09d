// SPDX-License-Identifier: MIT
#pragma once
// What goes before the bytes of a broadcast: as the first words of a stream, or with the descriptor of shared memory.
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Whose broadcast, and which of them. A value.
struct BroadcastKey {
    uint32_t origin = 0;
    uint64_t number = 0;
    auto operator<=>(const BroadcastKey &) const = default;
};

// Members of one host: the first gets the bytes, and shares them with the others.
using Station = std::vector<uint32_t>;

// A value.
struct BroadcastHead {
    BroadcastKey key{};
    uint64_t size = 0;
    std::string label{};
    std::vector<Station> stations{}; // the receiver's own, and those it is to hand the bytes on to; empty: none of it
};

constexpr size_t max_broadcast_head = 1 << 20;

std::string encode(const BroadcastHead &head);
BroadcastKey key_of_broadcast(std::string_view head) noexcept;         // of an encoded head; zeros: it is too short
std::optional<BroadcastHead> decode_broadcast(std::string_view bytes); // none: that is no head

constexpr size_t broadcast_fan = 3; // branches of a node of the tree

// What a node hands on, each branch through its first station: as even as it goes, in order. The origin and those that
// hand on come to the same.
std::vector<std::vector<Station>> branches(const std::vector<Station> &stations, size_t most);

} // namespace muster
