/* SPDX-License-Identifier: MIT */
/* A cluster on this host; its workers are this program, started again.
 *   --what start --workers N     until all have joined, and until all have left
 *   --what trip --over HOW       half round trips of a bare stream to one worker; HOW: blocking, or queue, as a host
 * with a loop waits
 *   --what members --workers N   time and memory of many members, each a process
 *   --what stamp                 tells when it runs: what a peer starts */
#include "muster.h"

#include <muster/worker.h>

#include <stdbool.h>

static const int64_t patience = 55000000000;
enum { size = 64 }; /* of a message */
static muster_error error;

/* One message: waiting in the call, or at a queue in which the stream tells that it can be read. */
static bool read_message(muster_stream *stream, muster_queue *queue, unsigned char *message) {
    size_t got = 0, moved;
    if (queue == NULL) return muster_stream_read_into(stream, message, size, 0, -1, &moved) == MUSTER_OK;
    while (got < size) {
        muster_completion entry;
        const muster_status status = muster_stream_read(stream, message + got, size - got, 0, &moved);
        if (status < 0) return false;
        got += moved;
        if (status == MUSTER_AGAIN) check("wait", muster_queue_next(queue, patience, &entry, &error), &error);
    }
    return true;
}

static muster_queue *queue_for(muster_context *c, muster_stream *stream, const char *how) {
    muster_queue *queue = NULL;
    if (strcmp(how, "queue") != 0) return NULL;
    check("queue", muster_queue_create(c, NULL, &queue, &error), &error);
    check("watch", muster_stream_watch(stream, MUSTER_STREAM_READABLE, queue, 0), NULL);
    return queue;
}

/* ---- a worker */

static void send_back(muster_context *c, muster_stream *stream, const char *how) {
    unsigned char message[size];
    struct channel back = {stream};
    muster_queue *queue = queue_for(c, stream, how);
    while (read_message(stream, queue, message)) channel_write(&back, message, size);
    muster_stream_release(stream);
    muster_queue_release(queue);
}

static int work(void) {
    muster_context *c;
    muster_cluster *cluster;
    muster_cluster_event event;
    const muster_worker_config config = {.struct_size = sizeof config, .flags = MUSTER_WORKER_EXIT_WITH_MASTER};
    check("ticket", muster_worker_context(NULL, 0, &c, &error), &error);
    check("come in", muster_worker_start(c, &config, patience, &cluster, &error), &error);
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        if (event.kind == MUSTER_CLUSTER_STREAM) send_back(c, event.stream, event.label);
        if (event.kind == MUSTER_CLUSTER_LEAVE) muster_cluster_close(cluster, -1);
    }
    muster_cluster_release(cluster);
    muster_context_release(c);
    return 0;
}

/* ---- the master */

static muster_cluster *cluster_of(muster_context *c, long workers) {
    muster_cluster *cluster;
    const muster_cluster_config config = {.struct_size = sizeof config};
    const char *const argv[] = {"/proc/self/exe", "worker", NULL};
    const muster_launch launch = {.struct_size = sizeof launch, .count = (uint32_t)workers, .argv = argv};
    check("cluster", muster_cluster_open(c, &config, &cluster, &error), &error);
    check("add", muster_cluster_add(cluster, &launch, NULL, &error), &error);
    for (long joined = 0; joined < workers;) {
        muster_cluster_event event;
        check("wait for workers", muster_cluster_next_event(cluster, patience, &event), NULL);
        if (event.kind == MUSTER_CLUSTER_FAILED || event.kind == MUSTER_CLUSTER_DEAD) die("a worker", event.text);
        joined += event.kind == MUSTER_CLUSTER_JOINED;
    }
    return cluster;
}

static void close_cluster(muster_cluster *cluster) {
    check("close", muster_cluster_close(cluster, patience), NULL);
    muster_cluster_release(cluster);
}

/* The context is made within the time: so is all that mpirun makes. */
static void start(long workers) {
    const double begun = now_us();
    muster_context *c = context();
    muster_cluster *cluster = cluster_of(c, workers);
    const double joined = now_us();
    close_cluster(cluster);
    const double closed = now_us();
    printf("ms\t%.6g\nwhole_ms\t%.6g\n", (joined - begun) * 1e-3, (closed - begun) * 1e-3);
    muster_context_release(c);
}

static void trip(const char *how, long count) {
    muster_context *c = context();
    muster_cluster *cluster = cluster_of(c, 1);
    struct channel to = {NULL};
    unsigned char message[size] = {1};
    double *times = (double *)calloc((size_t)count, sizeof *times);
    if (times == NULL) die_errno("calloc");
    check("dial", muster_cluster_dial(cluster, 1, how, strlen(how), patience, &to.stream, &error), &error);
    muster_queue *queue = queue_for(c, to.stream, how);
    for (long i = 0; i < count; i++) {
        const double begun = now_us();
        channel_write(&to, message, size);
        if (!read_message(to.stream, queue, message)) die("read", "the stream has ended");
        times[i] = now_us() - begun;
    }
    print_latency(median(times, count) / 2);
    free(times);
    muster_stream_finish(to.stream);
    muster_stream_release(to.stream);
    close_cluster(cluster);
    muster_queue_release(queue);
    muster_context_release(c);
}

/* Pss: what a process has of its own, and its part of what it shares. Private_Dirty: what it has written itself. */
static double memory_kb(long pid, const char *name) {
    char path[64], line[256];
    const size_t length = strlen(name);
    long kb = -1;
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) die_errno(path);
    while (kb < 0 && fgets(line, sizeof line, file) != NULL)
        if (!strncmp(line, name, length) && line[length] == ':') kb = atol(line + length + 1);
    fclose(file);
    if (kb < 0) die(path, name);
    return (double)kb;
}

static void members(long workers) {
    muster_context *c = NULL;
    check("context", muster_context_create(NULL, &c, &error), &error);
    const double before = memory_kb(getpid(), "Private_Dirty"), begun = now_us();
    muster_cluster *cluster = cluster_of(c, workers);
    const double joined = now_us();
    const double after = memory_kb(getpid(), "Private_Dirty");
    double all = 0;
    for (uint32_t member = 1; member <= (uint32_t)workers; member++) {
        muster_member_info info;
        check("member", muster_cluster_get_member(cluster, member, &info), NULL);
        all += memory_kb((long)info.pid, "Pss");
    }
    const double look = now_us();
    close_cluster(cluster);
    printf("ms\t%.6g\nper_ms\t%.6g\nmaster_kb\t%.6g\nworker_kb\t%.6g\nleave_ms\t%.6g\n", (joined - begun) * 1e-3,
           (joined - begun) * 1e-3 / (double)workers, (after - before) / (double)workers, all / (double)workers,
           (now_us() - look) * 1e-3);
    muster_context_release(c);
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "worker")) return work();
    const char *what = "start", *how = "blocking";
    long workers = 1, scale = 100;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--what"))
            what = argv[i + 1];
        else if (!strcmp(argv[i], "--over"))
            how = argv[i + 1];
        else if (!strcmp(argv[i], "--workers"))
            workers = atol(argv[i + 1]);
        else if (!strcmp(argv[i], "--scale"))
            scale = atol(argv[i + 1]);
        else
            die(argv[i], "unknown option");
    }
    if (!strcmp(what, "stamp")) {
        printf("at_us\t%.1f\n", now_us());
    } else if (!strcmp(what, "start")) {
        start(workers);
    } else if (!strcmp(what, "trip")) {
        trip(how, 20000 * scale / 100);
    } else if (!strcmp(what, "members")) {
        members(scale < 100 && workers > 16 ? 16 : workers);
    } else {
        die(what, "is not measured here");
    }
    return 0;
}
