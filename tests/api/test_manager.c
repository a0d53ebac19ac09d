// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Managers written by the host: as callbacks and pulled, good ones and bad ones.
#include "cluster_worker.h"
#include "stopped.h"

#include <muster/manager.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

static char self_path[4096];
enum { most = 16 };

// What the host keeps: its cluster, and the children it has started, by their numbers in the cluster.
typedef struct host {
    muster_context *context;
    muster_queue *queue;
    muster_cluster *cluster;
    muster_process *children[most];
    uint32_t heard[most]; // wants about each worker, or'ed
    uint64_t data[most];
    char connect_at[most][128]; // addresses reported by CONNECT and CONNECT_WORKER, which are their answers
    uint32_t asked_by[most];
    int cancelled, destroyed;
    bool backwards;
} host;

static int set_up(void **state) {
    static host h;
    memset(&h, 0, sizeof h);
    assert_int_equal(muster_context_create(NULL, &h.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(h.context, NULL, &h.queue, NULL), MUSTER_OK);
    *state = &h;
    return 0;
}

static int tear_down(void **state) {
    host *h = *state;
    muster_cluster_close(h->cluster, second);
    muster_cluster_release(h->cluster);
    for (int i = 0; i < most; i++)
        if (h->children[i]) {
            muster_process_kill(h->children[i], SIGKILL);
            assert_int_equal(muster_process_wait(h->children[i], 10 * second, NULL), MUSTER_OK);
            muster_process_release(h->children[i]);
        }
    muster_queue_close(h->queue);
    muster_queue_release(h->queue);
    assert_int_equal(muster_context_close(h->context, 5 * second), MUSTER_OK);
    muster_context_release(h->context);
    const pid_t left = waitpid(-1, NULL, WNOHANG);
    if (left != -1 || errno != ECHILD) fail_msg("a child is left: %d", (int)left);
    return 0;
}

static void open_cluster(host *h, int64_t join_timeout_ns) {
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.queue = h->queue;
    config.join_timeout_ns = join_timeout_ns;
    assert_int_equal(muster_cluster_open(h->context, &config, &h->cluster, NULL), MUSTER_OK);
}

// Starts a child with the ticket as descriptor 3; its report is read through *out_report, if requested.
static void start_child(host *h, uint64_t request, uint32_t member, int *out_report) {
    char ticket[4096];
    size_t size = 0;
    assert_int_equal(muster_manager_ticket(h->queue, request, member, NULL, 0, &size), MUSTER_OK);
    assert_int_equal(muster_manager_ticket(h->queue, request, member, ticket, size - 1, &size), MUSTER_E_LIMIT);
    assert_int_equal(muster_manager_ticket(h->queue, request, member, ticket, sizeof ticket, &size), MUSTER_OK);
    assert_int_equal(ticket[size - 1], '\n');
    int ends[2], report[2] = {-1, -1};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], ticket, size), size);
    close(ends[1]);
    if (out_report) assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    const char *const argv[] = {self_path, "worker", NULL};
    const muster_process_fd fds[] = {{ends[0], 3}, {report[1], 1}};
    muster_process_config config;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    config.fds = fds;
    config.fd_count = out_report ? 2 : 1;
    setenv("MUSTER_WORKER_FD", "3", 1);
    assert_int_equal(muster_process_spawn(h->context, &config, &h->children[member], NULL), MUSTER_OK);
    unsetenv("MUSTER_WORKER_FD");
    close(ends[0]);
    if (!out_report) return;
    close(report[1]);
    *out_report = report[0];
}

static size_t read_address(int report, char *out, size_t room) {
    char line[256] = "";
    size_t size = 0;
    while (size < sizeof line - 1 && read(report, line + size, 1) == 1 && line[size] != '\n') size++;
    close(report);
    line[size] = '\0';
    assert_int_equal(strncmp(line, "muster-worker ", 14), 0);
    snprintf(out, room, "%.100s", line + 14);
    return strlen(out);
}

// ---- a manager as callbacks

static void launch(void *self, uint64_t request, const muster_manager_request *what) {
    host *h = self;
    assert_int_equal(what->operation, MUSTER_MANAGER_LAUNCH);
    assert_int_equal(what->count, what->launch->count);
    for (uint32_t i = 0; i < what->count; i++) {
        const uint32_t member = what->member + (h->backwards ? what->count - 1 - i : i);
        if (what->launch->flags & MUSTER_LAUNCH_MASTER_DIALS) {
            int report;
            char address[128];
            start_child(h, request, member, &report);
            const size_t size = read_address(report, address, sizeof address);
            muster_error error;
            assert_int_equal(muster_manager_worker_ready(h->queue, request, member, NULL, 0, 0, &error), MUSTER_E_ARG);
            assert_int_equal(muster_manager_worker_ready(h->queue, request, member, address, size, 1000 + member, NULL),
                             MUSTER_OK);
        } else {
            start_child(h, request, member, NULL);
            assert_int_equal(muster_manager_worker_ready(h->queue, request, member, NULL, 0, 1000 + member, NULL),
                             MUSTER_OK);
        }
    }
}

static void note(host *h, const muster_manager_request *what) {
    assert_true(what->member < most);
    h->heard[what->member] |= what->operation;
    h->data[what->member] = what->data;
}

static void manage(void *self, uint64_t request, const muster_manager_request *what) {
    host *h = self;
    note(h, what);
    if (what->operation == MUSTER_MANAGER_INTERRUPT) muster_process_kill(h->children[what->member], SIGINT);
    assert_int_equal(muster_manager_request_done(h->queue, request, NULL, 0, NULL), MUSTER_OK);
}

static void connect_at(void *self, uint64_t request, const muster_manager_request *what) {
    host *h = self;
    note(h, what);
    snprintf(h->connect_at[what->member], sizeof h->connect_at[0], "%s", what->address);
    h->asked_by[what->member] = what->from;
    muster_error error;
    assert_int_equal(muster_manager_request_done(h->queue, request, NULL, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_request_done(h->queue, request, what->address, strlen(what->address), NULL),
                     MUSTER_OK);
}

static void end_by_force(void *self, uint64_t request, const muster_manager_request *what) {
    host *h = self;
    note(h, what);
    muster_process_kill(h->children[what->member], SIGKILL);
    assert_int_equal(muster_manager_request_done(h->queue, request, NULL, 0, NULL), MUSTER_OK);
}

static void cancel(void *self, uint64_t request) {
    host *h = self;
    assert_int_equal(muster_manager_request_done(h->queue, request, NULL, 0, NULL), MUSTER_E_STALE);
    h->cancelled++;
}

static void destroy(void *self) {
    host *h = self;
    h->destroyed++;
}

static const muster_manager_ops all_ops = {sizeof all_ops, 0,      launch, connect_at, connect_at, manage,
                                           end_by_force,   cancel, destroy};

static uint32_t add(host *h, const char *manager, uint32_t flags, uint32_t count) {
    muster_launch what;
    muster_config_init(&what, sizeof what);
    const char *const argv[] = {self_path, "worker", NULL};
    what.argv = argv;
    what.manager = manager;
    what.flags = flags;
    what.count = count;
    uint32_t first = 0;
    muster_error error = {0};
    if (muster_cluster_add(h->cluster, &what, &first, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return first;
}

static void no_entry(void *user, const muster_completion *entry, const muster_error *error) {
    (void)user;
    (void)error;
    assert_int_equal(entry->kind, MUSTER_EVENT_READY);
}

// Dispatches until the next event of that kind.
static muster_cluster_event await(host *h, uint32_t kind) {
    for (;;) {
        muster_cluster_event event;
        const muster_status status = muster_cluster_next_event(h->cluster, 0, &event);
        if (status == MUSTER_OK && event.kind == kind) return event;
        if (status == MUSTER_OK && event.kind > MUSTER_CLUSTER_JOINED)
            fail_msg("event %u of %u: %s", event.kind, event.member, event.text);
        if (status == MUSTER_AGAIN)
            assert_int_equal(muster_queue_dispatch(h->queue, 20 * second, no_entry, h, NULL), MUSTER_OK);
    }
}

static void dispatch_until_destroyed(host *h) {
    while (!h->destroyed) assert_int_equal(muster_queue_dispatch(h->queue, 20 * second, no_entry, h, NULL), MUSTER_OK);
}

static void dispatch_until_heard(host *h, uint32_t member, uint32_t wants) {
    while ((h->heard[member] & wants) != wants)
        assert_int_equal(muster_queue_dispatch(h->queue, 20 * second, no_entry, h, NULL), MUSTER_OK);
}

// A stream of a member, opened while this thread dispatches.
static muster_stream *dial(host *h, uint32_t member, const char *label) {
    muster_queue *own = NULL;
    assert_int_equal(muster_queue_create(h->context, NULL, &own, NULL), MUSTER_OK);
    assert_int_equal(muster_cluster_dial_begin(h->cluster, member, label, strlen(label), 20 * second, own, 1, NULL),
                     MUSTER_OK);
    muster_completion entry;
    muster_error error;
    while (muster_queue_next(own, 10 * ms, &entry, &error) != MUSTER_OK)
        muster_queue_dispatch(h->queue, 0, no_entry, h, NULL);
    if (entry.status != MUSTER_OK) fail_msg("dial %u: %s", member, error.message);
    muster_queue_release(own);
    return entry.object;
}

static void assert_hears(host *h, uint32_t member, const char *label, const char *expected) {
    muster_stream *const stream = dial(h, member, label);
    char text[300];
    size_t all = 0, moved = 0;
    muster_status status = MUSTER_OK;
    while (status == MUSTER_OK || status == MUSTER_TIMEOUT) {
        status = muster_stream_read(stream, text + all, sizeof text - 1 - all, 10 * ms, &moved);
        all += moved;
        muster_queue_dispatch(h->queue, 0, no_entry, h, NULL);
    }
    text[all] = '\0';
    assert_string_equal(text, expected);
    muster_stream_close(stream, 0);
    muster_stream_release(stream);
}

static void serve(host *h, const char *name, const muster_manager_ops *ops) {
    muster_error error = {0};
    if (muster_manager_serve_ops(h->context, name, strlen(name), ops, h, h->queue, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
}

static void test_callbacks_launch_manage_and_kill(void **state) {
    host *h = *state;
    serve(h, "mine", &all_ops);
    h->backwards = true;
    open_cluster(h, 0);
    assert_int_equal(add(h, "mine", 0, 3), 1);
    for (int i = 0; i < 3; i++) await(h, MUSTER_CLUSTER_JOINED);
    for (uint32_t i = 1; i <= 3; i++) {
        dispatch_until_heard(h, i, MUSTER_MANAGER_REGISTER);
        assert_int_equal(h->data[i], 1000 + i);
        muster_member_info info;
        assert_int_equal(muster_cluster_get_member(h->cluster, i, &info), MUSTER_OK);
        assert_int_equal(info.data, 1000 + i);
    }
    // Where is it? The manager is asked, by the master and for another worker.
    assert_hears(h, 1, "talk 2", "done");
    assert_true(h->heard[1] & MUSTER_MANAGER_CONNECT);
    assert_true(h->heard[2] & MUSTER_MANAGER_CONNECT_WORKER);
    assert_int_equal(h->asked_by[2], 1);
    assert_int_equal(strncmp(h->connect_at[2], "tcp://127.0.0.1:", 16), 0);
    // Interrupted in its own way.
    assert_hears(h, 3, "compute", "computing");
    assert_int_equal(muster_cluster_interrupt(h->cluster, 3), MUSTER_OK);
    dispatch_until_heard(h, 3, MUSTER_MANAGER_INTERRUPT);
    assert_hears(h, 3, "self", "3");
    // Removed by force.
    assert_int_equal(muster_cluster_remove(h->cluster, 1, 0), MUSTER_OK);
    assert_int_equal(await(h, MUSTER_CLUSTER_REMOVED).member, 1);
    dispatch_until_heard(h, 1, MUSTER_MANAGER_KILL | MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_FINALIZE);
    // In order.
    assert_int_equal(muster_cluster_remove(h->cluster, 2, -1), MUSTER_OK);
    assert_int_equal(await(h, MUSTER_CLUSTER_REMOVED).member, 2);
    dispatch_until_heard(h, 2, MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_FINALIZE);
    assert_false(h->heard[2] & MUSTER_MANAGER_KILL);
    // Dead: the manager is to see to it that nothing is left.
    assert_int_equal(muster_process_kill(h->children[3], SIGKILL), MUSTER_OK);
    assert_int_equal(await(h, MUSTER_CLUSTER_DEAD).member, 3);
    dispatch_until_heard(h, 3, MUSTER_MANAGER_KILL | MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_FINALIZE);
    assert_int_equal(muster_manager_withdraw(h->context, "mine", 4), MUSTER_OK);
    dispatch_until_destroyed(h);
    assert_int_equal(h->destroyed, 1);
    assert_int_equal(muster_manager_withdraw(h->context, "mine", 4), MUSTER_E_NOT_FOUND);
}

static void test_callbacks_that_are_left_out_have_defaults(void **state) {
    host *h = *state;
    muster_manager_ops ops;
    muster_config_init(&ops, sizeof ops);
    ops.launch = launch;
    serve(h, "least", &ops);
    open_cluster(h, 0);
    add(h, "least", 0, 1);
    add(h, "least", MUSTER_LAUNCH_MASTER_DIALS, 1);
    add(h, "local", 0, 1); // several managers in one cluster
    for (int i = 0; i < 3; i++) await(h, MUSTER_CLUSTER_JOINED);
    assert_hears(h, 1, "talk 2", "done");
    assert_hears(h, 2, "talk 3", "done");
    assert_hears(h, 1, "compute", "computing");
    assert_int_equal(muster_cluster_interrupt(h->cluster, 1), MUSTER_OK);
    assert_hears(h, 1, "self", "1");
    assert_int_equal(muster_cluster_remove(h->cluster, 1, -1), MUSTER_OK);
    assert_int_equal(await(h, MUSTER_CLUSTER_REMOVED).member, 1);
}

// ---- a manager that pulls

static muster_manager_request pull(host *h, uint64_t *out_id) {
    muster_completion entry;
    do assert_int_equal(muster_queue_next(h->queue, 20 * second, &entry, NULL), MUSTER_OK);
    while (entry.kind == MUSTER_EVENT_READY);
    assert_int_equal(entry.kind, MUSTER_REQUEST_MANAGER);
    muster_manager_request what;
    muster_config_init(&what, sizeof what);
    assert_int_equal(muster_manager_request_read(h->queue, entry.request, &what), MUSTER_OK);
    *out_id = entry.request;
    return what;
}

static void await_cancel(host *h, uint64_t request) {
    muster_completion entry;
    do assert_int_equal(muster_queue_next(h->queue, 20 * second, &entry, NULL), MUSTER_OK);
    while (entry.kind == MUSTER_EVENT_READY);
    assert_int_equal(entry.kind, MUSTER_REQUEST_CANCEL);
    assert_int_equal(entry.request, request);
}

static muster_cluster_event next(host *h) {
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(h->cluster, 20 * second, &event), MUSTER_OK);
    return event;
}

static void test_pulled_requests_are_answered_in_any_order(void **state) {
    host *h = *state;
    assert_int_equal(muster_manager_serve(h->context, "pulled", 6, 0, h->queue, 0, NULL), MUSTER_OK);
    open_cluster(h, 0);
    add(h, "pulled", 0, 3);
    add(h, "pulled", 0, 2);
    uint64_t one = 0, two = 0;
    muster_manager_request what = pull(h, &one);
    assert_int_equal(what.member, 1);
    assert_string_equal(what.launch->argv[1], "worker");
    assert_string_equal(what.launch->manager, "pulled");
    what = pull(h, &two);
    assert_int_equal(what.member, 4);
    assert_int_equal(what.count, 2);
    muster_error error;
    assert_int_equal(muster_manager_worker_failed(h->queue, two, 5, MUSTER_E_LIMIT, "no place", 8, NULL), MUSTER_OK);
    muster_cluster_event event = next(h);
    assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, 5);
    assert_int_equal(event.status, MUSTER_E_LIMIT);
    assert_string_equal(event.text, "no place");
    // Twice, of another LAUNCH, with nonsense.
    assert_int_equal(muster_manager_worker_failed(h->queue, two, 5, MUSTER_E_LIMIT, NULL, 0, &error), MUSTER_E_STALE);
    assert_int_equal(muster_manager_worker_ready(h->queue, two, 3, NULL, 0, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_worker_ready(h->queue, two, 6, NULL, 0, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_worker_ready(h->queue, 12345, 4, NULL, 0, 0, &error), MUSTER_E_STALE);
    assert_int_equal(muster_manager_worker_failed(h->queue, two, 4, MUSTER_OK, NULL, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_request_done(h->queue, two, NULL, 0, &error), MUSTER_E_ARG);
    size_t size;
    assert_int_equal(muster_manager_ticket(h->queue, two, 1, NULL, 0, &size), MUSTER_E_ARG);
    // One comes before it is reported.
    start_child(h, two, 4, NULL);
    for (uint32_t kind = MUSTER_CLUSTER_LAUNCHED; kind <= MUSTER_CLUSTER_JOINED; kind++) {
        event = next(h);
        assert_int_equal(event.kind, kind);
        assert_int_equal(event.member, 4);
    }
    assert_int_equal(muster_manager_worker_ready(h->queue, two, 4, NULL, 0, 77, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_worker_ready(h->queue, two, 4, NULL, 0, 0, &error), MUSTER_E_STALE);
    // The rest of a LAUNCH fails at once.
    assert_int_equal(muster_manager_worker_failed(h->queue, one, 2, MUSTER_E_SYSTEM, NULL, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_request_fail(h->queue, one, MUSTER_E_PERMISSION, "not here", 8), MUSTER_OK);
    assert_int_equal(next(h).member, 2);
    for (uint32_t i = 1; i <= 3; i += 2) {
        event = next(h);
        assert_int_equal(event.member, i);
        assert_int_equal(event.status, MUSTER_E_PERMISSION);
        assert_string_equal(event.text, "not here");
    }
}

static void test_who_never_answers_is_not_waited_for(void **state) {
    host *h = *state;
    assert_int_equal(muster_manager_serve(h->context, "silent", 6, MUSTER_MANAGER_KILL, h->queue, 0, NULL), MUSTER_OK);
    open_cluster(h, 200 * ms);
    add(h, "silent", 0, 2);
    uint64_t request = 0;
    pull(h, &request);
    for (uint32_t i = 1; i <= 2; i++) {
        const muster_cluster_event event = next(h);
        assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
        assert_int_equal(event.status, MUSTER_TIMEOUT);
    }
    await_cancel(h, request);
    assert_int_equal(muster_manager_worker_ready(h->queue, request, 1, NULL, 0, 0, NULL), MUSTER_E_STALE);
    // One that is reported and never comes is killed.
    add(h, "silent", 0, 1);
    pull(h, &request);
    assert_int_equal(muster_manager_worker_ready(h->queue, request, 3, NULL, 0, 7, NULL), MUSTER_OK);
    assert_int_equal(next(h).kind, MUSTER_CLUSTER_LAUNCHED);
    muster_manager_request what = pull(h, &request);
    assert_int_equal(what.operation, MUSTER_MANAGER_KILL);
    assert_int_equal(what.member, 3);
    assert_int_equal(what.data, 7);
    assert_int_equal(muster_manager_request_fail(h->queue, request, MUSTER_E_NOT_FOUND, NULL, 0), MUSTER_OK);
    const muster_cluster_event event = next(h);
    assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, 3);
    assert_int_equal(event.status, MUSTER_TIMEOUT);
    // Nor at the end.
    add(h, "silent", 0, 2);
    pull(h, &request);
    assert_int_equal(muster_cluster_close(h->cluster, second), MUSTER_OK);
    await_cancel(h, request);
}

static void test_what_is_taken_back_is_over(void **state) {
    host *h = *state;
    assert_int_equal(muster_manager_serve(h->context, "short", 5, 0, h->queue, 0, NULL), MUSTER_OK);
    open_cluster(h, 0);
    add(h, "short", 0, 2);
    uint64_t request = 0;
    pull(h, &request);
    start_child(h, request, 1, NULL);
    assert_int_equal(muster_manager_worker_ready(h->queue, request, 1, NULL, 0, 0, NULL), MUSTER_OK);
    for (uint32_t kind = MUSTER_CLUSTER_LAUNCHED; kind <= MUSTER_CLUSTER_JOINED; kind++)
        assert_int_equal(next(h).kind, kind);
    assert_int_equal(muster_manager_withdraw(h->context, "short", 5), MUSTER_OK);
    const muster_cluster_event event = next(h);
    assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, 2);
    assert_int_equal(event.status, MUSTER_E_CLOSED);
    await_cancel(h, request);
    assert_null(talk_to(h->cluster, 1)); // a worker that has joined stays
    muster_launch what = {.struct_size = sizeof what, .manager = "short", .count = 1};
    assert_int_equal(muster_cluster_add(h->cluster, &what, NULL, NULL), MUSTER_E_NOT_FOUND);
}

static void test_a_manager_tells_how_its_worker_ended(void **state) {
    host *h = *state;
    assert_int_equal(muster_manager_serve(h->context, "telling", 7, 0, h->queue, 0, NULL), MUSTER_OK);
    open_cluster(h, 0);
    add(h, "telling", 0, 1);
    uint64_t request = 0;
    pull(h, &request);
    assert_int_equal(muster_manager_worker_ready(h->queue, request, 1, NULL, 0, 0, NULL), MUSTER_OK);
    assert_int_equal(next(h).kind, MUSTER_CLUSTER_LAUNCHED);
    muster_queue *other = NULL;
    assert_int_equal(muster_queue_create(h->context, NULL, &other, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_worker_ended(other, h->cluster, 1, NULL, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_manager_worker_ended(h->queue, h->cluster, 9, NULL, 0, NULL), MUSTER_E_NOT_FOUND);
    muster_queue_release(other);
    assert_int_equal(muster_manager_worker_ended(h->queue, h->cluster, 1, "out of disk", 11, NULL), MUSTER_OK);
    const muster_cluster_event event = next(h);
    assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
    assert_string_equal(event.text, "out of disk");
    assert_int_equal(muster_manager_worker_ended(h->queue, h->cluster, 1, NULL, 0, NULL), MUSTER_OK);
}

static void test_the_end_of_its_queue_is_that_of_a_manager(void **state) {
    host *h = *state;
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(h->context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_serve(h->context, "brief", 5, 0, queue, 0, NULL), MUSTER_OK);
    open_cluster(h, 0);
    add(h, "brief", 0, 1);
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 20 * second, &entry, NULL), MUSTER_OK);
    muster_queue_release(queue);
    const muster_cluster_event event = next(h);
    assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.status, MUSTER_E_CLOSED);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * second + t.tv_nsec;
}

// A worker that does not leave by itself, so that the manager has to kill it.
static void open_with_a_stopped_worker(host *h) {
    serve(h, "mine", &all_ops);
    open_cluster(h, 0);
    assert_int_equal(add(h, "mine", 0, 1), 1);
    await(h, MUSTER_CLUSTER_JOINED);
    dispatch_until_heard(h, 1, MUSTER_MANAGER_REGISTER);
    stop_process(muster_process_pid(h->children[1]));
}

static void test_a_close_on_the_serving_thread_keeps_its_time(void **state) {
    host *h = *state;
    open_with_a_stopped_worker(h);
    const int64_t before = now();
    assert_int_equal(muster_cluster_close(h->cluster, second / 2), MUSTER_E_WOULD_DEADLOCK);
    const int64_t took = now() - before;
    if (took < second / 2 || took > 5 * second) fail_msg("it took %lld ms, not 500", (long long)(took / ms));
    // It goes on as soon as this thread serves.
    muster_cluster_event event;
    muster_status status;
    while ((status = muster_cluster_next_event(h->cluster, 0, &event)) != MUSTER_E_CLOSED)
        if (status == MUSTER_AGAIN)
            assert_int_equal(muster_queue_dispatch(h->queue, 20 * second, no_entry, h, NULL), MUSTER_OK);
    assert_true(h->heard[1] & MUSTER_MANAGER_KILL);
    assert_int_equal(muster_cluster_close(h->cluster, 0), MUSTER_TIMEOUT);
}

static void note_closed(void *user, const muster_completion *entry, const muster_error *error) {
    (void)error;
    if (entry->kind == MUSTER_DONE_CALL && entry->tag == 9) *(muster_status *)user = entry->status;
}

static void test_a_close_is_begun_by_the_serving_thread(void **state) {
    host *h = *state;
    open_with_a_stopped_worker(h);
    muster_status closed = MUSTER_AGAIN;
    assert_int_equal(muster_cluster_close_begin(h->cluster, second / 2, h->queue, 9, NULL), MUSTER_OK);
    while (closed == MUSTER_AGAIN)
        assert_int_equal(muster_queue_dispatch(h->queue, 20 * second, note_closed, &closed, NULL), MUSTER_OK);
    assert_int_equal(closed, MUSTER_TIMEOUT); // it had to be killed
    assert_true(h->heard[1] & MUSTER_MANAGER_KILL);
}

static void test_wrong_arguments_change_nothing(void **state) {
    host *h = *state;
    muster_error error;
    assert_int_equal(muster_manager_serve(h->context, "local", 5, 0, h->queue, 0, &error), MUSTER_E_EXISTS);
    assert_int_equal(muster_manager_serve(h->context, "a b", 3, 0, h->queue, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_serve(h->context, "", 0, 0, h->queue, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_serve(h->context, "m", 1, 1u << 20, h->queue, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_serve(h->context, "m", 1, 0, NULL, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_serve(h->context, "m", 1, 0, h->queue, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_serve(h->context, "m", 1, 0, h->queue, 0, &error), MUSTER_E_EXISTS);
    muster_manager_ops ops;
    muster_config_init(&ops, sizeof ops);
    assert_int_equal(muster_manager_serve_ops(h->context, "n", 1, &ops, h, h->queue, &error), MUSTER_E_ARG);
    assert_int_equal(muster_manager_serve_ops(h->context, "n", 1, NULL, h, h->queue, &error), MUSTER_E_ARG);
    muster_manager_request what;
    muster_config_init(&what, sizeof what);
    assert_int_equal(muster_manager_request_read(h->queue, 5, &what), MUSTER_E_STALE);
    what.struct_size = 3;
    assert_int_equal(muster_manager_request_read(h->queue, 5, &what), MUSTER_E_ABI);
    assert_int_equal(muster_manager_request_fail(h->queue, 5, MUSTER_E_ARG, NULL, 0), MUSTER_E_STALE);
    assert_int_equal(muster_manager_withdraw(h->context, "m", 1), MUSTER_OK);
}

int main(int argc, char **argv) {
    if (readlink("/proc/self/exe", self_path, sizeof self_path - 1) < 0) return 1;
    const int worked = work_if_asked(argc, argv);
    if (worked >= 0) return worked;
#define with_host(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        with_host(test_callbacks_launch_manage_and_kill),
        with_host(test_callbacks_that_are_left_out_have_defaults),
        with_host(test_pulled_requests_are_answered_in_any_order),
        with_host(test_who_never_answers_is_not_waited_for),
        with_host(test_what_is_taken_back_is_over),
        with_host(test_a_manager_tells_how_its_worker_ended),
        with_host(test_the_end_of_its_queue_is_that_of_a_manager),
        with_host(test_a_close_on_the_serving_thread_keeps_its_time),
        with_host(test_a_close_is_begun_by_the_serving_thread),
        with_host(test_wrong_arguments_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
