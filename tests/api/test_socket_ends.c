// SPDX-License-Identifier: MIT
// Dealers and routers whose peers die, return, are stopped, or send what is no message.
// ctest: quick timeout=120
#include "socket_run.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#ifdef MUSTER_TSAN
const char *__tsan_default_options(void); /* children are forked from a process that has had threads */
const char *__tsan_default_options(void) {
    return "die_after_fork=0";
}
#endif

static const char secret[] = "a secret of this test, 32 bytes..";

/* A context of several processes: they share the secret. */
static fixture set_up_shared(void) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = secret;
    config.secret_bytes = sizeof secret - 1;
    config.window_bytes = 65536;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    return f;
}

/* Connects and receives nothing. */
static void deaf_dealer(const char *address, uint64_t own) {
    fixture f = set_up_shared();
    connect_to(dealer(&f, own), address);
    pause();
}
/* Sends each message back. */
static void echo_dealer(const char *address, uint64_t own) {
    fixture f = set_up_shared();
    muster_socket *d = dealer(&f, own);
    connect_to(d, address);
    for (muster_message *got; muster_socket_receive(d, -1, &got) == MUSTER_OK;)
        if (muster_message_swap_addresses(got) != MUSTER_OK || muster_socket_send(d, got, -1, NULL) != MUSTER_OK)
            return;
}
static void echo_router(const char *address, uint64_t own) {
    fixture f = set_up_shared();
    muster_socket *r = router(&f, own);
    muster_message *got;
    char where[256];
    bind_at(r, address, where);
    while (muster_socket_receive(r, -1, &got) == MUSTER_OK)
        if (muster_message_swap_addresses(got) != MUSTER_OK || muster_socket_send(r, got, -1, NULL) != MUSTER_OK)
            return;
}

static void test_what_a_killed_peer_did_not_get_comes_back(void **state) {
    (void)state;
    enum { size = 100000 };
    static char bytes[size];
    child deaf = fork_child(deaf_dealer, 7), echo = fork_child(echo_dealer, 7);
    fixture f = set_up_shared();
    muster_socket *r = make_socket(
        &f, &(muster_socket_config){
                .kind = MUSTER_SOCKET_ROUTER, .address = 1, .max_queued_bytes = 2000000, .queue = f.queue, .tag = 5});
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0?upgrade=no", where);
    begin_child(&deaf, where);
    const muster_socket_event first = event_of(r, MUSTER_SOCKET_CONNECTED);
    assert_int_equal(first.address, 7);
    uint32_t sent = 0;
    for (;; sent++) {
        muster_message *message = message_to(7, sent, bytes, size);
        if (muster_socket_send(r, message, 0, NULL) == MUSTER_OK) continue;
        muster_message_release(message);
        break;
    }
    end_child(&deaf, SIGKILL);
    const muster_socket_event lost = event_of(r, MUSTER_SOCKET_LOST);
    assert_int_equal(lost.address, 7);
    assert_true(lost.incarnation == first.incarnation);
    assert_true(lost.undelivered >= 20 && lost.undelivered <= sent);
    /* exactly these come back, in order, the last ones that were sent */
    for (uint32_t i = 0; i < lost.undelivered; i++) {
        muster_completion done;
        do assert_int_equal(muster_queue_next(f.queue, 20 * second, &done, NULL), MUSTER_OK);
        while (done.kind == MUSTER_EVENT_READY);
        assert_int_equal(done.kind, MUSTER_DONE_MESSAGE);
        assert_int_equal(done.status, MUSTER_E_PEER);
        assert_int_equal(done.tag, 5);
        assert_int_equal(done.bytes, 7);
        assert_int_equal(header_of(done.object).type, sent - lost.undelivered + i);
        muster_message_release(done.object);
    }
    muster_completion none;
    while (muster_queue_next(f.queue, 0, &none, NULL) == MUSTER_OK) assert_int_equal(none.kind, MUSTER_EVENT_READY);
    muster_error error;
    muster_message *message = message_to(7, 1, "x", 1);
    assert_int_equal(muster_socket_send(r, message, second, &error), MUSTER_E_PEER);
    muster_message_release(message);
    /* the peer is started again */
    begin_child(&echo, where);
    const muster_socket_event second_one = event_of(r, MUSTER_SOCKET_CONNECTED);
    assert_int_equal(second_one.address, 7);
    assert_true(second_one.incarnation != first.incarnation);
    send_text(r, 7, 9, "again");
    assert_int_equal(expect_text(r, 9, "again"), 7);
    muster_socket_stats stats;
    assert_int_equal(muster_socket_get_stats(r, &stats), MUSTER_OK);
    assert_int_equal(stats.undelivered, lost.undelivered);
    assert_int_equal(stats.connections_made, 2);
    muster_socket_release(r);
    end_child(&echo, SIGKILL);
    tear_down(&f);
}

static void test_a_restarted_peer_replaces_one_that_is_stopped(void **state) {
    (void)state;
    child old = fork_child(echo_dealer, 7), new = fork_child(echo_dealer, 7);
    fixture f = set_up_shared();
    muster_socket *r = router(&f, 1);
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0?upgrade=no", where);
    begin_child(&old, where);
    const uint64_t incarnation = event_of(r, MUSTER_SOCKET_CONNECTED).incarnation;
    kill(old.pid, SIGSTOP);
    begin_child(&new, where);
    assert_true(event_of(r, MUSTER_SOCKET_REPLACED).incarnation == incarnation);
    assert_true(event_of(r, MUSTER_SOCKET_CONNECTED).incarnation != incarnation);
    send_text(r, 7, 9, "to the restarted peer");
    assert_int_equal(expect_text(r, 9, "to the restarted peer"), 7);
    muster_socket_release(r);
    end_child(&old, SIGKILL);
    end_child(&new, SIGKILL);
    tear_down(&f);
}

static void test_a_dealer_connects_again(void **state) {
    (void)state;
    child routers[3];
    for (int i = 0; i < 3; i++) routers[i] = fork_child(echo_router, 50);
    fixture f = set_up_shared();
    muster_socket *d = dealer(&f, 8);
    char where[64];
    snprintf(where, sizeof where, "unix://@muster-again-%d", getpid());
    connect_to(d, where);
    for (int i = 0; i < 3; i++) {
        send_text(d, 0, 4, "before the router listens");
        begin_child(&routers[i], where);
        expect_text(d, 4, "before the router listens");
        send_text(d, 0, 5, "to the listening router");
        assert_int_equal(expect_text(d, 5, "to the listening router"), 50);
        end_child(&routers[i], SIGKILL);
        assert_int_equal(event_of(d, MUSTER_SOCKET_LOST).address, 50);
    }
    muster_socket_release(d);
    tear_down(&f);
}

static void dial_with(const fixture *f, const char *where, const void *hello, size_t hello_bytes, muster_stream **out) {
    const muster_transport_config config = {.struct_size = sizeof config, .hello = hello, .hello_bytes = hello_bytes};
    assert_int_equal(muster_transport_dial(f->context, where, strlen(where), &config, 20 * second, out, NULL),
                     MUSTER_OK);
}

static void *count_messages(void *socket) {
    muster_message *got;
    intptr_t count = 0;
    for (; muster_socket_receive(socket, -1, &got) == MUSTER_OK; count++) muster_message_release(got);
    return (void *)count;
}

static void test_peers_that_send_no_messages(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *r =
        make_socket(&f, &(muster_socket_config){.kind = MUSTER_SOCKET_ROUTER, .address = 1, .max_message_bytes = 1000});
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0", where);
    muster_stream *stream;
    size_t n;
    /* no hello, a wrong one, one that is too long */
    unsigned char hello[64] = {'M', 'S', 'S', 'K', 1, 1, 9};
    static const size_t lengths[] = {0, 5, 21, 23, 64};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        dial_with(&f, where, hello, lengths[i], &stream);
        const muster_socket_event event = event_of(r, MUSTER_SOCKET_REFUSED);
        assert_non_null(strstr(event.text, "no socket for messages"));
        muster_stream_release(stream);
    }
    /* a socket that sends bytes which are no message: 22 bytes of hello are whole */
    muster_message *message = message_to(0, 1, "body", 4);
    muster_buffer buffers[2];
    uint32_t count;
    assert_int_equal(muster_message_to_buffers(message, buffers, 2, &count), MUSTER_OK);
    unsigned char bytes[256];
    static const struct {
        size_t at;
        unsigned char value;
        const char *why;
    } wrong[] = {{0, 'X', "no message begins here"}, {4, 9, "unknown version"},          {5, 0x80, "unknown flags"},
                 {48, 5, "frames with other sizes"}, {56, 5, "frames with other sizes"}, {45, 1, "frames with other"},
                 {49, 9, "larger than the limit"},   {55, 1, "larger than the limit"}};
    uint64_t malformed = 0;
    pthread_t receiver;
    assert_int_equal(pthread_create(&receiver, NULL, count_messages, r), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(bytes, buffers[0].data, buffers[0].bytes);
        memcpy(bytes + buffers[0].bytes, "body", 4);
        bytes[wrong[i].at] = wrong[i].value;
        dial_with(&f, where, hello, 22, &stream);
        assert_int_equal(event_of(r, MUSTER_SOCKET_CONNECTED).address, 9);
        assert_int_equal(muster_stream_write(stream, bytes, buffers[0].bytes + 4, second, &n), MUSTER_OK);
        const muster_socket_event lost = event_of(r, MUSTER_SOCKET_LOST);
        if (strstr(lost.text, wrong[i].why) == NULL) fail_msg("%zu: %s", i, lost.text);
        malformed++;
        muster_stream_release(stream);
    }
    /* half of a message, and the end of the stream */
    dial_with(&f, where, hello, 22, &stream);
    assert_int_equal(muster_stream_write(stream, buffers[0].data, 30, second, &n), MUSTER_OK);
    muster_stream_release(stream);
    event_of(r, MUSTER_SOCKET_LOST);
    void *received;
    assert_int_equal(muster_socket_cancel(r), MUSTER_OK);
    pthread_join(receiver, &received);
    assert_int_equal((intptr_t)received, 0); /* no part of them was taken for a message */
    muster_socket_stats stats;
    assert_int_equal(muster_socket_get_stats(r, &stats), MUSTER_OK);
    assert_int_equal(stats.malformed, malformed);
    assert_int_equal(stats.peers, 0);
    /* it still works */
    muster_socket *d = dealer(&f, 5);
    connect_to(d, where);
    send_text(d, 0, 3, "a message");
    expect_text(r, 3, "a message");
    muster_message_release(message);
    muster_socket_release(d);
    muster_socket_release(r);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_killed_peer_did_not_get_comes_back),
        cmocka_unit_test(test_a_restarted_peer_replaces_one_that_is_stopped),
        cmocka_unit_test(test_a_dealer_connects_again),
        cmocka_unit_test(test_peers_that_send_no_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
