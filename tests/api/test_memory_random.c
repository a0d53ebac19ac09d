// SPDX-License-Identifier: MIT
// Random sequences of allocations, frees, right and wrong ones, and operations on blocks, each compared with a model.
// What must hold: blocks never overlap, and keep their bytes; what is no block is refused; the counters agree.
// ctest: quick timeout=120
#include "memory_run.h"
#include "random_run.h"

enum { max_blocks = 60, heap_bytes = (1 << 17) - 4096 };
enum operation { ALLOCATE, FREE, FREE_AGAIN, FREE_INSIDE, PUT, GET, FETCH, operations };

typedef struct step {
    enum operation operation;
    uint32_t a, b, c;
} step;
static step steps[max_steps];

typedef struct block {
    muster_gptr at;
    uint64_t bytes;
    unsigned char *shadow; // what its bytes are
} block;
static block blocks[max_blocks];
static int live, current = -1;
static muster_gptr freed_last; // not allocated again since
static muster_memory *memory;

#define NEED(condition, one, two)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "step %d: %s (%llu, %llu)\n", current, #condition, (unsigned long long)(one),              \
                    (unsigned long long)(two));                                                                        \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void allocate(uint64_t bytes) {
    muster_gptr made = 0;
    if (live == max_blocks) return;
    const muster_status status = muster_memory_allocate(memory, 0, bytes, -1, &made);
    if (status == MUSTER_AGAIN) {
        muster_memory_stats stats;
        NEED(muster_memory_get_stats(memory, 0, -1, &stats) == MUSTER_OK, 0, 0);
        NEED(stats.fresh_bytes < 2 * bytes + 256, stats.fresh_bytes, bytes); // there was no room indeed
        return;
    }
    NEED(status == MUSTER_OK, status, bytes);
    NEED(made % (bytes >= 1024 ? 64 : 16) == 0, made, bytes);
    uint64_t offset = 0;
    NEED(muster_memory_parts(memory, made, NULL, &offset) == MUSTER_OK, made, bytes);
    NEED(offset >= 4096 && offset + bytes <= 4096 + heap_bytes, offset, bytes);
    for (int i = 0; i < live; i++)
        NEED(made + bytes <= blocks[i].at || blocks[i].at + blocks[i].bytes <= made, made, blocks[i].at);
    void *address = NULL;
    NEED(muster_memory_address(memory, made, bytes, &address) == MUSTER_OK, made, bytes);
    blocks[live] = (block){made, bytes, malloc(bytes)};
    memset(blocks[live].shadow, current, bytes);
    memset(address, current, bytes);
    live++;
    if (made == freed_last) freed_last = 0;
}

static void check_bytes(const block *b) {
    unsigned char *const now = malloc(b->bytes);
    const muster_memory_operation get = {.kind = MUSTER_MEMORY_GET, .target = b->at, .local = now, .bytes = b->bytes};
    NEED(run_one(memory, get, NULL) == MUSTER_OK, b->at, b->bytes);
    NEED(memcmp(now, b->shadow, b->bytes) == 0, b->at, b->bytes);
    free(now);
}

static void one_step(const step *s) {
    block *const b = live == 0 ? NULL : &blocks[s->a % (uint32_t)live];
    if (s->operation == ALLOCATE) {
        allocate(1 + (s->c % 20 == 0 ? s->b * 37 : s->b) % 30000);
    } else if (s->operation == FREE_AGAIN) {
        if (freed_last != 0) NEED(muster_memory_free(memory, freed_last, -1) == MUSTER_E_STALE, freed_last, 0);
    } else if (b == NULL) {
        return;
    } else if (s->operation == FREE) {
        check_bytes(b);
        NEED(muster_memory_free(memory, b->at, -1) == MUSTER_OK, b->at, b->bytes);
        freed_last = b->at;
        free(b->shadow);
        *b = blocks[--live];
    } else if (s->operation == FREE_INSIDE) {
        if (b->bytes > 1)
            NEED(muster_memory_free(memory, b->at + 1 + s->b % (b->bytes - 1), -1) == MUSTER_E_ARG, b->at, s->b);
    } else if (s->operation == PUT) {
        const uint64_t from = s->b % b->bytes, bytes = 1 + s->c % (b->bytes - from);
        memset(b->shadow + from, (int)s->c, bytes);
        const muster_memory_operation put = {
            .kind = MUSTER_MEMORY_PUT, .target = b->at + from, .local = b->shadow + from, .bytes = bytes};
        NEED(run_one(memory, put, NULL) == MUSTER_OK, from, bytes);
    } else if (s->operation == GET) {
        check_bytes(b);
    } else if (b->bytes >= 8) {
        const uint64_t from = s->b % (b->bytes / 8) * 8;
        uint64_t before;
        memcpy(&before, b->shadow + from, 8);
        const uint64_t after = before + s->c;
        memcpy(b->shadow + from, &after, 8);
        muster_memory_result seen = {0};
        const muster_memory_operation add = {
            .kind = MUSTER_MEMORY_FETCH, .target = b->at + from, .operation = MUSTER_ATOMIC_ADD, .value = s->c};
        NEED(run_one(memory, add, &seen) == MUSTER_OK && seen.value == before, seen.value, before);
    }
    uint64_t sum = 0;
    for (int i = 0; i < live; i++) sum += blocks[i].bytes;
    muster_memory_stats stats;
    NEED(muster_memory_get_stats(memory, 0, -1, &stats) == MUSTER_OK, 0, 0);
    NEED(stats.used_blocks == (uint64_t)live && stats.used_bytes >= sum && stats.used_bytes <= heap_bytes,
         stats.used_blocks, stats.used_bytes);
}

static void run(int count, const bool *left_out) {
    muster_error error = {0};
    member me = {.size = 1};
    make_member_context(&me);
    const muster_group_config alone = {.struct_size = sizeof alone, .size = 1};
    CHECK_OK(muster_group_open(me.context, &alone, 30 * second, &me.group, &error), error);
    const muster_memory_config config = {
        .struct_size = sizeof config, .segment_bytes = 1 << 17, .symmetric_bytes = 4096};
    memory = open_memory(&me, &config);
    for (current = 0; current < count; current++)
        if (!left_out[current]) one_step(&steps[current]);
    while (live > 0) one_step(&(step){.operation = FREE});
    muster_memory_release(memory);
    muster_group_release(me.group);
    CHECK(muster_context_close(me.context, 10 * second) == MUSTER_OK);
    muster_context_release(me.context);
}

static void make_step(uint64_t *state, int i) {
    static const enum operation often[] = {ALLOCATE,   ALLOCATE,    ALLOCATE, FREE, FREE,
                                           FREE_AGAIN, FREE_INSIDE, PUT,      GET,  FETCH};
    steps[i] = (step){.operation = often[next_random(state) % (sizeof often / sizeof *often)],
                      .a = (uint32_t)(next_random(state) % 1000),
                      .b = (uint32_t)(next_random(state) % 1000),
                      .c = (uint32_t)(next_random(state) % 1000)};
}

static void print_step(int i) {
    static const char *const names[operations] = {"allocate", "free", "free again", "free inside",
                                                  "put",      "get",  "fetch"};
    fprintf(stderr, "  %d: %s a %u b %u c %u\n", i, names[steps[i].operation], steps[i].a, steps[i].b, steps[i].c);
}

static void test_a_heap_and_its_blocks(void **state) {
    (void)state;
    const sequence all = {.name = "a heap", .count = 1000, .make = make_step, .run = run, .print = print_step};
    if (!run_sequences(&all, 100)) fail_msg("see above");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_heap_and_its_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
