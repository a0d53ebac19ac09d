/* SPDX-License-Identifier: MIT */
// ctest: full timeout=180
/* A star in trouble: brokers that come late, go, and come back; unauthenticated peers; members that do not read or do
 * not keep to the rules; ends in every order. */
#include "star.h"

// The text is all that was said, and nothing of what lay in memory before.
static void test_texts_about_addresses_end_where_they_end(void **state) {
    (void)state;
    muster_context *context = make_context(0, SECRET);
    static const char *const wrong[][2] = {{"zmq://", "no broker in it: zmq://[name@]host:port/"},
                                           {"zmq://x@", "no broker in it: zmq://[name@]host:port/"},
                                           {"zmq://x:0/", "no port: 0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        muster_listener *listener;
        muster_stream *stream;
        muster_error error;
        char text[256];
        memset(&error, 'x', sizeof error);
        assert_int_equal(muster_transport_listen(context, wrong[i][0], strlen(wrong[i][0]), NULL, &listener, &error),
                         MUSTER_E_ADDRESS);
        snprintf(text, sizeof text, "listen %s: %s", wrong[i][0], wrong[i][1]);
        assert_string_equal(error.message, text);
        assert_int_equal(
            muster_transport_dial(context, wrong[i][0], strlen(wrong[i][0]), NULL, SECOND, &stream, &error),
            MUSTER_E_ADDRESS);
        snprintf(text, sizeof text, "dial %s: %s", wrong[i][0], wrong[i][1]);
        assert_string_equal(error.message, text);
    }
    muster_context_release(context);
}

static void test_a_broker_may_come_late(void **state) {
    (void)state;
    broker b = start_broker(0);
    char place[128], where[256];
    snprintf(place, sizeof place, "%s", b.place);
    stop_broker(&b);
    member m = {.context = make_context(0, SECRET)}, other = {.context = make_context(0, SECRET)};
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://late@%s/", place);
    assert_int_equal(try_listen(&m, where, 0, &error), MUSTER_E_UNREACHABLE);
    assert_non_null(strstr(error.message, place));
    muster_stream *stream = NULL;
    assert_int_equal(try_dial(&m, where, 0, &stream, &error), MUSTER_E_UNREACHABLE);
    // With retry_ns they wait for it.
    muster_queue *queue;
    assert_int_equal(muster_queue_create(other.context, NULL, &queue, NULL), MUSTER_OK);
    const muster_transport_config patient = {.struct_size = sizeof patient, .retry_ns = 20 * SECOND};
    assert_int_equal(
        muster_transport_dial_begin(other.context, where, strlen(where), &patient, 20 * SECOND, queue, 7, &error),
        MUSTER_OK);
    snprintf(where, sizeof where, "zmq://%s/", place);
    b = start_broker_at(where, 0, NULL);
    snprintf(where, sizeof where, "zmq://late@%s/", place);
    assert_int_equal(try_listen(&m, where, 20 * SECOND, &error), MUSTER_OK);
    muster_completion done;
    assert_int_equal(muster_queue_next(queue, 20 * SECOND, &done, &error), MUSTER_OK);
    if (done.status != MUSTER_OK) fail_msg("%s", error.message);
    between s = {done.object, accept_one(&m)};
    transfer(s.near, s.far, 100000);
    drop_between(&s);
    muster_queue_release(queue);
    leave_star(&m);
    leave_star(&other);
    stop_broker(&b);
}

static void test_a_broker_that_goes_is_told_and_members_come_back(void **state) {
    (void)state;
    broker b = start_broker(0);
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
    for (int round = 0; round < 3; round++) {
        between s = connect_members(&two, &one);
        char at[256];
        snprintf(at, sizeof at, "%s", b.address);
        stop_broker(&b);
        expect_lost(s.near, "broker");
        expect_lost(s.far, "broker");
        size_t moved;
        assert_int_equal(muster_stream_write(s.near, "x", 1, SECOND, &moved), MUSTER_E_PEER);
        drop_between(&s);
        muster_stream *stream = NULL;
        muster_error error = {0};
        assert_int_equal(try_dial(&two, one.address, 0, &stream, &error), MUSTER_E_UNREACHABLE);
        b = start_broker_at(at, 0, NULL);
        // The listener is the same: it takes its name again by itself.
        if (try_dial(&two, one.address, 20 * SECOND, &stream, &error) != MUSTER_OK) fail_msg("%s", error.message);
        s = (between){stream, accept_one(&one)};
        transfer(s.far, s.near, 3000000);
        drop_between(&s);
    }
    leave_star(&one);
    leave_star(&two);
    stop_broker(&b);
}

// What two members of one host share stays when the broker goes: it has no part in it.
static void test_shared_memory_outlives_the_broker(void **state) {
    (void)state;
    broker b = start_broker(0);
    member one = join_star(&b, "one", "/"), two = join_star(&b, NULL, "/");
    between s = connect_members(&two, &one);
    stop_broker(&b);
    transfer(s.near, s.far, 3000000);
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
}

static void test_unauthenticated_members_are_refused(void **state) {
    (void)state;
    static const struct {
        uint32_t flags;
        const char *options, *secret;
        muster_status status;
    } cases[] = {
        {0, "", "another secret altogether", MUSTER_E_AUTH},
        {0, "?curve=no", SECRET, MUSTER_E_AUTH},
        {MUSTER_BROKER_NO_CURVE, "?curve=no", "another secret altogether", MUSTER_E_AUTH},
        {MUSTER_BROKER_NO_CURVE, "", SECRET, MUSTER_E_AUTH},
        {MUSTER_BROKER_OPEN, "", SECRET, MUSTER_E_AUTH}, // a member that requires CURVE does not join without it
        {MUSTER_BROKER_NO_CURVE, "?curve=no", SECRET, MUSTER_OK},
        {MUSTER_BROKER_OPEN, "?curve=no", "another secret altogether", MUSTER_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        broker b = start_broker(cases[i].flags);
        member stranger = {.context = make_context(0, cases[i].secret)};
        char where[256];
        muster_error error = {0};
        snprintf(where, sizeof where, "zmq://%s/%s", b.place, cases[i].options);
        const muster_status status = try_listen(&stranger, where, 0, &error);
        if (status != cases[i].status) fail_msg("case %zu: %s %s", i, muster_status_name(status), error.message);
        if (status != MUSTER_OK) AWAIT_FIGURE(&b, s.members == 0 && s.connections == 0);
        // Others are served all the same.
        if (cases[i].flags == 0) {
            member good = join_star(&b, NULL, "/"), other = join_star(&b, NULL, "/");
            between s = connect_members(&good, &other);
            drop_between(&s);
            leave_star(&good);
            leave_star(&other);
            AWAIT_FIGURE(&b, s.refused >= 1);
        }
        leave_star(&stranger);
        stop_broker(&b);
    }
}

static int raw_connection(const broker *b) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    where.sin_port = htons((uint16_t)atoi(strrchr(b->place, ':') + 1));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    return fd;
}

// libzmq's greeting, then a frame that announces 2^64 - 1 bytes; noise; HTTP; a flood of silent connections.
static void test_garbage_disturbs_nobody(void **state) {
    (void)state;
    static const uint32_t flags[] = {0, MUSTER_BROKER_OPEN};
    for (int i = 0; i < 2; i++) {
        broker b = start_broker(flags[i]);
        member one = join_star(&b, "one", i ? "/?upgrade=no&curve=no" : "/?upgrade=no");
        member two = join_star(&b, NULL, i ? "/?upgrade=no&curve=no" : "/?upgrade=no");
        between s = connect_members(&two, &one);
        unsigned char greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
        static const unsigned char ready[] = "\x04\x26\x05READY\x0bSocket-Type\0\0\0\6DEALER\x08Identity\0\0\0\0";
        static const unsigned char huge[] = {2, 255, 255, 255, 255, 255, 255, 255, 255, 'x'};
        static const char http[] = "GET / HTTP/1.1\r\nHost: broker\r\n\r\n";
        int fds[200];
        for (int k = 0; k < 200; k++) {
            fds[k] = raw_connection(&b);
            unsigned char noise[512];
            for (size_t n = 0; n < sizeof noise; n++) noise[n] = pattern(n + 977 * (size_t)k);
            if (k % 4 == 1) assert_true(send(fds[k], noise, sizeof noise, MSG_NOSIGNAL) > 0);
            if (k % 4 == 2) assert_true(send(fds[k], http, sizeof http - 1, MSG_NOSIGNAL) > 0);
            if (k % 4 == 3) {
                assert_true(send(fds[k], greeting, sizeof greeting, MSG_NOSIGNAL) > 0);
                send(fds[k], ready, sizeof ready - 1, MSG_NOSIGNAL);
                send(fds[k], huge, sizeof huge, MSG_NOSIGNAL);
            }
        }
        transfer(s.near, s.far, 3000000);
        AWAIT_FIGURE(&b, s.members == 2);
        for (int k = 0; k < 200; k++) close(fds[k]);
        between more = connect_members(&one, &two);
        drop_between(&more);
        AWAIT_FIGURE(&b, s.connections == 2);
        drop_between(&s);
        leave_star(&one);
        leave_star(&two);
        stop_broker(&b);
    }
}

// The window is all that a broker keeps for a pair, however long a member does not read.
static void test_a_reader_that_sleeps_costs_the_broker_a_window(void **state) {
    (void)state;
    enum { writers = 4 };
    broker b = start_broker(0);
    member sleeper = join_star(&b, "sleeper", "/?upgrade=no"), m[writers];
    between s[writers];
    for (int i = 0; i < writers; i++) {
        m[i] = join_star(&b, NULL, "/?upgrade=no");
        s[i] = connect_members(&m[i], &sleeper);
    }
    static unsigned char bytes[200000];
    uint64_t written[writers] = {0};
    for (int i = 0; i < writers; i++)
        for (size_t moved = 1; moved != 0; written[i] += moved) { // until nothing more is taken
            moved = 0;
            muster_stream_write(s[i].near, bytes, sizeof bytes, 200 * MILLISECOND, &moved);
        }
    for (int i = 0; i < writers; i++) assert_true(written[i] < 8 << 20);
    assert_true(figures(&b).queued_bytes <= (uint64_t)writers * ((1 << 20) + (256 << 10)));
    for (int i = 0; i < writers; i++) { // and all of it is there
        for (uint64_t left = written[i]; left != 0;) {
            size_t moved = 0;
            assert_int_equal(
                muster_stream_read(s[i].far, bytes, left < sizeof bytes ? left : sizeof bytes, 20 * SECOND, &moved),
                MUSTER_OK);
            left -= moved;
        }
        drop_between(&s[i]);
        leave_star(&m[i]);
    }
    leave_star(&sleeper);
    stop_broker(&b);
}

static void test_everything_ends_in_any_order(void **state) {
    (void)state;
    for (int order = 0; order < 4; order++) {
        broker b = start_broker(0);
        member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
        between s = connect_members(&two, &one);
        if (order == 0) { // by references alone
            muster_broker_release(b.broker);
            muster_context_release(b.context);
        } else if (order == 1) { // the context takes its broker along
            assert_int_equal(muster_context_close(b.context, SECOND), MUSTER_OK);
            assert_int_equal(muster_broker_close(b.broker, 0), MUSTER_OK);
            figures(&b);
            muster_context_release(b.context);
            muster_broker_release(b.broker);
        } else if (order == 2) { // closed twice, while bytes are on their way
            static unsigned char bytes[500000];
            size_t moved;
            muster_stream_write(s.near, bytes, sizeof bytes, 0, &moved);
            assert_int_equal(muster_broker_close(b.broker, SECOND), MUSTER_OK);
            assert_int_equal(muster_broker_close(b.broker, SECOND), MUSTER_OK);
            muster_broker_release(b.broker);
            muster_context_release(b.context);
        }
        if (order == 3) { // members first, in mid-air
            muster_context_release(one.context);
            muster_context_release(two.context);
            muster_listener_release(one.listener);
            muster_listener_release(two.listener);
            drop_between(&s);
            AWAIT_FIGURE(&b, s.members == 0);
            stop_broker(&b);
            continue;
        }
        expect_lost(s.near, "");
        drop_between(&s);
        leave_star(&one);
        leave_star(&two);
    }
}

// A broker, its members and the streams, all in one context.
static void test_one_context_may_hold_all(void **state) {
    (void)state;
    broker b = start_broker(0);
    member both = {.context = b.context};
    char where[256];
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://self@%s/?upgrade=no", b.place);
    assert_int_equal(try_listen(&both, where, 0, &error), MUSTER_OK);
    between s = connect_members(&both, &both);
    transfer(s.near, s.far, 3000000);
    drop_between(&s);
    muster_listener_release(both.listener);
    stop_broker(&b);
}

// A host that drives its context itself.
static void test_an_external_context_can_be_a_member(void **state) {
    (void)state;
    broker b = start_broker(0);
    member one = {.context = make_context(MUSTER_CONTEXT_EXTERNAL, SECRET)}, two = join_star(&b, NULL, "/?upgrade=no");
    char where[256];
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://one@%s/?upgrade=no", b.place);
    assert_int_equal(try_listen(&one, where, 0, &error), MUSTER_OK);
    driver d = {.context = one.context};
    assert_int_equal(pthread_create(&d.thread, NULL, drive, &d), 0);
    muster_stream *near = dial_member(&one, two.address), *far = accept_one(&two);
    transfer(far, near, 1000000);
    transfer(near, far, 1000000);
    muster_stream_release(near);
    muster_stream_release(far);
    leave_star(&two);
    muster_listener_release(one.listener);
    assert_int_equal(muster_context_close(one.context, 5 * SECOND), MUSTER_OK);
    atomic_store(&d.stop, 1);
    pthread_join(d.thread, NULL);
    muster_context_release(one.context);
    stop_broker(&b);
}

// A message of one process may arrive at the broker after the request of another: the owner of the name is not notified
// of its end.
static void listen_when_free(member *m, const char *where) {
    muster_status status = MUSTER_E_EXISTS;
    muster_error error = {0};
    for (int i = 0; i < 5000 && status == MUSTER_E_EXISTS; i++) {
        status = try_listen(m, where, 0, &error);
        if (status == MUSTER_E_EXISTS) usleep(1000);
    }
    if (status != MUSTER_OK) fail_msg("%s", error.message);
}

// A listener of a context that no thread drives: closed, its name is free; released, as soon as a thread drives it.
static void test_a_name_goes_with_its_listener_where_nobody_drives(void **state) {
    (void)state;
    broker b = start_broker(0);
    member one = {.context = make_context(MUSTER_CONTEXT_EXTERNAL, SECRET)}, two = {.context = make_context(0, SECRET)};
    char where[256];
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://one@%s/?upgrade=no", b.place);
    for (int round = 0; round < 4; round++) {
        listen_when_free(&one, where);
        assert_int_equal(try_listen(&two, where, 0, &error), MUSTER_E_EXISTS);
        if (round % 2 == 0) {
            muster_listener_release(one.listener);
            assert_int_equal(try_listen(&two, where, 0, &error), MUSTER_E_EXISTS); // the loop stands still
            assert_true(muster_context_progress(one.context, 0) >= 0);
        } else {
            assert_int_equal(muster_listener_close(one.listener), MUSTER_OK);
            muster_listener_release(one.listener);
        }
        listen_when_free(&two, where);
        muster_listener_release(two.listener);
    }
    assert_int_equal(muster_context_close(one.context, 5 * SECOND), MUSTER_OK);
    muster_context_release(one.context);
    assert_int_equal(muster_context_close(two.context, 5 * SECOND), MUSTER_OK);
    muster_context_release(two.context);
    stop_broker(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_texts_about_addresses_end_where_they_end),
    cmocka_unit_test(test_a_broker_may_come_late),
    cmocka_unit_test(test_a_broker_that_goes_is_told_and_members_come_back),
    cmocka_unit_test(test_shared_memory_outlives_the_broker),
    cmocka_unit_test(test_unauthenticated_members_are_refused),
    cmocka_unit_test(test_garbage_disturbs_nobody),
    cmocka_unit_test(test_a_reader_that_sleeps_costs_the_broker_a_window),
    cmocka_unit_test(test_everything_ends_in_any_order),
    cmocka_unit_test(test_one_context_may_hold_all),
    cmocka_unit_test(test_an_external_context_can_be_a_member),
    cmocka_unit_test(test_a_name_goes_with_its_listener_where_nobody_drives),
};

int main(void) {
    return cmocka_run_group_tests(tests, need_zmq, NULL);
}
