// SPDX-License-Identifier: MIT
// Members of a run that come and go, over a store in this process, and over one that is reached by a connection; or
// over those of a URL that the command line gives the front of.
// ctest: quick timeout=120
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <muster/rendezvous.h>
#include <muster/store_server.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
    muster_store_server *server; /* NULL: the store is in this process */
} fixture;

static bool over_tcp;
static const char *elsewhere; /* front of a URL where each test has a store of its own; NULL: memory, or tcp */

static fixture set_up(uint32_t flags) {
    fixture f = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    assert_int_equal(muster_context_create(&config, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    char url[256] = "memory:";
    size_t size = 7;
    static int stores;
    if (elsewhere != NULL) {
        size = (size_t)snprintf(url, sizeof url, "%s%d", elsewhere, stores++);
    } else if (over_tcp) {
        assert_int_equal(muster_store_server_open(f.context, "tcp://127.0.0.1:0", 17, NULL, &f.server, NULL),
                         MUSTER_OK);
        assert_int_equal(muster_store_server_address(f.server, url, sizeof url, &size), MUSTER_OK);
    }
    assert_int_equal(muster_store_open(f.context, url, size, NULL, 10 * second, &f.store, NULL), MUSTER_OK);
    return f;
}
static void tear_down(fixture *f) {
    muster_store_release(f->store);
    muster_store_server_release(f->server);
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, 10 * second), MUSTER_OK);
    muster_context_release(f->context);
}
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * second + t.tv_nsec;
}

static muster_rendezvous_config run_of(const fixture *f, uint32_t min, uint32_t max) {
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.run_id = "job";
    config.run_id_bytes = 3;
    config.store = f->store;
    config.min = min;
    config.max = max;
    config.last_call_ns = -1;
    return config;
}
static muster_rendezvous *member(const fixture *f, const muster_rendezvous_config *run, const char *address) {
    muster_rendezvous_config config = *run;
    muster_rendezvous *made;
    muster_error error;
    config.address = address;
    config.address_bytes = strlen(address);
    const muster_status status = muster_rendezvous_open(f->context, &config, 10 * second, &made, &error);
    if (status != MUSTER_OK) fail_msg("%s", error.message);
    return made;
}
static void begin(const fixture *f, muster_rendezvous *who, uint32_t what, uint64_t tag) {
    assert_int_equal(muster_rendezvous_begin(who, what, NULL, 0, 20 * second, f->queue, tag, NULL), MUSTER_OK);
}
/* The next completion, which is of this tag; any: UINT64_MAX. */
static muster_round *ended(const fixture *f, uint64_t tag, muster_status status) {
    muster_completion done;
    muster_error error;
    assert_int_equal(muster_queue_next(f->queue, 20 * second, &done, &error), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_RENDEZVOUS);
    if (tag != UINT64_MAX) assert_int_equal(done.tag, tag);
    if (done.status != status) fail_msg("%s: %s", muster_status_name(done.status), error.message);
    return done.object;
}
/* All of these join, and are in a round together; by rank. */
static void join_all(const fixture *f, muster_rendezvous **who, muster_round **rounds, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) begin(f, who[i], MUSTER_RENDEZVOUS_JOIN, i);
    for (uint32_t i = 0; i < count; i++) {
        muster_completion done;
        muster_error error;
        assert_int_equal(muster_queue_next(f->queue, 30 * second, &done, &error), MUSTER_OK);
        if (done.status != MUSTER_OK) fail_msg("%s", error.message);
        rounds[done.tag] = done.object;
    }
}
static muster_round_info info_of(const muster_round *round) {
    muster_round_info info;
    assert_int_equal(muster_round_get_info(round, &info), MUSTER_OK);
    return info;
}
/* Takes events until one of this kind comes. */
static muster_rendezvous_event event_of(muster_rendezvous *who, uint32_t kind) {
    muster_rendezvous_event event;
    do assert_int_equal(muster_rendezvous_next_event(who, 20 * second, &event), MUSTER_OK);
    while (event.kind != kind);
    return event;
}
static muster_rendezvous_state state_of(muster_rendezvous *who) {
    muster_rendezvous_state state;
    assert_int_equal(muster_rendezvous_get_state(who, &state), MUSTER_OK);
    return state;
}
static muster_store_op op(uint32_t kind, const char *key) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    return made;
}
static muster_store *store_of(muster_round *round) {
    muster_store *store;
    assert_int_equal(muster_round_store(round, &store, NULL), MUSTER_OK);
    return store;
}
static void release_all(muster_rendezvous **who, muster_round **rounds, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (rounds != NULL) muster_round_release(rounds[i]);
        muster_rendezvous_release(who[i]);
    }
}

static void two_meet(uint32_t flags) {
    fixture f = set_up(flags);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[2] = {member(&f, &run, "node10:1"), member(&f, &run, "node9:1")};
    muster_round *rounds[2];
    join_all(&f, who, rounds, 2);
    const muster_round_info a = info_of(rounds[0]), b = info_of(rounds[1]);
    assert_int_equal(a.number, 1);
    assert_int_equal(b.number, 1);
    assert_int_equal(a.rank, 1); /* node9 is before node10 */
    assert_int_equal(b.rank, 0);
    assert_int_equal(a.world, 2);
    assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    assert_int_equal(event_of(who[0], MUSTER_RENDEZVOUS_COMPLETE).count, 2);
    assert_int_equal(state_of(who[0]).phase, MUSTER_RENDEZVOUS_IN);
    muster_round_member_info other;
    assert_int_equal(muster_round_member(rounds[0], 0, second, &other, NULL), MUSTER_OK);
    assert_int_equal(other.address_bytes, 7);
    assert_memory_equal(other.address, "node9:1", 7);

    muster_store *views[2] = {store_of(rounds[0]), store_of(rounds[1])};
    muster_store_op set = op(MUSTER_STORE_SET, "k"), get = op(MUSTER_STORE_GET, "k"), list = op(MUSTER_STORE_LIST, "");
    set.value = "v";
    set.value_bytes = 1;
    muster_store_result *result;
    assert_int_equal(muster_store_do(views[0], &set, 1, second, &result, NULL), MUSTER_OK);
    assert_int_equal(muster_store_result_count(result), 1); /* what fences it is not shown */
    muster_store_result_release(result);
    assert_int_equal(muster_store_do(views[1], &get, 1, second, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_do(views[1], &list, 1, second, &result, NULL), MUSTER_OK);
    assert_int_equal(muster_store_result_count(result), 1);
    muster_store_result_release(result);
    set.condition = MUSTER_STORE_IF_ABSENT;
    assert_int_equal(muster_store_do(views[1], &set, 1, second, &result, NULL), MUSTER_E_CHANGED);
    assert_int_equal(muster_store_result_count(result), 1);
    muster_store_result_release(result);
    for (int i = 0; i < 2; i++) muster_store_release(views[i]);
    release_all(who, rounds, 2);
    tear_down(&f);
}
static void test_two_meet(void **state) {
    (void)state;
    two_meet(0);
}
static void test_two_meet_where_the_host_drives_the_engine(void **state) {
    (void)state;
    two_meet(MUSTER_CONTEXT_EXTERNAL);
}

static void test_the_last_call_waits_for_others_but_not_when_all_are_there(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 2, 3);
    const int64_t call_ns = elsewhere ? 2500 * ms : 300 * ms; /* not all stores have leases so short */
    run.last_call_ns = call_ns;
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")};
    muster_round *rounds[3];
    int64_t begun = now();
    join_all(&f, who, rounds, 2); /* c does not come */
    assert_true(now() - begun >= call_ns);
    assert_int_equal(info_of(rounds[0]).world, 2);
    assert_int_equal(event_of(who[0], MUSTER_RENDEZVOUS_LAST_CALL).count, 2);
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    begun = now();
    join_all(&f, who, rounds, 3);
    assert_int_equal(info_of(rounds[2]).world, 3);
    assert_true(now() - begun < call_ns);
    release_all(who, rounds, 3);
    tear_down(&f);
}

static void test_who_comes_late_waits_is_seen_and_gets_in_with_the_next_round(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 3);
    muster_rendezvous *who[3] = {member(&f, &run, "c"), member(&f, &run, "b"), member(&f, &run, "a")};
    muster_round *rounds[3], *old[2];
    join_all(&f, who, old, 2);
    begin(&f, who[2], MUSTER_RENDEZVOUS_JOIN, 2);
    const muster_rendezvous_event waits = event_of(who[0], MUSTER_RENDEZVOUS_WAITING);
    assert_int_equal(waits.count, 1);
    assert_int_equal(waits.round, 1);
    assert_int_equal(event_of(who[1], MUSTER_RENDEZVOUS_WAITING).count, 1);
    char text[64];
    size_t size;
    assert_int_equal(muster_rendezvous_list(who[0], text, sizeof text, second, &size, NULL), MUSTER_OK);
    assert_int_equal(size, 2);
    assert_memory_equal(text, "a\n", 2);

    muster_store *view = store_of(old[0]);
    const muster_store_op never = op(MUSTER_STORE_GET, "never"), read = op(MUSTER_STORE_READ, "x"),
                          watch = op(MUSTER_STORE_WATCH, "");
    muster_queue *queue;
    assert_int_equal(muster_queue_create(f.context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_store_begin(view, &never, 1, -1, queue, 7, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_do(view, &read, 1, second, NULL, NULL), MUSTER_OK);
    begin(&f, who[0], MUSTER_RENDEZVOUS_JOIN, 0);
    muster_completion done;
    muster_error error;
    assert_int_equal(muster_queue_next(queue, 20 * second, &done, &error), MUSTER_OK);
    assert_int_equal(done.status, MUSTER_E_STALE); /* what waits ends */
    assert_string_equal(error.message, "rendezvous \"job\": round 1 is over: this member joined again");
    assert_int_equal(muster_store_do(view, &read, 1, second, NULL, &error), MUSTER_E_STALE);
    assert_int_equal(muster_store_do(view, &watch, 1, second, NULL, &error), MUSTER_E_STALE);
    assert_int_equal(info_of(old[0]).flags, MUSTER_ROUND_OVER);
    assert_int_equal(event_of(who[1], MUSTER_RENDEZVOUS_LEFT).rank, info_of(old[0]).rank);
    assert_int_equal(info_of(old[1]).flags, 0); /* the other is still in, so there is no new round */
    assert_int_equal(state_of(who[1]).round, 1);

    begin(&f, who[1], MUSTER_RENDEZVOUS_JOIN, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_queue_next(f.queue, 20 * second, &done, &error), MUSTER_OK);
        assert_int_equal(done.status, MUSTER_OK);
        rounds[done.tag] = done.object;
    }
    for (int i = 0; i < 3; i++) assert_int_equal(info_of(rounds[i]).number, 2);
    for (int i = 0; i < 2; i++) assert_int_equal(info_of(rounds[i]).rank, info_of(old[i]).rank);
    assert_int_equal(info_of(rounds[2]).rank, 2); /* by name it would be 0 */
    muster_store_release(view);
    muster_queue_release(queue);
    for (int i = 0; i < 2; i++) muster_round_release(old[i]);
    release_all(who, rounds, 3);
    tear_down(&f);
}

static void test_a_death_is_told_and_a_spare_steps_in(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")};
    muster_round *rounds[3];
    join_all(&f, who, rounds, 2);
    begin(&f, who[2], MUSTER_RENDEZVOUS_JOIN, 2);
    while (state_of(who[0]).spares != 1) { /* told by the leader; nothing is said to the host */
        muster_rendezvous_event none;
        assert_int_not_equal(muster_rendezvous_next_event(who[2], 20 * second, &none), MUSTER_TIMEOUT);
        if (state_of(who[2]).spares == 1) break;
    }
    assert_int_equal(state_of(who[2]).waiting, 0);
    const uint32_t rank = info_of(rounds[1]).rank;
    muster_rendezvous_release(who[1]); /* as if it died: it has not left */
    const muster_rendezvous_event dead = event_of(who[0], MUSTER_RENDEZVOUS_DEAD);
    assert_int_equal(dead.rank, rank);
    assert_int_equal(dead.round, 1);
    assert_int_equal(event_of(who[0], MUSTER_RENDEZVOUS_WAITING).count, 1);
    begin(&f, who[0], MUSTER_RENDEZVOUS_JOIN, 0);
    for (int i = 0; i < 2; i++) {
        muster_round *const round = ended(&f, UINT64_MAX, MUSTER_OK);
        assert_int_equal(info_of(round).number, 2);
        assert_int_equal(info_of(round).world, 2);
        muster_round_release(round);
    }
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    muster_rendezvous_release(who[0]);
    muster_rendezvous_release(who[2]);
    tear_down(&f);
}

static void test_an_abort_ends_the_round_for_all(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[2] = {member(&f, &run, "a"), member(&f, &run, "b")};
    muster_round *rounds[2], *next[2];
    muster_error error;
    join_all(&f, who, rounds, 2);
    begin(&f, who[0], MUSTER_RENDEZVOUS_EXIT, 5);
    assert_int_equal(muster_rendezvous_abort(who[1], "no memory", 9, 10 * second, &error), MUSTER_OK);
    assert_null(ended(&f, 5, MUSTER_E_STALE));
    for (int i = 0; i < 2; i++) {
        const muster_rendezvous_event event = event_of(who[i], MUSTER_RENDEZVOUS_ABORTED);
        assert_int_equal(event.round, 1);
        assert_string_equal(event.text, "aborted by b: no memory");
        muster_store *view = store_of(rounds[i]);
        const muster_store_op read = op(MUSTER_STORE_READ, "x");
        assert_int_equal(muster_store_do(view, &read, 1, second, NULL, &error), MUSTER_E_STALE);
        assert_non_null(strstr(error.message, "round 1 is over: aborted by b: no memory"));
        muster_store_release(view);
    }
    assert_int_equal(muster_rendezvous_abort(who[1], NULL, 0, 10 * second, &error), MUSTER_E_STALE);
    join_all(&f, who, next, 2);
    assert_int_equal(info_of(next[0]).number, 2);
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    release_all(who, next, 2);
    tear_down(&f);
}

static void test_an_abort_does_not_wait_for_who_hangs(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 3);
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")};
    muster_round *rounds[3], *next[2];
    join_all(&f, who, rounds, 2);
    assert_int_equal(muster_rendezvous_abort(who[0], NULL, 0, 10 * second, NULL), MUSTER_OK);
    /* b hangs: it is still there, and does nothing */
    muster_rendezvous *others[2] = {who[0], who[2]};
    join_all(&f, others, next, 2);
    assert_int_equal(info_of(next[0]).number, 2);
    assert_int_equal(info_of(next[0]).world, 2);
    assert_string_equal(event_of(who[1], MUSTER_RENDEZVOUS_ABORTED).text, "aborted by a");
    for (int i = 0; i < 2; i++) {
        muster_round_release(rounds[i]);
        muster_round_release(next[i]);
    }
    release_all(who, NULL, 3);
    tear_down(&f);
}

static void test_a_closed_run_says_why_and_opens_only_when_asked_to(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a"), *b = member(&f, &run, "b");
    muster_error error;
    begin(&f, a, MUSTER_RENDEZVOUS_JOIN, 1);
    event_of(a, MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_rendezvous_close(b, "all done", 8, 10 * second, &error), MUSTER_OK); /* it is not in */
    assert_int_equal(muster_rendezvous_close(b, "again", 5, 10 * second, &error), MUSTER_OK);
    assert_null(ended(&f, 1, MUSTER_E_CLOSED));
    assert_string_equal(event_of(a, MUSTER_RENDEZVOUS_CLOSED).text, "closed by b: all done");
    muster_round *none;
    assert_int_equal(muster_rendezvous_join(b, 10 * second, &none, &error), MUSTER_E_CLOSED);
    assert_string_equal(error.message, "rendezvous \"job\": join: closed by b: all done");
    assert_true(state_of(b).flags & MUSTER_RENDEZVOUS_IS_CLOSED);
    muster_rendezvous_release(a);
    muster_rendezvous_release(b);
    a = member(&f, &run, "a"); /* still closed */
    assert_int_equal(muster_rendezvous_join(a, 10 * second, &none, &error), MUSTER_E_CLOSED);
    muster_rendezvous_release(a);
    run.flags = MUSTER_RENDEZVOUS_REOPEN;
    run.max = 3;
    a = member(&f, &run, "a");
    b = member(&f, &run, "b");
    muster_rendezvous *who[2] = {a, b};
    muster_round *rounds[2];
    join_all(&f, who, rounds, 2);
    run.max = 4;
    muster_rendezvous *c;
    assert_int_equal(muster_rendezvous_open(f.context, &run, second, &c, &error), MUSTER_E_BUSY);
    release_all(who, rounds, 2);
    tear_down(&f);
}

/* Where a member serves the store the next round needs promises of those of the last one: not of those who are waited
 * for no longer, because somebody has opened the run anew. */
static void test_a_run_opens_anew_where_a_member_serves_the_store(void **state) {
    (void)state;
    if (!over_tcp) return;
    fixture f = set_up(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(probe, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(probe, (struct sockaddr *)&address, &size), 0);
    close(probe);
    char url[64], serves[80];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", ntohs(address.sin_port));
    snprintf(serves, sizeof serves, "%s?host=yes", url);
    muster_store *host;
    muster_error error;
    if (muster_store_open(f.context, serves, strlen(serves), NULL, 10 * second, &host, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    muster_rendezvous_config run = run_of(&f, 2, 3);
    run.store = NULL;
    run.url = url;
    run.url_bytes = strlen(url);
    run.min = 3;
    muster_rendezvous *who[3] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c")}, *d;
    muster_round *rounds[3];
    join_all(&f, who, rounds, 3);
    assert_int_equal(muster_rendezvous_close(who[0], NULL, 0, 10 * second, &error), MUSTER_OK);
    release_all(who, rounds, 3); /* without a leave */
    run.min = 2;
    run.flags = MUSTER_RENDEZVOUS_REOPEN;
    muster_status status;
    const int64_t begin = now();
    do status = muster_rendezvous_open(f.context, &run, 10 * second, &d, &error);
    while (status == MUSTER_E_BUSY && now() - begin < 20 * second); /* until the store has heard that they are gone */
    if (status != MUSTER_OK) fail_msg("%s", error.message);
    muster_rendezvous *next[2] = {d, member(&f, &run, "e")};
    join_all(&f, next, rounds, 2);
    assert_int_equal(info_of(rounds[0]).number, 2);
    release_all(next, rounds, 2);
    muster_store_release(host);
    tear_down(&f);
}

static void test_a_run_has_one_set_of_parameters(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 2, 4);
    muster_rendezvous *a = member(&f, &run, "a"), *b;
    muster_error error;
    run.min = 1;
    run.last_call_ns = 1500 * ms;
    assert_int_equal(muster_rendezvous_open(f.context, &run, second, &b, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "rendezvous \"job\": the run has min 2, max 4, no last call; here min 1, max 4, "
                                       "last call 1.500 s");
    run.min = 5;
    assert_int_equal(muster_rendezvous_open(f.context, &run, second, &b, &error), MUSTER_E_ARG);
    assert_string_equal(error.message, "muster_rendezvous_config: min 5 is above max 4");
    run.run_id = "job2";
    run.run_id_bytes = 4;
    run.min = 1;
    b = member(&f, &run, "b");
    muster_rendezvous_release(a);
    muster_rendezvous_release(b);
    tear_down(&f);
}

static void *cancel_soon(void *who) {
    event_of(who, MUSTER_RENDEZVOUS_JOINED);
    muster_rendezvous_cancel(who);
    return NULL;
}

static void test_a_join_in_vain_says_what_is_missing_and_takes_nobody_along(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a"), *b = member(&f, &run, "b"), *c = member(&f, &run, "c");
    muster_round *none, *rounds[2];
    muster_error error;
    assert_int_equal(muster_rendezvous_join(a, 100 * ms, &none, &error), MUSTER_TIMEOUT);
    assert_null(none);
    assert_non_null(strstr(error.message, "rendezvous \"job\": join: 1 of at least 2 are there after "));
    pthread_t thread;
    muster_rendezvous_event old;
    while (muster_rendezvous_next_event(a, 0, &old) == MUSTER_OK) {
    }
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, a), 0);
    assert_int_equal(muster_rendezvous_join(a, -1, &none, &error), MUSTER_E_CANCELED);
    pthread_join(thread, NULL);
    /* a does not count any more */
    begin(&f, b, MUSTER_RENDEZVOUS_JOIN, 0);
    event_of(b, MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_rendezvous_begin(b, MUSTER_RENDEZVOUS_JOIN, NULL, 0, second, f.queue, 9, NULL), MUSTER_OK);
    assert_null(ended(&f, 9, MUSTER_E_BUSY));
    begin(&f, c, MUSTER_RENDEZVOUS_JOIN, 1);
    for (int i = 0; i < 2; i++) rounds[i] = ended(&f, UINT64_MAX, MUSTER_OK);
    assert_int_equal(info_of(rounds[0]).world, 2);
    assert_int_equal(state_of(a).phase, MUSTER_RENDEZVOUS_OUT);
    for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    muster_rendezvous_release(a);
    muster_rendezvous_release(b);
    muster_rendezvous_release(c);
    tear_down(&f);
}

static void test_the_exit_is_reached_together_but_not_by_the_dead(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 4, 4);
    muster_rendezvous *who[4] = {member(&f, &run, "a"), member(&f, &run, "b"), member(&f, &run, "c"),
                                 member(&f, &run, "d")};
    muster_round *rounds[4];
    muster_error error;
    join_all(&f, who, rounds, 4);
    assert_int_equal(muster_rendezvous_exit(who[0], 100 * ms, &error), MUSTER_TIMEOUT);
    assert_non_null(strstr(error.message, " of 4 are there after "));
    begin(&f, who[0], MUSTER_RENDEZVOUS_EXIT, 0);
    begin(&f, who[1], MUSTER_RENDEZVOUS_EXIT, 1);
    muster_rendezvous_release(who[3]);
    assert_int_equal(muster_rendezvous_leave(who[2], 10 * second, &error), MUSTER_OK);
    ended(&f, UINT64_MAX, MUSTER_OK);
    ended(&f, UINT64_MAX, MUSTER_OK);
    assert_int_equal(muster_rendezvous_exit(who[2], second, &error), MUSTER_E_STALE);
    for (int i = 0; i < 4; i++) muster_round_release(rounds[i]);
    release_all(who, NULL, 3);
    tear_down(&f);
}

static void test_the_leader_may_go_at_any_time(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 8);
    muster_rendezvous *who[8];
    muster_round *rounds[8];
    char name[16];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "n%d", i);
        who[i] = member(&f, &run, name);
    }
    uint64_t number = 0;
    for (uint32_t left = 8; left > 2; left--) {
        uint32_t leader = 0;
        muster_rendezvous_event event;
        for (uint32_t i = 0; i < left; i++) begin(&f, who[i], MUSTER_RENDEZVOUS_JOIN, i);
        for (uint32_t i = 0; i < left; i++) {
            muster_completion done;
            assert_int_equal(muster_queue_next(f.queue, 20 * second, &done, NULL), MUSTER_OK);
            assert_int_equal(done.status, MUSTER_OK);
            rounds[done.tag] = done.object;
            if (info_of(done.object).world == left) continue;
            /* two were there before the others: again */
            muster_round_release(done.object);
            begin(&f, who[done.tag], MUSTER_RENDEZVOUS_JOIN, done.tag);
            i--;
        }
        assert_true(info_of(rounds[0]).number > number);
        number = info_of(rounds[0]).number;
        for (uint32_t i = 0; i < left; i++)
            if (state_of(who[i]).flags & MUSTER_RENDEZVOUS_LEADS) leader = i;
        for (uint32_t i = 0; i < left; i++) muster_round_release(rounds[i]);
        const uint32_t other = leader == 0 ? 1 : 0;
        while (muster_rendezvous_next_event(who[other], 0, &event) == MUSTER_OK) {
        }
        /* Either is told by the next leader. */
        if (left % 2 == 0) {
            muster_rendezvous_release(who[leader]);
            event = event_of(who[other], MUSTER_RENDEZVOUS_DEAD);
            if (elsewhere == NULL) assert_non_null(strstr(event.text, "it was released and had not left"));
        } else {
            assert_int_equal(muster_rendezvous_leave(who[leader], 20 * second, NULL), MUSTER_OK);
            do assert_int_equal(muster_rendezvous_next_event(who[other], 20 * second, &event), MUSTER_OK);
            while (event.kind != MUSTER_RENDEZVOUS_LEFT && event.kind != MUSTER_RENDEZVOUS_DEAD);
            assert_int_equal(event.kind, MUSTER_RENDEZVOUS_LEFT);
            muster_rendezvous_release(who[leader]);
        }
        assert_int_equal(event.count, 1);
        who[leader] = who[left - 1];
    }
    release_all(who, NULL, 2);
    tear_down(&f);
}

/* Keys, counters and queues of rounds that are over are not kept: after 200 of them there is what few of them need. */
static void test_rounds_that_are_over_leave_nothing(void **state) {
    (void)state;
    enum { rounds_count = 200, keys = 8 };
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *who[2] = {member(&f, &run, "a"), member(&f, &run, "b")};
    muster_round *rounds[2];
    const bool queues = (muster_store_capabilities(f.store) & MUSTER_STORE_CAN_QUEUE) != 0;
    static const char value[1000];
    char names[rounds_count][64], key[keys][8];
    for (int number = 1; number <= rounds_count; number++) {
        join_all(&f, who, rounds, 2);
        assert_int_equal(info_of(rounds[0]).number, number);
        muster_store *view = store_of(rounds[number % 2]);
        muster_store_op ops[keys + 3];
        for (int i = 0; i < keys; i++) {
            snprintf(key[i], sizeof key[i], "k%d", i);
            ops[i] = op(MUSTER_STORE_SET, key[i]);
            ops[i].value = value;
            ops[i].value_bytes = sizeof value;
        }
        ops[keys] = op(MUSTER_STORE_ADD, "counter");
        ops[keys].number = 1;
        for (int i = 1; i <= 2; i++) {
            ops[keys + i] = op(MUSTER_STORE_PUSH, i == 1 ? "queue" : "queue of others");
            ops[keys + i].value = value;
            ops[keys + i].value_bytes = sizeof value;
        }
        assert_int_equal(muster_store_do(view, ops, queues ? keys + 3 : keys + 1, 20 * second, NULL, NULL), MUSTER_OK);
        snprintf(names[number - 1], sizeof names[0], "muster/rdzv/job/r/%016x/v/queue", number);
        muster_store_release(view);
        for (int i = 0; i < 2; i++) muster_round_release(rounds[i]);
    }
    /* The last sweep may still be under way: look again with each change. */
    muster_store_op look[rounds_count], watch = op(MUSTER_STORE_WATCH, "muster/rdzv/job/");
    look[0] = op(MUSTER_STORE_COUNT, "muster/rdzv/job/r/");
    for (int i = 1; i < rounds_count; i++) look[i] = op(MUSTER_STORE_LENGTH, names[i - 1]);
    for (;;) {
        muster_store_result *result;
        muster_store_entry entry;
        assert_int_equal(muster_store_do(f.store, look, queues ? rounds_count : 1, 20 * second, &result, NULL),
                         MUSTER_OK);
        assert_int_equal(muster_store_result_entry(result, 0, &entry), MUSTER_OK);
        const int64_t left = entry.number;
        int64_t values = 0;
        for (uint32_t i = 1; queues && i < rounds_count; i++) {
            assert_int_equal(muster_store_result_entry(result, i, &entry), MUSTER_OK);
            values += entry.number;
        }
        watch.version = muster_store_result_revision(result);
        muster_store_result_release(result);
        if (left == keys + 2 && values == 0) break; /* with the page of the table, all of the round under way */
        if (muster_store_do(f.store, &watch, 1, 20 * second, NULL, NULL) != MUSTER_OK)
            fail_msg("%lld keys, %lld values of queues are left", (long long)left, (long long)values);
    }
    if (f.server != NULL) {
        muster_store_server_stats stats;
        assert_int_equal(muster_store_server_get_stats(f.server, &stats), MUSTER_OK);
        assert_true(stats.bytes < 30 * sizeof value);
    }
    release_all(who, NULL, 2);
    tear_down(&f);
}

static void test_many_meet_at_once(void **state) {
    (void)state;
    enum { count = 300 }; /* more than one request can carry */
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, count, count);
    static muster_rendezvous *who[count];
    static muster_round *rounds[count];
    static unsigned char seen[count];
    char name[16];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "node%d", i);
        who[i] = member(&f, &run, name);
    }
    for (int round = 1; round <= 2; round++) {
        join_all(&f, who, rounds, count);
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < count; i++) {
            const muster_round_info info = info_of(rounds[i]);
            assert_int_equal(info.number, round);
            assert_int_equal(info.world, count);
            assert_int_equal(info.rank, i); /* natural order, then kept */
            assert_memory_equal(info.digest, info_of(rounds[0]).digest, sizeof info.digest);
        }
        muster_round_member_info last;
        assert_int_equal(muster_round_member(rounds[0], count - 1, second, &last, NULL), MUSTER_OK);
        assert_memory_equal(last.address, "node299", 7);
        for (int i = 0; i < count; i++) muster_round_release(rounds[i]);
    }
    release_all(who, NULL, count);
    tear_down(&f);
}

static void test_a_closing_context_ends_what_waits(void **state) {
    (void)state;
    fixture f = set_up(0);
    const muster_rendezvous_config run = run_of(&f, 2, 2);
    muster_rendezvous *a = member(&f, &run, "a");
    begin(&f, a, MUSTER_RENDEZVOUS_JOIN, 1);
    event_of(a, MUSTER_RENDEZVOUS_JOINED);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    assert_null(ended(&f, 1, MUSTER_E_CLOSED));
    muster_rendezvous_event event;
    muster_status status;
    do status = muster_rendezvous_next_event(a, -1, &event);
    while (status == MUSTER_OK);
    assert_int_equal(status, MUSTER_E_CLOSED);
    assert_int_equal(muster_rendezvous_leave(a, second, NULL), MUSTER_E_CLOSED);
    muster_rendezvous_release(a);
    tear_down(&f);
}

static void test_a_queue_tells_of_events(void **state) {
    (void)state;
    fixture f = set_up(0);
    muster_rendezvous_config run = run_of(&f, 1, 1);
    run.queue = f.queue;
    run.tag = 77;
    muster_rendezvous *a = member(&f, &run, "a");
    muster_round *round;
    assert_int_equal(muster_rendezvous_join(a, 10 * second, &round, NULL), MUSTER_OK);
    muster_completion ready;
    assert_int_equal(muster_queue_next(f.queue, 10 * second, &ready, NULL), MUSTER_OK);
    assert_int_equal(ready.kind, MUSTER_EVENT_READY);
    assert_int_equal(ready.tag, 77);
    event_of(a, MUSTER_RENDEZVOUS_COMPLETE);
    muster_round_release(round);
    assert_int_equal(muster_rendezvous_join(a, 10 * second, &round, NULL), MUSTER_OK);
    event_of(a, MUSTER_RENDEZVOUS_COMPLETE);
    muster_round_release(round);
    muster_rendezvous_release(a); /* what the queue would have told goes with it */
    assert_int_equal(muster_queue_next(f.queue, 0, &ready, NULL), MUSTER_AGAIN);
    tear_down(&f);
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_meet),
        cmocka_unit_test(test_two_meet_where_the_host_drives_the_engine),
        cmocka_unit_test(test_the_last_call_waits_for_others_but_not_when_all_are_there),
        cmocka_unit_test(test_who_comes_late_waits_is_seen_and_gets_in_with_the_next_round),
        cmocka_unit_test(test_a_death_is_told_and_a_spare_steps_in),
        cmocka_unit_test(test_an_abort_ends_the_round_for_all),
        cmocka_unit_test(test_an_abort_does_not_wait_for_who_hangs),
        cmocka_unit_test(test_a_closed_run_says_why_and_opens_only_when_asked_to),
        cmocka_unit_test(test_a_run_opens_anew_where_a_member_serves_the_store),
        cmocka_unit_test(test_a_run_has_one_set_of_parameters),
        cmocka_unit_test(test_a_join_in_vain_says_what_is_missing_and_takes_nobody_along),
        cmocka_unit_test(test_the_exit_is_reached_together_but_not_by_the_dead),
        cmocka_unit_test(test_the_leader_may_go_at_any_time),
        cmocka_unit_test(test_rounds_that_are_over_leave_nothing),
        cmocka_unit_test(test_many_meet_at_once),
        cmocka_unit_test(test_a_closing_context_ends_what_waits),
        cmocka_unit_test(test_a_queue_tells_of_events),
    };
    if (count > 1) {
        elsewhere = arguments[1];
        return cmocka_run_group_tests_name(elsewhere, tests, NULL, NULL);
    }
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        over_tcp = i == 1;
        failed += cmocka_run_group_tests_name(over_tcp ? "over tcp" : "in memory", tests, NULL, NULL);
    }
    return failed;
}
