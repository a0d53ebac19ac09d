// SPDX-License-Identifier: MIT
// What transport.h promises when an address, an argument or a name is wrong or taken: a status and one sentence that
// says what, where and with what value.
// ctest: quick timeout=120
#include "transport_failure.h"

// ---- addresses and arguments

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
        {"tcp://[1%eth0]:80", "no IPv6 address between the brackets", MUSTER_E_ADDRESS},
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
    config.window_bytes = 0, config.hello = "x", config.hello_bytes = 4097;
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, &config, &listener, &error), MUSTER_E_ARG);
    assert_says(error.message, "4097");
    config.hello = NULL, config.hello_bytes = 1;
    assert_int_equal(muster_transport_listen(context, "tcp://:0", 8, &config, &listener, &error), MUSTER_E_ARG);
    config.hello_bytes = 0, config.retry_ns = -1;
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

// ---- no listener
// -----------------------------------------------------------------------------------------------------

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

static void test_a_dial_ends_in_time(void **state) {
    (void)state;
    char address[64], message[256];
    const int fd = silent_socket(address);
    assert_int_equal(dial(context, address, 80 * MILLISECOND, message), MUSTER_TIMEOUT);
    assert_says(message, "not in time");
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
    // The files of a killed process are taken over.
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
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
