// SPDX-License-Identifier: MIT
#pragma once
// Keys and proofs that the members and brokers of a job derive from its secret: their CURVE keys, and the proofs in
// hello, welcome and proof.
//
// CURVE (curvezmq.org) needs the broker's public key at its members, and the members' at the broker. Both key pairs
// come from the secret, so a process that holds it knows both, and no other process completes the handshake. If there
// is no CURVE, or its keys come from a file, hello, welcome and proof prove the secret, in both directions (ADR 13).
#include "wire.hpp"

#include <muster/plugin.h>

#include <array>

namespace star {

using Nonce = std::array<unsigned char, nonce_bytes>;
using Proof = std::array<unsigned char, proof_bytes>;

struct CurveKeys { // in Z85, 40 characters each; a value
    std::string server_public, server_secret, client_public, client_secret;
    bool from_secret = false; // the handshake proves that each side holds the secret, or the broker secret
};

// Any thread.
class Keys {
  public:
    explicit Keys(const muster_host *host) noexcept : host_(host) {}
    const CurveKeys &curve(); // made at the first use, which is not thread-safe
    // The proof of the broker or of the member for the nonces of both.
    Proof proof(bool of_broker, const Nonce &member, const Nonce &broker) const;

  private:
    const muster_host *const host_;
    CurveKeys curve_;
};

Nonce make_nonce();
uint64_t random_u64();
bool equal(const unsigned char *a, const unsigned char *b, size_t size) noexcept; // in constant time

} // namespace star
