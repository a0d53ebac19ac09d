// SPDX-License-Identifier: MIT
// The handshake: raw bytes to either role, an honest peer whose words are changed on their way, and the details of a
// peer that knows the secret and lies.
#include "input.hpp"

#include "transport/handshake_details.hpp"

#include <vector>

using namespace muster;

namespace {

HandshakeConfig config(bool dialer, uint8_t choices) {
    HandshakeConfig c;
    c.dialer = dialer;
    c.auth = (choices & 1) == 0;
    c.secret = secret_key("a secret to fuzz with", 21);
    c.seal = static_cast<SealPolicy>((choices >> 1) % 3);
    c.local = (choices & 8) != 0;
    c.upgrade = (choices & 16) != 0;
    c.shared = (choices & 32) != 0;
    c.passing = static_cast<Passing>((choices >> 6) % 3);
    c.host = HostIdentity::own();
    c.hello = "hello";
    c.offer = [](DescriptorOffer &out) {
        out.name = "@somewhere";
        return true;
    };
    return c;
}

// Feeds bytes in pieces; what comes back is bounded and of a known kind.
Status feed(Handshake &handshake, const uint8_t *data, size_t size, uint8_t piece) {
    Status status = MUSTER_AGAIN;
    size_t at = 0;
    while (status == MUSTER_AGAIN && at < size) {
        const size_t k = std::min<size_t>(size - at, 1 + piece);
        size_t used = 0;
        status = handshake.feed(data + at, k, used);
        FUZZ_CHECK(used <= k);
        FUZZ_CHECK(status == MUSTER_OK || status == MUSTER_AGAIN || status == MUSTER_E_AUTH ||
                   status == MUSTER_E_PROTOCOL || status == MUSTER_E_LIMIT || status == MUSTER_E_UNSUPPORTED);
        if (status == MUSTER_AGAIN) FUZZ_CHECK(used == k || handshake.want_segment());
        if (status < 0) FUZZ_CHECK(handshake.error().message_bytes != 0);
        if (handshake.want_segment()) break;
        at += used;
    }
    if (status == MUSTER_AGAIN) FUZZ_CHECK(handshake.wants() <= 8192);
    FUZZ_CHECK(handshake.agreement().hello.size() <= hello_max_bytes);
    return status;
}

void raw_bytes(Input &in) {
    const uint8_t choices = in.byte(), piece = in.byte();
    Handshake handshake(config((in.byte() & 1) != 0, choices));
    size_t size;
    const uint8_t *data = in.take(in.left(), size);
    FUZZ_CHECK(feed(handshake, data, size, piece) != MUSTER_OK); // random bytes never complete a handshake
    FUZZ_CHECK(handshake.take_output().size() < 10000);
}

// Both roles run; the input changes some of the bytes. With changed bytes no handshake may succeed, without them none
// may fail.
void man_in_the_middle(Input &in) {
    const uint8_t choices = in.byte() & ~1u;
    Handshake dialer(config(true, choices)), listener(config(false, in.byte() & 1 ? choices : in.byte() & ~1u));
    Handshake *const sides[2] = {&dialer, &listener};
    Status status[2] = {MUSTER_AGAIN, MUSTER_AGAIN};
    bool touched = false;
    for (int turn = 0; turn < 12; turn++) {
        Handshake &from = *sides[turn % 2], &to = *sides[1 - turn % 2];
        std::string text = from.take_output();
        const uint8_t what = in.byte();
        if (!text.empty() && what % 4 == 1) {
            const uint8_t bits = in.byte();
            text[in.number(2) % text.size()] ^= static_cast<char>(bits);
            touched |= bits != 0;
        } else if (!text.empty() && what % 4 == 2) {
            text.resize(in.number(2) % text.size());
            touched = true;
        }
        Status &s = status[1 - turn % 2];
        if (s == MUSTER_AGAIN && !to.want_segment())
            s = feed(to, reinterpret_cast<const uint8_t *>(text.data()), text.size(), in.byte());
        if (to.want_segment()) s = to.paired((in.byte() & 1) != 0);
        if (s < 0 && !to.take_output().empty()) break; // a refusal: over
    }
    if (status[0] == MUSTER_OK && status[1] == MUSTER_OK) {
        const Agreement &a = dialer.agreement(), &b = listener.agreement();
        FUZZ_CHECK(a.key_in == b.key_out && a.key_out == b.key_in);
        FUZZ_CHECK(a.sealed == b.sealed && a.paired == b.paired && a.local == b.local);
        FUZZ_CHECK(a.hello == "hello" && b.hello == "hello");
        FUZZ_CHECK(!touched || a.pairing != Passing::none);
    }
}

void details(Input &in) {
    size_t size;
    const uint8_t *data = in.take(in.left(), size);
    HandshakeDetails got;
    if (!got.decode({reinterpret_cast<const char *>(data), size})) return;
    FUZZ_CHECK(got.hello.size() <= hello_max_bytes && got.offer.name.size() <= HandshakeDetails::name_max_bytes);
    FUZZ_CHECK(got.window >= 4096 && got.window <= uint64_t{1} << 30 && got.heartbeat_ns >= 0);
    HandshakeDetails again;
    FUZZ_CHECK(again.decode(got.encode()));
    FUZZ_CHECK(again.hello == got.hello && again.window == got.window && again.offer.name == got.offer.name);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const bool started = start_crypto();
    FUZZ_CHECK(started);
    Input in(data, size);
    switch (in.byte() % 3) {
    case 0:
        raw_bytes(in);
        break;
    case 1:
        man_in_the_middle(in);
        break;
    default:
        details(in);
    }
    return 0;
}
