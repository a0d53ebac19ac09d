// SPDX-License-Identifier: MIT
// When the KILL of a worker is done, and what its last event says: for managers that pull and managers of callbacks.
// The workers are contexts of this process. ctest: quick timeout=120
#include "cluster_worker.h"

#include <muster/manager.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>

typedef enum { joins_not, joins, joins_apart } worker_kind;

static char self_path[4096];

typedef struct host {
    bool with_ops;
    muster_context *context;
    muster_queue *queue;
    muster_cluster *cluster;
    muster_context *worker_context;
    muster_cluster *worker;
    muster_process *child;
    uint64_t launch, kill, cancelled; // requests
    int launches, kills, cancels;
    muster_cluster_event last; // REMOVED, DEAD or FAILED
} host;

static void on_request(host *h, uint64_t request, const muster_manager_request *what) {
    if (what->operation == MUSTER_MANAGER_LAUNCH) {
        h->launch = request;
        h->launches++;
    } else {
        assert_int_equal(what->operation, MUSTER_MANAGER_KILL);
        assert_int_equal(what->member, 1);
        assert_int_equal(what->data, 77);
        assert_ptr_equal(what->cluster, h->cluster);
        h->kill = request;
        h->kills++;
    }
}

static void on_call(void *self, uint64_t request, const muster_manager_request *what) {
    on_request(self, request, what);
}

static void on_cancel(void *self, uint64_t request) {
    host *const h = self;
    h->cancelled = request;
    h->cancels++;
}

static void on_entry(void *self, const muster_completion *entry, const muster_error *error) {
    (void)error;
    if (entry->kind == MUSTER_REQUEST_CANCEL) on_cancel(self, entry->request);
    if (entry->kind != MUSTER_REQUEST_MANAGER) return;
    host *const h = self;
    muster_manager_request what;
    muster_config_init(&what, sizeof what);
    if (muster_manager_request_read(h->queue, entry->request, &what) == MUSTER_OK) on_request(h, entry->request, &what);
}

// Serves for a while; the events of a cluster arrive in the same queue.
static void turn(host *h) {
    assert_true(muster_queue_dispatch(h->queue, 20 * second, on_entry, h, NULL) >= 0);
    muster_cluster_event event;
    while (muster_cluster_next_event(h->cluster, 0, &event) == MUSTER_OK)
        if (event.kind >= MUSTER_CLUSTER_FAILED && event.kind <= MUSTER_CLUSTER_REMOVED) h->last = event;
}

// A process that joins, and can be killed.
static void start_child(host *h, int ticket) {
    const char *const argv[] = {self_path, "worker", NULL};
    const muster_process_fd fds[] = {{ticket, 3}};
    muster_process_config config;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    config.fds = fds;
    config.fd_count = 1;
    setenv("MUSTER_WORKER_FD", "3", 1);
    assert_int_equal(muster_process_spawn(h->context, &config, &h->child, NULL), MUSTER_OK);
    unsetenv("MUSTER_WORKER_FD");
    muster_member_info info = {0};
    while (info.state != MUSTER_MEMBER_JOINED) {
        turn(h);
        assert_int_equal(muster_cluster_get_member(h->cluster, 1, &info), MUSTER_OK);
    }
}

static void *run_worker(void *argument) {
    host *const h = argument;
    muster_error error;
    if (muster_worker_start(h->worker_context, NULL, 20 * second, &h->worker, &error) != MUSTER_OK)
        fprintf(stderr, "%s\n", error.message);
    return NULL;
}

// A cluster with one worker; `joins`: it has joined.
static void open_host(host *h, bool with_ops, worker_kind kind) {
    memset(h, 0, sizeof *h);
    h->with_ops = with_ops;
    assert_int_equal(muster_context_create(NULL, &h->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(h->context, NULL, &h->queue, NULL), MUSTER_OK);
    muster_manager_ops ops;
    muster_config_init(&ops, sizeof ops);
    ops.launch = ops.kill = on_call;
    ops.cancel = on_cancel;
    assert_int_equal(with_ops ? muster_manager_serve_ops(h->context, "mine", 4, &ops, h, h->queue, NULL)
                              : muster_manager_serve(h->context, "mine", 4, MUSTER_MANAGER_KILL, h->queue, 0, NULL),
                     MUSTER_OK);
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.queue = h->queue;
    config.join_timeout_ns = kind != joins_not ? 0 : 200 * ms;
    assert_int_equal(muster_cluster_open(h->context, &config, &h->cluster, NULL), MUSTER_OK);
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.manager = "mine";
    launch.count = 1;
    assert_int_equal(muster_cluster_add(h->cluster, &launch, NULL, NULL), MUSTER_OK);
    while (!h->launches) turn(h);
    char ticket[4096];
    size_t size;
    assert_int_equal(muster_manager_ticket(h->queue, h->launch, 1, ticket, sizeof ticket, &size), MUSTER_OK);
    assert_int_equal(muster_manager_worker_ready(h->queue, h->launch, 1, NULL, 0, 77, NULL), MUSTER_OK);
    if (kind == joins_not) return;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], ticket, size), size);
    if (kind == joins)
        assert_int_equal(muster_worker_context(NULL, ends[0] + 1, &h->worker_context, NULL), MUSTER_OK);
    else
        start_child(h, ends[0]);
    close(ends[0]);
    close(ends[1]);
    if (kind == joins_apart) return;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_worker, h), 0);
    pthread_join(thread, NULL);
    assert_non_null(h->worker);
}

static void end_worker(host *h) {
    muster_cluster_release(h->worker);
    muster_context_release(h->worker_context);
    h->worker = NULL;
    h->worker_context = NULL;
}

static void close_host(host *h) {
    muster_cluster_release(h->cluster);
    muster_queue_release(h->queue);
    end_worker(h);
    if (h->child) {
        muster_process_kill(h->child, SIGKILL);
        assert_int_equal(muster_process_wait(h->child, 10 * second, NULL), MUSTER_OK);
        muster_process_release(h->child);
    }
    assert_int_equal(muster_context_close(h->context, 10 * second), MUSTER_OK);
    muster_context_release(h->context);
}

static void await_kill(host *h) {
    while (!h->kills) turn(h);
}

static void await_last(host *h, uint32_t kind, muster_status status, const char *text) {
    while (h->last.kind == 0) turn(h);
    assert_int_equal(h->last.kind, kind);
    assert_int_equal(h->last.status, status);
    assert_string_equal(h->last.text, text);
    assert_int_equal(h->kills <= 1, 1);
}

#define for_both(h)                                                                                                    \
    host h;                                                                                                            \
    for (int with_ops = 0; with_ops < 2; with_ops++)

static void test_a_kill_that_is_done_ends_the_worker(void **state) {
    (void)state;
    for_both(h) {
        open_host(&h, with_ops, joins);
        assert_int_equal(muster_cluster_remove(h.cluster, 1, 0), MUSTER_OK);
        await_kill(&h);
        assert_int_equal(muster_manager_request_done(h.queue, h.kill, NULL, 0, NULL), MUSTER_OK);
        await_last(&h, MUSTER_CLUSTER_REMOVED, MUSTER_OK, "ended by force");
        assert_int_equal(muster_manager_worker_ended(h.queue, h.cluster, 1, "too late", 8, NULL), MUSTER_OK);
        assert_int_equal(h.cancels, 0);
        close_host(&h);
    }
}

static void test_what_a_manager_has_seen_of_the_end_is_told_and_takes_the_kill_back(void **state) {
    (void)state;
    for_both(h) {
        open_host(&h, with_ops, joins);
        assert_int_equal(muster_cluster_remove(h.cluster, 1, 0), MUSTER_OK);
        await_kill(&h);
        end_worker(&h);
        assert_int_equal(muster_manager_worker_ended(h.queue, h.cluster, 1, "exit code 3", 11, NULL), MUSTER_OK);
        await_last(&h, MUSTER_CLUSTER_REMOVED, MUSTER_OK, "exit code 3");
        while (!h.cancels) turn(&h);
        assert_int_equal(h.cancelled, h.kill);
        assert_int_equal(muster_manager_request_done(h.queue, h.kill, NULL, 0, NULL), MUSTER_E_STALE);
        close_host(&h);
    }
}

static void test_a_kill_that_fails_is_told(void **state) {
    (void)state;
    for_both(h) {
        open_host(&h, with_ops, joins);
        assert_int_equal(muster_cluster_remove(h.cluster, 1, 0), MUSTER_OK);
        await_kill(&h);
        assert_int_equal(muster_manager_request_fail(h.queue, h.kill, MUSTER_E_PERMISSION, "not mine", 8), MUSTER_OK);
        await_last(&h, MUSTER_CLUSTER_REMOVED, MUSTER_E_PERMISSION, "it could not be ended by force: not mine");
        close_host(&h);
    }
}

static void test_the_reason_for_a_kill_comes_first(void **state) {
    (void)state;
    for_both(h) for (int fails = 0; fails < 2; fails++) {
        open_host(&h, with_ops, joins_not);
        await_kill(&h);
        if (fails) {
            assert_int_equal(muster_manager_request_fail(h.queue, h.kill, MUSTER_E_PERMISSION, "not mine", 8),
                             MUSTER_OK);
            await_last(&h, MUSTER_CLUSTER_FAILED, MUSTER_TIMEOUT,
                       "it did not join within 0.2 s; it could not be ended by force: not mine");
        } else {
            assert_int_equal(muster_manager_request_done(h.queue, h.kill, NULL, 0, NULL), MUSTER_OK);
            await_last(&h, MUSTER_CLUSTER_FAILED, MUSTER_TIMEOUT, "it did not join within 0.2 s");
        }
        close_host(&h);
    }
}

static void test_a_worker_that_dies_by_itself_was_not_ended_by_force(void **state) {
    (void)state;
    for_both(h) {
        open_host(&h, with_ops, joins_apart);
        assert_int_equal(muster_process_kill(h.child, SIGKILL), MUSTER_OK);
        await_kill(&h); // what is left of it
        assert_int_equal(muster_manager_request_done(h.queue, h.kill, NULL, 0, NULL), MUSTER_OK);
        while (h.last.kind == 0) turn(&h);
        assert_int_equal(h.last.kind, MUSTER_CLUSTER_DEAD);
        assert_int_equal(h.last.status, MUSTER_E_PEER);
        assert_null(strstr(h.last.text, "by force"));
        close_host(&h);
    }
}

static void test_a_worker_that_leaves_is_not_killed(void **state) {
    (void)state;
    for_both(h) {
        open_host(&h, with_ops, joins);
        assert_int_equal(muster_cluster_remove(h.cluster, 1, 20 * second), MUSTER_OK);
        muster_cluster_event event = {0};
        while (event.kind != MUSTER_CLUSTER_LEAVE)
            assert_int_equal(muster_cluster_next_event(h.worker, 20 * second, &event), MUSTER_OK);
        assert_int_equal(muster_cluster_close(h.worker, -1), MUSTER_OK);
        await_last(&h, MUSTER_CLUSTER_REMOVED, MUSTER_OK, "");
        assert_int_equal(h.kills, 0);
        close_host(&h);
    }
}

static void test_a_manager_that_does_not_answer_is_not_waited_for(void **state) {
    (void)state;
    host h;
    open_host(&h, false, joins);
    assert_int_equal(muster_cluster_remove(h.cluster, 1, 0), MUSTER_OK);
    await_last(&h, MUSTER_CLUSTER_REMOVED, MUSTER_TIMEOUT,
               "it could not be ended by force: within 10 s nothing was known of its end");
    while (!h.cancels) turn(&h);
    assert_int_equal(h.cancelled, h.kill);
    close_host(&h);
}

// The built-in one sees the end itself.
static void test_local_workers_are_ended_by_a_signal(void **state) {
    (void)state;
    host h = {0};
    assert_int_equal(muster_context_create(NULL, &h.context, NULL), MUSTER_OK);
    assert_int_equal(muster_cluster_open(h.context, NULL, &h.cluster, NULL), MUSTER_OK);
    const char *const argv[] = {"/bin/sleep", "100", NULL};
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.argv = argv;
    launch.count = 1;
    assert_int_equal(muster_cluster_add(h.cluster, &launch, NULL, NULL), MUSTER_OK);
    muster_cluster_event event = {0};
    while (event.kind != MUSTER_CLUSTER_LAUNCHED)
        assert_int_equal(muster_cluster_next_event(h.cluster, 20 * second, &event), MUSTER_OK);
    assert_int_equal(muster_cluster_remove(h.cluster, 1, 0), MUSTER_OK);
    while (event.kind != MUSTER_CLUSTER_REMOVED)
        assert_int_equal(muster_cluster_next_event(h.cluster, 20 * second, &event), MUSTER_OK);
    assert_int_equal(event.status, MUSTER_OK);
    assert_string_equal(event.text, "killed by signal 9 (Killed)");
    muster_cluster_release(h.cluster);
    assert_int_equal(muster_context_close(h.context, 10 * second), MUSTER_OK);
    muster_context_release(h.context);
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    const ssize_t size = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (size < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kill_that_is_done_ends_the_worker),
        cmocka_unit_test(test_what_a_manager_has_seen_of_the_end_is_told_and_takes_the_kill_back),
        cmocka_unit_test(test_a_kill_that_fails_is_told),
        cmocka_unit_test(test_the_reason_for_a_kill_comes_first),
        cmocka_unit_test(test_a_worker_that_dies_by_itself_was_not_ended_by_force),
        cmocka_unit_test(test_a_worker_that_leaves_is_not_killed),
        cmocka_unit_test(test_a_manager_that_does_not_answer_is_not_waited_for),
        cmocka_unit_test(test_local_workers_are_ended_by_a_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
