// SPDX-License-Identifier: MIT
#include "transport/seal.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <sys/random.h>

namespace muster {

static_assert(seal_key_bytes == crypto_secretstream_xchacha20poly1305_KEYBYTES);
static_assert(seal_prefix_bytes == crypto_secretstream_xchacha20poly1305_HEADERBYTES);
static_assert(seal_overhead_bytes == crypto_secretstream_xchacha20poly1305_ABYTES);
static_assert(seal_overhead_bytes == seal_lead_bytes + aes_gcm_tag_bytes);

bool start_crypto() noexcept {
    unsigned char probe[16];
    return getrandom(probe, sizeof probe, 0) == static_cast<ssize_t>(sizeof probe) && sodium_init() >= 0;
}

// Numbers the frames of one direction. One user at a time.
class AesDirection {
  public:
    explicit AesDirection(uint64_t blocks_per_key) : gcm_(blocks_per_key) {}

    void start(const unsigned char *stream_key, const unsigned char *prefix) noexcept {
        SecretKey key;
        memcpy(key.data(), stream_key, key.size());
        const std::string_view random(reinterpret_cast<const char *>(prefix), seal_prefix_bytes);
        gcm_.set_key(key_hash(&key, {"muster aes 1", random}));
        sodium_memzero(key.data(), key.size());
    }
    void seal(unsigned char *frame, size_t size) noexcept {
        unsigned char *const payload = frame + 8 + seal_lead_bytes;
        frame[8] = 0;
        gcm_.seal(payload, size, frame, 8 + seal_lead_bytes, number_++, payload + size);
    }
    bool open(unsigned char *sealed, size_t size, const unsigned char *header) noexcept {
        if (size < seal_overhead_bytes || sealed[0] != 0) return false;
        unsigned char *const payload = sealed + seal_lead_bytes;
        const size_t bytes = size - seal_overhead_bytes;
        unsigned char more[8 + seal_lead_bytes] = {}; // the lead is 0
        memcpy(more, header, 8);
        return gcm_.open(payload, bytes, more, sizeof more, number_++, payload + bytes);
    }

  private:
    AesGcm gcm_;
    uint64_t number_ = 0;
};

struct Sealer::State {
    crypto_secretstream_xchacha20poly1305_state stream;
    ~State() { sodium_memzero(&stream, sizeof stream); }
};

Sealer::Sealer(const unsigned char *key, SealCipher cipher, uint64_t blocks_per_key) {
    if (cipher == SealCipher::aes256_gcm) {
        randombytes_buf(prefix_, sizeof prefix_);
        aes_ = std::make_unique<AesDirection>(blocks_per_key);
        aes_->start(key, prefix_);
    } else {
        state_ = std::make_unique<State>();
        crypto_secretstream_xchacha20poly1305_init_push(&state_->stream, prefix_, key);
    }
}

Sealer::~Sealer() = default;

void Sealer::seal(unsigned char *frame, size_t size) noexcept {
    if (aes_) return aes_->seal(frame, size);
    unsigned char *sealed = frame + 8;
    // The cipher text of the payload lands where the payload is: libsodium allows exactly that overlap.
    crypto_secretstream_xchacha20poly1305_push(&state_->stream, sealed, nullptr, sealed + seal_lead_bytes, size, frame,
                                               8, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
}

struct Opener::State {
    crypto_secretstream_xchacha20poly1305_state stream;
    ~State() { sodium_memzero(&stream, sizeof stream); }
};

Opener::Opener(const unsigned char *key, SealCipher cipher, uint64_t blocks_per_key) {
    if (cipher == SealCipher::aes256_gcm)
        aes_ = std::make_unique<AesDirection>(blocks_per_key);
    else
        state_ = std::make_unique<State>();
    memcpy(key_, key, sizeof key_);
}

Opener::~Opener() {
    sodium_memzero(key_, sizeof key_);
}

bool Opener::take_prefix(const unsigned char *&data, size_t &size) noexcept {
    const size_t k = std::min(size, seal_prefix_bytes - prefix_have_);
    memcpy(prefix_ + prefix_have_, data, k);
    data += k, size -= k, prefix_have_ += k;
    if (!ready()) return true;
    int rc = 0;
    if (aes_)
        aes_->start(key_, prefix_);
    else
        rc = crypto_secretstream_xchacha20poly1305_init_pull(&state_->stream, prefix_, key_);
    sodium_memzero(key_, sizeof key_);
    return rc == 0;
}

bool Opener::open(unsigned char *sealed, size_t size, const unsigned char *header) noexcept {
    if (aes_) return aes_->open(sealed, size, header);
    unsigned char tag = 0;
    return crypto_secretstream_xchacha20poly1305_pull(&state_->stream, sealed + seal_lead_bytes, nullptr, &tag, sealed,
                                                      size, header, 8) == 0 &&
           tag == crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
}

} // namespace muster
