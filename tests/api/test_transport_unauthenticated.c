// SPDX-License-Identifier: MIT
// Who gets in, and who does not: other secrets, broken handshakes, floods, limits.
// ctest: quick timeout=120
#include "transport_failure.h"

// ---- secrets
// ---------------------------------------------------------------------------------------------------------

static void test_another_secret_gets_nobody_in(void **state) {
    (void)state;
    muster_context *other = make_context(0, "another secret than theirs");
    char addresses[4][128], message[256];
    muster_listener *listeners[4];
    strcpy(addresses[0], "tcp://127.0.0.1:0");
    snprintf(addresses[1], 128, "unix://%s/guarded", folder);
    strcpy(addresses[2], "shm://guarded");
    strcpy(addresses[3], "tcp://127.0.0.1:0?seal=yes");
    for (int i = 0; i < 4; i++) {
        const uint64_t before = failed_handshakes();
        assert_int_equal(listen_only(addresses[i], &listeners[i], message), MUSTER_OK);
        size_t bytes;
        muster_listener_address(listeners[i], addresses[i], 128, &bytes);
        // The dialer has the wrong one, then the listener has.
        assert_int_equal(dial(other, addresses[i], 5 * SECOND, message), MUSTER_E_AUTH);
        assert_says(message, "secret");
        assert_says(message, addresses[i]);
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listeners[i], 20 * MILLISECOND, &stream, NULL), MUSTER_TIMEOUT);
        assert_int_equal(failed_handshakes(), before + 1);
        muster_listener_close(listeners[i]);
        muster_listener_release(listeners[i]);
    }
    muster_listener *theirs;
    assert_int_equal(muster_transport_listen(other, "tcp://127.0.0.1:0", 17, NULL, &theirs, NULL), MUSTER_OK);
    size_t bytes;
    muster_listener_address(theirs, addresses[0], 128, &bytes);
    assert_int_equal(dial(context, addresses[0], 5 * SECOND, message), MUSTER_E_AUTH);
    muster_listener_release(theirs);
    muster_context_release(other);
}

static void test_no_proof_must_be_wanted_by_both(void **state) {
    (void)state;
    muster_context *other = make_context(0, "another secret than theirs");
    char open_address[128], text[160], message[256];
    muster_listener *open;
    assert_int_equal(listen_only("tcp://127.0.0.1:0?auth=none", &open, message), MUSTER_OK);
    size_t bytes;
    muster_listener_address(open, open_address, sizeof open_address, &bytes);
    char *const options = strchr(open_address, '?'); // what a dialer of its own would leave away
    assert_string_equal(options, "?auth=none");
    *options = '\0';
    assert_int_equal(dial(other, open_address, 5 * SECOND, message), MUSTER_E_AUTH);
    assert_says(message, "auth=none");
    snprintf(text, sizeof text, "%s?auth=none", wire_address);
    assert_int_equal(dial(other, text, 5 * SECOND, message), MUSTER_E_AUTH);
    assert_says(message, "auth=none");
    snprintf(text, sizeof text, "%s?auth=none", open_address);
    assert_int_equal(dial(other, text, 5 * SECOND, message), MUSTER_OK);
    muster_listener_release(open);
    muster_context_release(other);
}

static void test_sealing_is_agreed_on_or_refused(void **state) {
    (void)state;
    char address[128], text[200], message[256];
    muster_listener *sealed;
    assert_int_equal(listen_only("tcp://127.0.0.1:0?seal=yes", &sealed, message), MUSTER_OK);
    size_t bytes;
    muster_listener_address(sealed, address, sizeof address, &bytes);
    snprintf(text, sizeof text, "%s?seal=no", address);
    assert_int_equal(dial(context, text, 5 * SECOND, message), MUSTER_E_PROTOCOL);
    assert_says(message, "sealing");
    assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_OK);
    muster_listener_release(sealed);
}

// ---- unauthenticated peers
// -------------------------------------------------------------------------------------------

static int connect_raw(void) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)wire_port)};
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

// Waits for the other side to hang up.
static void drain(int fd) {
    struct timeval limit = {5, 0};
    char got[512];
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t n;
    while ((n = recv(fd, got, sizeof got, 0)) > 0) {
    }
    if (n < 0 && errno != ECONNRESET) fail_msg("the listener did not hang up: %s", strerror(errno));
    close(fd);
}

static void send_raw(int fd, const void *data, size_t size) {
    assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

// What a dialer of ours says first, and what becomes of it when it gets this answer and the end.
static void answer_a_dialer(const char *answer, unsigned char hello[84], muster_error *error, int32_t *status) {
    char silent[64];
    const int listener = silent_socket(silent);
    muster_queue *queue;
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_dial_begin(context, silent, strlen(silent), NULL, 10 * SECOND, queue, 1, NULL),
                     MUSTER_OK);
    const int caller = accept(listener, NULL, NULL);
    assert_int_equal(recv(caller, hello, 84, MSG_WAITALL), 84);
    send_raw(caller, answer, strlen(answer));
    close(caller);
    close(listener);
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, error), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_DONE_DIAL);
    assert_null(entry.object);
    *status = entry.status;
    muster_queue_release(queue);
}

static void test_unauthenticated_and_broken_handshakes_are_dropped(void **state) {
    (void)state;
    unsigned char hello[84], got[2000];
    muster_error error;
    int32_t status;
    answer_a_dialer("220 smtp.example ready\r\n", hello, &error, &status);
    assert_int_equal(status, MUSTER_E_PROTOCOL);
    assert_says(error.message, "does not speak Muster");

    // A listener meets the same, and worse: with a well-formed greeting at hand.
    const uint64_t before = failed_handshakes();
    uint64_t failures = 0;
    int fd = connect_raw();
    send_raw(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    drain(fd), failures++;
    fd = connect_raw(); // hangs up at once
    close(fd), failures++;
    for (size_t cut = 1; cut < sizeof hello; cut += 9) { // truncated
        fd = connect_raw();
        send_raw(fd, hello, cut);
        shutdown(fd, SHUT_WR);
        drain(fd), failures++;
    }
    for (size_t at = 0; at < 20; at++) { // a byte of its fixed part is wrong
        unsigned char wrong[sizeof hello];
        memcpy(wrong, hello, sizeof hello);
        wrong[at] ^= 0x55;
        fd = connect_raw();
        send_raw(fd, wrong, sizeof wrong);
        shutdown(fd, SHUT_WR);
        drain(fd), failures++;
    }
    fd = connect_raw(); // a replay: a hello without its key proves nothing
    send_raw(fd, hello, sizeof hello);
    assert_int_equal(recv(fd, got, sizeof hello, MSG_WAITALL), sizeof hello);
    memset(got, 0, sizeof got);
    got[0] = 2, got[2] = 150;
    send_raw(fd, got, 154);
    drain(fd), failures++;
    fd = connect_raw(); // a reflection: the listener's own words sent back to it
    send_raw(fd, hello, sizeof hello);
    assert_int_equal(recv(fd, got, sizeof hello, MSG_WAITALL), sizeof hello);
    send_raw(fd, got, sizeof hello);
    drain(fd), failures++;
    fd = connect_raw(); // a message that promises 64 KiB
    send_raw(fd, "\002\000\377\377", 4);
    drain(fd), failures++;
    for (int t = 0; t < 5000 && failed_handshakes() < before + failures; t++) usleep(1000);
    assert_int_equal(failed_handshakes(), before + failures);
    assert_int_equal(dial(context, wire_address, 5 * SECOND, NULL), MUSTER_OK);
}

static void test_a_flood_of_unauthenticated_peers_keeps_nobody_out(void **state) {
    (void)state;
    enum { flood = 100 };
    int fds[flood];
    for (int i = 0; i < flood; i++) fds[i] = connect_raw(); // they say nothing; eight may wait at a time
    usleep(1100000 / 2);
    char message[256];
    // Newcomers take the place of those that have had their time (500 ms in this context).
    muster_status status = MUSTER_OK;
    for (int t = 0; t < 20; t++) {
        status = dial(context, wire_address, 5 * SECOND, message);
        if (status == MUSTER_OK) break;
        assert_int_equal(status, MUSTER_E_LIMIT);
        usleep(50000);
    }
    assert_int_equal(status, MUSTER_OK);
    for (int i = 0; i < flood; i++) close(fds[i]);
}

// ---- limits
// ----------------------------------------------------------------------------------------------------------

static void test_a_full_backlog_refuses(void **state) {
    (void)state;
    const muster_transport_config config = {.struct_size = sizeof config, .backlog = 2};
    const char *const forms[] = {"tcp://127.0.0.1:0", "shm://full", "inproc://full"};
    for (int i = 0; i < 3; i++) {
        muster_listener *listener;
        assert_int_equal(muster_transport_listen(context, forms[i], strlen(forms[i]), &config, &listener, NULL),
                         MUSTER_OK);
        char address[128], message[256];
        size_t bytes;
        muster_listener_address(listener, address, sizeof address, &bytes);
        assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_OK);
        assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_OK);
        assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_E_LIMIT);
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listener, SECOND, &stream, NULL), MUSTER_OK);
        muster_stream_release(stream);
        assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_OK);
        muster_listener_release(listener);
    }
}

static void test_descriptors_run_out_and_come_back(void **state) {
    (void)state;
#ifdef MUSTER_SANITIZED
    skip(); // the sanitizer looks at memory through a pipe, and reports an error where it cannot have one
#endif
    struct rlimit limit, few;
    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit;
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    int held[256], count = 0;
    for (int round = 0; round < 3; round++) { // those of earlier connections go only now
        for (int fd; count < 256 && (fd = dup(0)) >= 0;) held[count++] = fd;
        usleep(100000);
    }
    char message[256] = "", also[256] = "";
    const muster_status dialled = dial(context, wire_address, 5 * SECOND, message);
    const muster_status listened = listen_only("tcp://127.0.0.1:0", NULL, also);
    close(held[--count]); // enough to dial, not to accept
    const muster_status half = dial(context, wire_address, 300 * MILLISECOND, NULL);
    while (count > 0) close(held[--count]);
    setrlimit(RLIMIT_NOFILE, &limit);
    assert_int_equal(dialled, MUSTER_E_LIMIT);
    assert_says(message, wire_address);
    assert_int_equal(listened, MUSTER_E_LIMIT);
    assert_says(also, "listen at tcp://127.0.0.1:0");
    assert_true(half != MUSTER_OK);
    assert_int_equal(dial(context, wire_address, 5 * SECOND, NULL), MUSTER_OK);
}

// ---- waiting for connections

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_secret_gets_nobody_in),
        cmocka_unit_test(test_no_proof_must_be_wanted_by_both),
        cmocka_unit_test(test_sealing_is_agreed_on_or_refused),
        cmocka_unit_test(test_unauthenticated_and_broken_handshakes_are_dropped),
        cmocka_unit_test(test_a_flood_of_unauthenticated_peers_keeps_nobody_out),
        cmocka_unit_test(test_a_full_backlog_refuses),
        cmocka_unit_test(test_descriptors_run_out_and_come_back),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
