// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// `muster broker`: how it starts, says that it is ready, is stopped, killed and started again.
#include "star.h"

#include <dirent.h>
#include <fcntl.h>
#include <muster/process.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>

static muster_context *starter;

typedef struct program {
    muster_process *process;
    int out;
    char line[400];
} program;

static program start(const char *const *arguments) {
    const char *argv[24] = {getenv("MUSTER_CLI"), "broker"};
    int pipes[2];
    assert_non_null(argv[0]);
    for (int i = 0; arguments[i] != NULL; i++) argv[2 + i] = arguments[i];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    const muster_process_fd fds[] = {{pipes[1], 1}, {pipes[1], 2}};
    muster_process_config config = {.struct_size = sizeof config, .argv = argv, .fds = fds, .fd_count = 2};
    program p = {.out = pipes[0]};
    muster_error error = {0};
    if (muster_process_spawn(starter, &config, &p.process, &error) != MUSTER_OK) fail_msg("%s", error.message);
    close(pipes[1]);
    return p;
}

// The next line it prints that holds the word; its end if there is none.
static bool await_line(program *p, const char *word) {
    size_t size = 0;
    for (;;) {
        struct pollfd waiting = {p->out, POLLIN, 0};
        char c;
        if (poll(&waiting, 1, 20000) != 1) fail_msg("the broker says nothing of \"%s\"", word);
        if (read(p->out, &c, 1) != 1) return false;
        if (c != '\n') {
            if (size < sizeof p->line - 1) p->line[size++] = c;
            continue;
        }
        p->line[size] = '\0';
        if (strstr(p->line, word)) return true;
        size = 0;
    }
}

static program start_ready(const char *listen, char *out_address) {
    const char *const arguments[] = {"--listen", listen, "--log", "off", NULL};
    program p = start(arguments);
    if (!await_line(&p, "listening")) fail_msg("the broker does not start");
    snprintf(out_address, 512, "%s", p.line + strlen("listening "));
    return p;
}

static muster_process_exit stop(program *p, int number) {
    muster_process_exit how;
    if (number != 0) assert_int_equal(muster_process_kill(p->process, number), MUSTER_OK);
    assert_int_equal(muster_process_wait(p->process, 20 * SECOND, &how), MUSTER_OK);
    muster_process_release(p->process);
    close(p->out);
    return how;
}

static broker seen(const char *address) {
    broker b = {0};
    snprintf(b.place, sizeof b.place, "%.120s", address + strlen("zmq://"));
    b.place[strcspn(b.place, "/")] = '\0';
    return b;
}

static void test_it_tells_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *arguments[6];
        int code;
        const char *word;
    } wrong[] = {
        {{NULL}, 2, "--listen"},
        {{"--listen", "zmq://127.0.0.1:0/", "--nonsense", NULL}, 2, "--nonsense"},
        {{"--listen", "zmq://127.0.0.1:0/", "--window", "many", NULL}, 2, "many"},
        {{"--listen", "zmq://127.0.0.1:0/", "extra", NULL}, 2, "extra"},
        {{"--listen", "zmq://127.0.0.1:0/", "--secret-file", "/nonexistent", NULL}, 2, "/nonexistent"},
        {{"--listen", "nothing", NULL}, 1, "nothing"},
        {{"--listen", "zmq://127.0.0.1:0/", "--window", "3", NULL}, 1, "window_bytes"},
        {{"--listen", "zmq://192.0.2.1:8100/", NULL}, 1, "192.0.2.1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        program p = start(wrong[i].arguments);
        if (!await_line(&p, wrong[i].word)) fail_msg("case %zu does not speak of %s", i, wrong[i].word);
        const muster_process_exit how = stop(&p, 0);
        assert_int_equal(how.kind, MUSTER_PROCESS_EXITED);
        assert_int_equal(how.value, wrong[i].code);
    }
    unsetenv("MUSTER_SECRET");
    const char *const no_secret[] = {"--listen", "zmq://127.0.0.1:0/", NULL};
    program p = start(no_secret);
    assert_true(await_line(&p, "no secret"));
    assert_int_equal(stop(&p, 0).value, 2);
    setenv("MUSTER_SECRET", SECRET, 1);
}

static void test_it_is_ready_when_it_says_so_and_stops_in_order(void **state) {
    (void)state;
    char name[] = "/tmp/muster-secret-XXXXXX";
    const int file = mkstemp(name);
    assert_int_equal(write(file, SECRET "\n", strlen(SECRET) + 1), strlen(SECRET) + 1);
    close(file);
    static const int signals[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        unsetenv("MUSTER_SECRET");
        const char *const arguments[] = {"--listen", "tcp://127.0.0.1:0", "--secret-file", name, "--ready-fd",
                                         "1",        "--stats",           "3600",          NULL};
        program p = start(arguments);
        assert_true(await_line(&p, "listening zmq://127.0.0.1:"));
        const broker b = seen(p.line + strlen("listening "));
        assert_true(await_line(&p, "zmq://127.0.0.1:")); // by --ready-fd
        setenv("MUSTER_SECRET", SECRET, 1);
        member one = join_star(&b, "one", "/"), two = join_star(&b, NULL, "/");
        between s = connect_members(&one, &two);
        drop_between(&s);
        leave_star(&one);
        leave_star(&two);
        const muster_process_exit how = stop(&p, signals[i]);
        assert_int_equal(how.kind, MUSTER_PROCESS_EXITED);
        assert_int_equal(how.value, 0);
    }
    unlink(name);
}

// The line it prints is the address that members need; the same file gives the same key again.
static void test_a_broker_secret_by_file(void **state) {
    (void)state;
    char name[] = "/tmp/muster-broker-secret-XXXXXX", first[512];
    const int file = mkstemp(name);
    assert_int_equal(write(file, BROKER_SECRET "\n", strlen(BROKER_SECRET) + 1), strlen(BROKER_SECRET) + 1);
    const char *const arguments[] = {"--listen", "zmq://127.0.0.1:0/", "--broker-secret-file", name, NULL};
    for (int round = 0; round < 2; round++) {
        program p = start(arguments);
        assert_true(await_line(&p, "listening zmq://127.0.0.1:"));
        broker b = seen(p.line + strlen("listening "));
        const char *key = strstr(p.line, "/?broker=");
        assert_non_null(key);
        if (round == 0)
            snprintf(first, sizeof first, "%s", key);
        else
            assert_string_equal(key, first);
        snprintf(b.options, sizeof b.options, "%.100s", key + strlen("/?"));
        member one = join_star(&b, "one", "/"), two = join_star(&b, NULL, "/");
        between s = connect_members(&one, &two);
        drop_between(&s);
        leave_star(&one);
        leave_star(&two);
        assert_int_equal(stop(&p, SIGTERM).value, 0);
    }
    assert_int_equal(fchmod(file, 0644), 0);
    program p = start(arguments);
    assert_true(await_line(&p, "MUSTER_BROKER_SECRET_FILE"));
    assert_int_equal(stop(&p, 0).value, 1);
    close(file);
    unlink(name);
}

static void test_killed_and_started_again_its_members_come_back(void **state) {
    (void)state;
    char address[512], again[512];
    program p = start_ready("zmq://127.0.0.1:0/", address);
    const broker b = seen(address);
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
    for (int round = 0; round < 3; round++) {
        between s = connect_members(&two, &one);
        static unsigned char bytes[300000];
        size_t moved;
        muster_stream_write(s.near, bytes, sizeof bytes, 0, &moved); // on its way, or not
        assert_int_equal(stop(&p, SIGKILL).kind, MUSTER_PROCESS_KILLED);
        expect_lost(s.near, "broker");
        // Bytes that had arrived are read before the end is reported.
        muster_status status = MUSTER_OK;
        while (status == MUSTER_OK) status = muster_stream_read(s.far, bytes, sizeof bytes, 20 * SECOND, &moved);
        assert_int_equal(status, MUSTER_E_PEER);
        drop_between(&s);
        p = start_ready(address, again);
        assert_string_equal(again, address);
        muster_stream *stream = NULL;
        muster_error error = {0};
        if (try_dial(&two, one.address, 20 * SECOND, &stream, &error) != MUSTER_OK) fail_msg("%s", error.message);
        s = (between){stream, accept_one(&one)};
        transfer(s.near, s.far, 3000000);
        drop_between(&s);
    }
    leave_star(&one);
    leave_star(&two);
    assert_int_equal(stop(&p, SIGTERM).value, 0);
}

static void await_stopped(const program *p) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)muster_process_pid(p->process));
    while (strstr(text, ") T ") == NULL) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof text, file));
        fclose(file);
    }
}

// A broker that is stopped for a while is no broker that has died.
static void test_stopped_and_continued_nothing_is_lost(void **state) {
    (void)state;
    char address[512];
    program p = start_ready("zmq://127.0.0.1:0/", address);
    const broker b = seen(address);
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
    between s = connect_members(&two, &one);
    static unsigned char bytes[300000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = pattern(i);
    size_t moved = 0;
    assert_int_equal(muster_process_kill(p.process, SIGSTOP), MUSTER_OK);
    await_stopped(&p);
    assert_int_equal(muster_stream_write(s.near, bytes, sizeof bytes, 20 * SECOND, &moved), MUSTER_OK);
    assert_int_equal(read_one(s.far, 800 * MILLISECOND), MUSTER_TIMEOUT);
    assert_int_equal(muster_process_kill(p.process, SIGCONT), MUSTER_OK);
    read_all(s.far, sizeof bytes, 0);
    drop_between(&s);
    leave_star(&one);
    leave_star(&two);
    assert_int_equal(stop(&p, SIGTERM).value, 0);
}

// The limit under which a process can open so many descriptors more; it may have inherited one with a high number.
static rlim_t limit_with_room(pid_t process, int room) {
    char path[64];
    bool used[4096] = {false};
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const int number = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && number < 4096) used[number] = true;
    }
    closedir(folder);
    int limit = 0;
    for (int free_ones = 0; free_ones < room; limit++) free_ones += !used[limit];
    return (rlim_t)limit;
}

static double cpu_seconds(pid_t process) {
    clockid_t clock;
    struct timespec used;
    assert_int_equal(clock_getcpuclockid(process, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

// More connections than it may have descriptors: it reports that, pauses instead of trying again and again, serves its
// members, and accepts others again as soon as it can.
static void test_without_descriptors_it_rests(void **state) {
    (void)state;
#ifdef MUSTER_SANITIZED
    skip(); // UBSan needs a pipe to check pointers to virtual tables, and finds them invalid without descriptors
#endif
    const char *const arguments[] = {"--listen", "zmq://127.0.0.1:0/", "--log", "error", NULL};
    program p = start(arguments);
    assert_true(await_line(&p, "listening"));
    const broker b = seen(p.line + strlen("listening "));
    member one = join_star(&b, "one", "/?upgrade=no"), two = join_star(&b, NULL, "/?upgrade=no");
    between s = connect_members(&two, &one);
    const pid_t process = (pid_t)muster_process_pid(p.process);
    struct rlimit limit;
    assert_int_equal(prlimit(process, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = limit_with_room(process, 3);
    assert_int_equal(prlimit(process, RLIMIT_NOFILE, &limit, NULL), 0);
    enum { crowd = 20 };
    int others[crowd];
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    where.sin_port = htons((uint16_t)atoi(strrchr(b.place, ':') + 1));
    for (int i = 0; i < crowd; i++) {
        others[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(others[i], (struct sockaddr *)&where, sizeof where); // it may have been refused by now
    }
    assert_true(await_line(&p, "cannot be accepted"));
    const double begin = cpu_seconds(process);
    assert_int_equal(read_one(s.far, 2 * SECOND), MUSTER_TIMEOUT);
    const double used = cpu_seconds(process) - begin;
    if (used > 0.7) fail_msg("it used %.2f s of 2", used);
    transfer(s.near, s.far, 3000000);
    for (int i = 0; i < crowd; i++) close(others[i]);
    member late = {.context = make_context(0, SECRET)};
    char name[256];
    muster_error error = {0};
    snprintf(name, sizeof name, "zmq://late@%s/?upgrade=no", b.place);
    if (try_listen(&late, name, 20 * SECOND, &error) != MUSTER_OK) fail_msg("%s", error.message);
    between again = connect_members(&one, &late);
    drop_between(&again);
    drop_between(&s);
    leave_star(&late);
    leave_star(&one);
    leave_star(&two);
    assert_int_equal(stop(&p, SIGTERM).value, 0);
}

static int set_up(void **state) {
    need_zmq(state);
    setenv("MUSTER_SECRET", SECRET, 1);
    starter = make_context(0, SECRET);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    muster_context_release(starter);
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_it_tells_what_is_wrong),
    cmocka_unit_test(test_it_is_ready_when_it_says_so_and_stops_in_order),
    cmocka_unit_test(test_a_broker_secret_by_file),
    cmocka_unit_test(test_killed_and_started_again_its_members_come_back),
    cmocka_unit_test(test_stopped_and_continued_nothing_is_lost),
    cmocka_unit_test(test_without_descriptors_it_rests),
};

int main(void) {
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
