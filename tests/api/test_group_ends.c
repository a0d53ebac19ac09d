// SPDX-License-Identifier: MIT
// How operations of a group end otherwise: deaths, different operations, time limits, revocation, releases.
// ctest: quick timeout=120
#include "group_run.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static muster_status all_reduce(muster_group *group, double *data, uint64_t count, int64_t timeout_ns,
                                muster_error *error) {
    return muster_group_all_reduce(group, NULL, data, count, MUSTER_TYPE_F64, MUSTER_REDUCE_SUM, timeout_ns, error);
}

static void end_group(member *me) { // of a member whose group has failed
    muster_group_release(me->group);
    me->group = NULL;
}

static const member paths[] = {
    {0}, {.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, {.context_flags = MUSTER_CONTEXT_EXTERNAL}};

static void run_on_paths(uint32_t size, member_body body) {
    for (int i = 0; i < 3; i++) run_members(size, &paths[i], body);
}

static void wait_for(sem_t *event) {
    while (sem_wait(event) != 0) CHECK(errno == EINTR);
}
// Over shared memory and over streams; the members share a semaphore.
static void run_with_semaphore(uint32_t size, member_body body) {
    for (int i = 0; i < 2; i++) {
        sem_t event;
        member each = paths[i];
        each.shared = &event;
        assert_int_equal(sem_init(&event, 0, 0), 0);
        run_members(size, &each, body);
        sem_destroy(&event);
    }
}

// ---- different operations ---------------------------------------------------------------------------------------

static void mismatch(member *me) {
    double data[8] = {0};
    muster_error error = {0};
    const muster_status status =
        me->rank == 2 ? muster_group_broadcast(me->group, data, 8, MUSTER_TYPE_F64, 1, 20 * second, &error)
                      : all_reduce(me->group, data, 8, 20 * second, &error);
    if (status != MUSTER_E_MISMATCH)
        fprintf(stderr, "rank %u, flags %u: %s: %s\n", me->rank, me->flags, muster_status_name(status), error.message);
    CHECK(status == MUSTER_E_MISMATCH);
    CHECK(strstr(error.message, "all-reduce 2 of 8 f64 (sum)") &&
          strstr(error.message, "broadcast 2 of 8 f64, root 1"));
    CHECK(strstr(error.message, "rank 2: broadcast"));
    CHECK(muster_group_barrier(me->group, second, &error) == MUSTER_E_MISMATCH); // it stays failed
    end_group(me);
}
static void test_different_operations_are_named_with_both_ranks(void **state) {
    (void)state;
    run_on_paths(3, mismatch);
}

// An element that does not fit into a slot is reduced over streams, while the other member waits at the barrier.
static void combine_nothing(void *user, const void *input, void *inout, uint64_t count) {
    (void)user, (void)input, (void)inout, (void)count;
}
static void mismatch_of_paths(member *me) {
    static unsigned char data[2 * 4096];
    uint32_t reduction = 0;
    muster_error error = {0};
    CHECK(muster_group_add_reduction(me->group, 4096, combine_nothing, NULL, &reduction) == MUSTER_OK);
    const muster_status status =
        me->rank == 0 ? muster_group_reduce_scatter(me->group, data, data + 4096, 1, MUSTER_TYPE_OF_REDUCTION,
                                                    reduction, 20 * second, &error)
                      : muster_group_barrier(me->group, 20 * second, &error);
    CHECK(status == MUSTER_E_MISMATCH);
    CHECK(strstr(error.message, "reduce-scatter 2") && strstr(error.message, "barrier 2"));
    end_group(me);
}
static void test_different_operations_are_found_on_different_paths(void **state) {
    (void)state;
    run_members(2, &(member){.slot_bytes = 4096}, mismatch_of_paths);
}

static void count_mismatch(member *me) {
    double data[16] = {0};
    muster_error error = {0};
    CHECK(all_reduce(me->group, data, me->rank == 0 ? 16 : 8, 20 * second, &error) == MUSTER_E_MISMATCH);
    CHECK(strstr(error.message, "of 16 f64") && strstr(error.message, "of 8 f64"));
    end_group(me);
}
static void sizes_mismatch(member *me) {
    double in[8] = {0}, out[8] = {0};
    const uint64_t to[2] = {2, 3}, wrong[2] = {me->rank == 0 ? 2 : 3, me->rank == 0 ? 4 : 3};
    const muster_group_operation operation = {.struct_size = sizeof operation,
                                              .kind = MUSTER_GROUP_ALL_TO_ALL,
                                              .type = MUSTER_TYPE_F64,
                                              .input = in,
                                              .output = out,
                                              .counts = to,
                                              .output_counts = wrong};
    muster_error error = {0};
    muster_status status = muster_group_run(me->group, &operation, 20 * second, &error);
    if (status == MUSTER_OK && me->rank == 1) // over streams it has received what it expects, and learns of it later
        status = muster_group_barrier(me->group, 20 * second, &error);
    CHECK(status == MUSTER_E_MISMATCH);
    CHECK(strstr(error.message, "rank 1 sends"));
    end_group(me);
}
static void test_different_counts_are_found(void **state) {
    (void)state;
    run_on_paths(2, count_mismatch);
    run_on_paths(2, sizes_mismatch);
}

// ---- time limits and progress -----------------------------------------------------------------------------------

static void be_late(member *me) {
    sem_t *const over = me->shared;
    double data = 1;
    muster_error error = {0};
    CHECK_OK(all_reduce(me->group, &data, 1, -1, &error), error);
    if (me->rank == 1) { // it does not arrive before the others have ended
        wait_for(over);
        CHECK(muster_group_barrier(me->group, second, &error) == MUSTER_E_ABORTED && error.rank == 0);
        CHECK(strstr(error.message, "barrier 3: timed out"));
    } else if (me->rank == 0) {
        CHECK(muster_group_barrier(me->group, 300 * ms, &error) == MUSTER_TIMEOUT);
        CHECK(strstr(error.message, "rank 0: barrier 3"));
        CHECK(muster_group_barrier(me->group, second, &error) == MUSTER_E_ABORTED && error.rank == 0);
    } else {
        CHECK(muster_group_barrier(me->group, 20 * second, &error) == MUSTER_E_ABORTED && error.rank == 0);
    }
    if (me->rank == 2) sem_post(over);
    end_group(me);
}
static void test_a_time_limit_is_reported_with_its_rank(void **state) {
    (void)state;
    run_with_semaphore(3, be_late);
}

static void *wait_in_barrier(void *argument) {
    muster_error error = {0};
    CHECK_OK(muster_group_barrier(argument, -1, &error), error);
    return NULL;
}
static void look_at_progress(member *me) {
    sem_t *const seen = me->shared;
    muster_error error = {0};
    muster_group_status status;
    CHECK_OK(muster_group_barrier(me->group, -1, &error), error);
    if (me->rank == 1) {
        wait_for(seen); // it computes
        CHECK_OK(muster_group_barrier(me->group, -1, &error), error);
        return;
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_in_barrier, me->group) == 0);
    do { // until this member is in operation 3
        CHECK(muster_group_get_status(me->group, 0, &status) == MUSTER_OK);
    } while (status.state != MUSTER_GROUP_MEMBER_ACTIVE || status.sequence != 3);
    CHECK(status.kind == MUSTER_GROUP_BARRIER);
    CHECK(muster_group_get_status(me->group, 1, &status) == MUSTER_OK);
    CHECK(status.state == MUSTER_GROUP_MEMBER_MISSING && status.sequence == 2 && status.kind == MUSTER_GROUP_BARRIER);
    CHECK(status.shares_memory == !(me->flags & MUSTER_GROUP_NO_SHARED_MEMORY));
    sem_post(seen);
    pthread_join(thread, NULL);
    CHECK(muster_group_get_status(me->group, 0, &status) == MUSTER_OK && status.state == MUSTER_GROUP_MEMBER_IDLE);
}
static void test_the_member_that_has_not_arrived_is_shown(void **state) {
    (void)state;
    run_with_semaphore(2, look_at_progress);
}

// ---- ends on purpose ---------------------------------------------------------------------------------------------

static void revoke_one(member *me) {
    double data[4] = {0};
    muster_error error = {0};
    if (me->rank == 1) {
        CHECK(muster_group_revoke(me->group, "enough", 6) == MUSTER_OK);
        CHECK(muster_group_revoke(me->group, "again", 5) == MUSTER_OK);
    }
    const muster_status got = all_reduce(me->group, data, 4, 20 * second, &error);
    if (got != MUSTER_E_ABORTED)
        fprintf(stderr, "rank %u, flags %u, context %u: %s: %s\n", me->rank, me->flags, me->context_flags,
                muster_status_name(got), error.message);
    CHECK(got == MUSTER_E_ABORTED);
    CHECK(error.rank == 1 && strstr(error.message, "rank 1 revoked the group: enough"));
    muster_group_status status;
    CHECK(muster_group_get_status(me->group, 1, &status) == MUSTER_OK && status.state == MUSTER_GROUP_MEMBER_FAILED);
    CHECK(muster_group_close(me->group, second, &error) == MUSTER_E_ABORTED);
    end_group(me);
}
static void test_a_revoked_group_fails_everywhere(void **state) {
    (void)state;
    run_on_paths(4, revoke_one);
}

static void leave(member *me) {
    double data[4] = {0};
    muster_error error = {0};
    if (me->rank == 2) {
        end_group(me);
        return;
    }
    CHECK(all_reduce(me->group, data, 4, 20 * second, &error) == MUSTER_E_ABORTED);
    CHECK(error.rank == 2 && strstr(error.message, "rank 2 has released the group"));
    end_group(me);
}
static void test_a_release_without_a_close_is_a_failure(void **state) {
    (void)state;
    run_on_paths(3, leave);
}

static void *release_other(void *argument) {
    muster_group *const group = argument;
    muster_group_status status;
    do {
        CHECK(muster_group_get_status(group, 0, &status) == MUSTER_OK);
    } while (status.state != MUSTER_GROUP_MEMBER_ACTIVE || status.sequence != 2);
    muster_group_release(group);
    return NULL;
}
static void wait_and_be_released(member *me) {
    muster_error error = {0};
    sem_t *const over = me->shared;
    if (me->rank == 1) {
        wait_for(over); // it does not arrive
        end_group(me);
        return;
    }
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, release_other, me->group) == 0);
    CHECK(muster_group_barrier(me->group, 20 * second, &error) == MUSTER_E_CLOSED);
    pthread_join(thread, NULL);
    me->group = NULL;
    sem_post(over);
}
static void test_a_release_ends_the_wait_of_another_thread(void **state) {
    (void)state;
    run_with_semaphore(2, wait_and_be_released);
}

static void cancel_begun(member *me) {
    enum { count = 100000 };
    muster_error error = {0};
    muster_queue *queue;
    double *const data = calloc(count, sizeof *data);
    CHECK(data && muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    const muster_group_operation operation = {.struct_size = sizeof operation,
                                              .kind = MUSTER_GROUP_ALL_REDUCE,
                                              .type = MUSTER_TYPE_F64,
                                              .reduction = MUSTER_REDUCE_SUM,
                                              .count = count,
                                              .output = data};
    CHECK_OK(muster_group_begin(me->group, &operation, -1, queue, 7, &error), error);
    CHECK_OK(muster_group_begin(me->group, &operation, -1, queue, 8, &error), error);
    muster_group_status status;
    do {
        CHECK(muster_group_get_status(me->group, 0, &status) == MUSTER_OK);
    } while (status.state != MUSTER_GROUP_MEMBER_ACTIVE || status.sequence != 2);
    CHECK(muster_queue_cancel_operation(queue, 7) == MUSTER_OK);
    muster_completion done;
    for (int i = 0; i < 2; i++)
        CHECK(muster_queue_next(queue, 10 * second, &done, &error) == MUSTER_OK && done.status == MUSTER_E_CANCELED);
    CHECK(muster_group_barrier(me->group, second, &error) == MUSTER_E_CANCELED);
    sem_post(me->shared);
    muster_queue_release(queue);
    end_group(me);
    free(data);
}
static void wait_for_cancel(member *me) {
    muster_error error = {0};
    if (me->rank == 0) {
        cancel_begun(me);
        return;
    }
    wait_for(me->shared); // it does not take part in the operation
    // The head of the other operation may be read before the cancellation.
    const muster_status ended = muster_group_barrier(me->group, 20 * second, &error);
    CHECK((ended == MUSTER_E_ABORTED || ended == MUSTER_E_MISMATCH) && error.rank == 0);
    muster_group_status status;
    CHECK(muster_group_get_status(me->group, 0, &status) == MUSTER_OK && status.state == MUSTER_GROUP_MEMBER_FAILED);
    end_group(me);
}
static void test_a_cancelled_operation_ends_the_group(void **state) {
    (void)state;
    run_with_semaphore(2, wait_for_cancel);
}

static void close_queue(member *me) {
    enum { count = 4000000 };
    muster_error error = {0};
    double *const data = mmap(NULL, count * sizeof *data, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(data != MAP_FAILED);
    const muster_group_operation operation = {.struct_size = sizeof operation,
                                              .kind = MUSTER_GROUP_ALL_REDUCE,
                                              .type = MUSTER_TYPE_F64,
                                              .reduction = MUSTER_REDUCE_SUM,
                                              .count = count,
                                              .output = data};
    muster_queue *queue;
    CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    const muster_status begun = muster_group_begin(me->group, &operation, -1, queue, 7, &error);
    CHECK(begun == MUSTER_OK || (me->rank != 0 && begun == MUSTER_E_ABORTED)); // the other may have ended it before
    if (me->rank == 0) {
        muster_group_status status;
        do { // it closes the queue somewhere in the middle of the operation
            CHECK(muster_group_get_status(me->group, 0, &status) == MUSTER_OK);
        } while (status.sequence != 2);
        muster_queue_close(queue); // after that the memory is the host's: an access would be a crash
        CHECK(munmap(data, count * sizeof *data) == 0);
    } else {
        muster_completion done;
        CHECK(begun != MUSTER_OK || muster_queue_next(queue, 20 * second, &done, &error) == MUSTER_OK);
        CHECK(begun != MUSTER_OK || done.status == MUSTER_OK || (done.status == MUSTER_E_ABORTED && error.rank == 0));
        CHECK(munmap(data, count * sizeof *data) == 0);
    }
    muster_queue_release(queue);
    end_group(me);
}
static void test_the_close_of_a_queue_returns_the_memory(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        run_members(3, &paths[0], close_queue);
        run_members(3, &paths[1], close_queue);
    }
}

static void close_context(member *me) {
    muster_error error = {0};
    if (me->rank == 1) {
        CHECK(muster_context_close(me->context, 10 * second) == MUSTER_OK);
        CHECK(muster_group_barrier(me->group, second, &error) == MUSTER_E_CLOSED);
    } else {
        const muster_status status = muster_group_barrier(me->group, 20 * second, &error);
        CHECK((status == MUSTER_E_ABORTED || status == MUSTER_E_PEER) && error.rank == 1);
    }
    end_group(me);
}
static void test_the_close_of_a_context_ends_its_group(void **state) {
    (void)state;
    run_members(3, &paths[0], close_context);
    run_members(3, &paths[1], close_context);
}

static void wait_for_message(member *me) {
    muster_error error = {0};
    uint64_t bytes, data[4] = {0};
    if (me->rank == 1) { // it sends one message, and ends
        CHECK_OK(muster_group_send(me->group, 0, data, 0, second, &error), error);
        CHECK(muster_group_revoke(me->group, "no more", 7) == MUSTER_OK);
        end_group(me);
        return;
    }
    muster_status status;
    do { // the revocation may overtake the message
        status = muster_group_receive(me->group, 1, data, sizeof data, 20 * second, &bytes, &error);
    } while (status == MUSTER_OK);
    CHECK(status == MUSTER_E_ABORTED && error.rank == 1 && strstr(error.message, "no more"));
    CHECK(muster_group_send(me->group, 1, data, 8, second, &error) == MUSTER_E_ABORTED);
    end_group(me);
}
static void time_out_with_a_message(member *me) {
    muster_error error = {0};
    uint64_t bytes, data[4];
    if (me->rank == 0) {
        CHECK(muster_group_receive(me->group, 1, data, sizeof data, 50 * ms, &bytes, &error) == MUSTER_TIMEOUT);
        CHECK(strstr(error.message, "rank 0: a message from rank 1: timed out"));
    } else {
        CHECK(muster_group_receive(me->group, 0, data, sizeof data, 20 * second, &bytes, &error) == MUSTER_E_ABORTED);
        CHECK(error.rank == 0);
    }
    end_group(me);
}
static void test_a_wait_for_a_message_ends_with_the_group(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        member each = paths[i];
        each.flags |= MUSTER_GROUP_MESSAGES;
        run_members(2, &each, wait_for_message);
        run_members(2, &each, time_out_with_a_message);
    }
}

// ---- forks and waits ---------------------------------------------------------------------------------------------

// A member whose group was made before the fork cannot use it.
static void use_after_fork(member *me) {
    muster_error error = {0};
    if (me->rank == 0) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            const muster_status status = muster_group_barrier(me->group, second, &error);
            const muster_status revoked = muster_group_revoke(me->group, NULL, 0);
            muster_group_release(me->group);
            _exit(status == MUSTER_E_FORKED && revoked == MUSTER_E_FORKED ? 0 : 1);
        }
        int how;
        CHECK(waitpid(child, &how, 0) == child && how == 0);
    }
    CHECK_OK(muster_group_barrier(me->group, 20 * second, &error), error);
}
static void test_a_fork_leaves_the_group_to_the_parent(void **state) {
    (void)state;
    run_members(2, &paths[0], use_after_fork);
    run_members(2, &paths[1], use_after_fork);
}

static void wait_without_processor(member *me) {
    muster_error error = {0};
    if (me->rank == 0) {
        struct rusage before, after;
        CHECK(getrusage(RUSAGE_SELF, &before) == 0);
        sleep(1); // no event: what is measured is how the others wait in this time
        CHECK(getrusage(RUSAGE_SELF, &after) == 0);
        const int64_t used =
            (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
                1000000 +
            after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
        CHECK(used < 200000); // microseconds, of seven members and their contexts
    }
    CHECK_OK(muster_group_barrier(me->group, 20 * second, &error), error);
}
static void test_members_that_wait_sleep(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) run_members(8, &paths[i], wait_without_processor);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_different_operations_are_named_with_both_ranks),
        cmocka_unit_test(test_different_operations_are_found_on_different_paths),
        cmocka_unit_test(test_different_counts_are_found),
        cmocka_unit_test(test_a_time_limit_is_reported_with_its_rank),
        cmocka_unit_test(test_the_member_that_has_not_arrived_is_shown),
        cmocka_unit_test(test_a_revoked_group_fails_everywhere),
        cmocka_unit_test(test_a_release_without_a_close_is_a_failure),
        cmocka_unit_test(test_a_release_ends_the_wait_of_another_thread),
        cmocka_unit_test(test_a_cancelled_operation_ends_the_group),
        cmocka_unit_test(test_the_close_of_a_queue_returns_the_memory),
        cmocka_unit_test(test_the_close_of_a_context_ends_its_group),
        cmocka_unit_test(test_a_wait_for_a_message_ends_with_the_group),
        cmocka_unit_test(test_a_fork_leaves_the_group_to_the_parent),
        cmocka_unit_test(test_members_that_wait_sleep),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
