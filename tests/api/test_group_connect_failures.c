// SPDX-License-Identifier: MIT
// A member that dies, gives up, or has no descriptor left, while the members of a group connect to each other once more
// (muster_group_split, muster_group_connect, muster_memory_open): all others return, although their calls have no time
// limit. The members are processes; MUSTER_SEED selects the moments of the deaths. ctest: quick timeout=120
#include "group_run.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { split, connect_all, open_memory, kinds };
static const char *const names[] = {"split", "connect", "memory_open"};

typedef struct run {
    uint32_t size, flags, context_flags;
    int kind;
    int descriptors;    // that the last member has left for the call; -1: all
    int killed_after;   // microseconds, for the last member; -1: it is not killed
    int cancels_after;  // microseconds, by the last member; -1: not
    int64_t timeout_ns; // of the last member
    char addresses[512];
} run;

typedef struct outcome { // of the call, and of an operation of the group after it
    muster_status status, later;
    uint32_t rank;
    char text[200];
} outcome;

typedef struct board { // shared by the processes
    outcome of[4];
    atomic_uint ready;
    sem_t begins;               // posted by each member before its call
    pthread_barrier_t together; // of the members, unless they drive their contexts
} board;

// From now on this process can open `count` descriptors more.
static void leave_descriptors(int count) {
    int all[200], used = 0, highest = 0;
    while (used < 200 && highest < 150) { // until no number below is free
        CHECK((all[used] = dup(0)) >= 0);
        highest = all[used++];
    }
    for (int i = 0; i < count; i++) close(all[i]);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = (rlim_t)highest + 1;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void *cancel(void *argument) {
    const run *const r = ((member *)argument)->shared;
    usleep((useconds_t)r->cancels_after); // the random moment
    muster_context_cancel(((member *)argument)->context);
    return NULL;
}

static muster_status call(const run *r, muster_group *group, int64_t timeout_ns, muster_error *error) {
    if (r->kind == split) {
        muster_group *half = NULL;
        const muster_status status = muster_group_split(group, 0, 0, timeout_ns, &half, error);
        CHECK((status == MUSTER_OK) == (half != NULL));
        if (half) muster_group_close(half, -1, NULL); // the others may still be inside the call
        muster_group_release(half);
        return status;
    }
    if (r->kind == open_memory) {
        muster_memory_config config;
        muster_config_init(&config, sizeof config);
        config.flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
        config.segment_bytes = 1 << 20;
        muster_memory *memory = NULL;
        const muster_status status = muster_memory_open(group, &config, timeout_ns, &memory, error);
        CHECK((status == MUSTER_OK) == (memory != NULL));
        muster_memory_release(memory);
        return status;
    }
    muster_stream *streams[4] = {0};
    const muster_status status = muster_group_connect(group, timeout_ns, streams, 4, error);
    for (uint32_t i = 0; i < 4; i++) muster_stream_release(streams[i]);
    return status;
}

static void be_a_member(const run *r, uint32_t rank, board *b) {
    member me = {.rank = rank, .size = r->size, .flags = r->flags, .context_flags = r->context_flags};
    muster_error error = {0};
    make_member_context(&me);
    const muster_group_config config = {.struct_size = sizeof config,
                                        .flags = r->flags,
                                        .rank = rank,
                                        .size = r->size,
                                        .addresses = r->addresses,
                                        .addresses_bytes = strlen(r->addresses)};
    CHECK_OK(muster_group_open(me.context, &config, 30 * second, &me.group, &error), error);
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const bool is_last = rank == r->size - 1;
    if (r->descriptors >= 0 && is_last) leave_descriptors(r->descriptors);
    // The group is open here; a failure of this member would end the opening of others.
    atomic_fetch_add(&b->ready, 1);
    if ((r->context_flags & MUSTER_CONTEXT_EXTERNAL) == 0) pthread_barrier_wait(&b->together);
    while (atomic_load(&b->ready) != r->size) muster_context_progress(me.context, ms / 20);
    sem_post(&b->begins);
    outcome *const mine = &b->of[rank];
    pthread_t canceller;
    me.shared = (void *)r;
    if (is_last && r->cancels_after >= 0) CHECK(pthread_create(&canceller, NULL, cancel, &me) == 0);
    mine->status = call(r, me.group, is_last ? r->timeout_ns : -1, &error);
    if (is_last && r->cancels_after >= 0) pthread_join(canceller, NULL);
    mine->rank = error.rank;
    snprintf(mine->text, sizeof mine->text, "%.*s", (int)sizeof mine->text - 1, error.message);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    mine->later = muster_group_barrier(me.group, -1, &error);
    if (mine->later == MUSTER_OK) muster_group_close(me.group, -1, NULL);
    muster_group_release(me.group);
    CHECK(muster_context_close(me.context, 10 * second) == MUSTER_OK);
    muster_context_release(me.context);
    _exit(0);
}

// False: a member hangs.
static bool carry_out(run *r, board *b) {
    static int runs = 0;
    memset(b, 0, sizeof *b);
    assert_int_equal(sem_init(&b->begins, 1, 0), 0);
    pthread_barrierattr_t shared;
    assert_int_equal(pthread_barrierattr_init(&shared), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_barrier_init(&b->together, &shared, r->size), 0);
    r->addresses[0] = '\0';
    runs++;
    for (uint32_t i = 0; i < r->size; i++)
        snprintf(r->addresses + strlen(r->addresses), sizeof r->addresses - strlen(r->addresses),
                 "unix://@muster-connect-%d-%d-%u\n", (int)getpid(), runs, i);
    pid_t children[4];
    const pid_t parent = getpid();
    for (uint32_t i = 0; i < r->size; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(9);
        alarm(20);
        be_a_member(r, i, b);
    }
    if (r->killed_after >= 0) {
        for (uint32_t i = 0; i < r->size; i++)
            while (sem_wait(&b->begins) != 0) {
            }
        usleep((useconds_t)r->killed_after); // the random moment
        kill(children[r->size - 1], SIGKILL);
    }
    bool works = true;
    for (uint32_t i = 0; i < r->size; i++) {
        int how = 0;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        if (r->killed_after >= 0 && i == r->size - 1) continue;
        if (WIFEXITED(how) && WEXITSTATUS(how) == 0) continue;
        works = false;
        fprintf(stderr, "%s of %u, flags %u, %d descriptors, killed after %d us: rank %u %s\n", names[r->kind], r->size,
                r->flags, r->descriptors, r->killed_after, i,
                WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM ? "hangs" : "has failed");
    }
    return works;
}

static board *make_board(void) {
    board *const b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(b != MAP_FAILED);
    return b;
}

static void test_a_member_that_cannot_connect_ends_the_call_at_all(void **state) {
    (void)state;
#ifdef MUSTER_SANITIZED // to check the class of an object, their run-time opens a pipe
    skip();
#endif
    board *const b = make_board();
    int failed = 0;
    for (int kind = 0; kind < kinds; kind++)
        for (int descriptors = 0; descriptors < 16; descriptors++) {
            run r = {.size = 3, .kind = kind, .descriptors = descriptors};
            r.killed_after = r.cancels_after = -1, r.timeout_ns = -1;
            assert_true(carry_out(&r, b));
            for (uint32_t i = 0; i < r.size; i++) {
                const outcome *const one = &b->of[i];
                if (one->status != MUSTER_OK) failed++;
                if (one->status == MUSTER_E_ABORTED) assert_int_equal(one->rank, r.size - 1);
                // All of them, or none; and they agree on what is left of the group.
                if ((one->status == MUSTER_OK) == (b->of[0].status == MUSTER_OK) &&
                    (one->later == MUSTER_OK) == (b->of[0].later == MUSTER_OK))
                    continue;
                fail_msg("%d descriptors: rank 0 %s, rank %u %s: %s; later %s and %s", descriptors,
                         muster_status_name(b->of[0].status), i, muster_status_name(one->status), one->text,
                         muster_status_name(b->of[0].later), muster_status_name(one->later));
            }
        }
    assert_true(failed != 0);
    munmap(b, sizeof *b);
}

static run random_run(void) {
    return (run){.size = 2 + (uint32_t)rand() % 3,
                 .flags = rand() % 2 ? MUSTER_GROUP_NO_SHARED_MEMORY : 0,
                 .context_flags = rand() % 4 == 0 ? MUSTER_CONTEXT_EXTERNAL : 0,
                 .kind = rand() % kinds,
                 .descriptors = -1,
                 .killed_after = -1,
                 .cancels_after = -1,
                 .timeout_ns = -1};
}

static void choose_seed(void) {
    const char *const given = getenv("MUSTER_SEED");
    srand(given ? (unsigned)atoi(given) : 1);
}

static void test_a_member_that_dies_meanwhile_is_named(void **state) {
    (void)state;
    board *const b = make_board();
    choose_seed();
    int interrupted = 0;
    for (int i = 0; i < 60; i++) {
        run r = random_run();
        r.killed_after = rand() % 3000;
        assert_true(carry_out(&r, b));
        for (uint32_t one = 0; one + 1 < r.size; one++) {
            const outcome *const o = &b->of[one];
            if (o->status == MUSTER_OK && o->later == MUSTER_OK) continue; // it died after both
            if (o->status != MUSTER_OK) interrupted++;
            if (o->later != MUSTER_E_PEER ||
                (o->status != MUSTER_OK && (o->status != MUSTER_E_PEER || o->rank != r.size - 1)))
                fail_msg("run %d, rank %u of %u: %s (rank %u): %s; later %s", i, one, r.size,
                         muster_status_name(o->status), o->rank, o->text, muster_status_name(o->later));
        }
    }
    assert_true(interrupted != 0);
    munmap(b, sizeof *b);
}

static void test_a_member_that_gives_up_is_named(void **state) {
    (void)state;
    board *const b = make_board();
    choose_seed();
    int interrupted = 0;
    for (int i = 0; i < 60; i++) {
        run r = random_run();
        const bool cancels = rand() % 2;
        if (cancels)
            r.cancels_after = rand() % 2000;
        else
            r.timeout_ns = 50000 + rand() % 2000000;
        assert_true(carry_out(&r, b));
        const outcome *const last = &b->of[r.size - 1];
        if (last->status != MUSTER_OK) interrupted++;
        for (uint32_t one = 0; one < r.size; one++) {
            const outcome *const o = &b->of[one];
            const bool good = o->status == MUSTER_OK ||
                              (one == r.size - 1 ? o->status == (cancels ? MUSTER_E_CANCELED : MUSTER_TIMEOUT)
                                                 : last->status != MUSTER_OK && o->status == MUSTER_E_ABORTED &&
                                                       o->rank == r.size - 1);
            if (!good || (o->later == MUSTER_OK) != (last->status == MUSTER_OK))
                fail_msg("run %d, %s of %u, rank %u: %s (rank %u): %s; later %s; the last %s: %s", i, names[r.kind],
                         r.size, one, muster_status_name(o->status), o->rank, o->text, muster_status_name(o->later),
                         muster_status_name(last->status), last->text);
        }
    }
    assert_true(interrupted != 0);
    munmap(b, sizeof *b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_member_that_cannot_connect_ends_the_call_at_all),
        cmocka_unit_test(test_a_member_that_dies_meanwhile_is_named),
        cmocka_unit_test(test_a_member_that_gives_up_is_named),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
