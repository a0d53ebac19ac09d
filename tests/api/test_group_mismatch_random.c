// SPDX-License-Identifier: MIT
// Long sequences of operations over shared memory, most of them small broadcasts by changing roots, which do not wait
// for each other. In most sequences one member performs another operation than the rest at some place: every member
// then gets MUSTER_E_MISMATCH before its time limit, and what ended with a success before has the right bytes.
// MUSTER_SEED repeats one sequence. ctest: quick timeout=120
#include "group_run.h"
#include "random_run.h"

#include <time.h>

enum { steps = 8, most_members = 5, most_operations = 700, most_elements = 1000 };
enum deviation { NONE, OTHER_ROOT, OTHER_COUNT, OTHER_KIND, deviations };

typedef struct step { // one group
    uint32_t size, operations, deviant, at;
    enum deviation deviation;
    uint64_t seed; // of the operations
    bool are_slow; // some members pause sometimes
} step;

typedef struct planned {
    uint32_t kind, root;
    uint64_t count;
} planned;

static step all[steps];

static void make(uint64_t *state, int number) {
    step *s = &all[number];
    s->size = 2 + below(state, most_members - 1);
    s->operations = 1 + below(state, most_operations);
    s->deviant = below(state, s->size);
    s->at = below(state, s->operations);
    s->deviation = (enum deviation)below(state, deviations);
    s->seed = next_random(state);
    s->are_slow = below(state, 2);
}

static void print(int number) {
    const step *s = &all[number];
    fprintf(stderr, "  %u members, %u operations from seed %llu%s; rank %u: deviation %d at %u\n", s->size,
            s->operations, (unsigned long long)s->seed, s->are_slow ? ", slow" : "", s->deviant, (int)s->deviation,
            s->at);
}

static planned plan(uint64_t *state, uint32_t size) {
    static const uint32_t kinds[] = {MUSTER_GROUP_BARRIER, MUSTER_GROUP_ALL_REDUCE, MUSTER_GROUP_ALL_GATHER,
                                     MUSTER_GROUP_REDUCE};
    static const uint64_t counts[] = {0, 1,  1,  1,
                                      3, 27, 28, most_elements - 1}; // 27 elements are announced, 28 are not
    planned p = {.kind = MUSTER_GROUP_BROADCAST};
    if (below(state, 100) == 0) p.kind = kinds[below(state, 4)];
    p.root = below(state, 4) == 0 ? below(state, size) : 0;
    p.count = p.kind == MUSTER_GROUP_BARRIER ? 0 : counts[below(state, below(state, 20) == 0 ? 8 : 4)];
    return p;
}

static planned deviate(planned p, enum deviation how, uint32_t size) {
    if (how == OTHER_ROOT && (p.kind == MUSTER_GROUP_BROADCAST || p.kind == MUSTER_GROUP_REDUCE))
        p.root = (p.root + 1) % size;
    else if (how == OTHER_COUNT && p.kind != MUSTER_GROUP_BARRIER)
        p.count++;
    else
        p.kind = p.kind == MUSTER_GROUP_ALL_REDUCE ? MUSTER_GROUP_BROADCAST : MUSTER_GROUP_ALL_REDUCE;
    return p;
}

static uint64_t element(uint32_t operation, uint32_t rank, uint64_t i) {
    return (operation + 1) * UINT64_C(1000) + rank * 100 + i % 97;
}

static void check_bytes(const step *s, uint32_t rank, uint32_t number, const planned *p, const uint64_t *output) {
    for (uint64_t i = 0; i < p->count; i++) {
        uint64_t expected = 0;
        if (p->kind == MUSTER_GROUP_BROADCAST)
            expected = element(number, p->root, i);
        else if (p->kind == MUSTER_GROUP_ALL_GATHER) // of rank 0: the first block
            expected = element(number, 0, i);
        else if (p->kind == MUSTER_GROUP_REDUCE && p->root != rank)
            return;
        else
            for (uint32_t r = 0; r < s->size; r++) expected += element(number, r, i);
        if (output[i] == expected) continue;
        fprintf(stderr, "rank %u, operation %u of kind %u has succeeded, and element %llu is %llu, not %llu\n", rank,
                number, p->kind, (unsigned long long)i, (unsigned long long)output[i], (unsigned long long)expected);
        abort();
    }
}

static void work(member *me) {
    const step *s = me->shared;
    static _Thread_local uint64_t input[most_elements], output[most_elements * most_members];
    uint64_t state = s->seed, own = s->seed + me->rank;
    muster_status status = MUSTER_OK;
    muster_error error = {0};
    for (uint32_t number = 0; number < s->operations && status == MUSTER_OK; number++) {
        planned p = plan(&state, s->size);
        const bool deviates = s->deviation != NONE && s->at == number && s->deviant == me->rank;
        if (deviates) p = deviate(p, s->deviation, s->size);
        if (s->are_slow && below(&own, 50) == 0) {
            const struct timespec busy = {0, (long)below(&own, 300) * 1000}; // work of the member
            nanosleep(&busy, NULL);
        }
        const bool is_root = p.kind == MUSTER_GROUP_BROADCAST && p.root == me->rank;
        for (uint64_t i = 0; i < p.count; i++) {
            input[i] = element(number, me->rank, i);
            output[i] = is_root ? input[i] : 0;
        }
        const muster_group_operation operation = {.struct_size = sizeof operation,
                                                  .kind = p.kind,
                                                  .type = MUSTER_TYPE_U64,
                                                  .reduction = MUSTER_REDUCE_SUM,
                                                  .root = p.root,
                                                  .count = p.count,
                                                  .input = input,
                                                  .output = output};
        status = muster_group_run(me->group, &operation, 60 * second, &error);
        // A success after the deviation has what the root announced that agrees with this member.
        if (status == MUSTER_OK) check_bytes(s, me->rank, number, &p, output);
    }
    if (status == MUSTER_OK) status = muster_group_barrier(me->group, 60 * second, &error);
    if (s->deviation == NONE) {
        CHECK_OK(status, error);
        return;
    }
    if (status != MUSTER_E_MISMATCH || strstr(error.message, "something else") != NULL) {
        fprintf(stderr, "rank %u: %s: %s\n", me->rank, muster_status_name(status), error.message);
        abort();
    }
    muster_group_release(me->group);
    me->group = NULL;
}

static void run(int count, const bool *left_out) {
    for (int i = 0; i < count; i++)
        if (!left_out[i]) run_members(all[i].size, &(member){.shared = &all[i]}, work);
}

static void test_members_out_of_step(void **state) {
    (void)state;
    const sequence s = {"members of a group that are out of step", steps, make, run, print};
    assert_true(run_sequences(&s, 60));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_members_out_of_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
