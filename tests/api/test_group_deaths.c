// SPDX-License-Identifier: MIT
// Members of a group that are processes, one of which is killed. This process starts no thread, so that the sanitizers
// follow the processes that it forks.
// ctest: quick timeout=60
#include "group_run.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// What the members perform again and again: an all-reduce, or a broadcast by this rank of the number of the round.
enum { all_reduces = 1000 };
static muster_status perform(member *me, uint32_t root, int round, double *data, uint64_t count, muster_error *error) {
    if (root == all_reduces)
        return muster_group_all_reduce(me->group, NULL, data, count, MUSTER_TYPE_F64, MUSTER_REDUCE_SUM, 30 * second,
                                       error);
    if (me->rank == root) data[count - 1] = round;
    const muster_status status =
        muster_group_broadcast(me->group, data, count, MUSTER_TYPE_F64, root, 30 * second, error);
    CHECK(status != MUSTER_OK || data[count - 1] == round);
    return status;
}

typedef struct board { // shared by the processes
    int begun[2];      // a pipe: each member writes a byte when it has performed some operations
    _Atomic int64_t known_at[16];
    atomic_int wrong;
} board;

static void member_process(uint32_t rank, uint32_t size, uint32_t flags, uint32_t root, const char *addresses,
                           uint64_t count, board *b) {
    member me = {.rank = rank, .size = size, .flags = flags};
    muster_error error = {0};
    make_member_context(&me);
    const muster_group_config config = {.struct_size = sizeof config,
                                        .flags = flags,
                                        .rank = rank,
                                        .size = size,
                                        .addresses = addresses,
                                        .addresses_bytes = strlen(addresses)};
    CHECK_OK(muster_group_open(me.context, &config, 30 * second, &me.group, &error), error);
    double *const data = calloc(count, sizeof *data);
    CHECK(data);
    muster_status status;
    for (int round = 0; (status = perform(&me, root, round, data, count, &error)) == MUSTER_OK; round++)
        if (round == 3) CHECK(write(b->begun[1], "", 1) == 1);
    atomic_store(&b->known_at[rank], now());
    if (status != MUSTER_E_PEER || error.rank != size - 1) {
        fprintf(stderr, "rank %u: %s: %s (rank %u)\n", rank, muster_status_name(status), error.message, error.rank);
        atomic_fetch_add(&b->wrong, 1);
    }
    muster_group_release(me.group);
    CHECK(muster_context_close(me.context, 10 * second) == MUSTER_OK);
    muster_context_release(me.context);
    free(data);
    _exit(0);
}

static void kill_one_of(uint32_t size, uint32_t flags, uint32_t root, uint64_t count) {
    board *const b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(b != MAP_FAILED);
    assert_int_equal(pipe(b->begun), 0);
    static int run = 0;
    char addresses[4096] = "";
    run++;
    for (uint32_t r = 0; r < size; r++)
        snprintf(addresses + strlen(addresses), sizeof addresses - strlen(addresses), "unix://@muster-ends-%d-%d-%u\n",
                 (int)getpid(), run, r);
    pid_t children[16];
    for (uint32_t r = 0; r < size; r++) {
        children[r] = fork();
        assert_true(children[r] >= 0);
        if (children[r] == 0) member_process(r, size, flags, root, addresses, count, b);
    }
    for (uint32_t r = 0; r < size; r++) { // it dies in the middle of what they do
        char byte;
        assert_int_equal(read(b->begun[0], &byte, 1), 1);
    }
    const int64_t killed = now();
    assert_int_equal(kill(children[size - 1], SIGKILL), 0);
    int64_t last = 0;
    for (uint32_t r = 0; r < size; r++) {
        int how;
        assert_int_equal(waitpid(children[r], &how, 0), children[r]);
        if (r + 1 == size) continue;
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        if (atomic_load(&b->known_at[r]) > last) last = atomic_load(&b->known_at[r]);
    }
    assert_int_equal(atomic_load(&b->wrong), 0);
    assert_true(last - killed <
                5 * second); // the benchmark `collective` has the time; here, that there is no time limit
    close(b->begun[0]);
    close(b->begun[1]);
    munmap(b, sizeof *b);
}
static void test_a_killed_member_is_named_at_all_others(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        for (int path = 0; path < 2; path++) {
            const uint32_t flags = path ? MUSTER_GROUP_NO_SHARED_MEMORY : 0;
            kill_one_of(4, flags, all_reduces, 1);
            kill_one_of(4, flags, all_reduces, 1000000);
            kill_one_of(4, flags, 0, 1); // a reader dies
            kill_one_of(4, flags, 3, 1); // the root
            kill_one_of(4, flags, 3, 100000);
        }
        kill_one_of(2, 0, all_reduces, 100);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_killed_member_is_named_at_all_others)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
