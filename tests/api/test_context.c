// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <muster/context.h>
#include <muster/queue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef MUSTER_TSAN
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "die_after_fork=0";
} // children of a fork start threads here
#endif

static const int64_t ms = 1000000;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 * ms + t.tv_nsec;
}

static muster_context_config config_of(uint32_t flags) {
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    return config;
}

static muster_context *make(uint32_t flags) {
    const muster_context_config config = config_of(flags);
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    assert_non_null(context);
    return context;
}

static void expect_refused(const muster_context_config *config, muster_status status, const char *word) {
    muster_context *context = (muster_context *)&status;
    muster_error error;
    memset(&error, 0, sizeof error);
    assert_int_equal(muster_context_create(config, &context, &error), status);
    assert_null(context);
    assert_int_equal(error.status, status);
    assert_int_equal(error.message_bytes, strlen(error.message));
    if (!strstr(error.message, word)) fail_msg("'%s' does not say '%s'", error.message, word);
}

static void test_defaults_make_a_running_context(void **state) {
    (void)state;
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_context_close(context, -1), MUSTER_OK);
    muster_context_release(context);
}

static void test_values_out_of_range_are_named(void **state) {
    (void)state;
    muster_context_config config = config_of(1u << 20);
    expect_refused(&config, MUSTER_E_ARG, "0x100000");
    config = config_of(MUSTER_CONTEXT_NO_SEAL | MUSTER_CONTEXT_SEAL_ALWAYS);
    expect_refused(&config, MUSTER_E_ARG, "NO_SEAL");
    config = config_of(0);
    config.heartbeat_ns = -5;
    expect_refused(&config, MUSTER_E_ARG, "heartbeat_ns is -5");
    config = config_of(0);
    config.window_bytes = 5000;
    expect_refused(&config, MUSTER_E_ARG, "window_bytes is 5000");
    config = config_of(0);
    config.secret = "short";
    config.secret_bytes = 5;
    expect_refused(&config, MUSTER_E_ARG, "5 bytes");
    config = config_of(0);
    config.secret_bytes = 20;
    expect_refused(&config, MUSTER_E_ARG, "secret_bytes");
    assert_int_equal(muster_context_create(NULL, NULL, NULL), MUSTER_E_ARG);
}

static void test_structs_of_other_releases_are_judged_by_their_bytes(void **state) {
    (void)state;
    struct {
        muster_context_config known;
        uint64_t later[4];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.known.struct_size = sizeof newer;
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&newer.known, &context, NULL), MUSTER_OK);
    muster_context_release(context);
    newer.later[3] = 1;
    expect_refused(&newer.known, MUSTER_E_ABI, "muster_context_config");
    newer.known.struct_size = 4;
    expect_refused(&newer.known, MUSTER_E_ABI, "never released");
    newer.known.struct_size = 0;
    expect_refused(&newer.known, MUSTER_E_ABI, "never released");
    newer.known.struct_size = 1 << 30;
    expect_refused(&newer.known, MUSTER_E_ABI, "never released");
}

static void expect_secret(const muster_context_config *config, const void *bytes, size_t count) {
    muster_context *context = NULL;
    muster_error error;
    if (muster_context_create(config, &context, &error) != MUSTER_OK) fail_msg("%s", error.message);
    unsigned char got[1024];
    size_t size = 0;
    assert_int_equal(muster_context_secret(context, NULL, 0, &size), MUSTER_OK);
    assert_int_equal(size, count);
    assert_int_equal(muster_context_secret(context, got, count - 1, &size), MUSTER_E_LIMIT);
    assert_int_equal(muster_context_secret(context, got, sizeof got, &size), MUSTER_OK);
    assert_memory_equal(got, bytes, count);
    assert_int_equal(muster_context_secret(context, got, sizeof got, NULL), MUSTER_E_ARG);
    muster_context_release(context);
}

static void test_secret_comes_from_the_configuration_first(void **state) {
    (void)state;
    setenv("MUSTER_SECRET", "a secret from the environment", 1);
    muster_context_config config = config_of(0);
    config.secret = "a secret of the host";
    config.secret_bytes = 20;
    expect_secret(&config, "a secret of the host", 20);
    unsetenv("MUSTER_SECRET");
}

// A descriptor that gives `text` and then its end, under a number that nothing opened later takes.
static int descriptor_of(const char *text) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    const int high = fcntl(ends[0], F_DUPFD, 500);
    close(ends[0]);
    close(ends[1]);
    return high;
}

static void test_secret_descriptor_is_read_to_its_end_and_closed(void **state) {
    (void)state;
    const int fd = descriptor_of("0123456789abcdef\n");
    muster_context_config config = config_of(0);
    config.secret_fd_plus_one = fd + 1;
    expect_secret(&config, "0123456789abcdef\n", 17);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_secret_descriptor_is_closed_on_failure_too(void **state) {
    (void)state;
    const int fd = descriptor_of("short");
    muster_context_config config = config_of(0);
    config.secret_fd_plus_one = fd + 1;
    expect_refused(&config, MUSTER_E_ARG, "5 bytes");
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    expect_refused(&config, MUSTER_E_SYSTEM, "secret_fd");
}

static void test_endless_secret_descriptor_is_refused(void **state) {
    (void)state;
    muster_context_config config = config_of(0);
    config.secret_fd_plus_one = open("/dev/zero", O_RDONLY | O_CLOEXEC) + 1;
    expect_refused(&config, MUSTER_E_ARG, "1024");
}

static void test_secret_file_must_be_private(void **state) {
    (void)state;
    char path[] = "/tmp/muster-secret-XXXXXX";
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, "a secret in a file\n", 19), 19);
    setenv("MUSTER_SECRET_FILE", path, 1);
    expect_secret(NULL, "a secret in a file", 18); // the newline of a text file is not meant
    fchmod(fd, 0640);
    expect_refused(NULL, MUSTER_E_PERMISSION, path);
    fchmod(fd, 0604);
    expect_refused(NULL, MUSTER_E_PERMISSION, "604");
    close(fd);
    unlink(path);
    expect_refused(NULL, MUSTER_E_SYSTEM, "no such file");
    setenv("MUSTER_SECRET_FILE", "/tmp", 1);
    expect_refused(NULL, MUSTER_E_SYSTEM, "/tmp");
    unsetenv("MUSTER_SECRET_FILE");
}

static void test_secret_from_the_environment(void **state) {
    (void)state;
    setenv("MUSTER_SECRET", "a secret from the environment", 1);
    expect_secret(NULL, "a secret from the environment", 29);
    setenv("MUSTER_SECRET", "short", 1);
    expect_refused(NULL, MUSTER_E_ARG, "MUSTER_SECRET");
    unsetenv("MUSTER_SECRET");
}

static void test_made_secrets_differ(void **state) {
    (void)state;
    unsigned char secrets[2][64];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        muster_context *context = make(0);
        assert_int_equal(muster_context_secret(context, secrets[i], 64, &sizes[i]), MUSTER_OK);
        muster_context_release(context);
    }
    assert_int_equal(sizes[0], 32);
    assert_int_equal(sizes[1], 32);
    assert_memory_not_equal(secrets[0], secrets[1], 32);
}

static void test_null_handles_are_refused(void **state) {
    (void)state;
    int32_t fd;
    size_t size;
    muster_context_stats stats;
    assert_int_equal(muster_context_close(NULL, 0), MUSTER_E_ARG);
    muster_context_release(NULL);
    assert_int_equal(muster_context_fd(NULL, &fd), MUSTER_E_ARG);
    assert_int_equal(muster_context_progress(NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_context_secret(NULL, NULL, 0, &size), MUSTER_E_ARG);
    assert_int_equal(muster_context_get_stats(NULL, &stats), MUSTER_E_ARG);
    assert_int_equal(muster_context_log(NULL, MUSTER_LOG_INFO, NULL, 0), MUSTER_E_ARG);
}

static void test_threaded_context_has_nothing_to_drive(void **state) {
    (void)state;
    muster_context *context = make(0);
    int32_t fd = -7;
    assert_int_equal(muster_context_progress(context, 0), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_context_fd(context, &fd), MUSTER_E_UNSUPPORTED);
    assert_int_equal(fd, -7);
    muster_context_release(context);
}

static void test_external_descriptor_tells_when_there_is_something_to_do(void **state) {
    (void)state;
    muster_context *context = make(MUSTER_CONTEXT_EXTERNAL);
    int32_t fd = -1;
    assert_int_equal(muster_context_fd(context, &fd), MUSTER_OK);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    struct pollfd ready = {fd, POLLIN, 0};
    while (muster_context_progress(context, 0) == MUSTER_OK) {
    }
    assert_int_equal(poll(&ready, 1, 0), 0);
    assert_int_equal(muster_context_progress(context, 0), MUSTER_AGAIN);
    assert_int_equal(muster_context_progress(context, 2 * ms), MUSTER_TIMEOUT);

    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_set_wake(queue, (muster_wake_fn)(void (*)(void))getpid, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_set_wake(queue, NULL, NULL), MUSTER_OK);
    assert_int_equal(poll(&ready, 1, 0), 1); // a task for the engine
    assert_int_equal(muster_context_progress(context, 0), MUSTER_OK);
    while (muster_context_progress(context, 0) == MUSTER_OK) {
    }
    assert_int_equal(poll(&ready, 1, 0), 0);
    muster_queue_close(queue);
    muster_queue_release(queue);
    close(fd);
    muster_context_release(context);
}

// A round may be over because the thread that drove before has rung.
static void *progress_endlessly(void *context) {
    muster_status status;
    while ((status = muster_context_progress(context, -1)) == MUSTER_OK) continue;
    return (void *)(intptr_t)status;
}

static void test_only_one_thread_drives_an_external_context(void **state) {
    (void)state;
    muster_context *context = make(MUSTER_CONTEXT_EXTERNAL);
    while (muster_context_progress(context, 0) == MUSTER_OK) {
    }
    pthread_t driver;
    pthread_create(&driver, NULL, progress_endlessly, context);
    muster_status status;
    while ((status = muster_context_progress(context, 0)) == MUSTER_AGAIN) sched_yield();
    assert_int_equal(status, MUSTER_E_BUSY);
    assert_int_equal(muster_context_progress(context, 3 * ms), MUSTER_TIMEOUT);
    assert_int_equal(muster_context_close(context, 0), MUSTER_OK); // wakes the driver, which does the work
    void *result;
    pthread_join(driver, &result);
    assert_int_equal((intptr_t)result, MUSTER_E_CLOSED);
    assert_int_equal(muster_context_progress(context, 0), MUSTER_E_CLOSED);
    int32_t fd;
    assert_int_equal(muster_context_fd(context, &fd), MUSTER_E_CLOSED);
    muster_context_release(context);
}

static void *close_endlessly(void *context) {
    return (void *)(intptr_t)muster_context_close(context, -1);
}

static void test_many_threads_may_close_at_once(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL)
        for (int round = 0; round < 20; round++) {
            muster_context *context = make(flags);
            pthread_t closers[4];
            for (int i = 0; i < 4; i++) pthread_create(&closers[i], NULL, close_endlessly, context);
            for (int i = 0; i < 4; i++) {
                void *result;
                pthread_join(closers[i], &result);
                assert_int_equal((intptr_t)result, MUSTER_OK);
            }
            assert_int_equal(muster_context_close(context, -1), MUSTER_OK); // once more is harmless
            muster_context_release(context);
        }
}

static void test_closed_context_makes_nothing_new(void **state) {
    (void)state;
    muster_context *context = make(0);
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_context_close(context, 0), MUSTER_OK);
    muster_queue *late = (muster_queue *)&state;
    assert_int_equal(muster_queue_create(context, NULL, &late, NULL), MUSTER_E_CLOSED);
    assert_null(late);
    assert_int_equal(muster_context_log(context, MUSTER_LOG_INFO, queue, 0), MUSTER_E_CLOSED);
    muster_queue_release(queue);
    muster_context_release(context);
}

static int threads_at_start;

static int count_threads(void) {
    int count = 0;
    char line[128];
    FILE *status = fopen("/proc/self/status", "re");
    while (fgets(line, sizeof line, status)) sscanf(line, "Threads: %d", &count);
    fclose(status);
    return count;
}

static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void wait_for(int (*count)(void), int value) {
    const int64_t end = now_ns() + 10000 * ms;
    while (count() != value) {
        if (now_ns() > end) fail_msg("%d left, not %d", count(), value);
        sched_yield();
    }
}

static void test_release_alone_ends_the_thread_and_its_descriptors(void **state) {
    (void)state;
    wait_for(count_threads, threads_at_start); // those of earlier tests end by themselves
    const int threads = threads_at_start, descriptors = count_descriptors();
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        muster_context *context = make(flags);
        assert_int_equal(count_threads(), flags ? threads : threads + 1);
        muster_queue *queue = NULL;
        assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
        muster_context_release(context); // the queue keeps it
        muster_completion entry;
        assert_int_equal(muster_queue_post(queue, 1, 2), MUSTER_OK);
        assert_int_equal(muster_queue_next(queue, -1, &entry, NULL), MUSTER_OK);
        muster_queue_release(queue);
        wait_for(count_threads, threads);
        wait_for(count_descriptors, descriptors);
    }
}

static void test_two_contexts_share_nothing(void **state) {
    (void)state;
    muster_context *first = make(0), *second = make(0);
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(second, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_context_close(first, -1), MUSTER_OK);
    muster_context_release(first);
    muster_completion entry;
    assert_int_equal(muster_queue_post(queue, 5, 6), MUSTER_OK);
    assert_int_equal(muster_queue_next(queue, -1, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.tag, 5);
    muster_queue_release(queue);
    muster_context_release(second);
}

static void test_stats_count(void **state) {
    (void)state;
    muster_context *context = make(MUSTER_CONTEXT_EXTERNAL);
    muster_context_stats before, after;
    assert_int_equal(muster_context_get_stats(context, &before), MUSTER_OK);
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_set_wake(queue, (muster_wake_fn)(void (*)(void))getpid, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_set_wake(queue, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_context_progress(context, -1), MUSTER_OK);
    assert_int_equal(muster_context_get_stats(context, &after), MUSTER_OK);
    assert_int_equal(after.mailbox_posts, before.mailbox_posts + 1);
    assert_true(after.loop_wakeups > before.loop_wakeups);
    assert_int_equal(after.streams_made, 0);
    muster_queue_close(queue);
    muster_queue_release(queue);
    muster_context_release(context);
}

static void test_child_of_a_fork_is_told(void **state) {
    (void)state;
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        muster_context *context = make(flags);
        muster_queue *queue = NULL;
        assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
        const pid_t child = fork();
        if (child == 0) {
            size_t size;
            int32_t fd;
            muster_context_stats stats;
            muster_queue *late;
            int wrong = muster_context_close(context, -1) != MUSTER_E_FORKED;
            wrong |= muster_context_secret(context, NULL, 0, &size) != MUSTER_E_FORKED;
            wrong |= muster_context_progress(context, 0) != MUSTER_E_FORKED;
            wrong |= muster_context_fd(context, &fd) != MUSTER_E_FORKED;
            wrong |= muster_context_get_stats(context, &stats) != MUSTER_E_FORKED;
            wrong |= muster_context_log(context, MUSTER_LOG_OFF, NULL, 0) != MUSTER_E_FORKED;
            wrong |= muster_queue_create(context, NULL, &late, NULL) != MUSTER_E_FORKED;
            wrong |= muster_queue_post(queue, 0, 0) != MUSTER_E_FORKED;
            muster_queue_release(queue);
            muster_context_release(context);
#ifndef MUSTER_SANITIZED         // their allocators and threads do not survive the fork of a process that has threads
            muster_context *own; // the child may start over
            wrong |= muster_context_create(NULL, &own, NULL) != MUSTER_OK;
            wrong |= muster_context_close(own, -1) != MUSTER_OK;
            muster_context_release(own);
#endif
            _exit(wrong);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_int_equal(how, 0);
        muster_completion entry; // the parent goes on undisturbed
        assert_int_equal(muster_queue_post(queue, 5, 6), MUSTER_OK);
        assert_int_equal(muster_queue_next(queue, -1, &entry, NULL), MUSTER_OK);
        muster_queue_release(queue);
        assert_int_equal(muster_context_close(context, -1), MUSTER_OK);
        muster_context_release(context);
    }
}

static void *nothing(void *argument) {
    return argument;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_make_a_running_context),
        cmocka_unit_test(test_values_out_of_range_are_named),
        cmocka_unit_test(test_structs_of_other_releases_are_judged_by_their_bytes),
        cmocka_unit_test(test_secret_comes_from_the_configuration_first),
        cmocka_unit_test(test_secret_descriptor_is_read_to_its_end_and_closed),
        cmocka_unit_test(test_secret_descriptor_is_closed_on_failure_too),
        cmocka_unit_test(test_endless_secret_descriptor_is_refused),
        cmocka_unit_test(test_secret_file_must_be_private),
        cmocka_unit_test(test_secret_from_the_environment),
        cmocka_unit_test(test_made_secrets_differ),
        cmocka_unit_test(test_null_handles_are_refused),
        cmocka_unit_test(test_threaded_context_has_nothing_to_drive),
        cmocka_unit_test(test_external_descriptor_tells_when_there_is_something_to_do),
        cmocka_unit_test(test_only_one_thread_drives_an_external_context),
        cmocka_unit_test(test_many_threads_may_close_at_once),
        cmocka_unit_test(test_closed_context_makes_nothing_new),
        cmocka_unit_test(test_release_alone_ends_the_thread_and_its_descriptors),
        cmocka_unit_test(test_two_contexts_share_nothing),
        cmocka_unit_test(test_stats_count),
        cmocka_unit_test(test_child_of_a_fork_is_told),
    };
    unsetenv("MUSTER_SECRET");
    unsetenv("MUSTER_SECRET_FILE");
    pthread_t first; // a sanitizer adds its own thread to the first
    pthread_create(&first, NULL, nothing, NULL);
    pthread_join(first, NULL);
    threads_at_start = count_threads();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
