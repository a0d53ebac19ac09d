// SPDX-License-Identifier: MIT
// What serve.h promises beside carrying bytes (transport-check does that): who may serve what, ids, and the end.
// ctest: quick timeout=60
#include <muster/muster.h>

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
static const char address[] = "mine://somewhere";

static muster_context *context;
static muster_queue *queue;
static atomic_int destroyed;
static uint64_t opened, cancelled;

static void on_open(void *self, uint64_t request, const char *text, uint64_t text_bytes) {
    assert_ptr_equal(self, &destroyed);
    assert_int_equal(text_bytes, strlen(address));
    assert_memory_equal(text, address, text_bytes);
    opened = request;
}

static void on_cancel(void *self, uint64_t request) {
    (void)self;
    cancelled = request;
}

static void on_destroy(void *self) {
    atomic_fetch_add((atomic_int *)self, 1);
}

static const muster_transport_ops ops = {
    .struct_size = sizeof ops, .open = on_open, .cancel = on_cancel, .destroy = on_destroy};

static muster_status serve(uint32_t flags) {
    muster_transport_ops table = ops;
    table.flags = flags;
    return muster_transport_serve_ops(context, "mine", 4, &table, &destroyed, queue, NULL);
}

static muster_status dial(int64_t timeout_ns) {
    muster_stream *stream;
    return muster_transport_dial(context, address, strlen(address), NULL, timeout_ns, &stream, NULL);
}

// The library's, by the name it gives them; a sanitizer has threads of its own.
static int threads(void) {
    DIR *const tasks = opendir("/proc/self/task");
    int count = 0;
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], name[16] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *const comm = fopen(path, "r");
        if (comm == NULL) continue; // gone, or not one
        count += fgets(name, sizeof name, comm) != NULL && strcmp(name, "muster\n") == 0;
        fclose(comm);
    }
    closedir(tasks);
    return count;
}

// Waits until the library has so many.
static int has_threads(int count) {
    for (int turns = 0; threads() != count; turns++) {
        if (turns == 5000) return 0;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return 1;
}

static int begin(void **state) {
    (void)state;
    atomic_store(&destroyed, 0);
    opened = cancelled = 0;
    return muster_context_create(NULL, &context, NULL) != MUSTER_OK ||
           muster_queue_create(context, NULL, &queue, NULL) != MUSTER_OK || !has_threads(1);
}

// Nothing of the library is left: it has no other sign than its threads.
static int end(void **state) {
    (void)state;
    muster_context_release(context);
    muster_queue_release(queue);
    return !has_threads(0);
}

static void ignore(void *user, const muster_completion *entry, const muster_error *error) {
    (void)user, (void)entry, (void)error;
}

static void test_who_may_serve(void **state) {
    (void)state;
    muster_error error;
    assert_int_equal(serve(0), MUSTER_OK);
    assert_int_equal(serve(0), MUSTER_E_EXISTS);
    assert_int_equal(muster_transport_serve(context, "tcp", 3, 0, queue, 0, &error), MUSTER_E_EXISTS);
    assert_int_equal(muster_transport_serve(context, "no scheme", 9, 0, queue, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_serve(context, "other", 5, 0, NULL, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_transport_withdraw(context, "other", 5), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_transport_withdraw(context, "tcp", 3), MUSTER_E_NOT_FOUND);
    muster_queue *full;
    const muster_queue_config small = {.struct_size = sizeof small, .capacity = 16};
    assert_int_equal(muster_queue_create(context, &small, &full, NULL), MUSTER_OK);
    while (muster_queue_post(full, 1, 1) == MUSTER_OK) {
    }
    assert_int_equal(muster_transport_serve_ops(context, "other", 5, &ops, &destroyed, full, &error), MUSTER_E_LIMIT);
    muster_queue_close(full);
    assert_int_equal(muster_transport_serve(context, "other", 5, 0, full, 0, &error), MUSTER_E_CLOSED);
    muster_queue_release(full);
    assert_int_equal(muster_transport_withdraw(context, "other", 5), MUSTER_E_NOT_FOUND); // none of them stayed
}

static void test_ids_of_nobody_are_stale(void **state) {
    (void)state;
    char text[64];
    size_t bytes;
    uint64_t id;
    muster_stream *stream = (muster_stream *)8;
    assert_int_equal(muster_transport_serve(context, "mine", 4, 0, queue, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_request_address(queue, 77, text, sizeof text, &bytes), MUSTER_E_STALE);
    assert_int_equal(muster_request_stream(queue, 77, &stream, NULL), MUSTER_E_STALE);
    assert_null(stream);
    assert_int_equal(muster_request_listening(queue, 77, NULL, 0, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_request_fail(queue, 77, MUSTER_E_UNREACHABLE, NULL, 0), MUSTER_E_STALE);
    assert_int_equal(muster_transport_incoming(queue, 77, NULL, 0, &id, &stream, NULL), MUSTER_E_STALE);
}

static void test_the_end_of_the_context_destroys_what_was_never_dialled(void **state) {
    (void)state;
    uint64_t count;
    assert_int_equal(serve(0), MUSTER_OK);
    assert_int_equal(muster_context_close(context, -1), MUSTER_OK);
    assert_int_equal(muster_queue_dispatch(queue, 0, ignore, NULL, &count), MUSTER_OK);
    assert_int_equal(atomic_load(&destroyed), 1);
    assert_int_equal(muster_queue_dispatch(queue, -1, ignore, NULL, &count), MUSTER_E_CLOSED);
}

static void test_a_request_ends_with_its_dial(void **state) {
    (void)state;
    muster_completion entry;
    char text[64];
    size_t bytes;
    assert_int_equal(muster_transport_serve(context, "mine", 4, 0, queue, 0, NULL), MUSTER_OK);
    muster_queue *dials;
    assert_int_equal(muster_queue_create(context, NULL, &dials, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_dial_begin(context, address, strlen(address), NULL, SECOND / 20, dials, 1, NULL),
                     MUSTER_OK);
    assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_REQUEST_OPEN);
    const uint64_t id = entry.request;
    assert_int_equal(muster_request_address(queue, id, text, sizeof text, &bytes), MUSTER_OK);
    assert_string_equal(text, address);
    assert_int_equal(muster_queue_next(dials, 5 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.status, MUSTER_TIMEOUT);
    assert_int_equal(muster_queue_next(queue, 5 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_REQUEST_CANCEL);
    assert_int_equal(entry.request, id);
    assert_int_equal(muster_request_fail(queue, id, MUSTER_E_UNREACHABLE, NULL, 0), MUSTER_E_STALE);
    muster_queue_release(dials);
}

static void test_withdrawn_is_destroyed_by_dispatch(void **state) {
    (void)state;
    assert_int_equal(serve(0), MUSTER_OK);
    assert_int_equal(muster_transport_withdraw(context, "mine", 4), MUSTER_OK);
    assert_int_equal(dial(SECOND), MUSTER_E_NOT_FOUND);
    while (atomic_load(&destroyed) == 0) assert_true(muster_queue_dispatch(queue, 5 * SECOND, ignore, NULL, NULL) >= 0);
    assert_int_equal(muster_queue_dispatch(queue, 0, ignore, NULL, NULL), MUSTER_AGAIN);
    assert_int_equal(atomic_load(&destroyed), 1);
    assert_int_equal(serve(0), MUSTER_OK); // the name is free again
}

// Neither withdrawn nor closed: end() sees the engine's thread go all the same.
static void test_releasing_is_enough(void **state) {
    (void)state;
    assert_int_equal(serve(0), MUSTER_OK);
    muster_queue *dials;
    muster_completion entry;
    assert_int_equal(muster_queue_create(context, NULL, &dials, NULL), MUSTER_OK);
    assert_int_equal(muster_transport_dial_begin(context, address, strlen(address), NULL, 20 * SECOND, dials, 1, NULL),
                     MUSTER_OK);
    muster_queue_release(queue); // with a request that was not taken
    queue = NULL;
    assert_int_equal(muster_queue_next(dials, 5 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.status, MUSTER_E_CLOSED);
    assert_int_equal(dial(SECOND), MUSTER_E_NOT_FOUND);
    muster_queue_release(dials);
}

static void test_releasing_destroys_on_any_thread(void **state) {
    (void)state;
    assert_int_equal(serve(MUSTER_TRANSPORT_ANY_THREAD), MUSTER_OK);
    muster_queue_release(queue);
    queue = NULL;
    muster_context_release(context);
    context = NULL;
    assert_true(has_threads(0));
    assert_int_equal(atomic_load(&destroyed), 1);
}

// The program registers a transport, starts the thread that serves it, and dials without waiting for that.
static void *serve_later(void *argument) {
    (void)argument;
    nanosleep(&(struct timespec){0, 300000000}, NULL); // what a start takes on a busy machine
    muster_completion entry;
    while (muster_queue_next(queue, 20 * SECOND, &entry, NULL) == MUSTER_OK)
        if (entry.kind == MUSTER_REQUEST_OPEN)
            muster_request_fail(queue, entry.request, MUSTER_E_UNREACHABLE, "nobody there", 12);
    return NULL;
}

static void test_the_thread_that_registers_may_leave_the_serving_to_another(void **state) {
    (void)state;
    assert_int_equal(muster_transport_serve(context, "mine", 4, 0, queue, 0, NULL), MUSTER_OK);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, serve_later, NULL), 0);
    assert_int_equal(dial(20 * SECOND), MUSTER_E_UNREACHABLE); // its answer
    assert_int_equal(muster_queue_close(queue), MUSTER_OK);
    pthread_join(thread, NULL);
}

static void test_a_thread_that_waits_for_itself_is_not_left_waiting(void **state) {
    (void)state;
    assert_int_equal(muster_transport_serve(context, "mine", 4, 0, queue, 0, NULL), MUSTER_OK);
    assert_int_equal(dial(-1), MUSTER_E_WOULD_DEADLOCK);
    muster_completion entry; // the request, and that it is not wanted any more
    assert_int_equal(muster_queue_next(queue, SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(dial(-1), MUSTER_E_WOULD_DEADLOCK); // at once: this thread is the one that serves
    assert_int_equal(muster_queue_close(queue), MUSTER_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_may_serve, begin, end),
        cmocka_unit_test_setup_teardown(test_the_thread_that_registers_may_leave_the_serving_to_another, begin, end),
        cmocka_unit_test_setup_teardown(test_a_thread_that_waits_for_itself_is_not_left_waiting, begin, end),
        cmocka_unit_test_setup_teardown(test_ids_of_nobody_are_stale, begin, end),
        cmocka_unit_test_setup_teardown(test_the_end_of_the_context_destroys_what_was_never_dialled, begin, end),
        cmocka_unit_test_setup_teardown(test_a_request_ends_with_its_dial, begin, end),
        cmocka_unit_test_setup_teardown(test_withdrawn_is_destroyed_by_dispatch, begin, end),
        cmocka_unit_test_setup_teardown(test_releasing_is_enough, begin, end),
        cmocka_unit_test_setup_teardown(test_releasing_destroys_on_any_thread, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
