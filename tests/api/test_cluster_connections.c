// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// A bound on the connections of a cluster, in each of three members: four.
#include "cluster_worker.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char self_path[4096];
static muster_context *context;
static muster_cluster *cluster;

enum { bound = 4 };

static void open_with(uint32_t most, const char *mode, uint32_t count, uint32_t flags) {
    muster_error error = {0};
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.max_connections = most;
    if (muster_context_create(NULL, &context, &error) != MUSTER_OK) fail_msg("%s", error.message);
    if (muster_cluster_open(context, &config, &cluster, &error) != MUSTER_OK) fail_msg("%s", error.message);
    const char *const words[] = {self_path, mode, NULL};
    const muster_launch launch = {.struct_size = sizeof launch, .argv = words, .count = count, .flags = flags};
    if (muster_cluster_add(cluster, &launch, NULL, &error) != MUSTER_OK) fail_msg("%s", error.message);
    for (uint32_t joined = 0; joined < count;) {
        muster_cluster_event event;
        assert_int_equal(muster_cluster_next_event(cluster, 20 * second, &event), MUSTER_OK);
        if (event.kind > MUSTER_CLUSTER_JOINED) fail_msg("%s", event.text);
        joined += event.kind == MUSTER_CLUSTER_JOINED;
    }
}

static void close_all(void) {
    muster_cluster_close(cluster, 5 * second);
    muster_cluster_release(cluster);
    assert_int_equal(muster_context_close(context, 5 * second), MUSTER_OK);
    muster_context_release(context);
}

static muster_status dial(uint32_t member, const char *label, muster_stream **out, muster_error *error) {
    return muster_cluster_dial(cluster, member, label, strlen(label), 20 * second, out, error);
}

static void hang_up(muster_stream *stream) {
    muster_stream_close(stream, second);
    muster_stream_release(stream);
}

// A stream that ended has its place until it is really over, which this side cannot see.
static muster_stream *dial_soon(uint32_t member, const char *label) {
    muster_stream *stream = NULL;
    muster_error error = {0};
    for (int tries = 0; tries < 1000; tries++) {
        const muster_status status = dial(member, label, &stream, &error);
        if (status == MUSTER_OK) return stream;
        if (status != MUSTER_E_LIMIT) break;
        usleep(10000);
    }
    fail_msg("%s", error.message);
    return NULL;
}

static void test_a_dial_beyond_the_bound_says_so(void **state) {
    (void)state;
    open_with(bound, "worker", 2, 0); // two links: two streams are left
    muster_stream *streams[2], *none = NULL;
    muster_error error = {0};
    assert_int_equal(dial(1, "echo", &streams[0], &error), MUSTER_OK);
    assert_int_equal(dial(2, "echo", &streams[1], &error), MUSTER_OK);
    assert_int_equal(dial(2, "self", &none, &error), MUSTER_E_LIMIT);
    assert_null(none);
    if (!strstr(error.message, "here") || !strstr(error.message, "4")) fail_msg("%s", error.message);
    hang_up(streams[0]);
    muster_stream *const next = dial_soon(1, "self");
    char text[64];
    hear(next, text, sizeof text);
    assert_string_equal(text, "1");
    hang_up(next);
    hang_up(streams[1]);
    close_all();
}

static void test_a_dial_to_a_full_member_is_refused(void **state) {
    (void)state;
    const uint32_t ways[] = {0, MUSTER_LAUNCH_NO_LISTEN}; // it is dialled, or asked to dial
    for (int way = 0; way < 2; way++) {
        open_with(0, "bound", 1, ways[way]);
        muster_stream *streams[bound - 1], *none = NULL;
        muster_error error = {0};
        for (int i = 0; i < bound - 1; i++) assert_int_equal(dial(1, "echo", &streams[i], &error), MUSTER_OK);
        assert_int_equal(dial(1, "self", &none, &error), MUSTER_E_LIMIT);
        if (!strstr(error.message, "member 1: ") || !strstr(error.message, "may be, 4")) fail_msg("%s", error.message);
        for (int i = 0; i < bound - 1; i++) hang_up(streams[i]);
        hang_up(dial_soon(1, "self"));
        close_all();
    }
}

static void test_a_full_master_refuses_its_workers(void **state) {
    (void)state;
    open_with(bound, "bound", 2, 0);
    muster_stream *busy, *order;
    muster_error error = {0};
    assert_int_equal(dial(1, "echo", &busy, &error), MUSTER_OK);
    assert_int_equal(dial(2, "talk 0", &order, &error), MUSTER_OK);
    char text[400];
    hear(order, text, sizeof text);
    if (!strstr(text, "MUSTER_E_LIMIT: member 0: ")) fail_msg("%s", text);
    hang_up(order);
    muster_stream *const other = dial_soon(2, "talk 1"); // they are not full
    hang_up(busy);
    hear(other, text, sizeof text);
    assert_string_equal(text, "done");
    hang_up(other);
    close_all();
}

static void test_more_workers_than_connections_are_refused(void **state) {
    (void)state;
    open_with(bound, "worker", 2, 0);
    const char *const words[] = {self_path, "worker", NULL};
    const muster_launch launch = {.struct_size = sizeof launch, .argv = words, .count = 3};
    muster_error error = {0};
    assert_int_equal(muster_cluster_add(cluster, &launch, NULL, &error), MUSTER_E_LIMIT);
    if (!strstr(error.message, "at most 4 connections")) fail_msg("%s", error.message);
    close_all();
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    if (readlink("/proc/self/exe", self_path, sizeof self_path - 1) < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dial_beyond_the_bound_says_so),
        cmocka_unit_test(test_a_dial_to_a_full_member_is_refused),
        cmocka_unit_test(test_a_full_master_refuses_its_workers),
        cmocka_unit_test(test_more_workers_than_connections_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
