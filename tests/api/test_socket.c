// SPDX-License-Identifier: MIT
// Dealers and routers: messages over every transport, routes, queues and their limits.
// ctest: quick timeout=120
#include "socket_run.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "asleep.h"

static void echo_over(const char *at, uint32_t flags) {
    fixture f = set_up(flags);
    muster_socket *r = router(&f, 1000), *d = dealer(&f, 7);
    char where[256];
    bind_at(r, at, where);
    connect_to(d, where);
    send_text(d, 0, 300, "hello"); /* before it is connected */
    assert_int_equal(expect_text(r, 300, "hello"), 7);
    send_text(r, 7, 301, "answer");
    assert_int_equal(expect_text(d, 301, "answer"), 1000);
    /* empty, small and large frames in one message, several times */
    const size_t large = 5 << 20;
    unsigned char *bytes = malloc(large);
    for (size_t i = 0; i < large; i++) bytes[i] = (unsigned char)(i * 31 + (i >> 12));
    for (int i = 0; i < 3; i++) {
        muster_message *message = message_to(0, 302, bytes, large);
        assert_int_equal(muster_message_add_frame(message, NULL, 0), MUSTER_OK);
        assert_int_equal(muster_message_add_frame(message, "end", 3), MUSTER_OK);
        assert_int_equal(muster_socket_send(d, message, 20 * second, NULL), MUSTER_OK);
    }
    for (int i = 0; i < 3; i++) {
        muster_message *got = receive_one(r);
        muster_buffer frame;
        assert_int_equal(muster_message_frame_count(got), 3);
        assert_int_equal(muster_message_frame(got, 0, &frame), MUSTER_OK);
        assert_int_equal(frame.bytes, large);
        assert_memory_equal(frame.data, bytes, large);
        assert_int_equal(muster_message_frame(got, 2, &frame), MUSTER_OK);
        assert_string_equal(frame.data, "end");
        assert_int_equal(muster_message_swap_addresses(got), MUSTER_OK); /* it goes back as it is */
        assert_int_equal(muster_socket_send(r, got, 20 * second, NULL), MUSTER_OK);
    }
    for (int i = 0; i < 3; i++) {
        muster_message *got = receive_one(d);
        muster_buffer frame;
        assert_int_equal(muster_message_frame(got, 0, &frame), MUSTER_OK);
        assert_int_equal(frame.bytes, large);
        assert_memory_equal(frame.data, bytes, large);
        muster_message_release(got);
    }
    free(bytes);
    muster_socket_stats stats;
    assert_int_equal(muster_socket_get_stats(r, &stats), MUSTER_OK);
    assert_int_equal(stats.peers, 1);
    assert_int_equal(stats.messages_in, 4);
    assert_int_equal(stats.messages_out, 4);
    assert_int_equal(stats.queued_messages, 0);
    assert_int_equal(muster_socket_close(d, 20 * second), MUSTER_OK);
    assert_int_equal(event_of(r, MUSTER_SOCKET_LOST).address, 7);
    muster_socket_release(d);
    muster_socket_release(r);
    tear_down(&f);
}

static void test_inproc(void **state) {
    (void)state;
    echo_over("inproc://messages", 0);
}
static void test_tcp(void **state) {
    (void)state;
    echo_over("tcp://127.0.0.1:0", 0);
}
static void test_tcp_sealed(void **state) {
    (void)state;
    echo_over("tcp://127.0.0.1:0?upgrade=no&seal=yes", 0);
}

static void test_tcp_sealed_without_aes(void **state) {
    (void)state;
    setenv("MUSTER_NO_AES", "1", 1);
    echo_over("tcp://127.0.0.1:0?upgrade=no&seal=yes", 0);
    unsetenv("MUSTER_NO_AES");
}
static void test_unix(void **state) {
    (void)state;
    char at[64];
    snprintf(at, sizeof at, "unix://@muster-messages-%d", getpid());
    echo_over(at, 0);
}
static void test_shm(void **state) {
    (void)state;
    char at[64];
    snprintf(at, sizeof at, "shm://messages-%d", getpid());
    echo_over(at, 0);
}
static void test_the_host_drives_the_engine(void **state) {
    (void)state;
    echo_over("tcp://127.0.0.1:0?upgrade=no", MUSTER_CONTEXT_EXTERNAL);
}

static void test_many_dealers_and_answers(void **state) {
    (void)state;
    enum { count = 20, messages = 200 };
    fixture f = set_up(0);
    muster_socket *r = router(&f, 1), *d[count];
    char where[256], text[32];
    bind_at(r, "tcp://127.0.0.1:0?upgrade=no", where);
    for (int i = 0; i < count; i++) {
        d[i] = dealer(&f, 100 + (uint64_t)i);
        connect_to(d[i], where);
    }
    wait_for_peers(r, count);
    for (int m = 0; m < messages; m++)
        for (int i = 0; i < count; i++) {
            snprintf(text, sizeof text, "%d", m);
            send_text(d[i], 0, 300, text);
        }
    int next[count] = {0};
    for (int m = 0; m < messages * count; m++) {
        muster_message *got = receive_one(r);
        const uint64_t from = header_of(got).source - 100;
        assert_true(from < count);
        assert_int_equal(atoi(text_of(got)), next[from]++); /* in order */
        assert_int_equal(muster_message_swap_addresses(got), MUSTER_OK);
        assert_int_equal(muster_socket_send(r, got, 20 * second, NULL), MUSTER_OK);
    }
    for (int i = 0; i < count; i++) {
        for (int m = 0; m < messages; m++) {
            snprintf(text, sizeof text, "%d", m);
            expect_text(d[i], 300, text);
        }
        muster_socket_release(d[i]);
    }
    muster_socket_release(r);
    tear_down(&f);
}

static void test_a_dealer_takes_its_routers_in_turn(void **state) {
    (void)state;
    enum { count = 3 };
    fixture f = set_up(0);
    muster_socket *d = dealer(&f, 5), *r[count];
    char where[256];
    for (int i = 0; i < count; i++) {
        r[i] = router(&f, 10 + (uint64_t)i);
        snprintf(where, sizeof where, "inproc://turn-%d", i);
        bind_at(r[i], where, where);
        bind_at(r[i], "tcp://127.0.0.1:0", where); /* several endpoints */
        connect_to(d, where);
    }
    wait_for_peers(d, count);
    uint32_t there;
    assert_int_equal(muster_socket_wait_peers(d, count + 1, 0, &there), MUSTER_AGAIN);
    assert_int_equal(there, count);
    for (int i = 0; i < 4 * count; i++) send_text(d, 0, 1, "x");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 4; k++) assert_int_equal(expect_text(r[i], 1, "x"), 5);
    for (int i = 0; i < count; i++) {
        muster_message *none;
        assert_int_equal(muster_socket_receive(r[i], 0, &none), MUSTER_AGAIN);
        muster_socket_release(r[i]);
    }
    muster_socket_release(d);
    tear_down(&f);
}

static void test_messages_wait_for_peers_up_to_a_limit(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *r = make_socket(
        &f, &(muster_socket_config){.kind = MUSTER_SOCKET_ROUTER, .address = 1, .max_unrouted_messages = 3});
    muster_error error;
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0", where);
    send_text(r, 7, 1, "first");
    send_text(r, 8, 1, "for another");
    send_text(r, 7, 1, "second");
    muster_message *message = message_to(9, 1, "x", 1);
    assert_int_equal(muster_socket_send(r, message, 0, &error), MUSTER_E_NOT_FOUND);
    assert_non_null(strstr(error.message, "no peer has the address 0x9, and 3 messages wait for peers already"));
    assert_int_equal(header_of(message).destination, 9); /* it remains the caller's */
    muster_message_release(message);
    message = message_to(0, 1, "x", 1);
    assert_int_equal(muster_socket_send(r, message, 0, &error), MUSTER_E_ARG);
    muster_message_release(message);
    muster_socket *d = dealer(&f, 7);
    connect_to(d, where);
    expect_text(d, 1, "first");
    expect_text(d, 1, "second");
    send_text(r, 7, 1, "third");
    expect_text(d, 1, "third");
    muster_socket_release(d);
    assert_int_equal(event_of(r, MUSTER_SOCKET_LOST).address, 7);
    message = message_to(7, 1, "x", 1);
    assert_int_equal(muster_socket_send(r, message, 0, &error), MUSTER_E_PEER);
    assert_non_null(strstr(error.message, "the peer with the address 0x7 is lost"));
    muster_message_release(message);
    assert_int_equal(muster_socket_close(r, 0), MUSTER_E_PEER); /* one waited for 8 */
    muster_socket_stats stats;
    assert_int_equal(muster_socket_get_stats(r, &stats), MUSTER_OK);
    assert_int_equal(stats.undelivered, 1);
    muster_socket_release(r);
    tear_down(&f);
}

static void test_a_full_queue_says_so_and_gets_room(void **state) {
    (void)state;
    enum { size = 100000 };
    fixture f = set_up(0);
    muster_socket *d = make_socket(
        &f, &(muster_socket_config){
                .kind = MUSTER_SOCKET_DEALER, .address = 2, .max_queued_bytes = 1000000, .queue = f.queue, .tag = 66});
    muster_socket *r = router(&f, 1);
    char where[256];
    static char bytes[size];
    bind_at(r, "tcp://127.0.0.1:0?upgrade=no", where);
    connect_to(d, where);
    wait_for_peers(d, 1);
    int sent = 0;
    for (;; sent++) {
        muster_message *message = message_to(0, 1, bytes, size);
        const muster_status status = muster_socket_send(d, message, 0, NULL);
        if (status == MUSTER_OK) continue;
        assert_int_equal(status, MUSTER_AGAIN);
        assert_int_equal(muster_socket_send(d, message, 10 * ms, NULL), MUSTER_TIMEOUT);
        muster_message_release(message);
        break;
    }
    assert_true(sent > 10 && sent < 1000); /* bounded: 1 MB, and what streams and sockets hold */
    muster_socket_stats stats;
    assert_int_equal(muster_socket_get_stats(d, &stats), MUSTER_OK);
    assert_true(stats.queued_bytes <= 1000000 && stats.queued_bytes > 800000 && stats.full >= 2);
    for (int i = 0; i < sent; i++) muster_message_release(receive_one(r));
    muster_completion ready = {0};
    while ((ready.events & MUSTER_SOCKET_SENDABLE) == 0) {
        assert_int_equal(muster_queue_next(f.queue, 20 * second, &ready, NULL), MUSTER_OK);
        assert_int_equal(ready.kind, MUSTER_EVENT_READY);
        assert_int_equal(ready.tag, 66);
    }
    send_text(d, 0, 2, "room");
    expect_text(r, 2, "room");
    muster_message *large = message_to(0, 1, NULL, 0);
    assert_int_equal(muster_message_take_frame(large, malloc(3 * size * 10), 3 * size * 10, free), MUSTER_OK);
    assert_int_equal(muster_socket_send(d, large, 0, NULL), MUSTER_OK); /* alone it may be larger than the limit */
    muster_message_release(receive_one(r));
    muster_socket_release(d);
    muster_socket_release(r);
    tear_down(&f);
}

typedef struct sender {
    pthread_t thread;
    muster_socket *socket;
    uint32_t number;
} sender;
enum { senders = 4, per_sender = 5000 };
static void *send_many(void *given) {
    const sender *s = given;
    for (uint32_t i = 0; i < per_sender; i++) {
        muster_message *message = message_to(1, s->number, &i, sizeof i);
        if (muster_socket_send(s->socket, message, 20 * second, NULL) != MUSTER_OK) return NULL;
    }
    return given;
}
static void *receive_many(void *given) {
    muster_message *got;
    uintptr_t count = 0;
    for (; muster_socket_receive(given, -1, &got) == MUSTER_OK; count++) muster_message_release(got);
    return (void *)count;
}

static void test_any_thread_sends_and_receives(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *r = router(&f, 1), *d = dealer(&f, 2);
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0", where);
    connect_to(d, where);
    sender all[senders];
    for (uint32_t i = 0; i < senders; i++) {
        all[i] = (sender){.socket = d, .number = i};
        assert_int_equal(pthread_create(&all[i].thread, NULL, send_many, &all[i]), 0);
    }
    uint32_t next[senders] = {0};
    for (int i = 0; i < senders * per_sender; i++) {
        muster_message *got = receive_one(r);
        muster_buffer frame;
        uint32_t number;
        assert_int_equal(muster_message_frame(got, 0, &frame), MUSTER_OK);
        memcpy(&number, frame.data, sizeof number);
        assert_int_equal(number, next[header_of(got).type]++);
        muster_message_release(got);
    }
    for (int i = 0; i < senders; i++) {
        void *done;
        pthread_join(all[i].thread, &done);
        assert_ptr_equal(done, &all[i]);
    }
    /* several receivers share the messages, and a close ends them */
    pthread_t receivers[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&receivers[i], NULL, receive_many, r), 0);
    for (int i = 0; i < 3000; i++) send_text(d, 0, 1, "x");
    muster_socket_stats stats;
    const time_t limit = time(NULL) + 20;
    do {
        assert_true(time(NULL) < limit);
        assert_int_equal(muster_socket_get_stats(r, &stats), MUSTER_OK);
    } while (stats.messages_in < senders * per_sender + 3000);
    assert_int_equal(muster_socket_close(r, 0), MUSTER_OK);
    uintptr_t total = 0;
    for (int i = 0; i < 3; i++) {
        void *count;
        pthread_join(receivers[i], &count);
        total += (uintptr_t)count;
    }
    assert_int_equal(total, 3000);
    muster_socket_release(r);
    muster_socket_release(d);
    tear_down(&f);
}

typedef struct receiver {
    muster_socket *socket;
    atomic_int thread, is_over;
} receiver;
static receiver receiving;

static void *receive_in_thread(void *given) {
    receiver *self = given;
    muster_message *got;
    atomic_store(&self->thread, gettid());
    const muster_status status = muster_socket_receive(self->socket, 20 * second, &got);
    if (status == MUSTER_OK) muster_message_release(got);
    atomic_store(&self->is_over, 1);
    return (void *)(intptr_t)status;
}
/* A thread that waits for a message when this returns; pthread_join() gives the status of its call. */
static void start_receiver(pthread_t *thread, muster_socket *socket) {
    receiving.socket = socket;
    atomic_store(&receiving.thread, 0);
    atomic_store(&receiving.is_over, 0);
    assert_int_equal(pthread_create(thread, NULL, receive_in_thread, &receiving), 0);
    while (atomic_load(&receiving.thread) == 0) sched_yield();
    until_asleep(atomic_load(&receiving.thread), &receiving.is_over);
}

static void test_waits_end(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *r = router(&f, 1), *d = dealer(&f, 2), *late = dealer(&f, 3);
    muster_message *none;
    muster_socket_event event;
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0", where);
    assert_int_equal(muster_socket_receive(r, 10 * ms, &none), MUSTER_TIMEOUT);
    assert_int_equal(muster_socket_wait_peers(r, 1, 10 * ms, NULL), MUSTER_TIMEOUT);
    assert_int_equal(muster_socket_next_event(r, 0, &event), MUSTER_AGAIN);
    for (int peers = 0; peers < 2; peers++) { /* without a peer, and in the read of the only one */
        if (peers == 1) {
            connect_to(d, where);
            wait_for_peers(r, 1);
        }
        for (int i = 0; i < 20; i++) {
            pthread_t thread;
            void *status;
            start_receiver(&thread, r);
            assert_int_equal(muster_socket_cancel(r), MUSTER_OK);
            pthread_join(thread, &status);
            assert_int_equal((intptr_t)status, MUSTER_E_CANCELED);
        }
        assert_int_equal(muster_socket_receive(r, 10 * ms, &none), MUSTER_TIMEOUT);
    }
    /* a second peer connects while a thread waits in the read of the first */
    pthread_t thread;
    void *status;
    start_receiver(&thread, r);
    connect_to(late, where);
    send_text(late, 0, 1, "from the second");
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, MUSTER_OK);
    start_receiver(&thread, d);
    muster_socket_release(d); /* in a call of another thread */
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, MUSTER_E_CLOSED);
    start_receiver(&thread, late);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, MUSTER_E_CLOSED);
    assert_int_equal(muster_socket_receive(r, -1, &none), MUSTER_E_CLOSED);
    muster_socket_release(late);
    muster_socket_release(r);
    muster_queue_release(f.queue);
    muster_context_release(f.context);
}

/* The first peer is read directly, until the second one connects. */
static void test_the_first_peer_is_read_beside_a_second(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *r = router(&f, 1), *d[2] = {dealer(&f, 2), dealer(&f, 3)};
    char where[256];
    bind_at(r, "tcp://127.0.0.1:0?upgrade=no", where);
    connect_to(d[0], where);
    for (int i = 0; i < 3; i++) {
        send_text(d[0], 0, 1, "alone");
        expect_text(r, 1, "alone");
    }
    pthread_t thread;
    void *status;
    start_receiver(&thread, r);
    connect_to(d[1], where);
    wait_for_peers(r, 2);
    send_text(d[0], 0, 1, "from the first");
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, MUSTER_OK);
    for (int i = 0; i < 6; i++) {
        send_text(d[i % 2], 0, 1, "in turn");
        assert_int_equal(expect_text(r, 1, "in turn"), 2 + i % 2);
    }
    for (int i = 0; i < 2; i++) muster_socket_release(d[i]);
    muster_socket_release(r);
    tear_down(&f);
}

static void test_a_look_finds_what_has_arrived(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *d = dealer(&f, 2);
    muster_socket *r = make_socket(
        &f, &(muster_socket_config){.kind = MUSTER_SOCKET_ROUTER, .address = 1, .queue = f.queue, .tag = 8});
    char where[256];
    bind_at(r, "inproc://look", where);
    connect_to(d, where);
    for (int i = 0; i < 50; i++) { /* a wait, which disarms the watch, and a look */
        muster_message *got;
        send_text(d, 0, 1, "first");
        expect_text(r, 1, "first");
        send_text(d, 0, 2, "second"); /* over inproc it can be read when the call returns */
        assert_int_equal(muster_socket_receive(r, 0, &got), MUSTER_OK);
        assert_int_equal(header_of(got).type, 2);
        muster_message_release(got);
        assert_int_equal(muster_socket_receive(r, 0, &got), MUSTER_AGAIN);
    }
    /* after AGAIN the queue reports the next message; a host that takes a report receives until AGAIN before the next
     * one */
    muster_completion ready = {0};
    muster_message *none;
    while (muster_queue_next(f.queue, 0, &ready, NULL) == MUSTER_OK) continue;
    assert_int_equal(muster_socket_receive(r, 0, &none), MUSTER_AGAIN);
    send_text(d, 0, 3, "third");
    do assert_int_equal(muster_queue_next(f.queue, 20 * second, &ready, NULL), MUSTER_OK);
    while ((ready.events & MUSTER_SOCKET_RECEIVABLE) == 0);
    expect_text(r, 3, "third");
    muster_socket_release(d);
    muster_socket_release(r);
    tear_down(&f);
}

static void test_a_queue_without_a_slot_is_no_endless_wait(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_queue_config one = {.struct_size = sizeof one, .capacity = 1};
    muster_queue *queue;
    assert_int_equal(muster_queue_create(f.context, &one, &queue, NULL), MUSTER_OK);
    muster_socket *r = router(&f, 1);
    muster_socket *d =
        make_socket(&f, &(muster_socket_config){.kind = MUSTER_SOCKET_DEALER, .address = 2, .queue = queue});
    muster_message *message = message_to(0, 1, "x", 1);
    assert_int_equal(muster_queue_post(queue, 1, 1), MUSTER_OK);
    assert_int_equal(muster_socket_send(d, message, 3 * second, NULL), MUSTER_AGAIN); /* no peer is connected */
    char where[256];
    bind_at(r, "inproc://no-slot", where);
    connect_to(d, where);
    wait_for_peers(d, 1);
    assert_int_equal(muster_socket_send(d, message, 3 * second, NULL), MUSTER_AGAIN);
    muster_completion entry;
    do assert_int_equal(muster_queue_next(queue, 0, &entry, NULL), MUSTER_OK);
    while (entry.kind != MUSTER_DONE_USER);
    assert_int_equal(muster_socket_send(d, message, 0, NULL), MUSTER_OK);
    expect_text(r, 1, "x");
    muster_socket_release(d);
    muster_socket_release(r);
    muster_queue_release(queue);
    tear_down(&f);
}

typedef struct later {
    const fixture *f;
    const char *where;
} later;
static void *bind_later(void *given) {
    const later *l = given;
    muster_socket *r = router(l->f, 1);
    char where[256];
    bind_at(r, l->where, where);
    expect_text(r, 1, "until it is read");
    muster_socket_release(r);
    return NULL;
}

static void test_a_close_delivers_to_a_peer_that_connects_late(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_socket *d =
        make_socket(&f, &(muster_socket_config){
                            .kind = MUSTER_SOCKET_DEALER, .address = 2, .max_unrouted_messages = 1, .queue = f.queue});
    connect_to(d, "inproc://late");
    send_text(d, 0, 1, "until it is read");
    muster_message *message = message_to(0, 1, "x", 1);
    assert_int_equal(muster_socket_send(d, message, 0, NULL), MUSTER_AGAIN); /* one waits already */
    muster_message_release(message);
    const later l = {&f, "inproc://late"};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, bind_later, (void *)&l), 0);
    assert_int_equal(muster_socket_close(d, 10 * second), MUSTER_OK);
    pthread_join(thread, NULL);
    muster_completion ready;
    do assert_int_equal(muster_queue_next(f.queue, second, &ready, NULL), MUSTER_OK);
    while ((ready.events & MUSTER_SOCKET_SENDABLE) == 0);
    muster_socket_release(d);
    tear_down(&f);
}

static void test_bad_arguments(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_error error;
    muster_socket *none, *r = router(&f, 1);
    muster_message *message = message_to(2, 1, "x", 1);
    uint64_t any;
    assert_int_equal(muster_message_address(1, MUSTER_MESSAGE_ANY, 1, &any), MUSTER_OK);
    const struct {
        muster_socket_config config;
        const char *why;
    } wrong[] = {{{.kind = 3}, "kind is 3"},
                 {{.kind = 1, .flags = 4}, "flags has unknown bits: 0x4"},
                 {{.kind = 1, .max_peers = 1 << 21}, "max_peers is 2097152"},
                 {{.kind = 1, .max_message_bytes = UINT64_MAX}, "max_message_bytes"},
                 {{.kind = 1, .address = any}, "has a wildcard"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        muster_socket_config config = wrong[i].config;
        config.struct_size = sizeof config;
        assert_int_equal(muster_socket_create(f.context, &config, &none, &error), MUSTER_E_ARG);
        assert_null(none);
        if (strstr(error.message, wrong[i].why) == NULL) fail_msg("%s", error.message);
    }
    assert_int_equal(muster_socket_create(f.context, NULL, &none, &error), MUSTER_E_ARG);
    assert_int_equal(muster_socket_connect(r, "tcp//x", 6, &error), MUSTER_E_ADDRESS);
    assert_int_equal(muster_socket_connect(r, "none://x", 8, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_socket_bind(r, "none://x", 8, NULL, 0, &error), MUSTER_E_NOT_FOUND);
    char small[5];
    assert_int_equal(muster_socket_bind(r, "inproc://small", 14, small, sizeof small, &error), MUSTER_E_LIMIT);
    assert_int_equal(muster_socket_bind(r, "inproc://small", 14, NULL, 0, &error), MUSTER_OK); /* it was free again */
    assert_int_equal(muster_socket_send(NULL, message, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_socket_send(r, NULL, 0, &error), MUSTER_E_ARG);
    const muster_value pointer = {.integer = 1};
    assert_int_equal(muster_message_add_values(message, "p", &pointer, 1, NULL), MUSTER_OK);
    assert_int_equal(muster_socket_send(r, message, 0, &error), MUSTER_E_UNSUPPORTED);
    muster_message_release(message);
    muster_socket *limited =
        make_socket(&f, &(muster_socket_config){.kind = MUSTER_SOCKET_DEALER, .max_message_bytes = 4});
    message = message_to(0, 1, "12345", 5);
    assert_int_equal(muster_socket_send(limited, message, 0, &error), MUSTER_E_LIMIT);
    muster_message_release(message);
    assert_true(muster_socket_address(limited) != 0);
    assert_int_equal(muster_socket_close(limited, 0), MUSTER_OK);
    assert_int_equal(muster_socket_close(limited, 0), MUSTER_E_CLOSED);
    message = message_to(0, 1, "1", 1);
    assert_int_equal(muster_socket_send(limited, message, 0, &error), MUSTER_E_CLOSED);
    muster_message_release(message);
    muster_socket_release(limited);
    muster_socket_release(r);
    tear_down(&f);
}

// Messages that arrive at the moment at which the host has found no more: each is reported by the queue.
enum { asking = 3, asked_each = 4000 };
static void *ask_many_times(void *argument) {
    muster_socket *const socket = argument;
    for (int i = 0; i < asked_each; i++) {
        muster_message *message;
        if (muster_message_create(&message) != MUSTER_OK) abort();
        const muster_message_header header = {.struct_size = sizeof header, .destination = 1};
        if (muster_message_set_header(message, &header) != MUSTER_OK) abort();
        if (muster_socket_send(socket, message, 20 * second, NULL) != MUSTER_OK) abort();
        if (muster_socket_receive(socket, 20 * second, &message) != MUSTER_OK) abort();
        muster_message_release(message);
    }
    return NULL;
}
static void test_no_message_arrives_without_a_readiness(void **state) {
    (void)state;
    // On one processor, and of the lowest priority: the loop runs as soon as it can, wherever this thread is.
    cpu_set_t all, one;
    const struct sched_param no_priority = {0};
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    setenv("MUSTER_SECRET", "a secret of the contexts of this test", 1);
    fixture f = set_up(0), others[asking];
    char at[256];
    pthread_t threads[asking];
    muster_socket *dealers[asking];
    muster_socket *const server =
        make_socket(&f, &(muster_socket_config){.kind = MUSTER_SOCKET_ROUTER, .address = 1, .queue = f.queue});
    bind_at(server, "tcp://127.0.0.1:0", at); // moved to shared memory
    for (int i = 0; i < asking; i++) {
        others[i] = set_up(0);
        dealers[i] = dealer(&others[i], 2 + (uint64_t)i);
        connect_to(dealers[i], at);
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many_times, dealers[i]), 0);
    }
    assert_int_equal(sched_setscheduler(0, SCHED_IDLE, &no_priority), 0);
    for (int answered = 0; answered < asking * asked_each;) {
        muster_completion entry;
        muster_message *message;
        assert_int_equal(muster_queue_next(f.queue, 10 * second, &entry, NULL), MUSTER_OK);
        while (muster_socket_receive(server, 0, &message) == MUSTER_OK) {
            muster_message_swap_addresses(message);
            assert_int_equal(muster_socket_send(server, message, second, NULL), MUSTER_OK);
            answered++;
        }
    }
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &no_priority), 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < asking; i++) {
        pthread_join(threads[i], NULL);
        muster_socket_release(dealers[i]);
        tear_down(&others[i]);
    }
    unsetenv("MUSTER_SECRET");
    muster_socket_release(server);
    tear_down(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_message_arrives_without_a_readiness),
        cmocka_unit_test(test_inproc),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_tcp_sealed),
        cmocka_unit_test(test_tcp_sealed_without_aes),
        cmocka_unit_test(test_unix),
        cmocka_unit_test(test_shm),
        cmocka_unit_test(test_the_host_drives_the_engine),
        cmocka_unit_test(test_many_dealers_and_answers),
        cmocka_unit_test(test_a_dealer_takes_its_routers_in_turn),
        cmocka_unit_test(test_messages_wait_for_peers_up_to_a_limit),
        cmocka_unit_test(test_a_full_queue_says_so_and_gets_room),
        cmocka_unit_test(test_any_thread_sends_and_receives),
        cmocka_unit_test(test_waits_end),
        cmocka_unit_test(test_the_first_peer_is_read_beside_a_second),
        cmocka_unit_test(test_a_look_finds_what_has_arrived),
        cmocka_unit_test(test_a_queue_without_a_slot_is_no_endless_wait),
        cmocka_unit_test(test_a_close_delivers_to_a_peer_that_connects_late),
        cmocka_unit_test(test_bad_arguments),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
