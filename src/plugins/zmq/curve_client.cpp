// SPDX-License-Identifier: MIT
#include "curve.hpp"

#include "curve_bytes.hpp"

#include <sodium.h>

namespace star {

using namespace curve;

CurveClient::~CurveClient() {
    sodium_memzero(keys_.secret.data(), keys_.secret.size());
}

// Version, padding, our key of this connection, a counter, a box of 64 zeros for the server's key. Empty: the server's
// key is of small order.
std::string CurveClient::first() {
    static constexpr char name[] = "\5HELLO\1\0";
    crypto_box_keypair(own_open_.data(), own_secret_.data());
    std::string hello(hello_bytes, '\0');
    unsigned char *const at = as_bytes(hello);
    memcpy(at, name, sizeof name - 1);
    memcpy(at + 80, own_open_.data(), 32);
    put_counter(at + 112, sent_++);
    const unsigned char zeros[64] = {};
    if (crypto_box_easy(at + 120, zeros, sizeof zeros, short_nonce("CurveZMQHELLO---", at + 112).data(),
                        keys_.server.data(), own_secret_.data()) != 0) {
        state_ = State::over;
        return {};
    }
    state_ = State::welcome;
    return hello;
}

CurveClient::Step CurveClient::take(std::string_view received, std::string &reply, std::string &out_metadata) {
    if (received.substr(0, 6) == "\5ERROR") return Step::unauthenticated;
    switch (state_) {
    case State::welcome:
        return welcome(received, reply);
    case State::ready:
        return ready(received, out_metadata);
    default:
        return Step::broken;
    }
}

// WELCOME: a nonce and a box: the server's key of this connection, and a cookie. INITIATE shows the cookie again, with
// a box: our lasting key, a voucher made with it for both keys in use here, and our metadata.
CurveClient::Step CurveClient::welcome(std::string_view received, std::string &reply) {
    const unsigned char *const at = as_bytes(received);
    if (received.size() != welcome_bytes || memcmp(at, "\7WELCOME", 8) != 0) return Step::broken;
    unsigned char plain[32 + cookie_bytes];
    if (crypto_box_open_easy(plain, at + 24, sizeof plain + mac, long_nonce("WELCOME-", at + 8).data(),
                             keys_.server.data(), own_secret_.data()) != 0)
        return Step::broken;
    const unsigned char *const theirs = plain, *const cookie = plain + 32;
    if (crypto_box_curve25519xsalsa20poly1305_beforenm(shared_.data(), theirs, own_secret_.data()) != 0)
        return Step::broken; // a key of small order

    unsigned char vouched[64], random[16];
    memcpy(vouched, own_open_.data(), 32);
    memcpy(vouched + 32, keys_.server.data(), 32);
    randombytes_buf(random, sizeof random);
    std::string inner(32 + 16 + mac + sizeof vouched, '\0');
    memcpy(as_bytes(inner), keys_.open.data(), 32);
    memcpy(as_bytes(inner) + 32, random, sizeof random);
    if (crypto_box_easy(as_bytes(inner) + 48, vouched, sizeof vouched, long_nonce("VOUCH---", random).data(), theirs,
                        keys_.secret.data()) != 0)
        return Step::broken;
    inner += socket_metadata(side_, offers_aes_);

    reply.assign(9 + cookie_bytes + 8 + mac + inner.size(), '\0');
    memcpy(as_bytes(reply), "\10INITIATE", 9);
    memcpy(as_bytes(reply) + 9, cookie, cookie_bytes);
    put_counter(as_bytes(reply) + 105, sent_++);
    crypto_box_easy_afternm(as_bytes(reply) + 113, as_bytes(std::string_view(inner)), inner.size(),
                            short_nonce("CurveZMQINITIATE", as_bytes(reply) + 105).data(), shared_.data());
    state_ = State::ready;
    return Step::next;
}

// READY: a counter, and a box with the server's metadata.
CurveClient::Step CurveClient::ready(std::string_view received, std::string &out_metadata) {
    const unsigned char *const at = as_bytes(received);
    if (received.size() < 14 + mac || memcmp(at, "\5READY", 6) != 0) return Step::broken;
    received_ = get_counter(at + 6);
    out_metadata.assign(received.size() - 14 - mac, '\0');
    if (crypto_box_open_easy_afternm(as_bytes(out_metadata), at + 14, received.size() - 14,
                                     short_nonce("CurveZMQREADY---", at + 6).data(), shared_.data()) != 0)
        return Step::broken;
    if (offers_aes_ && is_valid_metadata(out_metadata, side_) && has_aes(out_metadata)) start_aes();
    state_ = State::over;
    return Step::done;
}

} // namespace star
