// SPDX-License-Identifier: MIT
// The forwarder: threads and other processes, the address table, the hop limit, aggregation, and what comes back.
// ctest: quick timeout=120
#include "socket_run.h"

#include <muster/forwarder.h>
#include <pthread.h>

static muster_forwarder *make_forwarder(const fixture *f, muster_forwarder_config config) {
    config.struct_size = sizeof config;
    muster_forwarder *made;
    muster_error error;
    if (muster_forwarder_create(f->context, &config, &made, &error) != MUSTER_OK) fail_msg("%s", error.message);
    return made;
}
static uint64_t address_of(int64_t group, int64_t id, int64_t kind) {
    uint64_t address;
    assert_int_equal(muster_message_address(group, id, kind, &address), MUSTER_OK);
    return address;
}
/* Takes entries of the queue until a message has come back; returns its status. */
static muster_status next_returned(const fixture *f, uint32_t *type) {
    for (;;) {
        muster_completion entry;
        muster_error error;
        assert_int_equal(muster_queue_next(f->queue, 20 * second, &entry, &error), MUSTER_OK);
        if (entry.kind != MUSTER_DONE_MESSAGE) continue;
        *type = header_of(entry.object).type;
        muster_message_release(entry.object);
        return entry.status;
    }
}

enum { worker = 1, server = 2 };

/* Two "processes" with a forwarder each; threads with dealers over inproc. */
static void test_threads_of_two_processes(void **state) {
    (void)state;
    assert_int_equal(setenv("MUSTER_SECRET", "of both processes", 1), 0);
    fixture a = set_up(0), b = set_up(0);
    muster_forwarder *fa = make_forwarder(&a, (muster_forwarder_config){.address = 1000}),
                     *fb = make_forwarder(&b, (muster_forwarder_config){.address = 2000});
    char at[256], where_a[256], where_b[256];
    snprintf(at, sizeof at, "inproc://forwarder-a-%d", getpid());
    bind_at(muster_forwarder_socket(fa), at, where_a);
    snprintf(at, sizeof at, "inproc://forwarder-b-%d", getpid());
    bind_at(muster_forwarder_socket(fb), at, where_b);
    bind_at(muster_forwarder_socket(fb), "tcp://127.0.0.1:0?upgrade=no", at);
    connect_to(muster_forwarder_socket(fa), at);
    wait_for_peers(muster_forwarder_socket(fa), 1);
    /* all servers are behind b, and all workers behind a */
    const uint64_t any_server = address_of(MUSTER_MESSAGE_ANY, MUSTER_MESSAGE_ANY, server);
    const uint64_t any_worker = address_of(MUSTER_MESSAGE_ANY, MUSTER_MESSAGE_ANY, worker);
    assert_int_equal(muster_forwarder_add_route(fa, any_server, 2000), MUSTER_OK);
    assert_int_equal(muster_forwarder_add_route(fb, any_worker, 1000), MUSTER_OK);
    muster_socket *w[2], *s[2];
    for (int i = 0; i < 2; i++) {
        w[i] = dealer(&a, address_of(0, i, worker));
        connect_to(w[i], where_a);
        s[i] = dealer(&b, address_of(0, i, server));
        connect_to(s[i], where_b);
    }
    wait_for_peers(muster_forwarder_socket(fa), 3);
    wait_for_peers(muster_forwarder_socket(fb), 3);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            char text[32];
            snprintf(text, sizeof text, "from %d to %d", i, j);
            send_text(w[i], address_of(0, j, server), 300, text);
            muster_message *got = receive_one(s[j]);
            assert_string_equal(text_of(got), text);
            assert_int_equal(header_of(got).source, address_of(0, i, worker));
            assert_int_equal(header_of(got).hops, 2);
            assert_int_equal(muster_message_swap_addresses(got), MUSTER_OK);
            assert_int_equal(muster_socket_send(s[j], got, 20 * second, NULL), MUSTER_OK);
            assert_int_equal(expect_text(w[i], 300, text), address_of(0, j, server));
        }
    send_text(w[0], address_of(0, 1, worker), 301, "to a thread of the same process");
    assert_int_equal(expect_text(w[1], 301, "to a thread of the same process"), address_of(0, 0, worker));
    muster_forwarder_stats stats;
    assert_int_equal(muster_forwarder_get_stats(fa, &stats), MUSTER_OK);
    assert_int_equal(stats.peers, 3);
    assert_int_equal(stats.forwarded, 9);
    assert_int_equal(stats.undelivered, 0);
    for (int i = 0; i < 2; i++) {
        muster_socket_release(w[i]);
        muster_socket_release(s[i]);
    }
    assert_int_equal(muster_forwarder_close(fa, 20 * second), MUSTER_OK);
    assert_int_equal(muster_forwarder_close(fa, 20 * second), MUSTER_E_CLOSED);
    muster_forwarder_release(fa);
    muster_forwarder_release(fb);
    tear_down(&a);
    tear_down(&b);
}

/* Two forwarders whose routes point at each other. */
static void test_a_loop_ends_at_the_hop_limit(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_forwarder *one =
        make_forwarder(&f, (muster_forwarder_config){.address = 1, .max_hops = 5, .queue = f.queue});
    muster_forwarder *two = make_forwarder(&f, (muster_forwarder_config){.address = 2, .queue = f.queue});
    char where[256];
    bind_at(muster_forwarder_socket(one), "inproc://loop", where);
    connect_to(muster_forwarder_socket(two), where);
    wait_for_peers(muster_forwarder_socket(one), 1);
    assert_int_equal(muster_forwarder_add_route(one, 99, 2), MUSTER_OK);
    assert_int_equal(muster_forwarder_add_route(two, 99, 1), MUSTER_OK);
    muster_error error;
    assert_int_equal(muster_forwarder_send(one, message_to(99, 300, "x", 1), second, &error), MUSTER_OK);
    uint32_t type;
    assert_int_equal(next_returned(&f, &type), MUSTER_E_LIMIT);
    assert_int_equal(type, 300);
    muster_forwarder_stats stats;
    assert_int_equal(muster_forwarder_get_stats(one, &stats), MUSTER_OK);
    assert_int_equal(stats.hop_limit, 1);
    assert_int_equal(stats.undelivered, 1);
    assert_int_equal(stats.forwarded, 1 + 2); /* by the host, then at hops 1 and 3; 5 is the limit */
    muster_forwarder_release(one);
    muster_forwarder_release(two);
    tear_down(&f);
}

/* Threads send gradients; the host adds them up and sends one message to the server, as SINGA's stub does. */
static void test_aggregation(void **state) {
    (void)state;
    enum { threads = 4, rounds = 25 };
    fixture f = set_up(0);
    muster_message_queue *updates;
    assert_int_equal(muster_message_queue_create(f.context, NULL, &updates, NULL), MUSTER_OK);
    muster_forwarder *stub = make_forwarder(&f, (muster_forwarder_config){.address = 10});
    assert_int_equal(muster_forwarder_set_hook(stub, MUSTER_MESSAGE_UPDATE, updates), MUSTER_OK);
    char where[256], far[256];
    bind_at(muster_forwarder_socket(stub), "inproc://stub", where);
    muster_socket *r = router(&f, 500), *w[threads];
    bind_at(r, "tcp://127.0.0.1:0?upgrade=no", far);
    connect_to(muster_forwarder_socket(stub), far);
    wait_for_peers(r, 1);
    for (int i = 0; i < threads; i++) {
        w[i] = dealer(&f, 100 + (uint64_t)i);
        connect_to(w[i], where);
    }
    for (int round = 0; round < rounds; round++) {
        double sum = 0, expected = 0;
        for (int i = 0; i < threads; i++) {
            muster_message *made = message_to(500, MUSTER_MESSAGE_UPDATE, NULL, 0);
            const muster_value value = {.real = round + i * 0.25};
            assert_int_equal(muster_message_add_values(made, "d", &value, 1, NULL), MUSTER_OK);
            assert_int_equal(muster_socket_send(w[i], made, 20 * second, NULL), MUSTER_OK);
            expected += value.real;
        }
        for (int i = 0; i < threads; i++) {
            muster_message *got;
            muster_value value;
            uint32_t count;
            assert_int_equal(muster_message_queue_pop(updates, 20 * second, &got), MUSTER_OK);
            assert_int_equal(header_of(got).destination, 500);
            assert_int_equal(muster_message_get_values(got, 0, "d", NULL, &value, 1, &count, NULL), MUSTER_OK);
            sum += value.real;
            muster_message_release(got);
        }
        muster_message *total = message_to(500, MUSTER_MESSAGE_UPDATE, NULL, 0);
        const muster_value value = {.real = sum};
        muster_error error;
        assert_int_equal(muster_message_add_values(total, "d", &value, 1, NULL), MUSTER_OK);
        assert_int_equal(muster_forwarder_send(stub, total, 20 * second, &error), MUSTER_OK);
        muster_message *got = receive_one(r); /* one, from the forwarder */
        muster_value seen;
        uint32_t count;
        assert_int_equal(header_of(got).source, 10);
        assert_int_equal(muster_message_get_values(got, 0, "d", NULL, &seen, 1, &count, NULL), MUSTER_OK);
        assert_true(seen.real == expected);
        muster_message_release(got);
    }
    /* without the hook the same type passes */
    assert_int_equal(muster_forwarder_set_hook(stub, MUSTER_MESSAGE_UPDATE, NULL), MUSTER_OK);
    send_text(w[0], 500, MUSTER_MESSAGE_UPDATE, "alone");
    assert_int_equal(expect_text(r, MUSTER_MESSAGE_UPDATE, "alone"), 100);
    for (int i = 0; i < threads; i++) muster_socket_release(w[i]);
    muster_forwarder_release(stub);
    muster_message_queue_release(updates);
    muster_socket_release(r);
    tear_down(&f);
}

/* A host that does not take its messages slows the senders down, and another destination goes on until the forwarder is
 * full; nothing is lost, and the order stays. */
static void test_a_full_inbox_slows_the_sender_down(void **state) {
    (void)state;
    enum { count = 5000 };
    fixture f = set_up(0);
    muster_message_queue *inbox;
    const muster_message_queue_config small = {.struct_size = sizeof small, .max_messages = 4};
    assert_int_equal(muster_message_queue_create(f.context, &small, &inbox, NULL), MUSTER_OK);
    muster_forwarder *stub = make_forwarder(
        &f, (muster_forwarder_config){.address = 10, .max_waiting = 16, .max_queued_messages = 8, .inbox = inbox});
    char where[256];
    bind_at(muster_forwarder_socket(stub), "inproc://slow", where);
    muster_socket *d =
        make_socket(&f, &(muster_socket_config){.kind = MUSTER_SOCKET_DEALER, .address = 7, .max_queued_messages = 8});
    connect_to(d, where);
    wait_for_peers(d, 1);
    char bytes[2000] = {0};
    int sent = 0, taken = 0;
    muster_forwarder_stats stats;
    for (;;) { /* until nothing fits any more, also into the forwarder */
        memcpy(bytes, &sent, sizeof sent);
        muster_message *made = message_to(10, 300, bytes, sizeof bytes);
        muster_error error;
        const muster_status status = muster_socket_send(d, made, 50 * ms, &error);
        if (status == MUSTER_OK) {
            assert_in_range(++sent, 1, count); /* bounded by the window of the stream and the limits */
            continue;
        }
        assert_int_equal(status, MUSTER_TIMEOUT);
        muster_message_release(made);
        assert_int_equal(muster_forwarder_get_stats(stub, &stats), MUSTER_OK);
        if (stats.waiting == 16) break;
    }
    for (; taken < sent; taken++) {
        muster_message *got;
        assert_int_equal(muster_message_queue_pop(inbox, 20 * second, &got), MUSTER_OK);
        int number;
        memcpy(&number, text_of(got), sizeof number);
        assert_int_equal(number, taken);
        muster_message_release(got);
    }
    muster_socket_release(d);
    muster_forwarder_release(stub);
    muster_message_queue_release(inbox);
    tear_down(&f);
}

static void test_what_cannot_be_forwarded_comes_back(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_forwarder *stub =
        make_forwarder(&f, (muster_forwarder_config){.address = 10, .max_unrouted_messages = 1, .queue = f.queue});
    char where[256];
    bind_at(muster_forwarder_socket(stub), "inproc://back", where);
    muster_socket *d = dealer(&f, 7), *gone = dealer(&f, 8);
    connect_to(d, where);
    connect_to(gone, where);
    wait_for_peers(muster_forwarder_socket(stub), 2);
    uint32_t type;
    send_text(d, 10, 301, "for the forwarder itself"); /* which has no inbox */
    assert_int_equal(next_returned(&f, &type), MUSTER_E_NOT_FOUND);
    assert_int_equal(type, 301);
    muster_socket_release(gone);
    event_of(muster_forwarder_socket(stub), MUSTER_SOCKET_LOST);
    send_text(d, 8, 302, "to one that is lost");
    assert_int_equal(next_returned(&f, &type), MUSTER_E_PEER);
    assert_int_equal(type, 302);
    send_text(d, 66, 303, "waits for its receiver");
    send_text(d, 67, 304, "one too many");
    assert_int_equal(next_returned(&f, &type), MUSTER_E_NOT_FOUND);
    assert_int_equal(type, 304);
    assert_int_equal(muster_forwarder_close(stub, 10 * ms), MUSTER_TIMEOUT);
    assert_int_equal(next_returned(&f, &type), MUSTER_E_CLOSED);
    assert_int_equal(type, 303);
    muster_forwarder_release(stub);
    muster_socket_release(d);
    tear_down(&f);
}

static void test_bad_forwarder_arguments(void **state) {
    (void)state;
    fixture f = set_up(0), other = set_up(0);
    muster_forwarder *stub;
    muster_error error;
    muster_message_queue *elsewhere;
    assert_int_equal(muster_message_queue_create(other.context, NULL, &elsewhere, NULL), MUSTER_OK);
    const muster_forwarder_config bad[] = {
        {.struct_size = sizeof bad[0], .flags = 1},
        {.struct_size = sizeof bad[0], .max_hops = 256},
        {.struct_size = sizeof bad[0], .max_waiting = (1 << 20) + 1},
        {.struct_size = sizeof bad[0], .reserved = 1},
        {.struct_size = sizeof bad[0], .inbox = elsewhere},
        {.struct_size = sizeof bad[0], .queue = other.queue},
        {.struct_size = sizeof bad[0], .address = address_of(MUSTER_MESSAGE_ANY, 1, 1)},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(muster_forwarder_create(f.context, &bad[i], &stub, &error), MUSTER_E_ARG);
        assert_null(stub);
        assert_true(error.message[0] != '\0');
    }
    assert_int_equal(muster_forwarder_create(NULL, NULL, &stub, &error), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_create(f.context, NULL, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_create(f.context, NULL, &stub, &error), MUSTER_OK);
    assert_true(muster_socket_address(muster_forwarder_socket(stub)) != 0);
    assert_null(muster_forwarder_socket(NULL));
    assert_int_equal(muster_forwarder_add_route(stub, 0, 1), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_add_route(stub, 1, 0), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_add_route(NULL, 1, 1), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_add_route(stub, 5, 6), MUSTER_OK);
    assert_int_equal(muster_forwarder_add_route(stub, 5, 7), MUSTER_OK);
    assert_int_equal(muster_forwarder_remove_route(stub, 5), MUSTER_OK);
    assert_int_equal(muster_forwarder_remove_route(stub, 5), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_forwarder_remove_route(NULL, 5), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_set_hook(stub, 1, elsewhere), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_set_hook(NULL, 1, NULL), MUSTER_E_ARG);
    muster_message *message = message_to(0, 1, "x", 1);
    assert_int_equal(muster_forwarder_send(stub, message, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_send(NULL, message, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_send(stub, NULL, 0, &error), MUSTER_E_ARG);
    muster_message_release(message);
    assert_int_equal(muster_forwarder_get_stats(stub, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_forwarder_close(NULL, 0), MUSTER_E_ARG);
    muster_forwarder_release(NULL);
    muster_forwarder_release(stub);
    muster_message_queue_release(elsewhere);
    tear_down(&other);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_of_two_processes),
        cmocka_unit_test(test_a_loop_ends_at_the_hop_limit),
        cmocka_unit_test(test_aggregation),
        cmocka_unit_test(test_a_full_inbox_slows_the_sender_down),
        cmocka_unit_test(test_what_cannot_be_forwarded_comes_back),
        cmocka_unit_test(test_bad_forwarder_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
