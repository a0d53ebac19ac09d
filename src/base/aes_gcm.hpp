// SPDX-License-Identifier: MIT
#pragma once
// AES-256-GCM (NIST SP 800-38D) by the instructions of the processor. The code is of Intel's library ipsec-mb, of which
// the functions for one message at a time are linked in: with AVX-512 and VAES they are about ten times as fast as
// ChaCha20-Poly1305 of libsodium. Where the library or the instructions are missing, has_fast_aes() is false.
// The plug-in zmq compiles this file, too: it needs only key_hash.hpp and libsodium.
#include "base/key_hash.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace muster {

constexpr size_t aes_gcm_tag_bytes = 16;

// Blocks of 16 bytes that one key encrypts: 64 GiB. An attacker who sees them all distinguishes them from random bytes
// with a probability of at most 2^-65 (RFC 8446, section 5.5, accepts 2^-57). Then both sides derive the next key.
constexpr uint64_t aes_gcm_blocks_per_key = uint64_t{1} << 32;

// The environment variable MUSTER_NO_AES makes it false.
bool has_fast_aes() noexcept;

// The messages of one direction: both sides call seal() and open() for the same messages in the same order. One user
// at a time.
class AesGcm {
  public:
    // Only if has_fast_aes() was true; throws std::bad_alloc. The key is not used before it is set.
    explicit AesGcm(uint64_t blocks_per_key = aes_gcm_blocks_per_key);
    ~AesGcm();
    AesGcm(const AesGcm &) = delete;
    AesGcm &operator=(const AesGcm &) = delete;
    void set_key(const SecretKey &key) noexcept;
    // Encrypts `size` bytes in place. `number` must differ in each call.
    void seal(unsigned char *data, size_t size, const unsigned char *more, size_t more_size, uint64_t number,
              unsigned char *tag) noexcept;
    // Decrypts in place. False: the bytes, `more` or the tag are not those of seal(); the bytes are then worthless, and
    // nothing further can be opened.
    bool open(unsigned char *data, size_t size, const unsigned char *more, size_t more_size, uint64_t number,
              const unsigned char *tag) noexcept;

  private:
    struct State;
    struct Deleter {
        void operator()(State *state) const noexcept;
    };
    void count(size_t size) noexcept;

    std::unique_ptr<State, Deleter> state_;
    SecretKey key_{};
    const uint64_t blocks_per_key_;
    uint64_t blocks_ = 0;
};

} // namespace muster
