// SPDX-License-Identifier: MIT
// ctest: quick timeout=240
// One block of bytes to many members of a cluster: this program, started again.
#include "cluster_worker.h"
#include "stopped.h"

#include <muster/broker.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static char self_path[4096];
static const char *const by_socket = "tcp://127.0.0.1:0?upgrade=no";

enum { many = 16, large = 24 << 20 };

typedef struct fixture {
    muster_context *context;
    muster_cluster *cluster;
    unsigned char *data;
} fixture;

static int set_up(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    muster_error error = {0};
    if (muster_context_create(NULL, &f.context, &error) != MUSTER_OK) fail_msg("%s", error.message);
    f.data = pattern(large, 0);
    *state = &f;
    return 0;
}

static void close_cluster(fixture *f) {
    muster_cluster_close(f->cluster, 5 * second);
    muster_cluster_release(f->cluster);
    f->cluster = NULL;
}

static int tear_down(void **state) {
    fixture *f = *state;
    close_cluster(f);
    assert_int_equal(muster_context_close(f->context, 5 * second), MUSTER_OK);
    muster_context_release(f->context);
    free(f->data);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    return 0;
}

static muster_cluster_event next(fixture *f) {
    muster_cluster_event event;
    const muster_status status = muster_cluster_next_event(f->cluster, 30 * second, &event);
    if (status != MUSTER_OK) fail_msg("no event: %s", muster_status_name(status));
    return event;
}

static muster_cluster_event await(fixture *f, uint32_t kind) {
    for (;;) {
        const muster_cluster_event event = next(f);
        if (event.kind == kind) return event;
        if (event.kind > MUSTER_CLUSTER_JOINED)
            fail_msg("event %u of member %u: %s", event.kind, event.member, event.text);
    }
}

static void open_at(fixture *f, uint32_t topology, const char *listen) {
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.topology = topology;
    config.listen = listen;
    config.listen_bytes = listen ? strlen(listen) : 0;
    muster_error error = {0};
    if (muster_cluster_open(f->context, &config, &f->cluster, &error) != MUSTER_OK) fail_msg("%s", error.message);
}

static uint32_t add(fixture *f, uint32_t count, const char *mode, const char *listen, uint32_t flags) {
    const char *const words[] = {self_path, mode, NULL};
    const muster_launch launch = {
        .struct_size = sizeof launch, .argv = words, .count = count, .listen = listen, .flags = flags};
    uint32_t first = 0;
    muster_error error = {0};
    if (muster_cluster_add(f->cluster, &launch, &first, &error) != MUSTER_OK) fail_msg("%s", error.message);
    for (uint32_t i = 0; i < count; i++) await(f, MUSTER_CLUSTER_JOINED);
    return first;
}

// A cluster of workers with that address.
static void open_with(fixture *f, uint32_t count, const char *listen) {
    open_at(f, 0, listen);
    assert_int_equal(add(f, count, "worker", listen, 0), 1);
}

static const char *ask(fixture *f, uint32_t member, const char *label) {
    static char text[400];
    muster_stream *stream = NULL;
    muster_error error = {0};
    const muster_status status =
        muster_cluster_dial(f->cluster, member, label, strlen(label), 20 * second, &stream, &error);
    if (status != MUSTER_OK) fail_msg("dial %u: %s: %s", member, muster_status_name(status), error.message);
    hear(stream, text, sizeof text);
    muster_stream_close(stream, 0);
    muster_stream_release(stream);
    return text;
}

static void assert_heard(fixture *f, uint32_t member, int times, uint32_t from, const char *label, const void *data,
                         uint64_t size) {
    char expected[400];
    snprintf(expected, sizeof expected, "%d from %u: %s %llu %llx", times, from, label, (unsigned long long)size,
             (unsigned long long)sum_of(data, size));
    assert_string_equal(ask(f, member, "heard"), expected);
}

static muster_status broadcast(fixture *f, const uint32_t *members, size_t count, uint64_t size, int64_t timeout_ns,
                               muster_status *statuses, muster_error *error) {
    return muster_cluster_broadcast(f->cluster, members, count, "all", 3, f->data, size, timeout_ns, statuses, error);
}

static void assert_all_get_it(fixture *f, uint64_t size) {
    muster_error error = {0};
    const muster_status status = broadcast(f, NULL, 0, size, 60 * second, NULL, &error);
    if (status != MUSTER_OK) fail_msg("%s: %s", muster_status_name(status), error.message);
}

static pid_t pid_of(fixture *f, uint32_t member) {
    muster_member_info info;
    assert_int_equal(muster_cluster_get_member(f->cluster, member, &info), MUSTER_OK);
    return (pid_t)info.pid;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * second + time.tv_nsec;
}

static void test_sixteen_workers_of_this_host_get_the_bytes(void **state) {
    fixture *f = *state;
    open_with(f, many, NULL);
    assert_all_get_it(f, large);
    for (uint32_t member = 1; member <= many; member++) assert_heard(f, member, 1, 0, "all", f->data, large);
    assert_all_get_it(f, 0);
    assert_all_get_it(f, 1);
    for (uint32_t member = 1; member <= many; member++) assert_heard(f, member, 3, 0, "all", f->data, 1);
}

static void test_without_shared_memory_they_hand_the_bytes_on(void **state) {
    fixture *f = *state;
    open_with(f, many, by_socket);
    const uint64_t sizes[] = {large, 0, 1, 100000};
    for (int i = 0; i < 4; i++) {
        assert_all_get_it(f, sizes[i]);
        for (uint32_t member = 1; member <= many; member++) assert_heard(f, member, i + 1, 0, "all", f->data, sizes[i]);
    }
}

static void test_it_works_over_each_transport(void **state) {
    fixture *f = *state;
    char names[4][64];
    snprintf(names[0], sizeof *names, "unix://@muster-broadcast-%d-0", (int)getpid());
    snprintf(names[1], sizeof *names, "unix://@muster-broadcast-%d-{}", (int)getpid());
    snprintf(names[2], sizeof *names, "shm://broadcast-%d-0", (int)getpid());
    snprintf(names[3], sizeof *names, "shm://broadcast-%d-{}", (int)getpid());
    for (int i = 0; i < 4; i += 2) {
        open_at(f, 0, names[i]);
        add(f, 3, "worker", names[i + 1], 0);
        assert_all_get_it(f, 100000);
        for (uint32_t member = 1; member <= 3; member++) assert_heard(f, member, 1, 0, "all", f->data, 100000);
        close_cluster(f);
    }
}

static void test_it_reaches_members_that_do_not_listen_or_do_not_dial(void **state) {
    fixture *f = *state;
    open_at(f, 0, by_socket);
    add(f, 5, "apart", NULL, MUSTER_LAUNCH_NO_LISTEN);
    add(f, 2, "apart", NULL, MUSTER_LAUNCH_MASTER_DIALS);
    assert_all_get_it(f, 300000);
    for (uint32_t member = 1; member <= 7; member++) assert_heard(f, member, 1, 0, "all", f->data, 300000);
}

static void test_the_topology_permits_or_refuses(void **state) {
    fixture *f = *state;
    open_at(f, MUSTER_CLUSTER_TREE, by_socket);
    add(f, 4, "worker", by_socket, 0);
    const uint32_t members[] = {4, 1, 3, 2};
    muster_status statuses[4];
    muster_error error = {0};
    assert_int_equal(broadcast(f, members, 4, 5000, 20 * second, statuses, &error), MUSTER_E_PERMISSION);
    const muster_status expected[] = {MUSTER_E_PERMISSION, MUSTER_OK, MUSTER_E_PERMISSION, MUSTER_OK};
    assert_memory_equal(statuses, expected, sizeof expected);
    close_cluster(f);

    open_at(f, MUSTER_CLUSTER_MASTER_WORKER, by_socket);
    add(f, 6, "worker", by_socket, 0);
    assert_all_get_it(f, 300000);
    for (uint32_t member = 1; member <= 6; member++) assert_heard(f, member, 1, 0, "all", f->data, 300000);
    const char *const said = ask(f, 1, "broadcast 2 3 100");
    if (!strstr(said, "MUSTER_E_PERMISSION")) fail_msg("%s", said);
}

static void test_two_members_broadcast_at_once(void **state) {
    fixture *f = *state;
    const char *const ways[] = {NULL, by_socket};
    for (int way = 0; way < 2; way++) {
        open_with(f, 6, ways[way]);
        muster_stream *streams[2];
        muster_error error;
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(
                muster_cluster_dial(f->cluster, i + 1, "broadcast 0 6 3000000", 21, 20 * second, &streams[i], &error),
                0);
        int heard[3] = {0};
        for (int i = 0; i < 2; i++) {
            const muster_cluster_event event = await(f, MUSTER_CLUSTER_BROADCAST);
            assert_in_range(event.member, 1, 2);
            heard[event.member]++;
            unsigned char *const expected = pattern(3000000, event.member);
            assert_int_equal(event.size_bytes, 3000000);
            assert_memory_equal(event.data, expected, 3000000);
            assert_string_equal(event.label, "theirs");
            free(expected);
            muster_broadcast_release(event.broadcast);
        }
        assert_int_equal(heard[1], 1);
        assert_int_equal(heard[2], 1);
        for (int i = 0; i < 2; i++) {
            char text[400];
            hear(streams[i], text, sizeof text);
            assert_string_equal(text, "done");
            muster_stream_release(streams[i]);
        }
        for (uint32_t member = 3; member <= 6; member++) assert_int_equal(ask(f, member, "heard")[0], '2');
        close_cluster(f);
    }
}

static void test_a_stopped_member_holds_up_nobody_else(void **state) {
    fixture *f = *state;
    const char *const ways[] = {NULL, by_socket};
    for (int way = 0; way < 2; way++) {
        open_with(f, 8, ways[way]);
        const pid_t stopped = pid_of(f, 1); // in a tree it is to hand on to others
        stop_process(stopped);
        muster_status statuses[8];
        const uint32_t members[] = {1, 2, 3, 4, 5, 6, 7, 8};
        const int64_t begun = now();
        muster_error error = {0};
        assert_int_equal(broadcast(f, members, 8, 5000000, 6 * second, statuses, &error), MUSTER_TIMEOUT);
        assert_true(now() - begun < 12 * second);
        assert_int_equal(statuses[0], MUSTER_TIMEOUT);
        for (int i = 1; i < 8; i++) assert_int_equal(statuses[i], MUSTER_OK);
        if (!strstr(error.message, "member 1")) fail_msg("%s", error.message);
        for (uint32_t member = 2; member <= 8; member++) assert_heard(f, member, 1, 0, "all", f->data, 5000000);
        kill(stopped, SIGCONT);
        close_cluster(f);
    }
}

static void test_a_relay_that_is_killed_is_replaced(void **state) {
    fixture *f = *state;
    open_with(f, 10, by_socket);
    const uint32_t members[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    muster_status statuses[10];
    muster_queue *queue = NULL;
    muster_error error = {0};
    muster_queue_create(f->context, NULL, &queue, &error);
    stop_process(pid_of(f, 1)); // so that it is in the middle of it, for sure
    assert_int_equal(muster_cluster_broadcast_begin(f->cluster, members, 10, "all", 3, f->data, large, 60 * second,
                                                    statuses, queue, 7, &error),
                     MUSTER_OK);
    usleep(300000); // not needed: so that the others are at it, too
    kill(pid_of(f, 1), SIGKILL);
    muster_completion done;
    assert_int_equal(muster_queue_next(queue, 60 * second, &done, &error), MUSTER_OK);
    assert_int_equal(done.kind, MUSTER_DONE_BROADCAST);
    assert_int_equal(done.tag, 7);
    assert_int_equal(done.bytes, 9);
    assert_int_equal(done.status, MUSTER_E_STALE);
    assert_int_equal(statuses[0], MUSTER_E_STALE);
    for (int i = 1; i < 10; i++) assert_int_equal(statuses[i], MUSTER_OK);
    for (uint32_t member = 2; member <= 10; member++) assert_heard(f, member, 1, 0, "all", f->data, large);
    muster_queue_release(queue);
}

// Workers in a network of their own, as if on another host; no shared memory gets there from here.
static void test_of_another_host_one_gets_the_bytes_and_shares_them(void **state) {
    fixture *f = *state;
    int ready[2], over[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(over), 0);
    const pid_t holder = fork();
    if (holder == 0) {
        char word = unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
        close(over[1]);
        if (write(ready[1], &word, 1) == 1) word = (char)read(over[0], &word, 1);
        _exit(0);
    }
    char word = 'n', folder[] = "/tmp/muster-broadcast-XXXXXX", master[64], listen[64], host[32];
    assert_int_equal(read(ready[0], &word, 1), 1);
    assert_non_null(mkdtemp(folder));
    if (word == 'y') {
        snprintf(master, sizeof master, "unix://%s/0", folder);
        snprintf(listen, sizeof listen, "unix://%s/{}", folder);
        snprintf(host, sizeof host, "OTHER_HOST=%d", (int)holder);
        open_at(f, 0, master);
        const char *const words[] = {self_path, "elsewhere", NULL}, *const more[] = {host, NULL};
        const muster_launch launch = {
            .struct_size = sizeof launch, .argv = words, .envp = more, .count = 5, .listen = listen};
        muster_error error = {0};
        assert_int_equal(muster_cluster_add(f->cluster, &launch, NULL, &error), MUSTER_OK);
        for (int i = 0; i < 5; i++) await(f, MUSTER_CLUSTER_JOINED);
        muster_context_stats before, after;
        muster_context_get_stats(f->context, &before);
        assert_all_get_it(f, large);
        muster_context_get_stats(f->context, &after);
        assert_in_range(after.bytes_out - before.bytes_out, large, large + large / 10); // it went there once
        for (uint32_t member = 1; member <= 5; member++) assert_heard(f, member, 1, 0, "all", f->data, large);

        stop_process(pid_of(f, 1)); // the member that gets the bytes first
        const uint32_t members[] = {1, 2, 3, 4, 5};
        muster_status statuses[5];
        assert_int_equal(broadcast(f, members, 5, 5000000, 8 * second, statuses, &error), MUSTER_TIMEOUT);
        for (int i = 1; i < 5; i++) assert_int_equal(statuses[i], MUSTER_OK);
        kill(pid_of(f, 1), SIGCONT);
        close_cluster(f);
    }
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(over[i]);
    }
    waitpid(holder, NULL, 0);
    rmdir(folder);
    if (word != 'y') skip(); // only root makes networks
}

static void test_who_takes_nothing_has_a_limit(void **state) {
    fixture *f = *state;
    const char *const ways[] = {NULL, by_socket};
    for (int way = 0; way < 2; way++) {
        open_at(f, 0, ways[way]);
        add(f, 1, "worker", ways[way], 0);
        add(f, 1, "small", ways[way], 0);
        muster_stream *busy = NULL;
        muster_error error = {0};
        assert_int_equal(muster_cluster_dial(f->cluster, 2, "echo", 4, 20 * second, &busy, &error), MUSTER_OK);
        char echoed;
        size_t moved;
        muster_stream_write(busy, "!", 1, second, &moved);
        assert_int_equal(muster_stream_read(busy, &echoed, 1, 20 * second, &moved), MUSTER_OK);

        const uint32_t members[] = {1, 2};
        muster_status statuses[2];
        assert_int_equal(broadcast(f, members, 2, 600000, 20 * second, statuses, &error), MUSTER_OK);
        assert_int_equal(broadcast(f, members, 2, 600000, 20 * second, statuses, &error), MUSTER_E_LIMIT);
        assert_int_equal(statuses[0], MUSTER_OK);
        assert_int_equal(statuses[1], MUSTER_E_LIMIT);
        assert_int_equal(broadcast(f, members, 2, 2000000, 20 * second, statuses, &error), MUSTER_E_LIMIT);

        muster_stream_close(busy, second); // it takes what waits there
        muster_stream_release(busy);
        assert_heard(f, 2, 1, 0, "all", f->data, 600000);
        assert_int_equal(broadcast(f, members, 2, 600000, 20 * second, statuses, &error), MUSTER_OK);
        close_cluster(f);
    }
}

static void test_bad_input_is_refused(void **state) {
    fixture *f = *state;
    open_with(f, 2, NULL);
    muster_error error = {0};
    const uint32_t one = 1, self = 0;
    muster_status status;
    muster_cluster *const c = f->cluster;
    assert_int_equal(muster_cluster_broadcast(NULL, &one, 1, NULL, 0, "x", 1, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, &one, 0, NULL, 0, "x", 1, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, NULL, 1, NULL, 0, "x", 1, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, NULL, 0, NULL, 0, "x", 1, second, &status, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, &one, 1, NULL, 0, NULL, 1, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, &one, 1, NULL, 1, "x", 1, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, &one, 1, f->data, 256, "x", 1, second, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, &one, 1, NULL, 0, "x", 1, 0, NULL, &error), MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast_begin(c, &one, 1, NULL, 0, "x", 1, second, NULL, NULL, 0, &error),
                     MUSTER_E_ARG);
    assert_int_equal(muster_cluster_broadcast(c, &self, 1, NULL, 0, "x", 1, second, NULL, &error), MUSTER_E_ARG);
    if (!strstr(error.message, "this one")) fail_msg("%s", error.message);

    const uint32_t odd[] = {1, 77, 1, 2};
    const muster_status expected[] = {MUSTER_OK, MUSTER_E_NOT_FOUND, MUSTER_OK, MUSTER_OK};
    muster_status statuses[4];
    assert_int_equal(broadcast(f, odd, 4, 1000, 20 * second, statuses, &error), MUSTER_E_NOT_FOUND);
    assert_memory_equal(statuses, expected, sizeof expected);
    assert_heard(f, 1, 1, 0, "all", f->data, 1000); // once, though it was named twice

    kill(pid_of(f, 2), SIGKILL);
    assert_int_equal(await(f, MUSTER_CLUSTER_DEAD).member, 2);
    const uint32_t both[] = {1, 2};
    assert_int_equal(broadcast(f, both, 2, 1000, 20 * second, statuses, &error), MUSTER_E_STALE);
    assert_int_equal(statuses[0], MUSTER_OK);
    assert_int_equal(statuses[1], MUSTER_E_STALE);
    muster_broadcast_release(NULL);
}

static void *cancel_soon(void *of) {
    usleep(300000);
    muster_cluster_cancel(of);
    return NULL;
}

static void test_a_star_gives_the_bytes_to_all(void **state) {
    fixture *f = *state;
    muster_error error = {0};
    muster_broker *broker = NULL;
    const char at[] = "zmq://127.0.0.1:0/";
    if (muster_broker_open(f->context, at, sizeof at - 1, NULL, &broker, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    char place[256], master[400], workers[400];
    size_t bytes = 0;
    assert_int_equal(muster_broker_address(broker, place, sizeof place, &bytes), MUSTER_OK);
    for (int shared = 0; shared < 2; shared++) {
        const char *const option = shared ? "" : "?upgrade=no";
        snprintf(master, sizeof master, "zmq://master%d@%s%s", shared, place + 6, option);
        snprintf(workers, sizeof workers, "zmq://worker%d-{}@%s%s", shared, place + 6, option);
        open_at(f, 0, master);
        add(f, 6, "worker", workers, 0);
        muster_broker_stats before, after;
        muster_broker_get_stats(broker, &before);
        assert_all_get_it(f, large);
        muster_broker_get_stats(broker, &after);
        // They left this process once, in messages of a megabyte at most; or did not leave the host's memory.
        if (shared)
            assert_int_equal(after.multicasts, before.multicasts);
        else
            assert_in_range(after.multicasts - before.multicasts, large >> 20, 10 * (large >> 20));
        for (uint32_t member = 1; member <= 6; member++) assert_heard(f, member, 1, 0, "all", f->data, large);
        close_cluster(f);
    }
    muster_broker_close(broker, second);
    muster_broker_release(broker);
}

static void test_a_wait_for_it_can_be_cancelled_and_a_close_ends_it(void **state) {
    fixture *f = *state;
    const char *const ways[] = {NULL, by_socket};
    for (int way = 0; way < 2; way++) {
        open_with(f, 2, ways[way]);
        const pid_t stopped = pid_of(f, 2);
        stop_process(stopped);
        pthread_t thread;
        pthread_create(&thread, NULL, cancel_soon, f->cluster);
        muster_error error = {0};
        assert_int_equal(broadcast(f, NULL, 0, large, -1, NULL, &error), MUSTER_E_CANCELED);
        pthread_join(thread, NULL);

        muster_queue *queue = NULL;
        muster_queue_create(f->context, NULL, &queue, &error);
        assert_int_equal(
            muster_cluster_broadcast_begin(f->cluster, NULL, 0, NULL, 0, f->data, large, -1, NULL, queue, 3, &error),
            MUSTER_OK);
        muster_cluster_close(f->cluster, 0);
        muster_completion done;
        assert_int_equal(muster_queue_next(queue, 10 * second, &done, &error), MUSTER_OK);
        assert_int_equal(done.status, MUSTER_E_CLOSED);
        assert_int_equal(done.tag, 3);
        assert_int_equal(muster_cluster_broadcast(f->cluster, NULL, 0, NULL, 0, "x", 1, second, NULL, &error),
                         MUSTER_E_CLOSED);
        muster_queue_release(queue);
        close_cluster(f);
    }
}

// The bytes and the statuses are the caller's again when the queue has ended: they are made inaccessible at once.
static void test_the_end_of_its_queue_ends_it(void **state) {
    fixture *f = *state;
    const char *const ways[] = {NULL, by_socket};
    const size_t page = 4096;
    for (int round = 0; round < 4; round++) {
        open_with(f, 2, ways[round % 2]);
        const pid_t stopped = pid_of(f, 2);
        stop_process(stopped);
        muster_queue *queue = NULL;
        assert_int_equal(muster_queue_create(f->context, NULL, &queue, NULL), MUSTER_OK);
        unsigned char *const data =
            mmap(NULL, large + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(data != MAP_FAILED);
        muster_status *const statuses = (muster_status *)(data + large);
        const uint32_t members[] = {1, 2};
        assert_int_equal(
            muster_cluster_broadcast_begin(f->cluster, members, 2, NULL, 0, data, large, -1, statuses, queue, 3, NULL),
            MUSTER_OK);
        if (round >= 2) assert_int_equal(muster_queue_close(queue), MUSTER_OK);
        muster_queue_release(queue);
        assert_int_equal(mprotect(data, large + page, PROT_NONE), 0);
        kill(stopped, SIGCONT);
        assert_string_equal(ask(f, 1, "self"), "1"); // the cluster goes on
        close_cluster(f);
        munmap(data, large + page);
    }
}

static void test_it_is_cancelled_by_its_tag(void **state) {
    fixture *f = *state;
    open_with(f, 2, NULL);
    const pid_t stopped = pid_of(f, 2);
    stop_process(stopped);
    muster_queue *queue = NULL;
    assert_int_equal(muster_queue_create(f->context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(
        muster_cluster_broadcast_begin(f->cluster, NULL, 0, NULL, 0, f->data, large, -1, NULL, queue, 3, NULL),
        MUSTER_OK);
    assert_int_equal(muster_queue_cancel_operation(queue, 3), MUSTER_OK);
    muster_completion done;
    assert_int_equal(muster_queue_next(queue, 10 * second, &done, NULL), MUSTER_OK);
    assert_int_equal(done.status, MUSTER_E_CANCELED);
    kill(stopped, SIGCONT);
    muster_queue_release(queue);
}

int main(int argc, char **argv) {
    const int code = work_if_asked(argc, argv);
    if (code >= 0) return code;
    if (readlink("/proc/self/exe", self_path, sizeof self_path - 1) < 0) return 1;
    if (argc > 1) cmocka_set_test_filter(argv[1]);
#define promise(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        promise(test_sixteen_workers_of_this_host_get_the_bytes),
        promise(test_without_shared_memory_they_hand_the_bytes_on),
        promise(test_it_works_over_each_transport),
        promise(test_it_reaches_members_that_do_not_listen_or_do_not_dial),
        promise(test_the_topology_permits_or_refuses),
        promise(test_two_members_broadcast_at_once),
        promise(test_a_stopped_member_holds_up_nobody_else),
        promise(test_a_relay_that_is_killed_is_replaced),
        promise(test_of_another_host_one_gets_the_bytes_and_shares_them),
        promise(test_who_takes_nothing_has_a_limit),
        promise(test_bad_input_is_refused),
        promise(test_a_star_gives_the_bytes_to_all),
        promise(test_a_wait_for_it_can_be_cancelled_and_a_close_ends_it),
        promise(test_the_end_of_its_queue_ends_it),
        promise(test_it_is_cancelled_by_its_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
