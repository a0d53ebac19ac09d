// SPDX-License-Identifier: MIT
// A master in C, and one worker in each language: master <command of a worker>...
// Over each transport it exchanges bytes with all of them, has each do that with each other, and loses one.
#include "cluster_master.h"

#include <muster/broker.h>

enum { most_workers = 8, block_bytes = 300000 };
static const char *commands[most_workers];
static uint32_t worker_count;

static uint32_t add_all(fixture *f, const char *listen) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < worker_count; i++) {
        const char *const words[] = {"sh", "-c", commands[i], NULL};
        muster_launch launch;
        muster_config_init(&launch, sizeof launch);
        launch.argv = words;
        launch.listen = listen;
        const uint32_t number = add_like(f, &launch, "", 1);
        if (i == 0) first = number;
    }
    await_joined(f, worker_count);
    return first;
}

static void assert_echoes(fixture *f, uint32_t member) {
    static unsigned char sent[block_bytes], back[block_bytes];
    for (size_t i = 0; i < sizeof sent; i++) sent[i] = (unsigned char)(i * 7 + member);
    muster_stream *const stream = dial(f, member, "echo");
    size_t moved = 0;
    assert_int_equal(muster_stream_write(stream, sent, sizeof sent, 60 * second, &moved), MUSTER_OK);
    assert_int_equal(muster_stream_finish(stream), MUSTER_OK);
    assert_int_equal(muster_stream_read_into(stream, back, sizeof back, 0, 60 * second, &moved), MUSTER_OK);
    assert_memory_equal(sent, back, sizeof sent);
    assert_int_equal(muster_stream_read(stream, back, 1, 60 * second, &moved), MUSTER_E_END);
    hang_up(stream);
}

static void assert_all_hear(fixture *f, uint32_t first, uint32_t last) {
    enum { much = 3000000 };
    unsigned char *const data = malloc(much);
    uint32_t sum = 0;
    assert_non_null(data);
    for (uint32_t i = 0; i < much; i++) sum += data[i] = (unsigned char)(i * 13 + i / 251);
    muster_error error = {0};
    if (muster_cluster_broadcast(f->cluster, NULL, 0, "much", 4, data, much, 60 * second, NULL, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    free(data);
    char expected[64];
    snprintf(expected, sizeof expected, "%d %u\n", much, sum);
    for (uint32_t member = first; member <= last; member++) assert_string_equal(ask(f, member, "heard"), expected);
}

static void meet_over(fixture *f, const char *master, const char *worker) {
    open_with(f, 0, master, 0);
    const uint32_t first = add_all(f, worker), last = first + worker_count - 1;
    for (uint32_t member = first; member <= last; member++) assert_echoes(f, member);
    assert_all_hear(f, first, last);
    for (uint32_t one = first; one <= last; one++)
        for (uint32_t other = first; other <= last; other++) {
            char label[32];
            if (one == other) continue;
            snprintf(label, sizeof label, "pair:%u", other);
            const char *const said = ask(f, one, label);
            if (strcmp(said, "ok\n") != 0)
                fail_msg("%s with %s: %s", commands[one - first], commands[other - first], said);
        }
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, last, &info), MUSTER_OK);
    assert_int_equal(kill((pid_t)info.pid, SIGKILL), 0);
    const muster_cluster_event event = await(f, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, last);
    assert_int_equal(muster_cluster_close(f->cluster, 30 * second), MUSTER_OK);
    muster_cluster_release(f->cluster);
    f->cluster = NULL;
    assert_no_children();
}

static void test_over_tcp(void **state) {
    meet_over(*state, "tcp://127.0.0.1:0?upgrade=no", "tcp://127.0.0.1:0?upgrade=no");
}

static void test_over_tcp_that_moves_to_shared_memory(void **state) {
    meet_over(*state, NULL, NULL);
}

static void test_over_unix_sockets(void **state) {
    char master[64], worker[64];
    snprintf(master, sizeof master, "unix://@muster-mixed-%d-0", (int)getpid());
    snprintf(worker, sizeof worker, "unix://@muster-mixed-%d-{}", (int)getpid());
    meet_over(*state, master, worker);
}

static void test_over_a_star(void **state) {
    fixture *f = *state;
    muster_broker *broker = NULL;
    muster_error error = {0};
    const char listen[] = "zmq://127.0.0.1:0/";
    if (muster_broker_open(f->context, listen, strlen(listen), NULL, &broker, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    char at[300] = "", master[400], worker[400];
    size_t size = 0;
    assert_int_equal(muster_broker_address(broker, at, sizeof at, &size), MUSTER_OK);
    const char *const place = at + strlen("zmq://");
    const int length = (int)strcspn(place, "/");
    snprintf(master, sizeof master, "zmq://master@%.*s/mixed", length, place);
    snprintf(worker, sizeof worker, "zmq://w{}@%.*s/mixed", length, place);
    meet_over(f, master, worker);
    muster_broker_close(broker, second);
    muster_broker_release(broker);
}

#define meeting(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv) {
    if (argc < 3 || argc > most_workers + 1) return 2;
    for (int i = 1; i < argc; i++) commands[worker_count++] = argv[i];
    const struct CMUnitTest tests[] = {meeting(test_over_tcp), meeting(test_over_tcp_that_moves_to_shared_memory),
                                       meeting(test_over_unix_sockets), meeting(test_over_a_star)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
