// SPDX-License-Identifier: MIT
// Operations of a group whose output is larger than the caches, into memory that was used before: it is written past
// them, which changes no result, nor what is beside it.
// ctest: quick timeout=120
#include "group_run.h"

enum { count = 9000001, edge = 16 }; // elements: 36 MB
static const uint32_t untouched = 0xEEEEEEEE;

static uint32_t element_of(uint32_t rank, size_t i) {
    return (uint32_t)(i * 2654435761u) + rank * 40503u;
}

static void fill(uint32_t *array, size_t size) {
    for (size_t i = 0; i < size + 2 * edge; i++) array[i] = untouched;
}
static void check_edges(const uint32_t *array, size_t size) {
    for (size_t i = 0; i < edge; i++) CHECK(array[i] == untouched && array[edge + size + i] == untouched);
}

static void large_outputs(member *me) {
    const uint32_t n = me->size, r = me->rank, type = MUSTER_TYPE_U32, root = 1;
    muster_group *const g = me->group;
    muster_error error = {0};
    uint32_t *const own = malloc((size_t)count * n * sizeof *own);
    uint32_t *const whole = malloc(((size_t)count * n + 2 * edge) * sizeof *whole), *const out = whole + edge;
    CHECK(own && whole);

    fill(whole, count);
    if (r == root)
        for (size_t i = 0; i < count; i++) out[i] = element_of(r, i);
    CHECK_OK(muster_group_broadcast(g, out, count, type, root, 60 * second, &error), error);
    for (size_t i = 0; i < count; i++) CHECK(out[i] == element_of(root, i));
    check_edges(whole, count);

    for (size_t i = 0; i < count; i++) own[i] = element_of(r, i);
    fill(whole, count);
    CHECK_OK(muster_group_all_reduce(g, own, out, count, type, MUSTER_REDUCE_SUM, 60 * second, &error), error);
    for (size_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < n; k++) sum += element_of(k, i);
        CHECK(out[i] == sum);
    }
    check_edges(whole, count);

    fill(whole, (size_t)count * n);
    CHECK_OK(muster_group_all_gather(g, own, out, count, type, 60 * second, &error), error);
    for (uint32_t k = 0; k < n; k++)
        for (size_t i = 0; i < count; i++) CHECK(out[(size_t)k * count + i] == element_of(k, i));
    check_edges(whole, (size_t)count * n);

    for (uint32_t k = 0; k < n; k++) // block k of the input of rank r
        for (size_t i = 0; i < count; i++) own[(size_t)k * count + i] = element_of(r * n + k, i);
    fill(whole, (size_t)count * n);
    CHECK_OK(muster_group_all_to_all(g, own, out, count, type, 60 * second, &error), error);
    for (uint32_t k = 0; k < n; k++)
        for (size_t i = 0; i < count; i++) CHECK(out[(size_t)k * count + i] == element_of(k * n + r, i));
    check_edges(whole, (size_t)count * n);

    fill(whole, count);
    CHECK_OK(muster_group_scatter(g, r == root ? own : NULL, out, count, type, root, 60 * second, &error), error);
    for (size_t i = 0; i < count; i++) CHECK(out[i] == element_of(root * n + r, i));
    check_edges(whole, count);

    fill(whole, (size_t)count * n);
    CHECK_OK(muster_group_gather(g, own, r == root ? out : NULL, count, type, root, 60 * second, &error), error);
    for (uint32_t k = 0; r == root && k < n; k++)
        for (size_t i = 0; i < count; i++) CHECK(out[(size_t)k * count + i] == element_of(k * n, i));
    check_edges(whole, (size_t)count * n);
    free(own), free(whole);
}
static void test_outputs_larger_than_the_caches(void **state) {
    (void)state;
    run_members(2, &(member){0}, large_outputs);
    run_members(3, &(member){.slot_bytes = 65536}, large_outputs);
    run_members(2, &(member){.flags = MUSTER_GROUP_NO_SHARED_MEMORY}, large_outputs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outputs_larger_than_the_caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
