// SPDX-License-Identifier: MIT
// ctest: full timeout=180
// What a process at the address of a broker may send to a member: greetings,
// handshakes, commands and messages of a star, whole or with random damage, in any pieces, ended in any way. A member
// that meets them fails its dial with a status; its process does not end, and works with a broker afterwards. The seeds
// are the same in every run; MUSTER_SEED and MUSTER_CONNECTIONS choose others and more.
#include "credentials.h"
#include "star.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { script_max = 8192, threads = 4 };

typedef struct script {
    unsigned char bytes[script_max];
    size_t size;
} script;

typedef struct hostile {
    uint64_t random;
    bool curve, small_order, keyless;
    atomic_int served, without_key;
    int listener, connections;
    char address[160];
    pthread_t serving;
    atomic_int over;
    unsigned by_status[3]; // AUTH, PROTOCOL and LIMIT; UNREACHABLE and PEER; others
} hostile;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t below(uint64_t *state, uint64_t n) {
    return next_random(state) % n;
}

static void append(script *s, const void *bytes, size_t size) {
    if (size > script_max - s->size) return;
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
}

// A frame of ZMTP 3.0, its length in one byte or, if it has to be or at random, in eight.
static void append_frame(script *s, unsigned char flags, const void *body, size_t size, bool wide) {
    unsigned char begin[9] = {flags, (unsigned char)size};
    if (size > 255 || wide) {
        begin[0] = flags | 2;
        for (int i = 0; i < 8; i++) begin[1 + i] = i < 4 ? 0 : (unsigned char)(size >> 8 * (7 - i));
    }
    append(s, begin, (begin[0] & 2) != 0 ? 9 : 2);
    append(s, body, size);
}

static void append_greeting(script *s, bool curve, uint64_t *random) {
    unsigned char greeting[64] = {0xFF, [8] = 1, [9] = 0x7F, [10] = 3};
    memcpy(greeting + 12, curve ? "CURVE" : "NULL", curve ? 5 : 4);
    greeting[32] = curve;
    static const unsigned char old[][12] = {
        {1, 0},                                     // ZMTP 1.0: an empty identity
        {5, 0, 'i', 'd', 'e', 'n'},                 // one of 4 bytes
        {0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 0, 5}, // version 1
        {0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 1, 5}, // version 2
    };
    if (below(random, 16) == 0) {
        append(s, old[below(random, 4)], sizeof old[0]);
        return;
    }
    if (below(random, 16) == 0) greeting[11] = (unsigned char)below(random, 3); // 3.1, and what is to come
    append(s, greeting, sizeof greeting);
}

static size_t put_metadata(unsigned char *out, uint64_t *random) {
    static const char *const types[] = {"ROUTER", "ROUTER", "ROUTER", "DEALER", "REP", "PUB", "", "X"};
    const char *const type = types[below(random, sizeof types / sizeof *types)];
    const size_t size = strlen(type);
    memcpy(out, "\013Socket-Type\0\0\0", 15);
    out[15] = (unsigned char)size;
    memcpy(out + 16, type, size);
    memcpy(out + 16 + size, "\010Identity\0\0\0\0", 13);
    size_t all = 16 + size + 13;
    if (below(random, 4) == 0) {
        memcpy(out + all, "\1X\377\377\377\377", 6); // a value of 2^32 - 1 bytes
        all += 6;
    }
    return all;
}

static size_t put_star(unsigned char *out, int kind, uint32_t word, uint64_t to, const void *payload, size_t size) {
    memset(out, 0, 24);
    out[0] = 0xB7;
    out[1] = 1;
    out[2] = (unsigned char)kind;
    for (int i = 0; i < 4; i++) out[4 + i] = (unsigned char)(word >> 8 * i);
    out[8] = (unsigned char)to;
    out[16] = 9;
    if (size != 0) memcpy(out + 24, payload, size);
    return 24 + size;
}

// One message of a broker, or a command of ZMTP; *flags are those of its frame.
static size_t put_one(unsigned char *out, unsigned step, uint64_t *random, unsigned char *flags) {
    static const unsigned char zeros[300];
    static const char *const commands[] = {"\4PING\377\377context-and-more-of-it",
                                           "\4PING",
                                           "\4PONG",
                                           "\5ERROR\377no",
                                           "\5ERROR\2no",
                                           "\11SUBSCRIBEx",
                                           "\6CANCELx",
                                           "\5READY",
                                           "\0",
                                           "\377x",
                                           "\7MESSAGE"};
    unsigned char payload[64] = {1};
    *flags = 0;
    if (step == 0) return put_star(out, 2, 0, 0, payload, 1 + 16 + 32); // welcome of an open broker
    if (step == 1) {
        memset(payload, 0, 8);
        payload[2] = 16;
        return put_star(out, 4, 0, 7, payload, 8); // ready
    }
    if (below(random, 4) == 0) {
        const char *const command = commands[below(random, sizeof commands / sizeof *commands)];
        *flags = 4;
        const size_t size = strlen(command) + (command[0] == '\0');
        memcpy(out, command, size);
        return size;
    }
    if (below(random, 8) == 0) *flags = 1; // more parts follow
    const int kind = 1 + (int)below(random, 19);
    return put_star(out, kind, (uint32_t)below(random, 4), 7, zeros, below(random, sizeof zeros));
}

static void damage(script *s, size_t from, uint64_t *random) {
    for (uint64_t times = below(random, 4); times != 0 && s->size > from; times--) {
        const size_t at = from + below(random, s->size - from);
        const size_t piece = 1 + below(random, 16);
        switch (below(random, 6)) {
        case 0:
            s->bytes[at] ^= (unsigned char)(1U << below(random, 8));
            break;
        case 1:
            s->bytes[at] = (unsigned char)next_random(random);
            break;
        case 2:
            s->bytes[at] = below(random, 2) != 0 ? 0xFF : 0;
            break;
        case 3: // a piece is missing
            if (at + piece > s->size) break;
            memmove(s->bytes + at, s->bytes + at + piece, s->size - at - piece);
            s->size -= piece;
            break;
        case 4: // a piece comes twice
            if (at + piece > s->size || s->size + piece > script_max) break;
            memmove(s->bytes + at + piece, s->bytes + at, s->size - at);
            s->size += piece;
            break;
        default:
            s->size = at;
        }
    }
}

// In pieces. False: the member has gone.
static bool send_script(int fd, const script *s, uint64_t *random) {
    for (size_t at = 0; at < s->size;) {
        const size_t piece = below(random, 2) != 0 ? s->size - at : 1 + below(random, s->size - at);
        const ssize_t put = send(fd, s->bytes + at, piece, MSG_NOSIGNAL);
        if (put <= 0) return false;
        at += (size_t)put;
    }
    return true;
}

static bool take(int fd, void *to, size_t size) {
    struct timeval patience = {0, 100000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return recv(fd, to, size, MSG_WAITALL) == (ssize_t)size;
}

static void speak_plain(int fd, uint64_t *random) {
    script s = {.size = 0};
    unsigned char body[512], flags;
    append_greeting(&s, false, random);
    memcpy(body, "\5READY", 6);
    append_frame(&s, 4, body, 6 + put_metadata(body + 6, random), below(random, 8) == 0);
    for (unsigned step = 0, steps = 2 + (unsigned)below(random, 8); step < steps; step++) {
        const size_t size = put_one(body, step, random, &flags);
        append_frame(&s, flags, body, size, below(random, 8) == 0);
    }
    if (below(random, 4) != 0) damage(&s, below(random, 2) != 0 ? 0 : 64, random);
    send_script(fd, &s, random);
}

static bool exchange_curve(int fd, curve_peer *peer, size_t size, bool damaged, bool small_order, uint64_t *random) {
    unsigned char in[600], out[512];
    script s = {.size = 0};
    if (!take(fd, in, 2)) return false;
    size_t begin = in[1];
    if ((in[0] & 2) != 0) { // of long length
        if (!take(fd, in + 2, 7)) return false;
        begin = (size_t)in[7] << 8 | in[8];
    }
    if (begin > sizeof in || begin < size || !take(fd, in, begin)) return false;
    const size_t answer = small_order ? small_order_welcome(peer, in, begin, out) : answer_curve(peer, in, begin, out);
    append_frame(&s, 4, out, answer, false);
    if (damaged) damage(&s, 0, random);
    return send_script(fd, &s, random);
}

// At a random step the bytes are damaged: before they are sealed, or after it.
static void speak_curve(int fd, curve_peer *peer, uint64_t *random) {
    script s = {.size = 0};
    unsigned char hello[64];
    const uint64_t when = below(random, 6);
    append_greeting(&s, true, random);
    if (when == 0) damage(&s, 0, random);
    if (!send_script(fd, &s, random) || !take(fd, hello, sizeof hello)) return;
    if (!exchange_curve(fd, peer, 200, when == 1, false, random)) return; // HELLO, WELCOME
    if (!exchange_curve(fd, peer, 257, when == 2, false, random)) return; // INITIATE, READY
    s.size = 0;
    // Its keys have proved the member, which is not welcomed, but ready.
    for (unsigned step = below(random, 4) == 0 ? 0 : 1, steps = 2 + (unsigned)below(random, 8); step < steps; step++) {
        script plain = {.size = 0};
        unsigned char body[512], sealed[600], flags;
        append(&plain, body, put_one(body, step, random, &flags));
        if (when == 3) damage(&plain, 0, random);
        const unsigned char inner = (unsigned char)((flags & 1) | (flags & 4) >> 1); // as CURVE has them
        append_frame(&s, 0, sealed, seal_curve(peer, inner, plain.bytes, plain.size > 500 ? 500 : plain.size, sealed),
                     below(random, 8) == 0);
    }
    if (when == 4) damage(&s, 0, random);
    send_script(fd, &s, random);
}

static void speak_small_order(int fd, curve_peer *peer) {
    script s = {.size = 0};
    uint64_t none = 1;
    unsigned char bytes[64] = {0xFF, [8] = 1, [9] = 0x7F, [10] = 3, [12] = 'C', 'U', 'R', 'V', 'E', [32] = 1};
    append(&s, bytes, sizeof bytes);
    if (!send_script(fd, &s, &none) || !take(fd, bytes, sizeof bytes)) return;
    if (exchange_curve(fd, peer, 200, false, true, &none)) (void)!recv(fd, bytes, 1, 0); // its end, or its INITIATE
}

// The body of the next frame; its size, 0 at the end of the connection.
static size_t take_frame(int fd, unsigned char *body, size_t room) {
    unsigned char begin[9];
    if (!take(fd, begin, 2)) return 0;
    size_t size = begin[1];
    if ((begin[0] & 2) != 0) {
        if (!take(fd, begin + 2, 7)) return 0;
        size = (size_t)begin[7] << 8 | begin[8];
    }
    return size <= room && take(fd, body, size) ? size : 0;
}

// READY before WELCOME, under a key of zeros. libzmq 4.3.4 takes it in this state, with a key that nothing has been
// written to yet, so that it may be the right one: then the process is a broker without any key for CURVE, and nothing
// else stands in its way, as no proof follows that of CURVE.
static void speak_without_key(hostile *h, int fd) {
    script s = {.size = 0};
    uint64_t none = 1;
    unsigned char bytes[600] = {0xFF, [8] = 1, [9] = 0x7F, [10] = 3, [12] = 'C', 'U', 'R', 'V', 'E', [32] = 1};
    unsigned char plain[600], answer[600];
    append(&s, bytes, 64);
    append_frame(&s, 4, plain, ready_without_key(plain), false);
    if (!send_script(fd, &s, &none) || !take(fd, bytes, 64)) return;
    for (size_t size; (size = take_frame(fd, bytes, sizeof bytes)) != 0;) {
        const size_t opened = open_without_key(bytes, size, plain);
        if (opened < 24 + 1 || plain[2] != 1) continue; // its HELLO of CURVE, for example
        atomic_fetch_add(&h->without_key, 1);
        s.size = 0;
        const size_t inner = put_star(plain, 4, 0, 7, (const unsigned char[8]){[2] = 16}, 8); // ready
        append_frame(&s, 0, answer, seal_without_key(2, plain, inner, answer), false);
        send_script(fd, &s, &none);
    }
}

static void *serve_hostile(void *argument) {
    hostile *h = argument;
    uint64_t random = h->random * 2654435761U + 88172645463325252U;
    for (;;) {
        struct pollfd waiting = {h->listener, POLLIN, 0};
        if (poll(&waiting, 1, 50) == 0) {
            if (atomic_load(&h->over) != 0) return NULL;
            continue;
        }
        const int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        if (h->curve) {
            curve_peer *peer = make_curve_peer(SECRET);
            if (h->small_order)
                speak_small_order(fd, peer);
            else if (h->keyless)
                speak_without_key(h, fd);
            else
                speak_curve(fd, peer, &random);
            atomic_fetch_add(&h->served, 1);
            drop_curve_peer(peer);
        } else {
            speak_plain(fd, &random);
        }
        const struct linger at_once = {1, 0};
        if (below(&random, 3) == 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once); // a reset
        if (below(&random, 3) == 0) shutdown(fd, SHUT_WR);
        close(fd);
    }
}

static void open_hostile(hostile *h) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(h->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(h->listener, 128), 0);
    assert_int_equal(getsockname(h->listener, (struct sockaddr *)&at, &size), 0);
    snprintf(h->address, sizeof h->address, "zmq://m@127.0.0.1:%d/?upgrade=no%s", ntohs(at.sin_port),
             h->curve ? "" : "&curve=no");
    assert_int_equal(pthread_create(&h->serving, NULL, serve_hostile, h), 0);
}

// Dials one after the other; each is another connection.
static void *meet_hostile(void *argument) {
    hostile *h = argument;
    member m = {.context = make_context(0, SECRET)};
    for (int i = 0; i < h->connections; i++) {
        muster_stream *stream = NULL;
        muster_error error = {0};
        const muster_transport_config config = {.struct_size = sizeof config};
        const muster_status status = muster_transport_dial(m.context, h->address, strlen(h->address), &config,
                                                           300 * MILLISECOND, &stream, &error);
        if (stream != NULL) muster_stream_release(stream); // it cannot have proved the secret
        h->by_status[status == MUSTER_E_AUTH || status == MUSTER_E_PROTOCOL || status == MUSTER_E_LIMIT ? 0
                     : status == MUSTER_E_UNREACHABLE || status == MUSTER_E_PEER                        ? 1
                                                                                                        : 2]++;
    }
    leave_star(&m);
    return NULL;
}

static void members_meet(bool curve, int connections) {
    const char *const seed = getenv("MUSTER_SEED"), *const more = getenv("MUSTER_CONNECTIONS");
    hostile all[threads] = {0};
    pthread_t meeting[threads];
    for (int i = 0; i < threads; i++) {
        all[i].random = (seed != NULL ? strtoull(seed, NULL, 10) : 1) * threads + (uint64_t)i;
        all[i].curve = curve;
        all[i].connections = (more != NULL ? atoi(more) : connections) / threads;
        open_hostile(&all[i]);
        assert_int_equal(pthread_create(&meeting[i], NULL, meet_hostile, &all[i]), 0);
    }
    unsigned sums[3] = {0};
    for (int i = 0; i < threads; i++) {
        pthread_join(meeting[i], NULL);
        atomic_store(&all[i].over, 1);
        pthread_join(all[i].serving, NULL);
        close(all[i].listener);
        for (int k = 0; k < 3; k++) sums[k] += all[i].by_status[k];
    }
    print_message("%u refused or broken, %u ended, %u others\n", sums[0], sums[1], sums[2]);
    assert_true(sums[0] != 0 && sums[1] != 0); // neither is the only end that they come to
    broker b = start_broker(0);
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
    between s = connect_members(&two, &one);
    transfer(s.near, s.far, 1000000);
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    stop_broker(&b);
}

static void test_plain_bytes_of_a_hostile_broker(void **state) {
    (void)state;
    members_meet(false, 4000);
}

static void test_bytes_of_a_hostile_broker_with_the_secret(void **state) {
    (void)state;
    members_meet(true, 2000);
}

// A member in a process of its own, in which the plug-in brings libzmq: the signal that ended it, or its status.
static int meet_alone(const hostile *h, int *out_signal) {
    const char *const program = getenv("MUSTER_MEMBER");
    assert_non_null(program);
    setenv("MUSTER_SECRET", SECRET, 1);
    pid_t member = 0;
    char address[sizeof h->address];
    memcpy(address, h->address, sizeof address);
    char *const words[] = {(char *)program, address, NULL};
    assert_int_equal(posix_spawn(&member, program, NULL, NULL, words, environ), 0);
    int how = 0;
    assert_int_equal(waitpid(member, &how, 0), member);
    unsetenv("MUSTER_SECRET");
    *out_signal = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    return -WEXITSTATUS(how);
}

static void close_hostile(hostile *h) {
    atomic_store(&h->over, 1);
    pthread_join(h->serving, NULL);
    close(h->listener);
}

// libzmq's own client ends its process at such a key.
static void test_a_key_of_small_order(void **state) {
    (void)state;
    hostile h = {.curve = true, .small_order = true};
    open_hostile(&h);
    int signal = 0;
    const int status = meet_alone(&h, &signal);
    close_hostile(&h);
    if (signal != 0) fail_msg("the member ended by signal %d", signal);
    assert_int_equal(status, MUSTER_E_AUTH);
    assert_true(h.served != 0);
}

// CURVE itself refuses it.
static void test_ready_before_welcome(void **state) {
    (void)state;
    hostile h = {.curve = true, .keyless = true};
    open_hostile(&h);
    for (int i = 0; i < 5; i++) {
        int signal = 0;
        assert_int_equal(meet_alone(&h, &signal), MUSTER_E_AUTH);
        assert_int_equal(signal, 0);
    }
    close_hostile(&h);
    assert_true(h.served >= 5);
    assert_int_equal(h.without_key, 0);
}

// This program is linked to libzmq, which makes no difference: the member does not use its CURVE.
static void test_a_broker_without_a_key(void **state) {
    (void)state;
    hostile h = {.curve = true, .keyless = true};
    open_hostile(&h);
    char key[65], z85[41];
    broker_key_of(BROKER_SECRET, key, z85);
    snprintf(h.address + strlen(h.address), sizeof h.address - strlen(h.address), "&broker=%s", key);
    member m = {.context = make_context(0, SECRET)};
    for (int i = 0; i < 50; i++) {
        muster_stream *stream = NULL;
        muster_error error = {0};
        const muster_status status = try_dial(&m, h.address, 0, &stream, &error);
        if (status != MUSTER_E_AUTH || strstr(error.message, "broker key") == NULL)
            fail_msg("%s %s", muster_status_name(status), error.message);
    }
    leave_star(&m);
    close_hostile(&h);
    assert_int_equal(h.without_key, 0); // libzmq's own client let 35 to 50 of them pass
}

static int set_up(void **state) {
    return need_zmq(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_key_of_small_order),
    cmocka_unit_test(test_ready_before_welcome),
    cmocka_unit_test(test_a_broker_without_a_key),
    cmocka_unit_test(test_plain_bytes_of_a_hostile_broker),
    cmocka_unit_test(test_bytes_of_a_hostile_broker_with_the_secret),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, NULL);
}
