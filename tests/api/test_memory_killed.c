// SPDX-License-Identifier: MIT
// Processes share a stack in global memory, and two of them are killed at any moment. The others go on, nothing is
// popped or freed twice, and a kill loses no more than what the process had just taken. The same with locales that
// share no memory, where a killed one also takes what it had deferred with it. MUSTER_SEED selects the moments, and
// with MUSTER_SECONDS rounds are added until that time is over.
// ctest: full timeout=120
#include "memory_run.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { locales = 4, each = 60000, each_elsewhere = 2000 };

// Of each locale of the round, in memory of all: what it has taken, and what it has not freed of that, as far as the
// owners have confirmed it.
static _Atomic uint64_t *deferred;

static void *die_later(void *random) {
    const uint64_t wait_ns = 1000000 + (uintptr_t)random % 60000000;
    nanosleep(&(struct timespec){0, (long)wait_ns}, NULL); // the moment is what is random
    kill(getpid(), SIGKILL);
    return NULL;
}

// With locales that share no memory, what is on a killed one is gone: nodes are on the others then.
static uint32_t place(uint64_t i) {
    return memory_flags == 0 ? (uint32_t)(i % locales) : i % 2 == 0 ? 0 : 3;
}
static uint64_t values(void) {
    return memory_flags == 0 ? each : each_elsewhere;
}

static void await_end(muster_memory *memory, uint32_t locale) {
    muster_memory_locale_info info = {.status = MUSTER_OK};
    for (const time_t limit = time(NULL) + 20; info.status == MUSTER_OK && time(NULL) < limit; sched_yield())
        CHECK(muster_memory_get_locale(memory, locale, &info, NULL) == MUSTER_OK);
    CHECK(info.status == MUSTER_E_PEER);
}

// Frees until no other locale has a token, and no more than so many objects wait; gives up after a time.
static muster_epoch_stats reclaim_until(muster_memory *memory, muster_epoch *epoch, muster_epoch_token *token,
                                        uint64_t most_pending) {
    muster_epoch_stats stats;
    const time_t limit = time(NULL) + 20;
    do {
        free_polled(memory, token);
        CHECK(muster_epoch_get_stats(epoch, &stats) == MUSTER_OK);
    } while ((stats.pending > most_pending || stats.tokens > 1) && time(NULL) < limit);
    return stats;
}

static void use_stack(member *me, uint64_t random) {
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 4 << 20};
    muster_memory *const memory = open_memory(me, &config);
    const muster_gptr top = at(memory, 0, symmetric(memory, 8, 8)), done = at(memory, 0, symmetric(memory, 8, 8));
    // How often a value was popped, and whether the first locale has finished.
    const uint64_t seen_at = symmetric(memory, 4 * (uint64_t)each * (memory_flags == 0 ? 1 : 2), 4),
                   finished = symmetric(memory, 8, 8);
    muster_epoch *epoch = NULL;
    muster_epoch_token *token = NULL;
    CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK);
    CHECK(muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
    CHECK(muster_group_barrier(me->group, 30 * second, NULL) == MUSTER_OK);
    const bool dies = me->rank == 1 || me->rank == 2;
    pthread_t killer;
    if (dies) CHECK(pthread_create(&killer, NULL, die_later, (void *)(uintptr_t)random) == 0);
    uint64_t value = 0, taken = 0, confirmed = 0;
    muster_gptr got;
    for (uint64_t i = 0; i < values() || dies; i++) {
        const bool makes = i < values() && push(memory, top, place(i), me->rank * (uint64_t)each + i);
        if (makes && i % 16 == 0) continue; // the stack grows
        if ((got = pop(memory, top, token, &value)) != 0) {
            CHECK(value < locales * (uint64_t)each);
            muster_memory_result before = {0};
            const uint64_t by = value / each;
            const uint64_t word =
                seen_at + 4 * (value % each) + (memory_flags != 0 && by >= 2 ? 4 * (uint64_t)each : 0);
            CHECK(run_one(memory,
                          (muster_memory_operation){.kind = MUSTER_MEMORY_FETCH,
                                                    .target = at(memory,
                                                                 memory_flags == 0 ? (uint32_t)by
                                                                 : by % 2 == 0     ? 0
                                                                                   : 3,
                                                                 word),
                                                    .cell = MUSTER_MEMORY_WORD32,
                                                    .value = 1},
                          &before) == MUSTER_OK);
            CHECK(before.value == 0); // never popped twice
            atomic_store(&deferred[me->rank], ++taken - confirmed);
            retire(memory, token, got);
        }
        free_polled(memory, token);
        // What was freed is with its owners when all requests have replies.
        muster_epoch_stats own;
        CHECK(muster_epoch_get_stats(epoch, &own) == MUSTER_OK);
        if (memory_flags != 0 && i % 8 == 7 && muster_memory_flush(memory, UINT32_MAX, 0) == MUSTER_OK) {
            confirmed = taken - own.pending;
            atomic_store(&deferred[me->rank], own.pending);
        }
    }
    CHECK(run_one(memory,
                  (muster_memory_operation){.kind = MUSTER_MEMORY_FETCH, .target = done, .value = 1, .notify = 1},
                  NULL) == MUSTER_OK);
    void *cell = NULL;
    if (me->rank != 0 && memory_flags != 0) { // its segment is used until the first locale has finished
        CHECK(muster_memory_address(memory, at(memory, me->rank, finished), 8, &cell) == MUSTER_OK);
        muster_atomic_condition end = {.cell = cell, .value = 1, .size_bytes = 8, .comparison = MUSTER_ATOMIC_EQUAL};
        CHECK(muster_atomic_wait(&end, 1, 1, 60 * second) == MUSTER_OK);
    }
    if (me->rank != 0) _exit(0);
    CHECK(muster_memory_address(memory, done, 8, &cell) == MUSTER_OK);
    muster_atomic_condition others = {.cell = cell, .value = 2, .size_bytes = 8, .comparison = MUSTER_ATOMIC_EQUAL};
    CHECK(muster_atomic_wait(&others, 1, 1, 60 * second) == MUSTER_OK); // the killed ones block no other
    // A locale that is killed late pushes until then.
    for (uint32_t r = 1; r <= 2 && memory_flags != 0; r++) await_end(memory, r);
    reclaim_until(memory, epoch, token, UINT64_MAX);
    while ((got = pop(memory, top, token, &value)) != 0) retire(memory, token, got);
    const muster_epoch_stats stats = reclaim_until(memory, epoch, token, 0);
    if (memory_flags != 0) CHECK(muster_memory_flush(memory, 3, 30 * second) == MUSTER_OK);
    uint64_t lost = 0;
    for (uint32_t r = 0; r < locales; r++) {
        muster_memory_stats heap;
        muster_memory_locale_info info;
        CHECK(muster_memory_get_locale(memory, r, &info, NULL) == MUSTER_OK);
        if (!info.is_mapped && r != 3) {
            CHECK(info.status == MUSTER_E_PEER);
            CHECK(muster_memory_get_stats(memory, r, 10 * second, &heap) == MUSTER_E_PEER);
            continue;
        }
        CHECK(muster_memory_get_stats(memory, r, -1, &heap) == MUSTER_OK);
        lost += heap.used_blocks;
    }
    printf("%u tokens of killed processes, %u registered, %llu objects wait, %llu nodes lost\n", stats.deaths,
           stats.tokens, (unsigned long long)stats.pending, (unsigned long long)lost);
    fflush(stdout);
    CHECK(stats.pending == 0); // the epoch goes on
    if (memory_flags == 0)
        CHECK(stats.deaths >= 2 && lost <= 2 * (4 + 2)); // of each kill: polled, popped, made
    else
        // And deferred; of the locale that has ended before this one, too.
        CHECK(lost <= atomic_load(&deferred[1]) + atomic_load(&deferred[2]) + atomic_load(&deferred[3]) + 3 * 6);
    if (memory_flags != 0) {
        const muster_memory_operation write = {
            .kind = MUSTER_MEMORY_WRITE, .target = at(memory, 3, finished), .value = 1, .notify = 1};
        const muster_status written = run_one(memory, write, NULL);
        CHECK(written == MUSTER_OK || written == MUSTER_E_PEER); // it may end before its library has replied
    }
    muster_error error;
    uint64_t offset;
    const muster_status refused = muster_memory_symmetric(memory, 8, 8, 10 * second, &offset, &error);
    CHECK(refused == MUSTER_E_PEER || refused == MUSTER_E_ABORTED); // the group has failed
    CHECK(muster_epoch_unregister(token) == MUSTER_OK);
    muster_memory_release(memory);
    fflush(NULL);
    _exit(0);
}

static void open_and_use(member *me, const void *random) {
    muster_error error = {0};
    CHECK_OK(open_member(me, 30 * second, &error), error);
    use_stack(me, *(const uint64_t *)random);
}

// In a process of its own, which forks before it has threads.
static void run_round(uint64_t random) {
    int urls[locales][2];
    pid_t children[locales];
    deferred = mmap(NULL, locales * sizeof *deferred, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(deferred != MAP_FAILED);
    for (uint32_t r = 0; r < locales; r++) {
        random = random * 2862933555777941757u + 3037000493u;
        CHECK(pipe(urls[r]) == 0);
        const uint64_t own = random >> 8;
        children[r] = start_member_process(r, locales, urls[r][0], open_and_use, &own);
    }
    member server = {0};
    muster_store_server *store = NULL;
    char url[256];
    const size_t size = serve_store(&server, &store, url);
    for (uint32_t r = 0; r < locales; r++) CHECK(write(urls[r][1], url, size + 1) == (ssize_t)size + 1);
    for (uint32_t r = 0; r < locales; r++) {
        int status;
        CHECK(waitpid(children[r], &status, 0) == children[r]);
        if (r == 1 || r == 2)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            CHECK(status == 0);
    }
    stop_store(&server, store);
    _exit(0);
}

static void test_locales_that_are_killed_hold_up_no_other(void **state) {
    (void)state;
    const char *const given = getenv("MUSTER_SEED");
    uint64_t random = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("MUSTER_SEED=%llu\n", (unsigned long long)random);
    const char *const seconds = getenv("MUSTER_SECONDS");
    const time_t until = time(NULL) + (seconds ? atoi(seconds) : 0);
    for (int round = 0; round < 10 || time(NULL) < until; round++) {
        memory_flags = round % 2 ? MUSTER_MEMORY_NO_SHARED_MEMORY : 0;
        fflush(NULL);
        random = random * 2862933555777941757u + 3037000493u;
        const pid_t runner = fork();
        if (runner == 0) run_round(random);
        int status;
        assert_int_equal(waitpid(runner, &status, 0), runner);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_locales_that_are_killed_hold_up_no_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
