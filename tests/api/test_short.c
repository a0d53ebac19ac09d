// SPDX-License-Identifier: MIT
// The short forms: a hello in five calls and three, stores, and what a child process gets.
// ctest: quick timeout=60
#include "group_run.h"
#include "thread_sanitizer.h"

#include <muster/inline/short.h>
#include <sys/wait.h>

static void *dial_and_send(void *address) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    CHECK_OK(muster_dial_z(NULL, address, 20 * second, &stream, &error), error);
    CHECK(muster_write_all(stream, "hello", 6, 20 * second) == MUSTER_OK);
    CHECK(muster_end(stream, 20 * second) == MUSTER_OK);
    return NULL;
}

static void hello(void) {
    muster_listener *listener = NULL;
    muster_stream *stream = NULL;
    muster_error error = {0};
    char address[200] = "", text[6] = "";
    size_t size = 0;
    pthread_t other;
    CHECK_OK(muster_listen_z(NULL, "tcp://127.0.0.1:0", &listener, &error), error);
    CHECK(muster_listener_address(listener, address, sizeof address - 1, &size) == MUSTER_OK);
    CHECK(pthread_create(&other, NULL, dial_and_send, address) == 0);
    CHECK_OK(muster_listener_accept(listener, 20 * second, &stream, &error), error);
    CHECK(muster_read_all(stream, text, 6, 20 * second) == MUSTER_OK && strcmp(text, "hello") == 0);
    CHECK(muster_end(stream, 20 * second) == MUSTER_OK);
    muster_listener_release(listener);
    pthread_join(other, NULL);
}

static void test_hello_and_a_child_process(void **state) {
    (void)state;
    hello();
    muster_context *first = NULL, *again = NULL;
    assert_int_equal(muster_context_default(&first, NULL), MUSTER_OK);
    assert_int_equal(muster_context_default(&again, NULL), MUSTER_OK);
    assert_ptr_equal(first, again);
    assert_int_equal(muster_context_default(NULL, NULL), MUSTER_E_ARG);
    muster_context_release(again); // the library keeps its own
    muster_context_release(first);
    hello();
    assert_int_equal(muster_context_default(&first, NULL), MUSTER_OK);
    assert_ptr_equal(first, again);
#if !UNDER_THREAD_SANITIZER // its run-time does not survive new threads in the fork of a process that has threads
    const pid_t child = fork();
    if (child == 0) {
        muster_context *own = NULL;
        CHECK(muster_context_default(&own, NULL) == MUSTER_OK && own != first);
        hello();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hello();
#endif
}

static void test_failures(void **state) {
    (void)state;
    muster_stream *stream = (void *)1;
    muster_error error = {0};
    assert_int_equal(muster_dial_z(NULL, "nonsense", second, &stream, &error), MUSTER_E_ADDRESS);
    assert_null(stream);
    muster_listener *listener = (void *)1;
    assert_int_equal(muster_listen_z(NULL, "none://x", &listener, &error), MUSTER_E_NOT_FOUND);
    assert_null(listener);
    assert_int_equal(muster_end(NULL, 0), MUSTER_OK);
}

static void *wait_for_key(void *store) {
    muster_error error = {0};
    CHECK_OK(muster_store_wait_z(store, "later", 20 * second, &error), error);
    return NULL;
}

static void test_stores(void **state) {
    (void)state;
    muster_store *store = NULL;
    muster_error error = {0};
    char value[8] = "........";
    size_t bytes = 99;
    int64_t sum = 0;
    assert_int_equal(muster_store_open_z(NULL, "memory:", second, &store, &error), MUSTER_OK);
    assert_int_equal(muster_store_read_z(store, "k", value, sizeof value, &bytes, second, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(bytes, 0);
    assert_int_equal(muster_store_get_z(store, "k", value, sizeof value, &bytes, 20 * ms, &error), MUSTER_TIMEOUT);
    assert_int_equal(muster_store_set_z(store, "k", "a value", 7, second, &error), MUSTER_OK);
    assert_int_equal(muster_store_get_z(store, "k", value, 6, &bytes, second, &error), MUSTER_E_LIMIT);
    assert_int_equal(bytes, 7);
    assert_memory_equal(value, "........", 8);
    assert_int_equal(muster_store_get_z(store, "k", value, sizeof value, &bytes, second, &error), MUSTER_OK);
    assert_memory_equal(value, "a value.", 8);
    assert_int_equal(muster_store_compare_set_z(store, "k", "another", 7, "x", 1, second, &error), MUSTER_E_CHANGED);
    assert_int_equal(muster_store_compare_set_z(store, "k", NULL, 0, "x", 1, second, &error), MUSTER_E_CHANGED);
    assert_int_equal(muster_store_compare_set_z(store, "k", "a value", 7, "x", 1, second, &error), MUSTER_OK);
    assert_int_equal(muster_store_read_z(store, "k", value, sizeof value, &bytes, second, &error), MUSTER_OK);
    assert_true(bytes == 1 && value[0] == 'x');
    assert_int_equal(muster_store_set_z(store, "empty", "", 0, second, &error), MUSTER_OK);
    assert_int_equal(muster_store_read_z(store, "empty", NULL, 0, &bytes, second, &error), MUSTER_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(muster_store_add_z(store, "n", 5, &sum, second, &error), MUSTER_OK);
    assert_int_equal(muster_store_add_z(store, "n", -7, NULL, second, &error), MUSTER_OK);
    assert_int_equal(muster_store_add_z(store, "n", 0, &sum, second, &error), MUSTER_OK);
    assert_int_equal(sum, -2);
    assert_int_equal(muster_store_delete_z(store, "n", second, &error), MUSTER_OK);
    assert_int_equal(muster_store_delete_z(store, "n", second, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_store_set_z(store, "", "x", 1, second, &error), MUSTER_E_ARG);
    pthread_t waiter;
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_key, store), 0);
    assert_int_equal(muster_store_set_z(store, "later", "1", 1, second, &error), MUSTER_OK);
    pthread_join(waiter, NULL);
    muster_store_release(store);
}

int main(void) {
    setenv("MUSTER_SECRET", "a secret of the test", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hello_and_a_child_process),
                                       cmocka_unit_test(test_failures), cmocka_unit_test(test_stores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
