// SPDX-License-Identifier: MIT
// ctest: quick timeout=60
// The rule of lifetimes (base.h), for every object: release of a handle wakes the calls that wait on it, operations
// belong to the queue in which they complete, and the queue's end is theirs.
#include "asleep.h"

#include <muster/agent.h>
#include <muster/cluster.h>
#include <muster/rendezvous.h>
#include <muster/store_server.h>
#include <muster/transport.h>
#include <muster/worker.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

// ---- what all cases share
// ---------------------------------------------------------------------------------------------

// A server that takes connections into its backlog and never says a word.
static int silent_socket;
static char silent_tcp[64], silent_store[64];

static int open_silent_server(void **state) {
    (void)state;
    silent_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof where;
    if (silent_socket < 0 || bind(silent_socket, (struct sockaddr *)&where, size) != 0) return 1;
    if (listen(silent_socket, 256) != 0 || getsockname(silent_socket, (struct sockaddr *)&where, &size) != 0) return 1;
    snprintf(silent_tcp, sizeof silent_tcp, "tcp://127.0.0.1:%d", ntohs(where.sin_port));
    snprintf(silent_store, sizeof silent_store, "tcp://127.0.0.1:%d", ntohs(where.sin_port));
    return 0;
}

static int close_silent_server(void **state) {
    (void)state;
    return close(silent_socket);
}

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;  // where operations complete
    muster_queue *other;  // another one, of objects that need one
    muster_store *store;  // in memory
    muster_stream *a, *b; // a pair
    muster_process *sleeper;
    void *object; // the one that the case is about
} fixture;

static void open_fixture(fixture *f, uint32_t flags) {
    *f = (fixture){0};
    muster_context_config config = {.struct_size = sizeof config, .flags = flags};
    assert_int_equal(muster_context_create(&config, &f->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->queue, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->other, NULL), MUSTER_OK);
    assert_int_equal(muster_store_open(f->context, "memory:", 7, NULL, SECOND, &f->store, NULL), MUSTER_OK);
    assert_int_equal(muster_stream_pair(f->context, NULL, &f->a, &f->b, NULL), MUSTER_OK);
}

static void close_fixture(fixture *f) {
    if (f->sleeper != NULL) {
        muster_process_kill(f->sleeper, 9);
        muster_process_release(f->sleeper);
    }
    if (f->a != NULL) muster_stream_release(f->a);
    if (f->b != NULL) muster_stream_release(f->b);
    if (f->store != NULL) muster_store_release(f->store);
    if (f->queue != NULL) muster_queue_release(f->queue);
    if (f->other != NULL) muster_queue_release(f->other);
    // Nothing that was begun keeps the context from ending.
    const muster_status closed = muster_context_close(f->context, 5 * SECOND);
    if (closed != MUSTER_OK) fail_msg("the context ends with %s", muster_status_name(closed));
    muster_context_release(f->context);
}

static muster_process *start_sleeper(fixture *f) {
    const char *const argv[] = {"sleep", "1000", NULL};
    muster_process_config config = {.struct_size = sizeof config, .argv = argv};
    muster_process *process;
    assert_int_equal(muster_process_spawn(f->context, &config, &process, NULL), MUSTER_OK);
    return process;
}

static muster_rendezvous *open_member(fixture *f) {
    muster_rendezvous_config config = {.struct_size = sizeof config, .run_id = "run", .run_id_bytes = 3, .min = 2};
    config.store = f->store;
    muster_rendezvous *member;
    assert_int_equal(muster_rendezvous_open(f->context, &config, 5 * SECOND, &member, NULL), MUSTER_OK);
    return member;
}

// A round of two of which the other member never comes.
static muster_round *half_a_round(fixture *f) {
    muster_rendezvous_config config = {.struct_size = sizeof config, .run_id = "run", .run_id_bytes = 3, .min = 2};
    config.flags = MUSTER_RENDEZVOUS_HAS_RANK;
    config.store = f->store;
    config.url = "static:";
    config.url_bytes = 7;
    muster_rendezvous *member;
    muster_round *round;
    assert_int_equal(muster_rendezvous_open(f->context, &config, 5 * SECOND, &member, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_join(member, 5 * SECOND, &round, NULL), MUSTER_OK);
    muster_rendezvous_release(member);
    return round;
}

static muster_agent *start_agent(fixture *f, muster_queue *queue) {
    const char *const argv[] = {"sleep", "1000", NULL};
    muster_agent_config config = {.struct_size = sizeof config, .argv = argv, .flags = MUSTER_AGENT_NO_GUARD};
    muster_agent *agent;
    assert_int_equal(muster_agent_start(f->context, &config, queue, 7, &agent, NULL), MUSTER_OK);
    return agent;
}

static muster_cluster *open_cluster(fixture *f) {
    muster_cluster_config config = {.struct_size = sizeof config};
    muster_cluster *cluster;
    assert_int_equal(muster_cluster_open(f->context, &config, &cluster, NULL), MUSTER_OK);
    return cluster;
}

static muster_listener *open_listener(fixture *f) {
    muster_listener *listener;
    assert_int_equal(muster_transport_listen(f->context, "inproc://lifetimes", 18, NULL, &listener, NULL), MUSTER_OK);
    return listener;
}

// ---- release wakes the calls that wait
// --------------------------------------------------------------------------------

static void make_nothing(fixture *f) {
    (void)f;
}
static muster_status wait_for_progress(fixture *f) {
    muster_status status;
    while ((status = muster_context_progress(f->context, -1)) == MUSTER_OK) {
    }
    return status;
}
static void release_context(fixture *f) {
    muster_context_release(f->context);
}
static muster_status wait_for_entry(fixture *f) {
    muster_completion entry;
    return muster_queue_next(f->queue, -1, &entry, NULL);
}
static muster_status wait_in_dispatch(fixture *f) {
    return muster_queue_dispatch(f->queue, -1, NULL, NULL, NULL);
}
static void release_queue(fixture *f) {
    muster_queue_release(f->queue);
    f->queue = NULL;
}
static muster_status wait_for_bytes(fixture *f) {
    char byte;
    size_t size;
    return muster_stream_read(f->a, &byte, 1, -1, &size);
}
static muster_status wait_for_room(fixture *f) {
    static char data[4 << 20];
    size_t size;
    return muster_stream_write(f->a, data, sizeof data, -1, &size);
}
static void release_stream(fixture *f) {
    muster_stream_release(f->a);
    f->a = NULL;
}
static void make_listener(fixture *f) {
    f->object = open_listener(f);
}
static muster_status wait_for_connection(fixture *f) {
    muster_stream *stream;
    return muster_listener_accept(f->object, -1, &stream, NULL);
}
static void release_listener(fixture *f) {
    muster_listener_release(f->object);
}
static void make_process(fixture *f) {
    f->object = start_sleeper(f);
}
static muster_status wait_for_exit(fixture *f) {
    return muster_process_wait(f->object, -1, NULL);
}
static void release_running_process(fixture *f) {
    char command[64];
    snprintf(command, sizeof command, "kill -9 %d", muster_process_pid(f->object));
    muster_process_release(f->object);
    assert_int_equal(system(command), 0);
}
static muster_status wait_for_key(fixture *f) {
    muster_store_op op = {.kind = MUSTER_STORE_GET, .key = "absent", .key_bytes = 6};
    return muster_store_do(f->store, &op, 1, -1, NULL, NULL);
}
static void release_store(fixture *f) {
    muster_store_release(f->store);
    f->store = NULL;
}
static void make_view(fixture *f) {
    muster_store *view;
    assert_int_equal(muster_store_view(f->store, "v", 1, &view, NULL), MUSTER_OK);
    f->object = view;
}
static muster_status wait_for_key_of_view(fixture *f) {
    muster_store_op op = {.kind = MUSTER_STORE_GET, .key = "absent", .key_bytes = 6};
    return muster_store_do(f->object, &op, 1, -1, NULL, NULL);
}
static void release_view(fixture *f) {
    muster_store_release(f->object);
}
static void make_member(fixture *f) {
    f->object = open_member(f);
}
static muster_status wait_for_round(fixture *f) {
    muster_round *round;
    return muster_rendezvous_join(f->object, -1, &round, NULL);
}
static muster_status wait_for_rendezvous_event(fixture *f) {
    muster_rendezvous_event event;
    return muster_rendezvous_next_event(f->object, -1, &event);
}
static void release_member(fixture *f) {
    muster_rendezvous_release(f->object);
}
static void make_round(fixture *f) {
    f->object = half_a_round(f);
}
static muster_status wait_for_member(fixture *f) {
    muster_round_member_info member;
    return muster_round_member(f->object, 1, -1, &member, NULL);
}
static void release_round(fixture *f) {
    muster_round_release(f->object);
}
static void make_agent(fixture *f) {
    f->object = start_agent(f, f->other);
}
static muster_status wait_for_agent(fixture *f) {
    return muster_agent_wait(f->object, -1, NULL);
}
static void release_agent(fixture *f) {
    muster_agent_release(f->object);
}
static void make_cluster(fixture *f) {
    f->object = open_cluster(f);
}
static muster_status wait_for_cluster_event(fixture *f) {
    muster_cluster_event event;
    return muster_cluster_next_event(f->object, -1, &event);
}
static void release_cluster(fixture *f) {
    muster_cluster_release(f->object);
}

typedef struct waiting {
    const char *name;
    uint32_t flags;
    void (*make)(fixture *f);
    muster_status (*wait)(fixture *f);
    void (*release)(fixture *f);
} waiting;

static const waiting waits[] = {
    {"context, progress", MUSTER_CONTEXT_EXTERNAL, make_nothing, wait_for_progress, release_context},
    {"queue, next", 0, make_nothing, wait_for_entry, release_queue},
    {"queue, next, external", MUSTER_CONTEXT_EXTERNAL, make_nothing, wait_for_entry, release_queue},
    {"queue, dispatch", 0, make_nothing, wait_in_dispatch, release_queue},
    {"stream, read", 0, make_nothing, wait_for_bytes, release_stream},
    {"stream, write", 0, make_nothing, wait_for_room, release_stream},
    {"stream, read, external", MUSTER_CONTEXT_EXTERNAL, make_nothing, wait_for_bytes, release_stream},
    {"listener, accept", 0, make_listener, wait_for_connection, release_listener},
    {"listener, accept, external", MUSTER_CONTEXT_EXTERNAL, make_listener, wait_for_connection, release_listener},
    {"process, wait", 0, make_process, wait_for_exit, release_running_process},
    {"process, wait, external", MUSTER_CONTEXT_EXTERNAL, make_process, wait_for_exit, release_running_process},
    {"store, do", 0, make_nothing, wait_for_key, release_store},
    {"store, do, external", MUSTER_CONTEXT_EXTERNAL, make_nothing, wait_for_key, release_store},
    {"view of a store, do", 0, make_view, wait_for_key_of_view, release_view},
    {"rendezvous, join", 0, make_member, wait_for_round, release_member},
    {"rendezvous, next_event", 0, make_member, wait_for_rendezvous_event, release_member},
    {"round, member", 0, make_round, wait_for_member, release_round},
    {"agent, wait", 0, make_agent, wait_for_agent, release_agent},
    {"cluster, next_event", 0, make_cluster, wait_for_cluster_event, release_cluster},
};

typedef struct waiter {
    const waiting *what;
    fixture *f;
    pthread_t thread;
    atomic_int id, over;
    muster_status status;
} waiter;

static void *wait_there(void *argument) {
    waiter *w = argument;
    atomic_store(&w->id, gettid());
    w->status = w->what->wait(w->f);
    atomic_store(&w->over, 1);
    return NULL;
}

static bool joins_in_time(pthread_t thread) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

static void test_release_wakes_every_call_that_waits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        if (getenv("SAY")) fprintf(stderr, "%s\n", waits[i].name);
        fixture f;
        open_fixture(&f, waits[i].flags);
        waits[i].make(&f);
        waiter w = {.what = &waits[i], .f = &f};
        assert_int_equal(pthread_create(&w.thread, NULL, wait_there, &w), 0);
        while (atomic_load(&w.id) == 0) sched_yield();
        until_asleep(atomic_load(&w.id), &w.over);
        // Others of the fixture keep the context: its own handle is the case's.
        if (waits[i].release == release_context) {
            waits[i].release(&f);
            if (!joins_in_time(w.thread)) fail_msg("%s: the thread still waits", waits[i].name);
            muster_stream_release(f.a);
            muster_stream_release(f.b);
            muster_store_release(f.store);
            muster_queue_release(f.queue);
            muster_queue_release(f.other);
        } else {
            waits[i].release(&f);
            if (!joins_in_time(w.thread)) fail_msg("%s: the thread still waits", waits[i].name);
            close_fixture(&f);
        }
        if (w.status != MUSTER_E_CLOSED)
            fail_msg("%s: %s, not MUSTER_E_CLOSED", waits[i].name, muster_status_name(w.status));
    }
}

static void test_release_of_one_handle_wakes_no_call_on_another(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, 0);
    muster_store *view;
    assert_int_equal(muster_store_view(f.store, "", 0, &view, NULL), MUSTER_OK);
    waiter w = {.what = &waits[11], .f = &f};
    assert_string_equal(w.what->name, "store, do");
    assert_int_equal(pthread_create(&w.thread, NULL, wait_there, &w), 0);
    while (atomic_load(&w.id) == 0) sched_yield();
    until_asleep(atomic_load(&w.id), &w.over);
    muster_store_release(view);
    muster_store_op op = {.kind = MUSTER_STORE_SET, .key = "absent", .key_bytes = 6};
    assert_int_equal(muster_store_do(f.store, &op, 1, SECOND, NULL, NULL), MUSTER_OK);
    assert_true(joins_in_time(w.thread));
    assert_int_equal(w.status, MUSTER_OK);
    close_fixture(&f);
}

// ---- operations
// -------------------------------------------------------------------------------------------------------

static char target[1 << 16], text[64];

static muster_status begin_read(fixture *f) {
    return muster_stream_read_begin(f->a, target, sizeof target, 0, f->queue, 7);
}
static muster_status begin_write_owned(fixture *f) {
    static char data[1 << 22];
    return muster_stream_write_owned(f->a, data, sizeof data, f->queue, 7);
}
static muster_status begin_flush(fixture *f) {
    size_t size;
    assert_int_equal(muster_stream_write(f->a, "x", 1, SECOND, &size), MUSTER_OK);
    return muster_stream_flush_begin(f->a, -1, f->queue, 7, NULL);
}
static muster_status begin_close(fixture *f) {
    size_t size;
    assert_int_equal(muster_stream_write(f->a, "x", 1, SECOND, &size), MUSTER_OK);
    return muster_stream_close_begin(f->a, -1, f->queue, 7, NULL);
}
static muster_status begin_dial(fixture *f) {
    return muster_transport_dial_begin(f->context, silent_tcp, strlen(silent_tcp), NULL, -1, f->queue, 7, NULL);
}
static muster_status begin_store_open(fixture *f) {
    return muster_store_open_begin(f->context, silent_store, strlen(silent_store), NULL, -1, f->queue, 7, NULL);
}
static muster_status begin_rendezvous_open(fixture *f) {
    muster_rendezvous_config config = {.struct_size = sizeof config, .run_id = "run", .run_id_bytes = 3, .min = 2};
    config.url = silent_store;
    config.url_bytes = strlen(silent_store);
    return muster_rendezvous_open_begin(f->context, &config, -1, f->queue, 7, NULL);
}
static muster_status begin_get(fixture *f) {
    muster_store_op op = {.kind = MUSTER_STORE_GET, .key = "absent", .key_bytes = 6};
    return muster_store_begin(f->store, &op, 1, -1, f->queue, 7, NULL, NULL);
}
static muster_status begin_join(fixture *f) {
    return muster_rendezvous_begin(f->object, MUSTER_RENDEZVOUS_JOIN, NULL, 0, -1, f->queue, 7, NULL);
}
static muster_status begin_round_member(fixture *f) {
    return muster_round_member_begin(f->object, 1, -1, f->queue, 7, NULL);
}
static muster_status begin_watch_of_process(fixture *f) {
    return muster_process_watch(f->object, f->queue, 7);
}
static void make_agent_later(fixture *f) {
    (void)f;
}
static muster_status begin_agent(fixture *f) {
    f->object = start_agent(f, f->queue);
    return MUSTER_OK;
}
static muster_status begin_cluster_close(fixture *f) {
    return muster_cluster_close_begin(f->object, -1, f->queue, 7, NULL);
}
static muster_status begin_list(fixture *f) {
    return muster_rendezvous_list_begin(f->object, text, sizeof text, -1, f->queue, 7, NULL);
}
static muster_status begin_listener_close(fixture *f) {
    return muster_listener_close_begin(f->object, f->queue, 7, NULL);
}

enum { waits_on = 1, cancellable = 2 }; // it does not complete by itself; it can be cancelled

typedef struct operation {
    const char *name;
    void (*make)(fixture *f);
    muster_status (*begin)(fixture *f);
    void (*release)(fixture *f);
    int flags;
    int32_t kind;
} operation;

static const operation operations[] = {
    {"stream, read", make_nothing, begin_read, release_stream, waits_on | cancellable, MUSTER_DONE_READ},
    {"stream, write_owned", make_nothing, begin_write_owned, release_stream, waits_on | cancellable,
     MUSTER_DONE_RELEASED},
    {"stream, flush", make_nothing, begin_flush, release_stream, 0, MUSTER_DONE_CALL},
    {"stream, close", make_nothing, begin_close, release_stream, waits_on | cancellable, MUSTER_DONE_CALL},
    {"dial", make_nothing, begin_dial, make_nothing, waits_on | cancellable, MUSTER_DONE_DIAL},
    {"store, open", make_nothing, begin_store_open, make_nothing, cancellable, MUSTER_DONE_OPEN},
    {"rendezvous, open", make_nothing, begin_rendezvous_open, make_nothing, cancellable, MUSTER_DONE_OPEN},
    {"store, begin", make_nothing, begin_get, release_store, waits_on | cancellable, MUSTER_DONE_STORE},
    {"rendezvous, join", make_member, begin_join, release_member, waits_on | cancellable, MUSTER_DONE_RENDEZVOUS},
    {"rendezvous, list", make_member, begin_list, release_member, 0, MUSTER_DONE_CALL},
    {"round, member", make_round, begin_round_member, release_round, waits_on | cancellable, MUSTER_DONE_CALL},
    {"process, watch", make_process, begin_watch_of_process, release_running_process, waits_on, MUSTER_DONE_EXIT},
    {"agent", make_agent_later, begin_agent, release_agent, waits_on, MUSTER_DONE_AGENT},
    {"cluster, close", make_cluster, begin_cluster_close, release_cluster, 0, MUSTER_DONE_CALL},
    {"listener, close", make_listener, begin_listener_close, release_listener, 0, MUSTER_DONE_CALL},
};
enum { operation_count = sizeof operations / sizeof *operations };

static void begin_operation(const operation *o, fixture *f) {
    if (getenv("SAY")) fprintf(stderr, "%s\n", o->name);
    open_fixture(f, 0);
    o->make(f);
    const muster_status begun = o->begin(f);
    if (begun != MUSTER_OK) fail_msg("%s: begun with %s", o->name, muster_status_name(begun));
}

static muster_status completed(const operation *o, fixture *f) {
    muster_completion entry;
    do {
        const muster_status status = muster_queue_next(f->queue, 20 * SECOND, &entry, NULL);
        if (status != MUSTER_OK) fail_msg("%s: no completion: %s", o->name, muster_status_name(status));
    } while (entry.kind == MUSTER_EVENT_AGENT);
    if (entry.kind != o->kind || entry.tag != 7) fail_msg("%s: an entry of kind %d", o->name, entry.kind);
    if (entry.kind == MUSTER_DONE_STORE) muster_store_result_release(entry.object);
    muster_completion second;
    if (muster_queue_next(f->queue, 0, &second, NULL) != MUSTER_AGAIN) fail_msg("%s: completed twice", o->name);
    return entry.status;
}

// The streams of the pair end, and keys appear: what goes on completes.
static void let_it_complete(const operation *o, fixture *f) {
    if (o->begin == begin_write_owned || o->begin == begin_flush || o->begin == begin_close) {
        muster_stream_release(f->b);
        f->b = NULL;
    }
    if (o->begin == begin_get) {
        muster_store *other = f->object;
        muster_store_op op = {.kind = MUSTER_STORE_SET, .key = "absent", .key_bytes = 6};
        assert_int_equal(muster_store_do(other, &op, 1, SECOND, NULL, NULL), MUSTER_OK);
        muster_store_release(other);
    }
}

static void test_an_operation_completes_once_although_its_object_was_released(void **state) {
    (void)state;
    for (int i = 0; i < operation_count; i++) {
        const operation *const o = &operations[i];
        if (o->release == make_nothing || o->begin == begin_round_member) continue; // no object, or nothing to end it
        fixture f;
        begin_operation(o, &f);
        if (o->begin == begin_get) {
            muster_store *other;
            assert_int_equal(muster_store_view(f.store, "", 0, &other, NULL), MUSTER_OK);
            f.object = other;
        }
        o->release(&f);
        let_it_complete(o, &f);
        completed(o, &f);
        close_fixture(&f);
    }
}

static void test_the_end_of_the_queue_is_that_of_its_operations(void **state) {
    (void)state;
    for (int close_first = 0; close_first < 2; close_first++)
        for (int i = 0; i < operation_count; i++) {
            const operation *const o = &operations[i];
            fixture f;
            begin_operation(o, &f);
            if (close_first) assert_int_equal(muster_queue_close(f.queue), MUSTER_OK);
            if (close_first) {
                muster_completion entry; // what had completed before can still be taken
                while (muster_queue_next(f.queue, 0, &entry, NULL) == MUSTER_OK) {
                }
            }
            muster_queue_release(f.queue);
            f.queue = NULL;
            memset(target, 0xEE, sizeof target);
            size_t moved;
            if (f.b != NULL) muster_stream_write(f.b, "late", 4, 0, &moved);
            for (size_t k = 0; k < sizeof target; k++)
                if ((unsigned char)target[k] != 0xEE) fail_msg("%s: written after the end of the queue", o->name);
            if (o->release != make_nothing) o->release(&f);
            close_fixture(&f);
        }
}

static void test_an_operation_is_cancelled_by_its_tag(void **state) {
    (void)state;
    for (int i = 0; i < operation_count; i++) {
        const operation *const o = &operations[i];
        fixture f;
        begin_operation(o, &f);
        assert_int_equal(muster_queue_cancel_operation(f.queue, 8), MUSTER_E_STALE);
        const muster_status cancelled = muster_queue_cancel_operation(f.queue, 7);
        if (o->flags & cancellable) {
            if (cancelled != MUSTER_OK) fail_msg("%s: cancel: %s", o->name, muster_status_name(cancelled));
            const muster_status status = completed(o, &f);
            if (status != MUSTER_E_CANCELED) fail_msg("%s: ends with %s", o->name, muster_status_name(status));
            assert_int_equal(muster_queue_cancel_operation(f.queue, 7), MUSTER_E_STALE);
        }
        if (o->release != make_nothing) o->release(&f);
        close_fixture(&f);
    }
}

// ---- calls without an object
// ------------------------------------------------------------------------------------------

static muster_status dial_there(fixture *f) {
    muster_stream *stream;
    return muster_transport_dial(f->context, silent_tcp, strlen(silent_tcp), NULL, -1, &stream, NULL);
}
static muster_status open_store_there(fixture *f) {
    muster_store *store;
    return muster_store_open(f->context, silent_store, strlen(silent_store), NULL, 60 * SECOND, &store, NULL);
}
static muster_status open_rendezvous_there(fixture *f) {
    muster_rendezvous_config config = {.struct_size = sizeof config, .run_id = "run", .run_id_bytes = 3, .min = 2};
    config.url = silent_store;
    config.url_bytes = strlen(silent_store);
    muster_rendezvous *rendezvous;
    return muster_rendezvous_open(f->context, &config, 60 * SECOND, &rendezvous, NULL);
}
static muster_status start_worker_there(fixture *f) {
    muster_worker_config config = {.struct_size = sizeof config, .master = silent_tcp, .listen = ""};
    muster_cluster *cluster;
    return muster_worker_start(f->context, &config, 60 * SECOND, &cluster, NULL);
}

static const waiting objectless[] = {
    {"dial", 0, make_nothing, dial_there, NULL},
    {"dial, external", MUSTER_CONTEXT_EXTERNAL, make_nothing, dial_there, NULL},
    {"store, open", 0, make_nothing, open_store_there, NULL},
    {"rendezvous, open", 0, make_nothing, open_rendezvous_there, NULL},
    {"worker, start", 0, make_nothing, start_worker_there, NULL},
    {"process, wait", 0, make_process, wait_for_exit, release_running_process},
    {"round, member", 0, make_round, wait_for_member, release_round},
    {"agent, wait", 0, make_agent, wait_for_agent, release_agent},
};

static void test_calls_without_an_object_are_cancelled_by_the_context(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof objectless / sizeof *objectless; i++) {
        if (getenv("SAY")) fprintf(stderr, "%s\n", objectless[i].name);
        fixture f;
        open_fixture(&f, objectless[i].flags);
        objectless[i].make(&f);
        waiter w = {.what = &objectless[i], .f = &f};
        assert_int_equal(pthread_create(&w.thread, NULL, wait_there, &w), 0);
        while (atomic_load(&w.id) == 0) sched_yield();
        until_asleep(atomic_load(&w.id), &w.over);
        assert_int_equal(muster_context_cancel(f.context), MUSTER_OK);
        if (!joins_in_time(w.thread)) fail_msg("%s: the thread still waits", objectless[i].name);
        if (w.status != MUSTER_E_CANCELED)
            fail_msg("%s: %s, not MUSTER_E_CANCELED", objectless[i].name, muster_status_name(w.status));
        if (objectless[i].release != NULL) objectless[i].release(&f);
        close_fixture(&f);
    }
    assert_int_equal(muster_context_cancel(NULL), MUSTER_E_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release_wakes_every_call_that_waits),
        cmocka_unit_test(test_release_of_one_handle_wakes_no_call_on_another),
        cmocka_unit_test(test_an_operation_completes_once_although_its_object_was_released),
        cmocka_unit_test(test_the_end_of_the_queue_is_that_of_its_operations),
        cmocka_unit_test(test_an_operation_is_cancelled_by_its_tag),
        cmocka_unit_test(test_calls_without_an_object_are_cancelled_by_the_context),
    };
    return cmocka_run_group_tests(tests, open_silent_server, close_silent_server);
}
