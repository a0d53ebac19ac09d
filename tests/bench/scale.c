/* SPDX-License-Identifier: MIT */
/* Many members on one broker:  --size MEMBERS [--mode threads|external] [--over through|through-no-curve]
 *
 * One context is one member. A process holds as many contexts as its descriptors allow (RLIMIT_NOFILE is raised to its
 * hard limit). With `threads` each context has its own progress thread; with `external` none has, and one thread of
 * each process drives all that are ready. Each member joins (CURVE, proof, a name), has one echo of 64 B through the
 * broker with its partner in the next process, and is idle; then one more member opens a stream to each of the others,
 * which are idle once more, and sends 64 B to each, which answer. All processes work at the same time. Prints one line
 * per figure. */
#include "star.h"

#include <dirent.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum { processes_min = 2, processes_max = 64, descriptors_each = 24, small = 64 };

struct scale {
    struct options options;
    struct star star;
    int members, processes, each, external;
    double idle_s;
    int asked[processes_max][2], answers[2]; /* pipes: a letter for each process, a letter from each */
    pid_t workers[processes_max];
    int number; /* of this process */
};

struct member {
    muster_context *context;
    muster_listener *listener;
    muster_stream *hub;
};

struct worker {
    struct scale *scale;
    struct member *members;
    int count, epoll;
    _Atomic int created;
};

static void name_of(char *to, size_t size, int process, int member) {
    snprintf(to, size, "m-%d-%d", process, member);
}
static int count_of(const struct scale *s, int process) {
    const int begin = process * s->each, left = s->members - begin;
    return left < s->each ? left : s->each;
}
static void exactly(muster_stream *stream, unsigned char *data, size_t size) {
    struct channel c = {stream};
    channel_read(&c, data, size);
}

static muster_context *scale_context(const struct scale *s) {
    static const char secret[] = "both ends of the benchmark know this";
    const muster_context_config config = {.struct_size = sizeof config,
                                          .flags = s->external ? MUSTER_CONTEXT_EXTERNAL : 0,
                                          .secret = secret,
                                          .secret_bytes = sizeof secret - 1,
                                          .handshake_timeout_ns = 60000000000,
                                          .max_unauthenticated = 1024};
    muster_context *made = NULL;
    muster_error error;
    check("context", muster_context_create(&config, &made, &error), &error);
    return made;
}

/* Drives the external contexts of a process. */
static void *drive(void *argument) {
    struct worker *w = argument;
    for (;;) {
        struct epoll_event events[64];
        const int count = epoll_wait(w->epoll, events, 64, -1);
        for (int i = 0; i < count; i++) (void)muster_context_progress(events[i].data.ptr, 0);
    }
    return NULL;
}

static void *accept_echoes(void *argument) {
    struct worker *w = argument;
    for (int i = 0; i < w->count; i++) {
        unsigned char data[small];
        muster_stream *stream = star_accept(w->members[i].listener);
        exactly(stream, data, small);
        struct channel c = {stream};
        channel_write(&c, data, small);
        muster_stream_release(stream);
    }
    return NULL;
}

static void join(struct worker *w) {
    for (int i = 0; i < w->count; i++) {
        struct member *m = &w->members[i];
        char name[32];
        m->context = scale_context(w->scale);
        if (w->scale->external) {
            int fd;
            check("descriptor", muster_context_fd(m->context, &fd), NULL);
            struct epoll_event event = {.events = EPOLLIN, .data.ptr = m->context};
            if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event) != 0) die_errno("epoll_ctl");
        }
        name_of(name, sizeof name, w->scale->number, i);
        m->listener = star_listen(&w->scale->star, m->context, name);
    }
}

static void echo(struct worker *w) {
    const struct scale *s = w->scale;
    pthread_t thread;
    if (pthread_create(&thread, NULL, accept_echoes, w) != 0) die("pthread_create", "failed");
    const int next = (s->number + 1) % s->processes, partners = count_of(s, next);
    /* The last process may be smaller: its members have several partners, or some of the others none. */
    for (int i = 0; i < partners; i++) {
        unsigned char data[small] = {0};
        char name[32];
        name_of(name, sizeof name, next, i);
        muster_stream *stream = star_dial(&s->star, w->members[i % w->count].context, name);
        struct channel c = {stream};
        channel_write(&c, data, small);
        channel_read(&c, data, small);
        muster_stream_release(stream);
    }
    pthread_join(thread, NULL);
}

static void worker_process(void *argument) {
    struct scale *s = argument;
    struct worker worker = {.scale = s, .count = count_of(s, s->number)}, *w = &worker;
    close(s->star.ask);
    w->members = calloc((size_t)w->count, sizeof *w->members);
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->members == NULL || w->epoll < 0) die_errno("worker");
    pthread_t driver;
    if (s->external && pthread_create(&driver, NULL, drive, w) != 0) die("pthread_create", "failed");
    for (char what; read(s->asked[s->number][0], &what, 1) == 1;) {
        unsigned char data[small];
        if (what == 'j') join(w);
        if (what == 'e') echo(w);
        if (what == 'h')
            for (int i = 0; i < w->count; i++) w->members[i].hub = star_accept(w->members[i].listener);
        if (what == 'm')
            for (int i = 0; i < w->count; i++) {
                exactly(w->members[i].hub, data, small);
                struct channel c = {w->members[i].hub};
                channel_write(&c, data, 1);
            }
        if (write(s->answers[1], &what, 1) != 1) die_errno("write");
    }
    _exit(0);
}

/* ---- the process that asks ---- */

static void ask(struct scale *s, char what) {
    for (int i = 0; i < s->processes; i++)
        if (write(s->asked[i][1], &what, 1) != 1) die_errno("write");
}
static void answered(struct scale *s) {
    char byte;
    for (int i = 0; i < s->processes; i++)
        if (read(s->answers[0], &byte, 1) != 1) die_errno("read");
}
static double both(struct scale *s, char what) {
    const double begun = now_us();
    ask(s, what);
    answered(s);
    return (now_us() - begun) * 1e-6;
}

struct figures { /* of a process */
    double kib, descriptors, threads, processor_ms;
};
static struct figures look(pid_t process) {
    struct figures f = {0};
    char path[64], line[256];
    struct timespec t;
    clockid_t clock;
    long value;
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    if (file == NULL) die_errno(path);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmRSS: %ld", &value) == 1) f.kib = (double)value;
        if (sscanf(line, "Threads: %ld", &value) == 1) f.threads = (double)value;
    }
    fclose(file);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    DIR *folder = opendir(path);
    if (folder == NULL) die_errno(path);
    while (readdir(folder) != NULL) f.descriptors++;
    closedir(folder);
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &t) != 0) die("clock", "no such process");
    f.processor_ms = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    return f;
}
static struct figures look_at_members(const struct scale *s) {
    struct figures sum = {0};
    for (int i = 0; i < s->processes; i++) {
        const struct figures f = look(s->workers[i]);
        sum.kib += f.kib, sum.descriptors += f.descriptors, sum.threads += f.threads;
        sum.processor_ms += f.processor_ms;
    }
    return sum;
}
static double processor_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static void told(const char *name, double value) {
    printf("%s\t%.6g\n", name, value);
    fflush(stdout);
}

/* One more member has a stream to each: its dials are under way side by side. Every process accepts for its members in
 * their order: all processes at the same time. */
enum { dials_at_once = 256 };
static int open_to_all(const struct scale *s, muster_stream **streams) {
    muster_context *c = scale_context(s);
    muster_queue *queue;
    muster_error error;
    check("queue", muster_queue_create(c, NULL, &queue, &error), &error);
    int begun = 0, open = 0;
    for (int place = 0; open < s->members;) {
        while (begun < s->members && begun - open < dials_at_once) {
            const int process = place % s->processes, member = place / s->processes;
            place++;
            if (member >= count_of(s, process)) continue;
            char name[32];
            name_of(name, sizeof name, process, member);
            star_dial_begin(&s->star, c, name, queue, (uint64_t)begun++);
        }
        muster_completion done;
        check("queue", muster_queue_next(queue, patience_ns, &done, &error), &error);
        check("dial", done.status, &error);
        streams[done.tag] = done.object;
        open++;
    }
    return open;
}

int main(int argc, char **argv) {
    struct scale scale = {.options = read_options(argc, argv)}, *s = &scale;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) die_errno("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) die_errno("setrlimit");
    s->external = !strcmp(s->options.mode, "external");
    s->members = (int)s->options.size;
    const int most = limit.rlim_max / descriptors_each > 1000 ? 1000 : (int)(limit.rlim_max / descriptors_each);
    s->processes = (s->members + most - 1) / most;
    if (s->processes < processes_min) s->processes = processes_min;
    if (s->processes > processes_max) die("members", "too many");
    s->each = (s->members + s->processes - 1) / s->processes;
    s->idle_s = (double)s->options.count / default_count(WHAT_LATENCY, s->options.size);
    star_begin(&s->star, s->options.over);
    if (pipe(s->answers) != 0) die_errno("pipe");
    for (int i = 0; i < s->processes; i++) {
        if (pipe(s->asked[i]) != 0) die_errno("pipe");
        s->number = i;
        s->workers[i] = start_process(worker_process, s);
    }
    const struct figures broker0 = look(s->star.broker), members0 = look_at_members(s);
    const double n = s->members;
    told("join_s", both(s, 'j'));
    struct figures broker = look(s->star.broker), members = look_at_members(s);
    told("broker_descriptors", (broker.descriptors - broker0.descriptors) / n);
    told("member_descriptors", (members.descriptors - members0.descriptors) / n);
    told("member_threads", (members.threads - members0.threads) / n);
    told("echo_s", both(s, 'e'));
    const struct timespec settle = {(time_t)(12 * s->idle_s), 0}; /* sessions without streams end after 10 s */
    nanosleep(&settle, NULL);
    broker = look(s->star.broker), members = look_at_members(s);
    told("broker_kib", (broker.kib - broker0.kib) / n);
    told("member_kib", (members.kib - members0.kib) / n);
    const uint64_t messages = star_stats(&s->star).messages;
    const struct timespec idle = {(time_t)(5 * s->idle_s), 100000000};
    nanosleep(&idle, NULL);
    const double seconds = (double)idle.tv_sec + 0.1;
    told("broker_idle_ms", (look(s->star.broker).processor_ms - broker.processor_ms) / seconds);
    told("members_idle_ms", (look_at_members(s).processor_ms - members.processor_ms) / seconds);
    told("idle_messages", (double)(star_stats(&s->star).messages - messages) / seconds);
    told("members", (double)star_stats(&s->star).members);

    /* One to all. */
    s->external = 0;
    muster_stream **streams = calloc((size_t)s->members, sizeof *streams);
    if (streams == NULL) die_errno("calloc");
    double begun = now_us();
    ask(s, 'h');
    const int k = open_to_all(s, streams);
    answered(s);
    told("open_to_all_s", (now_us() - begun) * 1e-6);
    broker = look(s->star.broker), members = look_at_members(s);
    const uint64_t before = star_stats(&s->star).messages;
    const double own = processor_ms();
    begun = now_us();
    nanosleep(&idle, NULL);
    const double open_s = (now_us() - begun) * 1e-6;
    told("broker_open_ms", (look(s->star.broker).processor_ms - broker.processor_ms) / open_s);
    told("members_open_ms", (look_at_members(s).processor_ms - members.processor_ms) / open_s);
    told("one_open_ms", (processor_ms() - own) / open_s);
    told("open_messages", (double)(star_stats(&s->star).messages - before) / open_s);
    double times[3];
    for (int round = 0; round < 3; round++) {
        unsigned char data[small] = {0};
        begun = now_us();
        ask(s, 'm');
        for (int i = 0; i < k; i++) {
            struct channel out = {streams[i]};
            channel_write(&out, data, small);
        }
        for (int i = 0; i < k; i++) exactly(streams[i], data, 1);
        times[round] = (now_us() - begun) * 1e-3;
        answered(s);
    }
    told("to_all_ms", median(times, 3));
    told("broker_lost", (double)star_stats(&s->star).lost);
    for (int i = 0; i < s->processes; i++) kill(s->workers[i], SIGKILL);
    for (int i = 0; i < s->processes; i++) waitpid(s->workers[i], NULL, 0);
    kill(s->star.broker, SIGKILL);
    waitpid(s->star.broker, NULL, 0);
    _exit(fflush(stdout) != 0);
}
