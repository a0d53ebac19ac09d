// SPDX-License-Identifier: MIT
// The stack, the queue and the hash table of examples/c/lockfree.h are linearizable: threads record short histories,
// and a search (Wing and Gong, 1993) looks for an order of their operations that a sequential one explains. MUSTER_SEED
// selects the operations. ctest: quick timeout=120
#include "examples/c/lockfree.h"

#include "epoch_run.h"
#include "linearizable.h"

#include <pthread.h>
#include <time.h>

enum { threads = 3, per_thread = 5, all_operations = threads * per_thread, keys = 3 };
static void test_the_checker_refuses_wrong_histories(void **state) {
    (void)state;
    const model empty = {.count = 0};
    // 1 and 2 go in, one after the other, and 1 comes out first: right for a queue, wrong for a stack.
    const operation order[] = {{put, 1, 0, 1, 2}, {put, 2, 0, 3, 4}, {take, 0, 1, 5, 6}};
    assert_true(linearizable(a_queue, order, 3, 0, &empty));
    assert_false(linearizable(a_stack, order, 3, 0, &empty));
    const operation overlap[] = {{put, 1, 0, 1, 4}, {put, 2, 0, 2, 3}, {take, 0, 1, 5, 6}};
    assert_true(linearizable(a_stack, overlap, 3, 0, &empty));
    const operation twice[] = {{put, 1, 0, 1, 2}, {take, 0, 1, 3, 6}, {take, 0, 1, 4, 5}};
    assert_false(linearizable(a_stack, twice, 3, 0, &empty));
    const operation lost[] = {{put, 1, 0, 1, 2}, {take, 0, 0, 3, 4}};
    assert_false(linearizable(a_queue, lost, 2, 0, &empty));
    const operation set[] = {{insert, 1, 1, 1, 2}, {insert, 1, 1, 3, 4}};
    assert_false(linearizable(a_table, set, 2, 0, &empty));
}

typedef struct run {
    structure what;
    int rounds;
    uint64_t seed;
    muster_epoch *epoch;
    lockfree_stack stack;
    lockfree_queue queue;
    lockfree_table *table;
    _Atomic uint64_t clock;
    pthread_barrier_t barrier;
    operation history[all_operations];
} run;
typedef struct member {
    run *r;
    int number;
} member;

static void perform(run *r, muster_epoch_token *token, operation *o) {
    uint64_t value = 0;
    o->begin = atomic_fetch_add(&r->clock, 1);
    switch (o->kind) {
    case put:
        r->what == a_stack ? lockfree_push(&r->stack, token, o->value) : lockfree_enqueue(&r->queue, token, o->value);
        break;
    case take:
        o->result =
            (r->what == a_stack ? lockfree_pop(&r->stack, token, &value) : lockfree_dequeue(&r->queue, token, &value))
                ? value
                : 0;
        break;
    case insert:
        o->result = (uint64_t)lockfree_insert(r->table, token, o->value, o->value);
        break;
    case erase:
        o->result = (uint64_t)lockfree_erase(r->table, token, o->value);
        break;
    default:
        o->result = (uint64_t)lockfree_find(r->table, token, o->value, &value);
    }
    o->end = atomic_fetch_add(&r->clock, 1);
}

static void *take_part(void *argument) {
    const member *const own = argument;
    run *const r = own->r;
    muster_epoch_token *const token = token_of(r->epoch);
    uint64_t random = r->seed * 6364136223846793005ULL + (uint64_t)own->number * 1442695040888963407ULL + 1;
    for (int round = 0; round < r->rounds; round++) {
        for (int i = 0; i < per_thread; i++) {
            operation *const o = &r->history[own->number * per_thread + i];
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            const uint64_t pick = random >> 33;
            *o = (operation){.kind = r->what == a_table ? (enum kind)(insert + pick % 3) : (enum kind)(pick % 2),
                             .value = r->what == a_table ? 1 + pick / 3 % keys
                                                         : (uint64_t)(1 + own->number * per_thread + i)};
        }
        pthread_barrier_wait(&r->barrier);
        for (int i = 0; i < per_thread; i++) perform(r, token, &r->history[own->number * per_thread + i]);
        muster_epoch_poll(token, 0, 0, NULL, 0, NULL, NULL);
        if (pthread_barrier_wait(&r->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            check_history(r->what, r->history, all_operations);
            uint64_t value; // the next round begins with an empty one
            while (r->what == a_stack && lockfree_pop(&r->stack, token, &value)) {
            }
            while (r->what == a_queue && lockfree_dequeue(&r->queue, token, &value)) {
            }
            for (uint64_t key = 1; r->what == a_table && key <= keys; key++) lockfree_erase(r->table, token, key);
        }
        pthread_barrier_wait(&r->barrier);
    }
    assert_int_equal(muster_epoch_unregister(token), MUSTER_OK);
    return NULL;
}

static void record(structure what) {
    const char *const seed = getenv("MUSTER_SEED");
    run *const r = aligned_alloc(128, (sizeof *r + 127) / 128 * 128);
    memset(r, 0, sizeof *r);
    r->what = what;
    r->rounds = 3000;
    r->seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    r->table = calloc(1, sizeof *r->table);
    r->epoch = make_epoch(0, 0, 0);
    printf("MUSTER_SEED=%llu\n", (unsigned long long)r->seed);
    assert_true(lockfree_queue_init(&r->queue));
    assert_int_equal(pthread_barrier_init(&r->barrier, NULL, threads), 0);
    pthread_t running[threads];
    member members[threads];
    for (int i = 0; i < threads; i++) {
        members[i] = (member){r, i};
        assert_int_equal(pthread_create(&running[i], NULL, take_part, &members[i]), 0);
    }
    for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
    pthread_barrier_destroy(&r->barrier);
    muster_epoch_release(r->epoch);
    lockfree_queue_destroy(&r->queue);
    lockfree_table_destroy(r->table);
    free(r->table);
    free(r);
}
static void test_histories_of_the_stack_are_linearizable(void **state) {
    (void)state;
    record(a_stack);
}
static void test_histories_of_the_queue_are_linearizable(void **state) {
    (void)state;
    record(a_queue);
}
static void test_histories_of_the_table_are_linearizable(void **state) {
    (void)state;
    record(a_table);
}

// Many keys: buckets become tables while others read and change them.
static lockfree_table large;
static muster_epoch *large_epoch;
static void *change_many(void *number) {
    muster_epoch_token *const token = token_of(large_epoch);
    const uint64_t first = (uintptr_t)number * 20000;
    for (int round = 0; round < 3; round++) {
        uint64_t value;
        for (uint64_t k = first; k < first + 20000; k++) {
            if (lockfree_insert(&large, token, k, ~k) != 1) abort();
            if (!lockfree_find(&large, token, k, &value) || value != ~k) abort();
            muster_epoch_poll(token, 0, 0, NULL, 0, NULL, NULL);
        }
        for (uint64_t k = first; k < first + 20000; k++)
            if (!lockfree_erase(&large, token, k) || lockfree_find(&large, token, k, &value)) abort();
    }
    assert_int_equal(muster_epoch_unregister(token), MUSTER_OK);
    return NULL;
}
static void test_buckets_become_tables_while_threads_use_them(void **state) {
    (void)state;
    large_epoch = make_epoch(0, 0, 0);
    pthread_t running[threads];
    for (uintptr_t i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&running[i], NULL, change_many, (void *)i), 0);
    for (int i = 0; i < threads; i++) pthread_join(running[i], NULL);
    muster_epoch_release(large_epoch);
    lockfree_table_destroy(&large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_checker_refuses_wrong_histories),
        cmocka_unit_test(test_histories_of_the_stack_are_linearizable),
        cmocka_unit_test(test_histories_of_the_queue_are_linearizable),
        cmocka_unit_test(test_histories_of_the_table_are_linearizable),
        cmocka_unit_test(test_buckets_become_tables_while_threads_use_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
