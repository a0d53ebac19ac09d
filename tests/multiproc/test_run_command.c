// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// `muster run` as a program: what it says, how it ends, what it leaves behind; alone, and as several nodes over tcp, or
// over the store that is named on the command line: etcd://127.0.0.1:2379/.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <muster/process.h>
#include <muster/store_server.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define SECRET "0123456789abcdef0123456789abcdef"

static muster_context *context;
static char folder[64];

// `muster run` with what it has said so far, on both descriptors.
typedef struct command {
    muster_process *process;
    int output;
    char text[1 << 16];
    size_t used;
} command;

static void run(command *c, const char *const *arguments) {
    const char *argv[64] = {getenv("MUSTER_CLI"), "run"};
    for (size_t i = 0; arguments[i]; i++) argv[i + 2] = arguments[i];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const muster_process_fd fds[] = {{ends[1], 1}, {ends[1], 2}};
    muster_process_config config = {.struct_size = sizeof config, .argv = argv, .fds = fds, .fd_count = 2};
    muster_error error;
    memset(c, 0, sizeof *c);
    if (muster_process_spawn(context, &config, &c->process, &error) != MUSTER_OK) fail_msg("%s", error.message);
    close(ends[1]);
    c->output = ends[0];
}
#define RUN(c, ...) run(c, (const char *const[]){__VA_ARGS__, NULL})

// Reads on; false: it says no more.
static bool read_more(command *c) {
    struct pollfd one = {c->output, POLLIN, 0};
    if (poll(&one, 1, 60000) != 1) fail_msg("it says no more, and does not end:\n%s", c->text);
    const ssize_t n = read(c->output, c->text + c->used, sizeof c->text - 1 - c->used);
    assert_true(n >= 0);
    c->used += (size_t)n;
    c->text[c->used] = '\0';
    return n > 0;
}

static void await_text(command *c, const char *wanted) {
    while (!strstr(c->text, wanted))
        if (!read_more(c)) fail_msg("it does not say %s, but:\n%s", wanted, c->text);
}

static void forget_text(command *c) {
    c->used = 0;
    c->text[0] = '\0';
}

// Everything it says, and its exit status: 256 + n if a signal ended it.
static int end_of(command *c) {
    while (read_more(c)) continue;
    muster_process_exit how;
    assert_int_equal(muster_process_wait(c->process, 60 * SECOND, &how), MUSTER_OK);
    muster_process_release(c->process);
    close(c->output);
    return how.kind == MUSTER_PROCESS_EXITED ? how.value : 256 + how.value;
}

static void expect_end(command *c, int status) {
    const int got = end_of(c);
    if (got != status) fail_msg("exit status %d, not %d:\n%s", got, status, c->text);
}

static void expect_text(const command *c, const char *wanted) {
    if (!strstr(c->text, wanted)) fail_msg("it does not say %s, but:\n%s", wanted, c->text);
}

static bool gone(pid_t pid) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    const bool zombie = fgets(text, sizeof text, file) && strstr(text, ") Z ");
    fclose(file);
    return zombie;
}

static void await_gone(pid_t pid) { // not a child of this process
    for (int i = 0; i < 3000 && !gone(pid); i++) poll(NULL, 0, 10);
    if (!gone(pid)) fail_msg("worker %d lives on", (int)pid);
}

static pid_t pid_behind(const command *c, const char *word) {
    const char *const at = strstr(c->text, word);
    assert_non_null(at);
    const pid_t pid = atoi(at + strlen(word));
    assert_true(pid > 1);
    return pid;
}

static int set_up(void **state) {
    (void)state;
    const char *const tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/run-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    setenv("T", folder, 1);
    setenv("MUSTER_SECRET", SECRET, 1);
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(muster_context_close(context, -1), MUSTER_OK);
    muster_context_release(context);
    char text[128];
    snprintf(text, sizeof text, "rm -rf '%s'", folder);
    return system(text);
}

// Options, variables and programs as torchrun takes them.
static void test_command_lines_of_torchrun(void **state) {
    (void)state;
    char script[128], expected[64];
    snprintf(script, sizeof script, "%s/worker.py", folder);
    FILE *const file = fopen(script, "w"); // not executable: Python runs it
    assert_non_null(file);
    fputs("import os, sys\n"
          "line = [os.environ[n] for n in ('RANK', 'WORLD_SIZE', 'OMP_NUM_THREADS')] + sys.argv[1:]\n"
          "os.write(1, (' '.join(['worker', *line, '.']) + '\\n').encode())\n",
          file);
    assert_int_equal(fclose(file), 0);
    unsetenv("OMP_NUM_THREADS");
    static command c;
    run(&c, (const char *[]){"--nproc_per_node=2", "--monitor-interval", "1", "--start_method=spawn", "--rdzv_backend",
                             "c10d", script, "--epochs", "3", NULL});
    expect_end(&c, 0);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(expected, sizeof expected, "worker %d 2 1 --epochs 3 .", rank);
        expect_text(&c, expected);
    }
    expect_text(&c, "--monitor-interval has no effect");
    setenv("PET_NPROC_PER_NODE", "3", 1);
    run(&c, (const char *[]){script, NULL});
    expect_end(&c, 0);
    expect_text(&c, "worker 2 3 1 .");
    setenv("PET_NPROC_PER_NODE", "many", 1);
    run(&c, (const char *[]){script, NULL});
    expect_end(&c, 2);
    expect_text(&c, "PET_NPROC_PER_NODE: many");
    unsetenv("PET_NPROC_PER_NODE");
    setenv("PYTHONPATH", folder, 1);
    run(&c, (const char *[]){"-m", "--nproc-per-node=2", "worker", NULL});
    expect_end(&c, 0);
    expect_text(&c, "worker 1 2 1 .");
    unsetenv("PYTHONPATH");
}

static void test_wrong_arguments_are_named(void **state) {
    (void)state;
    static const struct {
        const char *arguments[8]; // up to NULL
        const char *word;
    } wrong[] = {
        {{NULL}, "which program"},
        {{"--nproc-per-node", "3", NULL}, "which program"},
        {{"--nonsense", "true", NULL}, "--nonsense"},
        {{"--nproc-per-node", "0", "true", NULL}, "--nproc-per-node: 0 is no number from 1 to 1024"},
        {{"--nproc_per_node=many", "true", NULL}, "--nproc-per-node: many"},
        {{"--nnodes", "4:2", "true", NULL}, "--nnodes: 4:2: min is above max"},
        {{"--nnodes", "2:", "true", NULL}, "--nnodes: 2:"},
        {{"--nnodes", "2", "true", NULL}, "--rdzv is missing"},
        {{"--rdzv", "tcp://h:1", "true", NULL}, "--run-id is missing"},
        {{"--rdzv", "tcp://h:1", "--run-id", "j", "--standalone", "true", NULL}, "which of them"},
        {{"--rdzv", "static:", "--run-id", "j", "true", NULL}, "--node-rank is missing"},
        {{"--max-restarts", "-1", "true", NULL}, "--max-restarts: -1"},
        {{"--grace", "soon", "true", NULL}, "--grace: soon"},
        {{"--redirects", "out", "true", NULL}, "--log-dir is missing"},
        {{"--tee", "some", "true", NULL}, "--tee: some"},
        {{"--tee", "0:1,0:2", "true", NULL}, "worker 0 twice"},
        {{"--redirects", "0:1,err", "true", NULL}, "err is no rank:which"},
        {{"--log-dir", "/x", "--redirects", "0:3,2:1", "--nproc-per-node", "2", "true", NULL}, "no worker 2"},
        {{"--local-ranks-filter", "0,2", "--nproc-per-node", "2", "true", NULL}, "there is no worker 2"},
        {{"--local-ranks-filter", "0,", "true", NULL}, "is no local rank"},
        {{"--rdzv-backend=zeus", "--rdzv_endpoint=h:29400", "true", NULL}, "zeus is none of c10d"},
        {{"--rdzv-backend=c10d", "--nnodes=2", "true", NULL}, "--rdzv-endpoint is missing"},
        {{"--rdzv", "tcp://h:1", "--rdzv-endpoint", "h:1", "--run-id", "j", "true", NULL}, "which of them"},
        {{"-r", "some", "true", NULL}, "--redirects: some"},
        {{"--rdzv-conf", "join_timeout", "true", NULL}, "join_timeout is no key=value"},
        {{"--rdzv-conf", "join_timeout=5,last_call=3", "true", NULL}, "last_call: there is no such key"},
        {{"--rdzv_conf=keep_alive_max_attempt=0", "true", NULL}, "keep_alive_max_attempt: 0 is no number from 1"},
        {{"--rdzv-conf", "is_host=1", "true", NULL}, "the URL of --rdzv determines the store"},
        {{"--rdzv-conf", "close_timeout=soon", "true", NULL}, "close_timeout: soon"},
        {{"--no-such-thing", "true", NULL}, "no such option"},
        {{"--secret-file", "/nonexistent", "true", NULL}, "/nonexistent"},
        {{"--log", "loud", "true", NULL}, "--log: loud"},
        {{"--role", NULL}, "a value is missing: --role"},
        {{"--rdzv", "nothing://h", "--run-id", "j", "--join-timeout", "5", "true", NULL}, "nothing"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static command c;
        run(&c, wrong[i].arguments);
        const int status = end_of(&c);
        expect_text(&c, wrong[i].word);
        if (status != 2 && i + 1 < sizeof wrong / sizeof *wrong) fail_msg("case %zu: exit status %d", i, status);
        assert_int_not_equal(status, 0);
    }
    unsetenv("MUSTER_SECRET");
    command c;
    RUN(&c, "--rdzv", "tcp://127.0.0.1:29400", "--run-id", "j", "true");
    expect_end(&c, 2);
    expect_text(&c, "no secret");
    setenv("MUSTER_SECRET", SECRET, 1);
}

static void test_success_is_quiet(void **state) {
    (void)state;
    command c;
    RUN(&c, "--", "sh", "-c", "echo \"$0 $1\"", "--role", "x_y"); // everything after the program belongs to the program
    expect_end(&c, 0);
    assert_string_equal(c.text, "--role x_y\n");
    RUN(&c, "--nproc-per-node", "2", "--standalone", "sh", "-c", "[ $RANK = 1 ] && echo one");
    expect_end(&c, 1); // rank 0 fails
    RUN(&c, "--nproc-per-node", "2", "sh", "-c", "[ $RANK = 0 ] || echo one");
    expect_end(&c, 0);
    assert_string_equal(c.text, "[default1]: one\n");
}

// As torchrun has it: for all, or by local rank.
static void test_outputs_go_where_they_are_sent(void **state) {
    (void)state;
    command c;
    RUN(&c, "--nproc-per-node", "3", "--log-dir", folder, "--redirects", "0:1", "--tee=1:3", "sh", "-c",
        "echo out$RANK; echo err$RANK >&2");
    expect_end(&c, 0);
    static const char *const shown[] = {"[default0]: err0\n", "[default1]: out1\n", "[default1]: err1\n",
                                        "[default2]: out2\n", "[default2]: err2\n"};
    for (size_t i = 0; i < 5; i++) expect_text(&c, shown[i]);
    assert_int_equal(c.used, 5 * strlen(shown[0]));
    RUN(&c, "sh", "-c", "cd $T/*/attempt_0 && cat 0/stdout.log 1/stdout.log 1/stderr.log && ls 0/stderr.log 2/*.log");
    assert_int_not_equal(end_of(&c), 0); // there are none
    assert_int_equal(strncmp(c.text, "out0\nout1\nerr1\n", 15), 0);
}

// Of the others nothing is shown; their files are complete.
static void test_only_chosen_ranks_are_shown(void **state) {
    (void)state;
    char logs[128];
    snprintf(logs, sizeof logs, "%s/filtered", folder);
    command c;
    RUN(&c, "--nproc-per-node", "3", "--log-dir", logs, "--tee", "0:3,1:1", "--local_ranks_filter=1", "sh", "-c",
        "echo out$RANK; echo err$RANK >&2");
    expect_end(&c, 0);
    expect_text(&c, "[default1]: out1\n");
    expect_text(&c, "[default1]: err1\n");
    assert_int_equal(c.used, 2 * strlen("[default1]: out1\n"));
    RUN(&c, "sh", "-c", "cd $T/filtered/*/attempt_0 && cat 0/stdout.log 0/stderr.log 1/stdout.log");
    expect_end(&c, 0);
    assert_string_equal(c.text, "out0\nerr0\nout1\n");
}

// Each worker has one device, which is its device 0.
static void test_local_ranks_may_be_virtual(void **state) {
    (void)state;
    static const char *const script = "echo $LOCAL_RANK $CUDA_VISIBLE_DEVICES $MUSTER_LOCAL_RANK $LOCAL_WORLD_SIZE";
    command c;
    unsetenv("CUDA_VISIBLE_DEVICES");
    RUN(&c, "--nproc-per-node", "2", "--virtual-local-rank", "sh", "-c", script);
    expect_end(&c, 0);
    expect_text(&c, "[default0]: 0 0 0 2\n");
    expect_text(&c, "[default1]: 0 1 1 2\n");
    setenv("CUDA_VISIBLE_DEVICES", "7,GPU-5", 1);
    RUN(&c, "--nproc-per-node", "2", "--virtual_local_rank", "sh", "-c", script);
    expect_end(&c, 0);
    expect_text(&c, "[default0]: 0 7 0 2\n");
    expect_text(&c, "[default1]: 0 GPU-5 1 2\n");
    RUN(&c, "--nproc-per-node", "3", "--virtual-local-rank", "true");
    expect_end(&c, 2);
    expect_text(&c, "CUDA_VISIBLE_DEVICES names 2 devices, and there are 3 workers");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void test_the_first_failure_is_the_exit_status(void **state) {
    (void)state;
    command c;
    RUN(&c, "--nproc-per-node", "3", "--max-restarts", "1", "sh", "-c",
        "[ $RANK = 2 ] || exec sleep 1000; "
        "echo '{\"message\": \"no memory left\", \"timestamp\": 1000000000}' > $MUSTER_ERROR_FILE; exit 41");
    expect_end(&c, 41);
    expect_text(&c, "restart 1 of 1");
    expect_text(&c, "worker 2 (rank 2) failed with exit code 41: no memory left");
    expect_text(&c, "ended by   exit code 41");
    expect_text(&c, "\n2       2       failed     exit code 41");
    expect_text(&c, "\n0       0       stopped    signal 15 (SIGTERM)");
    RUN(&c, "sh", "-c", "kill -ABRT $$");
    expect_end(&c, 128 + SIGABRT);
    expect_text(&c, "signal 6 (SIGABRT)");
    RUN(&c, "/nonexistent/program");
    expect_end(&c, 1);
    expect_text(&c, "/nonexistent/program");
}

static void test_signals_stop_the_workers(void **state) {
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < 3; i++) {
        command c;
        RUN(&c, "--nproc-per-node", "2", "sh", "-c",
            "for s in TERM INT HUP; do trap \"echo got $s; exit 0\" $s; done; echo pid$RANK=$$; while :; do sleep "
            "0.02; done");
        await_text(&c, "pid0=");
        await_text(&c, "pid1=");
        await_text(&c, "\n");
        // To the command alone, as a batch system does it.
        assert_int_equal(kill(muster_process_pid(c.process), numbers[i]), 0);
        expect_end(&c, 128 + numbers[i]);
        char line[32];
        snprintf(line, sizeof line, "[default1]: got %s\n", sigabbrev_np(numbers[i]));
        expect_text(&c, line);
        assert_true(gone(pid_behind(&c, "pid1=")));
    }
}

static void test_a_second_interrupt_kills(void **state) {
    (void)state;
    command c;
    RUN(&c, "--nproc-per-node", "2", "--grace", "1000", "sh", "-c",
        "trap 'echo ignored' INT; echo pid$RANK=$$; while :; do sleep 0.02; done");
    await_text(&c, "pid0=");
    await_text(&c, "pid1=");
    const pid_t command_pid = muster_process_pid(c.process);
    assert_int_equal(kill(command_pid, SIGINT), 0);
    await_text(&c, "ignored");
    assert_int_equal(kill(command_pid, SIGINT), 0);
    expect_end(&c, 128 + SIGINT);
    assert_true(gone(pid_behind(&c, "pid0=")));
    assert_true(gone(pid_behind(&c, "pid1=")));
}

static void test_killed_it_leaves_nothing_behind(void **state) {
    (void)state;
    command c;
    // The guard is notified of a worker when the next one is started. Until then it finds it only by its environment.
    RUN(&c, "--nproc-per-node", "2", "sh", "-c",
        "setsid sleep 1000 & echo left$RANK=$! pid$RANK=$$; [ $RANK = 1 ] || exec env -i sleep 1000; exec sleep 1000");
    await_text(&c, "pid0=");
    await_text(&c, "pid1=");
    await_text(&c, "left1=");
    assert_int_equal(kill(muster_process_pid(c.process), SIGKILL), 0);
    expect_end(&c, 256 + SIGKILL);
    await_gone(pid_behind(&c, "pid0="));
    await_gone(pid_behind(&c, "pid1="));
    await_gone(pid_behind(&c, "left0="));
    await_gone(pid_behind(&c, "left1="));
}

static const char *given_store; // NULL: tests serve theirs

// A store that this process serves, and its URL; or a part of its own of the given one.
static muster_store_server *open_server(char *url, size_t room) {
    muster_store_server *server = NULL;
    muster_error error;
    if (given_store) {
        static int parts;
        snprintf(url, room, "%s%d", given_store, ++parts);
        return NULL;
    }
    static const char anywhere[] = "tcp://127.0.0.1:0";
    if (muster_store_server_open(context, anywhere, strlen(anywhere), NULL, &server, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    size_t bytes = 0;
    assert_int_equal(muster_store_server_address(server, url, room - 10, &bytes), MUSTER_OK);
    memcpy(url + bytes, strchr(url, '?') ? "&host=no" : "?host=no", 9);
    return server;
}

// At which no process listens now.
static int free_port(void) {
    const int held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(bind(held, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(held, (struct sockaddr *)&at, &size), 0);
    close(held);
    return ntohs(at.sin_port);
}

static void close_server(muster_store_server *server) {
    if (server) muster_store_server_close(server, SECOND);
    muster_store_server_release(server);
}

// How long it takes to notice a death: not at all where the store sees connections, and on etcd a lease has 2 s at
// least.
static const char *keep_alive(const char *served) {
    return given_store ? "0.7" : served;
}

#define RANKS "echo rank=$RANK/$WORLD_SIZE pid=$$; "
#define WAIT_FOR_GO "while ! [ -e $T/go ]; do sleep 0.02; done"

static void let_go(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/go", folder);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

// A job that grows and shrinks: a late node is let in, and one that is killed is done without.
static void test_nodes_come_and_die(void **state) {
    (void)state;
    char url[512];
    muster_store_server *server = open_server(url, sizeof url);
    static command first, second, third;
#define NODE(c)                                                                                                        \
    RUN(c, "--nnodes", "2:3", "--last-call", given_store ? "2" : "0.2", "--keep-alive", keep_alive("5"), "--rdzv",     \
        url, "--run-id", "grow", "sh", "-c", RANKS WAIT_FOR_GO)
    NODE(&first);
    await_text(&first, "1 of 2 to 3 nodes have joined");
    expect_text(&first, "1 missing");
    NODE(&second);
    await_text(&first, "/2 pid=");
    await_text(&second, "/2 pid=");
    NODE(&third);
    await_text(&first, "/3 pid=");
    await_text(&second, "/3 pid=");
    await_text(&third, "/3 pid=");
    const pid_t worker = pid_behind(&third, "pid=");
    forget_text(&first);
    forget_text(&second);
    assert_int_equal(muster_process_kill(third.process, SIGKILL), MUSTER_OK);
    expect_end(&third, 256 + SIGKILL);
    await_gone(worker);
    await_text(&first, "/2 pid=");
    await_text(&second, "/2 pid=");
    let_go();
    expect_end(&first, 0);
    expect_end(&second, 0);
    close_server(server);
}

// One node is done when the other, which is not, is killed: there is work left, and another round for it.
static void test_who_is_done_goes_on_for_one_that_died(void **state) {
    (void)state;
    char url[512];
    muster_store_server *server = open_server(url, sizeof url);
    static command nodes[2];
    for (int i = 0; i < 2; i++)
        RUN(&nodes[i], "--nnodes", "1:2", "--last-call", "2", "--keep-alive", keep_alive("5"), "--rdzv", url,
            "--run-id", "rest", "sh", "-c", RANKS "[ $RANK/$WORLD_SIZE = 0/2 ] || " WAIT_FOR_GO);
    for (int i = 0; i < 2; i++) await_text(&nodes[i], "/2 pid=");
    const int done = strstr(nodes[0].text, "rank=0/2 ") ? 0 : 1;
    await_gone(pid_behind(&nodes[done], "pid="));
    assert_int_equal(muster_process_kill(nodes[1 - done].process, SIGKILL), MUSTER_OK);
    await_text(&nodes[done], "rank=0/1 ");
    let_go();
    expect_end(&nodes[done], 0);
    expect_end(&nodes[1 - done], 256 + SIGKILL);
    close_server(server);
}

// A node that hangs is done without; when it goes on it learns that, and is let in again.
static void test_a_node_that_hangs_comes_back(void **state) {
    (void)state;
    char url[512];
    muster_store_server *server = open_server(url, sizeof url);
    static command nodes[2];
    char conf[128]; // the same in the words of torchrun
    snprintf(conf, sizeof conf, "join_timeout=60,last_call_timeout=2,keep_alive_interval=%s,keep_alive_max_attempt=3",
             keep_alive("0.2"));
    RUN(&nodes[0], "--nnodes", "1:2", "--last-call", "2", "--keep-alive", keep_alive("0.2"), "--rdzv", url, "--run-id",
        "hang", "sh", "-c", RANKS WAIT_FOR_GO);
    RUN(&nodes[1], "--nnodes", "1:2", "--rdzv-conf", conf, "--rdzv", url, "--run-id", "hang", "sh", "-c",
        RANKS WAIT_FOR_GO);
    for (int i = 0; i < 2; i++) await_text(&nodes[i], "/2 pid=");
    for (int i = 0; i < 2; i++) forget_text(&nodes[i]);
    const pid_t slow = muster_process_pid(nodes[1].process);
    assert_int_equal(kill(slow, SIGSTOP), 0);
    await_text(&nodes[0], "rank=0/1 ");
    forget_text(&nodes[0]);
    assert_int_equal(kill(slow, SIGCONT), 0);
    await_text(&nodes[1], "taken for dead");
    await_text(&nodes[0], "/2 pid=");
    await_text(&nodes[1], "/2 pid=");
    let_go();
    for (int i = 0; i < 2; i++) expect_end(&nodes[i], 0);
    close_server(server);
}

// The node that serves the store is killed and not restarted: the other waits for it, and ends with the reason.
static void test_a_lost_store_ends_the_job(void **state) {
    (void)state;
    char url[64];
    static command nodes[2];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", free_port());
    for (int i = 0; i < 2; i++) {
        RUN(&nodes[i], "--nnodes", "2", "--rdzv", url, "--run-id", "lost", "--join-timeout", "3", "sh", "-c",
            RANKS "exec sleep 1000");
        if (i == 0) await_text(&nodes[0], "1 missing"); // it serves
    }
    for (int i = 0; i < 2; i++) await_text(&nodes[i], "/2 pid=");
    assert_int_equal(muster_process_kill(nodes[0].process, SIGKILL), MUSTER_OK);
    expect_end(&nodes[0], 256 + SIGKILL);
    expect_end(&nodes[1], 1);
    expect_text(&nodes[1], "1 of at least 2 are there after 3."); // it has waited for the node to be restarted
    for (int i = 0; i < 2; i++) await_gone(pid_behind(&nodes[i], "pid="));
}

// Both nodes fail of the same cause at the same time, each in its own way: both agree on which was first.
static void test_all_nodes_end_with_one_status(void **state) {
    (void)state;
    char url[512], gate[128];
    muster_store_server *server = open_server(url, sizeof url);
    for (int round = 0; round < 5; round++) {
        static command nodes[2];
        char run_id[16];
        snprintf(run_id, sizeof run_id, "both%d", round);
        snprintf(gate, sizeof gate, "%s/%s", folder, run_id);
        assert_int_equal(mkfifo(gate, 0600), 0);
        const int held = open(gate, O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 2; i++)
            RUN(&nodes[i], "--nnodes", "2", "--rdzv", url, "--run-id", run_id, "sh", "-c",
                RANKS "read x < $T/$MUSTER_RUN_ID; exit $((20 + RANK))");
        for (int i = 0; i < 2; i++) await_text(&nodes[i], "/2 pid=");
        assert_int_equal(write(held, "\n\n", 2), 2); // a line for each
        const int first = end_of(&nodes[0]);
        assert_in_range(first, 20, 21);
        expect_end(&nodes[1], first);
        close(held);
    }
    close_server(server);
}

static void test_a_failure_ends_all_nodes_with_its_status(void **state) {
    (void)state;
    char url[512];
    muster_store_server *server = open_server(url, sizeof url);
    static command nodes[2];
    for (int i = 0; i < 2; i++)
        RUN(&nodes[i], "--nnodes", "2", "--nproc-per-node", "2", "--rdzv", url, "--run-id", "fail", "--max-restarts",
            "1", "sh", "-c", "[ $RANK = 3 ] && exit 17; exec sleep 1000");
    for (int i = 0; i < 2; i++) {
        expect_end(&nodes[i], 17);
        expect_text(&nodes[i], "(rank 3) failed with exit code 17");
    }
    // The run is over, and says so; it can be opened again.
    RUN(&nodes[0], "--nnodes", "2", "--rdzv", url, "--run-id", "fail", "true");
    expect_end(&nodes[0], 1);
    expect_text(&nodes[0], "job failed (17)");
    // Over etcd one that could not say good-bye in time is in until its lease of some seconds has run out.
    int left = -1;
    const time_t begin = time(NULL);
    while (left != 0 && time(NULL) - begin < 60) {
        RUN(&nodes[0], "--nnodes", "1", "--rdzv", url, "--run-id", "fail", "--reopen", "true");
        left = end_of(&nodes[0]);
        if (!given_store || !strstr(nodes[0].text, "while it has members")) break;
    }
    if (left != 0) fail_msg("exit status %d, not 0:\n%s", left, nodes[0].text);
    close_server(server);
}

// One of the nodes serves the store.
static void test_a_node_serves_the_store(void **state) {
    (void)state;
    char url[64];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", free_port());
    static command nodes[3];
    for (int i = 0; i < 3; i++)
        RUN(&nodes[i], "--nnodes", "3", "--nproc-per-node", "2", "--rdzv", url, "--run-id", "self", "sh", "-c", RANKS);
    bool seen[6] = {false};
    for (int i = 0; i < 3; i++) {
        expect_end(&nodes[i], 0);
        for (int rank = 0; rank < 6; rank++) {
            char text[32];
            snprintf(text, sizeof text, "rank=%d/6 ", rank);
            if (strstr(nodes[i].text, text)) {
                assert_false(seen[rank]);
                seen[rank] = true;
            }
        }
    }
    for (int rank = 0; rank < 6; rank++) assert_true(seen[rank]);
}

// The node that serves the store is killed: more than half are left, and make a world without it.
static void test_nodes_go_on_when_the_one_with_the_store_is_killed(void **state) {
    (void)state;
    char url[64];
    static command nodes[3];
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", free_port());
    for (int i = 0; i < 3; i++) {
        RUN(&nodes[i], "--nnodes", "2:3", "--last-call", "2", "--rdzv", url, "--run-id", "goes-on", "sh", "-c",
            RANKS WAIT_FOR_GO);
        if (i == 0) await_text(&nodes[0], "1 missing"); // it serves
    }
    for (int i = 0; i < 3; i++) await_text(&nodes[i], "/3 pid=");
    assert_int_equal(muster_process_kill(nodes[0].process, SIGKILL), MUSTER_OK);
    expect_end(&nodes[0], 256 + SIGKILL);
    for (int i = 1; i < 3; i++) await_text(&nodes[i], "/2 pid=");
    let_go();
    for (int i = 1; i < 3; i++) expect_end(&nodes[i], 0);
    for (int i = 1; i < 3; i++) expect_text(&nodes[i], "the process that kept the store is gone");
}

static void test_too_few_nodes_are_told(void **state) {
    (void)state;
    char url[512];
    muster_store_server *server = open_server(url, sizeof url);
    command c;
    RUN(&c, "--nnodes", "3", "--rdzv", url, "--run-id", "few", "--join-timeout", "0.3", "true");
    expect_end(&c, 1);
    expect_text(&c, "2 missing");
    close_server(server);
    // There is no other node at all.
    RUN(&c, "--nnodes", "3", "--rdzv", url, "--run-id", "few", "--join-timeout", "0.3", "true");
    expect_end(&c, 1);
    expect_text(&c, "127.0.0.1");
}

int main(int count, char **arguments) {
    if (count > 1 && strstr(arguments[1], "://")) given_store = arguments[1];
    if (count > 1 && !given_store) cmocka_set_test_filter(arguments[1]);
    if (!getenv("MUSTER_CLI")) {
        puts("MUSTER_CLI does not name the command");
        return 77;
    }
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(test_command_lines_of_torchrun),
        TEST(test_wrong_arguments_are_named),
        TEST(test_success_is_quiet),
        TEST(test_outputs_go_where_they_are_sent),
        TEST(test_only_chosen_ranks_are_shown),
        TEST(test_local_ranks_may_be_virtual),
        TEST(test_the_first_failure_is_the_exit_status),
        TEST(test_signals_stop_the_workers),
        TEST(test_a_second_interrupt_kills),
        TEST(test_killed_it_leaves_nothing_behind),
        TEST(test_nodes_come_and_die),
        TEST(test_who_is_done_goes_on_for_one_that_died),
        TEST(test_a_node_that_hangs_comes_back),
        TEST(test_a_lost_store_ends_the_job),
        TEST(test_all_nodes_end_with_one_status),
        TEST(test_a_failure_ends_all_nodes_with_its_status),
        TEST(test_a_node_serves_the_store),
        TEST(test_nodes_go_on_when_the_one_with_the_store_is_killed),
        TEST(test_too_few_nodes_are_told),
    };
    const struct CMUnitTest over_a_store[] = {
        TEST(test_nodes_come_and_die),
        TEST(test_who_is_done_goes_on_for_one_that_died),
        TEST(test_a_node_that_hangs_comes_back),
        TEST(test_all_nodes_end_with_one_status),
        TEST(test_a_failure_ends_all_nodes_with_its_status),
    };
    if (given_store) return cmocka_run_group_tests(over_a_store, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
