// SPDX-License-Identifier: MIT
// Random operations of several locales on each other's memory, by messages, from two threads each, so that threads that
// wait for replies read and execute requests of the others. What must hold: a thread's operations on one locale are
// performed in its order, so its own blocks there are always as its model says; no increment of a counter is lost;
// nothing hangs. ctest: quick timeout=150
#include "memory_run.h"
#include "random_run.h"

enum { max_locales = 3, threads_each = 2, block_bytes = 96 * 1024, max_begun = 24 };
enum operation {
    PUT_SMALL,
    PUT_MIDDLE,
    PUT_LARGE,
    GET_SMALL,
    GET_MIDDLE,
    GET_LARGE,
    FETCH,
    EXCHANGE,
    BEGIN_PUT,
    BEGIN_GET,
    BEGIN_FETCH,
    FLUSH,
    ALLOCATE,
    operations
};
static const char *const names[] = {"put small",   "put middle", "put large", "get small", "get middle",
                                    "get large",   "fetch",      "exchange",  "begin put", "begin get",
                                    "begin fetch", "flush",      "allocate"};
typedef struct step {
    enum operation operation;
    uint32_t actor, other, a, b;
} step;
static step steps[max_steps];
static uint32_t locales, actors;
static const char *listen_at;
static const bool *skipped;
static int step_count;

typedef struct actor {
    member *me;
    muster_memory *memory;
    muster_queue *queue;
    uint32_t number;                    // of all
    uint64_t block;                     // offset of its blocks, at each locale
    uint64_t counter;                   // offset of the counters
    unsigned char *shadow[max_locales]; // what its blocks have
    uint64_t added[max_locales];        // to the counters
    struct {
        bool is_used, is_get;
        unsigned char *bytes, *expected; // of a put, or what a get is to find
        uint64_t size;
    } begun[max_begun];
    int under_way;
} actor;

static void end_one(actor *self) {
    muster_completion entry;
    muster_error error;
    CHECK_OK(muster_queue_next(self->queue, 60 * second, &entry, &error), error);
    CHECK(entry.kind == MUSTER_DONE_MEMORY && entry.status == MUSTER_OK && entry.tag < max_begun);
    CHECK(self->begun[entry.tag].is_used);
    if (self->begun[entry.tag].is_get)
        CHECK(memcmp(self->begun[entry.tag].bytes, self->begun[entry.tag].expected, self->begun[entry.tag].size) == 0);
    free(self->begun[entry.tag].bytes);
    free(self->begun[entry.tag].expected);
    self->begun[entry.tag].bytes = self->begun[entry.tag].expected = NULL;
    self->begun[entry.tag].is_used = false;
    self->under_way--;
}
static void begin(actor *self, muster_memory_operation what, const unsigned char *expected) {
    uint64_t tag = 0;
    if (self->under_way == max_begun) end_one(self);
    while (self->begun[tag].is_used) tag++;
    what.struct_size = sizeof what;
    self->begun[tag].is_used = true;
    self->begun[tag].is_get = expected != NULL;
    self->begun[tag].size = what.bytes;
    self->begun[tag].bytes = malloc(what.bytes + 16);
    CHECK(self->begun[tag].bytes != NULL);
    if (what.kind == MUSTER_MEMORY_PUT) memcpy(self->begun[tag].bytes, what.local, what.bytes);
    if (what.kind != MUSTER_MEMORY_FETCH) what.local = self->begun[tag].bytes;
    if (expected != NULL) {
        self->begun[tag].expected = malloc(what.bytes);
        memcpy(self->begun[tag].expected, expected, what.bytes);
    }
    muster_memory_result *const result =
        what.kind == MUSTER_MEMORY_FETCH ? (muster_memory_result *)self->begun[tag].bytes : NULL;
    self->under_way++;
    for (;;) {
        const muster_status status = muster_memory_begin(self->memory, &what, result, self->queue, tag);
        if (status == MUSTER_OK) return;
        CHECK(status == MUSTER_AGAIN); // too many are under way
        if (self->under_way > 1)
            end_one(self);
        else
            sched_yield(); // those of the other thread of this locale
    }
}

static void act(actor *self, const step *s) {
    const uint32_t other = s->other % locales;
    static const uint64_t sizes[] = {64, 3000, 65536, block_bytes}; // a begun copy of more than 64 KiB has no order
    const uint64_t most = sizes[s->operation == PUT_LARGE || s->operation == GET_LARGE     ? 3
                                : s->operation == PUT_SMALL || s->operation == GET_SMALL   ? 0
                                : s->operation == PUT_MIDDLE || s->operation == GET_MIDDLE ? 1
                                                                                           : s->b % 3];
    const uint64_t size = 1 + s->a % most, from = s->b % (block_bytes - size + 1);
    const muster_gptr target = at(self->memory, other, self->block + from);
    unsigned char *const shadow = self->shadow[other] + from;
    muster_memory_result seen = {0};
    muster_memory_operation what = {.target = target, .bytes = size, .local = shadow};
    switch (s->operation) {
    case PUT_SMALL:
    case PUT_MIDDLE:
    case PUT_LARGE:
    case BEGIN_PUT:
        for (uint64_t i = 0; i < size; i++) shadow[i] = (unsigned char)(s->a + i * 7);
        what.kind = MUSTER_MEMORY_PUT;
        if (s->operation == BEGIN_PUT)
            begin(self, what, NULL);
        else
            CHECK(run_one(self->memory, what, NULL) == MUSTER_OK);
        return;
    case GET_SMALL:
    case GET_MIDDLE:
    case GET_LARGE: {
        unsigned char *const found = malloc(size);
        get_bytes(self->memory, target, found, size);
        CHECK(memcmp(found, shadow, size) == 0); // begun puts before it included
        free(found);
        return;
    }
    case BEGIN_GET:
        what.kind = MUSTER_MEMORY_GET;
        begin(self, what, shadow);
        return;
    case FETCH:
    case BEGIN_FETCH:
        what = (muster_memory_operation){
            .kind = MUSTER_MEMORY_FETCH, .target = at(self->memory, other, self->counter), .value = s->a % 100};
        self->added[other] += what.value;
        if (s->operation == BEGIN_FETCH)
            begin(self, what, NULL);
        else
            CHECK(run_one(self->memory, what, &seen) == MUSTER_OK);
        return;
    case EXCHANGE: // an increment by others' values in between
        what = (muster_memory_operation){.kind = MUSTER_MEMORY_READ, .target = at(self->memory, other, self->counter)};
        CHECK(run_one(self->memory, what, &seen) == MUSTER_OK);
        for (;;) {
            const uint64_t expected = seen.value;
            what.kind = MUSTER_MEMORY_COMPARE_EXCHANGE, what.expected = expected, what.value = expected + 1;
            const muster_status status = run_one(self->memory, what, &seen);
            if (status == MUSTER_OK) break;
            CHECK(status == MUSTER_AGAIN && seen.value != expected);
        }
        self->added[other]++;
        return;
    case FLUSH:
        CHECK(muster_memory_flush(self->memory, s->a % 2 ? other : UINT32_MAX, 60 * second) == MUSTER_OK);
        return;
    default: { // in the heap of the other
        muster_gptr made = 0;
        const muster_status status = muster_memory_allocate(self->memory, other, 16 + s->a % 1000, 60 * second, &made);
        if (status == MUSTER_AGAIN) return; // it is full
        CHECK(status == MUSTER_OK);
        put_bytes(self->memory, made, &made, sizeof made);
        uint64_t found = 0;
        get_bytes(self->memory, made, &found, sizeof found);
        CHECK(found == made && muster_memory_free(self->memory, made, 60 * second) == MUSTER_OK);
    }
    }
}

static void *run_actor(void *argument) {
    actor *const self = argument;
    for (int i = 0; i < step_count; i++)
        if (!skipped[i] && steps[i].actor % actors == self->number) act(self, &steps[i]);
    while (self->under_way > 0) end_one(self);
    return NULL;
}

static atomic_ullong added_to[max_locales];
static void be_a_locale(member *me) {
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    muster_memory *const memory =
        open_memory(me, &(muster_memory_config){.struct_size = sizeof(muster_memory_config), .segment_bytes = 4 << 20});
    const uint64_t counter = symmetric(memory, 8, 8);
    const uint64_t blocks = symmetric(memory, (uint64_t)block_bytes * actors, 64);
    actor all[threads_each] = {0};
    pthread_t threads[threads_each];
    CHECK(muster_group_barrier(me->group, 30 * second, NULL) == MUSTER_OK);
    for (uint32_t t = 0; t < threads_each; t++) {
        all[t] = (actor){.me = me, .memory = memory, .number = me->rank * threads_each + t, .counter = counter};
        all[t].block = blocks + (uint64_t)block_bytes * all[t].number;
        CHECK(muster_queue_create(me->context, NULL, &all[t].queue, NULL) == MUSTER_OK);
        for (uint32_t l = 0; l < locales; l++) CHECK((all[t].shadow[l] = calloc(1, block_bytes)) != NULL);
        CHECK(pthread_create(&threads[t], NULL, run_actor, &all[t]) == 0);
    }
    for (uint32_t t = 0; t < threads_each; t++) {
        pthread_join(threads[t], NULL);
        for (uint32_t l = 0; l < locales; l++) {
            atomic_fetch_add(&added_to[l], all[t].added[l]);
            free(all[t].shadow[l]);
        }
        muster_queue_release(all[t].queue);
    }
    CHECK(muster_group_barrier(me->group, 60 * second, NULL) == MUSTER_OK);
    muster_memory_result seen = {0};
    const muster_memory_operation read = {.kind = MUSTER_MEMORY_READ, .target = at(memory, me->rank, counter)};
    CHECK(run_one(memory, read, &seen) == MUSTER_OK);
    CHECK(seen.value == atomic_load(&added_to[me->rank]));
    CHECK(muster_group_barrier(me->group, 60 * second, NULL) == MUSTER_OK);
    muster_memory_release(memory);
}

static void make(uint64_t *state, int i) {
    steps[i] = (step){.operation = next_random(state) % operations,
                      .actor = (uint32_t)next_random(state),
                      .other = (uint32_t)next_random(state),
                      .a = (uint32_t)next_random(state),
                      .b = (uint32_t)next_random(state)};
}
static void run(int count, const bool *left_out) {
    step_count = count;
    skipped = left_out;
    actors = locales * threads_each;
    run_members(locales, &(member){.listen = listen_at}, be_a_locale);
}
static void print(int i) {
    fprintf(stderr, "  { %s, actor %u, other %u, %u, %u }\n", names[steps[i].operation], steps[i].actor, steps[i].other,
            steps[i].a, steps[i].b);
}

static void test_locales_that_ask_each_other(void **state) {
    (void)state;
    const sequence all = {"locales that ask each other", 600, make, run, print};
    static const char *const ways[] = {"tcp://127.0.0.1:0?upgrade=no", "tcp://127.0.0.1:0"};
    for (int i = 0; i < 2; i++)
        for (locales = 2; locales <= max_locales; locales++) {
            listen_at = ways[i];
            if (!run_sequences(&all, 30)) fail_msg("over %s, %u locales: see above", ways[i], locales);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_locales_that_ask_each_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
