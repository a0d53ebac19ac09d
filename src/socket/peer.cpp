// SPDX-License-Identifier: MIT
#include "socket/peer.hpp"

namespace muster {

namespace {
constexpr uint32_t hello_magic = 0x4B53534D; // "MSSK"
constexpr uint8_t hello_version = 1;
constexpr size_t hello_bytes = 22;        // without loans
constexpr size_t max_joined_bytes = 8192; // messages up to this size are written by one call, several together
constexpr size_t max_joined = 256;

// What is written of a message: its head, and the frames that are no references.
uint64_t joined_bytes(const Outgoing &outgoing) noexcept {
    const Message &message = *outgoing.message;
    uint64_t bytes = MessageHead::bytes(message, outgoing.loans) + message.payload_bytes();
    for (size_t i = 0; outgoing.loans.size() != 0 && i < message.frames().size(); i++)
        if (outgoing.is_reference(i)) bytes -= message.frames()[i].bytes;
    return bytes;
}
void join(const Outgoing &outgoing, char *to) noexcept {
    const Message &message = *outgoing.message;
    PlacedByteWriter writer(to);
    MessageHead::put(writer, message, outgoing.loans);
    for (size_t i = 0; i < message.frames().size(); i++)
        if (!outgoing.is_reference(i)) writer.bytes(message.frames()[i].text());
}
} // namespace

std::string PeerHello::write() const {
    ByteWriter to;
    to.number(hello_magic).number(hello_version).number(kind).number(address).number(incarnation);
    if (loans.process != 0) to.number(loans.process).number(loans.descriptor).bytes(loans.token);
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
    if (bytes.size() > hello_bytes) {
        hello.loans.process = from.number<uint32_t>();
        hello.loans.descriptor = from.number<int32_t>();
        hello.loans.token = from.array<sizeof hello.loans.token>();
        from.require(hello.loans.process != 0);
    }
    from.require(hello.address != 0 && (hello.kind == MUSTER_SOCKET_DEALER || hello.kind == MUSTER_SOCKET_ROUTER));
    if (!from.is_complete()) return std::nullopt;
    return hello;
}

// References to frames of this message, once.
void SocketPeer::make_loans(Outgoing &outgoing) noexcept {
    if (std::exchange(outgoing.has_loans, true) || !refers(*outgoing.message)) return;
    const auto &frames = outgoing.message->frames();
    for (size_t i = 0; i < frames.size() && !outgoing.loans.is_full(); i++) {
        LoanReference reference;
        if (loans_->refer(frames[i], *sheet_, reference)) outgoing.loans.add(i, reference);
    }
}

void SocketPeer::make_head(Outgoing &outgoing) {
    if (!outgoing.head.empty()) return;
    make_loans(outgoing);
    outgoing.head.resize(MessageHead::bytes(*outgoing.message, outgoing.loans));
    PlacedByteWriter to(outgoing.head.data());
    MessageHead::put(to, *outgoing.message, outgoing.loans);
}

// The head was made.
Status SocketPeer::write(Outgoing &outgoing) noexcept {
    const Message &message = *outgoing.message;
    for (; outgoing.part <= message.frames().size(); outgoing.part++, outgoing.offset = 0) {
        if (outgoing.part != 0 && outgoing.is_reference(outgoing.part - 1)) continue;
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

// Several messages were written by one call, and this is the first that was not written completely: `moved` of its
// bytes were.
void SocketPeer::begin_at(Outgoing &outgoing, size_t moved) {
    const Message &message = *outgoing.message;
    make_head(outgoing);
    for (outgoing.offset = moved; outgoing.part <= message.frames().size(); outgoing.part++) {
        if (outgoing.part != 0 && outgoing.is_reference(outgoing.part - 1)) continue;
        const size_t size = outgoing.part == 0 ? outgoing.head.size() : message.frames()[outgoing.part - 1].bytes;
        if (outgoing.offset < size) break;
        outgoing.offset -= size;
    }
}

Status SocketPeer::write_first(Outgoing &outgoing) {
    make_loans(outgoing);
    const uint64_t total = joined_bytes(outgoing);
    if (total > max_joined_bytes) {
        make_head(outgoing);
        return write(outgoing);
    }
    char joined[max_joined_bytes];
    join(outgoing, joined);
    if (stream.write_quickly(joined, total)) return MUSTER_OK;
    Deadline once(0);
    size_t moved = 0;
    const Status status = stream.write(joined, total, once, moved);
    if (status == MUSTER_AGAIN && moved != 0) begin_at(outgoing, moved);
    return status;
}

Status SocketPeer::write_next(size_t &out_written) {
    out_written = 0;
    char joined[4 * max_joined_bytes];
    size_t sizes[max_joined], count = 0, bytes = 0;
    for (Outgoing &one : out) {
        make_loans(one);
        const uint64_t size = joined_bytes(one);
        if (one.is_begun() || count == max_joined || size > max_joined_bytes || bytes + size > sizeof joined) break;
        join(one, joined + bytes);
        bytes += sizes[count++] = size;
    }
    if (count == 0) {
        make_head(out.front());
        const Status status = write(out.front());
        out_written = status == MUSTER_OK ? 1 : 0;
        return status;
    }
    Deadline once(0);
    size_t moved = 0;
    const Status status = stream.write(joined, bytes, once, moved);
    for (; out_written < count && moved >= sizes[out_written]; out_written++) moved -= sizes[out_written];
    if (moved != 0) begin_at(*std::next(out.begin(), static_cast<ptrdiff_t>(out_written)), moved);
    return status;
}

} // namespace muster
