// SPDX-License-Identifier: MIT
// Objects that locales have deferred go back to the heaps of their owners: all of them by muster_memory_clear(), in
// parts and from full streams by muster_memory_reclaim(), and those of a locale that has ended are counted.
// ctest: quick timeout=60
#include "memory_run.h"
#include "stopped.h"
#include "thread_sanitizer.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { objects = 3000 };

static void meet(member *me) {
    muster_error error = {0};
    CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error);
}
static uint64_t used_blocks(muster_memory *memory, uint32_t locale) {
    muster_memory_stats stats;
    CHECK(muster_memory_get_stats(memory, locale, 30 * second, &stats) == MUSTER_OK);
    return stats.used_blocks;
}
static void retire_new(muster_memory *memory, muster_epoch_token *token, uint32_t locale) {
    muster_gptr made = 0;
    CHECK(muster_memory_allocate(memory, locale, 48, 30 * second, &made) == MUSTER_OK);
    CHECK(muster_epoch_retire(token, made) == MUSTER_OK);
}
static const muster_memory_config config = {
    .struct_size = sizeof config, .segment_bytes = 1 << 20, .max_tokens = 8, .max_pending = 8 * objects};

static void clear_all(member *me) {
    muster_memory *const memory = open_memory(me, &config);
    muster_epoch *epoch = NULL;
    muster_epoch_token *token = NULL, *pinned = NULL;
    uint64_t freed = 7;
    CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK);
    CHECK(muster_epoch_register(epoch, &token, NULL) == MUSTER_OK &&
          muster_epoch_register(epoch, &pinned, NULL) == MUSTER_OK);
    CHECK(muster_memory_clear(memory, token, -1, &freed) == MUSTER_OK && freed == 0);
    meet(me);
    CHECK(muster_epoch_pin(pinned) == MUSTER_OK);
    for (uint32_t i = 0; i < objects; i++) retire_new(memory, token, i % me->size);
    meet(me);
    // A reader stays: nothing is freed, here or elsewhere, and the limit of time holds.
    CHECK(muster_memory_clear(memory, token, 0, &freed) == MUSTER_TIMEOUT && freed == 0);
    CHECK(muster_memory_clear(memory, token, 20 * ms, &freed) == MUSTER_TIMEOUT && freed == 0);
    CHECK(used_blocks(memory, (me->rank + 1) % me->size) == objects / me->size * me->size);
    meet(me);
    CHECK(muster_memory_clear(memory, pinned, -1, &freed) == MUSTER_E_WOULD_DEADLOCK);
    CHECK(muster_epoch_unpin(pinned) == MUSTER_OK);
    CHECK(muster_memory_clear(memory, token, 30 * second, &freed) == MUSTER_OK && freed == objects);
    meet(me);
    for (uint32_t locale = 0; locale < me->size; locale++) CHECK(used_blocks(memory, locale) == 0);
    CHECK(muster_memory_clear(NULL, token, -1, &freed) == MUSTER_E_ARG);
    CHECK(muster_memory_clear(memory, NULL, -1, NULL) == MUSTER_E_ARG);
    CHECK(muster_epoch_unregister(token) == MUSTER_OK && muster_epoch_unregister(pinned) == MUSTER_OK);
    meet(me);
    muster_memory_release(memory);
}

static void lose_a_locale(member *me) {
    muster_memory *const memory = open_memory(me, &config);
    muster_epoch *epoch = NULL;
    muster_epoch_token *token = NULL;
    const uint32_t last = me->size - 1;
    uint64_t freed = 0;
    CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK && muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
    for (uint32_t i = 0; i < objects; i++) retire_new(memory, token, i % me->size);
    meet(me);
    if (me->rank == last) {
        CHECK(muster_memory_clear(memory, token, 30 * second, NULL) == MUSTER_OK);
        CHECK(muster_epoch_unregister(token) == MUSTER_OK);
        muster_memory_release(memory);
    }
    meet(me);
    if (me->rank == last) {
        meet(me);
        return;
    }
    CHECK(muster_memory_clear(memory, token, 30 * second, &freed) == MUSTER_OK && freed == objects);
    muster_memory_locale_info info;
    CHECK(muster_memory_get_locale(memory, last, &info, NULL) == MUSTER_OK);
    CHECK(info.status != MUSTER_OK && info.dropped == objects / me->size);
    CHECK(muster_memory_get_locale(memory, 1 - me->rank, &info, NULL) == MUSTER_OK && info.dropped == 0);
    CHECK(muster_epoch_unregister(token) == MUSTER_OK);
    meet(me);
    muster_memory_release(memory);
}

// More hosts than one asks itself: the others are asked by those. Some of them end, at different times.
enum { many = UNDER_THREAD_SANITIZER ? 8 : 20, rounds = 6 };
static void lose_several_of_many(member *me) {
    const muster_memory_config small = {
        .struct_size = sizeof small, .segment_bytes = 1 << 17, .max_tokens = 2, .max_pending = 1024};
    muster_memory *const memory = open_memory(me, &small);
    muster_epoch *epoch = NULL;
    muster_epoch_token *token = NULL;
    CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK && muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
    const uint32_t leaves_after = me->rank % 3 == 1 ? me->rank / 3 : rounds; // 1, 4, 7, ... leave
    for (uint32_t round = 0; round < rounds; round++) {
        if (round <= leaves_after) {
            // Each to its neighbours that are there until the end, or have just ended.
            for (uint32_t i = 0; i < 40; i++) {
                muster_gptr made = 0;
                const uint32_t to = (me->rank + i) % many;
                if (muster_memory_allocate(memory, to, 48, 30 * second, &made) != MUSTER_OK) continue;
                CHECK(muster_epoch_retire(token, made) == MUSTER_OK);
            }
            if (me->rank % 2) CHECK(muster_epoch_pin(token) == MUSTER_OK && muster_epoch_unpin(token) == MUSTER_OK);
            CHECK(muster_memory_clear(memory, token, 60 * second, NULL) == MUSTER_OK);
        }
        if (round == leaves_after) { // the others are in the middle of their rounds
            CHECK(muster_epoch_unregister(token) == MUSTER_OK);
            muster_memory_release(memory);
        }
        meet(me);
    }
    if (leaves_after < rounds) return;
    CHECK(muster_memory_clear(memory, token, 60 * second, NULL) == MUSTER_OK);
    CHECK(muster_epoch_unregister(token) == MUSTER_OK);
    muster_memory_release(memory);
}
static void test_a_tree_of_hosts(void **state) {
    (void)state;
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(many, &(member){0}, clear_all);
    for (int i = 0; i < 3; i++) run_members(many, &(member){0}, lose_several_of_many);
    memory_flags = 0;
}

// The owner is stopped, so that most requests have no room: each is for one object. Then muster_memory_flush() sends
// the rest and waits for it. The processes, in memory of both:
static _Atomic int *owner;
static void free_at_a_stopped_owner(member *me, const void *unused) {
    (void)unused;
    muster_error error = {0};
    CHECK_OK(open_member(me, 30 * second, &error), error);
    muster_memory *const memory = open_memory(me, &config);
    if (me->rank == 1) *owner = getpid();
    meet(me);
    if (me->rank == 0) {
        muster_epoch *epoch = NULL;
        muster_epoch_token *token = NULL;
        CHECK(muster_memory_epoch(memory, &epoch) == MUSTER_OK);
        CHECK(muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
        for (uint32_t i = 0; i < objects; i++) retire_new(memory, token, 1);
        CHECK(muster_epoch_synchronize(token, 30 * second, NULL) == MUSTER_OK);
        stop_process(*owner);
        uint32_t freed = 0, all = 0;
        for (; all < objects; all += freed)
            CHECK(muster_memory_reclaim(memory, token, 1, 0, &freed) == MUSTER_AGAIN && freed == 1);
        CHECK(muster_memory_flush(memory, 1, 0) == MUSTER_AGAIN);
        CHECK(muster_memory_flush(memory, UINT32_MAX, 20 * ms) == MUSTER_TIMEOUT);
        CHECK(kill(*owner, SIGCONT) == 0);
        CHECK(muster_memory_flush(memory, 1, 30 * second) == MUSTER_OK);
        CHECK(used_blocks(memory, 1) == 0);
        CHECK(muster_epoch_unregister(token) == MUSTER_OK);
    }
    meet(me);
    muster_memory_release(memory);
    _exit(0);
}
static void run_pair(void) {
    int urls[2][2];
    pid_t children[2];
    for (uint32_t r = 0; r < 2; r++) {
        CHECK(pipe(urls[r]) == 0);
        children[r] = start_member_process(r, 2, urls[r][0], free_at_a_stopped_owner, NULL);
    }
    member server = {0};
    muster_store_server *store = NULL;
    char url[256];
    const size_t size = serve_store(&server, &store, url);
    for (uint32_t r = 0; r < 2; r++) CHECK(write(urls[r][1], url, size + 1) == (ssize_t)size + 1);
    for (uint32_t r = 0; r < 2; r++) {
        int status;
        CHECK(waitpid(children[r], &status, 0) == children[r] && status == 0);
    }
    stop_store(&server, store);
    _exit(0);
}
static void test_flush_frees_what_had_no_room(void **state) {
    (void)state;
    owner = mmap(NULL, sizeof *owner, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(owner, MAP_FAILED);
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    fflush(NULL);
    const pid_t runner = fork(); // it forks the members before it has threads
    if (runner == 0) run_pair();
    int status;
    assert_int_equal(waitpid(runner, &status, 0), runner);
    assert_int_equal(status, 0);
    memory_flags = 0;
}

static void test_clear(void **state) {
    (void)state;
    run_mapped_and_elsewhere(3, clear_all);
}

static void test_objects_of_a_locale_that_has_ended_are_counted(void **state) {
    (void)state;
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(3, &(member){0}, lose_a_locale);
    memory_flags = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_flush_frees_what_had_no_room),
                                       cmocka_unit_test(test_clear), cmocka_unit_test(test_a_tree_of_hosts),
                                       cmocka_unit_test(test_objects_of_a_locale_that_has_ended_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
