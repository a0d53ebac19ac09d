// SPDX-License-Identifier: MIT
// Sealed frames: what is sealed is opened, by both ciphers and over changes of the key; whatever is changed, repeated,
// dropped or exchanged is refused. AES-256-GCM is compared with libsodium's.
#include "base/aes_gcm.hpp"
#include "transport/frame.hpp"
#include "transport/handshake.hpp"
#include "transport/seal.hpp"

#include <sodium.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

using Bytes = std::vector<unsigned char>;

std::vector<SealCipher> ciphers() {
    if (!has_fast_aes()) return {SealCipher::xchacha20_poly1305};
    return {SealCipher::xchacha20_poly1305, SealCipher::aes256_gcm};
}

struct Ends {
    SecretKey key = secret_key("a key", 5);
    Sealer sealer;
    Opener opener;

    explicit Ends(SealCipher cipher, uint64_t blocks_per_key = aes_gcm_blocks_per_key)
        : sealer(key.data(), cipher, blocks_per_key), opener(key.data(), cipher, blocks_per_key) {
        const unsigned char *prefix = sealer.prefix();
        size_t size = seal_prefix_bytes;
        assert_false(opener.ready());
        assert_true(opener.take_prefix(prefix, size));
        assert_true(opener.ready());
        assert_int_equal(size, 0);
    }
};

Bytes random_bytes(std::mt19937_64 &random, size_t size) {
    Bytes out(size);
    for (unsigned char &byte : out) byte = static_cast<unsigned char>(random());
    return out;
}

Bytes seal(Sealer &sealer, const Bytes &payload) {
    Bytes frame(frame_bytes(payload.size(), true));
    const iovec span{const_cast<unsigned char *>(payload.data()), payload.size()};
    assert_int_equal(put_frame(frame.data(), FrameType::data, 0, &span, payload.size(), &sealer), frame.size());
    return frame;
}

bool open(Opener &opener, Bytes frame, const Bytes &expected) {
    unsigned char header[frame_header_bytes];
    memcpy(header, frame.data(), sizeof header);
    // A copy of its own size, so that access past its end is found.
    Bytes sealed(frame.begin() + frame_header_bytes, frame.end());
    if (!opener.open(sealed.data(), sealed.size(), header)) return false;
    assert_int_equal(sealed.size(), expected.size() + seal_overhead_bytes);
    if (!expected.empty()) assert_memory_equal(sealed.data() + seal_lead_bytes, expected.data(), expected.size());
    return true;
}

// ---- frames ---------------------------------------------------------------------------------------------------------

void test_frames_of_all_sizes_are_opened(void **) {
    for (const SealCipher cipher : ciphers()) {
        std::mt19937_64 random(1);
        Ends ends(cipher);
        for (size_t size = 0; size < 1100; size++) {
            const Bytes payload = random_bytes(random, size);
            const Bytes frame = seal(ends.sealer, payload);
            if (size >= 16) assert_memory_not_equal(frame.data() + 9, payload.data(), size);
            assert_true(open(ends.opener, frame, payload));
        }
        for (size_t size : {4096, 65535, 65536, 262144}) {
            const Bytes payload = random_bytes(random, size);
            assert_true(open(ends.opener, seal(ends.sealer, payload), payload));
        }
    }
}

void test_each_changed_bit_is_noticed(void **) {
    for (const SealCipher cipher : ciphers()) {
        std::mt19937_64 random(2);
        for (size_t bit = 0; bit < frame_bytes(40, true) * 8; bit++) {
            Ends ends(cipher);
            const Bytes payload = random_bytes(random, 40);
            Bytes frame = seal(ends.sealer, payload);
            frame[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
            assert_false(open(ends.opener, frame, payload));
        }
    }
}

void test_repeated_dropped_and_exchanged_frames_are_refused(void **) {
    for (const SealCipher cipher : ciphers()) {
        const Bytes one(100, 'a'), two(100, 'b');
        {
            Ends ends(cipher);
            const Bytes frame = seal(ends.sealer, one);
            assert_true(open(ends.opener, frame, one));
            assert_false(open(ends.opener, frame, one));
        }
        {
            Ends ends(cipher);
            seal(ends.sealer, one);
            assert_false(open(ends.opener, seal(ends.sealer, two), two));
        }
        {
            Ends there(cipher), here(cipher); // two directions of one key have different prefixes
            assert_false(open(there.opener, seal(here.sealer, one), one));
        }
        {
            Ends ends(cipher);
            Bytes cut = seal(ends.sealer, one);
            cut.resize(frame_header_bytes + 10);
            assert_false(open(ends.opener, cut, one));
        }
    }
}

void test_both_sides_change_the_key_at_the_same_frame(void **) {
    if (!has_fast_aes()) skip();
    std::mt19937_64 random(3);
    constexpr uint64_t limit = 50;
    Ends ends(SealCipher::aes256_gcm, limit);
    Ends no_change(SealCipher::aes256_gcm); // the same bytes of the same key
    for (int i = 0; i < 5000; i++) {
        const Bytes payload = random_bytes(random, random() % (16 * (limit + 10))); // also more than the limit at once
        assert_true(open(ends.opener, seal(ends.sealer, payload), payload));
    }
    // A side with another limit loses the other one: the key was changed indeed.
    Sealer changing(no_change.key.data(), SealCipher::aes256_gcm, limit);
    Opener staying(no_change.key.data(), SealCipher::aes256_gcm);
    const unsigned char *prefix = changing.prefix();
    size_t size = seal_prefix_bytes;
    assert_true(staying.take_prefix(prefix, size));
    const Bytes payload(16 * 20, 'x');
    assert_true(open(staying, seal(changing, payload), payload));
    assert_true(open(staying, seal(changing, payload), payload));
    assert_false(open(staying, seal(changing, payload), payload));
}

void test_aes_is_that_of_libsodium(void **) {
    if (!has_fast_aes() || crypto_aead_aes256gcm_is_available() == 0) skip();
    std::mt19937_64 random(4);
    AesGcm gcm;
    for (int i = 0; i < 2000; i++) {
        const SecretKey key = secret_key(&i, sizeof i);
        const Bytes more = random_bytes(random, random() % 40);
        const Bytes payload = random_bytes(random, random() % 3000);
        const uint64_t number = random();
        unsigned char nonce[12] = {}, tag[16], their_tag[16];
        for (int k = 0; k < 8; k++) nonce[k] = static_cast<unsigned char>(number >> 8 * k);
        Bytes ours = payload, theirs(payload.size() + 1); // libsodium accepts no null pointer
        theirs.resize(payload.size());
        gcm.set_key(key);
        gcm.seal(ours.data(), ours.size(), more.data(), more.size(), number, tag);
        crypto_aead_aes256gcm_encrypt_detached(theirs.data(), their_tag, nullptr, payload.data(), payload.size(),
                                               more.data(), more.size(), nullptr, nonce, key.data());
        assert_true(ours == theirs);
        assert_memory_equal(tag, their_tag, sizeof tag);
        assert_true(gcm.open(ours.data(), ours.size(), more.data(), more.size(), number, tag));
        assert_true(ours == payload);
    }
}

// The code is assembler, which no sanitizer sees: bytes up to the end of a page, and after its beginning.
void test_the_cipher_stays_within_its_bytes(void **) {
    if (!has_fast_aes()) skip();
    constexpr size_t page = 4096;
    void *const mapped = mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapped != MAP_FAILED);
    unsigned char *const begin = static_cast<unsigned char *>(mapped) + page, *const end = begin + page;
    assert_int_equal(mprotect(begin, page, PROT_READ | PROT_WRITE), 0);
    AesGcm seals, opens;
    seals.set_key(secret_key("a key", 5)), opens.set_key(secret_key("a key", 5));
    uint64_t number = 0;
    for (size_t size = 0; size <= page - aes_gcm_tag_bytes; size += size < 700 ? 1 : 97)
        for (unsigned char *data : {begin, end - aes_gcm_tag_bytes - size}) {
            memset(data, 0x5A, size);
            unsigned char *const tag = data == begin ? end - aes_gcm_tag_bytes : data + size;
            seals.seal(data, size, data, 0, number, tag);
            assert_true(opens.open(data, size, data, 0, number++, tag));
            for (size_t i = 0; i < size; i++) assert_int_equal(data[i], 0x5A);
        }
    munmap(mapped, 3 * page);
}

// ---- the choice -----------------------------------------------------------------------------------------------------

void exchange(Handshake &from, Handshake &to) {
    const std::string bytes = from.take_output();
    for (size_t at = 0; at < bytes.size();) {
        size_t used = 0;
        const Status status = to.feed(as_bytes(bytes) + at, bytes.size() - at, used);
        assert_true(status == MUSTER_OK || status == MUSTER_AGAIN);
        at += used;
    }
}

void test_aes_is_chosen_if_both_sides_have_it(void **) {
    for (const bool first : {false, true})
        for (const bool second : {false, true}) {
            HandshakeConfig dials, listens;
            dials.dialer = true;
            dials.secret = listens.secret = secret_key("secret", 6);
            dials.aes = first, listens.aes = second;
            Handshake dialer(dials), listener(listens);
            for (int round = 0; round < 3; round++) exchange(dialer, listener), exchange(listener, dialer);
            const SealCipher cipher = first && second ? SealCipher::aes256_gcm : SealCipher::xchacha20_poly1305;
            assert_true(dialer.agreement().sealed && listener.agreement().sealed);
            assert_true(dialer.agreement().cipher == cipher && listener.agreement().cipher == cipher);
            assert_true(dialer.agreement().key_out == listener.agreement().key_in);
        }
}

std::string message(unsigned char type, std::string_view body) {
    std::string text = {static_cast<char>(type), 0, static_cast<char>(body.size()),
                        static_cast<char>(body.size() >> 8)};
    return text.append(body);
}

// The listener and the dialer agree on the same keys, wherever in the handshake the listener calls prepare().
void test_a_listener_may_compute_ahead(void **) {
    for (const unsigned ahead : {0U, 1U, 2U, 7U}) { // before the hello, after it, with a part of the proof
        HandshakeConfig dials, listens;
        dials.dialer = true;
        dials.secret = listens.secret = secret_key("secret", 6);
        Handshake dialer(dials), listener(listens);
        if (ahead & 1) listener.prepare();
        exchange(dialer, listener);
        if (ahead & 2) listener.prepare();
        exchange(listener, dialer);
        const std::string proof = dialer.take_output();
        size_t used = 0;
        assert_int_equal(listener.feed(as_bytes(proof), proof.size() / 2, used), MUSTER_AGAIN);
        if (ahead & 4) listener.prepare();
        size_t more = 0;
        assert_int_equal(listener.feed(as_bytes(proof) + used, proof.size() - used, more), MUSTER_OK);
        exchange(listener, dialer);
        assert_true(dialer.agreement().key_out == listener.agreement().key_in);
        assert_true(dialer.agreement().key_in == listener.agreement().key_out);
    }
}

// A public key of low order gives the same secret with every key (D. J. Bernstein, 2006): it is refused.
void test_a_public_key_without_a_secret_is_refused(void **) {
    for (const bool ahead : {false, true}) {
        HandshakeConfig dials, listens;
        dials.dialer = true;
        dials.secret = listens.secret = secret_key("secret", 6);
        Handshake dialer(dials), listener(listens);
        std::string hello = dialer.take_output();
        std::fill(hello.end() - 32, hello.end(), 0);
        size_t used = 0;
        assert_int_equal(listener.feed(as_bytes(hello), hello.size(), used), MUSTER_AGAIN);
        if (ahead) listener.prepare();
        const std::string proof = message(2, std::string(100, 'p'));
        assert_int_equal(listener.feed(as_bytes(proof), proof.size(), used), MUSTER_E_PROTOCOL);
        assert_non_null(strstr(listener.error().message, "gives no secret"));

        std::string answer = listener.take_output().substr(0, hello.size());
        std::fill(answer.end() - 32, answer.end(), 0);
        assert_int_equal(dialer.feed(as_bytes(answer), answer.size(), used), MUSTER_E_PROTOCOL);
    }
}

} // namespace

int main() {
    if (!start_crypto()) return 1;
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_all_sizes_are_opened),
        cmocka_unit_test(test_each_changed_bit_is_noticed),
        cmocka_unit_test(test_repeated_dropped_and_exchanged_frames_are_refused),
        cmocka_unit_test(test_both_sides_change_the_key_at_the_same_frame),
        cmocka_unit_test(test_aes_is_that_of_libsodium),
        cmocka_unit_test(test_the_cipher_stays_within_its_bytes),
        cmocka_unit_test(test_aes_is_chosen_if_both_sides_have_it),
        cmocka_unit_test(test_a_listener_may_compute_ahead),
        cmocka_unit_test(test_a_public_key_without_a_secret_is_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
