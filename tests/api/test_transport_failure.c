// SPDX-License-Identifier: MIT
// What transport.h promises when something is wrong: addresses, names, secrets, strangers, limits. A status and one
// sentence that says what, where and with what value.
// ctest: quick timeout=120
#include "transport_pair.h"

static muster_context *context; // with SECRET
static char wire_address[128];  // of a tcp listener of it
static muster_listener *wire;
static int wire_port;

static muster_status dial(muster_context *from, const char *address, int64_t timeout_ns, char *message) {
    muster_stream *stream = (muster_stream *)8;
    muster_error error = {0};
    const muster_status status =
        muster_transport_dial(from, address, strlen(address), NULL, timeout_ns, &stream, &error);
    if (status == MUSTER_OK)
        muster_stream_release(stream);
    else
        assert_null(stream);
    if (status < 0) {
        assert_int_equal(error.status, status);
        assert_int_equal(strlen(error.message), error.message_bytes);
        assert_true(error.message_bytes > 0);
    }
    if (message) strcpy(message, error.message);
    return status;
}

static muster_status listen_only(const char *address, muster_listener **out, char *message) {
    muster_error error = {0};
    muster_listener *listener = (muster_listener *)8;
    const muster_status status = muster_transport_listen(context, address, strlen(address), NULL, &listener, &error);
    if (message) strcpy(message, error.message);
    if (status != MUSTER_OK) assert_null(listener);
    if (out)
        *out = listener;
    else if (status == MUSTER_OK)
        muster_listener_release(listener);
    return status;
}

#define assert_says(message, text)                                                                                     \
    if (!strstr(message, text)) fail_msg("'%s' does not say '%s'", message, text)

static uint64_t failed_handshakes(void) {
    muster_context_stats stats;
    assert_int_equal(muster_context_get_stats(context, &stats), MUSTER_OK);
    return stats.handshakes_failed;
}

// ---- addresses and arguments
// -----------------------------------------------------------------------------------------

static void test_bad_addresses_are_told_apart(void **state) {
    (void)state;
    const struct {
        const char *address, *says;
        muster_status status;
    } bad[] = {
        {"", "empty", MUSTER_E_ADDRESS},
        {"localhost:80", "no scheme", MUSTER_E_ADDRESS},
        {"tcp://h:99999", "port 99999 is above 65535", MUSTER_E_ADDRESS},
        {"tcp://h", "no port", MUSTER_E_ADDRESS},
        {"tcp://h:x", "port 'x' is not a number", MUSTER_E_ADDRESS},
        {"tcp://h:0", "port 0 cannot be dialled", MUSTER_E_ADDRESS},
        {"tcp://:80", "no host", MUSTER_E_ADDRESS},
        {"tcp://::1:80", "brackets", MUSTER_E_ADDRESS},
        {"tcp://[::1:80", "'[' without ']'", MUSTER_E_ADDRESS},
        {"tcp://h:1?colour=red", "option 'colour' is unknown", MUSTER_E_ADDRESS},
        {"tcp://h:1?bind=0.0.0.0", "option 'bind' is unknown", MUSTER_E_ADDRESS},
        {"tcp://127.0.0.1:1?seal=maybe", "neither yes nor no", MUSTER_E_ADDRESS},
        {"tcp://127.0.0.1:1?auth=some", "can only be none", MUSTER_E_ADDRESS},
        {"unix://relative", "starts with '/'", MUSTER_E_ADDRESS},
        {"shm://a/b", "character '/'", MUSTER_E_ADDRESS},
        {"shm://x?seal=yes", "option 'seal' is unknown", MUSTER_E_ADDRESS},
        {"inproc://", "no name", MUSTER_E_ADDRESS},
        {"nosuch://x", "nosuch", MUSTER_E_NOT_FOUND},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char message[256];
        const muster_status status = dial(context, bad[i].address, SECOND, message);
        if (status != bad[i].status) fail_msg("%s: %s %s", bad[i].address, muster_status_name(status), message);
        assert_says(message, bad[i].says);
    }
    char message[256], text[5000];
    memset(text, 'x', sizeof text);
    memcpy(text, "unix:///", 8);
    muster_error error;
    muster_listener *listener;
    assert_int_equal(muster_transport_listen(context, text, sizeof text, NULL, &listener, &error), MUSTER_E_ADDRESS);
    assert_int_equal(muster_transport_listen(context, text, 200, NULL, &listener, &error), MUSTER_E_ADDRESS);
    assert_int_equal(listen_only("tcp://127.0.0.1:0?bind=x:y", NULL, message), MUSTER_E_ADDRESS);
    assert_int_equal(listen_only("tcp://127.0.0.1:0?advertise=a%zz", NULL, message), MUSTER_E_ADDRESS);
    assert_int_equal(listen_only("unix:///tmp/x?bind=1.1.1.1", NULL, message), MUSTER_E_ADDRESS);
}

static void test_wrong_arguments_change_nothing(void **state) {
    (void)state;
    muster_stream *stream;
    muster_listener *listener;
    muster_error error;
    muster_transport_config config = {.struct_size = sizeof config};
    assert_int_equal(muster_transport_dial(NULL, "tcp://h:1", 9, NULL, 1, &stream, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_dial(context, NULL, 9, NULL, 1, &stream, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_dial(context, "tcp://h:1", 9, NULL, 1, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_dial(context, "tcp://h:1", 9, NULL, 0, &stream, &error), MUSTER_E_ARG);
    config.flags = 1;
    assert_int_equal(muster_transport_dial(context, "tcp://h:1", 9, &config, 1, &stream, &error), MUSTER_E_ARG);
    config.flags = 0, config.window_bytes = 5000;
    assert_int_equal(muster_transport_dial(context, "tcp://h:1", 9, &config, 1, &stream, &error), MUSTER_E_ARG);
    assert_says(error.message, "5000");
    config.window_bytes = 0, config.greeting = "x", config.greeting_bytes = 4097;
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, &config, &listener, &error), MUSTER_E_ARG);
    assert_says(error.message, "4097");
    config.greeting = NULL, config.greeting_bytes = 1;
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, &config, &listener, &error), MUSTER_E_ARG);
    config.greeting_bytes = 0, config.retry_ns = -1;
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, &config, &listener, &error), MUSTER_E_ARG);
    struct {
        muster_transport_config known;
        uint64_t newer;
    } grown = {.known = {.struct_size = sizeof grown}, .newer = 1};
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, &grown.known, &listener, &error), MUSTER_E_ABI);
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, NULL, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_dial_begin(context, "tcp://h:1", 9, NULL, 1, NULL, 0, &error), MUSTER_E_ARG);
    size_t bytes;
    char small[4];
    assert_int_equal(muster_listener_accept(NULL, 0, &stream, &error), MUSTER_E_ARG);
    assert_int_equal(muster_listener_accept(wire, 0, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_listener_address(wire, small, sizeof small, &bytes), MUSTER_E_LIMIT);
    assert_int_equal(bytes, strlen(wire_address));
    assert_int_equal(muster_listener_address(wire, NULL, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_listener_cancel(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_listener_close(NULL), MUSTER_E_ARG);
    assert_int_equal(muster_listener_watch(NULL, NULL, 0), MUSTER_E_ARG);
    muster_listener_release(NULL);
}

// ---- nobody there
// ----------------------------------------------------------------------------------------------------

static int free_port(void) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void test_nobody_listens(void **state) {
    (void)state;
    char address[256], message[256];
    snprintf(address, sizeof address, "tcp://127.0.0.1:%d", free_port());
    assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_E_UNREACHABLE);
    assert_says(message, address);
    assert_says(message, "refused");
    snprintf(address, sizeof address, "unix://%s/nobody", folder);
    assert_int_equal(dial(context, address, 5 * SECOND, message), MUSTER_E_UNREACHABLE);
    assert_int_equal(dial(context, "unix://@muster-nobody", 5 * SECOND, message), MUSTER_E_UNREACHABLE);
    assert_int_equal(dial(context, "shm://nobody", 5 * SECOND, message), MUSTER_E_UNREACHABLE);
    assert_int_equal(dial(context, "inproc://nobody", 5 * SECOND, message), MUSTER_E_UNREACHABLE);
    assert_int_equal(dial(context, "tcp://no-such-host.invalid:1", 20 * SECOND, message), MUSTER_E_UNREACHABLE);
    assert_says(message, "no-such-host.invalid");
}

static void *listen_later(void *arg) {
    usleep(150000);
    muster_listener *listener = NULL;
    if (muster_transport_listen(context, arg, strlen(arg), NULL, &listener, NULL) != MUSTER_OK) return NULL;
    return listener;
}

static void test_dialling_again_until_somebody_listens(void **state) {
    (void)state;
    char addresses[4][128];
    snprintf(addresses[0], 128, "tcp://127.0.0.1:%d", free_port());
    snprintf(addresses[1], 128, "unix://%s/later", folder);
    strcpy(addresses[2], "shm://later");
    strcpy(addresses[3], "inproc://later");
    const muster_transport_config config = {.struct_size = sizeof config, .retry_ns = 10 * SECOND};
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        muster_stream *stream = NULL;
        assert_int_equal(pthread_create(&thread, NULL, listen_later, addresses[i]), 0);
        const muster_status status =
            muster_transport_dial(context, addresses[i], strlen(addresses[i]), &config, 20 * SECOND, &stream, NULL);
        void *listener;
        pthread_join(thread, &listener);
        assert_non_null(listener);
        assert_int_equal(status, MUSTER_OK);
        muster_stream_release(stream);
        muster_listener_release(listener);
    }
    char message[256];
    const muster_transport_config shortly = {.struct_size = sizeof shortly, .retry_ns = 100 * MILLISECOND};
    muster_stream *stream;
    muster_error error;
    assert_int_equal(muster_transport_dial(context, "shm://nobody", 12, &shortly, 20 * SECOND, &stream, &error),
                     MUSTER_E_UNREACHABLE);
    (void)message;
}

// A socket that takes connections and says nothing.
static int silent_socket(char *address) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    sprintf(address, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static void test_a_dial_ends_in_time(void **state) {
    (void)state;
    char address[64], message[256];
    const int fd = silent_socket(address);
    assert_int_equal(dial(context, address, 80 * MILLISECOND, NULL), MUSTER_TIMEOUT);
    // The context's own limit on handshakes is 500 ms.
    assert_int_equal(dial(context, address, -1, message), MUSTER_E_PEER);
    assert_says(message, "did not prove itself within 500 ms");
    close(fd);
}

// ---- taken
// -----------------------------------------------------------------------------------------------------------

static void test_an_address_in_use_is_told(void **state) {
    (void)state;
    char addresses[5][128], message[256];
    strcpy(addresses[0], wire_address);
    snprintf(addresses[1], 128, "unix://%s/taken", folder);
    strcpy(addresses[2], "unix://@muster-taken");
    strcpy(addresses[3], "shm://taken");
    strcpy(addresses[4], "inproc://taken");
    for (int i = 0; i < 5; i++) {
        muster_listener *first = NULL;
        if (i > 0) assert_int_equal(listen_only(addresses[i], &first, message), MUSTER_OK);
        assert_int_equal(listen_only(addresses[i], NULL, message), MUSTER_E_EXISTS);
        assert_says(message, addresses[i]);
        if (i == 0) continue;
        assert_int_equal(muster_listener_close(first), MUSTER_OK);
        assert_int_equal(listen_only(addresses[i], NULL, message), MUSTER_OK); // free again at once
        muster_listener_release(first);
        for (int t = 0; t < 1000 && dial(context, addresses[i], SECOND, NULL) != MUSTER_E_UNREACHABLE; t++)
            usleep(1000);
        assert_int_equal(dial(context, addresses[i], SECOND, NULL), MUSTER_E_UNREACHABLE);
    }
}

static void test_socket_files(void **state) {
    (void)state;
    char address[256], path[200], message[256];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "%s/stale", folder);
    snprintf(address, sizeof address, "unix://%s", path);
    // What a killed process leaves behind is taken over.
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(at.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    close(fd);
    muster_listener *listener;
    assert_int_equal(listen_only(address, &listener, message), MUSTER_OK);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    muster_listener_close(listener);
    muster_listener_release(listener);
    assert_int_equal(stat(path, &about), -1);
    // A file that is no socket is not.
    const int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(file);
    assert_int_equal(listen_only(address, NULL, message), MUSTER_E_EXISTS);
    assert_says(message, "no socket");
    unlink(path);
    // A folder is made if only that is missing, and must not be open to others.
    snprintf(address, sizeof address, "unix://%s/new/socket", folder);
    assert_int_equal(listen_only(address, &listener, message), MUSTER_OK);
    snprintf(path, sizeof path, "%s/new", folder);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    muster_listener_close(listener);
    muster_listener_release(listener);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(listen_only(address, NULL, message), MUSTER_E_PERMISSION);
    assert_says(message, "changed by others");
    rmdir(path);
    snprintf(address, sizeof address, "unix://%s/two/levels/socket", folder);
    assert_int_equal(listen_only(address, NULL, message), MUSTER_E_NOT_FOUND);
    assert_int_equal(listen_only("tcp://192.0.2.1:0", NULL, message), MUSTER_E_NOT_FOUND);
    assert_int_equal(listen_only("tcp://no-such-host.invalid:0", NULL, message), MUSTER_E_NOT_FOUND);
}

static void test_advertised_addresses(void **state) {
    (void)state;
    const struct {
        const char *address, *begin;
    } told[] = {{"tcp://127.0.0.1:0", "tcp://127.0.0.1:"},
                {"tcp://:0", "tcp://127.0.0.1:"},
                {"tcp://localhost:0", "tcp://localhost:"},
                {"tcp://[::1]:0", "tcp://[::1]:"},
                {"tcp://node7:0?bind=127.0.0.1", "tcp://node7:"},
                {"tcp://127.0.0.1:0?advertise=gate.example", "tcp://gate.example:"},
                {"tcp://127.0.0.1:0?advertise=gate.example%3A99", "tcp://gate.example:99"},
                {"tcp://127.0.0.1:0?advertise=[fe80::2]:7", "tcp://[fe80::2]:7"}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        muster_listener *listener;
        char message[256], text[200];
        if (listen_only(told[i].address, &listener, message) != MUSTER_OK) fail_msg("%s: %s", told[i].address, message);
        size_t bytes;
        assert_int_equal(muster_listener_address(listener, text, sizeof text, &bytes), MUSTER_OK);
        if (strncmp(text, told[i].begin, strlen(told[i].begin)) != 0) fail_msg("%s: %s", told[i].address, text);
        assert_string_not_equal(strrchr(text, ':'), ":0");
        muster_listener_release(listener);
    }
}

// ---- secrets
// ---------------------------------------------------------------------------------------------------------

static void test_another_secret_gets_nobody_in(void **state) {
    (void)state;
    muster_context *stranger = make_context(0, "another secret than theirs");
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
        assert_int_equal(dial(stranger, addresses[i], 5 * SECOND, message), MUSTER_E_AUTH);
        assert_says(message, "secret");
        assert_says(message, addresses[i]);
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listeners[i], 20 * MILLISECOND, &stream, NULL), MUSTER_TIMEOUT);
        assert_int_equal(failed_handshakes(), before + 1);
        muster_listener_close(listeners[i]);
        muster_listener_release(listeners[i]);
    }
    muster_listener *theirs;
    assert_int_equal(muster_transport_listen(stranger, "tcp://127.0.0.1:0", 17, NULL, &theirs, NULL), MUSTER_OK);
    size_t bytes;
    muster_listener_address(theirs, addresses[0], 128, &bytes);
    assert_int_equal(dial(context, addresses[0], 5 * SECOND, message), MUSTER_E_AUTH);
    muster_listener_release(theirs);
    muster_context_release(stranger);
}

static void test_no_proof_must_be_wanted_by_both(void **state) {
    (void)state;
    muster_context *stranger = make_context(0, "another secret than theirs");
    char open_address[128], text[160], message[256];
    muster_listener *open;
    assert_int_equal(listen_only("tcp://127.0.0.1:0?auth=none", &open, message), MUSTER_OK);
    size_t bytes;
    muster_listener_address(open, open_address, sizeof open_address, &bytes);
    assert_int_equal(dial(stranger, open_address, 5 * SECOND, message), MUSTER_E_AUTH);
    assert_says(message, "auth=none");
    snprintf(text, sizeof text, "%s?auth=none", wire_address);
    assert_int_equal(dial(stranger, text, 5 * SECOND, message), MUSTER_E_AUTH);
    assert_says(message, "auth=none");
    snprintf(text, sizeof text, "%s?auth=none", open_address);
    assert_int_equal(dial(stranger, text, 5 * SECOND, message), MUSTER_OK);
    muster_listener_release(open);
    muster_context_release(stranger);
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

// ---- strangers
// -------------------------------------------------------------------------------------------------------

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

static void test_strangers_and_broken_handshakes_are_dropped(void **state) {
    (void)state;
    unsigned char hello[84], got[2000];
    muster_error error;
    int32_t status;
    answer_a_dialer("220 smtp.example ready\r\n", hello, &error, &status);
    assert_int_equal(status, MUSTER_E_PROTOCOL);
    assert_says(error.message, "does not speak Muster");

    // A listener meets the same, and worse: with a well-formed greeting at hand.
    const uint64_t before = failed_handshakes();
    uint64_t strangers = 0;
    int fd = connect_raw();
    send_raw(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    drain(fd), strangers++;
    fd = connect_raw(); // hangs up at once
    close(fd), strangers++;
    for (size_t cut = 1; cut < sizeof hello; cut += 9) { // truncated
        fd = connect_raw();
        send_raw(fd, hello, cut);
        shutdown(fd, SHUT_WR);
        drain(fd), strangers++;
    }
    for (size_t at = 0; at < 20; at++) { // a byte of its fixed part is wrong
        unsigned char wrong[sizeof hello];
        memcpy(wrong, hello, sizeof hello);
        wrong[at] ^= 0x55;
        fd = connect_raw();
        send_raw(fd, wrong, sizeof wrong);
        shutdown(fd, SHUT_WR);
        drain(fd), strangers++;
    }
    fd = connect_raw(); // a replay: a greeting without the key behind it proves nothing
    send_raw(fd, hello, sizeof hello);
    assert_int_equal(recv(fd, got, sizeof hello, MSG_WAITALL), sizeof hello);
    memset(got, 0, sizeof got);
    got[0] = 2, got[2] = 150;
    send_raw(fd, got, 154);
    drain(fd), strangers++;
    fd = connect_raw(); // a reflection: the listener's own words sent back to it
    send_raw(fd, hello, sizeof hello);
    assert_int_equal(recv(fd, got, sizeof hello, MSG_WAITALL), sizeof hello);
    send_raw(fd, got, sizeof hello);
    drain(fd), strangers++;
    fd = connect_raw(); // a message that promises 64 KiB
    send_raw(fd, "\002\000\377\377", 4);
    drain(fd), strangers++;
    for (int t = 0; t < 5000 && failed_handshakes() < before + strangers; t++) usleep(1000);
    assert_int_equal(failed_handshakes(), before + strangers);
    assert_int_equal(dial(context, wire_address, 5 * SECOND, NULL), MUSTER_OK);
}

static void test_a_flood_of_strangers_keeps_nobody_out(void **state) {
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
// -----------------------------------------------------------------------------------------

static void *accept_one(void *arg) {
    muster_stream *stream = NULL;
    const muster_status status = muster_listener_accept(arg, 20 * SECOND, &stream, NULL);
    if (stream) muster_stream_release(stream);
    return (void *)(intptr_t)status;
}

static void test_accept_can_be_cancelled_and_closed(void **state) {
    (void)state;
    for (int closing = 0; closing < 2; closing++) {
        muster_listener *listener;
        assert_int_equal(listen_only("tcp://127.0.0.1:0", &listener, NULL), MUSTER_OK);
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_AGAIN);
        assert_int_equal(muster_listener_accept(listener, 10 * MILLISECOND, &stream, NULL), MUSTER_TIMEOUT);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, accept_one, listener), 0);
        usleep(30000);
        if (closing) assert_int_equal(muster_listener_close(listener), MUSTER_OK);
        void *result = NULL;
        for (;;) {
            if (!closing) assert_int_equal(muster_listener_cancel(listener), MUSTER_OK);
            struct timespec soon;
            clock_gettime(CLOCK_REALTIME, &soon);
            soon.tv_sec += closing ? 10 : 0;
            soon.tv_nsec += 5000000;
            if (soon.tv_nsec >= 1000000000) soon.tv_nsec -= 1000000000, soon.tv_sec++;
            if (pthread_timedjoin_np(thread, &result, &soon) == 0) break;
            assert_false(closing);
        }
        assert_int_equal((intptr_t)result, closing ? MUSTER_E_CLOSED : MUSTER_E_CANCELED);
        muster_listener_release(listener);
    }
}

static void test_a_watched_listener_tells_of_connections(void **state) {
    (void)state;
    muster_queue *queue;
    muster_listener *listener;
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(listen_only("shm://watched", &listener, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_watch(listener, queue, 9), MUSTER_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_transport_dial_begin(context, "shm://watched", 13, NULL, 5 * SECOND, queue, 5, NULL),
                         MUSTER_OK);
        int ready = 0, dialled = 0;
        while (!ready || !dialled) {
            muster_completion entry;
            assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, NULL), MUSTER_OK);
            if (entry.kind == MUSTER_DONE_DIAL) {
                assert_int_equal(entry.tag, 5);
                assert_int_equal(entry.status, MUSTER_OK);
                muster_stream_release(entry.object);
                dialled = 1;
            } else {
                assert_int_equal(entry.kind, MUSTER_EVENT_READY);
                assert_int_equal(entry.tag, 9);
                ready = 1;
            }
        }
        muster_stream *stream;
        assert_int_equal(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_OK);
        muster_stream_release(stream);
        assert_int_equal(muster_listener_accept(listener, 0, &stream, NULL), MUSTER_AGAIN);
    }
    muster_context *other = make_context(0, SECRET);
    muster_queue *foreign;
    assert_int_equal(muster_queue_create(other, NULL, &foreign, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_watch(listener, foreign, 9), MUSTER_E_ARG);
    muster_queue_release(foreign);
    muster_context_release(other);
    assert_int_equal(muster_listener_watch(listener, NULL, 0), MUSTER_OK);
    muster_listener_release(listener);
    muster_queue_release(queue);
}

static void *close_context(void *arg) {
    usleep(100000);
    muster_context_close(arg, SECOND);
    return NULL;
}

static void test_closing_the_context_ends_dials_and_accepts(void **state) {
    (void)state;
    char address[64], message[256];
    const int fd = silent_socket(address);
    muster_context *brief = make_context(0, SECRET);
    muster_queue *queue;
    muster_listener *listener;
    assert_int_equal(muster_queue_create(brief, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_listen(brief, "tcp://:0", 8, NULL, &listener, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_dial_begin(brief, address, strlen(address), NULL, -1, queue, 3, NULL), MUSTER_OK);
    pthread_t closer, acceptor;
    assert_int_equal(pthread_create(&closer, NULL, close_context, brief), 0);
    assert_int_equal(pthread_create(&acceptor, NULL, accept_one, listener), 0);
    assert_int_equal(dial(brief, address, -1, message), MUSTER_E_CANCELED);
    pthread_join(closer, NULL);
    void *result;
    pthread_join(acceptor, &result);
    assert_int_equal((intptr_t)result, MUSTER_E_CLOSED);
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.status, MUSTER_E_CANCELED);
    assert_int_equal(dial(brief, address, SECOND, message), MUSTER_E_CLOSED);
    muster_listener *late;
    assert_int_equal(muster_transport_listen(brief, "tcp://:0", 8, NULL, &late, NULL), MUSTER_E_CLOSED);
    assert_int_equal(muster_transport_listen(brief, "inproc://x", 10, NULL, &late, NULL), MUSTER_E_CLOSED);
    muster_listener_release(listener);
    muster_queue_release(queue);
    muster_context_release(brief);
    close(fd);
}

static void test_inproc_ends_know_each_other(void **state) {
    (void)state;
    muster_listener *listener;
    const muster_transport_config theirs = {.struct_size = sizeof theirs, .greeting = "listener", .greeting_bytes = 8};
    const muster_transport_config ours = {.struct_size = sizeof ours, .greeting = "dialer", .greeting_bytes = 6};
    assert_int_equal(muster_transport_listen(context, "inproc://here", 13, &theirs, &listener, NULL), MUSTER_OK);
    muster_stream *near, *far;
    assert_int_equal(muster_transport_dial(context, "inproc://here", 13, &ours, SECOND, &near, NULL), MUSTER_OK);
    assert_int_equal(muster_listener_accept(listener, SECOND, &far, NULL), MUSTER_OK);
    char text[32] = "";
    size_t bytes;
    assert_int_equal(muster_transport_greeting(near, text, sizeof text, &bytes), MUSTER_OK);
    assert_string_equal(text, "listener");
    assert_int_equal(muster_transport_greeting(far, text, sizeof text, &bytes), MUSTER_OK);
    assert_memory_equal(text, "dialer", 6);
    put(near, "through");
    expect(far, "through");
    muster_stream_release(near);
    assert_int_equal(read_one(far, SECOND), MUSTER_E_END);
    muster_stream_release(far);
    muster_listener_release(listener);
}

static int open_all(void **state) {
    if (make_folder(state)) return 1;
    muster_context_config config = {.struct_size = sizeof config, .secret = SECRET, .secret_bytes = strlen(SECRET)};
    config.handshake_timeout_ns = 500 * MILLISECOND;
    config.max_unauthenticated = 8;
    if (muster_context_create(&config, &context, NULL) != MUSTER_OK) return 1;
    if (muster_transport_listen(context, "tcp://127.0.0.1:0?upgrade=no", 28, NULL, &wire, NULL) != MUSTER_OK) return 1;
    size_t bytes;
    muster_listener_address(wire, wire_address, sizeof wire_address, &bytes);
    wire_port = atoi(strrchr(wire_address, ':') + 1);
    return 0;
}

static int close_all(void **state) {
    muster_listener_release(wire);
    const muster_status status = muster_context_close(context, 5 * SECOND);
    muster_context_release(context);
    return drop_folder(state) || status != MUSTER_OK;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_addresses_are_told_apart),
        cmocka_unit_test(test_wrong_arguments_change_nothing),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_dialling_again_until_somebody_listens),
        cmocka_unit_test(test_a_dial_ends_in_time),
        cmocka_unit_test(test_an_address_in_use_is_told),
        cmocka_unit_test(test_socket_files),
        cmocka_unit_test(test_advertised_addresses),
        cmocka_unit_test(test_another_secret_gets_nobody_in),
        cmocka_unit_test(test_no_proof_must_be_wanted_by_both),
        cmocka_unit_test(test_sealing_is_agreed_on_or_refused),
        cmocka_unit_test(test_strangers_and_broken_handshakes_are_dropped),
        cmocka_unit_test(test_a_flood_of_strangers_keeps_nobody_out),
        cmocka_unit_test(test_a_full_backlog_refuses),
        cmocka_unit_test(test_descriptors_run_out_and_come_back),
        cmocka_unit_test(test_accept_can_be_cancelled_and_closed),
        cmocka_unit_test(test_a_watched_listener_tells_of_connections),
        cmocka_unit_test(test_closing_the_context_ends_dials_and_accepts),
        cmocka_unit_test(test_inproc_ends_know_each_other),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
