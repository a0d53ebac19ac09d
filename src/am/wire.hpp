// SPDX-License-Identifier: MIT
#pragma once
// Frames of active messages: a head of 24 bytes, and payload. docs/wire.md has the format.
#include "base/codec.hpp"

#include <muster/am.h>

namespace muster {

inline constexpr uint32_t am_magic = 0x32'6d'61'6d; // "mam2"
inline constexpr uint32_t am_first_internal_handler = MUSTER_AM_MAX_HANDLER + 1, am_handlers = 2 * 256;
inline constexpr uint32_t am_least_bytes = 4096, am_most_bytes = 16U << 20; // of max_bytes
inline constexpr size_t direct_bytes = 16 * 1024; // from here on payload is read to, or written from, its place
inline constexpr size_t bulk_bytes = 256 * 1024;  // and from here on by a thread that may block
inline constexpr uint32_t am_least_requests = 16, am_most_requests = 65536;

enum class AmKind : uint8_t { hello = 1, request = 2, reply = 3 };

struct AmHead {
    static constexpr size_t bytes = 24;

    AmKind kind = AmKind::hello;
    uint16_t handler = 0; // requests
    int32_t status = 0;   // replies
    uint32_t payload = 0; // bytes that follow
    uint64_t id = 0;      // of the request, chosen by the requesting side

    void put(char *to) const noexcept {
        PlacedByteWriter writer(to);
        writer.number(payload).number(kind).number(uint8_t{0}).number(handler).number(id).number(status);
        writer.number(uint32_t{0});
    }
    // Null if it is well-formed, otherwise what is wrong.
    static const char *get(const unsigned char *from, uint32_t max_payload, AmHead &out) noexcept;
};

// The first frame in each direction: an AmHead, and these 20 bytes.
struct AmHello {
    static constexpr size_t bytes = 20;
    uint32_t max_bytes = 0, max_requests = 0; // that its sender accepts
    uint64_t direction = 0;                   // random: of the requests of its sender, in traces

    void put(char *to) const noexcept {
        PlacedByteWriter(to).number(am_magic).number(max_bytes).number(max_requests).number(direction);
    }
    static bool get(const unsigned char *from, size_t size, AmHello &out) noexcept;
};

} // namespace muster
