// SPDX-License-Identifier: MIT
#include "transport/handshake_details.hpp"

#include "transport/frame.hpp"

#include <cstring>

namespace muster {

namespace {
enum : uint32_t {
    flag_local = 1,
    flag_external = 2,
    flag_upgrade = 4,
    flag_shared = 8,
    flag_here = 16,
    flag_aside = 32,
    flag_covered = 64,
    flag_direct = 128
};
} // namespace

std::string HandshakeDetails::encode() const {
    unsigned char fixed[fixed_bytes];
    const uint32_t flags = (local ? uint32_t{flag_local} : 0) | (external ? uint32_t{flag_external} : 0) |
                           (upgrade ? uint32_t{flag_upgrade} : 0) | (shared ? uint32_t{flag_shared} : 0) |
                           (here ? uint32_t{flag_here} : 0) | (aside ? uint32_t{flag_aside} : 0) |
                           (covered ? uint32_t{flag_covered} : 0) | (direct ? uint32_t{flag_direct} : 0);
    put_u32(fixed, flags);
    put_u64(fixed + 4, window);
    put_u64(fixed + 12, static_cast<uint64_t>(heartbeat_ns));
    memcpy(fixed + 20, host.boot.data(), 16);
    put_u64(fixed + 36, host.pid_namespace);
    put_u64(fixed + 44, host.net_namespace);
    put_u32(fixed + 52, host.user);
    put_u16(fixed + 56, static_cast<uint16_t>(greeting.size()));
    std::string text(reinterpret_cast<char *>(fixed), sizeof fixed);
    text += greeting;
    text += static_cast<char>(pairing);
    text.append(reinterpret_cast<const char *>(offer.token.data()), offer.token.size());
    text += static_cast<char>(offer.name.size());
    text += offer.name;
    return text;
}

bool HandshakeDetails::decode(std::string_view text) {
    if (text.size() < fixed_bytes + offer_bytes) return false;
    const auto *at = reinterpret_cast<const unsigned char *>(text.data());
    const uint32_t flags = get_u32(at); // unknown ones are wishes of a later version
    local = (flags & flag_local) != 0;
    external = (flags & flag_external) != 0;
    upgrade = (flags & flag_upgrade) != 0;
    shared = (flags & flag_shared) != 0;
    here = (flags & flag_here) != 0;
    aside = (flags & flag_aside) != 0;
    covered = (flags & flag_covered) != 0;
    direct = (flags & flag_direct) != 0;
    window = get_u64(at + 4);
    if (window < 4096 || window > (uint64_t{1} << 30) || (window & (window - 1)) != 0) return false;
    const uint64_t heartbeat = get_u64(at + 12);
    if (heartbeat > uint64_t{INT64_MAX}) return false;
    heartbeat_ns = static_cast<int64_t>(heartbeat);
    memcpy(host.boot.data(), at + 20, 16);
    host.pid_namespace = get_u64(at + 36);
    host.net_namespace = get_u64(at + 44);
    host.user = get_u32(at + 52);
    const size_t greeting_bytes = get_u16(at + 56);
    if (greeting_bytes > greeting_max_bytes || text.size() < fixed_bytes + greeting_bytes + offer_bytes) return false;
    greeting = text.substr(fixed_bytes, greeting_bytes);
    at += fixed_bytes + greeting_bytes;
    const size_t name_bytes = at[33];
    if (at[0] > static_cast<uint8_t>(Passing::aside) || name_bytes > name_max_bytes ||
        text.size() != fixed_bytes + greeting_bytes + offer_bytes + name_bytes)
        return false;
    pairing = static_cast<Passing>(at[0]);
    memcpy(offer.token.data(), at + 1, offer.token.size());
    offer.name = text.substr(fixed_bytes + greeting_bytes + offer_bytes, name_bytes);
    return true;
}

} // namespace muster
