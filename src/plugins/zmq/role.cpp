// SPDX-License-Identifier: MIT
#include "role.hpp"

#include <sodium.h>
#include <zmq.h>

namespace star {

namespace {

constexpr char secret_label[] = "muster broker secret 1", curve_label[] = "star role curve 1";
constexpr char prove_label[] = "star role broker 1", below_label[] = "star role below 1";

// BLAKE2b with 32 bytes of output over a label and parts of fixed size.
class Hash {
  public:
    Hash(const CurveKey &key, std::string_view label) noexcept {
        crypto_generichash_init(&state_, key.data(), key.size(), size);
        add(label.data(), label.size());
    }
    explicit Hash(std::string_view label) noexcept {
        crypto_generichash_init(&state_, nullptr, 0, size);
        add(label.data(), label.size());
    }
    ~Hash() { sodium_memzero(&state_, sizeof state_); }
    template <size_t bytes>
    Hash &add(const std::array<unsigned char, bytes> &part) noexcept {
        return add(part.data(), bytes);
    }
    Hash &add(const void *part, size_t bytes) noexcept {
        crypto_generichash_update(&state_, static_cast<const unsigned char *>(part), bytes);
        return *this;
    }
    std::array<unsigned char, 32> end() noexcept {
        std::array<unsigned char, size> out;
        crypto_generichash_final(&state_, out.data(), size);
        return out;
    }

  private:
    static constexpr size_t size = 32;
    crypto_generichash_state state_;
};

// A hash over the messages of both sides, keyed by the shared key of the role key and the challenge.
bool proof_of(const CurveKey &own_secret, const CurveKey &theirs, const CurveKey &open, const CurveKey &challenge,
              const Nonce &member, const Nonce &broker, Proof &out) {
    CurveKey shared;
    if (crypto_scalarmult(shared.data(), own_secret.data(), theirs.data()) != 0) return false; // of small order
    out = Hash(shared, prove_label).add(open).add(challenge).add(member).add(broker).end();
    sodium_memzero(shared.data(), shared.size());
    return true;
}

// A key of small order gives the same shared key with every other key.
bool is_usable(const CurveKey &open) noexcept {
    CurveKey any{}, shared;
    any[0] = 8;
    return crypto_scalarmult(shared.data(), any.data(), open.data()) == 0;
}

} // namespace

std::string hex_of(const CurveKey &key) {
    char text[65];
    return sodium_bin2hex(text, sizeof text, key.data(), key.size());
}

bool key_of_hex(std::string_view text, CurveKey &out) {
    size_t bytes = 0;
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
           sodium_hex2bin(out.data(), out.size(), text.data(), text.size(), nullptr, &bytes, nullptr) == 0 &&
           bytes == out.size() && is_usable(out);
}

bool key_of_z85(const std::string &text, CurveKey &out) {
    return text.size() == 40 && zmq_z85_decode(out.data(), text.c_str()) != nullptr;
}

std::string z85_of(const CurveKey &key) {
    char text[41];
    const char *const made = zmq_z85_encode(text, key.data(), key.size());
    return made != nullptr ? std::string(made) : std::string();
}

RoleKey::RoleKey(const CurveKey &secret, const CurveKey &root) : secret_(secret), root_(root) {
    crypto_scalarmult_base(open_.data(), secret_.data());
}

RoleKey::~RoleKey() {
    sodium_memzero(secret_.data(), secret_.size());
    sodium_memzero(root_.data(), root_.size());
}

RoleKey RoleKey::from_secret(std::string_view broker_secret) {
    const CurveKey root = Hash(secret_label).add(broker_secret.data(), broker_secret.size()).end();
    return {Hash(root, curve_label).end(), root};
}

RoleKey RoleKey::from_curve(const CurveKey &secret) {
    return {secret, Hash(secret_label).add(secret).end()};
}

bool RoleKey::prove(const CurveKey &challenge, const Nonce &member, const Nonce &broker, Proof &out) const {
    return proof_of(secret_, challenge, open_, challenge, member, broker, out);
}

Proof RoleKey::below(const Nonce &member, const Nonce &broker) const {
    return Hash(root_, below_label).add(open_).add(member).add(broker).end();
}

RoleCheck::RoleCheck(const CurveKey &open) : open_(open) {
    crypto_box_keypair(challenge_.data(), secret_.data());
}

RoleCheck::~RoleCheck() {
    sodium_memzero(secret_.data(), secret_.size());
}

bool RoleCheck::verify(const Proof &shown, const Nonce &member, const Nonce &broker) const {
    Proof expected;
    return proof_of(secret_, open_, open_, challenge_, member, broker, expected) &&
           equal(shown.data(), expected.data(), expected.size());
}

} // namespace star
