// SPDX-License-Identifier: MIT
// What a peer of a socket may send: its hello, and messages, cut into pieces in any way; and format frames.
#include "input.hpp"

#include "message/values.hpp"
#include "message/wire.hpp"
#include "socket/peer.hpp"

#include <string>
#include <vector>

using namespace muster;

namespace {

constexpr uint64_t max_payload = 1 << 20;

// Loaned frames: those of the first slots are there, and zero.
class Loans final : public LoanSource {
  public:
    Status resolve(const LoanReference &reference, size_t bytes, Ref<FrameMemory> &out,
                   const unsigned char *&data) override {
        static const unsigned char memory[4096] = {};
        if (reference.slot >= 8) return MUSTER_E_PROTOCOL;
        if (reference.generation % 4 == 3) return MUSTER_E_STALE;
        if (bytes > sizeof memory) return MUSTER_E_PROTOCOL;
        unsigned char *own = nullptr;
        out = FrameMemory::make(1, own);
        data = memory;
        return MUSTER_OK;
    }
};

std::string written(const Message &message) {
    std::string bytes(MessageHead::bytes(message), '\0');
    PlacedByteWriter to(bytes.data());
    MessageHead::put(to, message);
    for (const Frame &frame : message.frames()) bytes += frame.text();
    return bytes;
}

// The messages of these bytes, and whether they end in an error. Long frames are read to their place, as sockets do.
bool read_in_pieces(const uint8_t *data, size_t size, size_t piece, std::vector<std::string> &messages,
                    std::string &why) {
    Loans loans;
    MessageReader reader(max_payload);
    reader.set_loans(&loans);
    const auto take = [&](Ref<Message> message) {
        FUZZ_CHECK(message->payload_bytes() <= max_payload && !message->has_pointers);
        messages.push_back(written(*message));
    };
    for (size_t at = 0; at < size;) {
        const size_t k = std::min(size - at, piece);
        const MessageReader::Place place = reader.place();
        if (place.bytes >= 64) {
            const size_t n = std::min(k, place.bytes);
            memcpy(place.to, data + at, n);
            reader.placed(n, take);
            at += n;
            if (*reader.why() == '\0') continue;
            why = reader.why();
            return false;
        }
        const std::vector<unsigned char> copy(data + at, data + at + k); // so that reading past it is seen
        if (!reader.feed(copy.data(), copy.size(), take)) {
            why = reader.why();
            return false;
        }
        at += k;
    }
    return true;
}

void read_values(const uint8_t *data, size_t size) {
    Message &message = *make_ref<Message>().detach();
    message.add(std::string_view(reinterpret_cast<const char *>(data), size));
    std::vector<muster_value> values(64);
    char picture[65];
    uint32_t count = 0;
    const auto read = get_values(message.frames()[0], false, nullptr, picture, values.data(), 64, count);
    if (read) { // written again they are the same bytes, but for the bits of a NaN
        Message &again = *make_ref<Message>().detach();
        const std::string_view types(picture, count);
        FUZZ_CHECK(static_cast<bool>(add_values(again, types, values.data())));
        if (types.find_first_of("f") == std::string_view::npos)
            FUZZ_CHECK(again.frames()[0].text() == message.frames()[0].text());
        again.release();
    } else {
        FUZZ_CHECK(read.status() == MUSTER_E_PROTOCOL || (read.status() == MUSTER_E_LIMIT && count > 64));
    }
    message.release();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in(data, size);
    const uint8_t mode = in.byte();
    const size_t piece = 1 + in.byte();
    size_t left;
    const uint8_t *bytes = in.take(in.left(), left);
    if (mode % 4 == 0) {
        const auto hello = PeerHello::read({reinterpret_cast<const char *>(bytes), left});
        if (hello) FUZZ_CHECK(hello->write() == std::string(reinterpret_cast<const char *>(bytes), left));
    } else if (mode % 4 == 1) {
        read_values(bytes, left);
    } else {
        std::vector<std::string> whole, pieces;
        std::string why, other_why;
        const bool good = read_in_pieces(bytes, left, SIZE_MAX, whole, why);
        FUZZ_CHECK(read_in_pieces(bytes, left, piece, pieces, other_why) == good);
        FUZZ_CHECK(whole == pieces && why == other_why && (good || !why.empty()));
        for (const std::string &one : whole) { // what was read can be written and read again
            std::vector<std::string> again;
            FUZZ_CHECK(read_in_pieces(reinterpret_cast<const uint8_t *>(one.data()), one.size(), piece, again, why));
            FUZZ_CHECK(again.size() == 1 && again[0] == one);
        }
    }
    return 0;
}
