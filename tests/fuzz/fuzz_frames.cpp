// SPDX-License-Identifier: MIT
// The frames of links and sessions, sealed and not: cut into pieces in any way, they say the same; whatever they say is
// bounded.
#include "input.hpp"

#include "transport/frame.hpp"
#include "transport/handshake.hpp"

#include <string>
#include <vector>

using namespace muster;

namespace {

// Records the contents that it receives.
class Notes final : public FrameSink {
  public:
    std::string data, events;
    Status on_data(uint32_t, const unsigned char *bytes, size_t size) noexcept override {
        FUZZ_CHECK(size >= 1 && size <= frame_data_max);
        data.append(reinterpret_cast<const char *>(bytes), size);
        return MUSTER_OK;
    }
    Status on_frame(FrameType type, uint32_t stream, const unsigned char *payload, size_t size) noexcept override {
        FUZZ_CHECK(size <= 10 + service_max_bytes + hello_max_bytes);
        events += std::to_string(static_cast<int>(type)) + " of " + std::to_string(stream) + " after " +
                  std::to_string(data.size()) + ": " + std::string(reinterpret_cast<const char *>(payload), size) +
                  "\n";
        return MUSTER_OK;
    }
};

Status read_in_pieces(const uint8_t *data, size_t size, size_t piece, Notes &notes, const SecretKey *key,
                      SealCipher cipher = SealCipher::xchacha20_poly1305, const FrameRules &rules = link_frames) {
    FrameReader reader(rules);
    if (key != nullptr) reader.set_opener(std::make_unique<Opener>(key->data(), cipher, 64));
    Status status = MUSTER_OK;
    for (size_t at = 0; at < size && status == MUSTER_OK;) {
        const size_t k = std::min(size - at, piece);
        // A copy of its own size, so that reading past it is seen.
        const std::vector<unsigned char> copy(data + at, data + at + k);
        status = reader.feed(copy.data(), copy.size(), notes);
        at += k;
    }
    if (status < 0) FUZZ_CHECK(status == MUSTER_E_PROTOCOL && reader.why()[0] != '\0');
    return status;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const bool started = start_crypto();
    FUZZ_CHECK(started);
    Input in(data, size);
    const uint8_t mode = in.byte();
    const size_t piece = 1 + in.byte();
    size_t left;
    const uint8_t *bytes = in.take(in.left(), left);
    Notes whole, pieces;
    if ((mode & 1) == 0) {
        const FrameRules &rules = (mode & 2) == 0 ? link_frames : session_frames;
        const Status one = read_in_pieces(bytes, left, SIZE_MAX, whole, nullptr, {}, rules);
        const Status other = read_in_pieces(bytes, left, piece, pieces, nullptr, {}, rules);
        FUZZ_CHECK(one == other && whole.data == pieces.data && whole.events == pieces.events);
        return 0;
    }
    // Sealed by an honest peer, then changed at one place: everything before that arrives, nothing after.
    const SecretKey key = secret_key("seal", 4);
    const SealCipher cipher =
        (mode & 2) != 0 && has_fast_aes() ? SealCipher::aes256_gcm : SealCipher::xchacha20_poly1305;
    Sealer sealer(key.data(), cipher, 64);
    std::string stream(reinterpret_cast<const char *>(sealer.prefix()), seal_prefix_bytes), plain;
    for (size_t at = 0; at < left;) {
        const size_t k = std::min<size_t>(left - at, 1 + bytes[at]);
        std::vector<unsigned char> frame(frame_header_bytes + k + seal_overhead_bytes);
        put_frame_header(frame.data(), FrameType::data, k + seal_overhead_bytes);
        memcpy(frame.data() + frame_header_bytes + seal_lead_bytes, bytes + at, k);
        sealer.seal(frame.data(), k);
        stream.append(reinterpret_cast<const char *>(frame.data()), frame.size());
        plain.append(reinterpret_cast<const char *>(bytes + at), k);
        at += k;
    }
    const auto *sealed = reinterpret_cast<const uint8_t *>(stream.data());
    FUZZ_CHECK(read_in_pieces(sealed, stream.size(), piece, whole, &key, cipher) == MUSTER_OK && whole.data == plain);
    if (left == 0) return 0;
    stream[(mode >> 1) * size_t{131} % stream.size()] ^= 0x40;
    const Status status = read_in_pieces(sealed, stream.size(), piece, pieces, &key, cipher);
    FUZZ_CHECK(plain.compare(0, pieces.data.size(), pieces.data) == 0);
    FUZZ_CHECK(status < 0 || pieces.data.size() < plain.size()); // refused, or still waiting for the rest
    return 0;
}
