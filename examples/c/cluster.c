// SPDX-License-Identifier: MIT
// A cluster in one program: a master squares 100,000 numbers with four workers, which are this program, started again.
// One of them is killed in the middle: its numbers are sent to others, and a fifth worker is added. Then all leave.
//
// The master has one queue for everything: events of the cluster, new streams, and answers that can be read.
#include <muster/muster.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { numbers = 100000, per_block = 1000, blocks = numbers / per_block, most_workers = 64, nothing = -1 };
static const int64_t second = 1000000000;
static muster_error error;

static void check(muster_status status, const char *what) {
    if (status == MUSTER_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, muster_status_name(status), error.message);
    exit(1);
}

// ---- a worker

static void square_blocks(muster_stream *stream) {
    int64_t block[per_block];
    size_t moved;
    while (muster_stream_read_into(stream, block, sizeof block, 0, -1, &moved) == MUSTER_OK) {
        for (int i = 0; i < per_block; i++) block[i] *= block[i];
        if (muster_stream_write(stream, block, sizeof block, -1, &moved) != MUSTER_OK) break;
    }
}

static int work(void) {
    muster_context *context;
    muster_cluster *cluster;
    muster_cluster_event event;
    const muster_worker_config config = {.struct_size = sizeof config, .flags = MUSTER_WORKER_EXIT_WITH_MASTER};
    check(muster_worker_context(NULL, 0, &context, &error), "ticket");
    check(muster_worker_start(context, &config, 30 * second, &cluster, &error), "come in");
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        if (event.kind == MUSTER_CLUSTER_STREAM) {
            square_blocks(event.stream);
            muster_stream_release(event.stream);
        } else if (event.kind == MUSTER_CLUSTER_LEAVE) {
            muster_cluster_close(cluster, -1);
        }
    }
    muster_cluster_release(cluster);
    muster_context_release(context);
    return 0;
}

// ---- the master

static int64_t results[numbers];
static struct worker {
    muster_stream *stream;
    int block;  // the block that it computes, or `nothing`
    size_t got; // bytes of the answer
} workers[most_workers];
static int waiting[blocks], waiting_count, done;

static muster_context *context;
static muster_queue *queue;
static muster_cluster *cluster;

static void add(uint32_t count) {
    const char *const argv[] = {"/proc/self/exe", "worker", NULL};
    const muster_launch launch = {.struct_size = sizeof launch, .count = count, .argv = argv};
    check(muster_cluster_add(cluster, &launch, NULL, &error), "add workers");
}

static void give_work(struct worker *worker) {
    if (waiting_count == 0) return;
    int64_t block[per_block];
    size_t moved;
    worker->block = waiting[--waiting_count];
    worker->got = 0;
    for (int i = 0; i < per_block; i++) block[i] = (int64_t)worker->block * per_block + i;
    muster_stream_write(worker->stream, block, sizeof block, -1, &moved); // if it is gone, an event reports that
}

static void take_answers(struct worker *worker) {
    while (worker->block != nothing) {
        char *const place = (char *)(results + (size_t)worker->block * per_block);
        const size_t size = per_block * sizeof *results;
        size_t moved;
        const muster_status status =
            muster_stream_read(worker->stream, place + worker->got, size - worker->got, 0, &moved);
        worker->got += moved;
        if (worker->got == size) {
            worker->block = nothing;
            done++;
            give_work(worker);
        } else if (status != MUSTER_OK) {
            return; // AGAIN: the watch is armed; otherwise an event reports its end
        }
    }
}

static void hear_events(void) {
    muster_cluster_event event;
    while (muster_cluster_next_event(cluster, 0, &event) == MUSTER_OK) {
        struct worker *const worker = &workers[event.member];
        if (event.kind == MUSTER_CLUSTER_JOINED) {
            check(
                muster_cluster_dial_begin(cluster, event.member, "square", 6, 30 * second, queue, event.member, &error),
                "dial");
        } else if (event.kind == MUSTER_CLUSTER_DEAD) {
            printf("worker %u is dead: %s\n", event.member, event.text);
            if (worker->stream && worker->block != nothing) waiting[waiting_count++] = worker->block;
            worker->block = nothing;
            add(1);
        } else if (event.kind == MUSTER_CLUSTER_FAILED) {
            fprintf(stderr, "worker %u did not come: %s\n", event.member, event.text);
            exit(1);
        }
    }
}

/* Kills a worker that has joined. The process id of another one is 0, with which kill() would end this whole group. */
static bool kill_one(void) {
    muster_member_info info = {0};
    for (uint32_t member = 1; member < most_workers && info.pid == 0; member++)
        if (workers[member].stream != NULL) check(muster_cluster_get_member(cluster, member, &info), "worker");
    return info.pid > 0 && kill((pid_t)info.pid, SIGKILL) == 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "worker") == 0) return work();
    check(muster_context_create(NULL, &context, &error), "context");
    check(muster_queue_create(context, NULL, &queue, &error), "queue");
    const muster_cluster_config config = {.struct_size = sizeof config, .queue = queue};
    check(muster_cluster_open(context, &config, &cluster, &error), "cluster");
    for (int i = 0; i < blocks; i++) waiting[waiting_count++] = i;
    add(4);
    bool killed = false;
    while (done < blocks) {
        muster_completion entry;
        check(muster_queue_next(queue, 60 * second, &entry, &error), "wait");
        struct worker *const worker = &workers[entry.tag];
        if (entry.kind == MUSTER_EVENT_READY && entry.tag == 0) {
            hear_events();
        } else if (entry.kind == MUSTER_EVENT_READY) {
            take_answers(worker);
        } else if (entry.kind == MUSTER_DONE_DIAL && entry.status == MUSTER_OK) {
            worker->stream = entry.object;
            worker->block = nothing;
            check(muster_stream_watch(worker->stream, MUSTER_STREAM_READABLE, queue, entry.tag), "watch");
            give_work(worker);
        }
        if (!killed && done >= blocks / 4) killed = kill_one();
    }
    while (workers[5].stream == NULL && killed) { // the fifth worker may join late
        muster_completion entry;
        check(muster_queue_next(queue, 60 * second, &entry, &error), "wait");
        if (entry.kind == MUSTER_EVENT_READY && entry.tag == 0) hear_events();
        if (entry.kind == MUSTER_DONE_DIAL) workers[entry.tag].stream = entry.object;
    }
    for (int64_t i = 0; i < numbers; i++)
        if (results[i] != i * i) return fprintf(stderr, "%lld squared is wrong\n", (long long)i), 1;
    printf("%d numbers are squared\n", (int)numbers);
    for (int i = 0; i < most_workers; i++) muster_stream_release(workers[i].stream);
    check(muster_cluster_close(cluster, -1), "close");
    puts("all have left");
    muster_cluster_release(cluster);
    muster_queue_release(queue);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}
