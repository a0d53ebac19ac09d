// SPDX-License-Identifier: MIT
#include "cluster/broadcast_words.hpp"

#include "cluster/bytes.hpp"
#include "cluster/greeting.hpp"

namespace muster {

namespace {

constexpr size_t fixed_bytes = 4 + 8 + 8 + 1;

} // namespace

std::string encode(const BroadcastHead &head) {
    std::string bytes;
    put_number(bytes, head.key.origin);
    put_number(bytes, head.key.number);
    put_number(bytes, head.size);
    put_number(bytes, static_cast<uint8_t>(head.label.size()));
    bytes += head.label;
    for (const Station &station : head.stations) {
        put_number(bytes, static_cast<uint32_t>(station.size()));
        for (const uint32_t member : station) put_number(bytes, member);
    }
    return bytes;
}

BroadcastKey key_of_broadcast(std::string_view words) noexcept {
    if (words.size() < fixed_bytes) return {};
    BroadcastKey key;
    key.origin = take_number<uint32_t>(words);
    key.number = take_number<uint64_t>(words);
    return key;
}

std::optional<BroadcastHead> decode_broadcast(std::string_view rest) {
    if (rest.size() < fixed_bytes || rest.size() > broadcast_head_max) return std::nullopt;
    BroadcastHead head;
    head.key.origin = take_number<uint32_t>(rest);
    head.key.number = take_number<uint64_t>(rest);
    head.size = take_number<uint64_t>(rest);
    const size_t label = take_number<uint8_t>(rest);
    if (label > label_max || label > rest.size()) return std::nullopt;
    head.label = rest.substr(0, label);
    rest.remove_prefix(label);
    while (!rest.empty()) {
        if (rest.size() < 4) return std::nullopt;
        const size_t count = take_number<uint32_t>(rest);
        if (count == 0 || count > rest.size() / 4) return std::nullopt;
        Station station(count);
        for (uint32_t &member : station) member = take_number<uint32_t>(rest);
        head.stations.push_back(std::move(station));
    }
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
