// SPDX-License-Identifier: MIT
// Many requests under way on one store handle, begun by three threads at two queues, over connections that break. What
// must hold: each request has one completion, those of a thread in the order in which it began them; each addition is
// applied once, in that order; nothing hangs. ctest: full timeout=240
#include "../api/random_run.h"
#include "fault_relay.h"

#include <muster/muster.h>

#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <setjmp.h>

#include <cmocka.h>

enum { begin_adds, begin_gets, begin_wait_and_cancel, add_and_wait, cut, step_kinds };
enum { threads = 3, queues = 2, keys = 3, most_operations = 1 << 14, steps = 40, sequences = 12 };
static const char *const key_names[] = {"a", "b", "c", "absent"};

typedef struct step {
    int kind, thread, count, key, fault, heal_us;
} step;
static step plan[steps];

typedef struct operation {
    int kind, key;
} operation;

// The thread that begins requests writes `count` and `operations`, the thread that takes completions the last sums and
// the last index. What is written before muster_store_begin() is visible once the completion was taken.
typedef struct worker {
    struct world *world;
    int number, count, last_completed;
    operation operations[most_operations];
    int64_t last_sum[keys];
    pthread_t thread;
} worker;

typedef struct taker {
    struct world *world;
    muster_queue *queue;
    atomic_int begun;
    int taken;
    bool all_begun; // the entry that the main thread posts was taken
    pthread_t thread;
} taker;

typedef struct world {
    muster_context *context;
    muster_store *store;
    fault_relay relay;
    worker workers[threads];
    taker takers[queues]; // of the threads 0 and 1, and of 2
    atomic_int additions[keys];
    atomic_bool all_begun;
    const bool *left_out;
} world;

static void give_up(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    _exit(1);
}
static void check(const char *what, muster_status status, const muster_error *error) {
    if (status != MUSTER_OK)
        give_up(what, error != NULL && error->message_bytes != 0 ? error->message : muster_status_name(status));
}

static taker *taker_of(world *w, int thread) {
    return &w->takers[thread == 2];
}

static muster_store_op operation_on(uint32_t kind, int key, int64_t number) {
    return (muster_store_op){
        .kind = kind, .key = key_names[key], .key_bytes = strlen(key_names[key]), .number = number};
}

static void begin(worker *self, uint32_t kind, int key, uint64_t *request) {
    if (self->count == most_operations) give_up("begin", "too many operations");
    taker *const to = taker_of(self->world, self->number);
    const muster_store_op op = operation_on(kind, key, kind == MUSTER_STORE_ADD ? 1 : 0);
    const uint64_t tag = (uint64_t)self->number << 32 | (uint64_t)self->count;
    self->operations[self->count] = (operation){(int)kind, key};
    muster_error error = {0};
    muster_status status;
    for (;;) {
        status = muster_store_begin(self->world->store, &op, 1, -1, to->queue, tag, request, &error);
        if (status != MUSTER_AGAIN) break;
        sched_yield(); // the queue is full: its taker makes room
    }
    check("begin", status, &error);
    self->count++;
    to->begun++;
    if (kind == MUSTER_STORE_ADD) self->world->additions[key]++;
}

static void *work(void *raw) {
    worker *const self = raw;
    world *const w = self->world;
    for (int i = 0; i < steps; i++) {
        const step *const s = &plan[i];
        if (w->left_out[i] || s->kind == cut || s->thread != self->number) continue;
        muster_error error = {0};
        uint64_t request = 0;
        if (s->kind == begin_wait_and_cancel) {
            begin(self, MUSTER_STORE_GET, keys, &request);
            check("cancel", muster_store_cancel(w->store, request), NULL);
        } else if (s->kind == add_and_wait) {
            const muster_store_op add = operation_on(MUSTER_STORE_ADD, s->key, 1);
            muster_store_result *result;
            check("add", muster_store_do(w->store, &add, 1, -1, &result, &error), &error);
            muster_store_result_release(result);
            w->additions[s->key]++;
        } else {
            for (int n = 0; n < s->count; n++)
                begin(self, s->kind == begin_adds ? MUSTER_STORE_ADD : MUSTER_STORE_READ, s->key, NULL);
        }
    }
    return NULL;
}

static void take(taker *self) {
    muster_completion entry;
    muster_error error = {0};
    check("next", muster_queue_next(self->queue, 60000000000, &entry, &error), &error);
    if (entry.kind == MUSTER_DONE_USER) {
        self->all_begun = true;
        return;
    }
    const int thread = (int)(entry.tag >> 32), index = (int)(entry.tag & UINT32_MAX);
    if (thread < 0 || thread >= threads || taker_of(self->world, thread) != self) give_up("completion", "wrong queue");
    worker *const of = &self->world->workers[thread];
    const operation *const was = &of->operations[index];
    self->taken++;
    if (was->kind == MUSTER_STORE_GET) { // cancelled: out of the order
        if (entry.status != MUSTER_E_CANCELED) give_up("cancelled get", muster_status_name(entry.status));
        return;
    }
    if (entry.kind != MUSTER_DONE_STORE || entry.status != MUSTER_OK) give_up("completion", error.message);
    if (index <= of->last_completed) give_up("completion", "twice, or out of order");
    of->last_completed = index;
    muster_store_entry result;
    check("result", muster_store_result_entry(entry.object, 0, &result), NULL);
    if (was->kind == MUSTER_STORE_ADD) {
        if (result.number <= of->last_sum[was->key]) give_up("addition", "applied twice, or out of order");
        of->last_sum[was->key] = result.number;
    }
    muster_store_result_release(entry.object);
}

static void *take_all(void *raw) {
    taker *const self = raw;
    while (!self->all_begun || self->taken != self->begun) take(self);
    return NULL;
}

// Breaks the connection at the next request, if there is one, and lets the client connect again.
static void cut_once(fault_relay *r, const step *s, const atomic_bool *over) {
    relay_arm(r, s->fault);
    pthread_mutex_lock(&r->lock);
    while (!r->apart && !*over) pthread_cond_wait(&r->passed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    const struct timespec pause = {0, s->heal_us * 1000L};
    nanosleep(&pause, NULL); // how long the server cannot be reached
    relay_heal(r);
}

static void *cut_all(void *raw) {
    world *const w = raw;
    for (int i = 0; i < steps; i++)
        if (!w->left_out[i] && plan[i].kind == cut) cut_once(&w->relay, &plan[i], &w->all_begun);
    return NULL;
}

static void make(uint64_t *state, int i) {
    static const int cuts[] = {relay_cut_before_request, relay_cut_in_request, relay_cut_before_answer,
                               relay_cut_in_answer};
    step *const s = &plan[i];
    s->kind = (int)(next_random(state) % step_kinds);
    s->thread = (int)(next_random(state) % threads);
    s->count = 1 + (int)(next_random(state) % (next_random(state) % 4 == 0 ? 1000 : 40));
    s->key = (int)(next_random(state) % keys);
    s->fault = cuts[next_random(state) % 4];
    s->heal_us = (int)(next_random(state) % 5000);
}

static void print(int i) {
    static const char *const names[] = {"begin adds", "begin reads", "begin a get and cancel it", "add and wait",
                                        "cut"};
    const step *const s = &plan[i];
    fprintf(stderr, "step %d: %s, thread %d, %d times, key %s, %s, healed after %d us\n", i, names[s->kind], s->thread,
            s->count, key_names[s->key], relay_fault_names[s->fault], s->heal_us);
}

static void run(int count, const bool *left_out) {
    (void)count;
    world *const w = calloc(1, sizeof *w);
    muster_error error = {0};
    muster_context *serving;
    muster_store_server *server;
    char url[256];
    size_t bytes;
    w->left_out = left_out;
    check("context", muster_context_create(NULL, &serving, &error), &error);
    check("server", muster_store_server_open(serving, "tcp://127.0.0.1:0", 17, NULL, &server, &error), &error);
    check("address", muster_store_server_address(server, url, sizeof url, &bytes), NULL);
    relay_start(&w->relay, atoi(strrchr(url, ':') + 1));
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", w->relay.port);
    check("context", muster_context_create(NULL, &w->context, &error), &error);
    check("open", muster_store_open(w->context, url, strlen(url), NULL, 20000000000, &w->store, &error), &error);
    for (int i = 0; i < queues; i++) {
        w->takers[i].world = w;
        check("queue", muster_queue_create(w->context, NULL, &w->takers[i].queue, &error), &error);
        pthread_create(&w->takers[i].thread, NULL, take_all, &w->takers[i]);
    }
    for (int i = 0; i < threads; i++) {
        w->workers[i].world = w;
        w->workers[i].number = i;
        w->workers[i].last_completed = -1;
        pthread_create(&w->workers[i].thread, NULL, work, &w->workers[i]);
    }
    pthread_t cutter;
    pthread_create(&cutter, NULL, cut_all, w);
    for (int i = 0; i < threads; i++) pthread_join(w->workers[i].thread, NULL);
    pthread_mutex_lock(&w->relay.lock);
    w->all_begun = true;
    pthread_cond_broadcast(&w->relay.passed);
    pthread_mutex_unlock(&w->relay.lock);
    pthread_join(cutter, NULL);
    for (int i = 0; i < queues; i++) {
        muster_status status;
        while ((status = muster_queue_post(w->takers[i].queue, 0, 0)) == MUSTER_AGAIN) sched_yield(); // it is full
        check("post", status, NULL);
    }
    for (int i = 0; i < queues; i++) pthread_join(w->takers[i].thread, NULL);
    for (int key = 0; key < keys; key++) {
        const muster_store_op add = operation_on(MUSTER_STORE_ADD, key, 0);
        muster_store_result *result;
        muster_store_entry sum;
        check("sum", muster_store_do(w->store, &add, 1, 20000000000, &result, &error), &error);
        check("sum", muster_store_result_entry(result, 0, &sum), NULL);
        if (sum.number != w->additions[key]) give_up("sum", "an addition was lost or applied twice");
        muster_store_result_release(result);
    }
    muster_store_release(w->store);
    for (int i = 0; i < queues; i++) muster_queue_release(w->takers[i].queue);
    muster_context_release(w->context);
    relay_end(&w->relay);
    muster_store_server_close(server, 1000000000);
    muster_store_server_release(server);
    muster_context_release(serving);
    free(w);
}

static void test_many_requests_under_way(void **state) {
    (void)state;
    const sequence s = {"requests under way", steps, make, run, print};
    assert_true(run_sequences(&s, sequences));
}

int main(void) {
    setenv("MUSTER_SECRET", "all contexts of this test have it", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_requests_under_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
