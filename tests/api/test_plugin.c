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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
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

// A watch is notified when the other side closes, whether this side has finished before or not.
static void test_a_close_ends_the_other_side(void **state) {
    (void)state;
    for (int finished = 0; finished < 2; finished++) {
        fixture f;
        make(&f, NULL, 0);
        muster_listener *listener = listen_at(&f);
        muster_stream *a = dial(&f), *b = accept_on(listener);
        muster_queue *queue = NULL;
        assert_int_equal(muster_queue_create(f.context, NULL, &queue, NULL), MUSTER_OK);
        assert_int_equal(muster_stream_watch(a, MUSTER_STREAM_ENDED, queue, 3), MUSTER_OK);
        char text[16];
        size_t size = 0;
        if (finished) {
            assert_int_equal(muster_stream_finish(a), MUSTER_OK);
            assert_int_equal(muster_stream_read(b, text, 16, 5 * SECOND, &size), MUSTER_E_END);
        }
        assert_int_equal(muster_stream_write(b, "last", 4, SECOND, &size), MUSTER_OK);
        assert_int_equal(muster_stream_close(b, 5 * SECOND), MUSTER_OK);
        muster_completion ended = {0};
        assert_int_equal(muster_queue_next(queue, 5 * SECOND, &ended, NULL), MUSTER_OK);
        assert_int_equal(ended.tag, 3);
        assert_int_equal(muster_stream_read(a, text, 16, 5 * SECOND, &size), MUSTER_OK);
        assert_int_equal(size, 4);
        assert_int_equal(muster_stream_read(a, text, 16, 5 * SECOND, &size), MUSTER_E_END);
        assert_int_equal(muster_stream_close(a, 5 * SECOND), MUSTER_OK);
        muster_stream_release(a);
        muster_stream_release(b);
        muster_queue_release(queue);
        assert_int_equal(muster_listener_close(listener), MUSTER_OK);
        muster_listener_release(listener);
        drop(&f);
    }
}

// A waiter for the context learns which plug-in delays it.
static void test_a_slow_plug_in_is_named(void **state) {
    (void)state;
    fixture f;
    make(&f, NULL, 0);
    muster_queue *queue = NULL;
    muster_error error = {0};
    assert_int_equal(muster_queue_create(f.context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_context_log(f.context, MUSTER_LOG_WARN, queue, 4), MUSTER_OK);
    muster_listener *listener = NULL;
    assert_int_equal(muster_transport_listen(f.context, "wrong://slow", 12, NULL, &listener, &error),
                     MUSTER_E_UNREACHABLE);
    muster_completion entry = {0};
    do { // perhaps after one that says that it has not returned
        assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, &error), MUSTER_OK);
        assert_int_equal(entry.kind, MUSTER_EVENT_LOG);
    } while (strstr(error.message, "has not returned") != NULL);
    assert_non_null(strstr(error.message, "plug-in muster-wrong.so: listen has kept the thread of the context for 1."));
    muster_queue_release(queue);
    drop(&f);
}

static void *listen_held(void *context) {
    muster_listener *listener = NULL;
    const muster_status status = muster_transport_listen(context, "wrong://held", 12, NULL, &listener, NULL);
    return (void *)(intptr_t)status;
}

static void test_a_plug_in_that_does_not_return_is_named(void **state) {
    (void)state;
    fixture f;
    make(&f, NULL, 0);
    muster_queue *queue = NULL;
    muster_error error = {0};
    int ends[2];
    char number[16];
    assert_int_equal(pipe(ends), 0);
    snprintf(number, sizeof number, "%d", ends[0]);
    setenv("MUSTER_TEST_HELD_FD", number, 1);
    assert_int_equal(muster_queue_create(f.context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_context_log(f.context, MUSTER_LOG_WARN, queue, 4), MUSTER_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, listen_held, f.context), 0);
    muster_completion entry = {0};
    assert_int_equal(muster_queue_next(queue, 20 * SECOND, &entry, &error), MUSTER_OK); // it is still inside
    assert_int_equal(entry.kind, MUSTER_EVENT_LOG);
    assert_non_null(strstr(error.message, "plug-in muster-wrong.so: listen keeps the thread of the context for "));
    assert_non_null(strstr(error.message, " s, and has not returned"));
    assert_int_equal(write(ends[1], "x", 1), 1);
    void *status = NULL;
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, MUSTER_E_UNREACHABLE);
    assert_int_equal(muster_queue_next(queue, 20 * SECOND, &entry, &error), MUSTER_OK); // and how long it was
    assert_non_null(strstr(error.message, "plug-in muster-wrong.so: listen has kept the thread of the context for "));
    muster_queue_release(queue);
    close(ends[0]);
    close(ends[1]);
    unsetenv("MUSTER_TEST_HELD_FD");
    drop(&f);
}

// Copies the plug-in `wrong` to `path`, with these rights.
static void copy_plugin(const char *path, mode_t mode) {
    char from[512];
    snprintf(from, sizeof from, "%s/muster-wrong.so", getenv("MUSTER_PLUGIN_PATH"));
    FILE *in = fopen(from, "rbe"), *out = fopen(path, "wbe");
    if (in == NULL || out == NULL) fail_msg("cannot copy %s to %s", from, path);
    char bytes[4096];
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;) assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, mode), 0);
}

// A user who can write it could run code here.
static void test_a_plug_in_that_others_may_change_is_not_loaded(void **state) {
    (void)state;
    fixture f;
    make(&f, NULL, 0);
    char path[256];
    snprintf(path, sizeof path, "%s/muster-mine.so", f.folder);
    const struct {
        mode_t folder, file;
        uid_t owner;
        muster_status status;
    } cases[] = {
        {0777, 0755, 0, MUSTER_E_PERMISSION},
        {0755, 0666, 0, MUSTER_E_PERMISSION},
        {0755, 0755, 12345, MUSTER_E_PERMISSION},
        {01777, 0755, 12345, MUSTER_E_PERMISSION},
        {01777, 0755, 0, MUSTER_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].owner != 0 && geteuid() != 0) continue;
        assert_int_equal(chmod(f.folder, cases[i].folder), 0);
        copy_plugin(path, cases[i].file);
        if (cases[i].owner != 0) assert_int_equal(chown(path, cases[i].owner, 12345), 0);
        muster_error error = {0};
        assert_int_equal(muster_plugin_load(f.context, path, strlen(path), &error), cases[i].status);
        if (cases[i].status != MUSTER_OK) {
            assert_non_null(strstr(error.message, f.folder));
            assert_non_null(strstr(error.message, "mode"));
        }
        unlink(path);
    }
    drop(&f);
}

// It never was in a session: nothing of it is kept.
// What plugin.h does not allow is an error that names the plug-in.
static void test_wrong_answers_of_a_plug_in_are_told(void **state) {
    (void)state;
    fixture f;
    make(&f, NULL, 0);
    muster_error error = {0};
    muster_stream *stream = (muster_stream *)&f;
    assert_int_equal(muster_transport_dial(f.context, "wrong://nothing", 15, NULL, 5 * SECOND, &stream, &error),
                     MUSTER_E_PLUGIN);
    assert_null(stream);
    assert_non_null(strstr(error.message, "muster-wrong.so"));
    assert_non_null(strstr(error.message, "without a connection"));
    const char *const addresses[] = {"wrong://empty", "wrong://huge"}, *const said[] = {" 0 bytes", " 1000000 bytes"};
    for (int i = 0; i < 2; i++) {
        muster_listener *listener = (muster_listener *)&f;
        assert_int_equal(
            muster_transport_listen(f.context, addresses[i], strlen(addresses[i]), NULL, &listener, &error),
            MUSTER_E_PLUGIN);
        assert_null(listener);
        assert_non_null(strstr(error.message, "muster-wrong.so"));
        assert_non_null(strstr(error.message, said[i]));
    }
    drop(&f);
}

static void test_a_stranger_who_says_a_reset_is_forgotten(void **state) {
    (void)state;
    fixture f;
    make(&f, NULL, 0);
    snprintf(f.address, sizeof f.address, "mailbox://t%ld", (long)getpid());
    muster_listener *listener = listen_at(&f);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *tmp = getenv("TMPDIR");
    snprintf(address.sun_path, sizeof address.sun_path, "%s/muster-mailbox-%ld/t%ld", tmp != NULL ? tmp : "/tmp",
             (long)geteuid(), (long)getpid());
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    // A message of the plug-in's, and in it the library's: its mark, the flag, version 1, some generation.
    const unsigned char packet[16] = {1, 0, 0, 0, 0, 0, 0, 0, 0xb5, 8, 1, 0, 77};
    assert_int_equal(send(fd, packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
    const struct timeval limit = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char text[16];
    // The plug-in was told to forget the peer, and has closed the connection.
    assert_int_equal(recv(fd, text, sizeof text, 0), 0);
    close(fd);
    assert_int_equal(muster_listener_close(listener), MUSTER_OK);
    muster_listener_release(listener);
    drop(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_go_both_ways),
        cmocka_unit_test(test_a_close_ends_the_other_side),
        cmocka_unit_test(test_a_plug_in_that_others_may_change_is_not_loaded),
        cmocka_unit_test(test_a_slow_plug_in_is_named),
        cmocka_unit_test(test_a_plug_in_that_does_not_return_is_named),
        cmocka_unit_test(test_wrong_answers_of_a_plug_in_are_told),
        cmocka_unit_test(test_a_stranger_who_says_a_reset_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
