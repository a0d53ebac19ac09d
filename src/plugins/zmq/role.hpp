// SPDX-License-Identifier: MIT
#pragma once
// The role key: a key pair (X25519) that only brokers hold, with its public half at the members. It is derived from the
// broker secret, or is the `broker-secret` of a file of CURVE keys. With CURVE it is the key of the server, so that
// the handshake proves it; without CURVE the broker proves it in `welcome`. A child broker proves it to its parent in
// `proof` (wire.hpp). docs/adr/0007 says what each process holds, and why.
#include "curve.hpp"
#include "keys.hpp"

namespace star {

// Lower-case hex of a public key, as `broker=` in an address has it.
std::string hex_of(const CurveKey &key);
bool key_of_hex(std::string_view text, CurveKey &out);   // false: not 64 lower-case hex digits, or no usable key
bool key_of_z85(const std::string &text, CurveKey &out); // false: not 40 characters of Z85
std::string z85_of(const CurveKey &key);

// The key pair. Any thread.
class RoleKey {
  public:
    static RoleKey from_secret(std::string_view broker_secret); // the same text gives the same key
    static RoleKey from_curve(const CurveKey &secret);
    RoleKey(const RoleKey &) = default;
    RoleKey &operator=(const RoleKey &) = delete;
    ~RoleKey();
    const CurveKey &secret() const noexcept { return secret_; }
    const CurveKey &open() const noexcept { return open_; }
    // The broker's answer to a process that holds the public key and chose `challenge`. Returns false if the challenge
    // is no usable key.
    bool prove(const CurveKey &challenge, const Nonce &member, const Nonce &broker, Proof &out) const;
    // The proof of a child broker to its parent.
    Proof below(const Nonce &member, const Nonce &broker) const;

  private:
    RoleKey(const CurveKey &secret, const CurveKey &root);

    CurveKey secret_{}, open_{}, root_{};
};

// A process that holds the public key: makes a challenge for each connection and verifies the answer. One thread.
class RoleCheck {
  public:
    explicit RoleCheck(const CurveKey &open);
    RoleCheck(const RoleCheck &) = delete;
    ~RoleCheck();
    const CurveKey &challenge() const noexcept { return challenge_; }
    bool verify(const Proof &shown, const Nonce &member, const Nonce &broker) const;

  private:
    const CurveKey open_;
    CurveKey secret_{}, challenge_{};
};

} // namespace star
