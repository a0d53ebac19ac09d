// SPDX-License-Identifier: MIT
#pragma once
// With what one member dials another; the library's own words, as the greeting of the connection.
#include <muster/transport.h>

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// A value.
struct ClusterGreeting {
    enum Kind : uint8_t {
        control = 1,   // the link between a worker and its master; from `nobody` of cluster 0: one without a number yet
        stream = 2,    // a stream of the host's
        answer = 3,    // a stream that `to` has called for, with the number of the call
        broadcast = 4, // bytes for many members, see broadcast_words.hpp
        ticket = 5     // a worker that was launched with others fetches its own ticket, see launch_keys.hpp
    };
    uint8_t kind = 0;
    uint64_t cluster = 0;
    uint32_t from = 0, to = 0;
    uint64_t number = 0;
    std::string label{};
};

constexpr uint32_t nobody = UINT32_MAX;
constexpr size_t label_max = 255;

std::string encode(const ClusterGreeting &greeting);
std::optional<ClusterGreeting> decode_greeting(std::string_view bytes);
// None: that is no member of a cluster. `out_key`: by which of a listener's other keys it has proved itself, 0: by
// none.
std::optional<ClusterGreeting> greeting_of(muster_stream *stream, uint64_t *out_key = nullptr);

} // namespace muster
