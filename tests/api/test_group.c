// SPDX-License-Identifier: MIT
// Groups: the calls of each operation, their results, and the ways in which the members find each other.
// ctest: quick timeout=120
#include "group_run.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

// ---- results ----------------------------------------------------------------------------------------------------

// Sums whose value depends on the order, and 16-bit numbers whose rounding depends on the accumulator.
static void sum_in_order(member *me) {
    enum { count = 30000 };
    float *const mine = malloc(count * sizeof *mine), *const sums = malloc(count * sizeof *sums);
    uint16_t *const halves = malloc(count * sizeof *halves), *const half_sums = malloc(count * sizeof *halves);
    CHECK(mine && sums && halves && half_sums);
    for (int i = 0; i < count; i++) {
        mine[i] =
            ldexpf(1.0f + (float)i / count, (int)((me->rank * 7 + (uint32_t)i) % 40) - 20) * (me->rank % 2 ? -1 : 1);
        halves[i] = 0x3C01; // 1 + 2^-10
    }
    muster_error error = {0};
    CHECK_OK(muster_group_all_reduce(me->group, mine, sums, count, MUSTER_TYPE_F32, MUSTER_REDUCE_SUM, -1, &error),
             error);
    CHECK_OK(
        muster_group_all_reduce(me->group, halves, half_sums, count, MUSTER_TYPE_F16, MUSTER_REDUCE_SUM, -1, &error),
        error);
    float half_sum = 0;
    for (uint32_t r = 0; r < me->size; r++) half_sum += 1.0009765625f;
    for (int i = 0; i < count; i++) {
        float sum = 0;
        for (uint32_t r = 0; r < me->size; r++) {
            const float one =
                ldexpf(1.0f + (float)i / count, (int)((r * 7 + (uint32_t)i) % 40) - 20) * (r % 2 ? -1 : 1);
            sum = r == 0 ? one : sum + one;
        }
        CHECK(memcmp(&sum, &sums[i], sizeof sum) == 0);
        // Eight times 1 + 2^-10 is 8 + 2^-7, which a 16-bit number does not have; each sum on its own would lose more.
        const float got = ldexpf((float)(half_sums[i] & 0x3FF) / 1024 + 1, (half_sums[i] >> 10) - 15);
        CHECK(fabsf(got - half_sum) <= ldexpf(1, (half_sums[i] >> 10) - 15 - 11));
    }
    free(mine), free(sums), free(halves), free(half_sums);
}
static void test_sums_are_made_in_the_order_of_the_ranks(void **state) {
    (void)state;
    run_members(8, &(member){.slot_bytes = 4096}, sum_in_order);
    run_members(8, &(member){0}, sum_in_order);
    run_members(8, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, sum_in_order);
}

// All 16-bit numbers, reduced with themselves: what is widened and narrowed again is the same.
static void all_halves(member *me) {
    static const uint32_t narrow[] = {MUSTER_TYPE_F16, MUSTER_TYPE_BF16};
    for (int t = 0; t < 2; t++) {
        uint16_t *const numbers = malloc(65536 * 2);
        CHECK(numbers);
        for (int i = 0; i < 65536; i++) numbers[i] = (uint16_t)i;
        muster_error error = {0};
        CHECK_OK(muster_group_all_reduce(me->group, NULL, numbers, 65536, narrow[t], MUSTER_REDUCE_MAX, -1, &error),
                 error);
        const int infinite = t == 0 ? 0x7C00 : 0x7F80;
        for (int i = 0; i < 65536; i++)
            CHECK((i & 0x7FFF) > infinite ? (numbers[i] & 0x7FFF) > infinite : numbers[i] == i);
        free(numbers);
    }
}
static void test_16_bit_numbers_keep_their_value(void **state) {
    (void)state;
    run_members(2, &(member){0}, all_halves);
}

typedef struct matrix { // 2 x 2, whose product depends on the order
    uint32_t m[4];
} matrix;
static matrix times(matrix a, matrix b) {
    return (matrix){{a.m[0] * b.m[0] + a.m[1] * b.m[2], a.m[0] * b.m[1] + a.m[1] * b.m[3],
                     a.m[2] * b.m[0] + a.m[3] * b.m[2], a.m[2] * b.m[1] + a.m[3] * b.m[3]}};
}
static matrix matrix_of(uint32_t rank, uint32_t i) {
    return (matrix){{rank + 1, i, 1, rank + i}};
}
static void multiply(void *user, const void *input, void *inout, uint64_t count) {
    ++*(int *)user;
    for (uint64_t i = 0; i < count; i++) {
        matrix a, b;
        memcpy(&a, (char *)inout + i * sizeof a, sizeof a);
        memcpy(&b, (const char *)input + i * sizeof b, sizeof b);
        a = times(a, b);
        memcpy((char *)inout + i * sizeof a, &a, sizeof a);
    }
}
static void reduce_matrices(member *me) {
    enum { count = 5000 };
    int calls = 0;
    uint32_t product;
    CHECK(muster_group_add_reduction(me->group, sizeof(matrix), multiply, &calls, &product) == MUSTER_OK);
    CHECK(product == 256);
    matrix *const list = malloc(count * sizeof *list);
    CHECK(list);
    for (uint32_t i = 0; i < count; i++) list[i] = matrix_of(me->rank, i);
    muster_error error = {0};
    CHECK_OK(muster_group_scan(me->group, NULL, list, count, MUSTER_TYPE_OF_REDUCTION, product, -1, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        matrix expected = matrix_of(0, i);
        for (uint32_t r = 1; r <= me->rank; r++) expected = times(expected, matrix_of(r, i));
        CHECK(memcmp(&expected, &list[i], sizeof expected) == 0);
        list[i] = matrix_of(me->rank, i);
    }
    CHECK_OK(muster_group_all_reduce(me->group, NULL, list, count, MUSTER_TYPE_OF_REDUCTION, product, -1, &error),
             error);
    matrix expected = matrix_of(0, 77);
    for (uint32_t r = 1; r < me->size; r++) expected = times(expected, matrix_of(r, 77));
    CHECK(memcmp(&expected, &list[77], sizeof expected) == 0 && calls > 0);
    free(list);
}
static void test_a_reduction_of_the_host_need_not_commute(void **state) {
    (void)state;
    run_members(5, &(member){0}, reduce_matrices);
    run_members(5, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, reduce_matrices);
}

// ---- forms of calls ---------------------------------------------------------------------------------------------

static const char *shm_address(void) {
    static char address[64];
    snprintf(address, sizeof address, "shm://muster-group-%d-{}", (int)getpid());
    return address;
}

static void call_each(member *me) {
    const uint32_t n = me->size, r = me->rank, type = MUSTER_TYPE_I32;
    muster_group *const g = me->group;
    muster_error error = {0};
    int32_t one = (int32_t)r + 1, all[8] = {0}, block = 0, sum = (int32_t)(n * (n + 1) / 2);
    CHECK_OK(muster_group_barrier(g, -1, &error), error);
    CHECK_OK(muster_group_all_gather(g, &one, all, 1, type, -1, &error), error);
    for (uint32_t i = 0; i < n; i++) CHECK(all[i] == (int32_t)i + 1);
    CHECK_OK(muster_group_scatter(g, r == 1 ? all : NULL, &block, 1, type, 1, -1, &error), error);
    CHECK(block == one);
    int32_t gathered[8] = {0};
    CHECK_OK(muster_group_gather(g, &block, r == 0 ? gathered : NULL, 1, type, 0, -1, &error), error);
    if (r == 0) CHECK(memcmp(gathered, all, n * sizeof *all) == 0);
    CHECK_OK(muster_group_reduce(g, &one, &block, 1, type, MUSTER_REDUCE_SUM, 0, -1, &error), error);
    if (r == 0) CHECK(block == sum);
    CHECK_OK(muster_group_broadcast(g, &block, 1, type, 0, -1, &error), error);
    CHECK(block == sum);
    CHECK_OK(muster_group_scan(g, &one, &block, 1, type, MUSTER_REDUCE_SUM, -1, &error), error);
    CHECK(block == (int32_t)((r + 1) * (r + 2) / 2));
    CHECK_OK(muster_group_reduce_scatter(g, all, &block, 1, type, MUSTER_REDUCE_SUM, -1, &error), error);
    CHECK(block == (int32_t)n * one);
    for (uint32_t i = 0; i < n; i++) all[i] = (int32_t)(100 * r + i);
    CHECK_OK(muster_group_all_to_all(g, NULL, all, 1, type, -1, &error), error);
    for (uint32_t i = 0; i < n; i++) CHECK(all[i] == (int32_t)(100 * i + r));
    CHECK_OK(muster_group_all_reduce(g, &one, &block, 1, type, MUSTER_REDUCE_MAX, -1, &error), error);
    CHECK(block == (int32_t)n);
}
static void test_each_operation_has_a_call(void **state) {
    (void)state;
    run_members(4, &(member){0}, call_each);
    run_members(4, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY, .listen = "tcp://127.0.0.1:0?upgrade=no"},
                call_each);
    run_members(3, &(member){.listen = shm_address()}, call_each);
}

static void begin_many(member *me) {
    enum { many = 20 };
    int64_t sums[many];
    muster_queue *queue;
    muster_error error = {0};
    CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    for (int i = 0; i < many; i++) {
        sums[i] = i + me->rank;
        const muster_group_operation operation = {.struct_size = sizeof operation,
                                                  .kind = MUSTER_GROUP_ALL_REDUCE,
                                                  .type = MUSTER_TYPE_I64,
                                                  .reduction = MUSTER_REDUCE_SUM,
                                                  .count = 1,
                                                  .output = &sums[i]};
        CHECK_OK(muster_group_begin(me->group, &operation, 30 * second, queue, (uint64_t)i, &error), error);
    }
    CHECK_OK(muster_group_barrier(me->group, 30 * second, &error), error); // after all that were begun before it
    for (int i = 0; i < many; i++) {
        muster_completion done;
        CHECK(muster_queue_next(queue, 10 * second, &done, &error) == MUSTER_OK);
        CHECK(done.kind == MUSTER_DONE_CALL && done.status == MUSTER_OK && done.tag < many);
    }
    for (int i = 0; i < many; i++) CHECK(sums[i] == (int64_t)(i * me->size + me->size * (me->size - 1) / 2));
    muster_queue_close(queue);
    muster_group_operation late = {.struct_size = sizeof late, .kind = MUSTER_GROUP_BARRIER};
    CHECK(muster_group_begin(me->group, &late, second, queue, 0, &error) == MUSTER_E_CLOSED); // and nothing has changed
    muster_queue_release(queue);
}
/* Which thread calls the function of the host; it does not commute. */
static void combine_digits(void *user, const void *input, void *inout, uint64_t count) {
    CHECK(pthread_equal(*(pthread_t *)user, pthread_self()));
    for (uint64_t i = 0; i < count; i++) {
        int64_t from, to;
        memcpy(&from, (const char *)input + 8 * i, 8);
        memcpy(&to, (char *)inout + 8 * i, 8);
        to = 10 * to + from;
        memcpy((char *)inout + 8 * i, &to, 8);
    }
}
static void begin_with_a_function(member *me) {
    enum { count = 3000 };
    static const int64_t expected[] = {0, 1, 12, 123, 1234};
    pthread_t own = pthread_self();
    muster_queue *queue;
    muster_error error = {0};
    uint32_t digits;
    int64_t *const values = calloc(3 * count, sizeof *values);
    CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    CHECK(muster_group_add_reduction(me->group, 8, combine_digits, &own, &digits) == MUSTER_OK);
    static const uint64_t counts[] = {1, 100, count};
    for (int i = 0; i < 3; i++) {
        for (uint64_t k = 0; k < counts[i]; k++) values[i * count + k] = me->rank + 1;
        const muster_group_operation operation = {.struct_size = sizeof operation,
                                                  .kind = i == 1 ? MUSTER_GROUP_SCAN : MUSTER_GROUP_ALL_REDUCE,
                                                  .type = MUSTER_TYPE_OF_REDUCTION,
                                                  .reduction = digits,
                                                  .count = counts[i],
                                                  .output = values + i * count};
        CHECK_OK(muster_group_begin(me->group, &operation, 30 * second, queue, (uint64_t)i, &error), error);
    }
    for (int i = 0; i < 3; i++) {
        muster_completion done;
        CHECK_OK(muster_queue_next(queue, 30 * second, &done, &error), error);
        CHECK(done.kind == MUSTER_DONE_CALL && done.status == MUSTER_OK && done.tag == (uint64_t)i);
        const int64_t should = expected[i == 1 ? me->rank + 1 : me->size];
        for (uint64_t k = 0; k < counts[i]; k++) CHECK(values[i * count + k] == should);
    }
    muster_queue_release(queue);
    free(values);
}
static void test_functions_of_the_host_are_called_where_the_queue_is_taken(void **state) {
    (void)state;
    for (uint32_t size = 1; size <= 4; size++) {
        run_members(size, &(member){.slot_bytes = 4096}, begin_with_a_function);
        run_members(size, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, begin_with_a_function);
    }
    run_members(3, &(member){.context_flags = MUSTER_CONTEXT_EXTERNAL}, begin_with_a_function);
}

/* Of one element, with a reduction of the host, under the tag 7. */
static muster_status begin_all_reduce(member *me, uint32_t reduction, int64_t *value, int64_t timeout_ns,
                                      muster_queue *queue) {
    const muster_group_operation operation = {.struct_size = sizeof operation,
                                              .kind = MUSTER_GROUP_ALL_REDUCE,
                                              .type = MUSTER_TYPE_OF_REDUCTION,
                                              .reduction = reduction,
                                              .count = 1,
                                              .output = value};
    return muster_group_begin(me->group, &operation, timeout_ns, queue, 7, NULL);
}

/* A member that takes nothing from its queue, and one that cancels: the operation ends, and the group with it. */
static void begin_and_forget(member *me) {
    pthread_t own = pthread_self();
    muster_queue *queue;
    muster_error error = {0};
    uint32_t digits;
    int64_t value = me->rank + 1;
    const bool cancels = *(const bool *)me->shared;
    CHECK(muster_queue_create(me->context, NULL, &queue, NULL) == MUSTER_OK);
    CHECK(muster_group_add_reduction(me->group, 8, combine_digits, &own, &digits) == MUSTER_OK);
    const muster_status begun = begin_all_reduce(me, digits, &value, cancels ? -1 : 50 * ms, queue);
    CHECK(begun == MUSTER_OK || begun == MUSTER_E_ABORTED); /* another member has ended the group before */
    if (begun == MUSTER_OK && cancels) {
        const muster_status cancelled = muster_queue_cancel_operation(queue, 7);
        CHECK(cancelled == MUSTER_OK || cancelled == MUSTER_E_STALE); /* it has ended with the group */
    } else if (begun == MUSTER_OK) {
        muster_error why = {0};
        while (muster_group_barrier(me->group, 10 * ms, &why) == MUSTER_OK) {
        } /* the group has failed, and no function was called: only now is the queue taken */
    }
    if (begun == MUSTER_OK) {
        muster_completion done;
        CHECK_OK(muster_queue_next(queue, 30 * second, &done, &error), error);
        CHECK(done.kind == MUSTER_DONE_CALL && done.tag == 7);
        if (done.status != MUSTER_TIMEOUT && done.status != MUSTER_E_ABORTED && done.status != MUSTER_E_CANCELED) {
            fprintf(stderr, "rank %u, with the value %lld: %s: %s\n", me->rank, (long long)value,
                    muster_status_name(done.status), error.message);
            abort();
        }
    }
    CHECK(muster_group_barrier(me->group, second, &error) < 0);
    muster_queue_release(queue);
    muster_group_release(me->group);
    me->group = NULL;
}
static void test_a_function_that_nobody_calls_ends_the_operation(void **state) {
    (void)state;
    for (int cancels = 0; cancels < 2; cancels++) {
        bool shared = cancels;
        run_members(3, &(member){.shared = &shared}, begin_and_forget);
        run_members(3, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY, .shared = &shared}, begin_and_forget);
    }
}

/* A cancel while a function of the host runs: from another thread it returns after the function, which uses the arrays
 * to its end; from inside the function it returns at once. Either way the operation ends with the cancel. */
typedef struct cancelling {
    muster_queue *queue;
    bool is_inside;
    _Atomic bool has_entered, has_left;
    pthread_t thread;
} cancelling;

static void *cancel_from_outside(void *argument) {
    cancelling *c = argument;
    while (!atomic_load(&c->has_entered)) sched_yield();
    CHECK(muster_queue_cancel_operation(c->queue, 7) == MUSTER_OK);
    CHECK(atomic_load(&c->has_left));
    return NULL;
}
static void combine_until_cancelled(void *user, const void *input, void *inout, uint64_t count) {
    (void)input, (void)count;
    cancelling *c = user;
    atomic_store(&c->has_entered, true);
    if (c->is_inside) {
        CHECK(muster_queue_cancel_operation(c->queue, 7) == MUSTER_OK);
    } else {
        /* Longer than the cancel takes to come to its wait; if it is slower, the test sees less, and does not fail. */
        const struct timespec delay = {0, 50000000};
        nanosleep(&delay, NULL);
    }
    memset(inout, 0, 8); /* the array is still there */
    atomic_store(&c->has_left, true);
}
static void cancel_a_running_function(member *me) {
    cancelling c = {.is_inside = *(const bool *)me->shared};
    muster_error error = {0};
    uint32_t number;
    int64_t value = me->rank + 1;
    CHECK(muster_queue_create(me->context, NULL, &c.queue, NULL) == MUSTER_OK);
    CHECK(muster_group_add_reduction(me->group, 8, combine_until_cancelled, &c, &number) == MUSTER_OK);
    const muster_status begun = begin_all_reduce(me, number, &value, 30 * second, c.queue);
    CHECK(begun == MUSTER_OK || begun == MUSTER_E_ABORTED); /* the other member has ended the group before */
    if (begun == MUSTER_OK) {
        const bool has_thread = me->rank == 0 && !c.is_inside;
        if (has_thread) CHECK(pthread_create(&c.thread, NULL, cancel_from_outside, &c) == 0);
        muster_completion done;
        CHECK_OK(muster_queue_next(c.queue, 30 * second, &done, &error), error);
        CHECK(done.kind == MUSTER_DONE_CALL && done.tag == 7);
        /* The other member may have done its part before it learns of the cancel. */
        CHECK(done.status == MUSTER_E_CANCELED || done.status == MUSTER_E_ABORTED ||
              (done.status == MUSTER_OK && me->rank == 1 && !c.is_inside));
        if (has_thread) CHECK(pthread_join(c.thread, NULL) == 0);
    }
    muster_queue_release(c.queue);
    muster_group_release(me->group);
    me->group = NULL;
}
static void test_a_cancel_waits_for_a_function_that_runs(void **state) {
    (void)state;
    for (int inside = 0; inside < 2; inside++) {
        bool shared = inside;
        run_members(2, &(member){.shared = &shared}, cancel_a_running_function);
        run_members(2, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY, .shared = &shared}, cancel_a_running_function);
    }
}

static void test_operations_are_performed_in_the_order_in_which_they_were_begun(void **state) {
    (void)state;
    run_members(3, &(member){0}, begin_many);
    run_members(3, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, begin_many);
}

static void split_by_parity(member *me) {
    muster_group *half = NULL, *none = NULL, *alone = NULL;
    muster_error error = {0};
    // The ranks in the reverse order.
    CHECK_OK(muster_group_split(me->group, me->rank % 2, -(int64_t)me->rank, 30 * second, &half, &error), error);
    const uint32_t members = me->size / 2 + (me->rank % 2 == 0 ? me->size % 2 : 0);
    CHECK(muster_group_size(half) == members);
    CHECK(muster_group_rank(half) == members - 1 - me->rank / 2);
    uint64_t ranks[8] = {0}, own = me->rank;
    CHECK_OK(muster_group_all_gather(half, &own, ranks, 1, MUSTER_TYPE_U64, -1, &error), error);
    for (uint32_t i = 0; i < members; i++) CHECK(ranks[i] == 2 * (members - 1 - i) + me->rank % 2);
    CHECK_OK(muster_group_split(me->group, me->rank == 0 ? 5 : -1, 0, 30 * second, &alone, &error), error);
    CHECK((alone != NULL) == (me->rank == 0));
    if (alone) {
        CHECK(muster_group_size(alone) == 1);
        CHECK_OK(muster_group_all_reduce(alone, NULL, &own, 1, MUSTER_TYPE_U64, MUSTER_REDUCE_SUM, -1, &error), error);
        CHECK_OK(muster_group_close(alone, second, &error), error);
    }
    muster_group_release(alone);
    muster_group_release(none);
    CHECK_OK(muster_group_close(half, 30 * second, &error), error);
    muster_group_release(half);
    CHECK_OK(muster_group_barrier(me->group, -1, &error), error); // the divided group stays as it is
}
static void test_a_group_is_divided_by_color_and_key(void **state) {
    (void)state;
    run_members(5, &(member){0}, split_by_parity);
    run_members(4, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, split_by_parity);
    run_members(4, &(member){.listen = shm_address()}, split_by_parity);
}

typedef struct sending {
    member *me;
    unsigned char *data;
    size_t bytes;
} sending;
static void *send_large(void *argument) {
    const sending *const s = argument;
    muster_error error = {0};
    const uint32_t to = (s->me->rank + 1) % s->me->size;
    CHECK_OK(muster_group_send(s->me->group, to, s->data, s->bytes, 30 * second, &error), error);
    return NULL;
}
static void send_around(member *me) {
    enum { bytes = 3000000 };
    const uint32_t to = (me->rank + 1) % me->size, from = (me->rank + me->size - 1) % me->size;
    muster_error error = {0};
    uint64_t got = 77, sum = me->rank;
    for (uint32_t i = 0; i < 100; i++) { // in order, while operations are performed as well
        const uint32_t number = 1000 * me->rank + i;
        uint32_t received = 0;
        CHECK_OK(muster_group_send(me->group, to, &number, sizeof number, 30 * second, &error), error);
        if (i == 50)
            CHECK_OK(muster_group_all_reduce(me->group, NULL, &sum, 1, MUSTER_TYPE_U64, MUSTER_REDUCE_SUM, -1, &error),
                     error);
        CHECK_OK(muster_group_receive(me->group, from, &received, sizeof received, 30 * second, &got, &error), error);
        CHECK(got == sizeof received && received == 1000 * from + i);
    }
    CHECK(sum == me->size * (me->size - 1) / 2);
    // All send at once more than fits into the streams; an empty message before it.
    CHECK_OK(muster_group_send(me->group, to, NULL, 0, 30 * second, &error), error);
    unsigned char *const out = malloc(bytes), *const in = malloc(bytes);
    CHECK(out && in);
    for (size_t i = 0; i < bytes; i++) out[i] = (unsigned char)(i * 31 + me->rank);
    sending s = {me, out, bytes};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, send_large, &s) == 0);
    CHECK_OK(muster_group_receive(me->group, from, NULL, 0, 30 * second, &got, &error), error);
    CHECK(got == 0);
    CHECK(muster_group_receive(me->group, from, in, 1000, 30 * second, &got, &error) == MUSTER_E_LIMIT && got == bytes);
    CHECK_OK(muster_group_receive(me->group, from, in, bytes, 30 * second, &got, &error), error);
    for (size_t i = 0; i < bytes; i++) CHECK(in[i] == (unsigned char)(i * 31 + from));
    pthread_join(thread, NULL);
    CHECK(muster_group_send(me->group, me->rank, &got, 1, second, &error) == MUSTER_E_ARG);
    CHECK(muster_group_send(me->group, me->size, &got, 1, second, &error) == MUSTER_E_ARG);
    CHECK(muster_group_send(me->group, to, NULL, 1, second, &error) == MUSTER_E_ARG);
    CHECK(muster_group_receive(me->group, from, NULL, 1, second, &got, &error) == MUSTER_E_ARG);
    free(out), free(in);
}
static void test_members_send_each_other_messages(void **state) {
    (void)state;
    run_members(3, &(member){.flags = MUSTER_GROUP_MESSAGES}, send_around);
    run_members(3, &(member){.flags = MUSTER_GROUP_MESSAGES | MUSTER_GROUP_NO_SHARED_MEMORY}, send_around);
    run_members(2, &(member){.flags = MUSTER_GROUP_MESSAGES, .listen = shm_address()}, send_around);
}

static void argue(member *me) {
    muster_group *const g = me->group;
    muster_error error;
    int32_t value[2] = {1, 2};
    const struct {
        muster_group_operation operation;
        const char *text;
    } bad[] = {
        {{.kind = 99}, "kind is 99"},
        {{.kind = MUSTER_GROUP_ALL_REDUCE, .type = 77, .reduction = MUSTER_REDUCE_SUM, .count = 1, .output = value},
         "type 77"},
        {{.kind = MUSTER_GROUP_ALL_REDUCE,
          .type = MUSTER_TYPE_F32,
          .reduction = MUSTER_REDUCE_XOR,
          .count = 1,
          .output = value},
         "f32"},
        {{.kind = MUSTER_GROUP_ALL_REDUCE, .type = MUSTER_TYPE_I32, .reduction = 256, .count = 1, .output = value},
         "was not added"},
        {{.kind = MUSTER_GROUP_ALL_REDUCE, .type = MUSTER_TYPE_I32, .reduction = MUSTER_REDUCE_SUM, .count = 1},
         "no output"},
        {{.kind = MUSTER_GROUP_BROADCAST, .type = MUSTER_TYPE_I32, .root = 2, .count = 1, .output = value},
         "root is 2"},
        {{.kind = MUSTER_GROUP_BROADCAST, .type = MUSTER_TYPE_I32, .flags = 1, .count = 1, .output = value}, "flags"},
        {{.kind = MUSTER_GROUP_ALL_GATHER,
          .type = MUSTER_TYPE_I32,
          .count = UINT64_MAX / 4,
          .input = value,
          .output = value},
         "2^62"},
        {{.kind = MUSTER_GROUP_ALL_GATHER,
          .type = MUSTER_TYPE_I32,
          .counts = (uint64_t[]){UINT64_MAX, 2},
          .output = value},
         "2^62"},
        {{.kind = MUSTER_GROUP_SCAN,
          .type = MUSTER_TYPE_I32,
          .reduction = 1,
          .counts = (uint64_t[]){1, 1},
          .output = value},
         "counts"},
        {{.kind = MUSTER_GROUP_ALL_TO_ALL, .type = MUSTER_TYPE_I32, .counts = (uint64_t[]){1, 1}, .output = value},
         "output_counts"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        muster_group_operation operation = bad[i].operation;
        operation.struct_size = sizeof operation;
        memset(&error, 0, sizeof error);
        CHECK(muster_group_run(g, &operation, second, &error) == MUSTER_E_ARG);
        if (strstr(error.message, bad[i].text) == NULL)
            fprintf(stderr, "%s: %s\n", bad[i].text, error.message), abort();
    }
    CHECK(muster_group_barrier(g, 0, &error) == MUSTER_E_ARG);
    CHECK(muster_group_barrier(NULL, 1, &error) == MUSTER_E_ARG);
    CHECK(muster_group_run(g, NULL, 1, &error) == MUSTER_E_ARG);
    muster_group_status status;
    CHECK(muster_group_get_status(g, 2, &status) == MUSTER_E_ARG &&
          muster_group_get_status(g, 0, NULL) == MUSTER_E_ARG);
    uint32_t number;
    CHECK(muster_group_add_reduction(g, 0, multiply, NULL, &number) == MUSTER_E_ARG);
    CHECK(muster_group_add_reduction(g, 5000, multiply, NULL, &number) == MUSTER_E_ARG);
    CHECK(muster_group_revoke(g, "x", 1000) == MUSTER_E_ARG);
    uint64_t bytes;
    CHECK(muster_group_send(g, 1 - me->rank, value, 4, second, &error) == MUSTER_E_UNSUPPORTED);
    CHECK(muster_group_receive(g, 1 - me->rank, value, 4, second, &bytes, &error) == MUSTER_E_UNSUPPORTED);
    CHECK_OK(muster_group_barrier(g, -1, &error), error); // nothing was done by all that
}
static void test_bad_arguments_change_nothing(void **state) {
    (void)state;
    run_members(2, &(member){0}, argue);
}

static void test_a_group_that_cannot_be_opened_names_what_is_wrong(void **state) {
    (void)state;
    members all;
    make_members(&all, 2, &(member){0});
    member *const me = &all.list[0];
    make_member_context(me);
    muster_error error = {0};
    assert_int_equal(open_member(me, 50 * ms, &error), MUSTER_TIMEOUT);
    assert_non_null(strstr(error.message, "no address in time: 1"));
    me->rank = 2;
    assert_int_equal(open_member(me, second, &error), MUSTER_E_ARG);
    me->rank = 0, me->slot_bytes = 100;
    assert_int_equal(open_member(me, second, &error), MUSTER_E_ARG);
    me->slot_bytes = 0, me->listen = "nonsense";
    assert_int_equal(open_member(me, second, &error), MUSTER_E_ADDRESS);
    me->listen = "none://x";
    assert_int_equal(open_member(me, second, &error), MUSTER_E_NOT_FOUND);
    const muster_group_config bare = {.struct_size = sizeof bare, .size = 2};
    assert_int_equal(muster_group_open(me->context, &bare, second, &me->group, &error), MUSTER_E_ARG);
    static const char two[] = "tcp://127.0.0.1:1\ntcp://127.0.0.1:2\n", three[] = "a\nb\nc";
    const muster_group_config listed = {
        .struct_size = sizeof listed, .size = 2, .addresses = three, .addresses_bytes = 5};
    assert_int_equal(muster_group_open(me->context, &listed, second, &me->group, &error), MUSTER_E_ARG);
    const muster_group_config both = {
        .struct_size = sizeof both, .size = 2, .store = all.store, .addresses = two, .addresses_bytes = sizeof two - 1};
    assert_int_equal(muster_group_open(me->context, &both, second, &me->group, &error), MUSTER_E_ARG);
    assert_int_equal(muster_group_open(me->context, NULL, second, &me->group, &error), MUSTER_E_ARG);
    assert_null(me->group);
    assert_int_equal(muster_context_close(me->context, second), MUSTER_OK);
    muster_context_release(me->context);
    free_members(&all);
}

static void *open_by_list(void *argument) {
    member *const me = argument;
    muster_error error = {0};
    make_member_context(me);
    const muster_group_config config = {.struct_size = sizeof config,
                                        .rank = me->rank,
                                        .size = me->size,
                                        .addresses = me->shared,
                                        .addresses_bytes = strlen(me->shared)};
    CHECK_OK(muster_group_open(me->context, &config, 30 * second, &me->group, &error), error);
    call_each(me);
    split_by_parity(me);
    CHECK_OK(muster_group_close(me->group, 30 * second, &error), error);
    muster_group_release(me->group);
    muster_context_release(me->context);
    return NULL;
}
static void test_members_find_each_other_by_a_list_of_addresses(void **state) {
    (void)state;
    char list[4096] = "";
    for (int r = 0; r < 4; r++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "unix://@muster-group-%d-%d\n", (int)getpid(), r);
    members all;
    make_members(&all, 4, &(member){.shared = list});
    for (uint32_t r = 0; r < 4; r++)
        assert_int_equal(pthread_create(&all.list[r].thread, NULL, open_by_list, &all.list[r]), 0);
    for (uint32_t r = 0; r < 4; r++) pthread_join(all.list[r].thread, NULL);
    free_members(&all);
}

static void *open_by_round(void *argument) {
    member *const me = argument;
    muster_rendezvous *rendezvous;
    muster_round *round;
    muster_error error = {0};
    me->context = me->shared; // that of the store
    char address[32];
    snprintf(address, sizeof address, "node%u", me->rank);
    const muster_rendezvous_config config = {.struct_size = sizeof config,
                                             .run_id = "groups",
                                             .run_id_bytes = 6,
                                             .store = me->store,
                                             .address = address,
                                             .address_bytes = strlen(address),
                                             .min = me->size,
                                             .max = me->size};
    CHECK_OK(muster_rendezvous_open(me->context, &config, 10 * second, &rendezvous, &error), error);
    for (int i = 0; i < 2; i++) { // a group for each round
        CHECK_OK(muster_rendezvous_join(rendezvous, 30 * second, &round, &error), error);
        const muster_group_config group = {
            .struct_size = sizeof group, .round = round, .listen = me->listen, .listen_bytes = strlen(me->listen)};
        CHECK_OK(muster_group_open(me->context, &group, 30 * second, &me->group, &error), error);
        muster_round_info info;
        CHECK(muster_round_get_info(round, &info) == MUSTER_OK);
        CHECK(muster_group_rank(me->group) == info.rank && muster_group_size(me->group) == info.world);
        me->rank = info.rank;
        call_each(me);
        CHECK_OK(muster_group_close(me->group, 30 * second, &error), error);
        muster_group_release(me->group);
        muster_round_release(round);
    }
    muster_rendezvous_release(rendezvous);
    return NULL;
}
static void test_a_round_gives_ranks_to_a_group(void **state) {
    (void)state;
    members all;
    make_members(&all, 3, &(member){.listen = "inproc://groups-{}"});
    for (uint32_t r = 0; r < 3; r++) {
        all.list[r].shared = all.context;
        assert_int_equal(pthread_create(&all.list[r].thread, NULL, open_by_round, &all.list[r]), 0);
    }
    for (uint32_t r = 0; r < 3; r++) pthread_join(all.list[r].thread, NULL);
    free_members(&all);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_made_in_the_order_of_the_ranks),
        cmocka_unit_test(test_16_bit_numbers_keep_their_value),
        cmocka_unit_test(test_a_reduction_of_the_host_need_not_commute),
        cmocka_unit_test(test_each_operation_has_a_call),
        cmocka_unit_test(test_operations_are_performed_in_the_order_in_which_they_were_begun),
        cmocka_unit_test(test_functions_of_the_host_are_called_where_the_queue_is_taken),
        cmocka_unit_test(test_a_function_that_nobody_calls_ends_the_operation),
        cmocka_unit_test(test_a_cancel_waits_for_a_function_that_runs),
        cmocka_unit_test(test_a_group_is_divided_by_color_and_key),
        cmocka_unit_test(test_members_send_each_other_messages),
        cmocka_unit_test(test_bad_arguments_change_nothing),
        cmocka_unit_test(test_a_group_that_cannot_be_opened_names_what_is_wrong),
        cmocka_unit_test(test_members_find_each_other_by_a_list_of_addresses),
        cmocka_unit_test(test_a_round_gives_ranks_to_a_group),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
