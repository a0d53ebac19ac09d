// SPDX-License-Identifier: MIT
// ctest: quick timeout=60
// Peers that know the secret and do not speak as a worker should: they are cut, and the others go on.
#include "cluster_worker.h"

#include <muster/manager.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdbool.h>

static char self_path[4096];

static muster_context *context;
static muster_queue *requests;
static muster_cluster *cluster;
static uint64_t id; // of the cluster

static muster_cluster_event next(void) {
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(cluster, 20 * second, &event), MUSTER_OK);
    return event;
}

static void launch(const char *manager, uint32_t count) {
    const char *const argv[] = {self_path, "worker", NULL};
    const muster_launch what = {.struct_size = sizeof what, .manager = manager, .count = count, .argv = argv};
    assert_int_equal(muster_cluster_add(cluster, &what, NULL, NULL), MUSTER_OK);
}

// Worker 1 is real; 2 and more are the test's own to play.
static int set_up(void **state) {
    (void)state;
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &requests, NULL), MUSTER_OK);
    assert_int_equal(muster_cluster_open(context, NULL, &cluster, NULL), MUSTER_OK);
    assert_int_equal(muster_manager_serve(context, "test", 4, 0, requests, 0, NULL), MUSTER_OK);
    launch("local", 1);
    while (next().kind != MUSTER_CLUSTER_JOINED) {
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(muster_cluster_close(cluster, 5 * second), MUSTER_OK);
    muster_cluster_release(cluster);
    muster_queue_release(requests);
    assert_int_equal(muster_context_close(context, 5 * second), MUSTER_OK);
    muster_context_release(context);
    return 0;
}

// The next number, without a launch; the cluster's id is in its ticket.
static uint32_t expect_one(void) {
    launch("test", 1);
    muster_completion entry;
    do assert_int_equal(muster_queue_next(requests, 20 * second, &entry, NULL), MUSTER_OK);
    while (entry.kind != MUSTER_REQUEST_MANAGER);
    muster_manager_request what;
    muster_config_init(&what, sizeof what);
    assert_int_equal(muster_manager_request_read(requests, entry.request, &what), MUSTER_OK);
    char ticket[8192];
    size_t size = 0;
    assert_int_equal(muster_manager_ticket(requests, entry.request, what.member, ticket, sizeof ticket - 1, &size),
                     MUSTER_OK);
    ticket[size] = '\0';
    unsigned long long number = 0;
    assert_int_equal(sscanf(ticket, "muster-worker-ticket 1 cluster=%llx", &number), 1);
    id = number;
    assert_int_equal(muster_manager_worker_ready(requests, entry.request, what.member, NULL, 0, 0, NULL), MUSTER_OK);
    assert_int_equal(next().kind, MUSTER_CLUSTER_LAUNCHED);
    return what.member;
}

static size_t put(char *to, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to[i] = (char)(number >> (8 * i) & 255);
    return bytes;
}

static muster_stream *dial_as(uint8_t kind, uint64_t of, uint32_t from, uint32_t to) {
    char greeting[64] = "muster-cluster 1";
    size_t size = 16;
    size += put(greeting + size, kind, 1);
    size += put(greeting + size, of, 8);
    size += put(greeting + size, from, 4);
    size += put(greeting + size, to, 4);
    size += put(greeting + size, 77, 8);
    const muster_transport_config config = {.struct_size = sizeof config, .hello = greeting, .hello_bytes = size};
    muster_member_info master;
    assert_int_equal(muster_cluster_get_member(cluster, 0, &master), MUSTER_OK);
    muster_stream *stream = NULL;
    assert_int_equal(
        muster_transport_dial(context, master.address, strlen(master.address), &config, 20 * second, &stream, NULL),
        MUSTER_OK);
    return stream;
}

static void send_message(muster_stream *stream, uint8_t kind, uint32_t member, uint64_t number, const char *text) {
    char bytes[300];
    const size_t length = strlen(text);
    size_t size = 4, moved;
    size += put(bytes + size, kind, 1);
    size += put(bytes + size, member, 4);
    size += put(bytes + size, 0, 4);
    size += put(bytes + size, number, 8);
    size += put(bytes + size, length, 2);
    memcpy(bytes + size, text, length);
    size += length;
    put(bytes, size - 4, 4);
    muster_stream_write(stream, bytes, size, 10 * second, &moved);
}

// The master ends it.
static void assert_cut(muster_stream *stream) {
    char piece[4096];
    size_t moved;
    muster_status status;
    do status = muster_stream_read(stream, piece, sizeof piece, 20 * second, &moved);
    while (status == MUSTER_OK);
    assert_true(status == MUSTER_E_PEER || status == MUSTER_E_END || status == MUSTER_E_ABORTED);
    muster_stream_release(stream);
}

static muster_stream *joined(uint32_t member) {
    muster_stream *const link = dial_as(1, id, member, 0);
    send_message(link, 1, member, 4711, "nowhere");
    assert_int_equal(next().kind, MUSTER_CLUSTER_CONNECTED);
    assert_int_equal(next().kind, MUSTER_CLUSTER_JOINED);
    return link;
}

static void assert_the_rest_goes_on(void) {
    assert_null(talk_to(cluster, 1));
}

static void test_unauthenticated_peers_are_not_taken_for_workers(void **state) {
    (void)state;
    const uint32_t member = expect_one();
    assert_cut(dial_as(1, id + 1, member, 0)); // another cluster
    assert_cut(dial_as(1, id, member + 7, 0)); // a member that is not expected
    assert_cut(dial_as(1, id, 1, 0));          // a member that has joined already
    assert_cut(dial_as(1, id, 0, 0));          // the master itself
    assert_cut(dial_as(9, id, member, 0));     // a kind that does not exist
    assert_cut(dial_as(2, id, member, 5));     // a stream to another member
    assert_cut(dial_as(3, id, member, 0));     // the answer to a request that was not made
    muster_stream *stream = NULL;              // without a greeting
    muster_member_info master;
    assert_int_equal(muster_cluster_get_member(cluster, 0, &master), MUSTER_OK);
    assert_int_equal(
        muster_transport_dial(context, master.address, strlen(master.address), NULL, 20 * second, &stream, NULL),
        MUSTER_OK);
    assert_cut(stream);
    assert_the_rest_goes_on();
}

static void test_messages_that_are_none_end_the_link(void **state) {
    (void)state;
    const struct {
        uint8_t bytes[64];
        size_t size;
    } cases[] = {{{0, 0, 0, 0}, 4},
                 {{5, 0, 0, 0, 1, 2, 3, 4, 5}, 9},
                 {{255, 255, 255, 255}, 4},
                 {{20, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0}, 24}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t member = expect_one();
        muster_stream *const link = dial_as(1, id, member, 0);
        size_t moved;
        muster_stream_write(link, cases[i].bytes, cases[i].size, 10 * second, &moved);
        assert_int_equal(next().kind, MUSTER_CLUSTER_CONNECTED);
        const muster_cluster_event event = next();
        assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
        assert_int_equal(event.member, member);
        assert_int_equal(event.status, MUSTER_E_PROTOCOL);
        assert_cut(link);
    }
    assert_the_rest_goes_on();
}

static void test_messages_out_of_turn_end_the_link(void **state) {
    (void)state;
    for (uint8_t kind = 2; kind <= 15; kind++) {
        if (kind == 11) continue; // to leave is always in turn
        const uint32_t member = expect_one();
        muster_stream *const link = dial_as(1, id, member, 0);
        send_message(link, kind, 1, 1, "too early");
        assert_int_equal(next().kind, MUSTER_CLUSTER_CONNECTED);
        const muster_cluster_event event = next();
        assert_int_equal(event.kind, MUSTER_CLUSTER_FAILED);
        assert_int_equal(event.status, MUSTER_E_PROTOCOL);
        assert_cut(link);
    }
    const uint32_t member = expect_one();
    muster_stream *const link = joined(member);
    send_message(link, 1, member, 1, "hello again");
    const muster_cluster_event event = next();
    assert_int_equal(event.kind, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, member);
    assert_cut(link);
    assert_the_rest_goes_on();
}

static void test_who_asks_and_never_reads_is_cut(void **state) {
    (void)state;
    const uint32_t member = expect_one();
    muster_stream *const link = joined(member);
    for (int i = 0; i < 200000; i++) send_message(link, 4, 1, (uint64_t)i, ""); // where is worker 1?
    const muster_cluster_event event = next();
    assert_int_equal(event.kind, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, member);
    muster_stream_release(link);
    assert_the_rest_goes_on();
}

static void test_calls_for_nobody_come_to_nothing(void **state) {
    (void)state;
    const uint32_t member = expect_one();
    muster_stream *const link = joined(member);
    for (int i = 0; i < 3000; i++) {
        send_message(link, 6, 0, (uint64_t)i, "");       // no address
        send_message(link, 7, 1, (uint64_t)i, "failed"); // of requests that were not made
        send_message(link, 7, 0, (uint64_t)i, "failed");
        send_message(link, 7, 999, (uint64_t)i, "failed");
        char piece[8192]; // it reads its messages
        size_t moved;
        muster_stream_read(link, piece, sizeof piece, 0, &moved);
    }
    assert_the_rest_goes_on();
    muster_stream_close(link, 0);
    muster_stream_release(link);
    const muster_cluster_event event = next();
    assert_int_equal(event.kind, MUSTER_CLUSTER_DEAD);
    assert_int_equal(event.member, member);
    assert_the_rest_goes_on();
}

// The first words of a broadcast: lowest byte first, the length before them.
static size_t put_head(char *to, uint32_t origin, uint64_t size, const uint32_t *stations, size_t words) {
    size_t at = 4;
    at += put(to + at, origin, 4);
    at += put(to + at, 4711, 8);
    at += put(to + at, size, 8);
    at += put(to + at, 0, 1);
    for (size_t i = 0; i < words; i++) at += put(to + at, stations[i], 4);
    put(to, at - 4, 4);
    return at;
}

static void test_broadcasts_that_are_none_come_to_nothing(void **state) {
    (void)state;
    const uint32_t member = expect_one();
    muster_stream *const link = joined(member);
    const uint32_t me[] = {1, 0}, another[] = {1, 5}, many[] = {0xffffffff, 0}, none[] = {0}, cut[] = {3, 0};
    char heads[9][64] = {{0}};
    const size_t sizes[] = {put(heads[0], 0xffffffff, 4),                          // a head of 4 GiB
                            put(heads[1], 0, 4),                                   // of nothing
                            put_head(heads[2], member, 10, NULL, 0),               // without receivers
                            put_head(heads[3], member, 10, another, 2),            // for another
                            put_head(heads[4], 0, 10, me, 2),                      // by the master itself
                            put_head(heads[5], member, 10, many, 2),               // stations that are not there
                            put_head(heads[6], member, 10, none, 1),               // one without members
                            put_head(heads[7], member, 10, cut, 2),                // one that ends too soon
                            put_head(heads[8], member, (uint64_t)3 << 30, me, 2)}; // more than it takes
    size_t moved;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        muster_stream *const stream = dial_as(4, id, member, 0);
        muster_stream_write(stream, heads[i], sizes[i], 10 * second, &moved);
        assert_cut(stream);
    }
    for (int i = 0; i < 1000; i++) { // about unknown broadcasts
        send_message(link, 13, 0, (uint64_t)i, "text");
        send_message(link, 13, 1, (uint64_t)i, "");
        send_message(link, 14, 0, (uint64_t)i, "");
        send_message(link, 14, 999, (uint64_t)i, "");
    }
    // One that breaks off, and is begun again by another stream.
    char head[64], bytes[10] = "123456789";
    const size_t size = put_head(head, member, sizeof bytes, me, 2);
    muster_stream *stream = dial_as(4, id, member, 0);
    muster_stream_write(stream, head, size, 10 * second, &moved);
    muster_stream_write(stream, bytes, 4, 10 * second, &moved);
    muster_stream_close(stream, second);
    muster_stream_release(stream);
    assert_the_rest_goes_on();
    stream = dial_as(4, id, member, 0);
    muster_stream_write(stream, head, size, 10 * second, &moved);
    muster_stream_write(stream, bytes, sizeof bytes, 10 * second, &moved);
    const muster_cluster_event event = next();
    assert_int_equal(event.kind, MUSTER_CLUSTER_BROADCAST);
    assert_int_equal(event.member, member);
    assert_int_equal(event.size_bytes, sizeof bytes);
    assert_memory_equal(event.data, bytes, sizeof bytes);
    muster_broadcast_release(event.broadcast);
    assert_cut(stream);
    muster_stream_close(link, 0);
    muster_stream_release(link);
    assert_int_equal(next().kind, MUSTER_CLUSTER_DEAD);
    assert_the_rest_goes_on();
}

int main(int argc, char **argv) {
    if (readlink("/proc/self/exe", self_path, sizeof self_path - 1) < 0) return 1;
    const int worked = work_if_asked(argc, argv);
    if (worked >= 0) return worked;
#define among(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        among(test_unauthenticated_peers_are_not_taken_for_workers),
        among(test_messages_that_are_none_end_the_link),
        among(test_messages_out_of_turn_end_the_link),
        among(test_who_asks_and_never_reads_is_cut),
        among(test_calls_for_nobody_come_to_nothing),
        among(test_broadcasts_that_are_none_come_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
