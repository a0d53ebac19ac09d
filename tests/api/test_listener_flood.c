// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
/* Connections that never prove the secret, at a rate that fills all places of a tcp listener many times each second:
 * honest dials succeed meanwhile, within a second each. */
#include "transport_pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

enum { held = 512, run_ms = 2000 };

typedef struct flood {
    int port, per_second;
    const char *from; // address it comes from; one of 127.0.0.0/8
    int spread;       // so many addresses, from that one on
    bool greets;      // sends a HELLO, and no proof
    atomic_bool over;
    unsigned made;
    pthread_t thread;
} flood;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// As docs/wire.md describes it; the key makes no difference before the proof.
static void make_hello(unsigned char hello[84]) {
    memset(hello, 0x55, 84);
    memcpy(hello, "\001\000\120\000\223Muster\n\001\000\001\000\001\000\000\000", 20);
}

static void *run_flood(void *arg) {
    flood *f = arg;
    int fds[held];
    memset(fds, -1, sizeof fds);
    const int64_t start = now_ms();
    while (!atomic_load(&f->over)) {
        const int64_t due = (now_ms() - start) * f->per_second / 1000;
        for (; f->made < due; f->made++) {
            int *const fd = &fds[f->made % held];
            if (*fd >= 0) close(*fd);
            *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            assert_true(*fd >= 0);
            struct sockaddr_in at = {.sin_family = AF_INET};
            at.sin_addr.s_addr = htonl(ntohl(inet_addr(f->from)) + f->made % (unsigned)f->spread);
            assert_int_equal(bind(*fd, (struct sockaddr *)&at, sizeof at), 0);
            at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            at.sin_port = htons((uint16_t)f->port);
            connect(*fd, (struct sockaddr *)&at, sizeof at); // at once on the loopback device, unless the queue is full
            unsigned char hello[84];
            make_hello(hello);
            if (f->greets) send(*fd, hello, sizeof hello, MSG_NOSIGNAL);
        }
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL); // until the next ones are due
    }
    for (int i = 0; i < held; i++)
        if (fds[i] >= 0) close(fds[i]);
    return NULL;
}

static void honest_dials_under(flood *f) {
    muster_context *listening = make_context(0, SECRET), *dialling = make_context(0, SECRET);
    const muster_transport_config config = {.struct_size = sizeof config, .backlog = 4096};
    muster_listener *listener;
    assert_int_equal(muster_transport_listen(listening, "tcp://127.0.0.1:0", 17, &config, &listener, NULL), MUSTER_OK);
    char address[128];
    size_t bytes;
    assert_int_equal(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
    f->port = atoi(strrchr(address, ':') + 1);
    assert_int_equal(pthread_create(&f->thread, NULL, run_flood, f), 0);
    const int64_t start = now_ms();
    int dials = 0, failed = 0;
    int64_t slowest = 0;
    char why[256] = "";
    while (now_ms() - start < run_ms) {
        const int64_t begun = now_ms();
        muster_stream *stream = NULL;
        muster_error error = {0};
        if (muster_transport_dial(dialling, address, strlen(address), NULL, SECOND, &stream, &error) == MUSTER_OK)
            muster_stream_release(stream);
        else
            failed++, strcpy(why, error.message);
        dials++;
        if (now_ms() - begun > slowest) slowest = now_ms() - begun;
        while (muster_listener_accept(listener, 0, &stream, NULL) == MUSTER_OK) muster_stream_release(stream);
    }
    atomic_store(&f->over, true);
    pthread_join(f->thread, NULL);
    print_message("%d honest dials beside %u others, the slowest %d ms; %d failed %s\n", dials, f->made, (int)slowest,
                  failed, why);
    assert_true(f->made >= (unsigned)f->per_second); // it was a flood
    assert_int_equal(failed, 0);
    assert_true(slowest <= 1000);
    muster_listener_release(listener);
    muster_context_release(dialling);
    muster_context_release(listening);
}

static void test_silent_connections_from_one_other_address(void **state) {
    (void)state;
    honest_dials_under(&(flood){.per_second = 1000, .from = "127.0.0.2", .spread = 1});
}

static void test_silent_connections_from_many_addresses(void **state) {
    (void)state;
    honest_dials_under(&(flood){.per_second = 1000, .from = "127.0.1.1", .spread = 10000});
}

static void test_silent_connections_from_the_same_address(void **state) {
    (void)state;
    honest_dials_under(&(flood){.per_second = 1000, .from = "127.0.0.1", .spread = 1});
}

static void test_connections_that_greet_and_prove_nothing(void **state) {
    (void)state;
    honest_dials_under(&(flood){.per_second = 200, .from = "127.0.0.2", .spread = 1, .greets = true});
}

int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_connections_from_one_other_address),
        cmocka_unit_test(test_silent_connections_from_many_addresses),
        cmocka_unit_test(test_silent_connections_from_the_same_address),
        cmocka_unit_test(test_connections_that_greet_and_prove_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
