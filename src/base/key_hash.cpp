// SPDX-License-Identifier: MIT
#include "base/key_hash.hpp"

#include "base/codec.hpp"

#include <sodium.h>

namespace muster {

SecretKey key_hash(const SecretKey *key, std::initializer_list<std::string_view> parts) noexcept {
    SecretKey out;
    crypto_generichash_state state;
    crypto_generichash_init(&state, key != nullptr ? key->data() : nullptr, key != nullptr ? key->size() : 0,
                            out.size());
    for (std::string_view part : parts) {
        unsigned char length[8];
        put_u64(length, part.size());
        crypto_generichash_update(&state, length, sizeof length);
        crypto_generichash_update(&state, as_bytes(part), part.size());
    }
    crypto_generichash_final(&state, out.data(), out.size());
    return out;
}

} // namespace muster
