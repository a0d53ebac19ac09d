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

bool start_crypto() noexcept {
    unsigned char probe[16];
    return getrandom(probe, sizeof probe, 0) == static_cast<ssize_t>(sizeof probe) && sodium_init() >= 0;
}

struct Sealer::State {
    crypto_secretstream_xchacha20poly1305_state stream;
};

Sealer::Sealer(const unsigned char *key) : state_(new State) {
    crypto_secretstream_xchacha20poly1305_init_push(&state_->stream, prefix_, key);
}

Sealer::~Sealer() {
    sodium_memzero(state_.get(), sizeof *state_);
}

void Sealer::seal(unsigned char *frame, size_t size) noexcept {
    unsigned char *sealed = frame + 8;
    // The cipher text of the payload lands where the payload is: libsodium allows exactly that overlap.
    crypto_secretstream_xchacha20poly1305_push(&state_->stream, sealed, nullptr, sealed + seal_lead_bytes, size, frame,
                                               8, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE);
}

struct Opener::State {
    crypto_secretstream_xchacha20poly1305_state stream;
};

Opener::Opener(const unsigned char *key) : state_(new State) {
    memcpy(key_, key, sizeof key_);
}

Opener::~Opener() {
    sodium_memzero(state_.get(), sizeof *state_);
    sodium_memzero(key_, sizeof key_);
}

bool Opener::take_prefix(const unsigned char *&data, size_t &size) noexcept {
    const size_t k = std::min(size, seal_prefix_bytes - prefix_have_);
    memcpy(prefix_ + prefix_have_, data, k);
    data += k, size -= k, prefix_have_ += k;
    if (!ready()) return true;
    const int rc = crypto_secretstream_xchacha20poly1305_init_pull(&state_->stream, prefix_, key_);
    sodium_memzero(key_, sizeof key_);
    return rc == 0;
}

bool Opener::open(unsigned char *sealed, size_t size, const unsigned char *header) noexcept {
    unsigned char tag = 0;
    return crypto_secretstream_xchacha20poly1305_pull(&state_->stream, sealed + seal_lead_bytes, nullptr, &tag, sealed,
                                                      size, header, 8) == 0 &&
           tag == crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
}

} // namespace muster
