// SPDX-License-Identifier: MIT
// Members in processes of their own, which obey lines and tell of events; and the test's side of them.
#ifndef MUSTER_TESTS_RENDEZVOUS_MEMBERS_H
#define MUSTER_TESTS_RENDEZVOUS_MEMBERS_H

#include <muster/rendezvous.h>

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

extern char **environ;

// ---- the wall clock of this process, for the library too: it calls these
// ----------------------------------------------
static int64_t skew_s;

int clock_gettime(clockid_t clock, struct timespec *out) {
    const int status = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) out->tv_sec += skew_s;
    return status;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    out->tv_sec = t.tv_sec;
    out->tv_usec = t.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

// ---- a member: obeys lines, reports events
// ----------------------------------------------------------------------------

static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
#define SAY(...) (pthread_mutex_lock(&writing), printf(__VA_ARGS__), fflush(stdout), pthread_mutex_unlock(&writing))

static void *tell_events(void *member) {
    static const char *const names[] = {"?",       "joined",  "called",   "complete", "left", "dead",
                                        "waiting", "aborted", "expelled", "closed",   "lost"};
    muster_rendezvous_event event;
    while (muster_rendezvous_next_event(member, -1, &event) == MUSTER_OK)
        SAY("%s %u %u %llu %s\n", names[event.kind], event.rank == UINT32_MAX ? 0 : event.rank, event.count,
            (unsigned long long)event.round, event.text);
    return NULL;
}

static bool leads(muster_rendezvous *member) {
    muster_rendezvous_state state;
    return muster_rendezvous_get_state(member, &state) == MUSTER_OK && (state.flags & MUSTER_RENDEZVOUS_IS_LEADER) != 0;
}

// url, address, min, max, keep-alive in ms, skew in days; LAST_CALL_MS: the last call, else there is none
static int play(char **arguments) {
    muster_context *context;
    muster_rendezvous *member;
    muster_round *round = NULL;
    muster_round_info info;
    muster_store *view = NULL;
    muster_error error;
    pthread_t teller;
    char line[64];
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a failed test leaves no member, not even a stopped one
    skew_s = atoll(arguments[5]) * 86400;
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.run_id = "job";
    config.run_id_bytes = 3;
    config.url = arguments[0];
    config.url_bytes = strlen(arguments[0]);
    config.address = arguments[1];
    config.address_bytes = strlen(arguments[1]);
    config.min = (uint32_t)atoi(arguments[2]);
    config.max = (uint32_t)atoi(arguments[3]);
    config.keep_alive_ns = atoll(arguments[4]) * MILLISECOND;
    config.last_call_ns = getenv("LAST_CALL_MS") ? atoll(getenv("LAST_CALL_MS")) * MILLISECOND : -1;
    if (muster_context_create(NULL, &context, &error) != MUSTER_OK ||
        muster_rendezvous_open(context, &config, 20 * SECOND, &member, &error) != MUSTER_OK) {
        fprintf(stderr, "%s: %s\n", arguments[1], error.message);
        return 3;
    }
    pthread_create(&teller, NULL, tell_events, member);
    SAY("open\n");
    while (fgets(line, sizeof line, stdin)) {
        muster_status status = MUSTER_E_ARG;
        if (strcmp(line, "join\n") == 0) {
            muster_store_release(view);
            muster_round_release(round);
            view = NULL;
            status = muster_rendezvous_join(member, 60 * SECOND, &round, &error);
            if (status == MUSTER_OK) {
                muster_round_get_info(round, &info);
                muster_round_store(round, &view, NULL);
                SAY("in %llu %u %u %s\n", (unsigned long long)info.number, info.rank, info.world,
                    leads(member) ? "leads" : "follows");
                continue;
            }
        } else if (strcmp(line, "write\n") == 0) {
            const muster_store_op op = {
                .kind = MUSTER_STORE_SET, .key = "k", .key_bytes = 1, .value = arguments[1], .value_bytes = 1};
            status = muster_store_do(view, &op, 1, 20 * SECOND, NULL, &error);
        } else if (strcmp(line, "exiting?\n") == 0) {
            muster_rendezvous_state state = {0};
            muster_rendezvous_get_state(member, &state);
            SAY("exiting %u\n", state.exiting);
            continue;
        } else if (strcmp(line, "exit\n") == 0) {
            status = muster_rendezvous_exit(member, 60 * SECOND, &error);
        } else if (strcmp(line, "leave\n") == 0) {
            status = muster_rendezvous_leave(member, 60 * SECOND, &error);
        }
        if (status != MUSTER_OK)
            fprintf(stderr, "%s: %s", arguments[1], line), fprintf(stderr, "  %s\n", error.message);
        SAY("%.*s %s\n", (int)strcspn(line, "\n"), line, muster_status_name(status));
    }
    muster_store_release(view);
    muster_round_release(round);
    const muster_status status = muster_context_close(context, 10 * SECOND);
    pthread_join(teller, NULL);
    muster_rendezvous_release(member);
    muster_context_release(context);
    return status == MUSTER_OK ? 0 : 4;
}

// ---- the test's side of members

static const char *self;

typedef struct child {
    pid_t pid;
    int in, out;
    char text[4096]; // its output that was not taken yet
    size_t size;
    uint64_t round;
    uint32_t rank, world;
    bool leads;
} child;

static char url[256];

static void begin(child *who, const char *address, const char *min, const char *max, const char *keep_ms,
                  const char *days) {
    int in[2], out[2];
    memset(who, 0, sizeof *who);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    char *arguments[] = {(char *)self,    "play",       url, (char *)address, (char *)min, (char *)max,
                         (char *)keep_ms, (char *)days, NULL};
    assert_int_equal(posix_spawn(&who->pid, self, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    who->in = in[1];
    who->out = out[0];
}
static void say(child *who, const char *line) {
    assert_int_equal(write(who->in, line, strlen(line)), (ssize_t)strlen(line));
}
// Takes lines until one begins so. How long that took.
static int64_t hear(child *who, const char *begins, char *line, size_t room) {
    const int64_t begun = now();
    for (;;) {
        char *const end = memchr(who->text, '\n', who->size);
        if (end != NULL) {
            const size_t length = (size_t)(end - who->text);
            const bool found = strncmp(who->text, begins, strlen(begins)) == 0;
            snprintf(line, room, "%.*s", (int)length, who->text);
            memmove(who->text, end + 1, who->size -= length + 1);
            if (found) return now() - begun;
            continue;
        }
        struct pollfd ready = {who->out, POLLIN, 0};
        const int64_t left = begun + 60 * SECOND - now();
        if (left <= 0 || poll(&ready, 1, (int)(left / MILLISECOND) + 1) <= 0) fail_msg("no \"%s\" in time", begins);
        const ssize_t n = read(who->out, who->text + who->size, sizeof who->text - who->size);
        if (n <= 0) fail_msg("it ended before it said \"%s\"", begins);
        who->size += (size_t)n;
    }
}
static void is_in(child *who) {
    char line[64], role[16];
    unsigned long long round;
    hear(who, "in ", line, sizeof line);
    assert_int_equal(sscanf(line, "in %llu %u %u %15s", &round, &who->rank, &who->world, role), 4);
    who->round = round;
    who->leads = strcmp(role, "leads") == 0;
}
static void end(child *who, bool killed) {
    int status;
    close(who->in);
    close(who->out);
    assert_int_equal(waitpid(who->pid, &status, 0), who->pid);
    if (!killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) fail_msg("a member ended with %x", status);
}

#endif
