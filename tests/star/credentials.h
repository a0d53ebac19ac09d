// SPDX-License-Identifier: MIT
// What a process that holds the secret of a job can compute without the library: keys and proofs of the star, for tests
// that play hostile members and fake brokers.
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct credentials { // in Z85
    char server_public[41], server_secret[41], member_public[41], member_secret[41];
} credentials;

credentials derive_credentials(const char *secret);
// The proof of the secret (32 bytes) of one side, for the nonces (16 bytes each) of the peer and the broker.
void prove_secret(const char *secret, int of_broker, const unsigned char *member, const unsigned char *broker,
                  unsigned char *out);
// What a broker with that broker secret answers to a challenge (32 bytes).
void prove_broker_secret(const char *broker_secret, const unsigned char *challenge, const unsigned char *member,
                         const unsigned char *broker, unsigned char *out);
// The public key of that broker secret: 64 hex digits for addresses, and in Z85.
void broker_key_of(const char *broker_secret, char out_hex[65], char out_z85[41]);

// The server's side of CURVE, with the keys of a broker of that secret, for one connection.
typedef struct curve_peer curve_peer;
curve_peer *make_curve_peer(const char *secret);
void drop_curve_peer(curve_peer *peer);
// Answers a command of the handshake (the body of its frame); the length of the answer, at most 512; 0: none.
size_t answer_curve(curve_peer *peer, const unsigned char *command, size_t size, unsigned char out[512]);
// A WELCOME for that HELLO with a key of small order in place of the connection's own.
size_t small_order_welcome(curve_peer *peer, const unsigned char *hello, size_t size, unsigned char out[512]);
// The body of the frame of a message or command that is sealed: 33 bytes more.
size_t seal_curve(curve_peer *peer, unsigned char flags, const unsigned char *plain, size_t size, unsigned char *out);

// Commands of CURVE under a key of zeros, which a server without any key can make: READY, and a message.
size_t ready_without_key(unsigned char out[512]);
size_t seal_without_key(uint64_t counter, const unsigned char *plain, size_t size, unsigned char *out);
// A message of the client under that key; its payload's length, or 0 if it is none.
size_t open_without_key(const unsigned char *message, size_t size, unsigned char *out);

#ifdef __cplusplus
}
#endif

#endif
