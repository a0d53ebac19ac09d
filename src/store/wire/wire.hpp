// SPDX-License-Identifier: MIT
#pragma once
// The wire format between a store's clients and its server, after both have proved the secret. Little-endian.
//
// Records: length of what follows the head (4), type (1), flags (1), zero (2), number (8), then the body.
//
//   client                                  server
//     hello   session (16), resume (1)   ->                     first; a session is the client's own random number
//                                        <- welcome             instance (16), capabilities (4), flags (1), revision
//                                        (8)
//     ask     floor (8), prefix (4),     ->                     `number` identifies it in the session, from 1; error
//             operations                                        texts omit the first `prefix` bytes of each key
//                                        <- answer              of that number; see below
//     withdraw                           ->                     of that number; the server still answers it
//     keep                               ->                     renews the lease `number`; flags: no longer renewed
//                                        <- ended               a lease of the client has ended
//     ping                               ->
//                                        <- pong
//     bye                                ->                     the session ends
//                                        <- bye                 the server stops; flags: its keys are lost
//                                        <- elsewhere           another server keeps the store; instead of welcome
//
// A disconnected client connects again with its session and repeats the unanswered requests under the same numbers. The
// server keeps the answers to requests that have changed something until a request carries a higher `floor`: the client
// has received all answers below it. So no request is applied twice.
//
// An operation: kind (2), condition (1), fields (1), length of the key (4); then, as `fields` says: length of the value
// (4), length of the expected value (4), version (8), number (8), lease (8); then key, value, expected value.
// An answer: status (4, signed), entries (4), revision (8), text (2 + n), and entries: op (4), flags (1), fields (1),
// zero (2), version (8); as `fields` says: number (8), key (4 + n), value (4 + n).
#include "store/table/request.hpp"
#include "transport/frame.hpp"

#include <array>
#include <string>

namespace muster {

// The capabilities of every server of this protocol.
inline constexpr uint32_t server_capabilities = MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_QUEUE |
                                                MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_WATCH |
                                                MUSTER_STORE_CAN_LEASE | MUSTER_STORE_CAN_BARRIER;

enum class StoreRecord : uint8_t {
    hello = 1,
    welcome = 2,
    ask = 3,
    answer = 4,
    withdraw = 5,
    keep = 6,
    ping = 7,
    pong = 8,
    bye = 9,
    ended = 10,
    elsewhere = 11
};

constexpr size_t store_head_bytes = 16;
constexpr size_t store_record_max = 24 << 20; // of a body: a request or result with its framing
constexpr uint32_t store_port = 29400;
constexpr char store_hello_client[] = "muster store client 1", store_hello_server[] = "muster store server 1";

constexpr uint8_t store_ask_once = 1;     // of ask: do not wait for absent values
constexpr uint8_t store_bye_for_good = 1; // of bye: this store will not exist again
constexpr uint8_t store_resumed = 1;      // of welcome: the session is known
constexpr uint8_t store_is_volatile = 2;  // of welcome: the store ends with its process
constexpr uint8_t store_is_hosted = 4;    // of welcome: its process is one of those that use it

struct StoreHead {
    uint32_t bytes = 0;
    StoreRecord type = StoreRecord::ping;
    uint8_t flags = 0;
    uint64_t number = 0;

    void put(unsigned char *to) const noexcept {
        put_u32(to, bytes);
        put_u32(to + 4, static_cast<uint32_t>(type) | uint32_t{flags} << 8);
        put_u64(to + 8, number);
    }
    static StoreHead get(const unsigned char *from) noexcept {
        return {get_u32(from), static_cast<StoreRecord>(from[4]), from[5], get_u64(from + 8)};
    }
};

using StoreId = std::array<unsigned char, 16>;

struct StoreWelcome {
    StoreId instance{};
    uint32_t capabilities = 0;
    uint8_t flags = 0;
    uint64_t revision = 0;
};

// Writers append a complete record; if they throw bad_alloc they have appended nothing.
void put_record(std::string &to, StoreHead head, std::string_view body = {});
void put_hello(std::string &to, const StoreId &session, bool resume);
void put_welcome(std::string &to, const StoreWelcome &welcome);
void put_ask(std::string &to, uint64_t number, uint64_t floor, bool once, const StoreRequest &request);
void put_answer(std::string &to, uint64_t number, const StoreAnswer &answer);

// Readers of bodies. False: it is invalid.
bool get_hello(std::string_view body, StoreId &session, bool &resume) noexcept;
bool get_welcome(std::string_view body, StoreWelcome &welcome) noexcept;
// The operations point into the body. Their contents are checked by StoreRequest::read().
bool get_ask(std::string_view body, uint64_t &floor, uint32_t &prefix, std::vector<muster_store_op> &ops);
bool get_answer(std::string_view body, StoreAnswer &answer);

} // namespace muster
