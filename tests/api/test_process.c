// SPDX-License-Identifier: MIT
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
#include <limits.h>
#include <muster/process.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MUSTER_TSAN
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "die_after_fork=0";
} // children of a fork start threads here
#endif

static const int64_t ms = 1000000, second = 1000000000;

typedef struct fixture {
    uint32_t flags;
    muster_context *context;
    muster_queue *queue;
} fixture;

static fixture *set_up(void **state) {
    fixture *f = *state;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = f->flags;
    assert_int_equal(muster_context_create(&config, &f->context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f->context, NULL, &f->queue, NULL), MUSTER_OK);
    return f;
}

static void tear_down(fixture *f) {
    muster_queue_release(f->queue);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    muster_context_release(f->context);
}

static muster_process_config config_of(const char *const *argv) {
    muster_process_config config;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    return config;
}

static muster_process *start(fixture *f, const muster_process_config *config) {
    muster_process *process = NULL;
    muster_error error;
    if (muster_process_spawn(f->context, config, &process, &error) != MUSTER_OK) fail_msg("%s", error.message);
    assert_true(muster_process_pid(process) > 0);
    return process;
}

static muster_process *shell(fixture *f, const char *script) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    const muster_process_config config = config_of(argv);
    return start(f, &config);
}

static void expect_end(muster_process *process, int32_t kind, int32_t value) {
    muster_process_exit how = {0, 0};
    assert_int_equal(muster_process_wait(process, 20 * second, &how), MUSTER_OK);
    assert_int_equal(how.kind, kind);
    assert_int_equal(how.value, value);
    assert_int_equal(muster_process_wait(process, 0, NULL), MUSTER_OK); // as often as one likes
}

// What the child writes to its output, up to its end.
static void output_of(fixture *f, muster_process_config *config, char *text, size_t room) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    muster_process_fd fds[8] = {{ends[1], 1}};
    for (uint64_t i = 0; i < config->fd_count; i++) fds[1 + i] = config->fds[i];
    config->fds = fds;
    config->fd_count++;
    muster_process *process = start(f, config);
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while (used + 1 < room && (n = read(ends[0], text + used, room - 1 - used)) > 0) used += (size_t)n;
    text[used] = '\0';
    close(ends[0]);
    expect_end(process, MUSTER_PROCESS_EXITED, 0);
    muster_process_release(process);
}

static void test_exit_codes_and_signals_are_told(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exit 7");
    expect_end(process, MUSTER_PROCESS_EXITED, 7);
    muster_process_release(process);
    process = shell(f, "kill -USR1 $$");
    expect_end(process, MUSTER_PROCESS_KILLED, SIGUSR1);
    muster_process_release(process);
    tear_down(f);
}

static void test_wait_has_a_deadline(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exec sleep 1000");
    assert_int_equal(muster_process_wait(process, 0, NULL), MUSTER_AGAIN);
    assert_int_equal(muster_process_wait(process, 20 * ms, NULL), MUSTER_TIMEOUT);
    assert_int_equal(muster_process_kill(process, 0), MUSTER_OK);
    assert_int_equal(muster_process_kill(process, SIGKILL), MUSTER_OK);
    expect_end(process, MUSTER_PROCESS_KILLED, SIGKILL);
    assert_int_equal(muster_process_kill(process, SIGKILL), MUSTER_E_STALE);
    assert_int_equal(muster_process_kill(process, 0), MUSTER_E_STALE);
    muster_process_release(process);
    tear_down(f);
}

static void expect_completion(fixture *f, uint64_t tag, int32_t kind, int32_t value) {
    muster_completion entry;
    assert_int_equal(muster_queue_next(f->queue, 20 * second, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, MUSTER_DONE_EXIT);
    assert_int_equal(entry.status, MUSTER_OK);
    assert_int_equal(entry.tag, tag);
    assert_int_equal(entry.bytes, (uint64_t)kind << 32 | (uint32_t)value);
}

static void test_watch_completes_once(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "read never; exit 3");
    assert_int_equal(muster_process_watch(process, f->queue, 11), MUSTER_OK);
    assert_int_equal(muster_process_watch(process, f->queue, 12), MUSTER_E_BUSY);
    expect_completion(f, 11, MUSTER_PROCESS_EXITED, 3); // its input is /dev/null
    muster_completion entry;
    assert_int_equal(muster_queue_next(f->queue, 10 * ms, &entry, NULL), MUSTER_TIMEOUT);
    assert_int_equal(muster_process_watch(process, f->queue, 13), MUSTER_E_BUSY);
    muster_process_release(process);
    tear_down(f);
}

static void test_watch_of_one_that_has_ended_completes_at_once(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exit 4");
    expect_end(process, MUSTER_PROCESS_EXITED, 4);
    assert_int_equal(muster_process_watch(process, f->queue, 21), MUSTER_OK);
    expect_completion(f, 21, MUSTER_PROCESS_EXITED, 4);
    muster_process_release(process);
    tear_down(f);
}

static void test_watch_needs_a_slot(void **state) {
    fixture *f = set_up(state);
    muster_queue_config config;
    muster_config_init(&config, sizeof config);
    config.capacity = 1;
    muster_queue *small = NULL;
    assert_int_equal(muster_queue_create(f->context, &config, &small, NULL), MUSTER_OK);
    muster_process *process = shell(f, "exit 0");
    assert_int_equal(muster_queue_post(small, 0, 0), MUSTER_OK);
    assert_int_equal(muster_process_watch(process, small, 1), MUSTER_AGAIN);
    muster_completion entry;
    assert_int_equal(muster_queue_next(small, 0, &entry, NULL), MUSTER_OK);
    assert_int_equal(muster_process_watch(process, small, 1), MUSTER_OK);
    assert_int_equal(muster_queue_post(small, 0, 0), MUSTER_AGAIN); // the slot is taken
    assert_int_equal(muster_queue_next(small, 20 * second, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.tag, 1);
    muster_process_release(process);
    muster_queue_release(small);
    tear_down(f);
}

static void test_watch_of_a_closed_queue_is_refused(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exec sleep 1000");
    muster_queue_close(f->queue);
    assert_int_equal(muster_process_watch(process, f->queue, 1), MUSTER_E_CLOSED);
    assert_int_equal(muster_process_kill(process, SIGTERM), MUSTER_OK);
    expect_end(process, MUSTER_PROCESS_KILLED, SIGTERM);
    muster_process_release(process);
    tear_down(f);
}

static void test_closing_the_context_ends_a_watch(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exec sleep 1000");
    assert_int_equal(muster_process_watch(process, f->queue, 5), MUSTER_OK);
    assert_int_equal(muster_context_close(f->context, -1), MUSTER_OK);
    muster_completion entry;
    assert_int_equal(muster_queue_next(f->queue, 0, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.status, MUSTER_E_CLOSED);
    assert_int_equal(entry.tag, 5);
    assert_int_equal(muster_process_kill(process, SIGKILL), MUSTER_OK); // the handle is still good for that
    expect_end(process, MUSTER_PROCESS_KILLED, SIGKILL);
    muster_process_release(process);
    tear_down(f);
}

static void test_the_whole_group_is_killed(void **state) {
    fixture *f = set_up(state);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const char *const argv[] = {"sh", "-c", "sleep 1000 & echo x; wait", NULL};
    muster_process_config config = config_of(argv);
    const muster_process_fd out = {ends[1], 1};
    config.fds = &out;
    config.fd_count = 1;
    muster_process *process = start(f, &config);
    close(ends[1]);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 1); // the grandchild runs, and holds the other end too
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(muster_process_kill(process, SIGTERM), MUSTER_OK);
    expect_end(process, MUSTER_PROCESS_KILLED, SIGTERM);
    struct pollfd hang_up = {ends[0], 0, 0};
    assert_int_equal(poll(&hang_up, 1, 20000), 1);
    assert_true(hang_up.revents & POLLHUP);
    close(ends[0]);
    muster_process_release(process);
    tear_down(f);
}

static void test_failures_to_start_are_reported(void **state) {
    fixture *f = set_up(state);
    char text[] = "/tmp/muster-not-a-program-XXXXXX";
    close(mkstemp(text));
    const struct {
        const char *program, *directory, *word;
        muster_status status;
    } cases[] = {
        {"/no/such/program", NULL, "/no/such/program: no such file", MUSTER_E_NOT_FOUND},
        {"muster-no-such-program", NULL, "muster-no-such-program", MUSTER_E_NOT_FOUND},
        {"true", "/no/such/directory", "/no/such/directory", MUSTER_E_NOT_FOUND},
        {"true", "/etc/passwd", "not a directory", MUSTER_E_NOT_FOUND},
        {text, NULL, "permission denied", MUSTER_E_PERMISSION},
        {"/tmp", NULL, "permission denied", MUSTER_E_PERMISSION},
        {"", NULL, "argv", MUSTER_E_ARG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const argv[] = {cases[i].program, NULL};
        muster_process_config config = config_of(argv);
        config.directory = cases[i].directory;
        muster_process *process = (muster_process *)f;
        muster_error error;
        assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), cases[i].status);
        assert_null(process);
        if (!strstr(error.message, cases[i].word)) fail_msg("'%s' does not say '%s'", error.message, cases[i].word);
    }
    unlink(text);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); // no child is left
    assert_int_equal(errno, ECHILD);
    tear_down(f);
}

static void test_wrong_arguments_are_refused(void **state) {
    fixture *f = set_up(state);
    muster_process *process = NULL;
    muster_error error;
    const char *const argv[] = {"true", NULL};
    muster_process_config config = config_of(argv);
    assert_int_equal(muster_process_spawn(NULL, &config, &process, &error), MUSTER_E_ARG);
    assert_int_equal(muster_process_spawn(f->context, NULL, &process, &error), MUSTER_E_ARG);
    assert_int_equal(muster_process_spawn(f->context, &config, NULL, &error), MUSTER_E_ARG);
    config.flags = 1;
    assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), MUSTER_E_ARG);
    config = config_of(NULL);
    assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), MUSTER_E_ARG);
    config = config_of(argv);
    config.struct_size = 5;
    assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), MUSTER_E_ABI);

    const muster_process_fd wrong[][2] = {
        {{1, 1024}, {1, 1}}, {{1, -1}, {1, 1}}, {{-2, 5}, {1, 1}}, {{1, 5}, {2, 5}}, {{900, 5}, {1, 1}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        config = config_of(argv);
        config.fds = wrong[i];
        config.fd_count = 2;
        assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), MUSTER_E_ARG);
        assert_null(process);
    }
    config.fd_count = 65;
    assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), MUSTER_E_ARG);
    config.fds = NULL;
    config.fd_count = 1;
    assert_int_equal(muster_process_spawn(f->context, &config, &process, &error), MUSTER_E_ARG);

    assert_int_equal(muster_process_pid(NULL), 0);
    assert_int_equal(muster_process_wait(NULL, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_process_watch(NULL, f->queue, 0), MUSTER_E_ARG);
    assert_int_equal(muster_process_kill(NULL, 1), MUSTER_E_ARG);
    process = shell(f, "exit 0");
    assert_int_equal(muster_process_watch(process, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_process_kill(process, 65), MUSTER_E_ARG);
    assert_int_equal(muster_process_kill(process, -1), MUSTER_E_ARG);
    muster_process_release(process);
    muster_process_release(NULL);
    tear_down(f);
}

static void test_directory_and_environment_are_the_childs(void **state) {
    fixture *f = set_up(state);
    const char *const argv[] = {"/bin/sh", "-c", "pwd; echo $FRUIT; echo ${HOME-none}", NULL};
    const char *const envp[] = {"FRUIT=pear", NULL};
    muster_process_config config = config_of(argv);
    config.directory = "/usr/share";
    config.envp = envp;
    char text[256];
    output_of(f, &config, text, sizeof text);
    assert_string_equal(text, "/usr/share\npear\nnone\n");
    tear_down(f);
}

// Two descriptors that trade places: each would overwrite the other's source.
static void test_descriptors_may_trade_places(void **state) {
    fixture *f = set_up(state);
    char names[2][40] = {"/tmp/muster-first-XXXXXX", "/tmp/muster-second-XXXXXX"};
    int files[2];
    for (int i = 0; i < 2; i++) {
        files[i] = mkstemp(names[i]);
        assert_int_equal(write(files[i], i ? "second" : "first", 6 - !i), 6 - !i);
        lseek(files[i], 0, SEEK_SET);
    }
    const int low = dup2(files[0], 40), high = dup2(files[1], 41);
    const muster_process_fd fds[] = {{low, 41}, {high, 40}, {-1, 5}};
    const char *const argv[] = {"bash", "-c", "cat <&40; echo; cat <&41; echo; cat <&5; readlink /proc/self/fd/5",
                                NULL};
    muster_process_config config = config_of(argv);
    config.fds = fds;
    config.fd_count = 3;
    char text[256];
    output_of(f, &config, text, sizeof text);
    assert_string_equal(text, "second\nfirst\n/dev/null\n");
    for (int i = 0; i < 2; i++) {
        close(files[i]);
        close(40 + i);
        unlink(names[i]);
    }
    tear_down(f);
}

static void test_only_named_descriptors_are_inherited(void **state) {
    fixture *f = set_up(state);
    const int leaks[] = {fcntl(0, F_DUPFD, 30), fcntl(0, F_DUPFD, 300)}; // as a careless host would have them
    const muster_process_fd named = {-1, 60};
    // bash itself lists its descriptors: no other program, no pipe in between.
    const char *const argv[] = {"bash", "-c", "cd /proc/$$/fd; for f in *; do [ -e $f ] && echo -n \"$f \"; done",
                                NULL};
    muster_process_config config = config_of(argv);
    config.fds = &named;
    config.fd_count = 1;
    char text[256];
    output_of(f, &config, text, sizeof text);
    // 255 is bash's own, where it has one.
    char *own = strstr(text, "255 ");
    if (own) *own = '\0';
    assert_string_equal(text, "0 1 2 60 ");
    for (int i = 0; i < 2; i++) close(leaks[i]);
    tear_down(f);
}

static void test_signals_start_afresh_in_the_child(void **state) {
    fixture *f = set_up(state);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    void (*old_pipe)(int) = signal(SIGPIPE, SIG_IGN), (*old_usr)(int) = signal(SIGUSR2, SIG_IGN);
    const char *const argv[] = {"cat", "/proc/self/status", NULL};
    muster_process_config config = config_of(argv);
    char text[4096];
    output_of(f, &config, text, sizeof text);
    signal(SIGPIPE, old_pipe);
    signal(SIGUSR2, old_usr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    const char *const names[] = {"SigBlk:", "SigIgn:", "SigCgt:"};
    const uint64_t internal = UINT64_C(3) << 31; // 32 and 33 are the C library's own; its posix_spawn ignores them
    for (int i = 0; i < 3; i++) {
        const char *line = strstr(text, names[i]);
        assert_non_null(line);
        assert_int_equal(strtoull(line + 7, NULL, 16) & ~internal, 0);
    }
    tear_down(f);
}

static void test_the_child_leads_a_group_of_its_own(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exec sleep 1000");
    assert_int_equal(getpgid(muster_process_pid(process)), muster_process_pid(process));
    assert_int_not_equal(getpgid(0), muster_process_pid(process));
    muster_process_kill(process, SIGKILL);
    expect_end(process, MUSTER_PROCESS_KILLED, SIGKILL);
    muster_process_release(process);
    tear_down(f);
}

static void test_a_released_child_is_reaped_all_the_same(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "sleep 0.05");
    const int32_t pid = muster_process_pid(process);
    muster_process_release(process);
    for (int i = 0; kill(pid, 0) == 0; i++) { // a zombie would stay
        if (f->flags) muster_context_progress(f->context, 10 * ms);
        assert_true(i < 100000);
        usleep(1000);
    }
    assert_int_equal(errno, ESRCH);
    tear_down(f);
}

static void *wait_for_end(void *process) {
    muster_process_exit how = {0, 0};
    const muster_status status = muster_process_wait(process, 20 * second, &how);
    return (void *)(intptr_t)(status == MUSTER_OK ? how.value : -1);
}

static void test_many_threads_may_wait(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exec sleep 1000");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, wait_for_end, process);
    assert_int_equal(muster_process_watch(process, f->queue, 1), MUSTER_OK);
    assert_int_equal(muster_process_kill(process, SIGINT), MUSTER_OK);
    expect_completion(f, 1, MUSTER_PROCESS_KILLED, SIGINT);
    for (int i = 0; i < 4; i++) {
        void *value;
        pthread_join(threads[i], &value);
        assert_int_equal((intptr_t)value, SIGINT);
    }
    muster_process_release(process);
    tear_down(f);
}

static void test_a_fork_is_told(void **state) {
    fixture *f = set_up(state);
    muster_process *process = shell(f, "exec sleep 1000");
    const pid_t child = fork();
    if (child == 0) {
        int wrong = muster_process_pid(process) != 0;
        wrong |= muster_process_wait(process, 0, NULL) != MUSTER_E_FORKED;
        wrong |= muster_process_watch(process, f->queue, 0) != MUSTER_E_FORKED;
        wrong |= muster_process_kill(process, SIGKILL) != MUSTER_E_FORKED;
        muster_process *late;
        const char *const argv[] = {"true", NULL};
        const muster_process_config config = config_of(argv);
        wrong |= muster_process_spawn(f->context, &config, &late, NULL) != MUSTER_E_FORKED;
        wrong |= muster_process_exit_with(f->context, getppid(), 0, NULL) != MUSTER_E_FORKED;
        muster_process_release(process);
        _exit(wrong);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_int_equal(muster_process_kill(process, SIGKILL), MUSTER_OK);
    expect_end(process, MUSTER_PROCESS_KILLED, SIGKILL);
    muster_process_release(process);
    tear_down(f);
}

// A worker that never looks: it ends by SIGTERM, or by SIGKILL when it ignores that.
static void expect_worker_end(int ignore, int by) {
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t master = fork();
    if (master == 0) {
        char byte;
        close(ready[1]);
        _exit(read(ready[0], &byte, 1) == 1 ? 0 : 1);
    }
    const pid_t worker = fork();
    if (worker == 0) {
        close(ready[0]);
        if (ignore) signal(SIGTERM, SIG_IGN);
        muster_context *context;
        if (muster_context_create(NULL, &context, NULL) != MUSTER_OK) _exit(90);
        if (muster_process_exit_with(context, master, 50 * ms, NULL) != MUSTER_OK) _exit(91);
        if (write(ready[1], "", 1) != 1) _exit(92);
        for (volatile long i = 0;; i++) {
        }
    }
    close(ready[0]);
    close(ready[1]);
    int how;
    assert_int_equal(waitpid(master, &how, 0), master);
    assert_int_equal(how, 0);
    assert_int_equal(waitpid(worker, &how, 0), worker);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), by);
}

static void test_a_computing_worker_ends_with_its_master(void **state) {
    (void)state;
    expect_worker_end(0, SIGTERM);
    expect_worker_end(1, SIGKILL);
}

static muster_context *context_of_worker;
static void *receive_sigterm(void *unused) {
    sigset_t terminated;
    sigemptyset(&terminated);
    sigaddset(&terminated, SIGTERM);
    int signal;
    sigwait(&terminated, &signal);
    muster_context_close(context_of_worker, 10 * second);
    muster_context_release(context_of_worker);
    for (;;) pause();
    return unused;
}
// As a language runtime that ends its context on the way out, and then hangs.
static void test_a_worker_that_hangs_after_its_context_was_closed_ends_with_its_master(void **state) {
    (void)state;
    const pid_t master = fork();
    if (master == 0)
        for (;;) pause();
    const pid_t worker = fork();
    if (worker == 0) {
        sigset_t terminated;
        sigemptyset(&terminated);
        sigaddset(&terminated, SIGTERM);
        sigprocmask(SIG_BLOCK, &terminated, NULL);
        pthread_t thread;
        alarm(20);
        if (muster_context_create(NULL, &context_of_worker, NULL) != MUSTER_OK) _exit(90);
        if (muster_process_exit_with(context_of_worker, master, 100 * ms, NULL) != MUSTER_OK) _exit(91);
        if (pthread_create(&thread, NULL, receive_sigterm, NULL) != 0) _exit(92);
        kill(master, SIGKILL);
        for (;;) pause();
    }
    int how;
    assert_int_equal(waitpid(master, NULL, 0), master);
    assert_int_equal(waitpid(worker, &how, 0), worker);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGKILL);
}

static void test_exit_with_one_that_has_ended_ends_at_once(void **state) {
    (void)state;
    const pid_t gone = fork();
    if (gone == 0) _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    const pid_t worker = fork();
    if (worker == 0) {
        muster_context *context;
        if (muster_context_create(NULL, &context, NULL) != MUSTER_OK) _exit(90);
        if (muster_process_exit_with(context, gone, 0, NULL) != MUSTER_OK) _exit(91);
        for (;;) pause();
    }
    int how;
    assert_int_equal(waitpid(worker, &how, 0), worker);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGTERM);
}

static void test_exit_with_refuses_what_cannot_be(void **state) {
    fixture *f = set_up(state);
    muster_error error;
    const muster_status wrong = f->flags ? MUSTER_E_UNSUPPORTED : MUSTER_E_ARG;
    assert_int_equal(muster_process_exit_with(NULL, 1, 0, &error), MUSTER_E_ARG);
    assert_int_equal(muster_process_exit_with(f->context, 0, 0, &error), wrong);
    assert_int_equal(muster_process_exit_with(f->context, -4, 0, &error), wrong);
    assert_int_equal(muster_process_exit_with(f->context, getpid(), 0, &error), wrong);
    assert_int_equal(muster_process_exit_with(f->context, 1, -1, &error), wrong);
    assert_int_equal(muster_process_exit_with(f->context, 1, 0, &error), f->flags ? MUSTER_E_UNSUPPORTED : MUSTER_OK);
    muster_context_close(f->context, 0);
    assert_int_equal(muster_process_exit_with(f->context, 1, 0, &error), MUSTER_E_CLOSED);
    tear_down(f);
}

#define both(test)                                                                                                     \
    {#test " threaded", test, NULL, NULL, &threaded}, {                                                                \
#test " external", test, NULL, NULL, &external                                                                 \
    }

int main(void) {
    static fixture threaded = {0, NULL, NULL}, external = {MUSTER_CONTEXT_EXTERNAL, NULL, NULL};
    const struct CMUnitTest tests[] = {
        both(test_exit_codes_and_signals_are_told),
        both(test_wait_has_a_deadline),
        both(test_watch_completes_once),
        both(test_watch_of_one_that_has_ended_completes_at_once),
        both(test_watch_needs_a_slot),
        both(test_watch_of_a_closed_queue_is_refused),
        both(test_closing_the_context_ends_a_watch),
        both(test_the_whole_group_is_killed),
        both(test_failures_to_start_are_reported),
        both(test_wrong_arguments_are_refused),
        both(test_directory_and_environment_are_the_childs),
        both(test_descriptors_may_trade_places),
        both(test_only_named_descriptors_are_inherited),
        both(test_signals_start_afresh_in_the_child),
        both(test_the_child_leads_a_group_of_its_own),
        both(test_a_released_child_is_reaped_all_the_same),
        both(test_many_threads_may_wait),
        both(test_a_fork_is_told),
        both(test_exit_with_refuses_what_cannot_be),
        cmocka_unit_test(test_a_computing_worker_ends_with_its_master),
        cmocka_unit_test(test_a_worker_that_hangs_after_its_context_was_closed_ends_with_its_master),
        cmocka_unit_test(test_exit_with_one_that_has_ended_ends_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
