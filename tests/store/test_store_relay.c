// SPDX-License-Identifier: MIT
// A store behind a relay that changes what the server says: requests are done once, and the handle goes on.
// ctest: full timeout=60
#include "store_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

// docs/wire.md: a record is a head (length, type and flags, number) and a body.
enum { head_bytes = 16, type_of_answers = 4 };

// One thread, a client at a time: as many as come.
typedef struct relay {
    int listener, wake[2];
    uint16_t to;
    pthread_t thread;
    atomic_int changes; // answers that are to be changed yet
    atomic_int clients;
    char url[64];
} relay;

static int connect_to(uint16_t port) {
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s, (const struct sockaddr *)&at, sizeof at), 0);
    return s;
}

// False: this side has ended.
static bool pass_on(relay *r, int from, int to, bool answers) {
    unsigned char bytes[65536];
    const ssize_t n = recv(from, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    for (size_t at = 0, size; answers && at + head_bytes <= (size_t)n; at += head_bytes + size) {
        size = (size_t)bytes[at] | (size_t)bytes[at + 1] << 8 | (size_t)bytes[at + 2] << 16;
        if (bytes[at + 4] != type_of_answers || bytes[at + 3] != 0 || r->changes == 0) continue;
        r->changes--;
        bytes[at + 4] = 0xee;
    }
    return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *run_relay(void *raw) {
    relay *r = raw;
    for (;;) {
        struct pollfd who[2] = {{r->listener, POLLIN, 0}, {r->wake[0], POLLIN, 0}};
        poll(who, 2, -1);
        if (who[1].revents) return NULL;
        const int client = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC), server = connect_to(r->to);
        r->clients++;
        for (bool both = true; both;) {
            struct pollfd sides[3] = {{client, POLLIN, 0}, {server, POLLIN, 0}, {r->wake[0], POLLIN, 0}};
            poll(sides, 3, -1);
            both = !sides[2].revents;
            if (both && sides[0].revents) both = pass_on(r, client, server, false);
            if (both && sides[1].revents) both = pass_on(r, server, client, true);
        }
        close(client);
        close(server);
    }
}

static void start_relay(relay *r, const char *server) {
    memset(r, 0, sizeof *r);
    r->to = htons((uint16_t)atoi(strrchr(server, ':') + 1));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(r->listener, 16), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(pipe2(r->wake, O_CLOEXEC), 0);
    snprintf(r->url, sizeof r->url, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, run_relay, r), 0);
}

static void end_relay(relay *r) {
    assert_int_equal(write(r->wake[1], "", 1), 1);
    pthread_join(r->thread, NULL);
    close(r->wake[0]);
    close(r->wake[1]);
    close(r->listener);
}

// The request was done, and its answer cannot be understood: it is asked for again on another connection.
static void test_a_changed_answer_loses_nothing(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    relay r;
    start_relay(&r, server.url);
    client c = open_client(r.url);
    for (int i = 1; i <= 10; i++) {
        r.changes = 1;
        if (ask(&c, number(MUSTER_STORE_ADD, "n", 1), 20 * SECOND) != MUSTER_OK) fail_msg("%s", why.message);
        assert_int_equal(number_at(&c, "n"), i);
    }
    assert_true(r.clients > 10);
    // One that never says anything else is no store. What was sent may have been done, what comes later was not.
    r.changes = INT32_MAX;
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 20 * SECOND), MUSTER_E_PEER);
    assert_non_null(strstr(why.message, "it may have been applied"));
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 20 * SECOND), MUSTER_E_PROTOCOL);
    close_client(&c);
    end_relay(&r);
    client direct = open_client(server.url);
    assert_int_equal(number_at(&direct, "n"), 11);
    close_client(&direct);
    end_program(&server, SIGTERM);
}

int main(void) {
    if (!make_folder()) return 2;
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_changed_answer_loses_nothing),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tear_down() ? failed : 2;
}
