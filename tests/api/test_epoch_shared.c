// SPDX-License-Identifier: MIT
// Epochs and ABA cells in memory that processes share: a stack of nodes, and processes that are killed at any moment.
// MUSTER_SEED selects the moments, MUSTER_KILLS their number.
// ctest: full timeout=300
#include "epoch_run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <muster/inline/atomic.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

enum { node_count = 4096, workers = 2 };

// Offsets are indices of nodes, from 1. A node that is in no list is poisoned.
typedef struct node {
    _Atomic uint64_t next;
    _Atomic uint64_t poison; // 1: freed
    _Atomic uint64_t allocated;
} node;
typedef struct shared {
    muster_aba_cell top;  // the stack under test
    muster_aba_cell free; // nodes that can be allocated
    _Atomic uint64_t violations, operations, started;
    node nodes[node_count + 1];
} shared;

static int memory_fd = -1;
static shared *segment;
static uint64_t epoch_offset;

static muster_epoch *open_shared(void) {
    const muster_epoch_config config = {
        .struct_size = sizeof config, .flags = MUSTER_EPOCH_SHARED, .fd = memory_fd, .offset = epoch_offset};
    muster_epoch *epoch;
    muster_error error;
    if (muster_epoch_open(&config, &epoch, &error) != MUSTER_OK) {
        fprintf(stderr, "open: %s\n", error.message);
        _exit(9);
    }
    return epoch;
}

// `free` list: nodes never leave the segment, so the count of the cell is protection enough there.
static uint64_t allocate(void) {
    muster_aba top = muster_aba_read_inline(&segment->free.now);
    while (top.value != 0) {
        const uint64_t next = atomic_load(&segment->nodes[top.value].next);
        if (muster_aba_compare_exchange_inline(&segment->free.now, &top, next)) {
            if (atomic_exchange(&segment->nodes[top.value].allocated, 1) != 0) segment->violations++; // twice in a list
            atomic_store(&segment->nodes[top.value].poison, 0);
            return top.value;
        }
    }
    return 0;
}
static void give_back(uint64_t index) {
    node *const n = &segment->nodes[index];
    atomic_store(&n->poison, 1);
    if (atomic_exchange(&n->allocated, 0) != 1) segment->violations++; // freed twice
    muster_aba top = muster_aba_read_inline(&segment->free.now);
    do atomic_store(&n->next, top.value);
    while (!muster_aba_compare_exchange_inline(&segment->free.now, &top, index));
}

static void push(uint64_t index) {
    uint64_t top;
    do {
        top = muster_aba_read_inline(&segment->top.now).value;
        atomic_store(&segment->nodes[index].next, top);
    } while (muster_aba_compare_exchange_value(&segment->top.now, &top, index) != MUSTER_OK);
}
// Without the count: only the epoch keeps this from the ABA problem.
static uint64_t pop(void) {
    for (;;) {
        uint64_t top = muster_aba_read_inline(&segment->top.now).value;
        if (top == 0) return 0;
        const uint64_t next = atomic_load(&segment->nodes[top].next);
        if (atomic_load(&segment->nodes[top].poison) != 0 && muster_aba_read_inline(&segment->top.now).value == top)
            segment->violations++; // a freed node is the top
        if (muster_aba_compare_exchange_value(&segment->top.now, &top, next) == MUSTER_OK) return top;
    }
}
// Walks over the first nodes while the token is pinned: none may be freed meanwhile.
static void walk(void) {
    uint64_t at = muster_aba_read_inline(&segment->top.now).value;
    for (int i = 0; i < 8 && at != 0; i++) {
        if (atomic_load(&segment->nodes[at].poison) != 0) segment->violations++;
        at = atomic_load(&segment->nodes[at].next);
    }
}

static void free_polled(muster_epoch_token *t, uint32_t max_objects) {
    uint64_t back[64];
    uint32_t count = 0;
    const muster_status status = muster_epoch_poll(t, max_objects, 0, back, 64, &count, NULL);
    if (status < 0) segment->violations++;
    for (uint32_t i = 0; i < count; i++) give_back(back[i]);
}

static void work(uint64_t random) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    muster_epoch *const epoch = open_shared();
    muster_epoch_token *const t = token_of(epoch);
    segment->started++;
    for (;;) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        muster_epoch_pin_inline(t);
        if (random % 4 == 0) {
            walk();
        } else if (random % 4 == 1) {
            const uint64_t index = allocate();
            if (index != 0) push(index);
        } else {
            const uint64_t index = pop();
            if (index != 0 && muster_epoch_retire(t, index) != MUSTER_OK) segment->violations++;
        }
        muster_epoch_unpin_inline(t);
        free_polled(t, 0);
        if (random % 1021 == 0) muster_epoch_try_reclaim(t, NULL);
        segment->operations++;
    }
}

static pid_t start(uint64_t random) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) work(random);
    return child;
}

static void set_up_segment(void) {
    const long page = sysconf(_SC_PAGESIZE);
    epoch_offset = (sizeof(shared) + page - 1) / page * page;
    memory_fd = memfd_create("epoch_test", MFD_CLOEXEC);
    assert_true(memory_fd >= 0);
    assert_int_equal(ftruncate(memory_fd, epoch_offset + muster_epoch_size(16, 8192)), 0);
    segment = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
    assert_true(segment != MAP_FAILED);
    for (uint64_t i = 1; i <= node_count; i++) {
        segment->nodes[i].allocated = 1;
        give_back(i);
    }
}
static muster_epoch *create_shared(void) {
    const muster_epoch_config config = {.struct_size = sizeof config,
                                        .flags = MUSTER_EPOCH_SHARED,
                                        .max_tokens = 16,
                                        .max_pending = 8192,
                                        .fd = memory_fd,
                                        .offset = epoch_offset};
    muster_epoch *epoch;
    muster_error error;
    if (muster_epoch_create(&config, &epoch, &error) != MUSTER_OK) fail_msg("%s", error.message);
    muster_epoch *second_one;
    assert_int_equal(muster_epoch_create(&config, &second_one, &error), MUSTER_E_EXISTS);
    assert_null(second_one);
    muster_epoch_release(epoch); // the memory keeps the manager
    return open_shared();
}

static void test_kill_9_of_processes_that_are_pinned_blocks_and_corrupts_nothing(void **state) {
    (void)state;
    set_up_segment();
    muster_epoch *const epoch = create_shared();
    muster_epoch_token *const t = token_of(epoch);
    const char *const seed_text = getenv("MUSTER_SEED"), *const kills_text = getenv("MUSTER_KILLS");
    uint64_t random = seed_text ? strtoull(seed_text, NULL, 10) : (uint64_t)time(NULL);
    const int kills = kills_text ? atoi(kills_text) : 1000;
    printf("MUSTER_SEED=%llu\n", (unsigned long long)random);
    random = random * 2862933555777941757ULL + 3037000493ULL;
    pid_t children[workers];
    for (int i = 0; i < workers; i++) children[i] = start(random + i);
    for (int i = 0; i < kills; i++) {
        const int victim = i % workers;
        const uint64_t before = segment->operations;
        random = random * 2862933555777941757ULL + 3037000493ULL;
        const uint64_t wanted = before + random % 200;
        while (segment->operations < wanted) { // the others go on all the time
            free_polled(t, 0);
            sched_yield();
        }
        assert_int_equal(kill(children[victim], SIGKILL), 0);
        assert_int_equal(waitpid(children[victim], NULL, 0), children[victim]);
        if (i % 100 == 0) { // nothing is blocked, with the other one running
            muster_epoch_attempt attempt;
            assert_int_equal(muster_epoch_synchronize(t, 20 * second, &attempt), MUSTER_OK);
        }
        const uint64_t started = segment->started;
        children[victim] = start(random);
        while (segment->started == started) sched_yield();
        assert_int_equal(segment->violations, 0);
    }
    for (int i = 0; i < workers; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    // All objects that killed processes have deferred are handed over; a kill loses at most two nodes in use.
    uint64_t index;
    while ((index = pop()) != 0) assert_int_equal(muster_epoch_retire(t, index), MUSTER_OK);
    const time_t limit = time(NULL) + 20; // one owner is checked in 10 ms
    while (stats_of(epoch).pending != 0 && time(NULL) < limit) {
        muster_epoch_try_reclaim(t, NULL);
        free_polled(t, 64);
        sched_yield();
    }
    assert_int_equal(stats_of(epoch).pending, 0);
    assert_int_equal(segment->violations, 0);
    const muster_epoch_stats stats = stats_of(epoch);
    uint64_t lost = 0;
    for (uint64_t i = 1; i <= node_count; i++) lost += segment->nodes[i].allocated;
    printf("%d kills, %llu operations, %u tokens of the dead, %llu nodes lost, %llu pending\n", kills,
           (unsigned long long)segment->operations, stats.deaths, (unsigned long long)lost,
           (unsigned long long)stats.pending);
    assert_true(lost <= 2 * (uint64_t)(kills + workers) + stats.pending);
    assert_true(stats.deaths > 0);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(epoch);
}

static void test_a_token_of_another_process_and_a_damaged_manager_are_refused(void **state) {
    (void)state;
    muster_epoch *epoch;
    muster_error error;
    muster_epoch_config config = {
        .struct_size = sizeof config, .flags = MUSTER_EPOCH_SHARED, .fd = memory_fd, .offset = epoch_offset};
    char zero[4096] = {0};
    const int empty = memfd_create("empty", MFD_CLOEXEC);
    config.fd = empty;
    config.offset = 0;
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_epoch_create(&config, &epoch, &error), MUSTER_E_ARG); // too small
    assert_int_equal(write(empty, zero, sizeof zero), sizeof zero);
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_NOT_FOUND);
    memset(zero, 0x31, sizeof zero);
    assert_int_equal(pwrite(empty, zero, sizeof zero, 0), sizeof zero);
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_PROTOCOL);
    config.offset = 100;
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_ARG);
    config.offset = 0;
    config.fd = 9999;
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_SYSTEM);
    config.max_tokens = 4;
    assert_int_equal(muster_epoch_open(&config, &epoch, &error), MUSTER_E_ARG);
    close(empty);
    config = (muster_epoch_config){
        .struct_size = sizeof config, .flags = MUSTER_EPOCH_SHARED, .fd = memory_fd, .offset = epoch_offset};
    assert_int_equal(muster_epoch_open(&config, &epoch, NULL), MUSTER_OK);
    muster_epoch_token *const mine = token_of(epoch);
    assert_int_equal(muster_epoch_defer(mine, count_free, NULL, mine), MUSTER_E_UNSUPPORTED);
    assert_int_equal(muster_epoch_clear(epoch, NULL), MUSTER_E_UNSUPPORTED);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        muster_epoch *const own = open_shared();
        muster_epoch_token *const t = token_of(own);
        const uint32_t index = t->index;
        _exit(write(ready[1], &index, 4) == 4 && pause() == 0);
    }
    uint32_t index;
    assert_int_equal(read(ready[0], &index, 4), 4);
    muster_epoch_token *const theirs = (muster_epoch_token *)((char *)mine + 512 * ((int64_t)index - mine->index));
    assert_int_equal(muster_epoch_pin(theirs), MUSTER_E_STALE);
    assert_int_equal(muster_epoch_unregister(theirs), MUSTER_E_STALE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(muster_epoch_unregister(mine), MUSTER_OK);
    muster_epoch_release(epoch);
}

static int fresh_memory(uint64_t bytes) {
    const int fd = memfd_create("epoch_test_more", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}
static muster_epoch *make_in(int fd, uint32_t more_flags) {
    const muster_epoch_config config = {
        .struct_size = sizeof config, .flags = MUSTER_EPOCH_SHARED | more_flags, .max_tokens = 8, .fd = fd};
    muster_epoch *made;
    muster_error error;
    if (muster_epoch_create(&config, &made, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return made;
}
static muster_epoch *open_in(int fd) {
    const muster_epoch_config config = {.struct_size = sizeof config, .flags = MUSTER_EPOCH_SHARED, .fd = fd};
    muster_epoch *made;
    muster_error error;
    if (muster_epoch_open(&config, &made, &error) != MUSTER_OK) fprintf(stderr, "%s\n", error.message), _exit(9);
    return made;
}

// Lock-free: a process is stopped at any moment while it advances the epoch, defers and polls. The epoch advances all
// the same in a bounded number of attempts (an elected thread is overtaken after 64), unless the process was pinned.
static void test_a_process_that_is_stopped_stops_no_other(void **state) {
    (void)state;
    const int fd = fresh_memory(muster_epoch_size(8, 0));
    muster_epoch *const epoch = make_in(fd, MUSTER_EPOCH_FENCED);
    muster_epoch_token *const t = token_of(epoch);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        muster_epoch *const own = open_in(fd);
        muster_epoch_token *const mine = token_of(own);
        for (uint64_t i = 1;; i++) {
            uint64_t back[8];
            uint32_t count;
            muster_epoch_try_reclaim(mine, NULL);
            muster_epoch_retire(mine, i);
            muster_epoch_poll(mine, 0, 0, back, 8, &count, NULL);
        }
    }
    while (stats_of(epoch).deferred < 1000) sched_yield();
    int overtaken = 0;
    for (int round = 0; round < 300; round++) {
        const uint64_t wanted = stats_of(epoch).deferred + 1 + (uint64_t)round % 7;
        while (stats_of(epoch).deferred < wanted) {
        }
        assert_int_equal(kill(child, SIGSTOP), 0);
        int status;
        assert_int_equal(waitpid(child, &status, WUNTRACED), child);
        assert_true(WIFSTOPPED(status));
        for (int k = 0; k < 20; k++) {
            const uint64_t before = stats_of(epoch).epoch;
            int attempts = 0;
            while (stats_of(epoch).epoch == before) {
                muster_epoch_try_reclaim(t, NULL);
                assert_true(++attempts <= 66);
            }
            overtaken += attempts > 1;
        }
        assert_int_equal(muster_epoch_retire(t, 1), MUSTER_OK);
        uint64_t back;
        uint32_t count = 0;
        assert_int_equal(muster_epoch_synchronize(t, 0, NULL), MUSTER_OK);
        assert_int_equal(muster_epoch_poll(t, 1, 0, &back, 1, &count, NULL), MUSTER_OK);
        assert_int_equal(count, 1);
        kill(child, SIGCONT);
    }
    printf("%d of 6,000 advances overtook a process that was stopped while it was elected\n", overtaken);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(epoch);
    close(fd);
}

static int take_over(int fd) {
    muster_epoch *const epoch = open_in(fd);
    muster_epoch_token *const t = token_of(epoch);
    uint64_t back = 0;
    uint32_t count = 0;
    const int done = muster_epoch_synchronize(t, 20 * second, NULL) == MUSTER_OK &&
                     muster_epoch_synchronize(t, 20 * second, NULL) == MUSTER_OK &&
                     muster_epoch_poll(t, 1, 0, &back, 1, &count, NULL) == MUSTER_OK && count == 1 && back == 7;
    muster_epoch_unregister(t);
    muster_epoch_release(epoch);
    return done ? 0 : 1;
}

// The token of a killed process, and then a process with the same number: the start time distinguishes them.
static void test_a_new_process_with_the_number_of_a_dead_one_is_not_mistaken_for_it(void **state) {
    (void)state;
    const int fd = fresh_memory(muster_epoch_size(8, 0));
    muster_epoch *const epoch = make_in(fd, 0);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t first = fork();
    if (first == 0) {
        muster_epoch_token *const t = token_of(open_in(fd));
        _exit(muster_epoch_pin(t) == MUSTER_OK && muster_epoch_retire(t, 7) == MUSTER_OK &&
              write(ready[1], "r", 1) == 1 && pause() == 0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    struct clone_args how = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&first, .set_tid_size = 1};
    usleep(20000); // start times are counted in hundredths of a second
    const pid_t next = (pid_t)syscall(SYS_clone3, &how, sizeof how);
    if (next == 0) { // it has the number of the owner itself
        char text[16];
        snprintf(text, sizeof text, "%d", fd);
        fcntl(fd, F_SETFD, 0);
        execl("/proc/self/exe", "test_api_epoch_shared", text, (char *)NULL); // the library has to begin anew
        _exit(9);
    }
    if (next < 0) {
        print_message("clone3() with a chosen number is refused: errno %d\n", errno);
        muster_epoch_release(epoch);
        close(fd);
        skip();
    }
    assert_int_equal(next, first);
    int status;
    assert_int_equal(waitpid(next, &status, 0), next);
    assert_int_equal(status, 0);
    assert_int_equal(stats_of(epoch).deaths, 1);
    muster_epoch_release(epoch);
    close(ready[0]);
    close(ready[1]);
    close(fd);
}

static void *register_and_pin(void *epoch) {
    muster_epoch_token *const t = token_of(epoch);
    assert_int_equal(muster_epoch_pin(t), MUSTER_OK);
    assert_int_equal(muster_epoch_retire(t, 5), MUSTER_OK);
    return NULL;
}

// Two openings in one process; threads of one of them die, and the other one finds it.
static void test_two_openings_in_one_process_with_tokens_that_are_bound_to_threads(void **state) {
    (void)state;
    const int fd = fresh_memory(muster_epoch_size(8, 0));
    muster_epoch *const one = make_in(fd, MUSTER_EPOCH_THREAD_BOUND), *const other = open_in(fd);
    muster_epoch_token *const t = token_of(other);
    for (uint32_t round = 1; round <= 12; round++) { // more than there are tokens
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, register_and_pin, round % 2 ? one : other), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        uint64_t back = 0;
        uint32_t count = 0;
        assert_int_equal(muster_epoch_synchronize(t, 20 * second, NULL), MUSTER_OK);
        assert_int_equal(muster_epoch_synchronize(t, 20 * second, NULL), MUSTER_OK);
        assert_int_equal(muster_epoch_poll(t, 8, 0, &back, 1, &count, NULL), MUSTER_OK);
        assert_int_equal(count, 1);
        assert_int_equal(back, 5);
        assert_int_equal(stats_of(one).deaths, round);
    }
    muster_epoch_release(one);
    assert_int_equal(muster_epoch_synchronize(t, 20 * second, NULL), MUSTER_OK);
    assert_int_equal(muster_epoch_unregister(t), MUSTER_OK);
    muster_epoch_release(other);
    close(fd);
}

static int mapped_ranges(void) {
    FILE *const maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, maps) != NULL) count += strstr(line, "epoch_test_more") != NULL;
    fclose(maps);
    return count;
}

static void test_a_failed_open_keeps_no_mapping(void **state) {
    (void)state;
    char bad[4096];
    memset(bad, 0x31, sizeof bad);
    const int fd = fresh_memory(muster_epoch_size(8, 0));
    assert_int_equal(pwrite(fd, bad, sizeof bad, 0), sizeof bad);
    const muster_epoch_config config = {.struct_size = sizeof config, .flags = MUSTER_EPOCH_SHARED, .fd = fd};
    muster_epoch *epoch;
    const int before = mapped_ranges();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(muster_epoch_open(&config, &epoch, NULL), MUSTER_E_PROTOCOL);
        assert_int_equal(muster_epoch_create(&config, &epoch, NULL), MUSTER_E_ARG); // too small for the defaults
    }
    assert_int_equal(mapped_ranges(), before);
    close(fd);
}

int main(int argc, char **argv) {
    if (argc > 1) return take_over(atoi(argv[1]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_9_of_processes_that_are_pinned_blocks_and_corrupts_nothing),
        cmocka_unit_test(test_a_token_of_another_process_and_a_damaged_manager_are_refused),
        cmocka_unit_test(test_a_process_that_is_stopped_stops_no_other),
        cmocka_unit_test(test_a_new_process_with_the_number_of_a_dead_one_is_not_mistaken_for_it),
        cmocka_unit_test(test_two_openings_in_one_process_with_tokens_that_are_bound_to_threads),
        cmocka_unit_test(test_a_failed_open_keeps_no_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
