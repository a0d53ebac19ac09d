// SPDX-License-Identifier: MIT
#pragma once
// CURVE (ZMTP 3.0, RFC 26, as libzmq speaks it) for one connection: the handshake of either side, then messages that
// are encrypted and decrypted. The bytes read here may come from an unauthenticated peer. One thread.
// If both sides are Muster and have AES instructions, they say so in their encrypted metadata, and the messages after
// the handshake are encrypted by AES-256-GCM instead of XSalsa20-Poly1305; the layout stays the same.
#include "base/aes_gcm.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace star {

using CurveKey = std::array<unsigned char, 32>;

enum class ZmtpSide : uint8_t { server, client }; // a broker is the server of those that connect to it

struct CurveServerKeys { // a value
    CurveKey secret{}, open{};
    std::set<std::string> clients; // public keys of the members, 32 bytes each
};

struct CurveClientKeys { // a value
    CurveKey secret{}, open{}, server{};
};

class Curve {
  public:
    // Before the payload of a message: the name of the command, a nonce, the authenticator, and the flags.
    static constexpr size_t prefix_bytes = 8 + 8 + 16, overhead = prefix_bytes + 1;
    static constexpr unsigned char more = 1, command = 2;
    enum class Step { next, done, unauthenticated, broken };

    Curve(const Curve &) = delete;
    virtual ~Curve();
    // The command that this side sends first; empty: the other side sends first.
    virtual std::string first() = 0;
    // Takes the next command of the handshake. next, done: `reply` is the answer, empty: none. unauthenticated: the key
    // is not one of the members'. done fills `out_metadata`.
    virtual Step take(std::string_view received, std::string &reply, std::string &out_metadata) = 0;
    // After the handshake: decrypts in place. Returns false for a message that was not encrypted for this connection,
    // or was received before.
    bool open(unsigned char *data, size_t size, unsigned char &out_flags, std::string_view &out_payload);
    // Writes overhead + payload.size() bytes.
    void seal(unsigned char flags, std::string_view payload, unsigned char *out);

  protected:
    explicit Curve(ZmtpSide side) noexcept : side_(side) {}
    void start_aes(); // the handshake is complete, and both sides have it

    const ZmtpSide side_;
    uint64_t sent_ = 1, received_ = 0;   // the counters in the nonces
    CurveKey own_secret_{}, own_open_{}; // of this connection only
    CurveKey shared_{};

  private:
    std::unique_ptr<muster::AesGcm> seals_, opens_; // or none
};

class CurveServer final : public Curve {
  public:
    explicit CurveServer(const CurveServerKeys &keys) noexcept : Curve(ZmtpSide::server), keys_(keys) {}
    std::string first() override { return {}; }
    Step take(std::string_view received, std::string &reply, std::string &out_metadata) override;

  private:
    enum class State : uint8_t { hello, initiate, ready };
    Step hello(std::string_view received, std::string &reply);
    Step initiate(std::string_view received, std::string &reply, std::string &out_metadata);

    const CurveServerKeys &keys_;
    State state_ = State::hello;
    CurveKey client_{};                      // of this connection only
    std::array<unsigned char, 96> cookie_{}; // opaque to the client, which returns it
};

// Refuses a server key that gives no shared secret (one of small order), and a command out of order: libzmq's client
// aborted the process at the first, and completed the handshake without any key at the second.
class CurveClient final : public Curve {
  public:
    explicit CurveClient(const CurveClientKeys &keys) noexcept : Curve(ZmtpSide::client), keys_(keys) {}
    ~CurveClient() override;
    std::string first() override; // HELLO
    Step take(std::string_view received, std::string &reply, std::string &out_metadata) override;

  private:
    enum class State : uint8_t { hello, welcome, ready, over };
    Step welcome(std::string_view received, std::string &reply);
    Step ready(std::string_view received, std::string &out_metadata);

    CurveClientKeys keys_;
    const bool offers_aes_ = muster::has_fast_aes();
    State state_ = State::hello;
};

std::string socket_metadata(ZmtpSide own, bool with_aes = false);
// Returns false for metadata that is malformed, or of a socket type that does not fit this side.
bool is_valid_metadata(std::string_view metadata, ZmtpSide own) noexcept;
bool has_aes(std::string_view valid_metadata) noexcept;

} // namespace star
