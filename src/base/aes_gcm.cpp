// SPDX-License-Identifier: MIT
#include "base/aes_gcm.hpp"

#include "base/codec.hpp"

#include <sodium.h>

#include <cpuid.h>
#include <cstdlib>
#include <new>

#ifdef MUSTER_HAVE_IPSEC_MB
#include <intel-ipsec-mb.h>

// The header declares these functions for all instruction sets but the last one, which the library chooses by its
// manager alone; the manager would bring all of its ciphers in, as aes_gcm_pre_256() would.
extern "C" {
void aes_gcm_precomp_256_vaes_avx512(gcm_key_data *);
void aes_gcm_enc_256_vaes_avx512(const gcm_key_data *, gcm_context_data *, uint8_t *, const uint8_t *, uint64_t,
                                 const uint8_t *, const uint8_t *, uint64_t, uint8_t *, uint64_t);
void aes_gcm_dec_256_vaes_avx512(const gcm_key_data *, gcm_context_data *, uint8_t *, const uint8_t *, uint64_t,
                                 const uint8_t *, const uint8_t *, uint64_t, uint8_t *, uint64_t);
}
#endif

namespace muster {

#ifdef MUSTER_HAVE_IPSEC_MB

struct AesFunctions {
    void (*expand)(const void *, void *) = nullptr;
    aes_gcm_precomp_t prepare = nullptr;
    aes_gcm_enc_dec_t encrypt = nullptr, decrypt = nullptr;
};

namespace {

// VAES and VPCLMULQDQ, whose names clang 14 does not know. The registers are those of AVX-512, which is checked apart.
bool has_vector_aes() noexcept {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 9 & 1) != 0 && (c >> 10 & 1) != 0;
}

AesFunctions choose_aes_functions() noexcept {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) return {};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && has_vector_aes())
        return {aes_keyexp_256_enc_avx512, aes_gcm_precomp_256_vaes_avx512, aes_gcm_enc_256_vaes_avx512,
                aes_gcm_dec_256_vaes_avx512};
    if (__builtin_cpu_supports("avx2"))
        return {aes_keyexp_256_enc_avx2, aes_gcm_precomp_256_avx_gen4, aes_gcm_enc_256_avx_gen4,
                aes_gcm_dec_256_avx_gen4};
    if (__builtin_cpu_supports("sse4.2"))
        return {aes_keyexp_256_enc_sse, aes_gcm_precomp_256_sse, aes_gcm_enc_256_sse, aes_gcm_dec_256_sse};
    return {};
}

const AesFunctions &aes_functions() noexcept {
    static const AesFunctions chosen = choose_aes_functions();
    return chosen;
}

// 96 bits: the number of the message, and zeros.
struct AesNonce {
    unsigned char bytes[12] = {};
    explicit AesNonce(uint64_t number) noexcept { put_u64(bytes, number); }
};

} // namespace

struct AesGcm::State {
    alignas(64) gcm_key_data key;
    alignas(64) gcm_context_data context;
    const AesFunctions &functions = aes_functions();
};

bool has_fast_aes() noexcept {
    return aes_functions().encrypt != nullptr && secure_getenv("MUSTER_NO_AES") == nullptr;
}

AesGcm::AesGcm(uint64_t blocks_per_key) : state_(new State), blocks_per_key_(blocks_per_key) {}

void AesGcm::set_key(const SecretKey &key) noexcept {
    key_ = key;
    state_->functions.expand(key_.data(), state_->key.expanded_keys);
    state_->functions.prepare(&state_->key);
    blocks_ = 0;
}

void AesGcm::seal(unsigned char *data, size_t size, const unsigned char *more, size_t more_size, uint64_t number,
                  unsigned char *tag) noexcept {
    count(size);
    const AesNonce nonce(number);
    state_->functions.encrypt(&state_->key, &state_->context, data, data, size, nonce.bytes, more, more_size, tag,
                              aes_gcm_tag_bytes);
}

bool AesGcm::open(unsigned char *data, size_t size, const unsigned char *more, size_t more_size, uint64_t number,
                  const unsigned char *tag) noexcept {
    count(size);
    const AesNonce nonce(number);
    unsigned char own_tag[aes_gcm_tag_bytes];
    state_->functions.decrypt(&state_->key, &state_->context, data, data, size, nonce.bytes, more, more_size, own_tag,
                              sizeof own_tag);
    return sodium_memcmp(own_tag, tag, sizeof own_tag) == 0;
}

#else // no object exists

struct AesGcm::State {};

bool has_fast_aes() noexcept {
    return false;
}

AesGcm::AesGcm(uint64_t blocks_per_key) : blocks_per_key_(blocks_per_key) {
    throw std::bad_alloc();
}

void AesGcm::set_key(const SecretKey &) noexcept {}

void AesGcm::seal(unsigned char *, size_t, const unsigned char *, size_t, uint64_t, unsigned char *) noexcept {}

bool AesGcm::open(unsigned char *, size_t, const unsigned char *, size_t, uint64_t, const unsigned char *) noexcept {
    return false;
}

#endif

AesGcm::~AesGcm() {
    sodium_memzero(key_.data(), key_.size());
}

void AesGcm::Deleter::operator()(State *state) const noexcept {
    sodium_memzero(state, sizeof *state);
    delete state;
}

// Both sides count the same messages, so both change the key before the same one.
void AesGcm::count(size_t size) noexcept {
    const uint64_t blocks = (size + 15) / 16 + 2; // one for the tag, one for the lengths and what is not encrypted
    if (blocks_ + blocks > blocks_per_key_) set_key(key_hash(&key_, {"muster aes next"}));
    blocks_ += blocks;
}

} // namespace muster
