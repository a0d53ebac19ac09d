// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Hosts with signal habits of their own: SIGCHLD handled, ignored, or everything reaped; and whose threads take
// signals.
#include "guest.h"
#include "workout.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static muster_context *make(uint32_t flags) {
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    muster_context *context;
    EXPECT(muster_context_create(&config, &context, NULL), MUSTER_OK);
    return context;
}

static muster_process *start(muster_context *context, const char *script) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    muster_process_config config;
    muster_config_init(&config, sizeof config);
    config.argv = argv;
    muster_process *process;
    EXPECT(muster_process_spawn(context, &config, &process, NULL), MUSTER_OK);
    return process;
}

// Starts a child that ends by code 7 and learns of its end both ways. The code may be unknown, but nothing hangs.
static muster_process_exit end_of_child(muster_context *context) {
    muster_queue *queue;
    muster_completion entry;
    EXPECT(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    muster_process *process = start(context, "exit 7");
    EXPECT(muster_process_watch(process, queue, 1), MUSTER_OK);
    EXPECT(muster_queue_next(queue, 20 * SECOND, &entry, NULL), MUSTER_OK);
    muster_process_exit how;
    EXPECT(muster_process_wait(process, 20 * SECOND, &how), MUSTER_OK);
    CHECK(entry.kind == MUSTER_DONE_EXIT && entry.bytes == ((uint64_t)how.kind << 32 | (uint32_t)how.value));
    muster_process_release(process);
    muster_queue_release(queue);
    return how;
}

static atomic_int handled, reaped;

static void note(int signal) {
    (void)signal;
    atomic_fetch_add(&handled, 1);
}

static void reap_all(int signal) {
    const int saved = errno;
    note(signal);
    while (waitpid(-1, NULL, WNOHANG) > 0) atomic_fetch_add(&reaped, 1);
    errno = saved;
}

static void host_that_handles(void) {
    struct sigaction own = {.sa_handler = note, .sa_flags = SA_RESTART}, now;
    sigaction(SIGCHLD, &own, NULL);
    sigaction(SIGCHLD, NULL, &own); // with what the system adds
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        muster_context *context = make(flags);
        const pid_t hosts_own = fork();
        if (hosts_own == 0) _exit(5);
        const int before = atomic_load(&handled);
        for (int i = 0; i < 10; i++) {
            const muster_process_exit how = end_of_child(context);
            CHECK(how.kind == MUSTER_PROCESS_EXITED && how.value == 7);
        }
        int status; // the library does not take the host's children
        CHECK(waitpid(hosts_own, &status, 0) == hosts_own && WIFEXITED(status) && WEXITSTATUS(status) == 5);
        CHECK(waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD); // and leaves none of its own
        CHECK(atomic_load(&handled) > before);
        sigaction(SIGCHLD, NULL, &now);
        CHECK(now.sa_handler == note && now.sa_flags == own.sa_flags);
        EXPECT(muster_context_close(context, -1), MUSTER_OK);
        muster_context_release(context);
    }
}

static void host_that_reaps(void) {
    struct sigaction own = {.sa_handler = reap_all, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &own, NULL);
    muster_context *context = make(0);
    int lost = 0;
    for (int i = 0; i < 50; i++) {
        const muster_process_exit how = end_of_child(context);
        CHECK(how.kind == MUSTER_PROCESS_UNKNOWN || (how.kind == MUSTER_PROCESS_EXITED && how.value == 7));
        lost += how.kind == MUSTER_PROCESS_UNKNOWN;
    }
    CHECK(lost == atomic_load(&reaped)); // each child's code went to one of the two
    muster_process *process = start(context, "exec sleep 1000");
    EXPECT(muster_process_kill(process, SIGKILL), MUSTER_OK);
    EXPECT(muster_process_wait(process, 20 * SECOND, NULL), MUSTER_OK);
    EXPECT(muster_process_kill(process, SIGKILL), MUSTER_E_STALE);
    muster_process_release(process);
    muster_context_release(context);
}

static void expect_unknown(void) {
    muster_context *context = make(0);
    for (int i = 0; i < 10; i++) CHECK(end_of_child(context).kind == MUSTER_PROCESS_UNKNOWN);
    muster_process *process = start(context, "exec sleep 1000");
    EXPECT(muster_process_kill(process, 0), MUSTER_OK);
    EXPECT(muster_process_kill(process, SIGTERM), MUSTER_OK);
    EXPECT(muster_process_wait(process, 20 * SECOND, NULL), MUSTER_OK);
    muster_process_release(process);
    muster_context_release(context);
}

static void host_that_ignores(void) {
    signal(SIGCHLD, SIG_IGN);
    expect_unknown();
    struct sigaction now;
    sigaction(SIGCHLD, NULL, &now);
    CHECK(now.sa_handler == SIG_IGN);
}

static void host_that_wants_no_zombies(void) {
    struct sigaction own = {.sa_handler = note, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &own, NULL);
    expect_unknown();
}

static void no_disposition_changes(void) {
    struct sigaction before[65], after;
    sigset_t mask_before, mask_after;
    for (int s = 1; s <= 64; s++) sigaction(s, NULL, &before[s]);
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    const workout_api api = {
#define X(name) .name = name,
        WORKOUT_FUNCTIONS(X)
#undef X
    };
    workout(&api);
    for (int s = 1; s <= 64; s++) {
        if (sigaction(s, NULL, &after) != 0 || s == 32 || s == 33) continue; // the C library's own
        CHECK(after.sa_handler == before[s].sa_handler);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    for (int s = 1; s <= 64; s++) CHECK(sigismember(&mask_before, s) == sigismember(&mask_after, s));
}

// Threads of this process by the id of each, with what /proc says of their blocked signals.
static int each_thread(int (*visit)(pid_t id, const char *name, uint64_t blocked)) {
    int visited = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.') continue;
        char path[300], line[256], name[64] = "";
        unsigned long long blocked = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "re");
        if (!status) continue;
        while (fgets(line, sizeof line, status)) {
            sscanf(line, "Name:\t%63s", name);
            sscanf(line, "SigBlk:\t%llx", &blocked);
        }
        fclose(status);
        visited += visit(atoi(task->d_name), name, blocked);
    }
    closedir(tasks);
    return visited;
}

static int check_mask(pid_t id, const char *name, uint64_t blocked) {
    if (id == getpid() || strcmp(name, "muster") != 0) return 0;
    for (int s = 1; s <= 64; s++) {
        const int is_blocked = blocked >> (s - 1) & 1;
        const int is_fault =
            s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL || s == SIGTRAP || s == SIGABRT || s == SIGSYS;
        if (s == SIGKILL || s == SIGSTOP || s == 32 || s == 33) continue; // cannot be blocked
        if (is_blocked == is_fault)
            fprintf(stderr, "thread %d: signal %d is %sblocked\n", id, s, is_blocked ? "" : "not ");
        CHECK(is_blocked != is_fault);
    }
    return 1;
}

static void threads_block_what_is_the_hosts(void) {
    muster_context *one = make(0), *two = make(0);
    // A name lookup: that may start threads, too.
    muster_stream *stream;
    const char address[] = "tcp://localhost:9/";
    muster_transport_dial(one, address, strlen(address), NULL, 5 * SECOND, &stream, NULL);
    // The thread names itself a moment after it was started.
    for (int64_t end = guest_now_ns() + 20 * SECOND; each_thread(check_mask) < 2;) CHECK(guest_now_ns() < end);
    muster_context_release(one);
    muster_context_release(two);
}

static pid_t main_thread;

static void must_be_the_hosts_thread(int signal) {
    note(signal);
    if (syscall(SYS_gettid) != main_thread) _exit(95);
}

static void signals_reach_the_host(void) {
    main_thread = (pid_t)syscall(SYS_gettid);
    struct sigaction own = {.sa_handler = must_be_the_hosts_thread, .sa_flags = SA_RESTART};
    for (int s = SIGUSR1; s <= SIGUSR2; s += SIGUSR2 - SIGUSR1) sigaction(s, &own, NULL);
    sigaction(SIGALRM, &own, NULL);
    muster_context *context = make(0);
    for (int i = 0; i < 2000; i++) kill(getpid(), i % 2 ? SIGUSR1 : SIGUSR2);
    CHECK(atomic_load(&handled) >= 2000 / 64);
    EXPECT(muster_context_close(context, -1), MUSTER_OK);
    muster_context_release(context);
}

static void waits_go_on_after_a_signal(void) {
    struct sigaction own = {.sa_handler = note}; // without SA_RESTART: system calls end early
    sigaction(SIGALRM, &own, NULL);
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        muster_context *context = make(flags);
        muster_queue *queue;
        muster_completion entry;
        EXPECT(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
        muster_process *process = start(context, "exec sleep 1000");
        const struct itimerspec every = {{0, MS}, {0, MS}};
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
        timer_t timer;
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &every, NULL) == 0);
        const int64_t begin = guest_now_ns();
        EXPECT(muster_queue_next(queue, 100 * MS, &entry, NULL), MUSTER_TIMEOUT);
        EXPECT(muster_process_wait(process, 100 * MS, NULL), MUSTER_TIMEOUT);
        CHECK(guest_now_ns() - begin >= 200 * MS);
        timer_delete(timer);
        muster_process_kill(process, SIGKILL);
        muster_process_wait(process, -1, NULL);
        muster_process_release(process);
        muster_queue_release(queue);
        muster_context_release(context);
    }
    CHECK(atomic_load(&handled) > 10);
}

int main(void) {
    guest_run("a host that handles SIGCHLD keeps its handler and its children", host_that_handles, 0, 3);
    guest_run("a host that reaps everything costs exit codes, nothing else", host_that_reaps, 0, 3);
    guest_run("a host that ignores SIGCHLD costs exit codes, nothing else", host_that_ignores, 0, 3);
    guest_run("a host with SA_NOCLDWAIT costs exit codes, nothing else", host_that_wants_no_zombies, 0, 3);
    guest_run("no signal's disposition changes", no_disposition_changes, 0, 1);
    guest_run("library threads block asynchronous signals and no faults", threads_block_what_is_the_hosts, 0, 3);
    guest_run("signals reach the host's threads only", signals_reach_the_host, 0, 3);
    guest_run("waits go on after a signal", waits_go_on_after_a_signal, 0, 1);
    return guest_result();
}
