// SPDX-License-Identifier: MIT
// The stack and the queue of examples/c/global.h, and the table of global_table.h, are linearizable, over 2, 4 and 8
// locales that share their memory or none of it: each records short histories, and a search looks for an order of
// their operations that a sequential one explains. No node is left in the end. MUSTER_SEED selects the operations.
// ctest: quick timeout=120
// quick timeout=120
#include "examples/c/global_table.h"

#include "linearizable.h"
#include "memory_run.h"

#include <time.h>

enum { max_locales = 8, all_operations = 16, keys = 3 };

// Of all locales, which are threads here: one clock orders the operations.
static struct shared {
    structure what;
    int rounds, nested; // rounds at whose end the bucket was an array
    uint64_t seed;
    _Atomic uint64_t clock, met;
    operation history[all_operations];
} run;

typedef struct places {
    muster_gptr top, head;
    global_table table;
} places;

static void perform(const global *g, const places *at, uint32_t locale, operation *o) {
    uint64_t value = 0;
    int result = 0;
    o->begin = atomic_fetch_add(&run.clock, 1);
    switch (o->kind) {
    case put:
        result = run.what == a_stack ? global_push(g, at->top, locale, o->value)
                                     : global_enqueue(g, at->head, locale, o->value);
        break;
    case take:
        result = run.what == a_stack ? global_pop(g, at->top, &value) : global_dequeue(g, at->head, &value);
        o->result = result == 1 ? value : 0;
        break;
    case insert:
        o->result = (uint64_t)(result = global_insert(g, &at->table, locale, o->value, o->value));
        break;
    case erase:
        o->result = (uint64_t)(result = global_erase(g, &at->table, o->value));
        break;
    case find:
        o->result = (uint64_t)(result = global_find(g, &at->table, o->value, &value));
        break;
    }
    o->end = atomic_fetch_add(&run.clock, 1);
    CHECK(result == 0 || result == 1);
    if (o->kind == put) CHECK(result == 1);
    if (o->kind == find && result == 1) CHECK(value == o->value);
}

static void make_empty(const global *g, const places *at) {
    uint64_t value;
    while (run.what == a_stack && global_pop(g, at->top, &value) == 1) {
    }
    while (run.what == a_queue && global_dequeue(g, at->head, &value) == 1) {
    }
    if (run.what == a_table) {
        muster_gptr bucket;
        CHECK(global_bucket(g, &at->table, 1, &bucket) == MUSTER_OK);
        CHECK(global_read(g, bucket, &value) == MUSTER_OK);
        run.nested += (value & global_nested) != 0;
        global_table_clear(g, &at->table);
    }
}

// Each thread has mapped the memory of the group at an address of its own, so a sanitizer does not see what a barrier
// orders: these two do.
static void meet(member *me) {
    atomic_fetch_add(&run.met, 1);
    CHECK(muster_group_barrier(me->group, 60 * second, NULL) == MUSTER_OK);
    atomic_load(&run.met);
}

static void take_part(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 1 << 18};
    global g = {.memory = open_memory(me, &config), .timeout_ns = 30 * second};
    muster_epoch *epoch = NULL;
    if (me->rank % 2 == 0) CHECK(muster_memory_get_view(g.memory, &g.view) == MUSTER_OK); // the others make calls
    CHECK(muster_memory_epoch(g.memory, &epoch) == MUSTER_OK);
    CHECK(muster_epoch_register(epoch, &g.token, NULL) == MUSTER_OK);
    places at_all = {.table = {.buckets = 1, .nest_at = 1}}; // an array in each round, and arrays in it
    at_all.top = at(g.memory, me->size - 1, symmetric(g.memory, 8, 8));
    at_all.head = at(g.memory, 0, symmetric(g.memory, 16, 16));
    at_all.table.offset = symmetric(g.memory, 8 * at_all.table.buckets, 8);
    const int each = all_operations / (int)me->size;
    uint64_t random = run.seed * 6364136223846793005ULL + me->rank * 1442695040888963407ULL + 1;
    if (me->rank == 0 && run.what == a_queue) CHECK(global_queue_make(&g, at_all.head, 0) == 0);
    for (int round = 0; round < run.rounds; round++) {
        operation *const own = &run.history[(int)me->rank * each];
        for (int i = 0; i < each; i++) {
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            const uint64_t pick = random >> 33;
            own[i] = (operation){.kind = run.what == a_table ? (enum kind)(insert + pick % 3) : (enum kind)(pick % 2),
                                 .value = run.what == a_table ? 1 + pick / 3 % keys
                                                              : (uint64_t)(1 + (int)me->rank * each + i)};
        }
        meet(me);
        for (int i = 0; i < each; i++) perform(&g, &at_all, (me->rank + (uint32_t)i) % me->size, &own[i]);
        CHECK(muster_memory_reclaim(g.memory, g.token, 1000, 0, NULL) >= 0);
        meet(me);
        if (me->rank == 0) {
            check_history(run.what, run.history, each * (int)me->size);
            make_empty(&g, &at_all);
        }
        meet(me); // the next round begins with an empty one
    }
    // What was retired is freed, and then no node is left but that of the empty queue.
    meet(me);
    for (int i = 0; i < 3; i++) {
        CHECK(muster_epoch_synchronize(g.token, 30 * second, NULL) == MUSTER_OK);
        CHECK(muster_memory_reclaim(g.memory, g.token, UINT32_MAX, 0, NULL) == MUSTER_OK);
    }
    CHECK(muster_memory_flush(g.memory, UINT32_MAX, 30 * second) == MUSTER_OK);
    CHECK(muster_epoch_unregister(g.token) == MUSTER_OK);
    meet(me);
    if (me->rank == 0) {
        uint64_t left = 0;
        for (uint32_t r = 0; r < me->size; r++) {
            muster_memory_stats stats;
            CHECK(muster_memory_get_stats(g.memory, r, 30 * second, &stats) == MUSTER_OK);
            left += stats.used_blocks;
        }
        CHECK(left == (run.what == a_queue));
    }
    meet(me);
    muster_memory_release(g.memory);
}

static void record(structure what) {
    const char *const seed = getenv("MUSTER_SEED");
    run.what = what;
    run.nested = 0;
    run.seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("MUSTER_SEED=%llu\n", (unsigned long long)run.seed);
    fflush(stdout);
    for (uint32_t locales = 2; locales <= max_locales; locales *= 2) {
        memory_flags = 0;
        run.rounds = 1000;
        run_members(locales, &(member){0}, take_part);
        memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
        run.rounds = 150;
        run_members(locales, &(member){0}, take_part);
    }
    memory_flags = 0;
    if (what == a_table) CHECK(run.nested > 100);
}
static void test_histories_of_the_stack(void **state) {
    (void)state, record(a_stack);
}
static void test_histories_of_the_queue(void **state) {
    (void)state, record(a_queue);
}
static void test_histories_of_the_table(void **state) {
    (void)state, record(a_table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histories_of_the_stack),
        cmocka_unit_test(test_histories_of_the_queue),
        cmocka_unit_test(test_histories_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
