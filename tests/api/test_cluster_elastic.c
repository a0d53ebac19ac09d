// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Workers that come by themselves: by the master's address, or by a store in which it is found.
#include "cluster_master.h"

#include <muster/store_server.h>
#include <poll.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>

static const char secret[] = "a secret that all of them know";
enum { most = 8 };

typedef struct place {
    fixture cluster; // first: what the others of the fixture use
    muster_store_server *server;
    char url[256], address[1100];
    pid_t children[most];
    int count;
} place;

static int set_up_place(void **state) {
    static place p;
    memset(&p, 0, sizeof p);
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = secret;
    config.secret_bytes = strlen(secret);
    assert_int_equal(muster_context_create(&config, &p.cluster.context, NULL), MUSTER_OK);
    *state = &p;
    return 0;
}

// Each joined worker leaves on request, or is killed by the test.
static int tear_down_place(void **state) {
    place *p = *state;
    muster_cluster_close(p->cluster.cluster, second);
    for (int i = 0; i < p->count; i++) assert_int_equal(waitpid(p->children[i], NULL, 0), p->children[i]);
    muster_cluster_release(p->cluster.cluster);
    muster_store_server_close(p->server, second);
    muster_store_server_release(p->server);
    assert_int_equal(muster_context_close(p->cluster.context, 5 * second), MUSTER_OK);
    muster_context_release(p->cluster.context);
    return 0;
}

static muster_status offer(place *p, uint32_t count, uint32_t flags, const char *options, muster_error *error) {
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.manager = "elastic";
    launch.flags = flags;
    launch.count = count;
    launch.options = options;
    uint32_t first = 99;
    const muster_status status = muster_cluster_add(p->cluster.cluster, &launch, &first, error);
    if (status == MUSTER_OK) assert_int_equal(first, 0);
    return status;
}

static void open_and_offer(place *p, uint32_t count) {
    open_with(&p->cluster, 0, NULL, 0);
    muster_error error = {0};
    if (offer(p, count, 0, NULL, &error) != MUSTER_OK) fail_msg("%s", error.message);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(p->cluster.cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    snprintf(p->address, sizeof p->address, "%s", info.address);
}

// A program that comes: `how` is "master" or "store".
static pid_t come(place *p, const char *how, const char *where, const char *with_secret) {
    const pid_t child = fork();
    if (child == 0) {
        execl(self_path, self_path, "come", how, where, with_secret, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    if (p->count < most) p->children[p->count++] = child;
    return child;
}

static int exit_code(place *p, pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(p->children[p->count - 1], child);
    p->count--;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int come_in(const char *how, const char *where, const char *with_secret) {
    signal(SIGINT, count_interrupt);
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    muster_context_config settings;
    muster_config_init(&settings, sizeof settings);
    settings.secret = with_secret;
    settings.secret_bytes = strlen(with_secret);
    if (muster_context_create(&settings, &context, &error) != MUSTER_OK) return 40;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER;
    if (strcmp(how, "master") == 0)
        config.master = where;
    else
        config.store = where;
    const muster_status status = muster_worker_start(context, &config, 20 * second, &cluster, &error);
    if (status != MUSTER_OK) {
        fprintf(stderr, "come: %s: %s\n", muster_status_name(status), error.message);
        muster_context_release(context);
        return status == MUSTER_E_AUTH ? 50 : status == MUSTER_E_LIMIT ? 51 : status == MUSTER_E_STALE ? 52 : 41;
    }
    return work_in(context, cluster, 0);
}

static void test_who_comes_is_given_a_number(void **state) {
    place *p = *state;
    open_and_offer(p, 3);
    for (uint32_t i = 1; i <= 2; i++) {
        come(p, "master", p->address, secret);
        const muster_cluster_event event = await(&p->cluster, MUSTER_CLUSTER_JOINED);
        assert_int_equal(event.member, i);
    }
    assert_talks(&p->cluster, 1, 2);
    assert_string_equal(ask(&p->cluster, 2, "self"), "2");
}

// A thread that tries to join again and again, until it is in.
typedef struct newcomer {
    pthread_t thread;
    const char *master;
    atomic_bool *offered;
    sem_t *refused;       // posted at each refusal
    muster_status status; // of the last try
    bool refused_late;    // although it had begun after the offer
} newcomer;

static void *join_again_and_again(void *argument) {
    newcomer *n = argument;
    muster_context_config settings;
    muster_config_init(&settings, sizeof settings);
    settings.secret = secret;
    settings.secret_bytes = strlen(secret);
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    if ((n->status = muster_context_create(&settings, &context, NULL)) != MUSTER_OK) return NULL;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.master = n->master;
    do {
        const bool offered = atomic_load(n->offered);
        n->status = muster_worker_start(context, &config, 20 * second, &cluster, NULL);
        n->refused_late |= offered && n->status == MUSTER_E_STALE;
        if (n->status == MUSTER_E_STALE) sem_post(n->refused);
    } while (n->status == MUSTER_E_STALE);
    muster_cluster_close(cluster, second);
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return NULL;
}

static void test_who_begins_after_the_offer_is_not_refused(void **state) {
    place *p = *state;
    open_with(&p->cluster, 0, NULL, 0);
    for (int round = 0; round < 40; round++) {
        muster_member_info info;
        assert_int_equal(muster_cluster_get_member(p->cluster.cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
        atomic_bool offered = false;
        sem_t refused;
        assert_int_equal(sem_init(&refused, 0, 0), 0);
        newcomer newcomers[3] = {0};
        for (int i = 0; i < 3; i++) {
            newcomers[i].master = info.address;
            newcomers[i].offered = &offered;
            newcomers[i].refused = &refused;
            assert_int_equal(pthread_create(&newcomers[i].thread, NULL, join_again_and_again, &newcomers[i]), 0);
        }
        for (int i = 0; i < 6; i++) assert_int_equal(sem_wait(&refused), 0); // they are in the middle of it
        assert_int_equal(offer(p, 3, 0, NULL, NULL), MUSTER_OK);
        atomic_store(&offered, true);
        for (int i = 0; i < 3; i++) {
            pthread_join(newcomers[i].thread, NULL);
            if (newcomers[i].status != MUSTER_OK) fail_msg("%s", muster_status_name(newcomers[i].status));
            if (newcomers[i].refused_late) fail_msg("round %d: refused after the offer", round);
        }
        sem_destroy(&refused);
        assert_int_equal(muster_cluster_close(p->cluster.cluster, 20 * second), MUSTER_OK);
        muster_cluster_release(p->cluster.cluster);
        open_with(&p->cluster, 0, NULL, 0);
    }
}

static void test_no_more_come_than_are_wanted(void **state) {
    place *p = *state;
    open_and_offer(p, 1);
    come(p, "master", p->address, secret);
    await_joined(&p->cluster, 1);
    assert_int_equal(exit_code(p, come(p, "master", p->address, secret)), 51);
    // A worker that leaves makes room, and a number is not used twice.
    end_worker(&p->cluster, 1, "exit 3");
    assert_int_equal(await(&p->cluster, MUSTER_CLUSTER_DEAD).member, 1);
    come(p, "master", p->address, secret);
    assert_int_equal(await(&p->cluster, MUSTER_CLUSTER_JOINED).member, 2);
    muster_error error = {0};
    assert_int_equal(offer(p, 2, 0, NULL, &error), MUSTER_OK); // and one more
    come(p, "master", p->address, secret);
    assert_int_equal(await(&p->cluster, MUSTER_CLUSTER_JOINED).member, 3);
    assert_talks(&p->cluster, 3, 2);
}

static void test_who_is_not_wanted_or_has_another_secret_is_refused(void **state) {
    place *p = *state;
    open_with(&p->cluster, 0, NULL, 0);
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(p->cluster.cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    assert_int_equal(exit_code(p, come(p, "master", info.address, secret)), 52);
    muster_error error = {0};
    assert_int_equal(offer(p, 1, 0, NULL, &error), MUSTER_OK);
    assert_int_equal(exit_code(p, come(p, "master", info.address, "another secret than theirs")), 50);
}

static void serve_store(place *p) {
    muster_error error = {0};
    const char listen[] = "tcp://127.0.0.1:0";
    if (muster_store_server_open(p->cluster.context, listen, strlen(listen), NULL, &p->server, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    char at[200];
    size_t size = 0;
    assert_int_equal(muster_store_server_address(p->server, at, sizeof at, &size), MUSTER_OK);
    snprintf(p->url, sizeof p->url, "%.*s", (int)size, at);
}

static void test_the_master_is_found_in_a_store_also_by_who_came_before_it(void **state) {
    place *p = *state;
    serve_store(p);
    come(p, "store", p->url, secret); // waits
    open_with(&p->cluster, 0, NULL, 0);
    char options[400];
    snprintf(options, sizeof options, "store=%s", p->url);
    muster_error error = {0};
    if (offer(p, 4, 0, options, &error) != MUSTER_OK) fail_msg("%s", error.message);
    await_joined(&p->cluster, 1);
    come(p, "store", p->url, secret);
    await_joined(&p->cluster, 1);
    assert_talks(&p->cluster, 2, 1);
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * second + time.tv_nsec;
}

// A store that accepts connections, and sends nothing.
static int listen_silently(char *url, size_t size) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 10), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(url, size, "store=tcp://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

// Waits until a client has connected to the silent store; the connection stays open, unanswered, until the process
// ends.
static void await_dial(int silent) {
    struct pollfd waiting = {silent, POLLIN, 0};
    assert_int_equal(poll(&waiting, 1, 20000), 1);
    assert_true(accept(silent, NULL, NULL) >= 0);
}

static void test_add_does_not_wait_for_a_store_that_is_silent(void **state) {
    place *p = *state;
    open_with(&p->cluster, 0, NULL, 0);
    char options[100];
    const int silent = listen_silently(options, sizeof options);
    muster_error error = {0};
    const int64_t before = now();
    assert_int_equal(offer(p, 1, 0, options, &error), MUSTER_OK);
    assert_true(now() - before < second);
    // The cluster goes on meanwhile, and its end does not wait, either.
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(p->cluster.cluster, MUSTER_CLUSTER_MASTER, &info), MUSTER_OK);
    assert_int_equal(muster_cluster_close(p->cluster.cluster, second), MUSTER_OK);
    assert_true(now() - before < 5 * second);
    const muster_cluster_event event = await(&p->cluster, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, UINT32_MAX);
    assert_int_equal(event.status, MUSTER_E_CLOSED);
    close(silent);
}

static void test_a_failure_to_publish_is_an_event_and_the_offer_before_holds(void **state) {
    place *p = *state;
    open_and_offer(p, 1);
    muster_error error = {0};
    assert_int_equal(offer(p, 2, 0, "store=nothing://x", &error), MUSTER_OK);
    const muster_cluster_event event = await(&p->cluster, MUSTER_CLUSTER_FAILED);
    assert_int_equal(event.member, UINT32_MAX);
    assert_int_equal(event.status, MUSTER_E_NOT_FOUND);
    assert_true(event.text_bytes != 0);
    come(p, "master", p->address, secret);
    await_joined(&p->cluster, 1);
    assert_int_equal(exit_code(p, come(p, "master", p->address, secret)), 51); // one, as before
}

static void test_add_begin_completes_when_the_address_is_published(void **state) {
    place *p = *state;
    serve_store(p);
    open_with(&p->cluster, 0, NULL, 0);
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(p->cluster.context, NULL, &queue, NULL), MUSTER_OK);
    char options[400];
    snprintf(options, sizeof options, "store=%s", p->url);
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.manager = "elastic";
    launch.count = 2;
    launch.options = options;
    muster_completion done;
    assert_int_equal(muster_cluster_add_begin(p->cluster.cluster, &launch, queue, 7, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_next(queue, 20 * second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.tag, 7);
    assert_int_equal(done.status, MUSTER_OK);
    come(p, "store", p->url, secret);
    await_joined(&p->cluster, 1);
    // One that waits for a silent store is cancelled, and the next one replaces it.
    char other[100];
    const int silent = listen_silently(other, sizeof other);
    launch.options = other;
    assert_int_equal(muster_cluster_add_begin(p->cluster.cluster, &launch, queue, 8, NULL), MUSTER_OK);
    await_dial(silent);
    assert_int_equal(muster_queue_cancel_operation(queue, 8), MUSTER_OK);
    assert_int_equal(muster_queue_next(queue, 20 * second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.tag, 8);
    assert_int_equal(done.status, MUSTER_E_CANCELED);
    assert_int_equal(muster_cluster_add_begin(p->cluster.cluster, &launch, queue, 9, NULL), MUSTER_OK);
    await_dial(silent);
    assert_int_equal(offer(p, 3, 0, options, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_next(queue, 20 * second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.tag, 9);
    assert_int_equal(done.status, MUSTER_E_CANCELED);
    come(p, "store", p->url, secret);
    await_joined(&p->cluster, 1);
    close(silent);
    muster_queue_release(queue);
}

static void test_what_makes_no_sense_is_refused_at_once(void **state) {
    place *p = *state;
    open_with(&p->cluster, 0, NULL, 0);
    muster_error error = {0};
    assert_int_equal(offer(p, 1, MUSTER_LAUNCH_MASTER_DIALS, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(offer(p, 1, 0, "name=x", &error), MUSTER_E_ARG);
    assert_says(error.message, "store");
    assert_int_equal(offer(p, 1, 0, "host=x", &error), MUSTER_E_ARG);
    muster_worker_config config;
    muster_cluster *cluster = NULL;
    muster_config_init(&config, sizeof config);
    config.name = "x";
    assert_int_equal(muster_worker_start(p->cluster.context, &config, second, &cluster, &error), MUSTER_E_ARG);
    config.name = NULL;
    config.listen = "";
    assert_int_equal(muster_worker_start(p->cluster.context, &config, second, &cluster, &error), MUSTER_E_ARG);
    config.master = config.store = "tcp://127.0.0.1:1";
    assert_int_equal(muster_worker_start(p->cluster.context, &config, second, &cluster, &error), MUSTER_E_ARG);
    config.store = NULL;
    assert_int_equal(muster_worker_start(p->cluster.context, &config, second, &cluster, &error), MUSTER_E_UNREACHABLE);
    assert_null(cluster);
}

#define in_place(test) cmocka_unit_test_setup_teardown(test, set_up_place, tear_down_place)

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "come") == 0) return come_in(argv[2], argv[3], argv[4]);
    find_self();
    const struct CMUnitTest tests[] = {
        in_place(test_who_comes_is_given_a_number),
        in_place(test_who_begins_after_the_offer_is_not_refused),
        in_place(test_no_more_come_than_are_wanted),
        in_place(test_who_is_not_wanted_or_has_another_secret_is_refused),
        in_place(test_the_master_is_found_in_a_store_also_by_who_came_before_it),
        in_place(test_add_does_not_wait_for_a_store_that_is_silent),
        in_place(test_a_failure_to_publish_is_an_event_and_the_offer_before_holds),
        in_place(test_add_begin_completes_when_the_address_is_published),
        in_place(test_what_makes_no_sense_is_refused_at_once),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
