// SPDX-License-Identifier: MIT
// A round that is over while its members open their group.
// ctest: quick timeout=60
#include "group_run.h"

// Rank 1 publishes an address, and never connects to rank 0; then it aborts the round.
static void *leave_rank_0_alone(void *argument) {
    member *const me = argument;
    muster_rendezvous *rendezvous;
    muster_round *round;
    muster_round_info info;
    muster_error error = {0};
    char address[32];
    snprintf(address, sizeof address, "node%u", me->rank);
    const muster_rendezvous_config config = {.struct_size = sizeof config,
                                             .run_id = "alone",
                                             .run_id_bytes = 5,
                                             .store = me->store,
                                             .address = address,
                                             .address_bytes = strlen(address),
                                             .min = 2,
                                             .max = 2};
    CHECK_OK(muster_rendezvous_open(me->shared, &config, 10 * second, &rendezvous, &error), error);
    CHECK_OK(muster_rendezvous_join(rendezvous, 30 * second, &round, &error), error);
    CHECK(muster_round_get_info(round, &info) == MUSTER_OK);
    if (info.rank == 0) {
        const muster_group_config group = {
            .struct_size = sizeof group, .round = round, .listen = me->listen, .listen_bytes = strlen(me->listen)};
        const muster_status status = muster_group_open(me->shared, &group, 20 * second, &me->group, &error);
        if (status != MUSTER_E_STALE) fprintf(stderr, "%s: %s\n", muster_status_name(status), error.message);
        CHECK(status == MUSTER_E_STALE && me->group == NULL);
    } else {
        muster_store *view;
        muster_store_result *result;
        muster_store_entry entry;
        CHECK_OK(muster_round_store(round, &view, &error), error);
        muster_store_op op = {.kind = MUSTER_STORE_GET, .key = "group/0", .key_bytes = 7};
        CHECK_OK(muster_store_do(view, &op, 1, 20 * second, &result, &error), error);
        CHECK(muster_store_result_entry(result, 0, &entry) == MUSTER_OK);
        op = (muster_store_op){.kind = MUSTER_STORE_SET, .key = "group/1", .key_bytes = 7};
        op.value = entry.value;
        op.value_bytes = entry.value_bytes;
        CHECK_OK(muster_store_do(view, &op, 1, 20 * second, NULL, &error), error);
        muster_store_result_release(result);
        muster_store_release(view);
        muster_stream *stream; // rank 0 accepts it once it waits for rank 1, and refuses it
        uint64_t moved = 0;
        char byte;
        CHECK_OK(muster_transport_dial(me->shared, "inproc://alone-0", 16, NULL, 20 * second, &stream, &error), error);
        CHECK(muster_stream_read(stream, &byte, 1, 20 * second, &moved) == MUSTER_E_ABORTED);
        muster_stream_release(stream);
        CHECK_OK(muster_rendezvous_abort(rendezvous, "for a test", 10, 20 * second, &error), error);
    }
    muster_round_release(round);
    muster_rendezvous_release(rendezvous);
    return NULL;
}
static void test_the_end_of_a_round_ends_the_opening_of_its_group(void **state) {
    (void)state;
    members all;
    make_members(&all, 2, &(member){.listen = "inproc://alone-{}"});
    for (uint32_t r = 0; r < 2; r++) {
        all.list[r].shared = all.context;
        assert_int_equal(pthread_create(&all.list[r].thread, NULL, leave_rank_0_alone, &all.list[r]), 0);
    }
    for (uint32_t r = 0; r < 2; r++) pthread_join(all.list[r].thread, NULL);
    free_members(&all);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_end_of_a_round_ends_the_opening_of_its_group)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
