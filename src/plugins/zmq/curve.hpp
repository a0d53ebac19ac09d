// SPDX-License-Identifier: MIT
#pragma once
// The server's side of CURVE (ZMTP 3.0, RFC 26, as libzmq speaks it) for one connection: the handshake, then messages
// that are encrypted and decrypted. Everything here reads what a stranger may have sent. One thread.
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace star {

using CurveKey = std::array<unsigned char, 32>;

struct CurveServerKeys { // a value
    CurveKey secret{}, open{};
    std::set<std::string> clients; // public keys that are let in, 32 bytes each
};

class CurveServer {
  public:
    // What is added to a message: the command's name, a nonce and the authenticator; then the flags and the payload.
    static constexpr size_t prefix_bytes = 8 + 8 + 16, overhead = prefix_bytes + 1;
    static constexpr unsigned char more = 1, command = 2;
    enum class Step { next, done, stranger, broken };

    explicit CurveServer(const CurveServerKeys &keys) noexcept : keys_(keys) {}
    CurveServer(const CurveServer &) = delete;
    ~CurveServer();
    // The next command of the handshake. next, done: `reply` is the answer. stranger: its key is not let in.
    // `out_metadata` is filled in when it is done.
    Step take(std::string_view received, std::string &reply, std::string &out_metadata);
    // After the handshake. Decrypts in place; false: it was not encrypted for this connection, or comes again.
    bool open(unsigned char *data, size_t size, unsigned char &out_flags, std::string_view &out_payload);
    // Writes overhead + payload.size() bytes.
    void seal(unsigned char flags, std::string_view payload, unsigned char *out);

  private:
    enum class State : uint8_t { hello, initiate, ready };
    Step hello(std::string_view received, std::string &reply);
    Step initiate(std::string_view received, std::string &reply, std::string &out_metadata);

    const CurveServerKeys &keys_;
    State state_ = State::hello;
    uint64_t sent_ = 1, received_ = 0;       // the counters in the nonces
    CurveKey client_{}, own_secret_{};       // of this connection only
    std::array<unsigned char, 96> cookie_{}; // opaque to the client, which shows it again
    CurveKey shared_{};
};

std::string socket_metadata(); // ours
// False: it is not well formed, or it is of a socket that does not talk to a broker.
bool sound_metadata(std::string_view metadata) noexcept;

} // namespace star
