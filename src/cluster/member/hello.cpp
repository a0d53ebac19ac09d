// SPDX-License-Identifier: MIT
#include "cluster/member/hello.hpp"

#include "base/codec.hpp"
#include "stream/stream.hpp"
#include "transport/handshake.hpp"

namespace muster {

namespace {

constexpr char magic[] = "muster-cluster 1"; // the number is the version

} // namespace

std::string encode(const ClusterHello &hello) {
    std::string bytes(magic);
    ByteWriter(bytes)
        .number(hello.kind)
        .number(hello.cluster)
        .number(hello.from)
        .number(hello.to)
        .number(hello.number)
        .bytes(std::string_view(hello.label).substr(0, max_label_bytes));
    return bytes;
}

std::optional<ClusterHello> decode_hello(std::string_view bytes) {
    ByteReader reader(bytes);
    reader.require(reader.bytes(sizeof magic - 1) == magic);
    ClusterHello hello;
    hello.kind = reader.number<uint8_t>();
    hello.cluster = reader.number<uint64_t>();
    hello.from = reader.number<uint32_t>();
    hello.to = reader.number<uint32_t>();
    hello.number = reader.number<uint64_t>();
    reader.require(reader.left() <= max_label_bytes);
    hello.label = reader.rest();
    if (!reader.is_valid()) return std::nullopt;
    return hello;
}

std::optional<ClusterHello> hello_of(const Stream &stream, uint64_t *out_key) {
    std::string_view bytes = stream.hello();
    const uint64_t key = take_other_key(bytes);
    if (out_key != nullptr) *out_key = key;
    return decode_hello(bytes);
}

std::string encode_refusal(const Error &why) {
    const Error named = why.message_bytes != 0 ? why : Error::from_status(why.status);
    const std::string_view text = std::string_view(named.message, named.message_bytes).substr(0, 255);
    std::string bytes;
    ByteWriter(bytes).number(static_cast<uint8_t>(text.size())).number(named.status).bytes(text);
    return bytes;
}

Error decode_refusal(std::string_view bytes) noexcept {
    ByteReader reader(bytes);
    const size_t size = reader.number<uint8_t>();
    const auto status = reader.number<int32_t>();
    const std::string_view text = reader.bytes(size);
    if (!reader.is_valid()) return Error::make(MUSTER_E_PROTOCOL, "a malformed refusal");
    return Error::make(status < 0 ? status : Status{MUSTER_E_PEER}, "%.*s", static_cast<int>(text.size()), text.data());
}

} // namespace muster
