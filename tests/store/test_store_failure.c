// SPDX-License-Identifier: MIT
// A served store when disks fill up, networks part, clocks jump, and clients are away for longer than is waited for.
// ctest: full timeout=150
#include "store_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void expect_text(const char *part) {
    if (strstr(why.message, part) == NULL) fail_msg("\"%s\" is not in: %s", part, why.message);
}
// ---- a disk that is full --------------------------------------------------------------------------------------------

static char disk[300]; // a small one of this process alone; empty: it may have none

static void write_file(const char *name, const char *text) {
    const int file = open(name, O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    if (write(file, text, strlen(text)) < 0) perror(name);
    close(file);
}

static char self[300];

// Before there are threads.
static void make_disk(void) {
    char map[64];
    snprintf(map, sizeof map, "0 %u 1\n", (unsigned)getuid());
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return;
        write_file("/proc/self/uid_map", map);
    }
    snprintf(disk, sizeof disk, "%s/disk", folder);
    if (mkdir(disk, 0700) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", disk, "tmpfs", 0, "size=24m") != 0)
        disk[0] = '\0';
}

static void fill_disk(void) {
    char name[400];
    static const char zeros[4096];
    snprintf(name, sizeof name, "%s/ballast", disk);
    const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    while (write(file, zeros, sizeof zeros) > 0) {
    }
    assert_int_equal(errno, ENOSPC);
    close(file);
}
static void empty_disk(void) {
    char name[400];
    snprintf(name, sizeof name, "%s/ballast", disk);
    assert_int_equal(unlink(name), 0);
}

static muster_store_op large_set(const char *key) {
    static char value[256 << 10];
    memset(value, 'v', sizeof value);
    muster_store_op made = op(MUSTER_STORE_SET, key);
    made.value = value;
    made.value_bytes = sizeof value;
    return made;
}

static int write_until_refused(client *c) {
    for (int written = 0;; written++) {
        char key[32];
        snprintf(key, sizeof key, "large/%d", written);
        const muster_status status = ask(c, large_set(key), 30 * SECOND);
        if (status == MUSTER_OK) continue;
        if (status != MUSTER_E_LIMIT) fail_msg("%d: %s", status, why.message);
        return written;
    }
}
static int64_t count_large(client *c) {
    const muster_store_op count = op(MUSTER_STORE_COUNT, "large/");
    muster_store_result *result;
    muster_store_entry entry;
    if (muster_store_do(c->store, &count, 1, 30 * SECOND, &result, &why) != MUSTER_OK) fail_msg("%s", why.message);
    assert_int_equal(muster_store_result_entry(result, 0, &entry), MUSTER_OK);
    muster_store_result_release(result);
    return entry.number;
}

static void test_a_full_disk(void **state) {
    (void)state;
    if (disk[0] == '\0') skip();
    char data[400];
    snprintf(data, sizeof data, "%s/data", disk);
    program server = start_server("--listen", "tcp://127.0.0.1:0", "--data-dir", data, NULL);
    await_ready(&server);
    char url[300];
    snprintf(url, sizeof url, "%s", server.url);
    client c = open_client(url);
    must(&c, number(MUSTER_STORE_ADD, "n", 1));
    fill_disk();
    const int written = write_until_refused(&c);
    expect_text("set \"large/");
    expect_text("no space left on device");
    expect_text(data);
    int64_t n = 1;
    muster_status status; // there may be room for what is small
    while ((status = ask(&c, number(MUSTER_STORE_ADD, "n", 1), 30 * SECOND)) == MUSTER_OK) n++;
    assert_int_equal(status, MUSTER_E_LIMIT);
    for (int i = 0; i < 300; i++) { // refused requests are not applied, and have no effect on others
        assert_int_equal(ask(&c, number(MUSTER_STORE_ADD, "n", 1), 30 * SECOND), MUSTER_E_LIMIT);
        assert_int_equal(number_at(&c, "n"), n);
    }
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, 60 * SECOND, 0, 30 * SECOND, &lease, &why), MUSTER_E_LIMIT);
    for (int i = 0; i < 20; i++) { // a client that connects now may read
        client late = open_client(url);
        assert_int_equal(number_at(&late, "n"), n);
        close_client(&late);
    }
    end_program(&server, SIGKILL);
    server = start_server("--listen", url, "--data-dir", data, NULL);
    await_ready(&server);
    assert_int_equal(number_at(&c, "n"), n);
    assert_int_equal(count_large(&c), written);
    fill_disk(); // what the server had set aside
    write_until_refused(&c);
    empty_disk();
    const int64_t until = now() + 30 * SECOND;
    while ((status = ask(&c, number(MUSTER_STORE_ADD, "n", 1), 30 * SECOND)) == MUSTER_E_LIMIT && now() < until) {
    } // the first that are refused make it look
    if (status != MUSTER_OK) fail_msg("%s", why.message);
    const int64_t in_the_end = count_large(&c);
    end_program(&server, SIGKILL);
    server = start_server("--listen", url, "--data-dir", data, NULL);
    await_ready(&server);
    assert_int_equal(number_at(&c, "n"), n + 1);
    assert_int_equal(count_large(&c), in_the_end);
    close_client(&c);
    assert_int_equal(end_program(&server, SIGTERM).value, 0);
}

// ---- a server that stands still -------------------------------------------------------------------------------------

static void test_texts_of_what_a_stopped_server_was_asked(void **state) {
    (void)state;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    client c = open_client(server.url);
    must(&c, set("k", "1"));
    stop_program(&server);
    static const struct {
        uint32_t kind;
        const char *name;
        bool doubt;
    } asked[] = {{MUSTER_STORE_ADD, "add to \"k\"", true}, {MUSTER_STORE_READ, "read \"k\"", false}};
    for (size_t i = 0; i < 2; i++) {
        const muster_status wanted = asked[i].doubt ? MUSTER_E_PEER : MUSTER_TIMEOUT;
        assert_int_equal(ask(&c, number(asked[i].kind, "k", asked[i].doubt), 100 * MILLISECOND), wanted);
        expect_text(asked[i].name);
        expect_text(server.url);
        expect_text(asked[i].doubt ? "has not answered within 0.1" : "no answer after 0.1");
        assert_int_equal(strstr(why.message, "it may have been applied") != NULL, asked[i].doubt);
    }
    begin(&c, op(MUSTER_STORE_GET, "later"), 1);
    assert_int_equal(muster_process_kill(server.process, SIGCONT), MUSTER_OK);
    must(&c, set("later", "1"));
    assert_int_equal(take(&c).status, MUSTER_OK);
    const int64_t k = number_at(&c, "k");
    assert_true(k == 1 || k == 2);
    close_client(&c);
    end_program(&server, SIGTERM);
}

// ---- a client that is away for too long -----------------------------------------------------------------------------

// Forwards bytes between one client and a server, until it is told otherwise.
typedef struct middle {
    int port, to, door, orders[2];
    pthread_t thread;
} middle;
enum { lose_answers = 'l', part = 'p', meet = 'm', end = 'e' };

static int dial(int port) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}
static bool pass(int from, int to) {
    char piece[65536];
    const ssize_t n = recv(from, piece, sizeof piece, 0);
    if (n <= 0) return false;
    return to < 0 || send(to, piece, (size_t)n, MSG_NOSIGNAL) == n;
}
static void *be_in_the_middle(void *argument) {
    middle *m = argument;
    int near = -1, far = -1;
    bool apart = false, deaf = false;
    for (;;) {
        struct pollfd waiting[] = {{m->orders[0], POLLIN, 0},
                                   {near < 0 && !apart ? m->door : -1, POLLIN, 0},
                                   {near, POLLIN, 0},
                                   {far, POLLIN, 0}};
        poll(waiting, 4, -1);
        char order = 0;
        bool cut = false;
        if (waiting[0].revents && read(m->orders[0], &order, 1) == 1) {
            deaf = deaf || order == lose_answers;
            cut = order == part || order == end;
            if (cut) apart = true;
            if (order == meet) apart = deaf = false;
        }
        if (waiting[1].revents && !apart) {
            near = accept4(m->door, NULL, NULL, SOCK_CLOEXEC);
            far = dial(m->to);
        }
        if (waiting[2].revents && !pass(near, far)) cut = true;
        if (waiting[3].revents && !pass(far, deaf ? -1 : near)) cut = true;
        if (cut && near >= 0) {
            close(near);
            close(far);
            near = far = -1;
        }
        if (order == end) return NULL;
    }
}
static void start_middle(middle *m, int to) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    m->to = to;
    m->door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(m->door, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(m->door, 8), 0);
    assert_int_equal(getsockname(m->door, (struct sockaddr *)&at, &size), 0);
    m->port = ntohs(at.sin_port);
    assert_int_equal(pipe2(m->orders, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&m->thread, NULL, be_in_the_middle, m), 0);
}
static void tell(middle *m, char order) {
    assert_int_equal(write(m->orders[1], &order, 1), 1);
}

static void test_a_session_that_has_ended(void **state) {
    (void)state;
    muster_store_server_config config = {.struct_size = sizeof config, .session_ns = SECOND};
    muster_store_server *server;
    muster_store_server_stats stats;
    char url[100];
    size_t size;
    assert_int_equal(muster_store_server_open(starter, "tcp://127.0.0.1:0", 17, &config, &server, &why), MUSTER_OK);
    assert_int_equal(muster_store_server_address(server, url, sizeof url, &size), MUSTER_OK);
    middle between;
    start_middle(&between, atoi(strrchr(url, ':') + 1));
    client direct = open_client(url);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", between.port);
    client c = open_client(url);
    muster_lease *lease;
    assert_int_equal(muster_store_lease(c.store, SECOND, MUSTER_LEASE_MANUAL, SECOND * 10, &lease, &why), MUSTER_OK);
    muster_store_op kept = set("kept", "1");
    kept.lease = muster_lease_id(lease);
    must(&c, kept);
    must(&c, number(MUSTER_STORE_ADD, "n", 1));
    tell(&between, lose_answers);
    begin(&c, number(MUSTER_STORE_ADD, "n", 1), 1);
    while (number_at(&direct, "n") != 2) { // applied, and the client does not receive the answer
    }
    tell(&between, part);
    do { // it is forgotten, with its leases
        number_at(&direct, "n");
        assert_int_equal(muster_store_server_get_stats(server, &stats), MUSTER_OK);
    } while (stats.sessions != 1 || stats.leases != 0);
    begin(&c, op(MUSTER_STORE_GET, "later"), 2); // not sent: it is asked when they meet again
    tell(&between, meet);
    assert_int_equal(take(&c).status, MUSTER_E_PEER);
    expect_text("add to \"n\": the connection was lost for longer than the server remembers; it may have been applied");
    must(&c, set("later", "1"));
    assert_int_equal(take(&c).status, MUSTER_OK);
    assert_int_equal(number_at(&c, "n"), 2);
    assert_int_equal(number_at(&c, "kept"), -1);
    must(&c, number(MUSTER_STORE_ADD, "n", 1));
    assert_int_equal(number_at(&direct, "n"), 3);
    muster_lease_release(lease);
    close_client(&c);
    close_client(&direct);
    tell(&between, end);
    pthread_join(between.thread, NULL);
    close(between.door);
    close(between.orders[0]);
    close(between.orders[1]);
    assert_int_equal(muster_store_server_close(server, 10 * SECOND), MUSTER_OK);
    muster_store_server_release(server);
}

// ---- clocks that jump -----------------------------------------------------------------------------------------------

// A process of its own, like the server with a wall clock that is wrong in another way each time it is read.
static int live_by_a_wrong_clock(const char *url) {
    if (time(NULL) == time(NULL)) return puts("the clock does not jump") < 0 ? 4 : 3;
    client c = open_client(url);
    muster_lease *kept, *left;
    muster_store_op mine = set("kept", "1"), other = set("left", "1");
    const int64_t from = now(); // before either lease is there
    if (muster_store_lease(c.store, 400 * MILLISECOND, 0, 10 * SECOND, &kept, &why) != MUSTER_OK) return 5;
    if (muster_store_lease(c.store, 600 * MILLISECOND, MUSTER_LEASE_MANUAL, 10 * SECOND, &left, &why) != MUSTER_OK)
        return 6;
    mine.lease = muster_lease_id(kept);
    other.lease = muster_lease_id(left);
    if (ask(&c, mine, 10 * SECOND) != MUSTER_OK || ask(&c, other, 10 * SECOND) != MUSTER_OK) return 7;
    if (ask(&c, op(MUSTER_STORE_GET, "never"), 300 * MILLISECOND) != MUSTER_TIMEOUT) return 8;
    if (now() - from < 300 * MILLISECOND) return 9;
    const muster_store_op check = op(MUSTER_STORE_CHECK, "left");
    muster_store_result *result;
    if (muster_store_do(c.store, &check, 1, 10 * SECOND, &result, &why) != MUSTER_OK) return 10;
    muster_store_op watch = op(MUSTER_STORE_WATCH, "left");
    watch.version = muster_store_result_revision(result);
    muster_store_entry entry;
    if (muster_store_result_entry(result, 0, &entry) != MUSTER_OK) return 11;
    muster_store_result_release(result);
    if ((entry.flags & MUSTER_STORE_PRESENT) != 0 && ask(&c, watch, 30 * SECOND) != MUSTER_OK) return 12;
    if (now() - from < 600 * MILLISECOND) return 13; // not before its time
    if (number_at(&c, "left") != -1) return 14;
    if (ask(&c, op(MUSTER_STORE_GET, "never"), 800 * MILLISECOND) != MUSTER_TIMEOUT) return 15;
    if (number_at(&c, "kept") != 1) return 16; // kept for more than three times its length
    muster_lease_release(kept);
    muster_lease_release(left);
    close_client(&c);
    puts("fine");
    return 0;
}

static void test_wall_clocks_that_jump(void **state) {
    (void)state;
    const char *const jumping = getenv("MUSTER_JUMPING_CLOCK");
    if (jumping == NULL) skip();
    setenv("LD_PRELOAD", jumping, 1);
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    const char *const argv[] = {self, "clock", server.url, NULL};
    program other = start_program(argv);
    unsetenv("LD_PRELOAD");
    if (!await_line(&other, "fine")) fail_msg("it ended with %d: %s", end_program(&other, 0).value, other.line);
    assert_int_equal(end_program(&other, 0).value, 0);
    end_program(&server, SIGTERM);
}

int main(int argc, char **argv) {
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return 2; // in another mount namespace it may differ
    if (argc == 3 && strcmp(argv[1], "clock") == 0) return live_by_a_wrong_clock(argv[2]);
    if (argc == 2) cmocka_set_test_filter(argv[1]);
    if (!make_folder()) return 2;
    make_disk();
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_texts_of_what_a_stopped_server_was_asked),
        cmocka_unit_test(test_a_session_that_has_ended),
        cmocka_unit_test(test_wall_clocks_that_jump),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (disk[0] != '\0') umount2(disk, MNT_DETACH);
    return tear_down() ? failed : 2;
}
