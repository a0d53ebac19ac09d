/* SPDX-License-Identifier: MIT */
/* TLS 1.3 of OpenSSL over blocking sockets between two processes, one SSL_write per message: --over CIPHER, for example
 * TLS_AES_256_GCM_SHA384. The certificate is made here; the client does not check it, which costs nothing later. */
#include "bench.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

struct channel {
    SSL *tls;
};

static void die_tls(const char *what) {
    die(what, ERR_reason_error_string(ERR_peek_last_error()));
}

static inline void channel_write(struct channel *c, const void *data, size_t size) {
    size_t done = 0;
    for (const char *from = data; size != 0; from += done, size -= done)
        if (SSL_write_ex(c->tls, from, size, &done) != 1) die_tls("SSL_write_ex");
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    size_t done = 0;
    if (SSL_read_ex(c->tls, data, most, &done) != 1) die_tls("SSL_read_ex");
    return done;
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    for (char *to = data; size != 0;) {
        const size_t k = channel_read_some(c, to, size);
        to += k, size -= k;
    }
}

#include "patterns.h"
#include "tcp_pair.h"

static SSL *start_tls(const struct options *o, const SSL_METHOD *method, int fd) {
    SSL_CTX *settings = SSL_CTX_new(method);
    if (settings == NULL || SSL_CTX_set_min_proto_version(settings, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(settings, o->over) != 1)
        die_tls("SSL_CTX_new");
    if (method == TLS_server_method()) {
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *certificate = X509_new();
        if (key == NULL || certificate == NULL) die_tls("key");
        ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
        X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
        X509_set_pubkey(certificate, key);
        if (X509_sign(certificate, key, EVP_sha256()) == 0 || SSL_CTX_use_certificate(settings, certificate) != 1 ||
            SSL_CTX_use_PrivateKey(settings, key) != 1)
            die_tls("certificate");
    }
    SSL *tls = SSL_new(settings);
    if (tls == NULL || SSL_set_fd(tls, fd) != 1) die_tls("SSL_new");
    if (method == TLS_server_method() ? SSL_accept(tls) != 1 : SSL_connect(tls) != 1) die_tls("handshake");
    return tls;
}

struct ends {
    struct options options;
    int pair[2];
};

static void second(void *argument) {
    struct ends *e = argument;
    close(e->pair[0]);
    take_core(e->options.cores, 1);
    struct channel c = {start_tls(&e->options, TLS_client_method(), e->pair[1])};
    second_end(&e->options, &c, &c);
}

int main(int argc, char **argv) {
    struct ends e = {.options = read_options(argc, argv)};
    tcp_pair(e.pair);
    const pid_t child = start_process(second, &e);
    close(e.pair[1]);
    take_core(e.options.cores, 0);
    struct channel c = {start_tls(&e.options, TLS_server_method(), e.pair[0])};
    first_end(&e.options, &c, &c);
    join_process(child);
    return 0;
}
