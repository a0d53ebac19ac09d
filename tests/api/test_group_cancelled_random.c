// SPDX-License-Identifier: MIT
// Operations that were begun, with a function of the host, while members cancel them, close their queue, let them time
// out, or are slow to take entries. What ends with a success has the right result, what follows a failure fails, and
// arrays that were given back stay as they are. MUSTER_SEED repeats one sequence. ctest: quick timeout=120
#include "group_run.h"
#include "random_run.h"

#include <time.h>

enum { steps = 12, most_members = 4, most_operations = 5, most_elements = 20000, given_back = 0xEE };
enum fault { NO_FAULT, CANCEL, CLOSE_QUEUE, TIMEOUT, faults };

typedef struct step { // one group
    uint32_t size, flags, operations;
    struct {
        uint32_t kind, count, root;
    } operation[most_operations];
    struct {
        enum fault fault;
        uint32_t after_us, which, taken_after_us;
    } member[most_members];
} step;

static step all[steps];

static void make(uint64_t *state, int number) {
    static const uint32_t kinds[] = {MUSTER_GROUP_ALL_REDUCE, MUSTER_GROUP_SCAN, MUSTER_GROUP_REDUCE};
    static const uint32_t counts[] = {1, 100, 3000, most_elements};
    step *s = &all[number];
    s->size = 2 + below(state, most_members - 1);
    s->flags = below(state, 2) ? MUSTER_GROUP_NO_SHARED_MEMORY : 0;
    s->operations = 1 + below(state, most_operations);
    for (uint32_t i = 0; i < most_operations; i++) {
        s->operation[i].kind = kinds[below(state, 3)];
        s->operation[i].count = counts[below(state, 4)];
        s->operation[i].root = below(state, s->size);
    }
    for (uint32_t r = 0; r < most_members; r++) {
        s->member[r].fault = below(state, 2) ? NO_FAULT : (enum fault)below(state, faults);
        s->member[r].after_us = below(state, 3000);
        s->member[r].which = below(state, s->operations);
        s->member[r].taken_after_us = below(state, 2) ? 0 : below(state, 2000);
    }
}

static void print(int number) {
    const step *s = &all[number];
    fprintf(stderr, "  %u members, flags %u, %u operations;", s->size, s->flags, s->operations);
    for (uint32_t r = 0; r < s->size; r++)
        fprintf(stderr, " rank %u: fault %d of %u after %u us, takes after %u us;", r, (int)s->member[r].fault,
                s->member[r].which, s->member[r].after_us, s->member[r].taken_after_us);
    fprintf(stderr, "\n");
}

static void pause_us(uint32_t us) {
    const struct timespec time = {0, (long)us * 1000};
    nanosleep(&time, NULL);
}

static uint64_t element(uint32_t operation, uint32_t rank, uint64_t i) {
    return (operation + 1) * 1000 + rank * 100 + i % 97;
}
static uint64_t fold(uint64_t lower, uint64_t higher) {
    return lower * 31 + higher;
} // the order of the ranks matters

static void combine(void *user, const void *input, void *inout, uint64_t count) {
    (void)user;
    const uint64_t *from = input;
    uint64_t *to = inout;
    for (uint64_t i = 0; i < count; i++) to[i] = fold(to[i], from[i]);
}

typedef struct at_work {
    const step *s;
    uint32_t rank;
    muster_queue *queue;
} at_work;

static void *disturb(void *argument) {
    const at_work *w = argument;
    pause_us(w->s->member[w->rank].after_us);
    if (w->s->member[w->rank].fault == CANCEL) {
        const muster_status status = muster_queue_cancel_operation(w->queue, w->s->member[w->rank].which);
        CHECK(status == MUSTER_OK || status == MUSTER_E_STALE); // it is over
    } else {
        muster_queue_close(w->queue);
    }
    return NULL;
}

static void check_result(const step *s, uint32_t number, uint32_t rank, const uint64_t *output) {
    const uint32_t kind = s->operation[number].kind;
    if (kind == MUSTER_GROUP_REDUCE && s->operation[number].root != rank) return;
    const uint32_t last = kind == MUSTER_GROUP_SCAN ? rank : s->size - 1;
    for (uint64_t i = 0; i < s->operation[number].count; i++) {
        uint64_t expected = element(number, 0, i);
        for (uint32_t r = 1; r <= last; r++) expected = fold(expected, element(number, r, i));
        if (output[i] == expected) continue;
        fprintf(stderr, "rank %u, operation %u has succeeded, and element %llu is %llu, not %llu\n", rank, number,
                (unsigned long long)i, (unsigned long long)output[i], (unsigned long long)expected);
        abort();
    }
}

static void work(member *me) {
    at_work w = {me->shared, me->rank, NULL};
    const step *s = w.s;
    const enum fault fault = s->member[me->rank].fault;
    uint64_t *output[most_operations] = {NULL}, *input[most_operations] = {NULL};
    bool is_over[most_operations] = {false};
    uint32_t begun = 0, over = 0, reduction = 0;
    muster_error error = {0};
    CHECK(muster_queue_create(me->context, NULL, &w.queue, NULL) == MUSTER_OK);
    CHECK(muster_group_add_reduction(me->group, 8, combine, NULL, &reduction) == MUSTER_OK);
    bool has_failed = false, one_has_failed = false; // the group; an operation that was begun
    for (; begun < s->operations; begun++) {
        const uint64_t count = s->operation[begun].count;
        input[begun] = malloc(count * 8), output[begun] = calloc(count, 8);
        CHECK(input[begun] != NULL && output[begun] != NULL);
        for (uint64_t i = 0; i < count; i++) input[begun][i] = element(begun, me->rank, i);
        const muster_group_operation operation = {
            .struct_size = sizeof operation,
            .kind = s->operation[begun].kind,
            .type = MUSTER_TYPE_OF_REDUCTION,
            .reduction = reduction,
            .root = s->operation[begun].kind == MUSTER_GROUP_REDUCE ? s->operation[begun].root : 0,
            .count = count,
            .input = input[begun],
            .output = output[begun]};
        const bool is_short = fault == TIMEOUT && s->member[me->rank].which == begun;
        const int64_t timeout_ns = is_short ? 1 + s->member[me->rank].after_us * 1000 : 20 * second;
        if (muster_group_begin(me->group, &operation, timeout_ns, w.queue, begun, &error) == MUSTER_OK) continue;
        has_failed = true; // another member has ended the group
        break;
    }
    pthread_t thread;
    const bool has_thread = fault == CANCEL || fault == CLOSE_QUEUE;
    if (has_thread) CHECK(pthread_create(&thread, NULL, disturb, &w) == 0);
    pause_us(s->member[me->rank].taken_after_us);
    while (over < begun) {
        muster_completion done;
        const muster_status status = muster_queue_next(w.queue, 30 * second, &done, &error);
        if (status == MUSTER_E_CLOSED && fault == CLOSE_QUEUE) break;
        CHECK_OK(status, error);
        CHECK(done.kind == MUSTER_DONE_CALL && done.tag < begun && !is_over[done.tag]);
        CHECK(done.tag == over); // in the order in which they were begun
        if (done.status == MUSTER_OK) {
            CHECK(!one_has_failed); // a success does not follow a failure
            check_result(s, (uint32_t)done.tag, me->rank, output[done.tag]);
        } else {
            has_failed = one_has_failed = true;
        }
        is_over[done.tag] = true;
        memset(output[done.tag], given_back, s->operation[done.tag].count * 8);
        over++;
    }
    if (has_thread) CHECK(pthread_join(thread, NULL) == 0);
    if (fault == CLOSE_QUEUE) // it has given back the arrays of all
        for (uint32_t i = 0; i < begun; i++) memset(output[i], given_back, s->operation[i].count * 8);
    // With a queue that is closed the group has failed only if an operation was ended by that.
    const muster_status after = muster_group_barrier(me->group, has_failed ? second : 20 * second, &error);
    if (has_failed) CHECK(after < 0);
    muster_queue_release(w.queue);
    muster_group_release(me->group);
    me->group = NULL;
    for (uint32_t i = 0; i < begun; i++)
        for (uint64_t k = 0; k < s->operation[i].count * 8; k++) CHECK(((unsigned char *)output[i])[k] == given_back);
    for (uint32_t i = 0; i < most_operations; i++) free(input[i]), free(output[i]);
}

static void run(int count, const bool *left_out) {
    for (int i = 0; i < count; i++)
        if (!left_out[i]) run_members(all[i].size, &(member){.flags = all[i].flags, .shared = &all[i]}, work);
}

static void test_cancelled_operations(void **state) {
    (void)state;
    const sequence s = {"cancelled operations of a group", steps, make, run, print};
    assert_true(run_sequences(&s, 60));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cancelled_operations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
