// SPDX-License-Identifier: MIT
// A seeded driver of writes to a store that fails: what the status of each says has to be so, then and in the end.
//
// Each step prepares a name of its own through a handle that nothing disturbs, arms a fault, makes one request through
// the other handle, heals the fault, and reads the name back. Status "not applied": it is as it was; "applied": it has
// changed; "it may have been applied": one of the two. All steps are looked at again at the end, when everything that
// was on its way has arrived.
#ifndef FAULT_DRIVER_H
#define FAULT_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <muster/muster.h>

#define FAULT_MS INT64_C(1000000)

enum fault_verdict { fault_not_applied, fault_applied, fault_in_doubt, fault_undocumented };

// store.h, "Was it applied?".
static inline enum fault_verdict fault_verdict_of(muster_status status) {
    switch (status) {
    case MUSTER_OK:
        return fault_applied;
    case MUSTER_E_PEER:
    case MUSTER_E_STORE_LOST:
    case MUSTER_E_CLOSED:
    case MUSTER_E_PLUGIN:
        return fault_in_doubt;
    case MUSTER_AGAIN:
    case MUSTER_TIMEOUT:
    case MUSTER_E_CHANGED:
    case MUSTER_E_LIMIT:
    case MUSTER_E_STALE:
    case MUSTER_E_NOMEM:
    case MUSTER_E_CANCELED:
    case MUSTER_E_UNREACHABLE:
    case MUSTER_E_PROTOCOL:
    case MUSTER_E_SYSTEM:
        return fault_not_applied;
    default:
        return fault_undocumented;
    }
}

enum fault_write {
    write_set,
    write_add,
    write_append,
    write_delete,
    write_swap,
    write_pair, // of keys, at one moment
    write_push,
    write_pop,
    write_wait_and_pop, // a value that comes while it waits, or does not
    write_clear,
    write_on_lease,
    write_end_of_lease,
    write_count
};
static const char *const fault_write_names[write_count] = {
    "set",  "add", "append",       "delete", "swap",         "pair of sets",
    "push", "pop", "wait and pop", "clear",  "set on lease", "end of a lease"};

typedef struct fault_step {
    enum fault_write what;
    int fault, point;                                // for the backend
    int64_t timeout_ns, heal_ns, cancel_ns, push_ns; // after it began; -1: not, or (heal) once it has ended
    bool sync;
    muster_status status;
    char text[300];
    bool seen; // applied, when it was read back
    muster_lease *lease;
} fault_step;

typedef struct fault_world {
    const char *name;
    void *self;
    muster_context *context;
    muster_store *faulty, *direct;
    muster_queue *queue;
    int faults, points; // numbers of them; fault 0: none
    const char *const *fault_names;
    void (*arm)(void *self, int fault, int point);
    void (*heal)(void *self);
    uint64_t seed, random;
    fault_step steps[200];
    int count;
    int verdicts[3];
} fault_world;

static inline int64_t fault_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 * FAULT_MS + t.tv_nsec;
}
static inline uint64_t fault_random(fault_world *w, uint64_t below) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

static inline void fault_failed(fault_world *w, int step, const char *text) {
    fprintf(stderr, "%s, seed %llu, step %d: %s\n", w->name, (unsigned long long)w->seed, step, text);
    for (int i = 0; i <= step && i < w->count + 1; i++) {
        const fault_step *const s = &w->steps[i];
        fprintf(
            stderr,
            "  %3d %-14s fault %s/%d, timeout %lld ms, heal %lld ms, cancel %lld ms, push %lld ms, %s: %d, %s%s%s\n", i,
            fault_write_names[s->what], w->fault_names[s->fault], s->point, (long long)(s->timeout_ns / FAULT_MS),
            (long long)(s->heal_ns / FAULT_MS), (long long)(s->cancel_ns / FAULT_MS),
            (long long)(s->push_ns / FAULT_MS), s->sync ? "do" : "begin", s->status,
            s->seen ? "applied" : "not applied", s->text[0] != '\0' ? ": " : "", s->text);
    }
    fflush(NULL);
    _exit(1);
}

static inline muster_store_op fault_op(uint32_t kind, const char *key, const char *value) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    made.value = value;
    made.value_bytes = value != NULL ? strlen(value) : 0;
    return made;
}

// Through the handle that nothing disturbs. It is tried again where the store was killed a moment ago.
static inline void fault_direct(fault_world *w, int step, const muster_store_op *op, muster_store_entry *out,
                                char *value, size_t room) {
    muster_store_result *result = NULL;
    muster_error error;
    memset(&error, 0, sizeof error);
    if (muster_store_do(w->direct, op, 1, 60000 * FAULT_MS, &result, &error) != MUSTER_OK)
        fault_failed(w, step, error.message);
    muster_store_entry entry;
    muster_store_result_entry(result, 0, &entry);
    if (out != NULL) *out = entry;
    if (value != NULL) snprintf(value, room, "%.*s", (int)entry.value_bytes, (const char *)entry.value);
    muster_store_result_release(result);
}

static inline void fault_names(int step, char name[16], char other[16]) {
    snprintf(name, 16, "k%d", step);
    snprintf(other, 16, "o%d", step);
}

static inline void fault_prepare(fault_world *w, int step) {
    char name[16], other[16];
    fault_names(step, name, other);
    fault_step *const s = &w->steps[step];
    const muster_store_op set = fault_op(MUSTER_STORE_SET, name, "1"), push = fault_op(MUSTER_STORE_PUSH, name, "1");
    switch (s->what) {
    case write_add:
    case write_append:
    case write_delete:
    case write_swap:
        fault_direct(w, step, &set, NULL, NULL, 0);
        break;
    case write_pop:
    case write_clear:
        fault_direct(w, step, &push, NULL, NULL, 0);
        break;
    case write_on_lease:
    case write_end_of_lease: {
        muster_error error;
        if (muster_store_lease(w->faulty, 3600000 * FAULT_MS, 0, 60000 * FAULT_MS, &s->lease, &error) != MUSTER_OK)
            fault_failed(w, step, error.message);
        muster_store_op on_lease = set;
        on_lease.lease = muster_lease_id(s->lease);
        if (s->what == write_end_of_lease &&
            muster_store_do(w->faulty, &on_lease, 1, 60000 * FAULT_MS, NULL, &error) != MUSTER_OK)
            fault_failed(w, step, error.message);
        break;
    }
    default:
        break;
    }
}

static inline size_t fault_request(fault_world *w, int step, const char *name, const char *other,
                                   muster_store_op *ops) {
    switch (w->steps[step].what) {
    case write_add:
        ops[0] = fault_op(MUSTER_STORE_ADD, name, NULL);
        ops[0].number = 1;
        return 1;
    case write_append:
        ops[0] = fault_op(MUSTER_STORE_APPEND, name, "1");
        return 1;
    case write_delete:
        ops[0] = fault_op(MUSTER_STORE_DELETE, name, NULL);
        return 1;
    case write_swap:
        ops[0] = fault_op(MUSTER_STORE_SET, name, "2");
        ops[0].condition = MUSTER_STORE_IF_VALUE;
        ops[0].expected = "1";
        ops[0].expected_bytes = 1;
        return 1;
    case write_pair:
        ops[0] = fault_op(MUSTER_STORE_SET, name, "2");
        ops[1] = fault_op(MUSTER_STORE_SET, other, "2");
        return 2;
    case write_push:
        ops[0] = fault_op(MUSTER_STORE_PUSH, name, "1");
        return 1;
    case write_pop:
    case write_wait_and_pop:
        ops[0] = fault_op(MUSTER_STORE_POP, name, NULL);
        return 1;
    case write_clear:
        ops[0] = fault_op(MUSTER_STORE_CLEAR, name, NULL);
        return 1;
    case write_on_lease:
        ops[0] = fault_op(MUSTER_STORE_SET, name, "1");
        ops[0].lease = muster_lease_id(w->steps[step].lease);
        return 1;
    default:
        ops[0] = fault_op(MUSTER_STORE_SET, name, "2");
        return 1;
    }
}

static inline bool fault_was_applied(fault_world *w, int step) {
    char name[16], other[16], value[16];
    fault_names(step, name, other);
    const fault_step *const s = &w->steps[step];
    const muster_store_op read = fault_op(MUSTER_STORE_READ, name, NULL),
                          also = fault_op(MUSTER_STORE_READ, other, NULL),
                          length = fault_op(MUSTER_STORE_LENGTH, name, NULL);
    muster_store_entry entry, second_entry;
    switch (s->what) {
    case write_set:
    case write_swap:
        fault_direct(w, step, &read, NULL, value, sizeof value);
        return strcmp(value, "2") == 0;
    case write_add:
        fault_direct(w, step, &read, NULL, value, sizeof value);
        if (strcmp(value, "1") != 0 && strcmp(value, "2") != 0) fault_failed(w, step, "it was added twice");
        return strcmp(value, "2") == 0;
    case write_append:
        fault_direct(w, step, &read, NULL, value, sizeof value);
        if (strcmp(value, "1") != 0 && strcmp(value, "11") != 0) fault_failed(w, step, "it was appended twice");
        return strcmp(value, "11") == 0;
    case write_delete:
    case write_end_of_lease:
        fault_direct(w, step, &read, &entry, NULL, 0);
        return (entry.flags & MUSTER_STORE_PRESENT) == 0;
    case write_on_lease:
        fault_direct(w, step, &read, &entry, NULL, 0);
        return (entry.flags & MUSTER_STORE_PRESENT) != 0;
    case write_pair: { // at one moment, as it was written
        const muster_store_op both[2] = {read, also};
        muster_store_result *result = NULL;
        muster_error error = {0};
        if (muster_store_do(w->direct, both, 2, 60000 * FAULT_MS, &result, &error) != MUSTER_OK)
            fault_failed(w, step, error.message);
        muster_store_result_entry(result, 0, &entry);
        muster_store_result_entry(result, 1, &second_entry);
        if (entry.version != second_entry.version) fault_failed(w, step, "half of it was applied");
        muster_store_result_release(result);
        return entry.version != 0;
    }
    case write_push:
        fault_direct(w, step, &length, &entry, NULL, 0);
        if (entry.number > 1) fault_failed(w, step, "it was pushed twice");
        return entry.number == 1;
    default: // of a queue with one value
        fault_direct(w, step, &length, &entry, NULL, 0);
        return entry.number == 0;
    }
}

typedef struct fault_call {
    fault_world *w;
    int step;
    const muster_store_op *ops;
    size_t count;
    muster_error error;
    int ended; // atomic
} fault_call;

static inline void *fault_do(void *argument) {
    fault_call *const call = argument;
    fault_step *const s = &call->w->steps[call->step];
    s->status = s->what == write_end_of_lease
                    ? muster_lease_end(s->lease, s->timeout_ns, &call->error)
                    : muster_store_do(call->w->faulty, call->ops, call->count, s->timeout_ns, NULL, &call->error);
    __atomic_store_n(&call->ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

// Makes the request; what is to happen meanwhile happens at its time.
static inline void fault_run(fault_world *w, int step) {
    char name[16], other[16];
    fault_names(step, name, other);
    fault_step *const s = &w->steps[step];
    muster_store_op ops[2];
    const size_t count = fault_request(w, step, name, other, ops);
    fault_call call = {.w = w, .step = step, .ops = ops, .count = count};
    uint64_t number = 0;
    pthread_t thread;
    const int64_t from = fault_now();
    muster_status begun = MUSTER_OK;
    if (s->sync)
        pthread_create(&thread, NULL, fault_do, &call);
    else if (s->what == write_end_of_lease)
        begun = muster_lease_end_begin(s->lease, s->timeout_ns, w->queue, 1, &call.error);
    else
        begun = muster_store_begin(w->faulty, ops, count, s->timeout_ns, w->queue, 1, &number, &call.error);
    if (begun != MUSTER_OK) {
        s->status = begun;
        call.ended = 1;
    }
    bool healed = false, cancelled = s->cancel_ns < 0, pushed = s->what != write_wait_and_pop;
    int64_t busy = 0; // with something else than the request
    while (!__atomic_load_n(&call.ended, __ATOMIC_ACQUIRE)) {
        const int64_t at = fault_now() - from;
        if (!healed && s->heal_ns >= 0 && at >= s->heal_ns) {
            w->heal(w->self);
            healed = true;
            busy = fault_now() - from - at;
        }
        if (!pushed && at >= s->push_ns && (healed || s->fault == 0)) {
            const muster_store_op push = fault_op(MUSTER_STORE_PUSH, name, "1");
            fault_direct(w, step, &push, NULL, NULL, 0);
            pushed = true;
        }
        if (!cancelled && at >= s->cancel_ns) {
            muster_store_cancel(w->faulty, s->sync ? 0 : number);
            cancelled = true;
        }
        if (at > 60000 * FAULT_MS) fault_failed(w, step, "it does not end");
        if (s->sync) {
            const struct timespec moment = {0, 200000};
            nanosleep(&moment, NULL);
            continue;
        }
        muster_completion done;
        const muster_status status = muster_queue_next(w->queue, FAULT_MS / 2, &done, &call.error);
        if (status == MUSTER_TIMEOUT) continue;
        if (status != MUSTER_OK) fault_failed(w, step, call.error.message);
        muster_store_result_release(done.object);
        s->status = done.status;
        call.ended = 1;
    }
    if (s->sync) pthread_join(thread, NULL);
    const int64_t took = fault_now() - from - busy;
    if (s->status != MUSTER_OK) snprintf(s->text, sizeof s->text, "%.290s", call.error.message);
    if (!healed) w->heal(w->self);
    if (!pushed) {
        const muster_store_op push = fault_op(MUSTER_STORE_PUSH, name, "1");
        fault_direct(w, step, &push, NULL, NULL, 0);
    }
    if (took > s->timeout_ns + 2000 * FAULT_MS) fault_failed(w, step, "it ended long after its deadline");
}

static inline void fault_check(fault_world *w, int step, bool first) {
    fault_step *const s = &w->steps[step];
    enum fault_verdict verdict = fault_verdict_of(s->status);
    // The lease is over, perhaps by an earlier attempt of the same request.
    if (s->what == write_end_of_lease && s->status == MUSTER_E_STALE) verdict = fault_applied;
    const bool applied = fault_was_applied(w, step);
    if (first) s->seen = applied;
    if (verdict == fault_undocumented) fault_failed(w, step, "a status that store.h does not list");
    if (verdict == fault_applied && !applied) fault_failed(w, step, "applied, says the status, and it is not");
    if (verdict == fault_not_applied && applied) fault_failed(w, step, "not applied, says the status, and it is");
    if (verdict == fault_in_doubt && s->seen && !applied) fault_failed(w, step, "what was applied is so no more");
    if (first) w->verdicts[verdict]++;
}

static inline bool fault_can(const fault_world *w, enum fault_write what) {
    const uint32_t can = muster_store_capabilities(w->faulty);
    switch (what) {
    case write_wait_and_pop:
        return (can & MUSTER_STORE_CAN_QUEUE) && (can & MUSTER_STORE_CAN_WAIT);
    case write_push:
    case write_pop:
    case write_clear:
        return (can & MUSTER_STORE_CAN_QUEUE) != 0;
    case write_on_lease:
    case write_end_of_lease:
        return (can & MUSTER_STORE_CAN_LEASE) != 0;
    default:
        return true;
    }
}

// Fills in one step by the seed; steps do not depend on what happened before.
static inline void fault_plan(fault_world *w, int step) {
    fault_step *const s = &w->steps[step];
    memset(s, 0, sizeof *s);
    do s->what = (enum fault_write)fault_random(w, write_count);
    while (!fault_can(w, s->what));
    s->fault = (int)fault_random(w, (uint64_t)w->faults);
    s->point = w->points != 0 ? (int)fault_random(w, (uint64_t)w->points) : 0;
    s->timeout_ns = (int64_t)(10 + fault_random(w, 190)) * FAULT_MS;
    s->heal_ns = fault_random(w, 2) == 0 ? -1 : (int64_t)fault_random(w, (uint64_t)s->timeout_ns);
    s->cancel_ns = fault_random(w, 4) != 0 ? -1 : (int64_t)fault_random(w, (uint64_t)s->timeout_ns);
    s->push_ns = (int64_t)fault_random(w, (uint64_t)s->timeout_ns * 5 / 4);
    s->sync = fault_random(w, 2) == 0;
    if (s->what == write_end_of_lease && !s->sync) s->cancel_ns = -1; // it has no number
}

static inline void fault_drive(fault_world *w, uint64_t seed, int steps) {
    w->seed = seed;
    w->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    w->count = 0;
    for (int i = 0; i < steps; i++) {
        const int64_t from = fault_now();
        fault_plan(w, i);
        fault_prepare(w, i);
        const int64_t prepared = fault_now();
        w->arm(w->self, w->steps[i].fault, w->steps[i].point);
        fault_run(w, i);
        const int64_t ran = fault_now();
        fault_check(w, i, true);
        w->count = i + 1;
        if (getenv("MUSTER_FAULT_VERBOSE") != NULL)
            fprintf(stderr, "%3d %s, %s: %d; prepared in %lld ms, ran %lld ms, checked in %lld ms\n", i,
                    fault_write_names[w->steps[i].what], w->fault_names[w->steps[i].fault], w->steps[i].status,
                    (long long)((prepared - from) / FAULT_MS), (long long)((ran - prepared) / FAULT_MS),
                    (long long)((fault_now() - ran) / FAULT_MS));
    }
    // After everything that the handle has ever sent.
    const muster_store_op last = fault_op(MUSTER_STORE_SET, "last", "x");
    muster_error error;
    if (muster_store_do(w->faulty, &last, 1, 60000 * FAULT_MS, NULL, &error) != MUSTER_OK)
        fault_failed(w, steps - 1, error.message);
    for (int i = 0; i < steps; i++) fault_check(w, i, false);
    for (int i = 0; i < steps; i++) muster_lease_release(w->steps[i].lease);
}

#endif
