// SPDX-License-Identifier: MIT
#pragma once
// The header of the messages of a fabric; fabric.hpp describes it.
#include "transport/frame.hpp"

#include <cstring>

namespace muster {

constexpr size_t fabric_head_bytes = 8;

enum FabricFlag : uint8_t {
    from_beginner = 1, // the sender began the session
    without_proof = 2, // auth=none
    first = 4,         // first message of the beginner
    reset = 8,         // that session is unknown to the sender; no payload
    to_many = 16,      // a share for each peer follows, then the bytes
    known_flags = 31
};

struct FabricHead { // a value
    uint8_t flags = 0;
    uint32_t generation = 0;
};

inline void put_head(unsigned char *to, uint8_t flags, uint32_t generation) noexcept {
    to[0] = 0xB5;
    to[1] = flags;
    put_u16(to + 2, 1);
    put_u32(to + 4, generation);
}

// False: it is invalid. Each byte is read once: the message may be in memory that the peer can write.
inline bool get_head(const unsigned char *data, size_t size, FabricHead &head) noexcept {
    unsigned char copy[fabric_head_bytes];
    if (size < sizeof copy) return false;
    memcpy(copy, data, sizeof copy);
    if (copy[0] != 0xB5 || (copy[1] & ~known_flags) != 0 || get_u16(copy + 2) != 1) return false;
    head = {copy[1], get_u32(copy + 4)};
    return true;
}

// The receiver of the bytes of a message for many, at one of the peers.
struct FabricShare { // a value
    bool from_beginner = false;
    uint32_t generation = 0, stream = 0;
};
constexpr size_t share_bytes = 8;

inline void put_share(unsigned char *to, const FabricShare &share) noexcept {
    put_u32(to, share.generation);
    put_u32(to + 4, share.stream | uint32_t{share.from_beginner} << 31);
}

inline FabricShare get_share(const unsigned char *data) noexcept {
    unsigned char copy[share_bytes];
    memcpy(copy, data, sizeof copy);
    const uint32_t stream = get_u32(copy + 4);
    return {stream >> 31 != 0, get_u32(copy), stream & 0x7fffffff};
}

} // namespace muster
