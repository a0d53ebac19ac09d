// SPDX-License-Identifier: MIT
#pragma once
// How two sides prove the shared secret to each other before a byte of the host's goes through. No descriptors here:
// bytes come in by feed() and go out by take_output(), so sockets, plug-ins, pumps and fuzzers all use the same.
//
//   dialer                                  listener
//     HELLO   versions, options, nonce, key ->
//                                         <- HELLO
//     PROOF   proof, sealed details       ->             the dialer proves first: an unauthenticated peer learns
//     nothing
//                                         <- PROOF
//   when both are processes of one user on one host and like shared memory:
//                                         <- SEGMENT (descriptors travel with it, on this or another socket)
//     PAIRED  yes or no                   ->
//
// Each message: type (1), zero (1), length of the body (2, little-endian), body. A refusal is one REFUSE and the end.
// Keys come from a fresh X25519 exchange, the secret and everything both sides have said; roles have keys of their own,
// so nothing can be reflected, replayed or talked down. docs/wire.md has the layout byte by byte.
#include "base/key_hash.hpp"
#include "base/result.hpp"
#include "transport/seal.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace muster {

constexpr size_t hello_max_bytes = 4096;
constexpr size_t handshake_head_bytes = 4;

// Which host and user a process belongs to. A value.
struct HostIdentity {
    std::array<unsigned char, 16> boot{}; // of the running kernel; zero: unknown
    uint64_t pid_namespace = 0, net_namespace = 0;
    uint32_t user = UINT32_MAX;

    static HostIdentity own(); // throws Failure
    bool same_kernel(const HostIdentity &other) const noexcept;
    bool same_place(const HostIdentity &other) const noexcept; // kernel, network namespace and user
};

enum class SealPolicy : uint8_t { off_host, always, never };
enum class Passing : uint8_t { none, in_band, out_of_band }; // how descriptors can reach the peer
enum class Refusal : uint8_t {
    none = 0,
    wrong_secret = 1,
    auth_differs = 2, // one side requires no proof, the other does
    version = 3,
    seal_differs = 4, // one side insists on sealing, the other refuses it
    limit = 5,
    protocol = 6,
    no_shared_memory = 7,
    busy = 8 // for now: too many that have not proved themselves; a dialer dials again
};

SecretKey secret_key(const void *secret, size_t size) noexcept; // replaces the secret in the handshake

// Where the peer fetches the segment, when descriptors cannot travel on the connection itself.
struct DescriptorOffer {
    std::string name; // of an abstract Unix socket
    std::array<unsigned char, 32> token{};
};

// Keys by which a listener admits a dialer that does not have the secret. The owner of the listener decides what such a
// dialer may do: take_other_key() identifies its connections by a prefix of their hello that the listener adds. A
// dialer that has the secret could forge the prefix, and gain nothing. Any thread.
class OtherKeys {
  public:
    static constexpr size_t max_keys = 64;
    bool add(uint64_t id, const SecretKey &key); // id: not 0. False: the maximum number is reached
    void remove(uint64_t id) noexcept;
    std::vector<std::pair<uint64_t, SecretKey>> all();

  private:
    std::mutex lock_;
    std::vector<std::pair<uint64_t, SecretKey>> keys_;
};
// Removes the id of the key that the sender of a hello has proved from its front; 0: it has proved the secret.
uint64_t take_other_key(std::string_view &hello) noexcept;

struct HandshakeConfig {
    bool dialer = false;
    bool auth = true;
    SecretKey secret{};
    SealPolicy seal = SealPolicy::off_host;
    bool local = false;        // this end sees that the bytes stay on the host
    bool covered = false;      // this end sees that they are encrypted by other means
    bool direct = false;       // streams may be had by other ways than this link
    bool external = false;     // no thread of its own: silence does not mean death
    bool upgrade = false;      // would move to shared memory
    bool shared = false;       // must move to shared memory
    bool aes = has_fast_aes(); // links may be sealed by AES-256-GCM
    Passing passing = Passing::none;
    uint64_t window = 1 << 20;
    int64_t heartbeat_ns = 0;
    HostIdentity host;
    std::string hello;
    std::shared_ptr<OtherKeys> other_keys; // listener: or none. Dialers that use them have to request sealing
    std::function<bool()> admit;           // listener: the dialer has proved itself; false: no place for it
    std::function<bool(DescriptorOffer &)>
        offer; // listener with Passing::out_of_band: makes the offer; false: cannot now
};

// The result of the handshake.
struct Agreement {
    std::string hello; // the peer's
    uint64_t peer_window = 0;
    int64_t peer_heartbeat_ns = 0;
    bool peer_external = false;
    bool local = false; // on one host, as far as both can see
    bool sealed = false;
    SealCipher cipher = SealCipher::xchacha20_poly1305; // if sealed
    bool same_host = false;                             // both would move to shared memory, and are where that can be
    bool peer_direct = false;
    Passing pairing = Passing::none; // how shared memory is passed
    DescriptorOffer offer;
    uint64_t shared_window = 0;
    bool paired = false; // both sides have the shared memory
    SecretKey key_out{}, key_in{};
};

struct HandshakeDetails;

// One user at a time.
class Handshake {
  public:
    explicit Handshake(HandshakeConfig config);
    ~Handshake();

    // Consumes bytes. MUSTER_AGAIN: needs more (or waits for paired()); MUSTER_OK: agreed, the bytes after `used`
    // belong to the link; negative: failed, see error(). Output may have to be sent in each case.
    Status feed(const unsigned char *data, size_t size, size_t &used);
    std::string take_output();
    // The listener has sent its HELLO and waits: computes what the PROOF of the dialer is checked with. Without this
    // call that is done when the PROOF has arrived; with it both sides compute at the same time.
    void prepare() noexcept;
    bool has_hello() const noexcept { return !hello_peer_.empty(); } // of the other side, whole
    size_t wants() const noexcept; // bytes of the current message still missing: a socket reads no more than that
    // The dialer, when want_segment(): was the shared memory received and mapped?
    bool want_segment() const noexcept { return state_ == State::segment; }
    Status paired(bool ok);
    // The listener sends these bytes with the descriptors, once want_send_segment() and all output has gone.
    bool want_send_segment() const noexcept { return state_ == State::paired; }
    static std::string segment_message(uint64_t window); // 0: none after all
    static size_t segment_message_bytes() noexcept;
    static bool read_segment_message(const unsigned char *data, uint64_t &window) noexcept;
    void refuse(Refusal why); // the listener, at any time before agreement
    static std::string refusal_message(Refusal why);

    const Agreement &agreement() const noexcept { return agreed_; }
    const Error &error() const noexcept { return error_; } // its text names neither peer nor address
    bool busy() const noexcept { return busy_; }           // the dialer: refused for now

  private:
    enum class State : uint8_t { hello, proof, segment, paired, done, failed };
    Status message(uint8_t type, const unsigned char *body, size_t size);
    Status take_hello(const unsigned char *body, size_t size);
    Status take_proof(const unsigned char *body, size_t size);
    Status take_paired(const unsigned char *body, size_t size);
    Status take_refusal(const unsigned char *body, size_t size);
    Status agree(HandshakeDetails theirs);
    Status fail(Refusal why, Status status, const char *text);
    void make_hello();
    void make_proof();
    std::string details() const;
    void send(uint8_t type, const void *body, size_t size, std::string *transcript);
    bool derive_keys() noexcept;
    void derive_root() noexcept;
    bool fits(const unsigned char *proof, const char *label) const noexcept;
    bool fits_other_key(const unsigned char *proof);
    SecretKey derive(const char *label, bool with_all = false) const;

    HandshakeConfig config_;
    Agreement agreed_;
    Error error_;
    State state_ = State::hello;
    std::string output_, hello_own_, hello_peer_, proof_own_, proof_peer_;
    std::vector<unsigned char> in_;
    std::array<unsigned char, 32> private_{}, public_{};
    std::array<unsigned char, 32> public_peer_{};
    SecretKey shared_{}, root_{}, transcript_{}, all_{};
    std::optional<bool> has_root_; // whether the public key of the other side gives one, once that was computed
    uint64_t other_key_ = 0;       // by which the dialer has proved itself
    uint32_t peer_options_ = 0;
    bool busy_ = false;
};

} // namespace muster
