// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// The store that the members of a cluster share, and groups and global memory whose members are those of a cluster.
#include "cluster_master.h"

#include <muster/group.h>
#include <muster/inline/short.h>
#include <muster/memory.h>
#include <muster/store_server.h>

enum { workers = 3, members = workers + 1 };

// ---- what each member does: 0, or where it failed

static int sum_up(muster_group *group, muster_error *error) {
    uint64_t values[2] = {muster_group_rank(group) + 1, 1};
    muster_group_operation sum;
    muster_config_init(&sum, sizeof sum);
    sum.kind = MUSTER_GROUP_ALL_REDUCE;
    sum.type = MUSTER_TYPE_U64;
    sum.reduction = MUSTER_REDUCE_SUM;
    sum.count = 2;
    sum.output = values;
    if (muster_group_run(group, &sum, 30 * second, error) != MUSTER_OK) return 60;
    return values[0] == members * (members + 1) / 2 && values[1] == members ? 0 : 61;
}

static int count_up(muster_group *group, muster_error *error) {
    muster_memory *memory = NULL;
    if (muster_memory_open(group, NULL, 30 * second, &memory, error) != MUSTER_OK) return 62;
    uint64_t offset = 0;
    int code = 0;
    muster_memory_operation add;
    muster_config_init(&add, sizeof add);
    add.kind = MUSTER_MEMORY_FETCH;
    add.order = MUSTER_ATOMIC_SEQ_CST;
    add.operation = MUSTER_ATOMIC_ADD;
    add.value = 1;
    muster_memory_operation read = add;
    read.kind = MUSTER_MEMORY_READ;
    read.operation = 0;
    read.value = 0;
    muster_memory_result found = {0};
    if (muster_memory_symmetric(memory, 64, 64, 30 * second, &offset, error) != MUSTER_OK) code = 63;
    if (code == 0 && muster_memory_pointer(memory, 0, offset, &add.target) != MUSTER_OK) code = 64;
    read.target = add.target;
    for (int i = 0; i < 100 && code == 0; i++)
        if (muster_memory_run(memory, &add, 30 * second, &found) != MUSTER_OK) code = 65;
    muster_group_operation barrier;
    muster_config_init(&barrier, sizeof barrier);
    barrier.kind = MUSTER_GROUP_BARRIER;
    if (code == 0 && muster_group_run(group, &barrier, 30 * second, error) != MUSTER_OK) code = 66;
    if (code == 0 && muster_memory_run(memory, &read, 30 * second, &found) != MUSTER_OK) code = 67;
    if (code == 0 && found.value != 100 * members) code = 69;
    if (code == 0 && muster_group_run(group, &barrier, 30 * second, error) != MUSTER_OK) code = 68;
    muster_memory_release(memory);
    return code;
}

// All members of the cluster are those of the group, twice with different names.
static int take_part(muster_context *context, muster_cluster *cluster, const char *listen) {
    muster_error error = {0};
    int code = 0;
    for (int turn = 0; turn < 2 && code == 0; turn++) {
        muster_group_config config;
        muster_config_init(&config, sizeof config);
        config.flags = MUSTER_GROUP_RANK_OF_MEMBER | MUSTER_GROUP_MESSAGES;
        config.size = members;
        config.cluster = cluster;
        config.name = turn == 0 ? "first" : "second";
        config.name_bytes = strlen(config.name);
        config.listen = listen;
        config.listen_bytes = strlen(listen);
        muster_group *group = NULL;
        if (muster_group_open(context, &config, 30 * second, &group, &error) != MUSTER_OK) code = 50;
        if (code == 0 && muster_group_rank(group) != muster_cluster_self(cluster)) code = 51;
        if (code == 0) code = sum_up(group, &error);
        if (code == 0 && turn == 0) code = count_up(group, &error);
        muster_group_release(group);
    }
    if (code != 0) fprintf(stderr, "member %u: %d: %s\n", muster_cluster_self(cluster), code, error.message);
    return code;
}

static muster_status put(muster_store *store, const char *key, const char *value) {
    return muster_store_set_z(store, key, value, strlen(value), 30 * second, NULL);
}

static muster_status get(muster_store *store, const char *key, char *out, size_t room) {
    size_t bytes = 0;
    const muster_status status = muster_store_get_z(store, key, out, room - 1, &bytes, 30 * second, NULL);
    out[status == MUSTER_OK ? bytes : 0] = '\0';
    return status;
}

// A worker: writes its number into the store, waits for the master's word, takes part in the groups, and leaves on
// request.
static int work_here(const char *listen) {
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    muster_store *store = NULL;
    if (muster_worker_context(NULL, 0, &context, &error) != MUSTER_OK) return 40;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER;
    if (muster_worker_start(context, &config, 20 * second, &cluster, &error) != MUSTER_OK) return 41;
    if (muster_cluster_store(cluster, 20 * second, &store, &error) != MUSTER_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 42;
    }
    char key[32], word[32] = "";
    snprintf(key, sizeof key, "here/%u", muster_cluster_self(cluster));
    if (put(store, key, "yes") != MUSTER_OK) return 43;
    if (get(store, "word", word, sizeof word) != MUSTER_OK) return 44;
    if (strcmp(word, "begin") != 0) return 45;
    int code = take_part(context, cluster, listen);
    muster_cluster_event event;
    while (muster_cluster_next_event(cluster, 20 * second, &event) == MUSTER_OK && event.kind != MUSTER_CLUSTER_LEAVE) {
    }
    muster_cluster_close(cluster, -1);
    muster_store *late = NULL;
    if (code == 0 && muster_cluster_store(cluster, second, &late, &error) != MUSTER_E_CLOSED) code = 46;
    muster_store_release(store);
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return code;
}

// ---- the master

static void members_meet(fixture *f, const char *listen, const char *worker_listen, const char *of_group) {
    open_with(f, 0, listen, 0);
    const char *const words[] = {self_path, "member", of_group, NULL};
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.argv = words;
    launch.listen = worker_listen;
    add_like(f, &launch, NULL, workers);
    await_joined(f, workers);
    muster_store *store = NULL;
    muster_error error = {0};
    if (muster_cluster_store(f->cluster, 20 * second, &store, &error) != MUSTER_OK) fail_msg("%s", error.message);
    for (int i = 1; i <= workers; i++) {
        char key[32], value[32] = "";
        snprintf(key, sizeof key, "here/%d", i);
        assert_int_equal(get(store, key, value, sizeof value), MUSTER_OK);
        assert_string_equal(value, "yes");
    }
    assert_int_equal(put(store, "word", "begin"), MUSTER_OK);
    assert_int_equal(take_part(f->context, f->cluster, of_group), 0);
    // Each worker ends with 0: the master reports another code as a death.
    for (uint32_t i = 1; i <= workers; i++)
        assert_int_equal(muster_cluster_remove(f->cluster, i, 20 * second), MUSTER_OK);
    for (int i = 0; i < workers; i++) {
        const muster_cluster_event event = next(f);
        if (event.kind != MUSTER_CLUSTER_REMOVED) fail_msg("event %u: %s", event.kind, event.text);
    }
    muster_cluster_close(f->cluster, second);
    // The store has ended with the cluster.
    assert_true(put(store, "word", "late") < 0);
    muster_store_release(store);
}

static void test_members_of_a_cluster_are_a_group_over_tcp(void **state) {
    members_meet(*state, NULL, NULL, "tcp://127.0.0.1:0");
}

static void test_members_of_a_cluster_are_a_group_over_unix_sockets(void **state) {
    char master[64], worker[64], group[64];
    snprintf(master, sizeof master, "unix://@muster-store-%d-0", (int)getpid());
    snprintf(worker, sizeof worker, "unix://@muster-store-%d-{}", (int)getpid());
    snprintf(group, sizeof group, "unix://@muster-store-%d-g-{}", (int)getpid());
    members_meet(*state, master, worker, group);
}

static void test_members_of_a_cluster_are_a_group_over_shared_memory(void **state) {
    char master[64], worker[64], group[64];
    snprintf(master, sizeof master, "shm://store-%d-0", (int)getpid());
    snprintf(worker, sizeof worker, "shm://store-%d-{}", (int)getpid());
    snprintf(group, sizeof group, "shm://store-%d-g-{}", (int)getpid());
    members_meet(*state, master, worker, group);
}

static void test_the_store_may_be_opened_by_a_queue(void **state) {
    fixture *f = *state;
    open_with(f, 0, NULL, 0);
    muster_queue *queue = NULL;
    muster_error error = {0};
    assert_int_equal(muster_queue_create(f->context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_cluster_store_begin(f->cluster, 20 * second, queue, 7, &error), MUSTER_OK);
    muster_completion entry;
    assert_int_equal(muster_queue_next(queue, 30 * second, &entry, &error), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_DONE_OPEN);
    assert_int_equal(entry.status, MUSTER_OK);
    assert_int_equal(entry.tag, 7);
    muster_store *const first = (muster_store *)entry.object;
    muster_store *second_one = NULL;
    assert_int_equal(put(first, "a", "b"), MUSTER_OK);
    assert_int_equal(muster_cluster_store(f->cluster, 20 * second, &second_one, &error), MUSTER_OK);
    char value[8] = "";
    assert_int_equal(get(second_one, "a", value, sizeof value), MUSTER_OK);
    assert_string_equal(value, "b");
    muster_store_release(first);
    muster_store_release(second_one);
    assert_int_equal(muster_cluster_store_begin(f->cluster, 0, queue, 7, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_store_begin(f->cluster, second, NULL, 7, &error), MUSTER_E_ARG);
    muster_queue_release(queue);
}

static void open_with_store(fixture *f, const char *listen, const char *store) {
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.listen = listen;
    config.listen_bytes = listen ? strlen(listen) : 0;
    config.store = store;
    config.store_bytes = strlen(store);
    assert_int_equal(muster_cluster_open(f->context, &config, &f->cluster, NULL), MUSTER_OK);
}

static void test_the_host_names_the_address_of_the_store(void **state) {
    fixture *f = *state;
    char where[64];
    snprintf(where, sizeof where, "unix://@muster-store-%d-here", (int)getpid());
    open_with_store(f, NULL, where);
    muster_store *store = NULL, *direct = NULL;
    muster_error error = {0};
    assert_int_equal(muster_cluster_store(f->cluster, 20 * second, &store, &error), MUSTER_OK);
    assert_int_equal(muster_store_open(f->context, where, strlen(where), NULL, 20 * second, &direct, &error),
                     MUSTER_OK);
    assert_int_equal(put(direct, "a", "b"), MUSTER_OK);
    assert_int_equal(muster_store_wait_z(store, "a", 30 * second, NULL), MUSTER_OK);
    muster_store_release(direct);
    muster_store_release(store);
}

static void test_what_cannot_be_is_refused(void **state) {
    fixture *f = *state;
    muster_store *store = (muster_store *)1;
    muster_error error = {0};
    open_with_store(f, NULL, "nonsense");
    assert_int_equal(muster_cluster_store(f->cluster, second, &store, &error), MUSTER_E_ADDRESS);
    assert_null(store);
    assert_says(error.message, "nonsense");
    assert_int_equal(muster_cluster_store(NULL, second, &store, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_store(f->cluster, 0, &store, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_store(f->cluster, second, NULL, &error), MUSTER_E_ARG);
    muster_cluster_close(f->cluster, second);
    assert_int_equal(muster_cluster_store(f->cluster, second, &store, &error), MUSTER_E_CLOSED);
    muster_cluster_release(f->cluster);
    f->cluster = NULL;
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.store_bytes = 3;
    assert_int_equal(muster_cluster_open(f->context, &config, &f->cluster, &error), MUSTER_E_ARG);
    config.store_bytes = 0;
    config.reserved1 = 1;
    assert_int_equal(muster_cluster_open(f->context, &config, &f->cluster, &error), MUSTER_E_ARG);
    config.reserved1 = 0;
    assert_int_equal(muster_cluster_open(f->context, &config, &f->cluster, &error), MUSTER_OK);

    muster_group *group = NULL;
    muster_group_config of;
    muster_config_init(&of, sizeof of);
    of.size = 2;
    of.flags = MUSTER_GROUP_RANK_OF_MEMBER;
    of.listen = "tcp://127.0.0.1:0";
    of.listen_bytes = strlen(of.listen);
    assert_int_equal(muster_group_open(f->context, &of, second, &group, &error), MUSTER_E_ARG);
    assert_says(error.message, "no cluster");
    assert_int_equal(muster_cluster_store(f->cluster, 20 * second, &store, &error), MUSTER_OK);
    of.cluster = f->cluster;
    of.store = store;
    assert_int_equal(muster_group_open(f->context, &of, second, &group, &error), MUSTER_E_ARG);
    assert_says(error.message, "more than one");
    of.store = NULL;
    // The other member never comes: its rank is named.
    assert_int_equal(muster_group_open(f->context, &of, second / 5, &group, &error), MUSTER_TIMEOUT);
    assert_says(error.message, "1");
    muster_store_release(store);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "member") == 0) return work_here(argv[2]);
    find_self();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_members_of_a_cluster_are_a_group_over_tcp, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_of_a_cluster_are_a_group_over_unix_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_of_a_cluster_are_a_group_over_shared_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_store_may_be_opened_by_a_queue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_host_names_the_address_of_the_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_is_refused, set_up, tear_down),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
