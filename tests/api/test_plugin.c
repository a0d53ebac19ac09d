// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// What plugin.h promises to hosts, on the example plug-ins.
#include <muster/plugin.h>

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

typedef struct fixture {
    muster_context *context;
    char folder[200];
    char address[256];
} fixture;

static void make(fixture *f, const void *secret, size_t secret_bytes) {
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = secret_bytes};
    muster_error error = {0};
    if (muster_context_create(&config, &f->context, &error) != MUSTER_OK) fail_msg("%s", error.message);
    const char *tmp = getenv("TMPDIR");
    snprintf(f->folder, sizeof f->folder, "%s/muster-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->address, sizeof f->address, "fifo://%s/box", f->folder);
}

static void drop(fixture *f) {
    assert_int_equal(muster_context_close(f->context, 5 * SECOND), MUSTER_OK);
    muster_context_release(f->context);
    if (rmdir(f->folder) != 0) fail_msg("something is left in %s", f->folder);
}

static muster_listener *listen_at(fixture *f) {
    muster_listener *listener = NULL;
    muster_error error = {0};
    if (muster_transport_listen(f->context, f->address, strlen(f->address), NULL, &listener, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    return listener;
}

static muster_stream *dial(fixture *f) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    if (muster_transport_dial(f->context, f->address, strlen(f->address), NULL, 5 * SECOND, &stream, &error) !=
        MUSTER_OK)
        fail_msg("%s", error.message);
    return stream;
}

static muster_stream *accept_on(muster_listener *listener) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    if (muster_listener_accept(listener, 5 * SECOND, &stream, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return stream;
}

static void test_bytes_go_both_ways(void **state) {
    (void)state;
    fixture f;
    make(&f, NULL, 0);
    muster_listener *listener = listen_at(&f);
    muster_stream *a = dial(&f), *b = accept_on(listener);
    char text[16];
    size_t size = 0;
    assert_int_equal(muster_stream_write(a, "hello", 5, SECOND, &size), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(b, text, 5, 0, 5 * SECOND, &size), MUSTER_OK);
    assert_memory_equal(text, "hello", 5);
    assert_int_equal(muster_stream_write(b, "world", 5, SECOND, &size), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(a, text, 5, 0, 5 * SECOND, &size), MUSTER_OK);
    assert_memory_equal(text, "world", 5);
    assert_int_equal(muster_stream_finish(a), MUSTER_OK);
    assert_int_equal(muster_stream_read(b, text, 16, 5 * SECOND, &size), MUSTER_E_END);
    assert_int_equal(muster_stream_write(b, "!", 1, SECOND, &size), MUSTER_OK);
    assert_int_equal(muster_stream_close(b, 5 * SECOND), MUSTER_OK);
    assert_int_equal(muster_stream_read(a, text, 16, 5 * SECOND, &size), MUSTER_OK);
    assert_int_equal(size, 1);
    assert_int_equal(muster_stream_read(a, text, 16, 5 * SECOND, &size), MUSTER_E_END);
    muster_stream_release(a);
    muster_stream_release(b);
    assert_int_equal(muster_listener_close(listener), MUSTER_OK);
    muster_listener_release(listener);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
