// SPDX-License-Identifier: MIT
// Global memory: locales that are threads with contexts and mappings of their own.
// ctest: quick timeout=120
#include "memory_run.h"

static void meet(member *me) {
    CHECK(muster_group_barrier(me->group, 30 * second, NULL) == MUSTER_OK);
}

// ---- operations

static void use_neighbour(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 1 << 20, .locale_bits = 24};
    muster_memory *const memory = open_memory(me, &config);
    const uint64_t bytes = symmetric(memory, 1000, 0), cells = symmetric(memory, 64, 64),
                   word = symmetric(memory, 8, 8);
    CHECK(bytes % 16 == 0 && cells % 64 == 0 && cells >= bytes + 1000 && word >= cells + 64);
    const uint32_t next = (me->rank + 1) % me->size;
    unsigned char data[1000], back[1000];
    memset(data, 7 + (int)me->rank, sizeof data);
    CHECK(run_one(memory,
                  (muster_memory_operation){.kind = MUSTER_MEMORY_PUT,
                                            .target = at(memory, next, bytes),
                                            .local = data,
                                            .bytes = sizeof data,
                                            .signal = at(memory, next, word),
                                            .value = 5,
                                            .notify = 1},
                  NULL) == MUSTER_OK);
    void *own = NULL;
    CHECK(muster_memory_address(memory, at(memory, me->rank, word), 8, &own) == MUSTER_OK);
    muster_atomic_condition arrived = {
        .cell = own, .value = 5, .size_bytes = 8, .comparison = MUSTER_ATOMIC_GREATER_EQUAL};
    CHECK(muster_atomic_wait(&arrived, 1, 1, 20 * second) == MUSTER_OK);
    CHECK(run_one(memory,
                  (muster_memory_operation){.kind = MUSTER_MEMORY_GET,
                                            .target = at(memory, me->rank, bytes),
                                            .local = back,
                                            .bytes = sizeof back},
                  NULL) == MUSTER_OK);
    for (size_t i = 0; i < sizeof back; i++) CHECK(back[i] == 7 + (me->rank + me->size - 1) % me->size);

    // All add to one word of each kind, on locale 0.
    for (uint32_t kind = MUSTER_MEMORY_WORD64; kind <= MUSTER_MEMORY_WORD32; kind++)
        for (int i = 0; i < 1000; i++)
            CHECK(run_one(memory,
                          (muster_memory_operation){.kind = MUSTER_MEMORY_FETCH,
                                                    .target = at(memory, 0, cells + 8 * kind),
                                                    .cell = kind,
                                                    .operation = MUSTER_ATOMIC_ADD,
                                                    .value = 3,
                                                    .order = MUSTER_ATOMIC_RELAXED},
                          NULL) == MUSTER_OK);
    muster_memory_result seen = {0};
    const muster_memory_operation aba = {.target = at(memory, 0, cells + 16), .cell = MUSTER_MEMORY_ABA};
    for (int i = 0; i < 1000;) {
        muster_memory_operation change = aba;
        change.kind = MUSTER_MEMORY_COMPARE_EXCHANGE;
        change.expected = seen.value, change.expected_count = seen.count, change.value = seen.value + 1;
        const muster_status status = run_one(memory, change, &seen);
        CHECK(status == MUSTER_OK || status == MUSTER_AGAIN);
        if (status == MUSTER_OK) seen.value++, seen.count++, i++;
    }
    meet(me);
    for (uint32_t kind = MUSTER_MEMORY_WORD64; kind <= MUSTER_MEMORY_WORD32; kind++) {
        CHECK(run_one(memory,
                      (muster_memory_operation){
                          .kind = MUSTER_MEMORY_READ, .target = at(memory, 0, cells + 8 * kind), .cell = kind},
                      &seen) == MUSTER_OK);
        CHECK(seen.value == 3000 * me->size);
    }
    muster_memory_operation read = aba;
    read.kind = MUSTER_MEMORY_READ;
    CHECK(run_one(memory, read, &seen) == MUSTER_OK);
    CHECK(seen.value == 1000 * me->size && seen.count == 1000 * me->size);
    meet(me);
    if (me->rank == 1) {
        muster_memory_operation write = aba;
        write.kind = MUSTER_MEMORY_WRITE, write.value = 9, write.notify = 1;
        CHECK(run_one(memory, write, NULL) == MUSTER_OK);
        write.kind = MUSTER_MEMORY_EXCHANGE, write.value = 10;
        CHECK(run_one(memory, write, &seen) == MUSTER_OK);
        CHECK(seen.value == 9 && seen.count == 1000 * me->size + 1);
        muster_memory_operation word32 = {.kind = MUSTER_MEMORY_EXCHANGE,
                                          .target = at(memory, 0, cells + 8),
                                          .cell = MUSTER_MEMORY_WORD32,
                                          .value = 1};
        CHECK(run_one(memory, word32, &seen) == MUSTER_OK && seen.value == 3000 * me->size);
        word32.kind = MUSTER_MEMORY_COMPARE_EXCHANGE, word32.expected = 2, word32.value = 3;
        CHECK(run_one(memory, word32, &seen) == MUSTER_AGAIN && seen.value == 1);
        word32.expected = 1;
        CHECK(run_one(memory, word32, &seen) == MUSTER_OK && seen.value == 1);
        word32.kind = MUSTER_MEMORY_WRITE, word32.expected = 0;
        CHECK(run_one(memory, word32, NULL) == MUSTER_OK);
    }
    uint32_t locale = 0;
    uint64_t offset = 0;
    CHECK(muster_memory_parts(memory, at(memory, 2, 4711), &locale, &offset) == MUSTER_OK);
    CHECK(locale == 2 && offset == 4711);
    CHECK(at(memory, 2, 4711) >> 40 == 2 && at(memory, 2, 4711) - at(memory, 2, 4000) == 711);
    meet(me);
    muster_memory_release(memory);
}

static void test_locales_use_the_memory_of_each_other(void **state) {
    (void)state;
    run_members(3, &(member){0}, use_neighbour);
    run_members(3, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, use_neighbour);
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(3, &(member){0}, use_neighbour);
    memory_flags = 0;
}

// ---- the heap

static void fill_block(muster_memory *memory, muster_gptr block, uint64_t bytes, uint64_t seed) {
    unsigned char data[60000];
    for (uint64_t i = 0; i < bytes; i++) data[i] = (unsigned char)(seed * 31 + i * 7);
    put_bytes(memory, block, data, bytes);
}
static void check_block(muster_memory *memory, muster_gptr block, uint64_t bytes, uint64_t seed) {
    unsigned char data[60000];
    get_bytes(memory, block, data, bytes);
    for (uint64_t i = 0; i < bytes; i++) CHECK(data[i] == (unsigned char)(seed * 31 + i * 7));
}

static void allocate_everywhere(member *me) {
    const muster_memory_config config = {
        .struct_size = sizeof config, .segment_bytes = 1 << 20, .symmetric_bytes = 4096};
    muster_memory *const memory = open_memory(me, &config);
    enum { slots = 100 };
    struct {
        muster_gptr block;
        uint64_t bytes, seed;
    } have[slots] = {0};
    uint64_t random = 88172645463325252u + me->rank, refused = 0;
    for (uint64_t i = 0; i < (memory_flags != 0 ? 4000 : 60000); i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        const uint32_t slot = random % slots;
        if (have[slot].block != 0) {
            check_block(memory, have[slot].block, have[slot].bytes,
                        have[slot].seed); // no other block was written there
            CHECK(muster_memory_free(memory, have[slot].block, -1) == MUSTER_OK);
            have[slot].block = 0;
            continue;
        }
        have[slot].bytes = 1 + (random >> 20) % (random % 50 == 0 ? 60000 : 700);
        have[slot].seed = i;
        const muster_status status =
            muster_memory_allocate(memory, (random >> 40) % me->size, have[slot].bytes, -1, &have[slot].block);
        CHECK(status == MUSTER_OK || status == MUSTER_AGAIN);
        refused += status == MUSTER_AGAIN;
        if (status != MUSTER_OK) continue;
        CHECK(have[slot].block % 16 == 0);
        fill_block(memory, have[slot].block, have[slot].bytes, i);
    }
    for (int i = 0; i < slots; i++) CHECK(muster_memory_free(memory, have[i].block, -1) == MUSTER_OK); // nil, too
    meet(me);
    for (uint32_t r = 0; r < me->size; r++) {
        muster_memory_stats stats;
        CHECK(muster_memory_get_stats(memory, r, -1, &stats) == MUSTER_OK);
        CHECK(stats.used_blocks == 0 && stats.used_bytes == 0 && stats.allocated > 400 && stats.symmetric_bytes == 0);
        CHECK(stats.heap_bytes == (1 << 20) - 4096 && (refused == 0 || stats.refused > 0 || r != me->rank));
    }
    meet(me);
    muster_memory_release(memory);
}

static void test_any_locale_allocates_and_frees_anywhere(void **state) {
    (void)state;
    run_mapped_and_elsewhere(4, allocate_everywhere);
}

static void misuse(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 65536, .symmetric_bytes = 8192};
    muster_memory *const memory = open_memory(me, &config);
    muster_gptr block = 0, other = 0, none = 77;
    CHECK(muster_memory_allocate(memory, 1, 100, -1, &block) == MUSTER_OK);
    CHECK(muster_memory_free(memory, block + 16, -1) == MUSTER_E_ARG); // within it
    CHECK(muster_memory_free(memory, block + 1, -1) == MUSTER_E_ARG);
    CHECK(muster_memory_free(memory, at(memory, 1, 60000), -1) == MUSTER_E_ARG); // never allocated
    CHECK(muster_memory_free(memory, at(memory, 1, 64), -1) == MUSTER_E_ARG);    // symmetric
    CHECK(muster_memory_free(memory, (uint64_t)2 << 48 | 9000, -1) == MUSTER_E_ARG);
    CHECK(muster_memory_free(memory, block, -1) == MUSTER_OK);
    meet(me);
    CHECK(muster_memory_free(memory, block, -1) == MUSTER_E_STALE);
    meet(me); // the block would be another's
    CHECK(muster_memory_allocate(memory, 2, 1, -1, &none) == MUSTER_E_ARG);
    CHECK(muster_memory_allocate(memory, 0, 0, -1, &none) == MUSTER_E_ARG);
    CHECK(muster_memory_allocate(memory, 0, 1 << 20, -1, &none) == MUSTER_E_LIMIT);
    CHECK(muster_memory_allocate(memory, 0, UINT64_MAX, -1, &none) == MUSTER_E_LIMIT);
    CHECK(none == 77);
    CHECK(muster_memory_pointer(memory, 0, 0, &other) == MUSTER_E_ARG);
    CHECK(muster_memory_pointer(memory, 0, 65536, &other) == MUSTER_E_ARG);
    CHECK(muster_memory_pointer(memory, 2, 64, &other) == MUSTER_E_ARG);
    CHECK(muster_memory_parts(memory, 0, NULL, NULL) == MUSTER_E_ARG);
    void *address = NULL;
    const bool is_mapped = memory_flags == 0 || me->rank == 1;
    CHECK(muster_memory_address(memory, at(memory, 1, 65535), 1, &address) ==
          (is_mapped ? MUSTER_OK : MUSTER_E_UNSUPPORTED));
    CHECK(muster_memory_address(memory, at(memory, 1, 65535), 2, &address) == MUSTER_E_ARG);
    CHECK(muster_memory_address(memory, at(memory, 1, 65535), UINT64_MAX, &address) == MUSTER_E_ARG);
    const muster_gptr word = at(memory, 0, 128);
    char bytes[16];
    const muster_memory_operation wrong[] = {
        {.kind = 0, .target = word},
        {.kind = 8, .target = word},
        {.kind = MUSTER_MEMORY_READ},
        {.kind = MUSTER_MEMORY_READ, .target = word + 4},
        {.kind = MUSTER_MEMORY_READ, .target = word, .cell = 3},
        {.kind = MUSTER_MEMORY_READ, .target = word, .order = 3},
        {.kind = MUSTER_MEMORY_READ, .target = word, .local = bytes},
        {.kind = MUSTER_MEMORY_READ, .target = word, .expected = 1},
        {.kind = MUSTER_MEMORY_READ, .target = word + 8, .cell = MUSTER_MEMORY_ABA},
        {.kind = MUSTER_MEMORY_FETCH, .target = word, .cell = MUSTER_MEMORY_ABA},
        {.kind = MUSTER_MEMORY_FETCH, .target = word, .operation = 8},
        {.kind = MUSTER_MEMORY_WRITE, .target = word, .cell = MUSTER_MEMORY_WORD32, .value = (uint64_t)1 << 32},
        {.kind = MUSTER_MEMORY_WRITE, .target = word, .notify = 2},
        {.kind = MUSTER_MEMORY_GET, .target = at(memory, 0, 65530), .local = bytes, .bytes = 16},
        {.kind = MUSTER_MEMORY_GET, .target = word, .bytes = 1},
        {.kind = MUSTER_MEMORY_GET, .target = word, .local = bytes, .bytes = 1, .signal = word},
        {.kind = MUSTER_MEMORY_PUT, .target = word, .local = bytes, .bytes = 1, .value = 1},
        {.kind = MUSTER_MEMORY_PUT, .target = word, .local = bytes, .bytes = 1, .signal = word + 1},
        {.kind = MUSTER_MEMORY_PUT, .target = word, .local = bytes, .bytes = 1, .signal = (uint64_t)9 << 48 | 64},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const muster_status status = run_one(memory, wrong[i], NULL);
        if (status != MUSTER_E_ARG) fprintf(stderr, "operation %zu: %d\n", i, status), abort();
    }
    muster_memory_result seen = {0};
    CHECK(run_one(memory, (muster_memory_operation){.kind = MUSTER_MEMORY_READ, .target = word}, &seen) == MUSTER_OK);
    CHECK(seen.value == 0); // nothing was written
    muster_error error = {0};
    uint64_t offset = 55;
    CHECK(muster_memory_symmetric(memory, 0, 0, second, &offset, &error) == MUSTER_E_ARG);
    CHECK(muster_memory_symmetric(memory, 8, 24, second, &offset, &error) == MUSTER_E_ARG);
    CHECK(muster_memory_symmetric(memory, 9000, 0, 30 * second, &offset, &error) == MUSTER_E_LIMIT);
    CHECK(muster_memory_symmetric(memory, 8 + me->rank, 0, 30 * second, &offset, &error) == MUSTER_E_MISMATCH);
    CHECK(strstr(error.message, "locale 1 allocates 9 bytes") != NULL && offset == 55);
    CHECK(symmetric(memory, 8, 0) == 64); // nothing was given out
    meet(me);
    muster_memory_release(memory);

    // Configurations that are refused, or differ.
    muster_memory *not_made = memory;
    muster_memory_config bad = {.struct_size = sizeof bad, .locale_bits = 33};
    CHECK(muster_memory_open(me->group, &bad, second, &not_made, &error) == MUSTER_E_ARG);
    CHECK(not_made == NULL && strstr(error.message, "locale_bits is 33") != NULL);
    bad = (muster_memory_config){.struct_size = sizeof bad, .segment_bytes = 100};
    CHECK(muster_memory_open(me->group, &bad, second, &not_made, &error) == MUSTER_E_ARG);
    bad = (muster_memory_config){.struct_size = sizeof bad, .segment_bytes = 65536, .symmetric_bytes = 65537};
    CHECK(muster_memory_open(me->group, &bad, second, &not_made, &error) == MUSTER_E_ARG);
    bad = (muster_memory_config){.struct_size = sizeof bad, .segment_bytes = (uint64_t)1 << 46};
    CHECK(muster_memory_open(me->group, &bad, 30 * second, &not_made, &error) ==
          MUSTER_E_NOMEM); // larger than this host
    bad = (muster_memory_config){.struct_size = sizeof bad, .segment_bytes = (me->rank + 1) << 16};
    CHECK(muster_memory_open(me->group, &bad, 30 * second, &not_made, &error) == MUSTER_E_MISMATCH);
    CHECK(error.rank == 1 && strstr(error.message, "locale 1 has segments of 131072 bytes") != NULL);
}

static void overwrite_heads(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 1 << 20};
    muster_memory *const memory = open_memory(me, &config);
    const uint64_t damage[] = {UINT64_MAX, UINT64_MAX - 15, (uint64_t)1 << 40, 1, 16, 8192, (1 << 20) - 16};
    const uint32_t to = me->rank ^ 1;
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++)
        for (uint64_t before = 8; before <= 16; before += 8) { // which block follows; and that it is one
            muster_gptr blocks[2];
            for (int j = 0; j < 2; j++) CHECK(muster_memory_allocate(memory, to, 500, -1, &blocks[j]) == MUSTER_OK);
            for (int j = 0; j < 2; j++) CHECK(muster_memory_free(memory, blocks[j], -1) == MUSTER_OK);
            put_bytes(memory, blocks[1] - before, &damage[i], sizeof damage[i]);
            for (int j = 0; j < 2; j++) CHECK(muster_memory_allocate(memory, to, 500, -1, &blocks[j]) == MUSTER_OK);
            CHECK(blocks[0] != blocks[1]);
        }
    meet(me);
    muster_memory_release(memory);
}
static void test_a_write_in_front_of_a_block_loses_free_blocks_at_most(void **state) {
    (void)state;
    run_mapped_and_elsewhere(2, overwrite_heads);
}

static void test_misuse_is_an_error_and_changes_nothing(void **state) {
    (void)state;
    run_mapped_and_elsewhere(2, misuse);
    assert_int_equal(muster_memory_locale(NULL), UINT32_MAX);
    assert_int_equal(muster_memory_locales(NULL), 0);
    muster_memory_release(NULL);
}

// ---- operations that are begun, and large ones

static muster_completion next_of(muster_queue *queue) {
    muster_completion entry;
    CHECK(muster_queue_next(queue, 30 * second, &entry, NULL) == MUSTER_OK);
    return entry;
}
static muster_status begin_one(muster_memory *memory, muster_memory_operation what, muster_memory_result *out,
                               muster_queue *queue, uint64_t tag) {
    what.struct_size = sizeof what;
    muster_status status;
    while ((status = muster_memory_begin(memory, &what, out, queue, tag)) == MUSTER_AGAIN)
        CHECK(muster_memory_flush(memory, UINT32_MAX, 30 * second) == MUSTER_OK);
    return status;
}

// The second time the pages of both targets exist, and the copies go past the caches.
static void copy_more_than_the_caches_hold(member *me) {
    const uint64_t bytes = 36000013;
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 96 << 20};
    muster_memory *const memory = open_memory(me, &config);
    const uint32_t next = (me->rank + 1) % me->size;
    const uint64_t signal = symmetric(memory, 8, 8);
    muster_gptr block = 0;
    CHECK(muster_memory_allocate(memory, next, bytes, 30 * second, &block) == MUSTER_OK);
    unsigned char *const data = malloc(bytes), *const back = malloc(bytes + 1);
    CHECK(data && back);
    for (uint64_t way = 0; way < 2; way++) {
        for (uint64_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 13 + (i >> 11) + me->rank + way);
        back[bytes] = 77;
        const muster_memory_operation put = {.kind = MUSTER_MEMORY_PUT,
                                             .target = block,
                                             .local = data,
                                             .bytes = bytes,
                                             .signal = at(memory, next, signal),
                                             .value = 1},
                                      get = {.kind = MUSTER_MEMORY_GET, .target = block, .local = back, .bytes = bytes};
        CHECK(run_one(memory, put, NULL) == MUSTER_OK && run_one(memory, get, NULL) == MUSTER_OK);
        CHECK(memcmp(data, back, bytes) == 0 && back[bytes] == 77);
    }
    free(data), free(back);
    CHECK(muster_memory_free(memory, block, 30 * second) == MUSTER_OK);
    meet(me);
    muster_memory_result signals = {0};
    CHECK(run_one(memory, (muster_memory_operation){.kind = MUSTER_MEMORY_READ, .target = at(memory, me->rank, signal)},
                  &signals) == MUSTER_OK);
    CHECK(signals.value == 2);
    meet(me);
    muster_memory_release(memory);
}

static void begin_and_flush(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 16 << 20};
    muster_memory *const memory = open_memory(me, &config);
    muster_queue *queue = NULL;
    CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    const uint32_t next = (me->rank + 1) % me->size;
    muster_memory_locale_info info;
    CHECK(muster_memory_get_locale(memory, next, &info, NULL) == MUSTER_OK);
    CHECK(info.status == MUSTER_OK && info.is_mapped == (memory_flags == 0) && info.requests == 0);
    CHECK(info.node == (memory_flags == 0 ? 0 : next));
    CHECK(muster_memory_get_locale(memory, me->size, &info, NULL) == MUSTER_E_ARG);
    const uint64_t words = symmetric(memory, 8 * 64, 8), signal = symmetric(memory, 8, 8);
    // Without entries, in their order: the last one of each word counts.
    for (uint64_t i = 0; i < 6400; i++)
        CHECK(begin_one(memory,
                        (muster_memory_operation){
                            .kind = MUSTER_MEMORY_WRITE, .target = at(memory, next, words + 8 * (i % 64)), .value = i},
                        NULL, NULL, 0) == MUSTER_OK);
    CHECK(muster_memory_flush(memory, next, 30 * second) == MUSTER_OK);
    for (uint64_t i = 0; i < 64; i++) {
        muster_memory_result seen = {0};
        CHECK(begin_one(memory,
                        (muster_memory_operation){.kind = MUSTER_MEMORY_EXCHANGE,
                                                  .target = at(memory, next, words + 8 * i),
                                                  .value = 1000 + i},
                        &seen, queue, i) == MUSTER_OK);
        const muster_completion entry = next_of(queue);
        CHECK(entry.kind == MUSTER_DONE_MEMORY && entry.status == MUSTER_OK && entry.tag == i);
        CHECK(seen.value == 6400 - 64 + i);
    }
    // An exchange that fails: in the entry, or in the flush.
    muster_memory_result seen = {0};
    const muster_memory_operation change = {
        .kind = MUSTER_MEMORY_COMPARE_EXCHANGE, .target = at(memory, next, words), .value = 1, .expected = 2};
    CHECK(begin_one(memory, change, &seen, queue, 7) == MUSTER_OK && next_of(queue).status == MUSTER_AGAIN);
    CHECK(seen.value == 1000);
    muster_memory_operation wrong = change;
    wrong.cell = 9;
    CHECK(begin_one(memory, wrong, &seen, queue, 7) == MUSTER_E_ARG); // and no entry
    CHECK(muster_memory_flush(memory, UINT32_MAX, 0) == MUSTER_OK);
    CHECK(muster_memory_flush(memory, me->size, 0) == MUSTER_E_ARG);
    // Large ones: called and begun; the signal comes after the bytes.
    const uint64_t bytes = 3333333;
    muster_gptr block = 0;
    CHECK(muster_memory_allocate(memory, next, bytes, 30 * second, &block) == MUSTER_OK);
    unsigned char *const data = malloc(bytes), *const back = malloc(bytes);
    for (int way = 0; way < 2; way++) {
        for (uint64_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 13 + (i >> 11) + me->rank + way);
        memset(back, 0, bytes);
        const muster_memory_operation put = {.kind = MUSTER_MEMORY_PUT,
                                             .target = block,
                                             .local = data,
                                             .bytes = bytes,
                                             .signal = at(memory, next, signal),
                                             .value = 1,
                                             .notify = 1},
                                      get = {.kind = MUSTER_MEMORY_GET, .target = block, .local = back, .bytes = bytes};
        if (way == 0) {
            CHECK(run_one(memory, put, NULL) == MUSTER_OK && run_one(memory, get, NULL) == MUSTER_OK);
        } else {
            CHECK(begin_one(memory, put, NULL, queue, 1) == MUSTER_OK);
            muster_completion entry = next_of(queue);
            CHECK(entry.kind == MUSTER_DONE_MEMORY && entry.status == MUSTER_OK && entry.bytes == bytes);
            CHECK(begin_one(memory, get, NULL, queue, 2) == MUSTER_OK);
            entry = next_of(queue);
            CHECK(entry.status == MUSTER_OK && entry.tag == 2);
        }
        CHECK(memcmp(data, back, bytes) == 0);
    }
    void *own = NULL;
    CHECK(muster_memory_address(memory, at(memory, me->rank, signal), 8, &own) == MUSTER_OK);
    muster_atomic_condition arrived = {
        .cell = own, .value = 2, .size_bytes = 8, .comparison = MUSTER_ATOMIC_GREATER_EQUAL};
    CHECK(muster_atomic_wait(&arrived, 1, 1, 20 * second) == MUSTER_OK);
    // The memory of a copy belongs to the caller again once its queue is closed. The owner may still read what was to
    // be copied from it, so nothing is copied there meanwhile.
    muster_gptr other = 0;
    CHECK(muster_memory_allocate(memory, next, bytes, 30 * second, &other) == MUSTER_OK);
    for (int i = 0; i < 20; i++) {
        muster_queue *soon = NULL;
        unsigned char *const lent = calloc(1, bytes);
        CHECK(muster_queue_create(me->context, NULL, &soon, NULL) == MUSTER_OK);
        CHECK(begin_one(memory,
                        (muster_memory_operation){.kind = i % 2 ? MUSTER_MEMORY_GET : MUSTER_MEMORY_PUT,
                                                  .target = i % 2 ? block : other,
                                                  .local = lent,
                                                  .bytes = bytes},
                        NULL, soon, 1) == MUSTER_OK);
        for (int turn = 0; turn < i * 20; turn++) sched_yield(); // it is stopped at different places
        muster_queue_release(soon);
        memset(lent, 7, bytes);
        for (uint64_t k = 0; k < bytes; k += 4096) CHECK(lent[k] == 7); // nothing is written to it any more
        free(lent);
    }
    CHECK(muster_memory_free(memory, block, 30 * second) == MUSTER_OK);
    CHECK(muster_memory_free(memory, other, 30 * second) == MUSTER_OK);
    meet(me);
    // The last locale leaves; what is not mapped can no longer be used, and its neighbours go on.
    if (me->rank + 1 == me->size) muster_memory_release(memory);
    meet(me);
    if (me->rank + 1 != me->size) {
        const muster_status status = run_one(
            memory, (muster_memory_operation){.kind = MUSTER_MEMORY_READ, .target = at(memory, next, words)}, &seen);
        const bool is_left = next + 1 == me->size && memory_flags != 0;
        CHECK(status == (is_left ? MUSTER_E_ABORTED : MUSTER_OK));
        muster_error error = {0};
        CHECK(muster_memory_get_locale(memory, next, &info, &error) == MUSTER_OK && info.status == status);
        CHECK(muster_memory_allocate(memory, next, 10, 30 * second, &block) == status);
        if (is_left) CHECK(begin_one(memory, change, &seen, queue, 7) == MUSTER_E_ABORTED && error.message_bytes != 0);
    }
    meet(me);
    if (me->rank + 1 != me->size) muster_memory_release(memory);
    free(data), free(back);
    muster_queue_release(queue);
}

static void test_operations_are_begun(void **state) {
    (void)state;
    run_mapped_and_elsewhere(3, begin_and_flush);
}

static void test_copies_larger_than_the_caches(void **state) {
    (void)state;
    run_mapped_and_elsewhere(2, copy_more_than_the_caches_hold);
}

// ---- a stack of nodes on all locales, with epochs

// Until nothing waits on this host.
static void drain(muster_memory *memory, muster_epoch *epoch, muster_epoch_token *token) {
    muster_epoch_stats stats = {.pending = 1};
    for (int i = 0; i < 100000 && stats.pending > 0; i++) {
        CHECK(muster_epoch_synchronize(token, 20 * second, NULL) == MUSTER_OK);
        free_polled(memory, token);
        CHECK(muster_epoch_get_stats(epoch, &stats) == MUSTER_OK);
    }
    CHECK(stats.pending == 0);
}
static void share_a_stack(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 1 << 20};
    muster_memory *const memory = open_memory(me, &config);
    const muster_gptr top = at(memory, 0, symmetric(memory, 8, 8)), sums = at(memory, 0, symmetric(memory, 8, 8));
    muster_epoch *epoch = NULL, *again = NULL;
    muster_epoch_token *token = NULL;
    CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK && muster_memory_epoch(memory, &again) == MUSTER_OK);
    CHECK(epoch == again && muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
    uint64_t pushed = 0, popped = 0, value = 0;
    muster_gptr got;
    for (uint64_t i = 1; i <= (memory_flags != 0 ? 1500 : 20000); i++) {
        if (push(memory, top, (uint32_t)(i % me->size), i)) pushed += i;
        if ((got = pop(memory, top, token, &value)) != 0) {
            popped += value;
            retire(memory, token, got);
        }
        free_polled(memory, token);
    }
    const muster_memory_operation add = {.kind = MUSTER_MEMORY_FETCH, .target = sums, .value = pushed - popped};
    CHECK(run_one(memory, add, NULL) == MUSTER_OK);
    meet(me);
    if (me->rank == 0) {
        muster_memory_result left = {0};
        CHECK(run_one(memory, (muster_memory_operation){.kind = MUSTER_MEMORY_READ, .target = sums}, &left) ==
              MUSTER_OK);
        while ((got = pop(memory, top, token, &value)) != 0) {
            left.value -= value;
            retire(memory, token, got);
        }
        CHECK(left.value == 0); // each value was popped once
    }
    meet(me);
    if (memory_flags != 0) drain(memory, epoch, token);
    if (memory_flags != 0) CHECK(muster_memory_flush(memory, UINT32_MAX, 30 * second) == MUSTER_OK);
    if (me->rank != 0) CHECK(muster_epoch_unregister(token) == MUSTER_OK); // what waits is handed over
    meet(me);
    if (me->rank == 0) {
        drain(memory, epoch, token);
        for (uint32_t r = 0; r < me->size; r++) {
            muster_memory_stats heap;
            CHECK(muster_memory_get_stats(memory, r, -1, &heap) == MUSTER_OK && heap.used_blocks == 0 &&
                  heap.allocated > 0);
        }
        CHECK(muster_epoch_unregister(token) == MUSTER_OK);
    }
    meet(me);
    muster_memory_release(memory);
}

static void test_a_stack_on_all_locales(void **state) {
    (void)state;
    run_members(4, &(member){0}, share_a_stack);
    run_members(1, &(member){0}, share_a_stack);
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(2, &(member){0}, share_a_stack);
    run_members(4, &(member){0}, share_a_stack);
    memory_flags = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locales_use_the_memory_of_each_other),
        cmocka_unit_test(test_any_locale_allocates_and_frees_anywhere),
        cmocka_unit_test(test_misuse_is_an_error_and_changes_nothing),
        cmocka_unit_test(test_a_write_in_front_of_a_block_loses_free_blocks_at_most),
        cmocka_unit_test(test_operations_are_begun),
        cmocka_unit_test(test_copies_larger_than_the_caches),
        cmocka_unit_test(test_a_stack_on_all_locales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
