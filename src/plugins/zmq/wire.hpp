// SPDX-License-Identifier: MIT
#pragma once
// The messages between members and brokers of a star. Every message is one ZeroMQ frame: a head of 24 bytes,
// little-endian, and a payload that depends on the kind:
//   mark 0xB7, version 1, kind, 0 | word u32 | to u64 | from u64
//
// A member has a number: the prefix of its broker (random, and different each time a broker starts) in the upper 32
// bits, a count in the lower ones. A process that joins again gets another number. Brokers of a tree forward a message
// unchanged, by the prefix of its receiver.
//
// Credit: a member may have `window` bytes in flight to each other member, counted by cost(). The receiver returns the
// cost of the messages it has consumed with `credit`. The sender's broker counts as well, and ends the membership of a
// member that exceeds its credit.
#include "base/codec.hpp"
#include "base/time.hpp"

#include <muster/base.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace star {

constexpr size_t head_bytes = 24;
constexpr uint8_t head_mark = 0xB7, head_version = 1;
constexpr uint64_t max_message_bytes = 256 * 1024; // payload of data
constexpr size_t nonce_bytes = 16, proof_bytes = 32, challenge_bytes = 32;
constexpr size_t max_name_bytes = 64, max_text_bytes = 200;
constexpr uint16_t default_port = 8100;

enum class Kind : uint8_t {
    // Before the peer is a member or a broker below (docs/wire.md). A member whose CURVE keys derive from the secret
    // has proved it: it sends hello with role 0 alone, and the broker answers ready. Any other peer sends hello: role
    // u8 (1: a broker), nonce, and, where it requires a broker key without CURVE, a challenge (an X25519 public key, 32
    // bytes). The broker answers welcome: open u8, nonce, and one proof: of its role key to a challenge, of the secret
    // otherwise. The peer answers proof: of the secret; or, of a broker, its prefix u32 and the proof of the role key.
    hello = 1,
    welcome = 2,
    proof = 3,
    ready = 4,   // to: the member's number; window u64
    refused = 5, // word: status; text
    bye = 6,     // the member leaves
    // Names. word: number of the request, repeated in the answer
    claim = 7,        // name
    release = 8,      // name
    find = 9,         // name
    answer = 10,      // from: the number found, or 0; status i32, length of the name u8, the name, text
    release_all = 11, // broker to parent: all names that `from` has claimed are free
    // Between members
    data = 12,
    credit = 13, // word: bytes of cost
    part = 14,   // member to its broker: it has discarded its state of `to`
    lost = 15,   // `from` is gone; text
    // Between brokers
    attach = 16, // broker to parent, word: a prefix that is reached through the sender
    detach = 17, // word: a prefix that is not reached any more
    group = 18,  // multicast data: word: count of receivers; their numbers u64 each (0: none), then the payload
};
constexpr uint8_t last_kind = 18;

struct Head { // a value
    Kind kind = Kind::hello;
    uint32_t word = 0;
    uint64_t to = 0, from = 0;
};

using muster::as_bytes;
using muster::get_u32;
using muster::get_u64;
using muster::now_ns;
using muster::put_u32;
using muster::put_u64;

inline void put_head(unsigned char *to, const Head &head) noexcept {
    to[0] = head_mark;
    to[1] = head_version;
    to[2] = static_cast<uint8_t>(head.kind);
    to[3] = 0;
    put_u32(to + 4, head.word);
    put_u64(to + 8, head.to);
    put_u64(to + 16, head.from);
}

// Returns false if the bytes are no head.
inline bool get_head(const unsigned char *data, size_t size, Head &head) noexcept {
    if (size < head_bytes || data[0] != head_mark || data[1] != head_version || data[2] == 0 || data[2] > last_kind ||
        data[3] != 0)
        return false;
    head.kind = static_cast<Kind>(data[2]);
    head.word = get_u32(data + 4);
    head.to = get_u64(data + 8);
    head.from = get_u64(data + 16);
    return true;
}

// The cost of a message against the window: each one needs memory beyond its bytes where it waits.
constexpr uint64_t cost(uint64_t message_bytes) noexcept {
    return message_bytes + 256;
}

constexpr uint32_t prefix_of(uint64_t member) noexcept {
    return static_cast<uint32_t>(member >> 32);
}

inline bool is_valid_name(std::string_view name) noexcept {
    for (const char c : name)
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.')
            return false;
    return !name.empty() && name.size() <= max_name_bytes;
}

struct Answer { // a value
    muster_status status = 0;
    std::string name, text;

    std::string encode() const {
        unsigned char fixed[5];
        put_u32(fixed, static_cast<uint32_t>(status));
        fixed[4] = static_cast<unsigned char>(name.size());
        return std::string(reinterpret_cast<char *>(fixed), sizeof fixed) + name + text;
    }
    bool decode(std::string_view payload) {
        if (payload.size() < 5) return false;
        const auto *at = reinterpret_cast<const unsigned char *>(payload.data());
        status = static_cast<muster_status>(get_u32(at));
        if (payload.size() < size_t{5} + at[4]) return false;
        name = payload.substr(5, at[4]);
        text = payload.substr(5 + name.size());
        return true;
    }
};

// Text of an unauthenticated peer, made fit for log records and errors.
inline std::string printable(std::string_view text) {
    std::string out(text.substr(0, max_text_bytes));
    for (char &c : out)
        if (c < ' ' || c > '~') c = '?';
    return out;
}

// The bytes that wait to be written to a connection.
struct Queued {
    uint64_t data = 0, control = 0; // control: everything else
};

} // namespace star
