// SPDX-License-Identifier: MIT
#include "credentials.h"

#include "role.hpp"

#include <memory>
#include <sodium.h>

using namespace star;

namespace {

// As the library derives keys for plug-ins (muster_host::derive): a root from the secret, a key from root and label.
struct Host {
    muster_host table{};
    std::string secret;

    explicit Host(const char *text) : secret(text) {
        table.struct_size = sizeof table;
        table.library = this;
        table.derive = derive;
    }
    static muster_status derive(const muster_host *host, const char *label, uint64_t label_bytes, void *out_key,
                                uint64_t key_bytes) {
        const std::string &secret = static_cast<const Host *>(host->library)->secret;
        static constexpr char role[] = "muster plug-in key 1";
        unsigned char root[64];
        crypto_generichash_state state;
        crypto_generichash_init(&state, reinterpret_cast<const unsigned char *>(role), sizeof role - 1, sizeof root);
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char *>(secret.data()), secret.size());
        crypto_generichash_final(&state, root, sizeof root);
        crypto_generichash(static_cast<unsigned char *>(out_key), key_bytes,
                           reinterpret_cast<const unsigned char *>(label), label_bytes, root, sizeof root);
        return MUSTER_OK;
    }
};

void put(char *out, const std::string &text) {
    memcpy(out, text.c_str(), text.size() + 1);
}

template <size_t bytes>
std::array<unsigned char, bytes> array_of(const unsigned char *from) {
    std::array<unsigned char, bytes> out;
    memcpy(out.data(), from, bytes);
    return out;
}

} // namespace

credentials derive_credentials(const char *secret) {
    const Host host(secret);
    Keys keys(&host.table);
    credentials out;
    put(out.server_public, keys.curve().server_public);
    put(out.server_secret, keys.curve().server_secret);
    put(out.member_public, keys.curve().client_public);
    put(out.member_secret, keys.curve().client_secret);
    return out;
}

void prove_secret(const char *secret, int of_broker, const unsigned char *member, const unsigned char *broker,
                  unsigned char *out) {
    const Host host(secret);
    const Proof proof =
        Keys(&host.table).proof(of_broker != 0, array_of<nonce_bytes>(member), array_of<nonce_bytes>(broker));
    memcpy(out, proof.data(), proof.size());
}

void prove_broker_secret(const char *broker_secret, const unsigned char *challenge, const unsigned char *member,
                         const unsigned char *broker, unsigned char *out) {
    Proof proof{};
    RoleKey::from_secret(broker_secret)
        .prove(array_of<challenge_bytes>(challenge), array_of<nonce_bytes>(member), array_of<nonce_bytes>(broker),
               proof);
    memcpy(out, proof.data(), proof.size());
}

struct curve_peer {
    CurveServerKeys keys;
    std::unique_ptr<CurveServer> server;
};

curve_peer *make_curve_peer(const char *secret) {
    const credentials own = derive_credentials(secret);
    auto *const peer = new curve_peer;
    CurveKey members{};
    key_of_z85(own.server_secret, peer->keys.secret);
    key_of_z85(own.server_public, peer->keys.open);
    key_of_z85(own.member_public, members);
    peer->keys.clients.emplace(reinterpret_cast<char *>(members.data()), members.size());
    peer->server = std::make_unique<CurveServer>(peer->keys);
    return peer;
}

void drop_curve_peer(curve_peer *peer) {
    delete peer;
}

size_t answer_curve(curve_peer *peer, const unsigned char *command, size_t size, unsigned char out[512]) {
    std::string reply, metadata;
    peer->server->take({reinterpret_cast<const char *>(command), size}, reply, metadata);
    memcpy(out, reply.data(), reply.size());
    return reply.size();
}

size_t small_order_welcome(curve_peer *peer, const unsigned char *hello, size_t size, unsigned char out[512]) {
    if (size < 112) return 0;
    static const unsigned char plain[32 + 96] = {}; // the key, and a cookie
    unsigned char nonce[24] = {'W', 'E', 'L', 'C', 'O', 'M', 'E', '-'};
    memcpy(out, "\7WELCOME", 8);
    memset(out + 8, 'n', 16);
    memcpy(nonce + 8, out + 8, 16);
    return crypto_box_easy(out + 24, plain, sizeof plain, nonce, hello + 80, peer->keys.secret.data()) == 0 ? 168 : 0;
}

size_t seal_curve(curve_peer *peer, unsigned char flags, const unsigned char *plain, size_t size, unsigned char *out) {
    peer->server->seal(flags, {reinterpret_cast<const char *>(plain), size}, out);
    return size + CurveServer::overhead;
}

void broker_key_of(const char *broker_secret, char out_hex[65], char out_z85[41]) {
    const RoleKey role = RoleKey::from_secret(broker_secret);
    put(out_hex, hex_of(role.open()));
    put(out_z85, z85_of(role.open()));
}

namespace {

const unsigned char zeros[32] = {};

void put_nonce(unsigned char nonce[24], const char *prefix, const unsigned char *counter) {
    memcpy(nonce, prefix, 16);
    memcpy(nonce + 16, counter, 8);
}

} // namespace

size_t ready_without_key(unsigned char out[512]) {
    const std::string metadata = socket_metadata(ZmtpSide::server);
    unsigned char nonce[24];
    memcpy(out, "\5READY\0\0\0\0\0\0\0\1", 14);
    put_nonce(nonce, "CurveZMQREADY---", out + 6);
    crypto_box_easy_afternm(out + 14, reinterpret_cast<const unsigned char *>(metadata.data()), metadata.size(), nonce,
                            zeros);
    return 14 + 16 + metadata.size();
}

size_t seal_without_key(uint64_t counter, const unsigned char *plain, size_t size, unsigned char *out) {
    unsigned char nonce[24], box[600] = {0};
    if (size + 1 > sizeof box) return 0;
    memcpy(box + 1, plain, size);
    memcpy(out, "\7MESSAGE", 8);
    for (int i = 0; i < 8; i++) out[8 + i] = static_cast<unsigned char>(counter >> 8 * (7 - i));
    put_nonce(nonce, "CurveZMQMESSAGES", out + 8);
    crypto_box_easy_afternm(out + 16, box, size + 1, nonce, zeros);
    return 16 + 16 + size + 1;
}

size_t open_without_key(const unsigned char *message, size_t size, unsigned char *out) {
    unsigned char nonce[24], plain[600];
    if (size < 33 || size > sizeof plain || memcmp(message, "\7MESSAGE", 8) != 0) return 0;
    put_nonce(nonce, "CurveZMQMESSAGEC", message + 8);
    if (crypto_box_open_easy_afternm(plain, message + 16, size - 16, nonce, zeros) != 0) return 0;
    memcpy(out, plain + 1, size - 33);
    return size - 33;
}
