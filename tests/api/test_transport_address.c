// SPDX-License-Identifier: MIT
// What muster_listener_address() gives is dialled as it is, whatever the listener was opened with.
// ctest: quick timeout=60
#include <muster/muster.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

static muster_context *here, *there; // of one secret, as two processes would have it

static muster_context *make_context(uint32_t flags, const char *secret) {
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    config.secret = secret;
    config.secret_bytes = strlen(secret);
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    return context;
}

// Listens, and connects to what the listener gives as its address; `ends`: what that ends with.
static void connect_by_address(muster_context *from, const char *wanted, const char *ends) {
    muster_listener *listener;
    muster_error error;
    if (muster_transport_listen(here, wanted, strlen(wanted), NULL, &listener, &error) != MUSTER_OK)
        fail_msg("%s: %s", wanted, error.message);
    char address[4200];
    size_t bytes = 0;
    assert_int_equal(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
    assert_int_equal(bytes, strlen(address));
    if (ends && (bytes < strlen(ends) || strcmp(address + bytes - strlen(ends), ends) != 0))
        fail_msg("%s is given as %s, without %s", wanted, address, ends);
    muster_stream *dialled = NULL, *accepted = NULL;
    if (muster_transport_dial(from, address, bytes, NULL, 10 * SECOND, &dialled, &error) != MUSTER_OK)
        fail_msg("%s is given as %s: %s", wanted, address, error.message);
    assert_int_equal(muster_listener_accept(listener, 10 * SECOND, &accepted, NULL), MUSTER_OK);
    char text[8];
    assert_int_equal(muster_stream_write(dialled, "hello", 5, SECOND, &bytes), MUSTER_OK);
    assert_int_equal(muster_stream_read(accepted, text, sizeof text, 10 * SECOND, &bytes), MUSTER_OK);
    muster_stream_release(dialled);
    muster_stream_release(accepted);
    assert_int_equal(muster_listener_close(listener), MUSTER_OK);
    muster_listener_release(listener);
}

static int begin(void **state) {
    (void)state;
    here = make_context(0, "a secret of both of them");
    there = make_context(0, "a secret of both of them");
    return 0;
}

static int end(void **state) {
    (void)state;
    muster_context_release(here);
    muster_context_release(there);
    return 0;
}

static const char *const options[][2] = {
    {"", ""},         {"auth=none", "auth=none"}, {"seal=no", "seal=no"},
    {"seal=yes", ""}, {"upgrade=no", ""},         {"auth=none&seal=no&upgrade=no", "auth=none&seal=no"}};

static void test_every_option_of_sockets(void **state) {
    (void)state;
    char folder[] = "/tmp/muster-address-XXXXXX", wanted[256];
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *const places[] = {"tcp://127.0.0.1:0?%s",
                                      "tcp://localhost:0?%s",
                                      "tcp://[::1]:0?%s",
                                      "tcp://0.0.0.0:0?%s",
                                      "tcp://[::]:0?%s",
                                      "tcp://:0?bind=0.0.0.0&%s",
                                      "tcp://localhost:0?bind=127.0.0.1&%s",
                                      "tcp://0.0.0.0:0?advertise=127.0.0.1&%s",
                                      "unix://@muster-address?%s"};
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            snprintf(wanted, sizeof wanted, places[j], options[i][0]);
            if (options[i][0][0] == '\0') wanted[strlen(wanted) - 1] = '\0'; // the ? or & that is left
            connect_by_address(there, wanted, options[i][1]);
        }
        snprintf(wanted, sizeof wanted, "unix://%s/socket%s%s", folder, i != 0 ? "?" : "", options[i][0]);
        connect_by_address(there, wanted, options[i][1]);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_names_of_memory(void **state) {
    (void)state;
    connect_by_address(there, "shm://muster-address", "shm://muster-address");
    connect_by_address(there, "shm://muster-address?auth=none", "?auth=none");
    connect_by_address(here, "inproc://somewhere", "inproc://somewhere");
    connect_by_address(here, "inproc://somewhere?auth=none", "?auth=none");
}

static void test_without_proof_anybody_connects(void **state) {
    (void)state;
    muster_context *const other = make_context(0, "another secret than theirs");
    connect_by_address(other, "tcp://127.0.0.1:0?auth=none", "?auth=none");
    connect_by_address(other, "shm://muster-address?auth=none", "?auth=none");
    muster_context_release(other);
}

static void test_a_host_without_a_known_name_is_reached_by_number(void **state) {
    (void)state;
    static const char name[] = "muster-has-no-address";
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0) skip(); // of this thread alone
    connect_by_address(there, "tcp://0.0.0.0:0", NULL);
    connect_by_address(there, "tcp://[::]:0?auth=none", "?auth=none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_option_of_sockets, begin, end),
        cmocka_unit_test_setup_teardown(test_names_of_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_without_proof_anybody_connects, begin, end),
        cmocka_unit_test_setup_teardown(test_a_host_without_a_known_name_is_reached_by_number, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
