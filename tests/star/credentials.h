// SPDX-License-Identifier: MIT
// What a process that holds the secret of a job can compute without the library: keys and proofs of the star, for tests
// that play hostile members and fake brokers.
#ifndef CREDENTIALS_H
#define CREDENTIALS_H

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

#ifdef __cplusplus
}
#endif

#endif
