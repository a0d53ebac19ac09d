// SPDX-License-Identifier: MIT
#pragma once
// The first message of a member to the member it dials: the hello of the connection.
#include "base/result.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster {

class Stream;

// A value.
struct ClusterHello {
    enum Kind : uint8_t {
        control = 1,   // the link of a worker and its master; from `no_member` of cluster 0: it has no number yet
        stream = 2,    // a stream of the host's
        answer = 3,    // a stream that `to` has requested, with the number of its request
        broadcast = 4, // bytes for many members, see broadcast/wire.hpp
        ticket = 5     // a worker that was launched with others fetches its own ticket, see lifecycle/launch_keys.hpp
    };
    uint8_t kind = 0;
    uint64_t cluster = 0;
    uint32_t from = 0, to = 0;
    uint64_t number = 0;
    std::string label{};
};

constexpr uint32_t no_member = UINT32_MAX;
constexpr size_t max_label_bytes = 255;

std::string encode(const ClusterHello &hello);
std::optional<ClusterHello> decode_hello(std::string_view bytes);
// None: the peer is no member of a cluster. `out_key`: the one of the listener's other keys by which the peer is
// authenticated, 0: none of them.
std::optional<ClusterHello> hello_of(const Stream &stream, uint64_t *out_key = nullptr);

// The answer of a member that does not accept a stream, in place of a zero byte: the length of the text (1), the status
// (4), the text. A value without a text is sent with its name as text, so that the first byte is not zero.
constexpr size_t refusal_head_bytes = 1 + 4;
std::string encode_refusal(const Error &why);
Error decode_refusal(std::string_view bytes) noexcept; // MUSTER_E_PROTOCOL: the bytes are none

} // namespace muster
