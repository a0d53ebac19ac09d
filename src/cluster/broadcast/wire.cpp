// SPDX-License-Identifier: MIT
#include "cluster/broadcast/wire.hpp"

#include "base/codec.hpp"

namespace muster {

std::string encode(const BroadcastHead &head) {
    std::string bytes;
    ByteWriter writer(bytes);
    writer.number(head.key.origin).number(head.key.number).number(head.size);
    writer.number(static_cast<uint8_t>(head.label.size())).bytes(head.label);
    for (const Station &station : head.stations) {
        writer.number(static_cast<uint32_t>(station.size()));
        for (const uint32_t member : station) writer.number(member);
    }
    return bytes;
}

BroadcastKey key_of_broadcast(std::string_view head) noexcept {
    ByteReader reader(head);
    BroadcastKey key;
    key.origin = reader.number<uint32_t>();
    key.number = reader.number<uint64_t>();
    return key;
}

std::optional<BroadcastHead> decode_broadcast(std::string_view bytes) {
    if (bytes.size() > max_broadcast_head) return std::nullopt;
    ByteReader reader(bytes);
    BroadcastHead head;
    head.key.origin = reader.number<uint32_t>();
    head.key.number = reader.number<uint64_t>();
    head.size = reader.number<uint64_t>();
    head.label = reader.bytes(reader.number<uint8_t>());
    while (reader.left() != 0) {
        const size_t count = reader.number<uint32_t>();
        reader.require(count != 0 && count <= reader.left() / 4);
        if (!reader.is_valid()) break;
        Station station(count);
        for (uint32_t &member : station) member = reader.number<uint32_t>();
        head.stations.push_back(std::move(station));
    }
    if (!reader.is_valid()) return std::nullopt;
    return head;
}

std::vector<std::vector<Station>> branches(const std::vector<Station> &stations, size_t most) {
    std::vector<std::vector<Station>> parts;
    const size_t count = stations.size() < most ? stations.size() : most;
    for (size_t i = 0; i < count; i++)
        parts.emplace_back(stations.begin() + static_cast<ptrdiff_t>(i * stations.size() / count),
                           stations.begin() + static_cast<ptrdiff_t>((i + 1) * stations.size() / count));
    return parts;
}

} // namespace muster
