// SPDX-License-Identifier: MIT
// A locale is killed, and a successor takes its rank in the next group: generation after generation. Pointers of every
// earlier memory are STALE in the next one, for all calls, at survivors and at the successor, whose own pointers work.
// MUSTER_SEED selects the ranks that are killed.
// ctest: quick timeout=60
#include "memory_run.h"

#include <sys/wait.h>
#include <time.h>

enum { locales = 3, generations = 5 };

typedef struct old_pointers {
    muster_gptr list[generations * locales];
    uint32_t count;
} old_pointers;

static void expect_stale(muster_memory *memory, muster_epoch_token *token, muster_gptr old) {
    uint64_t bytes[4] = {0};
    void *address = NULL;
    uint64_t offset = 0;
    uint32_t locale = 0;
    CHECK(muster_memory_parts(memory, old, &locale, &offset) == MUSTER_E_STALE);
    CHECK(muster_memory_address(memory, old, 8, &address) == MUSTER_E_STALE && address == NULL);
    CHECK(muster_memory_free(memory, old, 10 * second) == MUSTER_E_STALE);
    const muster_memory_operation all[] = {
        {.kind = MUSTER_MEMORY_READ, .target = old},
        {.kind = MUSTER_MEMORY_WRITE, .target = old, .value = 1},
        {.kind = MUSTER_MEMORY_FETCH, .target = old, .value = 1},
        {.kind = MUSTER_MEMORY_COMPARE_EXCHANGE, .target = old, .cell = MUSTER_MEMORY_ABA, .value = 1},
        {.kind = MUSTER_MEMORY_PUT, .target = old, .local = bytes, .bytes = sizeof bytes},
        {.kind = MUSTER_MEMORY_GET, .target = old, .local = bytes, .bytes = sizeof bytes},
        {.kind = MUSTER_MEMORY_PUT,
         .target = at(memory, (uint32_t)(old >> 48), 64),
         .local = bytes,
         .bytes = 8,
         .signal = old,
         .value = 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(run_one(memory, all[i], NULL) == MUSTER_E_STALE);
        muster_memory_operation begun = all[i];
        begun.struct_size = sizeof begun;
        CHECK(muster_memory_begin(memory, &begun, NULL, NULL, 0) == MUSTER_E_STALE);
    }
    uint32_t freed = 0;
    CHECK(muster_epoch_retire(token, old) == MUSTER_OK);
    muster_status status = MUSTER_OK;
    while (freed == 0) { // its time comes when all locales have seen two epochs
        status = muster_memory_reclaim(memory, token, 1, 0, &freed);
        CHECK(status == MUSTER_OK || status == MUSTER_AGAIN || status == MUSTER_E_STALE);
        sched_yield();
    }
    CHECK(status == MUSTER_E_STALE);
}

static uint64_t next_random(uint64_t random) {
    return random * 2862933555777941757u + 3037000493u;
}
static uint32_t victim_of(uint64_t random, uint32_t generation) {
    while (generation-- > 0) random = next_random(random);
    return (uint32_t)(next_random(random) >> 40) % locales;
}

static void live(member *me, uint64_t random, uint32_t generation) {
    old_pointers old = {.count = 0};
    muster_error error = {0};
    for (; generation < generations; generation++) {
        char name[32];
        const muster_group_config config = {.struct_size = sizeof config,
                                            .rank = me->rank,
                                            .size = locales,
                                            .store = me->store,
                                            .name = name,
                                            .name_bytes = (uint64_t)snprintf(name, sizeof name, "group %u", generation),
                                            .listen = me->listen,
                                            .listen_bytes = strlen(me->listen)};
        CHECK_OK(muster_group_open(me->context, &config, 30 * second, &me->group, &error), error);
        const muster_memory_config sizes = {.struct_size = sizeof sizes, .segment_bytes = 1 << 20};
        muster_memory *const memory = open_memory(me, &sizes);
        const uint64_t given = symmetric(memory, 8 * generations * locales, 8);
        muster_epoch *epoch = NULL;
        muster_epoch_token *token = NULL;
        CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK);
        CHECK(muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
        // A survivor hands what it has kept to the others, of which one is new.
        for (uint32_t i = 0; i < old.count; i++)
            for (uint32_t to = 0; to < locales; to++)
                CHECK(run_one(memory,
                              (muster_memory_operation){.kind = MUSTER_MEMORY_WRITE,
                                                        .target = at(memory, to, given + 8 * i),
                                                        .value = old.list[i]},
                              NULL) == MUSTER_OK);
        CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error);
        muster_memory_result seen = {0};
        old.count = generation * locales;
        for (uint32_t i = 0; i < old.count; i++) {
            const muster_memory_operation read = {.kind = MUSTER_MEMORY_READ,
                                                  .target = at(memory, me->rank, given + 8 * i)};
            CHECK(run_one(memory, read, &seen) == MUSTER_OK && seen.value != 0);
            old.list[i] = seen.value;
        }
        for (uint32_t i = 0; i < old.count; i++) expect_stale(memory, token, old.list[i]);
        // Nothing was changed, and what is new works everywhere.
        for (uint32_t to = 0; to < locales; to++) {
            muster_gptr made = 0;
            CHECK(muster_memory_allocate(memory, to, 64, 10 * second, &made) == MUSTER_OK);
            CHECK(run_one(memory, (muster_memory_operation){.kind = MUSTER_MEMORY_WRITE, .target = made, .value = 7},
                          NULL) == MUSTER_OK);
            CHECK(run_one(memory, (muster_memory_operation){.kind = MUSTER_MEMORY_READ, .target = made}, &seen) ==
                      MUSTER_OK &&
                  seen.value == 7);
            // The same ones at all survivors: those of the lowest rank that stays.
            const uint32_t victim = victim_of(random, generation), giver = victim == 0 ? 1 : 0;
            if (me->rank == giver)
                for (uint32_t r = 0; r < locales; r++)
                    CHECK(run_one(memory,
                                  (muster_memory_operation){.kind = MUSTER_MEMORY_WRITE,
                                                            .target = at(memory, r, given + 8 * (old.count + to)),
                                                            .value = made},
                                  NULL) == MUSTER_OK);
        }
        CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error);
        for (uint32_t i = 0; i < locales; i++) {
            CHECK(run_one(memory,
                          (muster_memory_operation){.kind = MUSTER_MEMORY_READ,
                                                    .target = at(memory, me->rank, given + 8 * old.count)},
                          &seen) == MUSTER_OK);
            old.list[old.count++] = seen.value;
        }
        CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error);
        if (me->rank == victim_of(random, generation)) {
            kill(getpid(), SIGKILL);
            pause();
        }
        const muster_status ended = muster_group_barrier(me->group, 30 * second, &error);
        CHECK(ended == MUSTER_E_PEER || ended == MUSTER_E_ABORTED);
        CHECK(muster_epoch_unregister(token) == MUSTER_OK);
        muster_memory_release(memory);
        muster_group_release(me->group);
    }
    _exit(0);
}

typedef struct life {
    uint64_t random;
    uint32_t first; // generation
} life;

static void live_on(member *me, const void *argument) {
    const life *const own = argument;
    live(me, own->random, own->first);
}
static pid_t start_locale(uint32_t rank, int urls, uint64_t random, uint32_t generation) {
    const life own = {random, generation};
    return start_member_process(rank, locales, urls, live_on, &own);
}

// All processes are forked before this one has threads; successors wait until they are needed.
static void run_generations(uint64_t random) {
    int first[locales][2], next[generations][2];
    pid_t children[locales], successors[generations];
    for (uint32_t r = 0; r < locales; r++) {
        CHECK(pipe(first[r]) == 0);
        children[r] = start_locale(r, first[r][0], random, 0);
    }
    for (uint32_t g = 0; g + 1 < generations; g++) {
        CHECK(pipe(next[g]) == 0);
        successors[g] = start_locale(victim_of(random, g), next[g][0], random, g + 1);
    }
    member server = {0};
    muster_store_server *store = NULL;
    char url[256];
    const size_t size = serve_store(&server, &store, url);
    for (uint32_t r = 0; r < locales; r++) CHECK(write(first[r][1], url, size + 1) == (ssize_t)size + 1);
    int status;
    for (uint32_t g = 0; g < generations; g++) {
        const uint32_t victim = victim_of(random, g);
        CHECK(waitpid(children[victim], &status, 0) == children[victim]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        children[victim] = 0;
        if (g + 1 == generations) break;
        children[victim] = successors[g];
        CHECK(write(next[g][1], url, size + 1) == (ssize_t)size + 1);
    }
    for (uint32_t r = 0; r < locales; r++)
        if (children[r] != 0) CHECK(waitpid(children[r], &status, 0) == children[r] && status == 0);
    stop_store(&server, store);
    _exit(0);
}

static void test_pointers_of_an_earlier_memory_are_stale(void **state) {
    (void)state;
    const char *const given = getenv("MUSTER_SEED");
    const uint64_t random = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("MUSTER_SEED=%llu\n", (unsigned long long)random);
    for (int round = 0; round < 2; round++) {
        memory_flags = round % 2 ? MUSTER_MEMORY_NO_SHARED_MEMORY : 0;
        fflush(NULL);
        const pid_t runner = fork();
        if (runner == 0) run_generations(random);
        int status;
        assert_int_equal(waitpid(runner, &status, 0), runner);
        assert_int_equal(status, 0);
    }
}

static void use_pointers_of_two_memories(member *me) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 65536, .incarnation_bits = 2};
    muster_memory *memories[4];
    muster_gptr words[4];
    muster_error error = {0};
    muster_memory_view view;
    for (uint32_t i = 0; i < 4; i++) {
        memories[i] = open_memory(me, &config);
        words[i] = at(memories[i], me->rank, 64);
        CHECK(muster_memory_get_view(memories[i], &view) == MUSTER_OK && view.offset_bits == 48);
        void *address = NULL;
        CHECK(muster_memory_address(memories[i], words[i] + 8, 8, &address) == MUSTER_OK);
        CHECK(muster_memory_at_inline(&view, words[i] + 8) == address);
    }
    // Three incarnations; then the first one comes again, as documented.
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            CHECK(muster_memory_parts(memories[i], words[k], NULL, NULL) ==
                  (i % 3 == k % 3 ? MUSTER_OK : MUSTER_E_STALE));
    CHECK(muster_memory_parts(memories[0], words[1] + 65536, NULL, NULL) == MUSTER_E_ARG); // outside of both
    CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error);
    for (uint32_t i = 0; i < 4; i++) muster_memory_release(memories[i]);

    // What does not fit, and what leaves no bits.
    muster_memory *memory = NULL;
    muster_memory_config bad = config;
    for (uint32_t bits = 1; bits <= 17; bits += 16) {
        bad.incarnation_bits = bits;
        CHECK(muster_memory_open(me->group, &bad, second, &memory, &error) == MUSTER_E_ARG && memory == NULL);
        CHECK(strstr(error.message, "incarnation_bits is") != NULL);
    }
    bad.incarnation_bits = 16;
    bad.locale_bits = 32;
    CHECK(muster_memory_open(me->group, &bad, second, &memory, &error) == MUSTER_E_ARG); // 64 KiB need more than 16
    bad.incarnation_bits = 2 + me->rank;
    CHECK(muster_memory_open(me->group, &bad, 30 * second, &memory, &error) == MUSTER_E_MISMATCH);
    CHECK(strstr(error.message, "3 for the incarnation") != NULL);
    const muster_memory_config full = {
        .struct_size = sizeof full, .segment_bytes = 65536 - 4096 + 65536, .locale_bits = 32};
    memory = open_memory(me, &full);
    CHECK(muster_memory_parts(memory, at(memory, 1, 64), NULL, NULL) == MUSTER_OK);
    CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error);
    muster_memory_release(memory);
}

static void test_memories_that_exist_at_the_same_time_differ(void **state) {
    (void)state;
    run_members(2, &(member){0}, use_pointers_of_two_memories);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pointers_of_an_earlier_memory_are_stale),
                                       cmocka_unit_test(test_memories_that_exist_at_the_same_time_differ)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
