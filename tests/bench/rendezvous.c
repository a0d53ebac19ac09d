/* SPDX-License-Identifier: MIT */
/* A rendezvous over a store's server: nodes in a few processes, each with a connection of its own.
 *
 *   --what last    all but one have joined: from the join of the last to the rank of the slowest
 *   --what all     all join at once: from the first join to the rank of the slowest
 *   --what death   one node is a process that is killed: from the kill to the event at the slowest other
 *   --nodes <n> --processes <n> --rounds <n>
 *   --url <url>    a store that is there already
 *   --scale <n>    below 100: a short run, of few nodes
 * Prints ms, the median of the rounds (death: of one kill), and open_ms, until all had opened the store. */
#include "bench.h"

#include <muster/muster.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { max_rounds = 101 };
static const int64_t second = 1000000000;

typedef struct load {
    const char *what, *url;
    int nodes, processes, rounds, scale;
} load;

/* What all processes see. Times in microseconds. */
typedef struct shared {
    atomic_int ready, go, done;
    _Atomic double from, to;
    char url[256];
} shared;

static shared *all;

static void check(muster_status status, const muster_error *error, const char *where) {
    if (status != MUSTER_OK) die(where, error->message);
}
static void until(atomic_int *count, int value) {
    while (atomic_load(count) < value) usleep(200);
}
static void note_end(double at) {
    double before = atomic_load(&all->to);
    while (before < at && !atomic_compare_exchange_weak(&all->to, &before, at)) {
    }
}

static void serve(void) {
    muster_context *context;
    muster_store_server *server;
    muster_error error = {0};
    size_t bytes;
    check(muster_context_create(NULL, &context, &error), &error, "context");
    check(muster_store_server_open(context, "tcp://127.0.0.1:0", 17, NULL, &server, &error), &error, "server");
    check(muster_store_server_address(server, all->url, sizeof all->url, &bytes), &error, "address");
    atomic_fetch_add(&all->ready, 1);
    for (;;) pause();
}

typedef struct crowd {
    muster_context *context;
    muster_queue *queue;
    muster_rendezvous **who;
    int count;
} crowd;

static crowd open_crowd(const load *l, int first, int count) {
    crowd c = {.count = count, .who = calloc((size_t)count, sizeof(muster_rendezvous *))};
    muster_error error = {0};
    char address[32];
    check(muster_context_create(NULL, &c.context, &error), &error, "context");
    check(muster_queue_create(c.context, NULL, &c.queue, &error), &error, "queue");
    for (int i = 0; i < count; i++) {
        muster_rendezvous_config config;
        muster_config_init(&config, sizeof config);
        config.run_id = "bench";
        config.run_id_bytes = 5;
        config.url = all->url;
        config.url_bytes = strlen(all->url);
        config.min = (uint32_t)l->nodes;
        config.last_call_ns = -1;
        config.keep_alive_ns = 20 * second;
        config.address = address;
        config.address_bytes = (uint64_t)snprintf(address, sizeof address, "node%d:29400", first + i);
        check(muster_rendezvous_open(c.context, &config, 100 * second, &c.who[i], &error), &error, "open");
    }
    atomic_fetch_add(&all->ready, 1);
    return c;
}
static void begin(crowd *c, int i) {
    muster_error error = {0};
    check(muster_rendezvous_begin(c->who[i], MUSTER_RENDEZVOUS_JOIN, NULL, 0, 300 * second, c->queue, 0, &error),
          &error, "join");
}
static void take_ranks(crowd *c) {
    for (int i = 0; i < c->count; i++) {
        muster_completion done;
        muster_error error = {0};
        muster_queue_next(c->queue, -1, &done, &error);
        check(done.status, &error, "join");
        muster_round_release(done.object);
    }
    note_end(now_us());
}

static void be_nodes(const load *l, int first, int count) {
    crowd c = open_crowd(l, first, count);
    for (int round = 0; round < l->rounds; round++) {
        until(&all->go, 2 * round + 1);
        const int late = first == 0 && strcmp(l->what, "last") == 0; /* node 0 comes last */
        for (int i = late; i < count; i++) begin(&c, i);
        if (late) {
            muster_rendezvous_state state;
            do {
                usleep(1000);
                muster_rendezvous_get_state(c.who[count > 1], &state);
            } while (count > 1 ? state.joined + 1 < (uint32_t)l->nodes : 0);
            usleep(100000); /* so that nothing is on its way any more */
            atomic_store(&all->from, now_us());
            begin(&c, 0);
        }
        take_ranks(&c);
        atomic_fetch_add(&all->done, 1);
        until(&all->go, 2 * round + 2);
    }
    if (strcmp(l->what, "death") == 0) {
        for (int i = 0; i < count; i++) {
            muster_rendezvous_event event;
            do muster_rendezvous_next_event(c.who[i], -1, &event);
            while (event.kind != MUSTER_RENDEZVOUS_DEAD);
        }
        note_end(now_us());
        atomic_fetch_add(&all->done, 1);
    }
    for (;;) pause();
}

static load read_load(int argc, char **argv) {
    load l = {"last", NULL, 64, 2, 5, 100};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *value = argv[i + 1];
        if (!strcmp(key, "--what"))
            l.what = value;
        else if (!strcmp(key, "--nodes"))
            l.nodes = atoi(value);
        else if (!strcmp(key, "--processes"))
            l.processes = atoi(value);
        else if (!strcmp(key, "--rounds"))
            l.rounds = atoi(value);
        else if (!strcmp(key, "--url"))
            l.url = value;
        else if (!strcmp(key, "--scale"))
            l.scale = atoi(value);
        else
            die(key, "unknown option");
    }
    if (strcmp(l.what, "last") != 0 && strcmp(l.what, "all") != 0 && strcmp(l.what, "death") != 0)
        die("--what", "last, all or death");
    if (l.scale < 100 && l.nodes > 64) l.nodes = 64;
    if (l.scale < 100) l.rounds = 1;
    if (l.nodes < 2 || l.nodes > 100000) die("--nodes", "2 to 100000");
    if (l.processes < 1 || l.processes > l.nodes / 2) l.processes = 1;
    if (l.rounds < 1 || l.rounds > max_rounds) die("--rounds", "1 to 101");
    return l;
}

static pid_t start(const load *l, int first, int count) {
    const pid_t pid = fork();
    if (pid < 0) die_errno("fork");
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count == 0)
        serve();
    else
        be_nodes(l, first, count);
    return 0;
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
    pid_t children[1024];
    int count = 0;
    if (l.url == NULL) {
        children[count++] = start(&l, 0, 0);
        until(&all->ready, 1);
    } else {
        snprintf(all->url, sizeof all->url, "%s", l.url);
        atomic_store(&all->ready, 1);
    }
    const bool death = strcmp(l.what, "death") == 0;
    const int crowds = l.processes > 1000 ? 1000 : l.processes, nodes = l.nodes - death;
    const double opened = now_us();
    for (int i = 0; i < crowds; i++) {
        const int first = nodes * i / crowds, next = nodes * (i + 1) / crowds;
        children[count++] = start(&l, first, next - first);
    }
    const pid_t victim = death ? start(&l, nodes, 1) : 0;
    until(&all->ready, 1 + crowds + death);
    const double open_ms = (now_us() - opened) * 1e-3;
    double ms[max_rounds];
    for (int round = 0; round < l.rounds; round++) {
        atomic_store(&all->to, 0);
        atomic_store(&all->from, now_us());
        atomic_store(&all->go, 2 * round + 1);
        until(&all->done, (crowds + death) * (round + 1));
        ms[round] = (atomic_load(&all->to) - atomic_load(&all->from)) * 1e-3;
        atomic_store(&all->go, 2 * round + 2);
    }
    double figure = median(ms, l.rounds);
    if (death) {
        usleep(200000);
        const double from = now_us();
        kill(victim, SIGKILL);
        until(&all->done, (crowds + 1) * l.rounds + crowds);
        figure = (atomic_load(&all->to) - from) * 1e-3;
    }
    printf("ms\t%.3f\nopen_ms\t%.1f\n", figure, open_ms);
    for (int i = 0; i < count; i++) kill(children[i], SIGKILL);
    while (wait(NULL) > 0) { /* their processor time is counted as that of this process */
    }
    return 0;
}
