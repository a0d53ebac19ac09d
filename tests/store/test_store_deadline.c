// SPDX-License-Identifier: MIT
// Stores that do not answer: every request ends at its deadline, and its status says whether it may have been applied.
// ctest: full timeout=150
#include "every_request.h"
#include "store_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define TIMEOUT (100 * MILLISECOND)
#define LATE (250 * MILLISECOND) // on a machine that is busy

static any_request requests[any_request_count];

static bool can(const client *c, const any_request *r) {
    return (muster_store_capabilities(c->store) & r->capabilities) == r->capabilities;
}

static void expect_in_time(int64_t from, const char *name) {
    const int64_t took = now() - from;
    if (took < TIMEOUT - 60 * MILLISECOND || took > TIMEOUT + LATE)
        fail_msg("%s: it took %lld us", name, (long long)(took / 1000));
}

static void expect_status(muster_status got, muster_status wanted, const char *name) {
    if (got != wanted) fail_msg("%s: status %d instead of %d: %s", name, got, wanted, why.message);
    if (got == MUSTER_E_PEER && strstr(why.message, "it may have been applied") == NULL)
        fail_msg("%s: %s", name, why.message);
}

static muster_status wait_for_completion(client *c) {
    muster_completion done;
    memset(&why, 0, sizeof why);
    assert_int_equal(muster_queue_next(c->queue, 60 * SECOND, &done, &why), MUSTER_OK);
    muster_store_result_release(done.object);
    return done.status;
}

// `doubt`: what a request ends with that changes something.
static void expect_deadlines(client *c, muster_status doubt) {
    for (int i = 0; i < any_request_count; i++) {
        const any_request *const r = &requests[i];
        if (!can(c, r)) continue;
        const muster_status wanted = r->changes ? doubt : MUSTER_TIMEOUT;
        int64_t from = now();
        const muster_status waited = muster_store_do(c->store, r->ops, r->count, TIMEOUT, NULL, &why);
        expect_in_time(from, r->name);
        expect_status(waited, wanted, r->name);
        from = now();
        assert_int_equal(muster_store_begin(c->store, r->ops, r->count, TIMEOUT, c->queue, 1, NULL, &why), MUSTER_OK);
        const muster_status begun = wait_for_completion(c);
        expect_in_time(from, r->name);
        expect_status(begun, wanted, r->name);
    }
}

static void expect_lease_deadlines(client *c, muster_lease *lease, muster_status doubt) {
    muster_lease *none;
    int64_t from = now();
    expect_status(muster_store_lease(c->store, SECOND, 0, TIMEOUT, &none, &why), MUSTER_TIMEOUT, "lease");
    expect_in_time(from, "lease");
    from = now();
    expect_status(muster_lease_end(lease, TIMEOUT, &why), doubt, "end of a lease");
    expect_in_time(from, "end of a lease");
    from = now();
    assert_int_equal(muster_lease_end_begin(lease, TIMEOUT, c->queue, 1, &why), MUSTER_OK);
    expect_status(wait_for_completion(c), doubt, "end of a lease");
    expect_in_time(from, "end of a lease");
}

static void prepare(client *c) {
    must(c, set("present", "1"));
    if (muster_store_capabilities(c->store) & MUSTER_STORE_CAN_QUEUE) must(c, any_op(MUSTER_STORE_PUSH, "filled", "x"));
}

static client open_with_grace(const char *url, int64_t grace_ns) {
    client c;
    muster_store_config config = {.struct_size = sizeof config, .grace_ns = grace_ns};
    memset(&c, 0, sizeof c);
    assert_int_equal(muster_context_create(NULL, &c.context, &why), MUSTER_OK);
    assert_int_equal(muster_queue_create(c.context, NULL, &c.queue, &why), MUSTER_OK);
    if (muster_store_open(c.context, url, strlen(url), &config, 10 * SECOND, &c.store, &why) != MUSTER_OK)
        fail_msg("%s", why.message);
    return c;
}

// ---- a server that is stopped ---------------------------------------------------------------------------------------

static void check_stopped_server(const char *listen) {
    program server = start_server("--listen", listen, NULL);
    await_ready(&server);
    client c = open_client(server.url);
    prepare(&c);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, 3600 * SECOND, 0, 10 * SECOND, &lease, &why), MUSTER_OK);
    stop_program(&server);
    expect_deadlines(&c, MUSTER_E_PEER);
    expect_lease_deadlines(&c, lease, MUSTER_E_PEER);
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    must(&c, set("present", "2")); // the handle goes on
    // Both attempts at each came to the server later, in their order. What waits was withdrawn.
    assert_int_equal(number_at(&c, "sum"), 2);
    must(&c, set("absent", "x"));
    assert_int_equal(number_at(&c, "c"), -1);
    muster_lease_release(lease);
    close_client(&c);
    end_program(&server, SIGTERM);
}

static void test_a_stopped_server_over_tcp(void **state) {
    (void)state;
    check_stopped_server("tcp://127.0.0.1:0");
}
static void test_a_stopped_server_over_unix(void **state) {
    (void)state;
    char listen[300];
    snprintf(listen, sizeof listen, "unix://%s/deadline", folder);
    check_stopped_server(listen);
}

typedef struct asking {
    client *c;
    muster_store_op op;
    int64_t timeout_ns;
    muster_status status;
    muster_error why;
    pthread_t thread;
} asking;
static void *ask_in_thread(void *argument) {
    asking *a = argument;
    a->status = muster_store_do(a->c->store, &a->op, 1, a->timeout_ns, NULL, &a->why);
    return NULL;
}
static void start_asking(asking *a, client *c, muster_store_op what, int64_t timeout_ns) {
    *a = (asking){.c = c, .op = what, .timeout_ns = timeout_ns};
    assert_int_equal(pthread_create(&a->thread, NULL, ask_in_thread, a), 0);
}

static void test_a_grace_period_gets_the_answer(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_with_grace(server.url, 30 * SECOND);
    prepare(&c);
    stop_program(&server);
    asking add, pop;
    const int64_t from = now();
    start_asking(&add, &c, number(MUSTER_STORE_ADD, "sum", 1), TIMEOUT);
    start_asking(&pop, &c, any_op(MUSTER_STORE_POP, "empty", NULL), TIMEOUT);
    // What changes nothing does not need an answer.
    assert_int_equal(ask(&c, op(MUSTER_STORE_READ, "present"), 3 * TIMEOUT), MUSTER_TIMEOUT);
    assert_true(now() - from < 3 * TIMEOUT + LATE);
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    pthread_join(add.thread, NULL);
    pthread_join(pop.thread, NULL);
    assert_int_equal(add.status, MUSTER_OK);
    assert_int_equal(pop.status, MUSTER_TIMEOUT);
    must(&c, any_op(MUSTER_STORE_PUSH, "empty", "x")); // so nothing was taken
    must(&c, any_op(MUSTER_STORE_POP, "empty", NULL));
    assert_int_equal(number_at(&c, "sum"), 1);
    // It ends, too.
    client other = open_with_grace(server.url, TIMEOUT);
    stop_program(&server);
    const int64_t begun = now();
    expect_status(ask(&other, number(MUSTER_STORE_ADD, "sum", 1), TIMEOUT), MUSTER_E_PEER, "add");
    assert_in_range(now() - begun, 2 * TIMEOUT, 2 * TIMEOUT + LATE);
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    close_client(&other);
    close_client(&c);
    end_program(&server, SIGTERM);
    muster_store_config config = {.struct_size = sizeof config, .grace_ns = -1};
    muster_store *none;
    assert_int_equal(muster_store_open(starter, "memory:", 7, &config, SECOND, &none, &why), MUSTER_E_ARG);
}

static void test_cancelling_at_a_stopped_server(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    prepare(&c);
    stop_program(&server);
    uint64_t reading, adding;
    const muster_store_op read = op(MUSTER_STORE_READ, "present"), add = number(MUSTER_STORE_ADD, "sum", 1);
    assert_int_equal(muster_store_begin(c.store, &read, 1, -1, c.queue, 1, &reading, &why), MUSTER_OK);
    int64_t from = now();
    assert_int_equal(muster_store_cancel(c.store, reading), MUSTER_OK);
    expect_status(wait_for_completion(&c), MUSTER_E_CANCELED, "read");
    assert_true(now() - from < LATE);
    assert_int_equal(muster_store_begin(c.store, &add, 1, TIMEOUT, c.queue, 1, &adding, &why), MUSTER_OK);
    from = now();
    assert_int_equal(muster_store_cancel(c.store, adding), MUSTER_OK);
    expect_status(wait_for_completion(&c), MUSTER_E_PEER, "add");
    assert_true(now() - from < TIMEOUT + LATE); // not beyond its deadline
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    must(&c, set("present", "2"));
    close_client(&c);
    end_program(&server, SIGTERM);
}

// ---- a server that is there -----------------------------------------------------------------------------------------

// Waits that end at their deadline are not applied, and no value is lost by one.
static void test_waits_at_a_server_that_answers(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_with_grace(server.url, 10 * SECOND), other = open_client(server.url);
    for (int i = 0; i < any_request_count; i++) {
        const any_request *const r = &requests[i];
        const bool waits = strstr(r->name, "wait") != NULL || strcmp(r->name, "barrier") == 0;
        if (!waits) continue;
        const int64_t from = now();
        const muster_status status = muster_store_do(c.store, r->ops, r->count, TIMEOUT, NULL, &why);
        expect_status(status, MUSTER_TIMEOUT, r->name);
        assert_true(now() - from >= TIMEOUT); // not before its time
        assert_non_null(strstr(why.message, "absent after 0."));
    }
    must(&other, any_op(MUSTER_STORE_PUSH, "empty", "x"));
    must(&other, set("absent", "x"));
    assert_int_equal(number_at(&other, "c"), -1);
    assert_int_equal(ask(&other, any_op(MUSTER_STORE_POP, "empty", NULL), 10 * SECOND), MUSTER_OK);
    close_client(&c);
    close_client(&other);
    end_program(&server, SIGTERM);
}

// What waits meanwhile is no reason to remember all answers. Where it is (what it changes must not be done twice) the
// requests beyond that are refused, and the handle goes on.
static void add_many(client *c, int count, int *refused) {
    enum { at_a_time = 256 };
    const muster_store_op add = number(MUSTER_STORE_ADD, "sum", 1);
    for (int i = 0; i < count; i += at_a_time) {
        for (int k = 0; k < at_a_time; k++)
            assert_int_equal(muster_store_begin(c->store, &add, 1, -1, c->queue, 7, NULL, &why), MUSTER_OK);
        for (int k = 0; k < at_a_time; k++) {
            const muster_completion done = take(c);
            assert_int_equal(done.tag, 7);
            if (done.status == MUSTER_E_LIMIT)
                (*refused)++;
            else if (done.status != MUSTER_OK)
                fail_msg("%s", why.message);
        }
    }
}
static void test_requests_that_wait_beside_many_that_write(void **state) {
    (void)state;
    enum { many = 70144 };
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    int refused = 0;
    begin(&c, any_op(MUSTER_STORE_GET, "absent", NULL), 1);
    add_many(&c, many, &refused);
    assert_int_equal(refused, 0);
    assert_int_equal(number_at(&c, "sum"), many);
    must(&c, set("absent", "x"));
    assert_int_equal(take(&c).tag, 1);
    begin(&c, any_op(MUSTER_STORE_POP, "empty", NULL), 2);
    add_many(&c, many, &refused);
    assert_in_range(refused, 1, many);
    assert_int_equal(number_at(&c, "sum"), 2 * many - refused); // what changes nothing is not refused
    client other = open_client(server.url);
    must(&other, any_op(MUSTER_STORE_PUSH, "empty", "x"));
    assert_int_equal(take(&c).tag, 2);
    must(&c, number(MUSTER_STORE_ADD, "sum", 1));
    close_client(&other);
    close_client(&c);
    end_program(&server, SIGTERM);
}

// ---- a way on which everything is lost ------------------------------------------------------------------------------

typedef struct relay {
    int listener, wake[2];
    uint16_t to;
    pthread_t thread;
    atomic_bool swallows, apart; // apart: no connection passes; both take effect with the next wake-up
    atomic_int clients;
    char url[64];
} relay;

static void *run_relay(void *raw) {
    relay *r = raw;
    int client = -1, server = -1;
    for (;;) {
        struct pollfd all[4] = {{r->wake[0], POLLIN, 0},
                                {client < 0 && !r->apart ? r->listener : -1, POLLIN, 0},
                                {client, POLLIN, 0},
                                {server, POLLIN, 0}};
        poll(all, 4, -1);
        char order = 0;
        bool cut = false;
        if (all[0].revents && read(r->wake[0], &order, 1) == 1) cut = order != 'w';
        if (all[1].revents && !r->apart) {
            client = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
            const struct sockaddr_in at = {
                .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = r->to};
            server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            cut = connect(server, (const struct sockaddr *)&at, sizeof at) != 0;
            r->clients++;
        }
        for (int side = 2; side < 4; side++) {
            if (!all[side].revents) continue;
            char bytes[65536];
            const ssize_t n = recv(all[side].fd, bytes, sizeof bytes, MSG_DONTWAIT);
            if (n == 0) cut = true;
            if (n > 0 && !r->swallows && send(side == 2 ? server : client, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                cut = true;
        }
        if (cut && client >= 0) {
            close(client);
            close(server);
            client = server = -1;
        }
        if (order == 'e') return NULL;
    }
}
static void start_relay(relay *r, const char *server) {
    memset(r, 0, sizeof *r);
    r->to = htons((uint16_t)atoi(strrchr(server, ':') + 1));
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(r->listener, 16), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(pipe2(r->wake, O_CLOEXEC), 0);
    snprintf(r->url, sizeof r->url, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, run_relay, r), 0);
}
static void tell_relay(relay *r, char order) { // 'w': look again, 'c': cut, 'e': end
    assert_int_equal(write(r->wake[1], &order, 1), 1);
}
static void end_relay(relay *r) {
    tell_relay(r, 'e');
    pthread_join(r->thread, NULL);
    close(r->wake[0]);
    close(r->wake[1]);
    close(r->listener);
}

static void test_a_way_that_loses_everything(void **state) {
    (void)state;
    muster_store_server *server;
    muster_store_server_stats stats;
    char url[100];
    size_t size;
    assert_int_equal(muster_store_server_open(starter, "tcp://127.0.0.1:0", 17, NULL, &server, &why), MUSTER_OK);
    assert_int_equal(muster_store_server_address(server, url, sizeof url, &size), MUSTER_OK);
    relay r;
    start_relay(&r, url);
    client c = open_client(r.url), direct = open_client(url);
    prepare(&c);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, 3600 * SECOND, 0, 10 * SECOND, &lease, &why), MUSTER_OK);
    r.swallows = true;
    expect_deadlines(&c, MUSTER_E_PEER);
    expect_lease_deadlines(&c, lease, MUSTER_E_PEER);
    r.apart = true;
    tell_relay(&r, 'c');
    const muster_store_op mark = set("mark", "x");
    muster_status status; // until it knows that it is cut off: what is asked then was not sent
    do status = ask(&c, mark, TIMEOUT);
    while (status == MUSTER_E_PEER);
    expect_status(status, MUSTER_TIMEOUT, "set");
    expect_deadlines(&c, MUSTER_TIMEOUT);
    expect_lease_deadlines(&c, lease, MUSTER_TIMEOUT);
    r.apart = r.swallows = false;
    tell_relay(&r, 'w');
    must(&c, set("present", "2"));
    assert_int_equal(number_at(&direct, "sum"), -1);
    assert_int_equal(number_at(&direct, "mark"), -1);
    assert_int_equal(ask(&direct, any_op(MUSTER_STORE_POP, "filled", NULL), 10 * SECOND), MUSTER_OK);
    assert_int_equal(muster_lease_end(lease, 10 * SECOND, &why), MUSTER_OK);
    do { // what was granted and did not come to the client's ears ends by itself
        must(&direct, set("present", "3"));
        assert_int_equal(muster_store_server_get_stats(server, &stats), MUSTER_OK);
    } while (stats.leases != 0);
    muster_lease_release(lease);
    close_client(&c);
    close_client(&direct);
    end_relay(&r);
    assert_int_equal(muster_store_server_close(server, 10 * SECOND), MUSTER_OK);
    muster_store_server_release(server);
}

// The answer to a grant arrives after its deadline: that lease is not renewed, although its owner continues.
static void test_a_lease_that_was_granted_too_late(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    stop_program(&server);
    muster_lease *none;
    expect_status(muster_store_lease(c.store, SECOND, 0, TIMEOUT, &none, &why), MUSTER_TIMEOUT, "lease");
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    must(&c, set("present", "1"));
    // Leases are numbered in order: the one before this is the one that came too late.
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, 3600 * SECOND, 0, 10 * SECOND, &lease, &why), MUSTER_OK);
    muster_store_op on_lease = set("kept", "x");
    on_lease.lease = muster_lease_id(lease) - 1;
    const muster_status status = ask(&c, on_lease, 10 * SECOND);
    if (status == MUSTER_OK) {
        muster_store_op watch = op(MUSTER_STORE_WATCH, "kept");
        muster_store_result *result;
        const muster_store_op read = op(MUSTER_STORE_CHECK, "kept");
        assert_int_equal(muster_store_do(c.store, &read, 1, 10 * SECOND, &result, &why), MUSTER_OK);
        watch.version = muster_store_result_revision(result);
        muster_store_result_release(result);
        if (number_at(&c, "kept") != -1) expect_status(ask(&c, watch, 20 * SECOND), MUSTER_OK, "watch");
    } else {
        assert_int_equal(status, MUSTER_E_STALE);
    }
    muster_lease_release(lease);
    close_client(&c);
    end_program(&server, SIGTERM);
}

// ---- files, and stores of the host ----------------------------------------------------------------------------------

static void test_a_file_that_another_process_has_locked(void **state) {
    (void)state;
    char url[300];
    snprintf(url, sizeof url, "file://%s/locked.store", folder);
    client c = open_client(url);
    prepare(&c);
    const int file = open(url + 7, O_RDWR | O_CLOEXEC);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_int_equal(fcntl(file, F_OFD_SETLK, &whole), 0); // as a process that is stopped in the middle of its request
    expect_deadlines(&c, MUSTER_TIMEOUT);
    close(file);
    must(&c, set("present", "2"));
    assert_int_equal(number_at(&c, "sum"), -1);
    close_client(&c);
}

typedef struct host {
    muster_queue *queue;
    uint32_t flags;
    pthread_t thread;
    atomic_bool answers;
} host;
static void *serve_store(void *argument) {
    host *h = argument;
    muster_completion entry;
    while (muster_queue_next(h->queue, -1, &entry, NULL) == MUSTER_OK) {
        muster_store_request what = {.struct_size = sizeof what};
        if (entry.kind == MUSTER_REQUEST_CANCEL && h->answers)
            muster_store_request_fail(h->queue, entry.request, MUSTER_E_CANCELED, UINT32_MAX, NULL, 0);
        if (entry.kind != MUSTER_REQUEST_STORE) continue;
        if (muster_store_request_read(h->queue, entry.request, &what) != MUSTER_OK) continue;
        if (what.kind == MUSTER_STORE_REQUEST_OPEN) {
            muster_store_traits traits = {.struct_size = sizeof traits, .flags = h->flags};
            traits.capabilities = MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_QUEUE | MUSTER_STORE_CAN_WAIT |
                                  MUSTER_STORE_CAN_WATCH | MUSTER_STORE_CAN_BARRIER | MUSTER_STORE_CAN_LEASE;
            muster_store_request_open(h->queue, entry.request, &traits, NULL);
        } else if (what.kind == MUSTER_STORE_REQUEST_GRANT && what.ttl_ns == 3600 * SECOND) {
            muster_store_request_done(h->queue, entry.request, MUSTER_OK, NULL, 0, 0, NULL);
        }
    }
    return NULL;
}

static void check_host(uint32_t flags, bool answers, muster_status doubt) {
    client c = {0};
    host h = {.flags = flags, .answers = answers};
    assert_int_equal(muster_context_create(NULL, &c.context, &why), MUSTER_OK);
    assert_int_equal(muster_queue_create(c.context, NULL, &c.queue, &why), MUSTER_OK);
    assert_int_equal(muster_queue_create(c.context, NULL, &h.queue, &why), MUSTER_OK);
    assert_int_equal(muster_store_serve(c.context, "mute", 4, h.queue, 0, &why), MUSTER_OK);
    assert_int_equal(pthread_create(&h.thread, NULL, serve_store, &h), 0);
    assert_int_equal(muster_store_open(c.context, "mute:x", 6, NULL, 10 * SECOND, &c.store, &why), MUSTER_OK);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, 3600 * SECOND, 0, 10 * SECOND, &lease, &why), MUSTER_OK);
    expect_deadlines(&c, doubt);
    expect_lease_deadlines(&c, lease, doubt);
    muster_lease_release(lease);
    muster_queue_close(h.queue);
    pthread_join(h.thread, NULL);
    muster_queue_release(h.queue);
    close_client(&c);
}

// It is in this process: what ends before its answer is not applied.
static void test_a_host_that_does_not_answer(void **state) {
    (void)state;
    check_host(0, false, MUSTER_TIMEOUT);
}
static void test_a_host_of_a_store_elsewhere_that_does_not_answer(void **state) {
    (void)state;
    check_host(MUSTER_STORE_IS_REMOTE, false, MUSTER_E_PEER);
    check_host(MUSTER_STORE_IS_REMOTE | MUSTER_STORE_ANSWERS_CANCEL, false, MUSTER_E_PEER);
}
static void test_a_host_of_a_store_elsewhere_that_knows(void **state) {
    (void)state;
    check_host(MUSTER_STORE_IS_REMOTE | MUSTER_STORE_ANSWERS_CANCEL, true, MUSTER_TIMEOUT);
}

int main(int argc, char **argv) {
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    if (!make_folder()) return 2;
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    make_any_requests(requests);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stopped_server_over_tcp),
        cmocka_unit_test(test_a_stopped_server_over_unix),
        cmocka_unit_test(test_a_grace_period_gets_the_answer),
        cmocka_unit_test(test_cancelling_at_a_stopped_server),
        cmocka_unit_test(test_waits_at_a_server_that_answers),
        cmocka_unit_test(test_requests_that_wait_beside_many_that_write),
        cmocka_unit_test(test_a_way_that_loses_everything),
        cmocka_unit_test(test_a_lease_that_was_granted_too_late),
        cmocka_unit_test(test_a_file_that_another_process_has_locked),
        cmocka_unit_test(test_a_host_that_does_not_answer),
        cmocka_unit_test(test_a_host_of_a_store_elsewhere_that_does_not_answer),
        cmocka_unit_test(test_a_host_of_a_store_elsewhere_that_knows),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tear_down() ? failed : 2;
}
