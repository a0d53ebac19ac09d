// SPDX-License-Identifier: MIT
// ctest: quick timeout=60
// Agents that make one world: each is a node of its own, in one process.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <muster/agent.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

enum { most_nodes = 4 };

typedef struct fixture {
    muster_context *context;
    muster_store *store;
    char folder[64]; // for what the workers write
    muster_queue *queues[most_nodes];
    muster_agent *agents[most_nodes];
} fixture;

static int set_up(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_store_open(f.context, "memory:", 7, NULL, second, &f.store, NULL), MUSTER_OK);
    for (int i = 0; i < most_nodes; i++)
        assert_int_equal(muster_queue_create(f.context, NULL, &f.queues[i], NULL), MUSTER_OK);
    const char *const tmp = getenv("TMPDIR");
    snprintf(f.folder, sizeof f.folder, "%.40s/agent-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f.folder));
    assert_int_equal(setenv("T", f.folder, 1), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    for (int i = 0; i < most_nodes; i++) {
        muster_agent_release(f->agents[i]);
        muster_queue_release(f->queues[i]);
    }
    muster_store_release(f->store);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    muster_context_release(f->context);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    return system(command);
}

typedef struct job {
    uint32_t min, max, max_restarts;
    int64_t last_call_ns, join_timeout_ns;
    const char *script, *role;
} job;

static void start_node(fixture *f, const job *j, int node, uint32_t workers) {
    muster_rendezvous_config meeting;
    muster_config_init(&meeting, sizeof meeting);
    meeting.run_id = "job";
    meeting.run_id_bytes = 3;
    meeting.store = f->store;
    meeting.min = j->min;
    meeting.max = j->max;
    if ((uint32_t)node < j->max) meeting.flags = MUSTER_RENDEZVOUS_HAS_RANK, meeting.rank = (uint32_t)node;
    meeting.last_call_ns = j->last_call_ns;
    muster_agent_config config;
    muster_config_init(&config, sizeof config);
    char variable[16];
    snprintf(variable, sizeof variable, "%d", node);
    setenv("NODE", variable, 1);
    const char *const argv[] = {"sh", "-c", j->script, NULL};
    config.argv = argv;
    config.worker_count = workers;
    config.max_restarts = j->max_restarts;
    config.rendezvous = &meeting;
    config.join_timeout_ns = j->join_timeout_ns;
    config.role = j->role;
    muster_error error;
    if (muster_agent_start(f->context, &config, f->queues[node], 0, &f->agents[node], &error) != MUSTER_OK)
        fail_msg("%s", error.message);
}

static muster_error end_of(fixture *f, int node) {
    muster_error error = {0};
    const muster_status status = muster_agent_wait(f->agents[node], 40 * second, &error);
    if (status > 0) fail_msg("node %d does not end", node);
    error.status = status;
    return error;
}

static void expect_success(fixture *f, int node) {
    const muster_error error = end_of(f, node);
    if (error.status != MUSTER_OK) fail_msg("node %d: %s", node, error.message);
}

static muster_completion await_event(fixture *f, int node, uint32_t event, muster_error *error) {
    for (;;) {
        muster_completion entry;
        assert_int_equal(muster_queue_next(f->queues[node], 40 * second, &entry, error), MUSTER_OK);
        if (entry.kind == MUSTER_DONE_AGENT) fail_msg("node %d: %s", node, error ? error->message : "it is over");
        if (entry.kind == MUSTER_EVENT_AGENT && entry.events == event) return entry;
    }
}

static muster_agent_state state_of(fixture *f, int node) {
    muster_agent_state now;
    assert_int_equal(muster_agent_get_state(f->agents[node], &now), MUSTER_OK);
    return now;
}

static void read_text(const fixture *f, const char *name, char *text, size_t room) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("no file %s", path);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

static void release_workers(const fixture *f) { // those that wait for a file "go"
    char path[128];
    snprintf(path, sizeof path, "%s/go", f->folder);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}
#define WAIT_FOR_GO "while ! [ -e $T/go ]; do sleep 0.01; done; "

static void test_ranks_go_over_all_nodes(void **state) {
    fixture *f = *state;
    const job j = {.min = 3,
                   .max = 3,
                   .script = "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE "
                             "$ROLE_RANK $ROLE_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT > $T/$NODE.$LOCAL_RANK"};
    job other = j;
    other.role = "ps";
    start_node(f, &j, 0, 2);
    start_node(f, &other, 1, 1);
    start_node(f, &j, 2, 3);
    for (int i = 0; i < 3; i++) expect_success(f, i);
    char where[300];
    const muster_agent_state now = state_of(f, 2);
    snprintf(where, sizeof where, "%s:%u\n", now.master_address, now.master_port);
    static const struct {
        const char *name, *text;
    } wanted[] = {{"0.0", "0 6 0 2 0 3 0 5 "}, {"0.1", "1 6 1 2 0 3 1 5 "}, {"1.0", "2 6 0 1 1 3 0 1 "},
                  {"2.0", "3 6 0 3 2 3 2 5 "}, {"2.1", "4 6 1 3 2 3 3 5 "}, {"2.2", "5 6 2 3 2 3 4 5 "}};
    for (int i = 0; i < 6; i++) {
        char text[512], whole[512];
        read_text(f, wanted[i].name, text, sizeof text);
        snprintf(whole, sizeof whole, "%s%s", wanted[i].text, where);
        assert_string_equal(text, whole);
    }
    assert_string_equal(now.master_address, "127.0.0.1");
    assert_in_range(now.master_port, 1024, 65535);
}

static void test_a_failure_restarts_all_nodes(void **state) {
    fixture *f = *state;
    const job j = {.min = 2,
                   .max = 2,
                   .max_restarts = 3,
                   .script = "echo $MUSTER_RESTART_COUNT $MUSTER_ROUND >> $T/$NODE.$LOCAL_RANK; "
                             "[ $MUSTER_RESTART_COUNT = 2 ] && exit 0; "
                             "[ $NODE.$LOCAL_RANK = 1.1 ] && exit 5; exec sleep 1000"};
    start_node(f, &j, 0, 1);
    start_node(f, &j, 1, 2);
    muster_error error = {0};
    await_event(f, 0, MUSTER_AGENT_RESTARTING, &error);
    assert_non_null(strstr(error.message, "worker 1 (rank 2) failed with exit code 5"));
    expect_success(f, 0);
    expect_success(f, 1);
    assert_int_equal(state_of(f, 0).restarts, 2);
    assert_int_equal(state_of(f, 1).restarts, 2);
    char text[64];
    read_text(f, "0.0", text, sizeof text);
    assert_non_null(strstr(text, "2 3\n")); // what it wrote before depends on how soon it was stopped
}

static void test_the_last_failure_ends_all_nodes(void **state) {
    fixture *f = *state;
    const job j = {.min = 2,
                   .max = 3,
                   .last_call_ns = 20 * ms,
                   .max_restarts = 1,
                   .script = "[ $NODE = 1 ] && exit 7; exec sleep 1000"};
    start_node(f, &j, 0, 1);
    start_node(f, &j, 1, 1);
    const muster_error far = end_of(f, 0), near = end_of(f, 1);
    assert_int_equal(near.status, MUSTER_E_ABORTED);
    assert_int_equal(near.provider_code, 7);
    assert_int_equal(near.rank, 1);
    assert_int_equal(far.status, MUSTER_E_ABORTED);
    assert_int_equal(far.provider_code, 7);
    assert_non_null(strstr(far.message, "worker 0 (rank 1) failed with exit code 7"));
    muster_agent_worker worker;
    assert_int_equal(muster_agent_first_failure(f->agents[0], &worker), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_agent_first_failure(f->agents[1], &worker), MUSTER_OK);
    assert_int_equal(worker.restarts, 1);
    // Each restart was reported, nothing after the last failure.
    for (int node = 0; node < 2; node++) {
        muster_completion entry = {0};
        int restarts = 0;
        while (entry.kind != MUSTER_DONE_AGENT) {
            assert_int_equal(muster_queue_next(f->queues[node], 40 * second, &entry, NULL), MUSTER_OK);
            if (entry.kind == MUSTER_EVENT_AGENT && entry.events == MUSTER_AGENT_RESTARTING) restarts++;
        }
        assert_int_equal(restarts, 1);
    }
    // A node that joins now is too late.
    start_node(f, &j, 2, 1);
    assert_int_equal(end_of(f, 2).status, MUSTER_E_STALE);
}

static void test_a_newcomer_is_let_in(void **state) {
    fixture *f = *state;
    const job j = {.min = 1, .max = 2, .last_call_ns = 20 * ms, .script = WAIT_FOR_GO};
    start_node(f, &j, 0, 2);
    await_event(f, 0, MUSTER_AGENT_STARTED, NULL);
    assert_int_equal(state_of(f, 0).world_size, 2);
    start_node(f, &j, 1, 1);
    await_event(f, 0, MUSTER_AGENT_RESTARTING, NULL);
    await_event(f, 0, MUSTER_AGENT_STARTED, NULL);
    await_event(f, 1, MUSTER_AGENT_STARTED, NULL);
    assert_int_equal(state_of(f, 0).world_size, 3);
    assert_int_equal(state_of(f, 0).group_rank, 0); // as before
    assert_int_equal(state_of(f, 0).restarts, 0);   // nothing failed
    assert_int_equal(state_of(f, 1).round, state_of(f, 0).round);
    release_workers(f);
    expect_success(f, 0);
    expect_success(f, 1);
}

static void test_who_leaves_is_done_without(void **state) {
    fixture *f = *state;
    const job j = {.min = 1, .max = 2, .last_call_ns = 20 * ms, .script = WAIT_FOR_GO};
    start_node(f, &j, 0, 1);
    start_node(f, &j, 1, 1);
    do await_event(f, 1, MUSTER_AGENT_STARTED, NULL);
    while (state_of(f, 1).group_world_size != 2);
    assert_int_equal(muster_agent_stop(f->agents[0], SIGTERM, 10 * second), MUSTER_OK);
    assert_int_equal(end_of(f, 0).status, MUSTER_E_CANCELED);
    do await_event(f, 1, MUSTER_AGENT_STARTED, NULL);
    while (state_of(f, 1).group_world_size != 1);
    assert_int_equal(state_of(f, 1).restarts, 0);
    release_workers(f);
    expect_success(f, 1);
}

// Rank 0 gives the others their ranks; here it never does, and its end is no reason to wait for the join's time limit.
static void test_a_node_that_dies_before_it_has_told_anything_is_done_without(void **state) {
    fixture *f = *state;
    const job j = {.min = 1, .max = 2, .last_call_ns = second, .join_timeout_ns = 600 * second, .script = "true"};
    muster_rendezvous_config run;
    muster_config_init(&run, sizeof run);
    run.run_id = "job";
    run.run_id_bytes = 3;
    run.store = f->store;
    run.min = j.min;
    run.max = j.max;
    run.last_call_ns = j.last_call_ns;
    run.flags = MUSTER_RENDEZVOUS_HAS_RANK;
    run.rank = 0;
    muster_rendezvous *first;
    assert_int_equal(muster_rendezvous_open(f->context, &run, second, &first, NULL), MUSTER_OK);
    start_node(f, &j, 1, 1);
    muster_round *round;
    muster_round_info info;
    assert_int_equal(muster_rendezvous_join(first, 20 * second, &round, NULL), MUSTER_OK);
    assert_int_equal(muster_round_get_info(round, &info), MUSTER_OK);
    assert_int_equal(info.rank, 0);
    assert_int_equal(info.world, 2);
    muster_round_release(round);
    muster_rendezvous_release(first);
    expect_success(f, 1);
}

static void test_a_spare_ends_with_the_job(void **state) {
    fixture *f = *state;
    const job j = {.min = 1, .max = 1, .script = WAIT_FOR_GO};
    start_node(f, &j, 0, 1);
    await_event(f, 0, MUSTER_AGENT_STARTED, NULL);
    start_node(f, &j, 1, 1);
    muster_rendezvous *meeting = NULL;
    muster_rendezvous_state now = {0};
    while (now.spares == 0) { // the leader reports it when it knows
        if (muster_agent_rendezvous(f->agents[1], &meeting) == MUSTER_OK)
            assert_int_equal(muster_rendezvous_get_state(meeting, &now), MUSTER_OK);
        muster_rendezvous_release(meeting);
        if (state_of(f, 1).phase == MUSTER_AGENT_ENDED) fail_msg("%s", end_of(f, 1).message);
        poll(NULL, 0, 5);
    }
    assert_int_equal(state_of(f, 1).phase, MUSTER_AGENT_JOINING);
    assert_int_equal(state_of(f, 0).round, 1); // which has not been disturbed
    release_workers(f);
    expect_success(f, 0);
    expect_success(f, 1);
    assert_int_equal(muster_agent_rendezvous(f->agents[1], &meeting), MUSTER_E_NOT_FOUND);
}

// A spare takes the place of one that fails to come back.
static void test_a_spare_steps_in(void **state) {
    fixture *f = *state;
    const job j = {.min = 2, .max = 2, .script = WAIT_FOR_GO};
    for (int i = 0; i < 3; i++) start_node(f, &j, i, 1);
    int spare = -1;
    while (spare < 0) {
        int in = 0;
        for (int i = 0; i < 3; i++) in += state_of(f, i).phase == MUSTER_AGENT_RUNNING;
        for (int i = 0; in == 2 && i < 3; i++)
            if (state_of(f, i).phase == MUSTER_AGENT_JOINING) spare = i;
        poll(NULL, 0, 5);
    }
    const int gone = (spare + 1) % 3;
    assert_int_equal(muster_agent_stop(f->agents[gone], SIGTERM, 10 * second), MUSTER_OK);
    assert_int_equal(end_of(f, gone).status, MUSTER_E_CANCELED);
    await_event(f, spare, MUSTER_AGENT_STARTED, NULL);
    assert_int_equal(state_of(f, spare).group_world_size, 2);
    release_workers(f);
    for (int i = 0; i < 3; i++)
        if (i != gone) expect_success(f, i);
}

// One node is done, the other fails: all workers run once more.
static void test_who_is_done_waits_for_the_others(void **state) {
    fixture *f = *state;
    const job j = {.min = 2,
                   .max = 2,
                   .max_restarts = 1,
                   .script =
                       "echo >> $T/$NODE; [ $NODE.$MUSTER_RESTART_COUNT = 1.0 ] || exit 0; " WAIT_FOR_GO "exit 1"};
    start_node(f, &j, 0, 1);
    start_node(f, &j, 1, 1);
    while (state_of(f, 0).phase != MUSTER_AGENT_DONE) poll(NULL, 0, 5);
    assert_int_equal(muster_agent_wait(f->agents[0], 0, NULL), MUSTER_AGAIN);
    release_workers(f);
    expect_success(f, 0);
    expect_success(f, 1);
    char text[16];
    read_text(f, "0", text, sizeof text);
    assert_string_equal(text, "\n\n");
}

static void test_too_few_nodes_are_told(void **state) {
    fixture *f = *state;
    const job j = {.min = 2, .max = 2, .join_timeout_ns = 50 * ms, .script = "exit 0"};
    start_node(f, &j, 0, 1);
    const muster_error error = end_of(f, 0);
    assert_int_equal(error.status, MUSTER_E_UNREACHABLE);
    assert_true(error.message_bytes > 0);
}

static void test_stop_ends_the_wait_for_others(void **state) {
    fixture *f = *state;
    const job j = {.min = 2, .max = 2, .script = "exit 0"};
    start_node(f, &j, 0, 1);
    muster_completion entry;
    do entry = await_event(f, 0, MUSTER_AGENT_RENDEZVOUS_EVENT, NULL);
    while (entry.bytes != MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_agent_stop(f->agents[0], 0, -1), MUSTER_OK);
    assert_int_equal(end_of(f, 0).status, MUSTER_E_CANCELED);
}

static void test_other_parameters_are_told(void **state) {
    fixture *f = *state;
    const job j = {.min = 2, .max = 2, .script = "exit 0"};
    job other = j;
    other.max = 3;
    start_node(f, &j, 0, 1);
    await_event(f, 0, MUSTER_AGENT_RENDEZVOUS_EVENT, NULL);
    start_node(f, &other, 1, 1);
    assert_int_equal(end_of(f, 1).status, MUSTER_E_ARG);
    muster_agent_stop(f->agents[0], 0, -1);
    end_of(f, 0);
}

static void test_given_ranks_need_no_store(void **state) {
    fixture *f = *state;
    muster_rendezvous_config meeting;
    muster_config_init(&meeting, sizeof meeting);
    meeting.run_id = "job";
    meeting.run_id_bytes = 3;
    meeting.url = "static:";
    meeting.url_bytes = 7;
    meeting.min = meeting.max = 2;
    meeting.flags = MUSTER_RENDEZVOUS_HAS_RANK;
    muster_agent_config config;
    muster_config_init(&config, sizeof config);
    const char *const argv[] = {"sh", "-c", "echo $RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT > $T/$RANK", NULL};
    config.argv = argv;
    config.worker_count = 2;
    config.rendezvous = &meeting;
    for (uint32_t rank = 0; rank < 2; rank++) {
        meeting.rank = rank;
        config.master_address = "first";
        config.master_port = 29500;
        assert_int_equal(muster_agent_start(f->context, &config, f->queues[rank], 0, &f->agents[rank], NULL),
                         MUSTER_OK);
    }
    expect_success(f, 0);
    expect_success(f, 1);
    char text[64];
    read_text(f, "3", text, sizeof text);
    assert_string_equal(text, "3 4 first:29500\n");
    config.master_address = NULL;
    muster_agent_release(f->agents[0]);
    assert_int_equal(muster_agent_start(f->context, &config, f->queues[0], 0, &f->agents[0], NULL), MUSTER_OK);
    const muster_error error = end_of(f, 0);
    assert_int_equal(error.status, MUSTER_E_ARG);
    assert_non_null(strstr(error.message, "master_address"));
}

int main(int count, char **arguments) {
    if (count > 1) cmocka_set_test_filter(arguments[1]);
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_ranks_go_over_all_nodes),
        TEST(test_a_failure_restarts_all_nodes),
        TEST(test_the_last_failure_ends_all_nodes),
        TEST(test_a_newcomer_is_let_in),
        TEST(test_who_leaves_is_done_without),
        TEST(test_a_node_that_dies_before_it_has_told_anything_is_done_without),
        TEST(test_a_spare_ends_with_the_job),
        TEST(test_a_spare_steps_in),
        TEST(test_who_is_done_waits_for_the_others),
        TEST(test_too_few_nodes_are_told),
        TEST(test_stop_ends_the_wait_for_others),
        TEST(test_other_parameters_are_told),
        TEST(test_given_ranks_need_no_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
