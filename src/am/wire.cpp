// SPDX-License-Identifier: MIT
#include "am/wire.hpp"

namespace muster {

const char *AmHead::get(const unsigned char *from, uint32_t max_payload, AmHead &out) noexcept {
    out.payload = get_u32(from);
    out.kind = static_cast<AmKind>(from[4]);
    out.handler = get_u16(from + 6);
    out.id = get_u64(from + 8);
    out.status = static_cast<int32_t>(get_u32(from + 16));
    if (out.kind != AmKind::hello && out.kind != AmKind::request && out.kind != AmKind::reply)
        return "a frame of an unknown kind";
    if (from[5] != 0 || get_u32(from + 20) != 0) return "a frame with reserved fields";
    if (out.payload > max_payload) return "a frame that is larger than this endpoint accepts";
    if (out.kind == AmKind::hello) {
        if (out.handler != 0 || out.id != 0 || out.status != 0 || out.payload != AmHello::bytes)
            return "a malformed hello";
    } else if (out.kind == AmKind::request) {
        if (out.handler >= am_handlers || out.status != 0) return "a malformed request";
    } else if (out.handler != 0 || (out.status > 0 && out.status != MUSTER_AGAIN)) {
        return "a malformed reply";
    }
    return nullptr;
}

bool AmHello::get(const unsigned char *from, size_t size, AmHello &out) noexcept {
    if (size != bytes || get_u32(from) != am_magic) return false;
    out.max_bytes = get_u32(from + 4);
    out.max_requests = get_u32(from + 8);
    out.direction = get_u64(from + 12);
    return out.max_bytes >= am_least_bytes && out.max_bytes <= am_most_bytes && out.max_requests >= am_least_requests &&
           out.max_requests <= am_most_requests;
}

} // namespace muster
