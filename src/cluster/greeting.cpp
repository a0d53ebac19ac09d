// SPDX-License-Identifier: MIT
#include "cluster/greeting.hpp"

#include "cluster/bytes.hpp"
#include "stream/stream.hpp"
#include "transport/handshake.hpp"

#include <cstring>

namespace muster {

namespace {

constexpr char magic[] = "muster-cluster 1"; // the number is the version
constexpr size_t magic_bytes = sizeof magic - 1;
constexpr size_t fixed_bytes = magic_bytes + 1 + 8 + 4 + 4 + 8;

} // namespace

std::string encode(const ClusterGreeting &greeting) {
    std::string bytes(magic);
    put_number(bytes, greeting.kind);
    put_number(bytes, greeting.cluster);
    put_number(bytes, greeting.from);
    put_number(bytes, greeting.to);
    put_number(bytes, greeting.number);
    return bytes.append(greeting.label, 0, label_max);
}

std::optional<ClusterGreeting> decode_greeting(std::string_view rest) {
    if (rest.size() < fixed_bytes || rest.size() > fixed_bytes + label_max || rest.substr(0, magic_bytes) != magic)
        return std::nullopt;
    rest.remove_prefix(magic_bytes);
    ClusterGreeting greeting;
    greeting.kind = take_number<uint8_t>(rest);
    greeting.cluster = take_number<uint64_t>(rest);
    greeting.from = take_number<uint32_t>(rest);
    greeting.to = take_number<uint32_t>(rest);
    greeting.number = take_number<uint64_t>(rest);
    greeting.label = rest;
    return greeting;
}

std::optional<ClusterGreeting> greeting_of(muster_stream *stream, uint64_t *out_key) {
    std::string_view greeting = unwrap(stream)->greeting();
    const uint64_t key = take_other_key(greeting);
    if (out_key != nullptr) *out_key = key;
    return decode_greeting(greeting);
}

} // namespace muster
