// SPDX-License-Identifier: MIT
#pragma once
// What a round of epochs asks a node for. docs/wire.md has the format.
#include "base/codec.hpp"
#include "memory/nodes.hpp"

#include <algorithm>

namespace muster {

struct RoundRequest {
    enum What : uint64_t {
        raise_copies = 1, // the epoch is at least `first`, stamps at least `second`
        find_pins = 2,    // OK: no token is pinned before `first`; otherwise AGAIN
        end_round = 3,    // as raise_copies; the lease of the round ends
        exclude = 4       // the locale `first` has ended for another one: disconnect it
    };
    static constexpr uint32_t fan_out = 8; // nodes that one node asks
    static constexpr size_t bytes = 40;
    static constexpr size_t reply_bytes = 8; // the highest epoch of the nodes that were asked
    // UNREACHABLE, the status of a reply: a node of the part has ended, and the node that has begun the round
    // is to ask each node itself.

    // Nodes, by how far each is, in the order of all, from the node that has begun the round. The first one is asked,
    // and asks the rest.
    struct Part {
        uint32_t first = 0, end = 0;
        bool is_one() const noexcept { return end - first == 1; }
        bool fits(const MemoryNodes &nodes) const noexcept { return first < end && end <= nodes.nodes.size(); }
        std::vector<Part> cut(uint32_t most) const { // into at most so many parts
            std::vector<Part> parts;
            const uint32_t count = end - first, number = std::min(most, count);
            for (uint32_t i = 0; i < number; i++)
                parts.push_back({first + static_cast<uint32_t>(uint64_t{count} * i / number),
                                 first + static_cast<uint32_t>(uint64_t{count} * (i + 1) / number)});
            return parts;
        }
    };

    uint64_t what = 0, first = 0, second = 0;
    uint32_t origin = 0; // the node that has begun the round
    Part part;

    uint32_t node(const MemoryNodes &nodes) const noexcept { // that is asked
        const size_t count = nodes.nodes.size();
        return static_cast<uint32_t>((origin % count + part.first % count) % count);
    }
    void put(unsigned char *to) const noexcept {
        PlacedByteWriter writer(reinterpret_cast<char *>(to));
        writer.number(what).number(first).number(second).number(origin).number(part.first).number(part.end);
        writer.number(uint32_t{0});
    }
    static bool get(const unsigned char *from, size_t size, RoundRequest &out) noexcept {
        ByteReader reader(from, size);
        out.what = reader.number<uint64_t>();
        out.first = reader.number<uint64_t>();
        out.second = reader.number<uint64_t>();
        out.origin = reader.number<uint32_t>();
        out.part.first = reader.number<uint32_t>();
        out.part.end = reader.number<uint32_t>();
        const auto zero = reader.number<uint32_t>();
        reader.require(zero == 0 && reader.rest().empty());
        return reader.is_complete();
    }
};

} // namespace muster
