// SPDX-License-Identifier: MIT
#include "curve.hpp"

#include "curve_bytes.hpp"

#include <cstring>
#include <sodium.h>
#include <strings.h>

namespace star {

using namespace curve;

namespace {

void put_property(std::string &to, std::string_view name, std::string_view value) {
    to += static_cast<char>(name.size());
    to += name;
    to.append(3, '\0');
    to += static_cast<char>(value.size());
    to += value;
}

Nonce24 message_nonce(bool of_server, const unsigned char *counter) noexcept {
    return of_server ? short_nonce("CurveZMQMESSAGES", counter) : short_nonce("CurveZMQMESSAGEC", counter);
}

constexpr std::string_view cipher_name = "X-Muster-Cipher", cipher_value = "AES-256-GCM";

// Takes the next property off the front. False: it is malformed.
bool take_property(std::string_view &metadata, std::string_view &name, std::string_view &value) noexcept {
    const size_t name_bytes = static_cast<unsigned char>(metadata[0]);
    if (metadata.size() < 1 + name_bytes + 4) return false;
    name = metadata.substr(1, name_bytes);
    const unsigned char *const size = as_bytes(metadata) + 1 + name_bytes;
    const size_t value_bytes = size_t{size[0]} << 24 | size_t{size[1]} << 16 | size_t{size[2]} << 8 | size[3];
    metadata.remove_prefix(1 + name_bytes + 4);
    if (metadata.size() < value_bytes) return false;
    value = metadata.substr(0, value_bytes);
    metadata.remove_prefix(value_bytes);
    return true;
}

bool is_named(std::string_view name, std::string_view wanted) noexcept { // names of ZMTP have no case
    return name.size() == wanted.size() && strncasecmp(name.data(), wanted.data(), name.size()) == 0;
}

std::string_view type_of(ZmtpSide side) noexcept {
    return side == ZmtpSide::server ? "ROUTER" : "DEALER";
}

} // namespace

std::string socket_metadata(ZmtpSide own, bool with_aes) {
    std::string metadata;
    put_property(metadata, "Socket-Type", type_of(own));
    put_property(metadata, "Identity", "");
    if (with_aes) put_property(metadata, cipher_name, cipher_value);
    return metadata;
}

bool is_valid_metadata(std::string_view metadata, ZmtpSide own) noexcept {
    const std::string_view theirs = type_of(own == ZmtpSide::server ? ZmtpSide::client : ZmtpSide::server);
    for (std::string_view name, value; !metadata.empty();) {
        if (!take_property(metadata, name, value)) return false;
        if (is_named(name, "Socket-Type") && value != theirs) return false;
    }
    return true;
}

bool has_aes(std::string_view metadata) noexcept {
    for (std::string_view name, value; !metadata.empty();) {
        if (!take_property(metadata, name, value)) return false;
        if (is_named(name, cipher_name)) return value == cipher_value;
    }
    return false;
}

Curve::~Curve() {
    sodium_memzero(own_secret_.data(), own_secret_.size());
    sodium_memzero(shared_.data(), shared_.size());
}

CurveServer::Step CurveServer::take(std::string_view received, std::string &reply, std::string &out_metadata) {
    switch (state_) {
    case State::hello:
        return hello(received, reply);
    case State::initiate:
        return initiate(received, reply, out_metadata);
    default:
        return Step::broken;
    }
}

// HELLO: version, padding, the client's key of this connection, a counter, a box of 64 zeros for the server's key.
CurveServer::Step CurveServer::hello(std::string_view received, std::string &reply) {
    static constexpr char name[] = "\5HELLO\1\0";
    const unsigned char *const at = as_bytes(received);
    if (received.size() != hello_bytes || memcmp(at, name, sizeof name - 1) != 0) return Step::broken;
    memcpy(client_.data(), at + 80, 32);
    received_ = get_counter(at + 112);
    unsigned char zeros[64];
    if (crypto_box_open_easy(zeros, at + 120, 64 + mac, short_nonce("CurveZMQHELLO---", at + 112).data(),
                             client_.data(), keys_.secret.data()) != 0)
        return Step::broken;

    crypto_box_keypair(own_open_.data(), own_secret_.data());
    randombytes_buf(cookie_.data(), cookie_.size());
    unsigned char plain[32 + 96], random[16];
    memcpy(plain, own_open_.data(), 32);
    memcpy(plain + 32, cookie_.data(), cookie_.size());
    randombytes_buf(random, sizeof random);
    reply.assign(welcome_bytes, '\0');
    memcpy(as_bytes(reply), "\7WELCOME", 8);
    memcpy(as_bytes(reply) + 8, random, sizeof random);
    if (crypto_box_easy(as_bytes(reply) + 24, plain, sizeof plain, long_nonce("WELCOME-", random).data(),
                        client_.data(), keys_.secret.data()) != 0)
        return Step::broken;
    state_ = State::initiate;
    return Step::next;
}

// INITIATE: the cookie, a counter, and a box: the client's own key, a voucher made with that, and its metadata.
CurveServer::Step CurveServer::initiate(std::string_view received, std::string &reply, std::string &out_metadata) {
    const unsigned char *const at = as_bytes(received);
    if (received.size() < min_initiate_bytes || memcmp(at, "\10INITIATE", 9) != 0) return Step::broken;
    if (sodium_memcmp(at + 9, cookie_.data(), cookie_.size()) != 0) return Step::broken;
    const uint64_t counter = get_counter(at + 105);
    if (counter <= received_) return Step::broken;
    received_ = counter;
    if (crypto_box_curve25519xsalsa20poly1305_beforenm(shared_.data(), client_.data(), own_secret_.data()) != 0)
        return Step::broken;
    std::string plain(received.size() - 113 - mac, '\0');
    if (crypto_box_open_easy_afternm(as_bytes(plain), at + 113, received.size() - 113,
                                     short_nonce("CurveZMQINITIATE", at + 105).data(), shared_.data()) != 0)
        return Step::broken;
    // The voucher: a box from the client's long-term key to the server's, with both keys of this connection.
    const unsigned char *const own_key = as_bytes(plain), *const vouch = own_key + 32;
    unsigned char vouched[64];
    if (crypto_box_open_easy(vouched, vouch + 16, sizeof vouched + mac, long_nonce("VOUCH---", vouch).data(), own_key,
                             own_secret_.data()) != 0 ||
        sodium_memcmp(vouched, client_.data(), 32) != 0 || sodium_memcmp(vouched + 32, keys_.open.data(), 32) != 0)
        return Step::broken;
    if (keys_.clients.count(plain.substr(0, 32)) == 0) { // keys are public: the time of the lookup reveals nothing
        reply = "\5ERROR\003400";
        return Step::unauthenticated;
    }
    out_metadata = plain.substr(128);

    const bool aes = is_valid_metadata(out_metadata, side_) && has_aes(out_metadata) && muster::has_fast_aes();
    const std::string metadata = socket_metadata(side_, aes);
    reply.assign(6 + 8 + mac + metadata.size(), '\0');
    memcpy(as_bytes(reply), "\5READY", 6);
    put_counter(as_bytes(reply) + 6, sent_++);
    crypto_box_easy_afternm(as_bytes(reply) + 14, as_bytes(std::string_view(metadata)), metadata.size(),
                            short_nonce("CurveZMQREADY---", as_bytes(reply) + 6).data(), shared_.data());
    if (aes) start_aes();
    state_ = State::ready;
    return Step::done;
}

void Curve::start_aes() {
    const auto key = [&](ZmtpSide from) {
        const bool of_server = from == ZmtpSide::server;
        return muster::key_hash(&shared_, {of_server ? "muster star aes server" : "muster star aes client"});
    };
    seals_ = std::make_unique<muster::AesGcm>();
    opens_ = std::make_unique<muster::AesGcm>();
    seals_->set_key(key(side_));
    opens_->set_key(key(side_ == ZmtpSide::server ? ZmtpSide::client : ZmtpSide::server));
}

bool Curve::open(unsigned char *data, size_t size, unsigned char &out_flags, std::string_view &out_payload) {
    if (size < overhead || memcmp(data, "\7MESSAGE", 8) != 0) return false;
    const uint64_t counter = get_counter(data + 8);
    if (counter <= received_) return false;
    received_ = counter;
    unsigned char *const box = data + prefix_bytes;
    const size_t plain = size - prefix_bytes;
    if (opens_) {
        if (!opens_->open(box, plain, data, 16, counter, data + 16)) return false;
    } else {
        const Nonce24 nonce = message_nonce(side_ == ZmtpSide::client, data + 8);
        if (crypto_box_open_detached_afternm(box, box, data + 16, plain, nonce.data(), shared_.data()) != 0)
            return false;
    }
    out_flags = box[0];
    out_payload = {reinterpret_cast<char *>(box) + 1, plain - 1};
    return true;
}

void Curve::seal(unsigned char flags, std::string_view payload, unsigned char *out) {
    memcpy(out, "\7MESSAGE", 8);
    put_counter(out + 8, sent_++);
    unsigned char *const box = out + prefix_bytes;
    box[0] = flags;
    if (!payload.empty()) memcpy(box + 1, payload.data(), payload.size());
    if (seals_) return seals_->seal(box, payload.size() + 1, out, 16, get_counter(out + 8), out + 16);
    const Nonce24 nonce = message_nonce(side_ == ZmtpSide::server, out + 8);
    crypto_box_detached_afternm(box, out + 16, box, payload.size() + 1, nonce.data(), shared_.data());
}

} // namespace star
