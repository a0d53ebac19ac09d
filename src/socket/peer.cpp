// SPDX-License-Identifier: MIT
#include "socket/peer.hpp"

namespace muster {

namespace {
constexpr uint32_t hello_magic = 0x4B53534D; // "MSSK"
constexpr uint8_t hello_version = 1;
constexpr size_t max_joined_bytes = 8192; // smaller messages are written by one call
} // namespace

std::string PeerHello::write() const {
    ByteWriter to;
    to.number(hello_magic).number(hello_version).number(kind).number(address).number(incarnation);
    return to.take();
}

std::optional<PeerHello> PeerHello::read(std::string_view bytes) noexcept {
    ByteReader from(bytes);
    PeerHello hello;
    from.expect(hello_magic);
    from.expect(hello_version);
    hello.kind = from.number<uint8_t>();
    hello.address = from.number<uint64_t>();
    hello.incarnation = from.number<uint64_t>();
    from.require(hello.address != 0 && (hello.kind == MUSTER_SOCKET_DEALER || hello.kind == MUSTER_SOCKET_ROUTER));
    if (!from.is_complete()) return std::nullopt;
    return hello;
}

Status SocketPeer::write(Outgoing &outgoing) noexcept {
    const Message &message = *outgoing.message;
    for (; outgoing.part <= message.frames().size(); outgoing.part++, outgoing.offset = 0) {
        const std::string_view bytes =
            outgoing.part == 0 ? std::string_view(outgoing.head) : message.frames()[outgoing.part - 1].text();
        if (bytes.size() == outgoing.offset) continue;
        Deadline once(0);
        size_t moved = 0;
        const Status status = stream.write(bytes.data() + outgoing.offset, bytes.size() - outgoing.offset, once, moved);
        outgoing.offset += moved;
        if (status != MUSTER_OK) return status;
    }
    return MUSTER_OK;
}

Status SocketPeer::write_first(Outgoing &outgoing) {
    const Message &message = *outgoing.message;
    const size_t head = MessageHead::bytes(message);
    const uint64_t total = head + message.payload_bytes();
    if (total > max_joined_bytes) {
        outgoing.head.resize(head);
        PlacedByteWriter to(outgoing.head.data());
        MessageHead::put(to, message);
        return write(outgoing);
    }
    char joined[max_joined_bytes];
    PlacedByteWriter to(joined);
    MessageHead::put(to, message);
    for (const Frame &frame : message.frames()) to.bytes(frame.text());
    if (stream.write_quickly(joined, total)) return MUSTER_OK;
    Deadline once(0);
    size_t moved = 0;
    const Status status = stream.write(joined, total, once, moved);
    if (status == MUSTER_OK) return MUSTER_OK;
    outgoing.head.assign(joined, head);
    for (outgoing.offset = moved; outgoing.part <= message.frames().size(); outgoing.part++) {
        const size_t size = outgoing.part == 0 ? head : message.frames()[outgoing.part - 1].bytes;
        if (outgoing.offset < size) break;
        outgoing.offset -= size;
    }
    return status;
}

} // namespace muster
