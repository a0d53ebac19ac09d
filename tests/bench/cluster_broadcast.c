// SPDX-License-Identifier: MIT
// Bytes for all workers of a cluster on this host: `cluster_broadcast COUNT BYTES WAY [--scale N]` prints the median of
// five runs (below 100: one), in ms, until every worker has them. WAY: broadcast (one memory for all), broadcast-read
// (and each has read it), tree (no shared memory: handed on), single (a stream to each, one after the other, to the
// last byte read there), single-tcp (the same without shared memory).
#include <muster/worker.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;
enum { most_runs = 5 };

static int by_size(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void check(muster_status status, const char *what, const muster_error *error) {
    if (status == MUSTER_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, muster_status_name(status), error->message);
    exit(1);
}

// All that comes on the stream into memory of its own; then a word that it is there.
static void take(muster_stream *stream, uint64_t size) {
    char *const data = malloc(size);
    size_t moved = 0;
    if (data != NULL && muster_stream_read_into(stream, data, size, 0, -1, &moved) == MUSTER_OK)
        muster_stream_write(stream, "!", 1, -1, &moved);
    free(data);
    muster_stream_close(stream, second);
    muster_stream_release(stream);
}

static volatile uint64_t sum; // so that it is not left out

static void add_up(const uint64_t *words, uint64_t size) {
    uint64_t all = 0;
    for (uint64_t i = 0; i < size / sizeof *words; i++) all += words[i];
    sum = all;
}

static int work(void) {
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    check(muster_worker_context(NULL, 0, &context, &error), "worker", &error);
    check(muster_worker_start(context, NULL, 20 * second, &cluster, &error), "worker", &error);
    muster_cluster_event event;
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        if (event.kind == MUSTER_CLUSTER_STREAM) take(event.stream, strtoull(event.label, NULL, 10));
        if (event.kind == MUSTER_CLUSTER_BROADCAST) {
            if (event.label_bytes != 0) add_up(event.data, event.size_bytes);
            muster_broadcast_release(event.broadcast);
        }
        if (event.kind == MUSTER_CLUSTER_LEAVE) muster_cluster_close(cluster, -1);
    }
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}

static void send_to_each(muster_cluster *cluster, uint32_t count, const char *data, uint64_t size) {
    char label[32], word;
    snprintf(label, sizeof label, "%llu", (unsigned long long)size);
    for (uint32_t member = 1; member <= count; member++) {
        muster_error error = {0};
        muster_stream *stream = NULL;
        size_t moved;
        check(muster_cluster_dial(cluster, member, label, strlen(label), -1, &stream, &error), "dial", &error);
        check(muster_stream_write(stream, data, size, -1, &moved), "write", &error);
        check(muster_stream_read(stream, &word, 1, -1, &moved), "read", &error);
        muster_stream_close(stream, second);
        muster_stream_release(stream);
    }
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "worker") == 0) return work();
    if (argc < 4) {
        fprintf(stderr, "usage: %s COUNT BYTES broadcast|broadcast-read|tree|single|single-tcp [--scale N]\n", argv[0]);
        return 2;
    }
    const uint32_t count = (uint32_t)atoi(argv[1]);
    const uint64_t size = strtoull(argv[2], NULL, 10);
    const int single = strncmp(argv[3], "single", 6) == 0,
              apart = strcmp(argv[3], "tree") == 0 || strcmp(argv[3], "single-tcp") == 0;
    const int reads = strcmp(argv[3], "broadcast-read") == 0;
    const int runs = argc > 5 && atoi(argv[5]) < 100 ? 1 : most_runs;
    double times[most_runs];
    char self[4096] = "", *const data = malloc(size);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || data == NULL) return 1;
    memset(data, 'x', size);

    const char *const listen = apart ? "tcp://127.0.0.1:0?upgrade=no" : "tcp://127.0.0.1:0";
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    check(muster_context_create(NULL, &context, &error), "context", &error);
    const muster_cluster_config config = {
        .struct_size = sizeof config, .listen = listen, .listen_bytes = strlen(listen)};
    check(muster_cluster_open(context, &config, &cluster, &error), "cluster", &error);
    const char *const words[] = {self, "worker", NULL};
    const muster_launch launch = {.struct_size = sizeof launch, .argv = words, .count = count, .listen = listen};
    check(muster_cluster_add(cluster, &launch, NULL, &error), "add", &error);
    for (uint32_t joined = 0; joined < count;) {
        muster_cluster_event event;
        check(muster_cluster_next_event(cluster, 60 * second, &event), "event", &error);
        joined += event.kind == MUSTER_CLUSTER_JOINED;
    }
    for (int run = 0; run < runs; run++) {
        const double begun = now();
        if (single)
            send_to_each(cluster, count, data, size);
        else
            check(muster_cluster_broadcast(cluster, NULL, 0, "read", reads ? 4 : 0, data, size, 60 * second, NULL,
                                           &error),
                  "broadcast", &error);
        if (reads) send_to_each(cluster, count, data, 0); // an answer comes when what came before is done
        times[run] = now() - begun;
    }
    qsort(times, (size_t)runs, sizeof *times, by_size);
    printf("ms\t%.6g\n", times[runs / 2] * 1e3);
    muster_cluster_close(cluster, -1);
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    free(data);
    return 0;
}
