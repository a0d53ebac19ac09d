// SPDX-License-Identifier: MIT
// Two defects of libzmq 4.3.4's CURVE client, which a broker or a process at its address can use (docs/adr/0009):
// - A WELCOME with a temporary key of small order makes crypto_box_beforenm() fail, and libzmq asserts that it does not
//   (curve_client_tools.hpp, process_welcome()): the process aborts.
// - READY is taken before WELCOME (curve_client.cpp, process_ready()), and opened with a key that nothing has been
//   written to, mostly zeros: so a process without any key completes the handshake.
// A plug-in is before the libraries it brings along when their symbols are looked up, so the libzmq that comes with it
// calls these functions in place of libsodium's. A libzmq that the program has loaded itself does not.
#include <muster/base.h>

#include <array>
#include <map>
#include <mutex>
#include <sodium.h>

namespace {

using Digest = std::array<unsigned char, 16>;

// The keys that a WELCOME has made and no READY has used yet, by the place they lie at. Any thread.
class FreshKeys {
  public:
    void add(const unsigned char *key) {
        const Digest digest = digest_of(key);
        const std::lock_guard hold(lock_);
        if (keys_.size() >= max_keys) keys_.clear(); // those handshakes fail, and are begun again
        keys_[key] = digest;
    }
    bool take(const unsigned char *key) {
        const Digest digest = digest_of(key);
        const std::lock_guard hold(lock_);
        const auto found = keys_.find(key);
        if (found == keys_.end()) return false;
        const bool same = found->second == digest;
        keys_.erase(found);
        return same;
    }

  private:
    static constexpr size_t max_keys = 65536;
    static Digest digest_of(const unsigned char *key) {
        Digest digest;
        crypto_generichash(digest.data(), digest.size(), key, crypto_box_BEFORENMBYTES, nullptr, 0);
        return digest;
    }
    std::mutex lock_; // guards the next
    std::map<const unsigned char *, Digest> keys_;
};

FreshKeys &fresh_keys() {
    static FreshKeys *const keys = new FreshKeys; // libzmq's threads may outlive static objects
    return *keys;
}

} // namespace

extern "C" MUSTER_API int crypto_box_beforenm(unsigned char *key, const unsigned char *theirs,
                                              const unsigned char *own) {
    if (crypto_box_curve25519xsalsa20poly1305_beforenm(key, theirs, own) != 0)
        randombytes_buf(key, crypto_box_BEFORENMBYTES); // no one knows it: the handshake fails at its next step
    try {
        fresh_keys().add(key);
    } catch (const std::exception &) { // no memory: likewise
    }
    return 0;
}

// libzmq opens READY with it, and nothing else.
extern "C" MUSTER_API int crypto_box_open_afternm(unsigned char *plain, const unsigned char *box,
                                                  unsigned long long box_bytes, const unsigned char *nonce,
                                                  const unsigned char *key) {
    if (!fresh_keys().take(key)) return -1;
    return crypto_box_curve25519xsalsa20poly1305_open_afternm(plain, box, box_bytes, nonce, key);
}
