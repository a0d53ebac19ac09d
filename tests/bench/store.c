/* SPDX-License-Identifier: MIT */
/* A store's server under load: clients that are processes of their own, each with one connection.
 *
 *   --over muster|echo   a store server of Muster's; or a bare epoll server that sends back what came, as the measure
 *   --what sync          each client asks and waits: get, set and add in turn (echo: 64 bytes each way)
 *   --what pipelined     one client with many requests under way (a request of one operation each)
 *   --what connect       clients that open the store, from the first to the last; --op together: begun without waiting
 *   --what memory        what an idle client costs the server
 *   --clients <n> --idle <n>  busy ones, and those that are connected and do nothing
 *   --op get|set|add --scale <percent of the usual time>
 * Prints rate (1/s), p50_us, p99_us, ms or bytes. */
#include "bench.h"

#include <muster/muster.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { max_clients = 256, most_samples = 20000, window = 1024 };

typedef struct load {
    const char *over, *what, *op;
    int clients, idle;
    double seconds;
} load;

/* What all processes see. */
typedef struct shared {
    atomic_int ready, go, stop;
    atomic_long done;
    atomic_int sample_count;
    double samples[max_clients * 1024];
    char url[256];
    int port;
} shared;

static shared *all;

static void check(muster_status status, const muster_error *error, const char *where) {
    if (status != MUSTER_OK) die(where, error->message);
}

/* ---- servers ---- */

static void leave(int signal) {
    (void)signal;
    _exit(0); /* in a way that profilers see */
}

static void serve_muster(void) {
    signal(SIGTERM, leave);
    muster_context *context;
    muster_store_server *server;
    muster_error error = {0};
    size_t bytes;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.max_unauthenticated = 4096; /* as muster store does */
    check(muster_context_create(&config, &context, &error), &error, "context");
    check(muster_store_server_open(context, "tcp://127.0.0.1:0", 17, NULL, &server, &error), &error, "server");
    check(muster_store_server_address(server, all->url, sizeof all->url, &bytes), &error, "address");
    atomic_store(&all->ready, 1);
    for (;;) pause();
}

static void serve_echo(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0), one = 1;
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 4096) != 0) die_errno("listen");
    getsockname(listener, (struct sockaddr *)&at, &size);
    all->port = ntohs(at.sin_port);
    struct epoll_event event = {EPOLLIN, {.fd = listener}}, events[64];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    atomic_store(&all->ready, 1);
    static char buffer[65536];
    for (;;) {
        const int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener) {
                const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (fd < 0) continue;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                event = (struct epoll_event){EPOLLIN, {.fd = fd}};
                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
                continue;
            }
            const ssize_t got = recv(events[i].data.fd, buffer, sizeof buffer, 0);
            if (got <= 0)
                close(events[i].data.fd);
            else if (send(events[i].data.fd, buffer, (size_t)got, MSG_NOSIGNAL) != got)
                die_errno("echo");
        }
    }
}

/* ---- clients ---- */

typedef struct client {
    muster_context *context;
    muster_queue *queue;
    muster_store *store;
    int fd;
    muster_store_op op;
    char key[32], value[64];
} client;

static int connect_echo(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    at.sin_port = htons((uint16_t)all->port);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) die_errno("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void open_store(client *c) {
    muster_error error = {0};
    if (c->context == NULL) check(muster_context_create(NULL, &c->context, &error), &error, "context");
    check(muster_store_open(c->context, all->url, strlen(all->url), NULL, 30000000000, &c->store, &error), &error,
          "open");
}

static void set_up(client *c, const load *l, int number) {
    memset(c, 0, sizeof *c);
    if (!strcmp(l->over, "echo")) {
        c->fd = connect_echo();
        return;
    }
    open_store(c);
    memset(c->value, 'v', sizeof c->value);
    snprintf(c->key, sizeof c->key, "client/%d", number);
    c->op = (muster_store_op){.key = c->key, .key_bytes = strlen(c->key)};
    muster_error error = {0};
    if (!strcmp(l->op, "add")) {
        c->op.kind = MUSTER_STORE_ADD;
        c->op.number = 1;
        return;
    }
    c->op.kind = MUSTER_STORE_SET;
    c->op.value = c->value;
    c->op.value_bytes = sizeof c->value;
    check(muster_store_do(c->store, &c->op, 1, -1, NULL, &error), &error, "set");
    if (strcmp(l->op, "get") != 0) return;
    c->op.kind = MUSTER_STORE_GET;
    c->op.value = NULL;
    c->op.value_bytes = 0;
}

static void ask_once(client *c) {
    if (c->store == NULL) {
        if (send(c->fd, c->value, sizeof c->value, MSG_NOSIGNAL) != (ssize_t)sizeof c->value) die_errno("send");
        for (size_t got = 0; got < sizeof c->value;) {
            const ssize_t n = recv(c->fd, c->value, sizeof c->value - got, 0);
            if (n <= 0) die_errno("recv");
            got += (size_t)n;
        }
        return;
    }
    muster_error error;
    muster_store_result *result = NULL;
    check(muster_store_do(c->store, &c->op, 1, -1, &result, &error), &error, "do");
    muster_store_result_release(result);
}

static void be_a_busy_client(const load *l, int number) {
    client c;
    set_up(&c, l, number);
    static double samples[1024];
    for (int i = 0; i < 50; i++) ask_once(&c);
    atomic_fetch_add(&all->ready, 1);
    while (!atomic_load(&all->go)) usleep(200);
    long done = 0;
    while (!atomic_load(&all->stop)) {
        const double from = now_us();
        ask_once(&c);
        samples[done++ % 1024] = now_us() - from;
    }
    atomic_fetch_add(&all->done, done);
    const int kept = done < 1024 ? (int)done : 1024;
    const int at = atomic_fetch_add(&all->sample_count, kept);
    memcpy(all->samples + at, samples, sizeof(double) * (size_t)kept);
    _exit(0);
}

/* Requests of one operation each, many of them under way. */
static void be_a_pipeline(const load *l) {
    client c;
    muster_error error = {0};
    set_up(&c, l, 0);
    muster_queue_config config;
    muster_config_init(&config, sizeof config);
    check(muster_queue_create(c.context, &config, &c.queue, &error), &error, "queue");
    atomic_fetch_add(&all->ready, 1);
    while (!atomic_load(&all->go)) usleep(200);
    long done = 0, under_way = 0;
    for (;;) {
        const int stop = atomic_load(&all->stop);
        if (stop && under_way == 0) break;
        while (!stop && under_way < window) {
            const muster_status status = muster_store_begin(c.store, &c.op, 1, -1, c.queue, 0, NULL, &error);
            if (status == MUSTER_AGAIN) break;
            check(status, &error, "begin");
            under_way++;
        }
        muster_completion completion;
        muster_status status = muster_queue_next(c.queue, -1, &completion, &error);
        for (; status == MUSTER_OK; status = muster_queue_next(c.queue, 0, &completion, &error)) {
            if (completion.status != MUSTER_OK) die("answer", error.message);
            muster_store_result_release(completion.object);
            under_way--;
            if (!stop) done++;
        }
    }
    atomic_fetch_add(&all->done, done);
    _exit(0);
}

/* Many connections of one process: one after the other, or begun together. */
static void open_together(client *many, int count) {
    muster_error error = {0};
    muster_context *context = NULL;
    muster_queue *queue = NULL;
    check(muster_context_create(NULL, &context, &error), &error, "context");
    check(muster_queue_create(context, NULL, &queue, &error), &error, "queue");
    for (int i = 0; i < count; i++) {
        many[i].context = context;
        check(
            muster_store_open_begin(context, all->url, strlen(all->url), NULL, 30000000000, queue, (uint64_t)i, &error),
            &error, "begin to open");
    }
    for (int i = 0; i < count; i++) {
        muster_completion done;
        check(muster_queue_next(queue, -1, &done, &error), &error, "next");
        check(done.status, &error, "open");
        many[done.tag].store = done.object;
    }
}

static void connect_many(const load *l, int count) {
    client *many = calloc((size_t)count, sizeof *many);
    const int echo = !strcmp(l->over, "echo");
    if (!echo && !strcmp(l->op, "together")) {
        open_together(many, count);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (echo) {
            connect_echo();
            continue;
        }
        if (i != 0) many[i].context = many[0].context;
        open_store(&many[i]);
    }
}

/* ---- what is measured ---- */

static pid_t start(void (*body)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        _exit(0);
    }
    return child;
}

static void await_ready(int count) {
    for (int i = 0; atomic_load(&all->ready) < count; i++) {
        if (i > 60000) die("start", "it takes too long");
        if (waitpid(-1, NULL, WNOHANG) > 0) die("start", "one of the processes has ended");
        usleep(1000);
    }
}

static double resident_bytes(pid_t process) {
    char name[64];
    long pages = 0, resident = 0;
    snprintf(name, sizeof name, "/proc/%d/statm", process);
    FILE *const file = fopen(name, "r");
    if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) die_errno(name);
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static load read_load(int argc, char **argv) {
    load l = {"muster", "sync", "add", 1, 0, 1.0};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (!strcmp(key, "--over"))
            l.over = value;
        else if (!strcmp(key, "--what"))
            l.what = value;
        else if (!strcmp(key, "--op"))
            l.op = value;
        else if (!strcmp(key, "--clients"))
            l.clients = atoi(value);
        else if (!strcmp(key, "--idle"))
            l.idle = atoi(value);
        else if (!strcmp(key, "--scale"))
            l.seconds = atof(value) / 100;
        else
            die(key, "unknown option");
    }
    if (l.clients < 1 || l.clients > 100000) die("--clients", "1 to 100000");
    if (l.seconds < 0.05) l.seconds = 0.05;
    return l;
}

int main(int argc, char **argv) {
    const load l = read_load(argc, argv);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    setenv("MUSTER_SECRET", "the secret of a benchmark", 0);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) die_errno("mmap");
    const pid_t server = start(!strcmp(l.over, "echo") ? serve_echo : serve_muster);
    await_ready(1);
    if (!strcmp(l.what, "connect") || !strcmp(l.what, "memory")) {
        const double before = resident_bytes(server), from = now_us();
        connect_many(&l, l.clients);
        const double ms = (now_us() - from) * 1e-3;
        printf("ms\t%.1f\nbytes\t%.0f\n", ms, (resident_bytes(server) - before) / l.clients);
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
        return 0;
    }
    const int busy = l.clients < max_clients ? l.clients : max_clients;
    pid_t idle = 0;
    if (l.idle != 0 && (idle = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        connect_many(&l, l.idle);
        atomic_fetch_add(&all->ready, 1);
        for (;;) pause();
    }
    await_ready(1 + (l.idle != 0));
    for (int i = 0; i < busy; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (!strcmp(l.what, "pipelined")) be_a_pipeline(&l);
            be_a_busy_client(&l, i);
        }
    await_ready(1 + (l.idle != 0) + busy);
    const double from = now_us();
    atomic_store(&all->go, 1);
    usleep((useconds_t)(l.seconds * 1e6));
    atomic_store(&all->stop, 1);
    const double seconds = (now_us() - from) * 1e-6;
    for (int i = 0; i < busy; i++) wait(NULL);
    const int count = atomic_load(&all->sample_count);
    printf("rate\t%.0f\n", (double)atomic_load(&all->done) / seconds);
    if (count != 0) {
        qsort(all->samples, (size_t)count, sizeof(double), compare_doubles);
        printf("p50_us\t%.2f\np99_us\t%.2f\n", all->samples[count / 2], all->samples[(int)(count * 0.99)]);
    }
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    if (idle != 0) kill(idle, SIGKILL);
    return 0;
}
