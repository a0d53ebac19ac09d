// SPDX-License-Identifier: MIT
// ctest: quick timeout=60
// A worker that begins to come in, without a wait: mostly one that comes by itself, in the process of its master.
#include "cluster_master.h"

#include <muster/store_server.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <time.h>

static const char secret[] = "a secret that all of them know";

typedef struct place {
    fixture master; // first: what the others of the fixture use
    muster_context *context;
    muster_queue *queue;
    muster_cluster *worker;
    muster_store_server *server;
    int silent; // a socket whose connections are never accepted
    char address[1100];
} place;

static muster_context *context_of(const char *with_secret) {
    muster_context_config config;
    muster_context *context = NULL;
    muster_config_init(&config, sizeof config);
    config.secret = with_secret;
    config.secret_bytes = strlen(with_secret);
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    return context;
}

static int set_up_place(void **state) {
    static place p;
    memset(&p, 0, sizeof p);
    p.silent = -1;
    p.master.context = context_of(secret);
    p.context = context_of(secret);
    assert_int_equal(muster_queue_create(p.context, NULL, &p.queue, NULL), MUSTER_OK);
    *state = &p;
    return 0;
}

static int tear_down_place(void **state) {
    place *p = *state;
    muster_cluster_close(p->worker, 0);
    muster_cluster_release(p->worker);
    muster_cluster_close(p->master.cluster, second);
    muster_cluster_release(p->master.cluster);
    muster_queue_release(p->queue);
    assert_int_equal(muster_context_close(p->context, 5 * second), MUSTER_OK);
    muster_context_release(p->context);
    muster_store_server_close(p->server, second);
    muster_store_server_release(p->server);
    assert_int_equal(muster_context_close(p->master.context, 5 * second), MUSTER_OK);
    muster_context_release(p->master.context);
    if (p->silent >= 0) close(p->silent);
    assert_no_children();
    return 0;
}

static void offer(place *p, uint32_t count) {
    open_with(&p->master, 0, NULL, 0);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(p->master.cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    snprintf(p->address, sizeof p->address, "%s", info.address);
    if (count == 0) return;
    muster_error error = {0};
    const muster_launch launch = {.struct_size = sizeof launch, .manager = "elastic", .count = count};
    if (muster_cluster_add(p->master.cluster, &launch, NULL, &error) != MUSTER_OK) fail_msg("%s", error.message);
}

static muster_worker_config at_master(place *p) {
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.master = p->address;
    config.queue = p->queue;
    config.tag = 7;
    return config;
}

static void begin_as(place *p, const muster_worker_config *config, int64_t timeout_ns) {
    muster_error error = {0};
    if (muster_worker_start_begin(p->context, config, timeout_ns, &p->worker, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
}

static muster_cluster_event heard(place *p) {
    muster_cluster_event event;
    muster_completion entry;
    while (muster_cluster_next_event(p->worker, 0, &event) == MUSTER_AGAIN) {
        assert_int_equal(muster_queue_next(p->queue, 30 * second, &entry, NULL), MUSTER_OK);
        assert_int_equal(entry.tag, 7);
    }
    return event;
}

// That is the only event, and the cluster is over.
static muster_cluster_event assert_failed(place *p, muster_status status) {
    const muster_cluster_event event = heard(p);
    if (event.kind != MUSTER_CLUSTER_FAILED || event.status != status)
        fail_msg("event %u, %s: %s", event.kind, muster_status_name(event.status), event.text);
    assert_true(event.text_bytes > 0);
    muster_cluster_event none;
    assert_int_equal(muster_cluster_next_event(p->worker, 30 * second, &none), MUSTER_E_CLOSED);
    assert_int_equal(muster_cluster_self(p->worker), UINT32_MAX);
    assert_int_equal(muster_cluster_close(p->worker, -1), MUSTER_OK);
    muster_cluster_release(p->worker);
    p->worker = NULL;
    return event;
}

static void serve_store(place *p) {
    muster_error error = {0};
    const char listen[] = "tcp://127.0.0.1:0";
    if (muster_store_server_open(p->master.context, listen, strlen(listen), NULL, &p->server, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    size_t size = 0;
    assert_int_equal(muster_store_server_address(p->server, p->address, sizeof p->address, &size), MUSTER_OK);
}

// The system takes the connection, and that is all.
static void serve_silence(place *p) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    p->silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->silent, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(p->silent, 8), 0);
    assert_int_equal(getsockname(p->silent, (struct sockaddr *)&at, &size), 0);
    snprintf(p->address, sizeof p->address, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
}

static void test_that_it_is_in_is_the_first_it_hears(void **state) {
    place *p = *state;
    offer(p, 1);
    const muster_worker_config config = at_master(p);
    begin_as(p, &config, 20 * second);
    const muster_cluster_event event = heard(p);
    assert_int_equal(event.kind, MUSTER_CLUSTER_JOINED);
    assert_int_equal(event.status, MUSTER_OK);
    assert_int_equal(event.member, 1);
    assert_int_equal(muster_cluster_self(p->worker), 1);
    assert_int_equal(await(&p->master, MUSTER_CLUSTER_JOINED).member, 1);
    muster_stream *stream = NULL;
    assert_int_equal(muster_cluster_dial(p->worker, 0, "there", 5, 20 * second, &stream, NULL), MUSTER_OK);
    const muster_cluster_event come = await(&p->master, MUSTER_CLUSTER_STREAM);
    assert_string_equal(come.label, "there");
    hang_up(come.stream);
    hang_up(stream);
    assert_int_equal(muster_cluster_close(p->worker, -1), MUSTER_OK);
    assert_int_equal(await(&p->master, MUSTER_CLUSTER_REMOVED).member, 1);
}

static void test_before_it_is_in_it_knows_nobody(void **state) {
    place *p = *state;
    serve_store(p); // in which no master ever comes
    muster_worker_config config = at_master(p);
    config.master = NULL;
    config.store = p->address;
    begin_as(p, &config, -1);
    muster_error error = {0};
    muster_stream *stream = NULL;
    muster_member_info info;
    const uint32_t other = 1;
    assert_int_equal(muster_cluster_self(p->worker), UINT32_MAX);
    assert_int_equal(muster_cluster_dial(p->worker, 0, NULL, 0, second, &stream, &error), MUSTER_E_NOT_FOUND);
    assert_says(error.message, "not joined yet");
    assert_int_equal(muster_cluster_dial_begin(p->worker, 0, NULL, 0, second, p->queue, 8, &error), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_cluster_broadcast(p->worker, &other, 1, NULL, 0, "x", 1, second, NULL, &error),
                     MUSTER_E_NOT_FOUND);
    assert_int_equal(
        muster_cluster_broadcast_begin(p->worker, &other, 1, NULL, 0, "x", 1, second, NULL, p->queue, 8, &error),
        MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_cluster_get_member(p->worker, 0, &info), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_cluster_get_member(p->worker, UINT32_MAX, &info), MUSTER_E_NOT_FOUND);
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(p->worker, 0, &event), MUSTER_AGAIN);
    assert_int_equal(muster_cluster_close(p->worker, -1), MUSTER_OK); // it does not wait for a worker that never joins
    assert_int_equal(muster_cluster_next_event(p->worker, -1, &event), MUSTER_E_CLOSED);
}

static void test_it_is_told_why_it_is_not_in(void **state) {
    place *p = *state;
    muster_worker_config config = at_master(p);
    snprintf(p->address, sizeof p->address, "tcp://127.0.0.1:1");
    begin_as(p, &config, 20 * second);
    assert_int_equal(assert_failed(p, MUSTER_E_UNREACHABLE).member, UINT32_MAX);
    offer(p, 0);
    begin_as(p, &config, 20 * second);
    assert_failed(p, MUSTER_E_STALE); // a worker that was not launched is refused
    muster_context *const own = p->context;
    muster_queue *const queue = p->queue;
    p->context = context_of("another secret than theirs");
    assert_int_equal(muster_queue_create(p->context, NULL, &p->queue, NULL), MUSTER_OK);
    config.queue = p->queue;
    begin_as(p, &config, 20 * second);
    assert_failed(p, MUSTER_E_AUTH);
    muster_queue_release(p->queue);
    muster_context_release(p->context);
    p->context = own;
    p->queue = queue;
}

static void test_it_is_not_in_when_the_time_is_over(void **state) {
    place *p = *state;
    serve_silence(p);
    muster_worker_config config = at_master(p);
    begin_as(p, &config, 100 * ms);
    assert_says(assert_failed(p, MUSTER_TIMEOUT).text, "not in time");
    serve_store(p);
    config.master = NULL;
    config.store = p->address;
    begin_as(p, &config, 2 * second); // in which the store is opened, too
    assert_says(assert_failed(p, MUSTER_TIMEOUT).text, "no master has come");
}

static void test_it_may_be_closed_while_nobody_answers(void **state) {
    place *p = *state;
    serve_silence(p);
    const muster_worker_config config = at_master(p);
    begin_as(p, &config, -1);
    assert_int_equal(muster_cluster_close(p->worker, -1), MUSTER_OK);
    muster_cluster_release(p->worker);
    begin_as(p, &config, -1); // nothing is left of the one before; this one goes with its last reference
    muster_cluster_release(p->worker);
    begin_as(p, &config, -1);
    assert_int_equal(muster_context_close(p->context, 5 * second), MUSTER_OK);
    muster_cluster_event event;
    assert_int_equal(muster_cluster_next_event(p->worker, 30 * second, &event), MUSTER_E_CLOSED);
}

// A store that takes connections and says nothing holds up neither the call that begins nor the close.
static void test_a_silent_store_is_not_waited_for(void **state) {
    place *p = *state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(silent, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(silent, 16), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&at, &size), 0);
    char url[64];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    muster_worker_config config = at_master(p);
    config.master = NULL;
    config.store = url;
    for (int closed = 0; closed < 2; closed++) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        begin_as(p, &config, closed ? 60 * second : 3 * second);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (after.tv_sec - before.tv_sec >= 2) fail_msg("the call that begins took more than a second");
        if (!closed) {
            assert_failed(p, MUSTER_TIMEOUT);
            continue;
        }
        assert_int_equal(muster_cluster_close(p->worker, -1), MUSTER_OK);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (after.tv_sec - before.tv_sec >= 20) fail_msg("the close waited for the store");
    }
    close(silent);
}

static void test_what_makes_no_sense_is_refused_at_once(void **state) {
    place *p = *state;
    snprintf(p->address, sizeof p->address, "nothing://here");
    muster_worker_config config = at_master(p);
    muster_error error = {0};
    muster_cluster *cluster = NULL;
    assert_int_equal(muster_worker_start_begin(NULL, &config, second, &cluster, &error), MUSTER_E_ARG);
    assert_int_equal(muster_worker_start_begin(p->context, &config, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_worker_start_begin(p->context, &config, 0, &cluster, &error), MUSTER_E_ARG);
    assert_says(error.message, "timeout_ns");
    config.flags = 1u << 30;
    assert_int_equal(muster_worker_start_begin(p->context, &config, second, &cluster, &error), MUSTER_E_ARG);
    config.flags = 0;
    config.listen = "nothing://here";
    assert_int_equal(muster_worker_start_begin(p->context, &config, second, &cluster, &error), MUSTER_E_NOT_FOUND);
    config.master = NULL;
    config.listen = NULL;
    assert_int_equal(muster_worker_start_begin(p->context, &config, second, &cluster, &error), MUSTER_E_ARG);
    assert_says(error.message, "ticket");
    assert_null(cluster);
    config.master = p->address;
    begin_as(p, &config, second);
    assert_failed(p, MUSTER_E_NOT_FOUND);
}

// A launched worker: its first attempt fails, it closes the second, and joins by the third.
static int begin_again(void) {
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    if (muster_worker_context(NULL, 0, &context, &error) != MUSTER_OK) return 40;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER;
    muster_cluster_event event;
    if (muster_worker_start_begin(context, &config, 1, &cluster, &error) != MUSTER_OK) return 41;
    if (muster_cluster_next_event(cluster, 20 * second, &event) != MUSTER_OK) return 42;
    if (event.kind != MUSTER_CLUSTER_FAILED || event.status != MUSTER_TIMEOUT) return 43;
    muster_cluster_release(cluster);
    if (muster_worker_start(context, &config, 1, &cluster, &error) != MUSTER_TIMEOUT || cluster) return 44;
    if (muster_worker_start_begin(context, &config, 20 * second, &cluster, &error) != MUSTER_OK) return 45;
    if (muster_worker_start_begin(context, &config, second, NULL, &error) != MUSTER_E_ARG) return 46;
    muster_cluster *second_one = NULL;
    if (muster_worker_start_begin(context, &config, second, &second_one, &error) != MUSTER_E_EXISTS) return 47;
    if (muster_cluster_next_event(cluster, 20 * second, &event) != MUSTER_OK) return 48;
    if (event.kind != MUSTER_CLUSTER_JOINED || event.member != muster_cluster_self(cluster)) return 49;
    return work_in(context, cluster, 0);
}

static void test_one_that_was_launched_may_begin_again(void **state) {
    place *p = *state;
    open_with(&p->master, 0, NULL, 0);
    const char *const words[] = {self_path, "again", NULL};
    const muster_launch like = {.struct_size = sizeof like, .argv = words};
    add_like(&p->master, &like, "", 3);
    await_joined(&p->master, 3);
    assert_talks(&p->master, 1, 3);
    assert_string_equal(ask(&p->master, 2, "self"), "2");
}

#define in_place(test) cmocka_unit_test_setup_teardown(test, set_up_place, tear_down_place)

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "again") == 0) return begin_again();
    find_self();
    const struct CMUnitTest tests[] = {
        in_place(test_that_it_is_in_is_the_first_it_hears),
        in_place(test_before_it_is_in_it_knows_nobody),
        in_place(test_it_is_told_why_it_is_not_in),
        in_place(test_it_is_not_in_when_the_time_is_over),
        in_place(test_a_silent_store_is_not_waited_for),
        in_place(test_it_may_be_closed_while_nobody_answers),
        in_place(test_what_makes_no_sense_is_refused_at_once),
        in_place(test_one_that_was_launched_may_begin_again),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
