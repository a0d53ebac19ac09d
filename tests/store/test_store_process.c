// SPDX-License-Identifier: MIT
// ctest: full timeout=180
// `muster store` as a program: what its clients see when it is stopped, killed, started again, and lied to.
#include "store_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char *data_dir(const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

// ---- a store in memory goes with its process -----------------------------------------------------------------------

static void test_a_killed_server_is_told_of_at_once(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    assert_int_equal(ask(&c, set("k", "v"), SECOND), MUSTER_OK);
    begin(&c, op(MUSTER_STORE_GET, "never"), 1);
    begin(&c, op(MUSTER_STORE_POP, "never"), 2);
    end_program(&server, SIGKILL);
    for (int i = 0; i < 2; i++) {
        const muster_completion done = take(&c);
        assert_int_equal(done.status, MUSTER_E_STORE_LOST);
        assert_non_null(strstr(why.message, "is gone"));
    }
    assert_int_equal(ask(&c, set("k", "v"), SECOND), MUSTER_E_STORE_LOST);
    close_client(&c);
}

static void test_a_server_that_stops_says_so(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    begin(&c, op(MUSTER_STORE_GET, "never"), 1);
    assert_int_equal(ask(&c, set("k", "v"), SECOND), MUSTER_OK);
    assert_int_equal(end_program(&server, SIGTERM).value, 0);
    assert_int_equal(take(&c).status, MUSTER_E_STORE_LOST);
    assert_non_null(strstr(why.message, "has stopped"));
    close_client(&c);
}

// ... and not that its other clients are dead, whose connections it ends one by one.
static void test_a_server_that_stops_ends_no_lease(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client clients[4];
    muster_lease *leases[4];
    for (int i = 0; i < 4; i++) {
        clients[i] = open_client(server.url);
        assert_int_equal(
            muster_store_lease(clients[i].store, 600 * SECOND, MUSTER_LEASE_CONNECTED, 10 * SECOND, &leases[i], &why),
            MUSTER_OK);
        const char key[] = {'l', (char)('0' + i), '\0'};
        muster_store_op leased = set(key, "v");
        leased.lease = muster_lease_id(leases[i]);
        assert_int_equal(ask(&clients[i], leased, 10 * SECOND), MUSTER_OK);
    }
    for (int i = 0; i < 4; i++) {
        muster_store_op watch = op(MUSTER_STORE_WATCH, "l");
        watch.version = 4; // changes so far
        begin(&clients[i], watch, 1);
    }
    assert_int_equal(end_program(&server, SIGTERM).value, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(take(&clients[i]).status, MUSTER_E_STORE_LOST);
        muster_lease_release(leases[i]);
        close_client(&clients[i]);
    }
}

// ---- a store with a folder outlives its process --------------------------------------------------------------------

// Servers are killed while many write; each write that was acknowledged counts once, and none twice.
static void test_nothing_is_lost_or_done_twice(void **state) {
    (void)state;
    enum { adders = 4, kills = 5 };
    char dir[300];
    snprintf(dir, sizeof dir, "%s", data_dir("twice"));
    program server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, NULL);
    await_ready(&server);
    char url[300];
    snprintf(url, sizeof url, "%s", server.url);
    adder all[adders];
    atomic_bool stop = false;
    client watcher = open_client(url);
    begin(&watcher, op(MUSTER_STORE_GET, "late"), 1);
    for (int i = 0; i < adders; i++) {
        start_adder(&all[i], url, &stop);
    }
    for (int i = 0; i < kills; i++) {
        const int64_t before = number_at(&watcher, "sum");
        while (number_at(&watcher, "sum") < before + 50) {
        } // they are at work
        end_program(&server, SIGKILL);
        server = start_server("--listen", url, "--data-dir", dir, NULL);
        await_ready(&server);
    }
    assert_int_equal(ask(&watcher, set("late", "now"), 20 * SECOND), MUSTER_OK);
    assert_int_equal(take(&watcher).status, MUSTER_OK); // asked before the first kill
    const int64_t sum = stop_adders(all, adders, &stop);
    assert_int_equal(number_at(&watcher, "sum"), sum);
    close_client(&watcher);
    assert_int_equal(end_program(&server, SIGTERM).value, 0);
}

// Queues, versions, leases of others and popped values: everything is unchanged. After a snapshot, too.
static void test_everything_is_there_again(void **state) {
    const bool long_log = *(bool *)*state;
    char dir[300];
    snprintf(dir, sizeof dir, "%s", data_dir(long_log ? "snapshot" : "log"));
    program server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, "--no-sync", NULL);
    await_ready(&server);
    char url[300];
    snprintf(url, sizeof url, "%s", server.url);
    client c = open_client(url);
    muster_lease *lease, *other;
    assert_int_equal(muster_store_lease(c.store, 60 * SECOND, 0, SECOND, &lease, &why), MUSTER_OK);
    assert_int_equal(muster_store_lease(c.store, SECOND, MUSTER_LEASE_MANUAL, SECOND, &other, &why), MUSTER_OK);
    muster_store_op kept = set("kept", "k"), short_lived = set("short", "s");
    kept.lease = muster_lease_id(lease);
    short_lived.lease = muster_lease_id(other);
    assert_int_equal(ask(&c, kept, SECOND), MUSTER_OK);
    assert_int_equal(ask(&c, short_lived, SECOND), MUSTER_OK);
    muster_store_op push = op(MUSTER_STORE_PUSH, "jobs");
    for (const char *job = "abc"; *job != '\0'; job++) {
        push.value = job;
        push.value_bytes = 1;
        assert_int_equal(ask(&c, push, SECOND), MUSTER_OK);
    }
    assert_int_equal(ask(&c, op(MUSTER_STORE_POP, "jobs"), SECOND), MUSTER_OK);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 7), SECOND), MUSTER_OK);
    if (long_log) { // a log so long is replaced by a snapshot
        static char large[4 << 20];
        memset(large, 'x', sizeof large);
        muster_store_op much = op(MUSTER_STORE_SET, "much");
        much.value = large;
        much.value_bytes = sizeof large;
        for (int i = 0; i < 40; i++) assert_int_equal(ask(&c, much, 20 * SECOND), MUSTER_OK);
        char name[400];
        struct stat there;
        snprintf(name, sizeof name, "%s/0.log", dir);
        for (int i = 0; stat(name, &there) == 0; i++) { // another thread writes the snapshot
            assert_true(i < 1000);
            usleep(10000);
        }
    }
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), SECOND), MUSTER_OK);
    end_program(&server, SIGKILL);
    server = start_server("--listen", url, "--data-dir", dir, NULL);
    await_ready(&server);
    assert_int_equal(number_at(&c, "n"), 8);
    muster_store_op ops[] = {op(MUSTER_STORE_TRY_POP, "jobs"), op(MUSTER_STORE_LENGTH, "jobs"),
                             op(MUSTER_STORE_CHECK, "kept")};
    muster_store_result *result;
    muster_store_entry entry;
    assert_int_equal(muster_store_do(c.store, ops, 3, 10 * SECOND, &result, &why), MUSTER_OK);
    assert_int_equal(muster_store_result_entry(result, 0, &entry), MUSTER_OK);
    assert_memory_equal(entry.value, "b", 1);
    assert_int_equal(muster_store_result_entry(result, 1, &entry), MUSTER_OK);
    assert_int_equal(entry.number, 1);
    assert_int_equal(muster_store_result_entry(result, 2, &entry), MUSTER_OK);
    assert_int_equal(entry.flags & MUSTER_STORE_PRESENT, MUSTER_STORE_PRESENT);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "short");
    watch.version = muster_store_result_revision(result);
    muster_store_result_release(result);
    if (number_at(&c, "short") != -1) assert_int_equal(ask(&c, watch, 20 * SECOND), MUSTER_OK); // it is not renewed
    assert_int_equal(number_at(&c, "short"), -1);
    assert_int_equal(muster_lease_end(lease, 10 * SECOND, &why), MUSTER_OK);
    assert_int_equal(number_at(&c, "kept"), -1);
    muster_lease_release(lease);
    muster_lease_release(other);
    close_client(&c);
    end_program(&server, SIGTERM);
}

static void append_to(const char *name, const void *data, size_t size) {
    const int fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), (ssize_t)size);
    close(fd);
}
static void change_byte(const char *name, off_t at) {
    const int fd = open(name, O_RDWR | O_CLOEXEC);
    unsigned char byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0xff; // whatever it was
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_a_torn_end_is_cut_off_and_damage_is_told(void **state) {
    (void)state;
    char dir[300], log[400];
    snprintf(dir, sizeof dir, "%s", data_dir("torn"));
    snprintf(log, sizeof log, "%s/0.log", dir);
    program server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, NULL);
    await_ready(&server);
    client c = open_client(server.url);
    for (int i = 0; i < 10; i++) assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), SECOND), MUSTER_OK);
    program second = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, NULL);
    assert_true(await_line(&second, "another server uses it"));
    assert_int_equal(end_program(&second, 0).value, 1);
    close_client(&c);
    end_program(&server, SIGKILL);

    append_to(log, "\x40\0\0\0torn", 8);
    server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, NULL);
    await_ready(&server);
    c = open_client(server.url);
    assert_int_equal(number_at(&c, "n"), 10);
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), SECOND), MUSTER_OK);
    close_client(&c);
    end_program(&server, SIGKILL);
    server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, NULL);
    await_ready(&server);
    c = open_client(server.url);
    assert_int_equal(number_at(&c, "n"), 11);
    close_client(&c);
    end_program(&server, SIGTERM);

    // What was acknowledged and is not there any more is not passed over.
    change_byte(log, 100);
    server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", dir, NULL);
    assert_true(await_line(&server, "is damaged"));
    assert_int_equal(end_program(&server, 0).value, 1);
}

// ---- stopped, and going on -----------------------------------------------------------------------------------------

static void test_a_stopped_server_is_waited_for_no_longer_than_asked(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, 300 * MILLISECOND, 0, SECOND, &lease, &why), MUSTER_OK);
    muster_store_op kept = set("kept", "1");
    kept.lease = muster_lease_id(lease);
    assert_int_equal(ask(&c, kept, SECOND), MUSTER_OK);
    stop_program(&server);
    const int64_t from = now();
    assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 200 * MILLISECOND), MUSTER_E_PEER);
    assert_non_null(strstr(why.message, "it may have been applied"));
    assert_true(now() - from < 6 * SECOND);
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    assert_int_equal(number_at(&c, "kept"), 1); // its being stopped was not its client's fault
    const int64_t n = number_at(&c, "n");
    assert_true(n == 1 || n == -1);
    muster_lease_release(lease);
    close_client(&c);
    end_program(&server, SIGTERM);
}

// A client that is killed, with a lease of an hour, is noticed by its connection.
static int be_a_client(const char *url) {
    client c = open_client(url);
    muster_lease *lease;
    muster_store_op here = set("here", "1");
    if (muster_store_lease(c.store, 3600 * SECOND, MUSTER_LEASE_CONNECTED, SECOND, &lease, &why) != MUSTER_OK) return 3;
    here.lease = muster_lease_id(lease);
    if (ask(&c, here, SECOND) != MUSTER_OK) return 3;
    puts("here");
    fflush(stdout);
    for (;;) pause();
}

static void test_a_killed_client_is_noticed(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    char self[300];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(size > 0);
    self[size] = '\0';
    const char *const argv[] = {self, "client", server.url, NULL};
    program other = start_program(argv);
    assert_true(await_line(&other, "here"));
    muster_store_op watch = op(MUSTER_STORE_WATCH, "here");
    watch.version = 1;
    begin(&c, watch, 5);
    end_program(&other, SIGKILL);
    assert_int_equal(take(&c).status, MUSTER_OK); // long before the hour
    assert_int_equal(number_at(&c, "here"), -1);
    close_client(&c);
    end_program(&server, SIGTERM);
}

// ---- unauthenticated clients ---------------------------------------------------------------------------------------

static int connect_raw(const char *url) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    at.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void test_unauthenticated_peers(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    // A silent client, one that sends invalid bytes, one with another secret, one that requests a stream.
    const int silent = connect_raw(server.url), noisy = connect_raw(server.url);
    assert_int_equal(write(noisy, "GET / HTTP/1.1\r\n\r\n", 18), 18);
    client wrong;
    setenv("MUSTER_SECRET", "quite another secret", 1);
    assert_int_equal(try_client(&wrong, server.url, 10 * SECOND), MUSTER_E_AUTH);
    assert_non_null(strstr(why.message, "127.0.0.1"));
    close_client(&wrong);
    know_secret();
    muster_stream *stream;
    if (muster_transport_dial(c.context, server.url, strlen(server.url), NULL, 5 * SECOND, &stream, &why) ==
        MUSTER_OK) {
        char byte;
        size_t bytes;
        assert_true(muster_stream_read(stream, &byte, 1, 10 * SECOND, &bytes) < 0);
        muster_stream_release(stream);
    }
    assert_int_equal(ask(&c, set("k", "v"), SECOND), MUSTER_OK);
    // And a store that is none.
    muster_listener *listener;
    char address[300];
    size_t bytes;
    assert_int_equal(muster_transport_listen(c.context, "tcp://127.0.0.1:0", 17, NULL, &listener, &why), MUSTER_OK);
    assert_int_equal(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
    assert_int_equal(try_client(&wrong, address, 10 * SECOND), MUSTER_E_PROTOCOL);
    assert_non_null(strstr(why.message, "no store is served there"));
    close_client(&wrong);
    muster_listener_release(listener);
    close(silent);
    close(noisy);
    close_client(&c);
    end_program(&server, SIGTERM);
}

static void test_wrong_arguments(void **state) {
    (void)state;
    static const struct {
        const char *arguments[6];
        int code;
        const char *word;
    } wrong[] = {
        {{NULL}, 2, "--listen"},
        {{"--listen", "tcp://127.0.0.1:0", "--nonsense", NULL}, 2, "--nonsense"},
        {{"--listen", "tcp://127.0.0.1:0", "--most", "much", NULL}, 2, "much"},
        {{"--listen", "tcp://127.0.0.1:0", "--no-sync", NULL}, 2, "--data-dir"},
        {{"--listen", "tcp://127.0.0.1:0", "--data-dir", "/proc/nowhere", NULL}, 1, "/proc/nowhere"},
        {{"--listen", "zmq://127.0.0.1:0", NULL}, 1, "only over tcp and unix"},
        {{"--listen", "tcp://192.0.2.1:29400", NULL}, 1, "192.0.2.1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const *a = wrong[i].arguments;
        program p = start_server(a[0], a[0] ? a[1] : NULL, a[0] && a[1] ? a[2] : NULL,
                                 a[0] && a[1] && a[2] ? a[3] : NULL, NULL);
        if (!await_line(&p, wrong[i].word)) fail_msg("case %zu does not speak of %s", i, wrong[i].word);
        assert_int_equal(end_program(&p, 0).value, wrong[i].code);
    }
    client c;
    assert_int_equal(try_client(&c, "tcp://127.0.0.1:0", SECOND), MUSTER_E_ADDRESS);
    assert_int_equal(muster_store_open(c.context, "tcp://127.0.0.1:1?host=perhaps", 30, NULL, SECOND, &c.store, &why),
                     MUSTER_E_ADDRESS);
    assert_int_equal(muster_store_open(c.context, "tcp://127.0.0.1:1", 17, NULL, 200 * MILLISECOND, &c.store, &why),
                     MUSTER_E_UNREACHABLE);
    close_client(&c);
}

// It takes connections and says nothing.
static void test_a_silent_server_cannot_be_opened(void **state) {
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(silent, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(silent, 16), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&at, &size), 0);
    char url[64];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    client c;
    const int64_t begun = now();
    assert_int_equal(try_client(&c, url, 300 * MILLISECOND), MUSTER_E_UNREACHABLE);
    assert_non_null(strstr(why.message, url));
    assert_in_range(now() - begun, 300 * MILLISECOND, 2 * SECOND);
    assert_null(c.store);
    muster_queue *queue;
    muster_completion entry;
    assert_int_equal(muster_queue_create(c.context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_store_open_begin(c.context, url, strlen(url), NULL, 300 * MILLISECOND, queue, 7, &why),
                     MUSTER_OK);
    assert_int_equal(muster_queue_next(queue, 10 * SECOND, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_DONE_OPEN);
    assert_int_equal(entry.status, MUSTER_E_UNREACHABLE);
    assert_null(entry.object);
    muster_queue_release(queue);
    close_client(&c);
    close(silent);
}

// Another program has the port, and does not listen there.
static void test_a_port_that_another_program_has_is_named(void **state) {
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(taken, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&at, &size), 0);
    char url[80];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u?host=auto", ntohs(at.sin_port));
    client c;
    assert_int_equal(try_client(&c, url, 300 * MILLISECOND), MUSTER_E_UNREACHABLE);
    assert_non_null(strstr(why.message, "the port is taken by a program that is no store"));
    close_client(&c);
    close(taken);
}

// The first of several that may serve does; when it goes the store does.
static void test_one_of_several_serves(void **state) {
    (void)state;
    program probe = start_server("--listen", "tcp://127.0.0.1:0", NULL); // a port that is free a moment later
    await_ready(&probe);
    char url[300];
    snprintf(url, sizeof url, "%.280s?host=auto", probe.url);
    end_program(&probe, SIGKILL);
    client first = open_client(url), second = open_client(url);
    assert_int_equal(ask(&first, set("k", "5"), SECOND), MUSTER_OK);
    assert_int_equal(number_at(&second, "k"), 5);
    begin(&second, op(MUSTER_STORE_GET, "never"), 1);
    close_client(&first);
    assert_int_equal(take(&second).status, MUSTER_E_STORE_LOST);
    close_client(&second);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "client") == 0) return be_a_client(argv[2]);
    if (!make_folder()) return 2;
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    static bool by_log = false, by_snapshot = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_a_killed_server_is_told_of_at_once),
        cmocka_unit_test(test_a_server_that_stops_says_so),
        cmocka_unit_test(test_a_server_that_stops_ends_no_lease),
        cmocka_unit_test(test_nothing_is_lost_or_done_twice),
        {"test_everything_is_there_again, by the log", test_everything_is_there_again, NULL, NULL, &by_log},
        {"test_everything_is_there_again, by a snapshot", test_everything_is_there_again, NULL, NULL, &by_snapshot},
        cmocka_unit_test(test_a_torn_end_is_cut_off_and_damage_is_told),
        cmocka_unit_test(test_a_stopped_server_is_waited_for_no_longer_than_asked),
        cmocka_unit_test(test_a_killed_client_is_noticed),
        cmocka_unit_test(test_unauthenticated_peers),
        cmocka_unit_test(test_a_silent_server_cannot_be_opened),
        cmocka_unit_test(test_a_port_that_another_program_has_is_named),
        cmocka_unit_test(test_one_of_several_serves),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tear_down() ? failed : 2;
}
