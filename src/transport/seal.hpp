// SPDX-License-Identifier: MIT
#pragma once
// One direction of a sealed link, so that frames can be neither read, changed, dropped, repeated nor reordered in
// transit: by AES-256-GCM where both sides have the instructions for it, else by libsodium's secretstream. The first 24
// bytes of the direction are its prefix, followed by frames.
#include "base/aes_gcm.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace muster {

constexpr size_t seal_key_bytes = 32;
constexpr size_t seal_prefix_bytes = 24;
constexpr size_t seal_overhead_bytes = 17;
constexpr size_t seal_lead_bytes = 1; // of the overhead, the part before the payload

enum class SealCipher : uint8_t { xchacha20_poly1305, aes256_gcm };

// Initialises libsodium and ensures that the kernel has random bytes: without them libsodium would abort the process of
// the host. Once per context.
bool start_crypto() noexcept;

class AesDirection;

// One user at a time.
class Sealer {
  public:
    Sealer(const unsigned char *key, SealCipher cipher, uint64_t blocks_per_key = aes_gcm_blocks_per_key);
    ~Sealer();
    const unsigned char *prefix() const noexcept { return prefix_; }
    // `frame`: header (8), one free byte, `size` bytes of payload, 16 free bytes. Seals in place.
    void seal(unsigned char *frame, size_t size) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;      // of the secretstream
    std::unique_ptr<AesDirection> aes_; // or this one
    unsigned char prefix_[seal_prefix_bytes];
};

// One user at a time.
class Opener {
  public:
    Opener(const unsigned char *key, SealCipher cipher, uint64_t blocks_per_key = aes_gcm_blocks_per_key);
    ~Opener();
    bool ready() const noexcept { return prefix_have_ == seal_prefix_bytes; }
    // Removes bytes of the prefix from the front of received bytes. False: it is not a prefix.
    bool take_prefix(const unsigned char *&data, size_t &size) noexcept;
    // Opens the bytes after a header in place: `size` bytes, of which the payload starts at seal_lead_bytes. False:
    // they were not sealed by the peer, or are out of order.
    bool open(unsigned char *sealed, size_t size, const unsigned char *header) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
    std::unique_ptr<AesDirection> aes_;
    unsigned char key_[seal_key_bytes];
    unsigned char prefix_[seal_prefix_bytes];
    size_t prefix_have_ = 0;
};

} // namespace muster
