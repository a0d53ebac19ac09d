// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// The role of a broker: a process that holds the secret and the broker's public key, as every member does, can neither
// serve as a broker of the members nor join a broker as another broker, nor speak for another member.
#include "credentials.h"
#include "star.h"

#include <poll.h>
#include <stdbool.h>
#include <zmq.h>

#define OTHER_SECRET "the broker secret of another star"

enum {
    hello = 1,
    welcome,
    proof,
    ready,
    refused,
    bye,
    claim,
    release_name,
    find,
    answer,
    forsake,
    data,
    credit,
    part,
    lost,
    attach,
    detach,
    group
};
enum { head = 24, nonce = 16, proven = 32 };

static char key[65], key_z85[41], other_key[65], other_z85[41];

static size_t put_message(unsigned char *out, int kind, uint64_t to, uint64_t from, const void *payload, size_t size) {
    memset(out, 0, head);
    out[0] = 0xB7;
    out[1] = 1;
    out[2] = (unsigned char)kind;
    for (int i = 0; i < 8; i++) out[8 + i] = (unsigned char)(to >> 8 * i), out[16 + i] = (unsigned char)(from >> 8 * i);
    if (size != 0) memcpy(out + head, payload, size);
    return head + size;
}

static uint64_t number_at(const unsigned char *from) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

// ---- fake brokers

// Which proof of the role key a fake broker puts into its welcome; none: that of the secret.
enum role_proof { none, random_bytes, of_other_secret, recorded, right };

typedef struct fake {
    const char *name;
    const char *server_secret; // of CURVE, in Z85; NULL: no CURVE
    enum role_proof role;
    void *context, *socket;
    char place[64];
    int stop; // a pipe's end
    pthread_t thread;
} fake;

static unsigned char recording[proven]; // a proof that a genuine broker gave to an earlier challenge

static void serve_one(const fake *f, const unsigned char *peer, size_t peer_bytes, const unsigned char *in,
                      size_t size) {
    unsigned char out[256], payload[1 + nonce + proven] = {0};
    if (size < head) return;
    size_t out_bytes = 0;
    const bool is_proved = in[2] == hello && size == head + 1; // by CURVE keys that derive from the secret
    if (in[2] == hello && size >= head + 1 + nonce) {
        const unsigned char *const theirs = in + head + 1, *const challenge = theirs + nonce;
        memset(payload + 1, 'n', nonce);
        prove_secret(SECRET, 1, theirs, payload + 1, payload + 1 + nonce);
        unsigned char *const shown = payload + 1 + nonce;
        const bool challenged = size == head + 1 + nonce + proven;
        if (f->role == random_bytes) memset(shown, 'x', proven);
        if (f->role == recorded) memcpy(shown, recording, proven);
        if (challenged && (f->role == of_other_secret || f->role == right))
            prove_broker_secret(f->role == right ? BROKER_SECRET : OTHER_SECRET, challenge, theirs, payload + 1, shown);
        memcpy(recording, shown, proven);
        out_bytes = put_message(out, welcome, 0, 0, payload, sizeof payload);
    } else if (in[2] == proof || is_proved) {
        payload[2] = 16; // the window: 1 MiB
        out_bytes = put_message(out, ready, UINT64_C(7) << 32 | 1, 0, payload, 8);
    } else if (in[2] == claim) {
        payload[4] = (unsigned char)(size - head);
        memcpy(payload + 5, in + head, size - head);
        out_bytes = put_message(out, answer, number_at(in + 16), number_at(in + 16), payload, 5 + size - head);
        memcpy(out + 4, in + 4, 4);
    }
    if (out_bytes == 0) return;
    zmq_send(f->socket, peer, peer_bytes, ZMQ_SNDMORE);
    zmq_send(f->socket, out, out_bytes, 0);
}

static void *serve_fake(void *argument) {
    const fake *const f = argument;
    for (;;) {
        zmq_pollitem_t items[] = {{f->socket, 0, ZMQ_POLLIN, 0}, {NULL, f->stop, ZMQ_POLLIN, 0}};
        zmq_poll(items, 2, -1);
        if (items[1].revents != 0) return NULL;
        unsigned char peer[256], in[1024];
        const int peer_bytes = zmq_recv(f->socket, peer, sizeof peer, 0);
        const int size = zmq_recv(f->socket, in, sizeof in, 0);
        if (peer_bytes > 0 && size > 0) serve_one(f, peer, (size_t)peer_bytes, in, (size_t)size);
    }
}

static int start_fake(fake *f) {
    int ends[2], one = 1, linger = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    f->stop = ends[0];
    f->context = zmq_ctx_new();
    f->socket = zmq_socket(f->context, ZMQ_ROUTER);
    zmq_setsockopt(f->socket, ZMQ_LINGER, &linger, sizeof linger);
    if (f->server_secret != NULL) {
        assert_int_equal(zmq_setsockopt(f->socket, ZMQ_CURVE_SERVER, &one, sizeof one), 0);
        assert_int_equal(zmq_setsockopt(f->socket, ZMQ_CURVE_SECRETKEY, f->server_secret, 40), 0);
    }
    assert_int_equal(zmq_bind(f->socket, "tcp://127.0.0.1:*"), 0);
    char endpoint[64];
    size_t bytes = sizeof endpoint;
    assert_int_equal(zmq_getsockopt(f->socket, ZMQ_LAST_ENDPOINT, endpoint, &bytes), 0);
    snprintf(f->place, sizeof f->place, "%s", endpoint + strlen("tcp://"));
    assert_int_equal(pthread_create(&f->thread, NULL, serve_fake, f), 0);
    return ends[1];
}

static void stop_fake(fake *f, int stop) {
    close(stop);
    pthread_join(f->thread, NULL);
    close(f->stop);
    zmq_close(f->socket);
    zmq_ctx_term(f->context);
}

static muster_status try_member(const char *place, const char *options, muster_error *error) {
    member m = {.context = make_context(0, SECRET)};
    char where[400];
    muster_stream *stream = NULL;
    muster_error of_dial = {0};
    snprintf(where, sizeof where, "zmq://m@%s/?upgrade=no&%s", place, options);
    const muster_status status = try_listen(&m, where, 0, error);
    if (status != MUSTER_OK) {
        assert_int_equal(try_dial(&m, where, 0, &stream, &of_dial), status);
        assert_true(!strstr(error->message, "broker key") || strstr(of_dial.message, "broker key"));
    }
    leave_star(&m);
    return status;
}

static void test_a_fake_broker_is_refused(void **state) {
    (void)state;
    const credentials own = derive_credentials(SECRET);
    char random_public[41], random_secret[41], pinned[80], plain[100];
    assert_int_equal(zmq_curve_keypair(random_public, random_secret), 0);
    fake fakes[] = {
        {.name = "the key that the secret gives", .server_secret = own.server_secret},
        {.name = "the members' key", .server_secret = own.member_secret},
        {.name = "a key of its own, and a proof of it", .server_secret = random_secret, .role = of_other_secret},
        {.name = "no CURVE", .role = random_bytes},
    };
    snprintf(pinned, sizeof pinned, "broker=%s", key);
    for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++) {
        const int stop = start_fake(&fakes[i]);
        muster_error error = {0};
        const muster_status status = try_member(fakes[i].place, pinned, &error);
        if (status != MUSTER_E_AUTH || strstr(error.message, "does not prove the broker key") == NULL)
            fail_msg("%s: %s %s", fakes[i].name, muster_status_name(status), error.message);
        stop_fake(&fakes[i], stop);
    }
    // Without CURVE the broker proves the key in its welcome.
    fake in_plain[] = {
        {.name = "right", .role = right},
        {.name = "recorded", .role = recorded}, // what the one before it has shown
        {.name = "none", .role = none},
        {.name = "random bytes", .role = random_bytes},
        {.name = "another broker's", .role = of_other_secret},
    };
    snprintf(plain, sizeof plain, "curve=no&broker=%s", key);
    for (size_t i = 0; i < sizeof in_plain / sizeof *in_plain; i++) {
        const int stop = start_fake(&in_plain[i]);
        muster_error error = {0};
        const muster_status status = try_member(in_plain[i].place, plain, &error);
        if (in_plain[i].role == right ? status != MUSTER_OK
                                      : status != MUSTER_E_AUTH || strstr(error.message, "broker key") == NULL)
            fail_msg("%s: %s %s", in_plain[i].name, muster_status_name(status), error.message);
        stop_fake(&in_plain[i], stop);
    }
    // An address without a key trusts every process that has the secret: the fakes are good enough for that.
    fake trusted = {.name = "without a key", .server_secret = own.server_secret};
    const int stop = start_fake(&trusted);
    muster_error error = {0};
    if (try_member(trusted.place, "", &error) != MUSTER_OK) fail_msg("%s", error.message);
    stop_fake(&trusted, stop);
}

// ---- hostile members

typedef struct raw {
    void *context, *socket;
    uint64_t id;
    unsigned char in[2048];
    size_t size;
} raw;

static bool receive(raw *r) {
    const int got = zmq_recv(r->socket, r->in, sizeof r->in, 0);
    r->size = got < 0 ? 0 : (size_t)got;
    return got >= head;
}

static void send_raw(raw *r, int kind, uint64_t to, uint64_t from, const void *payload, size_t size) {
    unsigned char out[512];
    const size_t bytes = put_message(out, kind, to, from, payload, size);
    assert_int_equal(zmq_send(r->socket, out, bytes, 0), bytes);
}

// Up to the answer to its proof, which is in r->in. `as_broker`: with this payload in place of the proof of the secret.
static raw join_raw(const broker *b, const char *server_public, const void *as_broker, size_t as_broker_bytes) {
    const credentials own = derive_credentials(SECRET);
    char endpoint[160];
    int linger = 0, patience = 10000;
    raw r = {.context = zmq_ctx_new()};
    r.socket = zmq_socket(r.context, ZMQ_DEALER);
    zmq_setsockopt(r.socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(r.socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    if (server_public != NULL) {
        assert_int_equal(zmq_setsockopt(r.socket, ZMQ_CURVE_SERVERKEY, server_public, 40), 0);
        assert_int_equal(zmq_setsockopt(r.socket, ZMQ_CURVE_PUBLICKEY, own.member_public, 40), 0);
        assert_int_equal(zmq_setsockopt(r.socket, ZMQ_CURVE_SECRETKEY, own.member_secret, 40), 0);
    }
    snprintf(endpoint, sizeof endpoint, "tcp://%s", b->place);
    assert_int_equal(zmq_connect(r.socket, endpoint), 0);
    unsigned char greeting[1 + nonce], payload[proven + 64];
    greeting[0] = as_broker != NULL;
    memset(greeting + 1, 'm', nonce);
    send_raw(&r, hello, 0, 0, greeting, sizeof greeting);
    assert_true(receive(&r));
    assert_int_equal(r.in[2], welcome);
    prove_secret(SECRET, 0, greeting + 1, r.in + head + 1, payload);
    if (as_broker_bytes != 0) memcpy(payload, as_broker, as_broker_bytes);
    send_raw(&r, proof, 0, 0, payload, as_broker_bytes != 0 ? as_broker_bytes : proven);
    assert_true(receive(&r));
    r.id = number_at(r.in + 8);
    return r;
}

static void leave_raw(raw *r) {
    zmq_close(r->socket);
    zmq_ctx_term(r->context);
}

// Its connection is refused, with a text that has the word.
static void expect_refused(raw *r, const char *word) {
    while (r->size >= head && r->in[2] != refused && receive(r)) {
    }
    if (r->size < head || r->in[2] != refused) fail_msg("it is not refused for \"%s\"", word);
    char text[300];
    snprintf(text, sizeof text, "%.*s", (int)(r->size - head), (const char *)r->in + head);
    if (strstr(text, word) == NULL) fail_msg("\"%s\" does not speak of \"%s\"", text, word);
    leave_raw(r);
}

static void test_a_member_is_not_taken_for_a_broker(void **state) {
    (void)state;
    const credentials own = derive_credentials(SECRET);
    unsigned char claims[4 + proven] = {9};
    memset(claims + 4, 'x', proven);
    for (int strict = 0; strict < 2; strict++) {
        for (int curve = 0; curve < 2; curve++) {
            broker_secret = strict ? BROKER_SECRET : NULL;
            broker b = start_broker(curve ? 0 : MUSTER_BROKER_NO_CURVE);
            const char *server = !curve ? NULL : strict ? key_z85 : own.server_public;
            const char *const word = strict ? "does not prove the broker secret" : "no broker secret";
            raw r = join_raw(&b, server, claims, 4);
            expect_refused(&r, word);
            r = join_raw(&b, server, claims, sizeof claims);
            expect_refused(&r, word);
            AWAIT_FIGURE(&b, s.brokers == 0 && s.refused == 2);
            stop_broker(&b);
        }
    }
    // An open broker trusts members without proof, but no brokers.
    broker_secret = NULL;
    broker b = start_broker(MUSTER_BROKER_OPEN);
    raw r = join_raw(&b, NULL, claims, 4);
    expect_refused(&r, "no broker secret");
    stop_broker(&b);
}

static void test_a_member_speaks_for_itself_alone(void **state) {
    (void)state;
    static const struct {
        int kind;
        const char *word;
    } words[] = {{data, "in the name of another"},    {credit, "in the name of another"},
                 {claim, "in the name of another"},   {release_name, "in the name of another"},
                 {find, "in the name of another"},    {part, "in the name of another"},
                 {forsake, "in the name of another"}, {lost, "in the name of another"},
                 {group, "in the name of another"}};
    static const int of_brokers[] = {forsake, lost, attach, detach, answer};
    broker_secret = BROKER_SECRET;
    broker b = start_broker(0);
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, "two", "/?upgrade=no");
    between s = connect_members(&two, &one);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        raw r = join_raw(&b, key_z85, NULL, 0);
        assert_int_equal(r.in[2], ready);
        send_raw(&r, words[i].kind, r.id - 1, r.id - 1, "one", 3); // the member before it
        expect_refused(&r, words[i].word);
    }
    for (size_t i = 0; i < sizeof of_brokers / sizeof *of_brokers; i++) {
        raw r = join_raw(&b, key_z85, NULL, 0);
        send_raw(&r, of_brokers[i], r.id - 1, r.id, "one", 3);
        expect_refused(&r, "only brokers");
    }
    // A name that has an owner is not taken, and what is not the member's own is not released.
    raw r = join_raw(&b, key_z85, NULL, 0);
    send_raw(&r, release_name, 0, r.id, "one", 3);
    send_raw(&r, claim, 0, r.id, "one", 3);
    assert_true(receive(&r));
    assert_int_equal(r.in[2], answer);
    assert_int_equal((int32_t)number_at(r.in + head), MUSTER_E_EXISTS);
    leave_raw(&r);
    transfer(s.near, s.far, 1000000); // other members are not affected
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    stop_broker(&b);
}

// ---- brokers with the key

static void test_the_address_has_the_key(void **state) {
    (void)state;
    char expected[300];
    for (int from = 0; from < 2; from++) { // from the configuration, from the environment
        broker_secret = from == 0 ? BROKER_SECRET : NULL;
        if (from == 1) setenv("MUSTER_BROKER_SECRET", BROKER_SECRET, 1);
        broker b = start_broker(0);
        unsetenv("MUSTER_BROKER_SECRET");
        snprintf(expected, sizeof expected, "zmq://%s/?broker=%s", b.place, key);
        assert_string_equal(b.address, expected);
        member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
        assert_non_null(strstr(one.address, key)); // what others dial
        between s = connect_members(&two, &one);
        drop_between(&s);
        muster_error error = {0};
        if (try_member(b.place, "", &error) != MUSTER_E_AUTH || strstr(error.message, "?broker=KEY") == NULL)
            fail_msg("without a key: %s", error.message);
        snprintf(expected, sizeof expected, "broker=%s", other_key);
        if (try_member(b.place, expected, &error) != MUSTER_E_AUTH ||
            strstr(error.message, "does not prove the broker key") == NULL)
            fail_msg("with another key: %s", error.message);
        static const char *const bad[] = {"broker=", "broker=00", "broker=no",
                                          "broker=0000000000000000000000000000000000000000000000000000000000000000"};
        for (size_t i = 0; i < 4; i++) assert_int_equal(try_member(b.place, bad[i], &error), MUSTER_E_ADDRESS);
        leave_star(&one);
        leave_star(&two);
        stop_broker(&b);
    }
    broker_secret = BROKER_SECRET;
    broker b = start_broker(MUSTER_BROKER_NO_CURVE);
    snprintf(expected, sizeof expected, "zmq://%s/?curve=no&broker=%s", b.place, key);
    assert_string_equal(b.address, expected);
    member one = join_star(&b, "one", "/?upgrade=no");
    leave_star(&one);
    muster_error error = {0};
    snprintf(expected, sizeof expected, "curve=no&broker=%s", other_key);
    assert_int_equal(try_member(b.place, expected, &error), MUSTER_E_AUTH);
    assert_non_null(strstr(error.message, "broker key"));
    assert_int_equal(try_member(b.place, "curve=no", &error), MUSTER_OK); // it verifies no role
    stop_broker(&b);
}

// Members come back to a broker with the same key, and not to one with another key or with the secret alone.
static void test_members_return_to_the_same_key_alone(void **state) {
    (void)state;
    broker_secret = BROKER_SECRET;
    broker b = start_broker(0);
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, "two", "/?upgrade=no");
    between s = connect_members(&two, &one);
    char at[160];
    snprintf(at, sizeof at, "zmq://%s/", b.place);
    static const char *const others[] = {OTHER_SECRET, NULL};
    for (size_t i = 0; i < 2; i++) {
        stop_broker(&b);
        expect_lost(s.near, "broker");
        drop_between(&s);
        broker_secret = others[i];
        b = start_broker_at(at, 0, NULL);
        AWAIT_FIGURE(&b, s.refused >= 2); // both members have tried
        assert_int_equal(figures(&b).members, 0);
        muster_stream *stream = NULL;
        muster_error error = {0};
        assert_int_equal(try_dial(&two, one.address, 0, &stream, &error), MUSTER_E_AUTH);
        assert_non_null(strstr(error.message, "does not prove the broker key"));
        stop_broker(&b);
        broker_secret = BROKER_SECRET;
        b = start_broker_at(at, 0, NULL);
        AWAIT_FIGURE(&b, s.names == 2);
        s = connect_members(&two, &one);
    }
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    stop_broker(&b);
}

static void test_a_broker_below_needs_the_secret(void **state) {
    (void)state;
    broker_secret = BROKER_SECRET;
    for (int curve = 0; curve < 2; curve++) {
        const uint32_t flags = curve ? 0 : MUSTER_BROKER_NO_CURVE;
        broker_secret = BROKER_SECRET;
        broker top = start_broker(flags), below = {0};
        char parent[160];
        snprintf(parent, sizeof parent, "zmq://%s/", top.place);
        muster_error error = {0};
        broker_secret = NULL;
        assert_int_equal(try_broker(&below, SECRET, "zmq://127.0.0.1:0/", flags, parent, &error), MUSTER_E_AUTH);
        assert_non_null(strstr(error.message, "broker secret"));
        broker_secret = OTHER_SECRET;
        assert_int_equal(try_broker(&below, SECRET, "zmq://127.0.0.1:0/", flags, top.address, &error), MUSTER_E_AUTH);
        assert_non_null(strstr(error.message, "another broker key"));
        below = start_broker_at("zmq://127.0.0.1:0/", flags, parent); // it does not find out before it has connected
        if (curve) AWAIT_FIGURE(&top, s.refused >= 1);
        broker_secret = BROKER_SECRET;
        broker right_one = start_broker_at("zmq://127.0.0.1:0/", flags, top.address);
        AWAIT_FIGURE(&right_one, s.has_parent == 1);
        AWAIT_FIGURE(&top, s.brokers == 1);
        assert_int_equal(figures(&below).has_parent, 0);
        stop_broker(&right_one);
        stop_broker(&below);
        stop_broker(&top);
    }
}

static int set_up(void **state) {
    need_zmq(state);
    unsetenv("MUSTER_BROKER_SECRET");
    unsetenv("MUSTER_BROKER_SECRET_FILE");
    broker_key_of(BROKER_SECRET, key, key_z85);
    broker_key_of(OTHER_SECRET, other_key, other_z85);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_fake_broker_is_refused),
    cmocka_unit_test(test_a_member_is_not_taken_for_a_broker),
    cmocka_unit_test(test_a_member_speaks_for_itself_alone),
    cmocka_unit_test(test_the_address_has_the_key),
    cmocka_unit_test(test_members_return_to_the_same_key_alone),
    cmocka_unit_test(test_a_broker_below_needs_the_secret),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, NULL);
}
