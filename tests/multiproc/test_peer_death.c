// SPDX-License-Identifier: MIT
// What one process learns when the other one dies, stops, computes or leaves: for each way between two of them.
// ctest: quick timeout=120
#include <muster/transport.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

extern char **environ;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static muster_context *make_context(int64_t dead_ns) {
    muster_context_config config = {.struct_size = sizeof config, .dead_ns = dead_ns};
    config.heartbeat_ns = 50 * MILLISECOND;
    config.silent_ns = 400 * MILLISECOND;
    muster_context *context = NULL;
    return muster_context_create(&config, &context, NULL) == MUSTER_OK ? context : NULL;
}

static void compute(int64_t ns) {
    const int64_t end = now() + ns;
    for (volatile unsigned turns = 0; now() < end; turns++) {
    }
}

// ---- the other process
// -----------------------------------------------------------------------------------------------

static int play(const char *role, const char *address) {
    muster_context *context = make_context(0);
    muster_stream *stream = NULL;
    muster_error error = {0};
    if (!context || muster_transport_dial(context, address, strlen(address), NULL, 10 * SECOND, &stream, &error) != 0) {
        fprintf(stderr, "%s: %s\n", role, error.message);
        return 3;
    }
    static char data[1000000];
    size_t bytes;
    if (strcmp(role, "says-hello-and-waits") == 0) {
        muster_stream_write(stream, "hello", 5, SECOND, &bytes);
        for (;;) pause();
    } else if (strcmp(role, "echoes") == 0) {
        while (muster_stream_read(stream, data, sizeof data, -1, &bytes) == MUSTER_OK)
            if (muster_stream_write(stream, data, bytes, -1, &bytes) != MUSTER_OK) break;
        muster_stream_close(stream, 5 * SECOND);
    } else if (strcmp(role, "computes") == 0) { // its only thread does not look
        muster_stream_write(stream, "begun", 5, SECOND, &bytes);
        compute(1500 * MILLISECOND);
        if (muster_stream_read_into(stream, data, sizeof data, 0, 5 * SECOND, &bytes) != MUSTER_OK) return 4;
        muster_stream_write(stream, "done.", 5, SECOND, &bytes);
        muster_stream_close(stream, 5 * SECOND);
    } else if (strcmp(role, "leaves-in-order") == 0) {
        for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i % 251);
        muster_stream_write(stream, data, sizeof data, 5 * SECOND, &bytes);
        muster_stream_release(stream);
        const muster_status status = muster_context_close(context, 5 * SECOND);
        muster_context_release(context);
        return status == MUSTER_OK ? 0 : 5;
    } else if (strcmp(role, "exits") == 0) {
        muster_stream_write(stream, "hello", 5, SECOND, &bytes);
        muster_stream_flush(stream, SECOND); // an exit loses what was accepted and not yet sent
        exit(0);
    } else if (strcmp(role, "_exits") == 0) {
        muster_stream_write(stream, "hello", 5, SECOND, &bytes);
        muster_stream_flush(stream, SECOND);
        _exit(0);
    } else if (strcmp(role, "goes-with-its-master") == 0) {
        if (muster_stream_exit_with_peer(stream, 500 * MILLISECOND) != MUSTER_OK) return 6;
        muster_stream_write(stream, "ready", 5, SECOND, &bytes);
        compute(60 * SECOND);
        return 7;
    } else if (strcmp(role, "aborts-its-own") == 0 || strcmp(role, "closes-its-context") == 0) {
        if (muster_stream_exit_with_peer(stream, 500 * MILLISECOND) != MUSTER_OK) return 6;
        muster_stream_write(stream, "ready", 5, SECOND, &bytes);
        muster_stream_flush(stream, SECOND); // so does an abort
        if (role[0] == 'a') muster_stream_abort(stream, 1, NULL, 0);
        const muster_status status = muster_context_close(context, 5 * SECOND); // a signal would come before it returns
        muster_stream_release(stream);
        muster_context_release(context);
        return status == MUSTER_OK ? 0 : 5;
    } else if (strcmp(role, "is-a-master") == 0) {
        // Listens for a worker of its own, prints its address, and is killed.
        muster_listener *listener;
        char own[200];
        if (muster_transport_listen(context, "tcp://127.0.0.1:0", 17, NULL, &listener, NULL) != MUSTER_OK) return 8;
        muster_listener_address(listener, own, sizeof own, &bytes);
        muster_stream_write(stream, own, bytes + 1, SECOND, &bytes);
        muster_stream *worker;
        if (muster_listener_accept(listener, 10 * SECOND, &worker, NULL) != MUSTER_OK) return 9;
        if (muster_stream_read_into(worker, data, 5, 0, 10 * SECOND, &bytes) != MUSTER_OK) return 10;
        muster_stream_write(stream, "ready", 5, SECOND, &bytes);
        for (;;) pause();
    }
    return 0;
}

// ---- this process
// ----------------------------------------------------------------------------------------------------

typedef struct scene {
    muster_context *context;
    muster_listener *listener;
    muster_stream *stream;
    muster_queue *queue;
    pid_t pid;
    int way;
} scene;

static const char *const ways[][2] = {{"tcp://127.0.0.1:0?upgrade=no", "?upgrade=no"},
                                      {"tcp://127.0.0.1:0?seal=yes", "?seal=yes"},
                                      {"tcp://127.0.0.1:0", ""},
                                      {"unix://@muster-death?upgrade=no", "?upgrade=no"},
                                      {"shm://death", ""}};
enum { way_count = sizeof ways / sizeof *ways };

static pid_t start(const char *role, const char *address) {
    pid_t pid;
    char *const argv[] = {"peer", (char *)(uintptr_t)role, (char *)(uintptr_t)address, NULL};
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    return pid;
}

static scene open_scene(int way, const char *role, int64_t dead_ns) {
    scene s = {.context = make_context(dead_ns), .way = way};
    char address[256];
    size_t bytes;
    assert_non_null(s.context);
    assert_int_equal(muster_queue_create(s.context, NULL, &s.queue, NULL), MUSTER_OK);
    muster_error error;
    if (muster_transport_listen(s.context, ways[way][0], strlen(ways[way][0]), NULL, &s.listener, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    muster_listener_address(s.listener, address, sizeof address, &bytes);
    strcat(address, ways[way][1]);
    s.pid = start(role, address);
    if (muster_listener_accept(s.listener, 10 * SECOND, &s.stream, &error) != MUSTER_OK)
        fail_msg("%s: no peer", address);
    return s;
}

static int end_scene(scene *s) { // the exit code of the peer, or its signal below zero
    int status = 0;
    muster_stream_release(s->stream);
    muster_listener_release(s->listener);
    muster_queue_release(s->queue);
    assert_int_equal(muster_context_close(s->context, 5 * SECOND), MUSTER_OK);
    muster_context_release(s->context);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void expect(scene *s, const char *text) {
    char got[64] = "";
    size_t bytes = 0;
    const muster_status status = muster_stream_read_into(s->stream, got, strlen(text), 0, 10 * SECOND, &bytes);
    if (status != MUSTER_OK) fail_msg("%s: %s before \"%s\"", ways[s->way][0], muster_status_name(status), text);
    assert_string_equal(got, text);
}

static muster_status read_more(scene *s, int64_t timeout_ns) {
    char byte;
    size_t bytes;
    return muster_stream_read(s->stream, &byte, 1, timeout_ns, &bytes);
}

static void *kill_soon(void *pid) {
    usleep(100000);
    kill(*(pid_t *)pid, SIGKILL);
    return NULL;
}

static void test_a_killed_peer_is_told_at_once_to_readers_and_writers(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++)
        for (int writes = 0; writes < 2; writes++) {
            scene s = open_scene(way, "says-hello-and-waits", 0);
            pthread_t killer;
            assert_int_equal(pthread_create(&killer, NULL, kill_soon, &s.pid), 0);
            const int64_t before = now();
            size_t bytes = 0;
            static char much[8 << 20];
            muster_status status;
            if (writes) {
                status = muster_stream_write(s.stream, much, sizeof much, 20 * SECOND, &bytes);
                assert_true(bytes < sizeof much);
            } else {
                expect(&s, "hello");
                status = read_more(&s, 20 * SECOND);
            }
            if (status != MUSTER_E_PEER) fail_msg("%s: %s", ways[way][0], muster_status_name(status));
            assert_true(now() - before < 5 * SECOND);
            pthread_join(killer, NULL);
            if (writes) expect(&s, "hello"); // what came before stays
            assert_int_equal(read_more(&s, SECOND), MUSTER_E_PEER);
            muster_error error;
            assert_int_equal(muster_stream_reason(s.stream, NULL, &error), MUSTER_E_PEER);
            assert_true(error.message_bytes > 10);
            assert_int_equal(end_scene(&s), -SIGKILL);
        }
}

static void test_a_killed_peer_is_told_to_a_watching_host(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++) {
        scene s = open_scene(way, "says-hello-and-waits", 0);
        expect(&s, "hello");
        assert_int_equal(muster_stream_watch(s.stream, MUSTER_STREAM_READABLE | MUSTER_STREAM_ENDED, s.queue, 4),
                         MUSTER_OK);
        muster_completion entry;
        while (read_more(&s, 0) == MUSTER_AGAIN &&
               muster_queue_next(s.queue, 200 * MILLISECOND, &entry, NULL) == MUSTER_OK) {
        }
        kill(s.pid, SIGKILL);
        uint32_t events = 0;
        const int64_t before = now();
        while (!(events & MUSTER_STREAM_ENDED) && muster_queue_next(s.queue, 10 * SECOND, &entry, NULL) == MUSTER_OK)
            events |= entry.events;
        if (!(events & MUSTER_STREAM_ENDED)) fail_msg("%s: events %x", ways[way][0], events);
        assert_true(now() - before < 5 * SECOND);
        assert_int_equal(read_more(&s, 0), MUSTER_E_PEER);
        assert_int_equal(end_scene(&s), -SIGKILL);
    }
}

static void test_a_stopped_peer_is_silent_and_comes_back(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++) {
        scene s = open_scene(way, "echoes", 0);
        assert_int_equal(muster_stream_watch(s.stream, MUSTER_STREAM_PEER_SILENT | MUSTER_STREAM_PEER_BACK, s.queue, 4),
                         MUSTER_OK);
        kill(s.pid, SIGSTOP);
        muster_completion entry;
        if (muster_queue_next(s.queue, 10 * SECOND, &entry, NULL) != MUSTER_OK)
            fail_msg("%s: not silent", ways[way][0]);
        assert_int_equal(entry.events, MUSTER_STREAM_PEER_SILENT);
        size_t bytes;
        assert_int_equal(muster_stream_write(s.stream, "still there?", 12, SECOND, &bytes), MUSTER_OK);
        assert_int_equal(read_more(&s, 50 * MILLISECOND), MUSTER_TIMEOUT);
        kill(s.pid, SIGCONT);
        assert_int_equal(muster_queue_next(s.queue, 10 * SECOND, &entry, NULL), MUSTER_OK);
        assert_int_equal(entry.events, MUSTER_STREAM_PEER_BACK);
        expect(&s, "still there?");
        assert_int_equal(muster_stream_finish(s.stream), MUSTER_OK);
        assert_int_equal(read_more(&s, 5 * SECOND), MUSTER_E_END);
        assert_int_equal(end_scene(&s), 0);
    }
}

static void test_a_peer_that_stays_silent_is_given_up(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++) {
        scene s = open_scene(way, "echoes", 700 * MILLISECOND);
        kill(s.pid, SIGSTOP);
        const int64_t before = now();
        assert_int_equal(read_more(&s, 20 * SECOND), MUSTER_E_PEER);
        assert_true(now() - before > 600 * MILLISECOND);
        kill(s.pid, SIGKILL);
        end_scene(&s);
    }
}

static void test_a_peer_that_computes_is_not_silent(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++) {
        scene s = open_scene(way, "computes", 700 * MILLISECOND);
        expect(&s, "begun");
        assert_int_equal(muster_stream_watch(s.stream, MUSTER_STREAM_PEER_SILENT, s.queue, 4), MUSTER_OK);
        static char data[1000000];
        size_t bytes;
        // What it does not read yet is taken all the same, as far as its window reaches.
        const int64_t before = now();
        assert_int_equal(muster_stream_write(s.stream, data, sizeof data, 10 * SECOND, &bytes), MUSTER_OK);
        if (now() - before > SECOND) fail_msg("%s: it took %d ms", ways[way][0], (int)((now() - before) / MILLISECOND));
        expect(&s, "done.");
        muster_completion entry;
        while (muster_queue_next(s.queue, 0, &entry, NULL) == MUSTER_OK)
            if (entry.events & MUSTER_STREAM_PEER_SILENT) fail_msg("%s: it was called silent", ways[way][0]);
        assert_int_equal(read_more(&s, 5 * SECOND), MUSTER_E_END);
        assert_int_equal(end_scene(&s), 0);
    }
}

static void test_a_peer_that_leaves_in_order_has_said_everything(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++) {
        scene s = open_scene(way, "leaves-in-order", 0);
        usleep(50000);
        static unsigned char data[1000000];
        size_t bytes;
        assert_int_equal(muster_stream_read_into(s.stream, data, sizeof data, 0, 10 * SECOND, &bytes), MUSTER_OK);
        for (size_t i = 0; i < sizeof data; i++)
            if (data[i] != (unsigned char)(i % 251)) fail_msg("%s: byte %zu differs", ways[way][0], i);
        assert_int_equal(read_more(&s, 5 * SECOND), MUSTER_E_END);
        assert_int_equal(end_scene(&s), 0);
    }
}

static void test_exit_without_a_word_is_a_death(void **state) {
    (void)state;
    for (int way = 0; way < way_count; way++)
        for (int hard = 0; hard < 2; hard++) {
            scene s = open_scene(way, hard ? "_exits" : "exits", 0);
            expect(&s, "hello");
            assert_int_equal(read_more(&s, 10 * SECOND), MUSTER_E_PEER);
            assert_int_equal(end_scene(&s), 0);
        }
}

static void test_an_end_made_here_is_not_the_peers(void **state) {
    (void)state;
    const char *const roles[] = {"aborts-its-own", "closes-its-context"};
    for (int way = 0; way < way_count; way++)
        for (int i = 0; i < 2; i++) {
            scene s = open_scene(way, roles[i], 0);
            expect(&s, "ready");
            assert_true(read_more(&s, 10 * SECOND) < 0); // it has ended there, before anything ends here
            const int code = end_scene(&s);
            if (code != 0) fail_msg("%s, %s: %d", ways[way][0], roles[i], code);
        }
}

static void test_a_busy_worker_goes_with_its_master(void **state) {
    (void)state;
    scene master = open_scene(0, "is-a-master", 0);
    char address[200] = "";
    size_t bytes, at = 0;
    do assert_int_equal(muster_stream_read(master.stream, address + at, 1, 10 * SECOND, &bytes), MUSTER_OK);
    while (address[at++] != '\0');
    const pid_t worker = start("goes-with-its-master", address);
    expect(&master, "ready");
    kill(master.pid, SIGKILL);
    int status = 0;
    const int64_t before = now();
    assert_int_equal(waitpid(worker, &status, 0), worker);
    assert_true(now() - before < 5 * SECOND);
    assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL));
    assert_int_equal(end_scene(&master), -SIGKILL);
}

int main(int argc, char **argv) {
    if (argc == 3) return play(argv[1], argv[2]);
    setenv("MUSTER_SECRET", "the secret of these processes", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_peer_is_told_at_once_to_readers_and_writers),
        cmocka_unit_test(test_a_killed_peer_is_told_to_a_watching_host),
        cmocka_unit_test(test_a_stopped_peer_is_silent_and_comes_back),
        cmocka_unit_test(test_a_peer_that_stays_silent_is_given_up),
        cmocka_unit_test(test_a_peer_that_computes_is_not_silent),
        cmocka_unit_test(test_a_peer_that_leaves_in_order_has_said_everything),
        cmocka_unit_test(test_exit_without_a_word_is_a_death),
        cmocka_unit_test(test_an_end_made_here_is_not_the_peers),
        cmocka_unit_test(test_a_busy_worker_goes_with_its_master),
    };
    if (getenv("ONLY")) cmocka_set_test_filter(getenv("ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
