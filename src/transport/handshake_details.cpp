// SPDX-License-Identifier: MIT
#include "transport/handshake_details.hpp"

#include "base/codec.hpp"

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
    flag_direct = 128,
    flag_aes = 256
};
} // namespace

std::string HandshakeDetails::encode() const {
    const uint32_t flags = (local ? uint32_t{flag_local} : 0) | (external ? uint32_t{flag_external} : 0) |
                           (upgrade ? uint32_t{flag_upgrade} : 0) | (shared ? uint32_t{flag_shared} : 0) |
                           (here ? uint32_t{flag_here} : 0) | (aside ? uint32_t{flag_aside} : 0) |
                           (covered ? uint32_t{flag_covered} : 0) | (direct ? uint32_t{flag_direct} : 0) |
                           (aes ? uint32_t{flag_aes} : 0);
    ByteWriter to;
    to.number(flags).number(window).number(heartbeat_ns);
    to.bytes(host.boot).number(host.pid_namespace).number(host.net_namespace).number(host.user);
    to.text(hello).number(pairing).bytes(offer.token);
    return to.number(static_cast<uint8_t>(offer.name.size())).bytes(offer.name).take();
}

bool HandshakeDetails::decode(std::string_view text) {
    ByteReader from(text);
    const auto flags = from.number<uint32_t>(); // unknown ones are options of a later version
    local = (flags & flag_local) != 0;
    external = (flags & flag_external) != 0;
    upgrade = (flags & flag_upgrade) != 0;
    shared = (flags & flag_shared) != 0;
    here = (flags & flag_here) != 0;
    aside = (flags & flag_aside) != 0;
    covered = (flags & flag_covered) != 0;
    direct = (flags & flag_direct) != 0;
    aes = (flags & flag_aes) != 0;
    window = from.number<uint64_t>();
    from.require(window >= 4096 && window <= (uint64_t{1} << 30) && (window & (window - 1)) == 0);
    heartbeat_ns = from.number<int64_t>();
    from.require(heartbeat_ns >= 0);
    host.boot = from.array<16>();
    host.pid_namespace = from.number<uint64_t>();
    host.net_namespace = from.number<uint64_t>();
    host.user = from.number<uint32_t>();
    hello = from.text(hello_max_bytes);
    const auto passing = from.number<uint8_t>();
    from.require(passing <= static_cast<uint8_t>(Passing::out_of_band));
    pairing = static_cast<Passing>(passing);
    offer.token = from.array<sizeof offer.token>();
    const size_t name_bytes = from.number<uint8_t>();
    from.require(name_bytes <= name_max_bytes);
    offer.name = from.bytes(name_bytes);
    return from.is_complete();
}

} // namespace muster
