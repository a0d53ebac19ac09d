// SPDX-License-Identifier: MIT
#pragma once
// AES-256-GCM (NIST SP 800-38D) by the instructions of the processor. The code is of Intel's library ipsec-mb, of which
// the functions for one message at a time are linked in: with AVX-512 and VAES they are about ten times as fast as
// ChaCha20-Poly1305 of libsodium. Where the library or the instructions are missing, is_available() is false.
#include <cstddef>
#include <cstdint>
#include <memory>

namespace muster {

constexpr size_t aes_gcm_key_bytes = 32;
constexpr size_t aes_gcm_tag_bytes = 16;

// One key. One user at a time.
class AesGcm {
  public:
    static bool is_available() noexcept;

    AesGcm(); // only if is_available(); throws std::bad_alloc
    ~AesGcm();
    AesGcm(const AesGcm &) = delete;
    AesGcm &operator=(const AesGcm &) = delete;
    void set_key(const unsigned char *key) noexcept;
    // Encrypts `size` bytes in place. `number` must differ in each call with the same key.
    void seal(unsigned char *data, size_t size, const unsigned char *more, size_t more_size, uint64_t number,
              unsigned char *tag) noexcept;
    // Decrypts in place. False: the bytes, `more` or the tag are not those of seal(); the bytes are then worthless.
    bool open(unsigned char *data, size_t size, const unsigned char *more, size_t more_size, uint64_t number,
              const unsigned char *tag) noexcept;

  private:
    struct State;
    struct Deleter {
        void operator()(State *state) const noexcept;
    };
    std::unique_ptr<State, Deleter> state_;
};

} // namespace muster
