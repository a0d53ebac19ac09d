// SPDX-License-Identifier: MIT
// Random sequences of collective operations, each compared with what one process computes alone, over shared memory and
// over streams. MUSTER_SEED repeats one. ctest: quick timeout=120
#include "group_run.h"
#include "random_run.h"

// ---- a random driver: all members make the same operations from one seed, and know all inputs
// ------------------------

typedef struct driver {
    uint64_t state;
    int operations;
} driver;

// Element `i` of the input of a rank in an operation: small, so that sums of each type are exact.
static int64_t element(uint64_t operation, uint32_t rank, uint64_t i) {
    uint64_t state = operation * 1000003 + rank * 7919 + i;
    return (int64_t)(next_random(&state) % 4);
}

static const uint32_t types[] = {MUSTER_TYPE_I8,  MUSTER_TYPE_U16, MUSTER_TYPE_I32,  MUSTER_TYPE_U64,
                                 MUSTER_TYPE_F16, MUSTER_TYPE_F32, MUSTER_TYPE_BF16, MUSTER_TYPE_F64};
static const size_t sizes[] = {1, 2, 4, 8, 2, 4, 2, 8};

static void put(void *array, uint64_t i, int type, int64_t value) {
    // Small integers as 16-bit floating-point numbers: 0 to 63.
    if (types[type] == MUSTER_TYPE_F16 || types[type] == MUSTER_TYPE_BF16) {
        const float wide = (float)value;
        uint32_t bits;
        uint16_t half;
        memcpy(&bits, &wide, 4);
        if (types[type] == MUSTER_TYPE_BF16)
            half = (uint16_t)(bits >> 16);
        else
            half = value == 0 ? 0 : (uint16_t)((bits >> 13) - (112u << 10));
        memcpy((char *)array + i * 2, &half, 2);
        return;
    }
    switch (types[type]) {
    case MUSTER_TYPE_I8:
        ((int8_t *)array)[i] = (int8_t)value;
        break;
    case MUSTER_TYPE_U16:
        ((uint16_t *)array)[i] = (uint16_t)value;
        break;
    case MUSTER_TYPE_I32:
        ((int32_t *)array)[i] = (int32_t)value;
        break;
    case MUSTER_TYPE_U64:
        ((uint64_t *)array)[i] = (uint64_t)value;
        break;
    case MUSTER_TYPE_F32:
        ((float *)array)[i] = (float)value;
        break;
    default:
        ((double *)array)[i] = (double)value;
    }
}

typedef struct plan { // of one operation
    uint64_t number, count;
    int type;
    uint32_t kind, reduction, root, flags;
    bool in_place, has_counts;
    uint64_t counts[64];
} plan;

static plan next_plan(driver *d, uint64_t number, uint32_t size) {
    static const uint64_t counts[] = {0, 1, 3, 64, 1000, 5000, 40000};
    plan p = {.number = number};
    uint64_t *const s = &d->state;
    p.kind = 1 + (uint32_t)(next_random(s) % 10);
    p.type = (int)(next_random(s) % 8);
    p.count = counts[next_random(s) % 7];
    p.root = (uint32_t)(next_random(s) % size);
    p.reduction = MUSTER_REDUCE_SUM + (uint32_t)(next_random(s) % 4);
    if (p.reduction == MUSTER_REDUCE_PRODUCT) p.reduction = MUSTER_REDUCE_SUM;
    p.in_place = next_random(s) % 2;
    p.has_counts = next_random(s) % 3 == 0 && p.kind >= MUSTER_GROUP_GATHER;
    if (p.kind == MUSTER_GROUP_REDUCE_SCATTER) p.has_counts = next_random(s) % 3 == 0;
    if (p.kind == MUSTER_GROUP_SCAN && next_random(s) % 2) p.flags = MUSTER_GROUP_EXCLUSIVE;
    for (uint32_t r = 0; r < size; r++) p.counts[r] = p.has_counts ? counts[next_random(s) % 7] : p.count;
    return p;
}
// ALL_TO_ALL: the elements that `from` sends to `to`.
static uint64_t sent(const plan *p, uint32_t from, uint32_t to) {
    return p->has_counts ? p->counts[(from + 2 * to) % 5 % 64] % 3000 : p->count;
}

static int64_t combine(uint32_t reduction, int64_t a, int64_t b) {
    return reduction == MUSTER_REDUCE_SUM ? a + b : (reduction == MUSTER_REDUCE_MIN) == (a < b) ? a : b;
}
static int64_t reduced(const plan *p, uint32_t first, uint32_t last, uint64_t i) {
    int64_t value = element(p->number, first, i);
    for (uint32_t r = first + 1; r < last; r++) value = combine(p->reduction, value, element(p->number, r, i));
    return value;
}

static void fail_driver(const member *me, const plan *p, uint64_t at, const char *what) {
    fprintf(
        stderr,
        "rank %u of %u, flags %u: operation %llu, kind %u, type %u, count %llu, in place %d, counts %d: %s at %llu\n",
        me->rank, me->size, me->flags, (unsigned long long)p->number, p->kind, types[p->type],
        (unsigned long long)p->count, p->in_place, p->has_counts, what, (unsigned long long)at);
    abort();
}

static void drive_one(member *me, const plan *p) {
    const size_t bytes = sizes[p->type];
    const uint32_t n = me->size;
    const bool is_root = me->rank == p->root;
    uint64_t blocks = 0, own_at = 0, total_in = p->count, total_out = p->count, to[64], from[64];
    for (uint32_t r = 0; r < n; r++) {
        if (r == me->rank) own_at = blocks;
        blocks += p->counts[r];
        to[r] = sent(p, me->rank, r);
        from[r] = sent(p, r, me->rank);
    }
    const uint64_t own = p->counts[me->rank];
    switch (p->kind) {
    case MUSTER_GROUP_REDUCE_SCATTER:
        total_in = blocks;
        total_out = p->in_place ? blocks : own;
        break;
    case MUSTER_GROUP_GATHER:
    case MUSTER_GROUP_ALL_GATHER:
        total_in = own;
        total_out = blocks;
        break;
    case MUSTER_GROUP_SCATTER:
        total_in = blocks;
        total_out = own;
        break;
    case MUSTER_GROUP_ALL_TO_ALL:
        total_in = total_out = 0;
        for (uint32_t r = 0; r < n; r++) total_in += to[r], total_out += from[r];
        break;
    default:
        break;
    }
    const bool symmetric = !(p->kind == MUSTER_GROUP_ALL_TO_ALL && total_in != total_out); // a result of its own size
    const bool in_place = p->in_place && symmetric && p->kind != MUSTER_GROUP_BROADCAST &&
                          p->kind != MUSTER_GROUP_SCATTER &&
                          (is_root || (p->kind != MUSTER_GROUP_REDUCE && p->kind != MUSTER_GROUP_GATHER));
    const uint64_t room = total_in > total_out ? total_in : total_out;
    void *const input = calloc(room + 1, bytes), *const output = calloc(room + 1, bytes);
    CHECK(input && output);
    // The input, in the place where it is read.
    void *const place = in_place ? output : input;
    const uint64_t at = in_place && (p->kind == MUSTER_GROUP_GATHER || p->kind == MUSTER_GROUP_ALL_GATHER) ? own_at : 0;
    if (p->kind == MUSTER_GROUP_BROADCAST) {
        for (uint64_t i = 0; is_root && i < p->count; i++) put(output, i, p->type, element(p->number, p->root, i));
    } else if (p->kind != MUSTER_GROUP_SCATTER || is_root) {
        for (uint64_t i = 0; i < total_in; i++) put(place, at + i, p->type, element(p->number, me->rank, i));
    }
    muster_group_operation operation = {.struct_size = sizeof operation,
                                        .kind = p->kind,
                                        .type = types[p->type],
                                        .reduction = p->reduction,
                                        .root = p->root,
                                        .flags = p->flags,
                                        .count = p->count,
                                        .input = in_place ? NULL : input,
                                        .output = output,
                                        .counts = p->has_counts ? p->counts : NULL};
    if (p->kind == MUSTER_GROUP_ALL_TO_ALL && p->has_counts) operation.counts = to, operation.output_counts = from;
    muster_error error = {0};
    CHECK_OK(muster_group_run(me->group, &operation, 60 * second, &error), error);
    // The result.
    void *const expected = calloc(room + 1, bytes);
    CHECK(expected);
    uint64_t filled = 0;
    switch (p->kind) {
    case MUSTER_GROUP_BARRIER:
        break;
    case MUSTER_GROUP_BROADCAST:
        for (uint64_t i = 0; i < p->count; i++) put(expected, filled++, p->type, element(p->number, p->root, i));
        break;
    case MUSTER_GROUP_REDUCE:
        for (uint64_t i = 0; is_root && i < p->count; i++) put(expected, filled++, p->type, reduced(p, 0, n, i));
        break;
    case MUSTER_GROUP_ALL_REDUCE:
        for (uint64_t i = 0; i < p->count; i++) put(expected, filled++, p->type, reduced(p, 0, n, i));
        break;
    case MUSTER_GROUP_REDUCE_SCATTER:
        for (uint64_t i = 0; i < own; i++) put(expected, filled++, p->type, reduced(p, 0, n, own_at + i));
        break;
    case MUSTER_GROUP_SCAN: {
        const uint32_t last = p->flags ? me->rank : me->rank + 1;
        for (uint64_t i = 0; last != 0 && i < p->count; i++) put(expected, filled++, p->type, reduced(p, 0, last, i));
        break;
    }
    case MUSTER_GROUP_GATHER:
    case MUSTER_GROUP_ALL_GATHER:
        for (uint32_t r = 0; (is_root || p->kind == MUSTER_GROUP_ALL_GATHER) && r < n; r++)
            for (uint64_t i = 0; i < p->counts[r]; i++) put(expected, filled++, p->type, element(p->number, r, i));
        break;
    case MUSTER_GROUP_SCATTER:
        for (uint64_t i = 0; i < own; i++) put(expected, filled++, p->type, element(p->number, p->root, own_at + i));
        break;
    default:
        for (uint32_t r = 0; r < n; r++) {
            uint64_t offset = 0;
            for (uint32_t before = 0; before < me->rank; before++) offset += sent(p, r, before);
            for (uint64_t i = 0; i < from[r]; i++) put(expected, filled++, p->type, element(p->number, r, offset + i));
        }
    }
    for (uint64_t i = 0; i < filled; i++)
        if (memcmp((char *)output + i * bytes, (char *)expected + i * bytes, bytes) != 0)
            fail_driver(me, p, i, "wrong");
    free(input), free(output), free(expected);
}

static void drive(member *me) {
    driver d = *(const driver *)me->shared;
    for (int i = 0; i < d.operations; i++) {
        const plan p = next_plan(&d, (uint64_t)i + 1, me->size);
        drive_one(me, &p);
    }
}

static void drive_groups(const member *like, int operations) {
    static const uint32_t group_sizes[] = {1, 2, 3, 5, 8};
    const char *const given = getenv("MUSTER_SEED");
    for (int i = 0; i < 5; i++) {
        driver d = {.state = given ? strtoull(given, NULL, 0) : 42 + (uint64_t)i, .operations = operations};
        member each = *like;
        each.shared = &d;
        run_members(group_sizes[i], &each, drive);
    }
}

static void test_random_operations_over_shared_memory(void **state) {
    (void)state;
    drive_groups(&(member){.slot_bytes = 4096}, 150); // many steps
    drive_groups(&(member){0}, 40);
}
static void test_random_operations_over_streams(void **state) {
    (void)state;
    drive_groups(&(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, 60);
    drive_groups(&(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY, .listen = "tcp://127.0.0.1:0?upgrade=no"}, 20);
}
static void test_random_operations_in_contexts_that_the_host_drives(void **state) {
    (void)state;
    drive_groups(&(member){.context_flags = MUSTER_CONTEXT_EXTERNAL}, 20);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_over_shared_memory),
        cmocka_unit_test(test_random_operations_over_streams),
        cmocka_unit_test(test_random_operations_in_contexts_that_the_host_drives),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
