// SPDX-License-Identifier: MIT
// driver_member <url> <run> <name> <min> <max> <keep-alive ms> <which> <worlds> <writes> <join timeout s>
//
// A member for run_driver.py. It joins round after round, and writes through the view of its round all the time, also
// while the round ends; once the next one has begun also once more through the view of the one before. To <worlds> goes
// "<which> <round> <rank> <world> <name> <pid>" for each round, to <writes> "<which> <round> <store> <status>
// <version>" for each write. SIGUSR1: it aborts its round. SIGTERM: it leaves and ends.
#include <muster/muster.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

enum { tag_open = 1, tag_join, tag_leave, tag_abort, tag_log, tag_event, tag_write };
enum { between_writes_ms = 15 };

typedef struct view { // of a round
    muster_store *store;
    unsigned long long round;
    char home[64]; // the address of the store
} view;

static struct {
    const char *name, *which;
    int worlds, writes;
    muster_context *context;
    muster_queue *queue;
    muster_rendezvous *member;
    muster_round *round;
    view now, before;
    view written; // what the write that is under way goes through
    char home[64];
    bool joins, leaves, writes_now, over, before_is_due;
    int64_t next_write_ns, join_timeout_ns;
    int status;
} self;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

// One line by one write, so that lines of several processes do not mix, and a killed process leaves whole ones.
static void put_line(int fd, const char *text) {
    const size_t size = strlen(text);
    if (write(fd, text, size) != (ssize_t)size) self.over = true, self.status = 4;
}

static void end_with(const char *what, const muster_error *error) {
    fprintf(stderr, "%s: %s: %s\n", self.name, what, error->message);
    self.over = true;
    self.status = 1;
}

static void begin(uint32_t operation, int64_t timeout_ns, uint64_t tag) {
    const bool aborts = operation == MUSTER_RENDEZVOUS_ABORT;
    muster_error error;
    if (muster_rendezvous_begin(self.member, operation, aborts ? "asked to" : NULL, aborts ? 8 : 0, timeout_ns,
                                self.queue, tag, &error) != MUSTER_OK)
        end_with("begin", &error);
}

static void join(void) {
    if (self.joins || self.leaves || self.member == NULL) return;
    self.joins = true;
    begin(MUSTER_RENDEZVOUS_JOIN, self.join_timeout_ns, tag_join);
}

static void begin_round(muster_round *round) {
    muster_round_info info;
    muster_error error;
    char line[256];
    self.joins = false;
    muster_store_release(self.before.store);
    muster_round_release(self.round);
    self.before = self.now;
    self.before_is_due = self.before.store != NULL;
    self.round = round;
    muster_round_get_info(round, &info);
    self.now.round = info.number;
    self.now.store = NULL;
    memcpy(self.now.home, self.home, sizeof self.home);
    if (muster_round_store(round, &self.now.store, &error) != MUSTER_OK) {
        end_with("view", &error);
        return;
    }
    snprintf(line, sizeof line, "%s %llu %u %u %s %d\n", self.which, self.now.round, info.rank, info.world, self.name,
             (int)getpid());
    put_line(self.worlds, line);
    self.next_write_ns = 0;
}

static void begin_write(const view *through) {
    const muster_store_op op = {.kind = MUSTER_STORE_SET,
                                .key = self.name,
                                .key_bytes = strlen(self.name),
                                .value = through->home,
                                .value_bytes = strlen(through->home)};
    muster_error error;
    self.written = *through;
    self.writes_now = true;
    const muster_status status =
        muster_store_begin(through->store, &op, 1, 5 * SECOND, self.queue, tag_write, NULL, &error);
    if (status != MUSTER_OK) end_with("write", &error);
}

static void end_write(const muster_completion *done) {
    char line[256];
    muster_store_entry entry = {0};
    if (done->status == MUSTER_OK) muster_store_result_entry(done->object, 0, &entry);
    muster_store_result_release(done->object);
    snprintf(line, sizeof line, "%s %llu %s %s %llu\n", self.which, self.written.round, self.written.home,
             muster_status_name(done->status), (unsigned long long)entry.version);
    put_line(self.writes, line);
    self.writes_now = false;
    self.next_write_ns = now_ns() + between_writes_ms * MILLISECOND;
    if (done->status == MUSTER_E_STALE && self.written.round == self.now.round) join();
}

// First through the view of the new round, so that a store that does both is caught.
static void write_if_due(void) {
    if (self.writes_now || self.now.store == NULL || now_ns() < self.next_write_ns) return;
    const bool is_first = self.next_write_ns == 0;
    if (!is_first && self.before_is_due) {
        self.before_is_due = false;
        begin_write(&self.before);
    } else {
        begin_write(&self.now);
    }
}

static void take_events(void) {
    muster_rendezvous_event event;
    while (muster_rendezvous_next_event(self.member, 0, &event) == MUSTER_OK) {
        switch (event.kind) {
        case MUSTER_RENDEZVOUS_LEFT:
        case MUSTER_RENDEZVOUS_DEAD:
        case MUSTER_RENDEZVOUS_WAITING:
        case MUSTER_RENDEZVOUS_ABORTED:
        case MUSTER_RENDEZVOUS_EXPELLED:
        case MUSTER_RENDEZVOUS_LOST:
            if (self.round != NULL) join();
            break;
        case MUSTER_RENDEZVOUS_CLOSED:
            self.over = true;
            break;
        default:
            break;
        }
    }
}

// The addresses of the stores that this member goes to are in what the library logs.
static void take_log(const char *text) {
    static const char *const before[] = {"the run may go on at ", "the run is looked for at "};
    fprintf(stderr, "%s: %s\n", self.name, text);
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const char *const at = strstr(text, before[i]);
        if (at != NULL)
            snprintf(self.home, sizeof self.home, "%.*s", (int)strcspn(at + strlen(before[i]), " "),
                     at + strlen(before[i]));
    }
}

static void take_completions(void) {
    muster_completion done;
    muster_error error;
    while (!self.over && muster_queue_next(self.queue, 0, &done, &error) == MUSTER_OK) {
        switch (done.tag) {
        case tag_log:
            take_log(error.message);
            break;
        case tag_open:
            self.member = done.object;
            if (done.status == MUSTER_OK)
                join();
            else
                end_with("open", &error);
            break;
        case tag_join:
            if (done.status == MUSTER_OK)
                begin_round(done.object);
            else if (!self.leaves)
                end_with("join", &error);
            break;
        case tag_leave:
            self.over = true;
            break;
        case tag_event:
            take_events();
            break;
        case tag_write:
            end_write(&done);
            break;
        default:
            break;
        }
    }
}

static void take_signals(int signals) {
    struct signalfd_siginfo got;
    while (read(signals, &got, sizeof got) == sizeof got) {
        if (got.ssi_signo == SIGUSR1) {
            if (self.round != NULL && !self.joins && !self.leaves)
                begin(MUSTER_RENDEZVOUS_ABORT, 5 * SECOND, tag_abort);
        } else if (self.member == NULL || self.leaves) {
            self.over = true;
        } else {
            self.leaves = true;
            muster_rendezvous_cancel(self.member);
            begin(MUSTER_RENDEZVOUS_LEAVE, 2 * SECOND, tag_leave);
        }
    }
}

static bool open_member(char **arguments, int32_t *queue_fd) {
    muster_error error;
    muster_rendezvous_config config;
    muster_config_init(&config, sizeof config);
    config.url = arguments[0];
    config.url_bytes = strlen(arguments[0]);
    config.run_id = arguments[1];
    config.run_id_bytes = strlen(arguments[1]);
    config.address = arguments[2];
    config.address_bytes = strlen(arguments[2]);
    config.min = (uint32_t)atoi(arguments[3]);
    config.max = (uint32_t)atoi(arguments[4]);
    config.keep_alive_ns = atoll(arguments[5]) * MILLISECOND;
    config.last_call_ns = 300 * MILLISECOND;
    config.majority_timeout_ns = -1; // as `muster run`: the others may be restarted, too
    config.tag = tag_event;
    const char *const host = strstr(arguments[0], "://") ? strstr(arguments[0], "://") + 3 : arguments[0];
    snprintf(self.home, sizeof self.home, "%.*s", (int)strcspn(host, "?"), host);
    if (muster_context_create(NULL, &self.context, &error) == MUSTER_OK &&
        muster_queue_create(self.context, NULL, &self.queue, &error) == MUSTER_OK) {
        config.queue = self.queue;
        muster_context_log(self.context, MUSTER_LOG_INFO, self.queue, tag_log);
        if (muster_queue_fd(self.queue, queue_fd) == MUSTER_OK &&
            muster_rendezvous_open_begin(self.context, &config, 20 * SECOND, self.queue, tag_open, &error) == MUSTER_OK)
            return true;
    }
    fprintf(stderr, "%s: %s\n", self.name, error.message);
    return false;
}

int main(int count, char **arguments) {
    if (count != 11) return 2;
    self.name = arguments[3];
    self.which = arguments[7];
    self.join_timeout_ns = atoll(arguments[10]) * SECOND;
    self.worlds = open(arguments[8], O_WRONLY | O_APPEND | O_CLOEXEC);
    self.writes = open(arguments[9], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (self.worlds < 0 || self.writes < 0) return 2;
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    const int signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    int32_t queue_fd = -1;
    if (!open_member(arguments + 1, &queue_fd)) return 1;
    while (!self.over) {
        const bool can_write = self.now.store != NULL && !self.writes_now;
        const int64_t left = self.next_write_ns - now_ns();
        struct pollfd fds[2] = {{signals, POLLIN, 0}, {queue_fd, POLLIN, 0}};
        poll(fds, 2, !can_write ? -1 : left <= 0 ? 0 : (int)(left / MILLISECOND) + 1);
        take_signals(signals);
        take_completions();
        if (!self.over) write_if_due();
    }
    muster_store_release(self.now.store);
    muster_store_release(self.before.store);
    muster_round_release(self.round);
    muster_rendezvous_release(self.member);
    muster_context_close(self.context, 2 * SECOND);
    muster_queue_release(self.queue);
    muster_context_release(self.context);
    return self.status;
}
