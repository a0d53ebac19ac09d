// SPDX-License-Identifier: MIT
#include "keys.hpp"

#include <sys/random.h>
#include <tuple>
#include <zmq.h>

namespace star {

namespace {

std::string derived(const muster_host *host, const std::string &label, size_t size) {
    std::string key(size, '\0');
    host->derive(host, label.data(), label.size(), key.data(), size);
    return key;
}

std::pair<std::string, std::string> key_pair(const muster_host *host, const char *label) {
    const std::string secret = derived(host, label, 32);
    char secret_text[41], public_text[41];
    zmq_z85_encode(secret_text, reinterpret_cast<const uint8_t *>(secret.data()), secret.size());
    if (zmq_curve_public(public_text, secret_text) != 0) return {}; // a libzmq without CURVE
    return {public_text, secret_text};
}

} // namespace

const CurveKeys &Keys::curve() {
    if (curve_.server_public.empty()) {
        CurveKeys made; // all of them, or none
        std::tie(made.server_public, made.server_secret) = key_pair(host_, "star curve broker 1");
        std::tie(made.client_public, made.client_secret) = key_pair(host_, "star curve member 1");
        made.from_secret = true;
        curve_ = std::move(made);
    }
    return curve_;
}

Proof Keys::proof(bool of_broker, const Nonce &member, const Nonce &broker) const {
    std::string label = of_broker ? "star proof broker 1" : "star proof member 1";
    label.append(reinterpret_cast<const char *>(member.data()), member.size());
    label.append(reinterpret_cast<const char *>(broker.data()), broker.size());
    const std::string key = derived(host_, label, proof_bytes);
    Proof proof;
    memcpy(proof.data(), key.data(), proof.size());
    return proof;
}

// getrandom() of so few bytes neither fails nor is interrupted once the kernel has started.
Nonce make_nonce() {
    Nonce nonce{};
    while (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    }
    return nonce;
}

uint64_t random_u64() {
    uint64_t value = 0;
    while (getrandom(&value, sizeof value, 0) != sizeof value) {
    }
    return value;
}

bool equal(const unsigned char *a, const unsigned char *b, size_t size) noexcept {
    volatile unsigned char differs = 0;
    for (size_t i = 0; i < size; i++) differs = static_cast<unsigned char>(differs | (a[i] ^ b[i]));
    return differs == 0;
}

} // namespace star
