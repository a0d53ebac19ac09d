/* SPDX-License-Identifier: MIT */
/* What a broker costs others, and itself, everything through it:
 *   --mode memory     a reader that is stopped, 8 senders that push what they can, over 8 streams each; prints how much
 *                     the broker's memory has grown (mb), how much of that in the second half (late_mb), and the most
 *                     bytes under way by its own figures (queued_mb)
 *   --mode fair-other, fair-same    A sends 80 MB after 80 MB to B; round trips of 64 B between C and D, C and B (us,
 * us99), and by how many 256 KiB segments of the bulk they are longer than before it began (segments, segments99)
 *   --mode idle-other, idle-same    the same without the bulk
 *   --mode to-all, to-each    20 MB from one member to 8, as one block for all or to one after the other; ms until all
 *                     have said that they have it
 *   --mode streams    100 streams between two members; processor time of the broker and of the members, ms/s
 * --over as for star.c. */
#include "star.h"

#include <signal.h>

enum { senders = 8, streams_each = 8, idle_streams = 100, bulk_bytes = 80000000, calls_max = 1 << 20 };

struct load {
    struct options options;
    struct star star;
    double seconds;
    int there[2], start[2];  /* pipes: a byte from each who is ready, and one for each to begin */
    _Atomic uint64_t *taken; /* bytes of the bulk that B has read; shared */
};

static double memory_mb(pid_t process) {
    char path[64];
    long whole = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)process);
    FILE *file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%ld %ld", &whole, &resident) != 2) die_errno(path);
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}
static void rest(double seconds) {
    const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}
static void stop_process(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}

/* ---- memory ---- */

static void sender(void *argument) {
    struct load *l = argument;
    muster_context *c = context();
    muster_stream *streams[streams_each];
    for (int i = 0; i < streams_each; i++) streams[i] = star_dial(&l->star, c, "reader");
    enum { piece = 1 << 20 };
    const unsigned char *data = buffer(piece);
    char byte;
    if (write(l->there[1], "!", 1) != 1 || read(l->start[0], &byte, 1) != 1) die_errno("pipe");
    for (int full = 0;; full = full < streams_each ? full + 1 : full) {
        for (int i = 0; i < streams_each; i++) {
            size_t moved = 0;
            const muster_status status = muster_stream_write(streams[i], data, piece, 0, &moved);
            if (status != MUSTER_OK && status != MUSTER_AGAIN) stream_failed(streams[i], "write", status);
            if (moved != 0) full = 0;
        }
        if (full == streams_each) rest(0.01);
    }
}
/* Accepts everything and reads nothing. */
static void reader(void *argument) {
    struct load *l = argument;
    muster_context *c = context();
    muster_listener *listener = star_listen(&l->star, c, "reader");
    for (int i = 0; i < senders * streams_each; i++) star_accept(listener);
    for (;;) pause();
}
static void memory(struct load *l) {
    const double before = memory_mb(l->star.broker);
    const pid_t sleeper = start_process(reader, l);
    pid_t all[senders];
    for (int i = 0; i < senders; i++) all[i] = start_process(sender, l);
    char byte;
    for (int i = 0; i < senders; i++)
        if (read(l->there[0], &byte, 1) != 1) die_errno("read");
    kill(sleeper, SIGSTOP);
    if (write(l->start[1], "!!!!!!!!", senders) != senders) die_errno("write");
    double most = 0, half = 0, second = 0, queued = 0;
    const int samples = 40;
    for (int i = 0; i < samples; i++) {
        rest(l->seconds / samples);
        const double grown = memory_mb(l->star.broker) - before,
                     bytes = (double)star_stats(&l->star).queued_bytes / 1e6;
        if (grown > most) most = grown;
        if (bytes > queued) queued = bytes;
        if (i < samples / 2)
            half = most;
        else if (grown > second)
            second = grown;
    }
    printf("mb\t%.6g\nlate_mb\t%.6g\nqueued_mb\t%.6g\n", most, second > half ? second - half : 0, queued);
    for (int i = 0; i < senders; i++) stop_process(all[i]);
    stop_process(sleeper);
}

/* ---- fairness ---- */

static void *echo(void *argument) {
    struct channel c = {star_accept(argument)};
    unsigned char data[64];
    for (;;) {
        size_t moved;
        if (muster_stream_read_into(c.stream, data, sizeof data, 0, -1, &moved) != MUSTER_OK) return NULL;
        channel_write(&c, data, sizeof data);
    }
}
/* B: reads the bulk in one thread, answers calls in the other. */
static void bulk_reader(void *argument) {
    struct load *l = argument;
    muster_context *c = context();
    muster_listener *calls = star_listen(&l->star, c, "B"), *bulk = star_listen(&l->star, c, "B-bulk");
    pthread_t thread;
    if (pthread_create(&thread, NULL, echo, calls) != 0) die("pthread_create", "failed");
    struct channel in = {star_accept(bulk)};
    unsigned char *data = buffer(bulk_bytes);
    for (;;) {
        enum { piece = 4000000 };
        for (size_t at = 0; at < bulk_bytes; at += piece) {
            channel_read(&in, data + at, piece);
            *l->taken += piece;
        }
    }
}
static void bulk_sender(void *argument) {
    struct load *l = argument;
    muster_context *c = context();
    struct channel out = {star_dial(&l->star, c, "B-bulk")};
    const unsigned char *data = buffer(bulk_bytes);
    char byte;
    if (read(l->start[0], &byte, 1) != 1) die_errno("read");
    for (;;) channel_write(&out, data, bulk_bytes);
}
static void echo_process(void *argument) {
    struct load *l = argument;
    echo(star_listen(&l->star, context(), "D"));
}
/* Round trips for so long, sorted. */
static long calls(struct channel *c, double *times, double seconds) {
    unsigned char data[64] = {0};
    long count = 0;
    for (const double end = now_us() + seconds * 1e6; count < 100 || (now_us() < end && count < calls_max); count++) {
        const double begun = now_us();
        channel_write(c, data, sizeof data);
        channel_read(c, data, sizeof data);
        times[count] = now_us() - begun;
    }
    qsort(times, (size_t)count, sizeof *times, compare_doubles);
    return count;
}
static void fairness(struct load *l, int with_bulk, const char *other) {
    const pid_t all[] = {start_process(bulk_reader, l), start_process(bulk_sender, l), start_process(echo_process, l)};
    muster_context *c = context();
    struct channel channel = {star_dial(&l->star, c, other)};
    double *times = (double *)buffer(sizeof *times * calls_max);
    calls(&channel, times, l->seconds / 10); /* warm */
    long count = calls(&channel, times, l->seconds / 2);
    const double before = times[count / 2];
    if (with_bulk) {
        if (write(l->start[1], "!", 1) != 1) die_errno("write");
        while (*l->taken < bulk_bytes) rest(0.001);
        const uint64_t taken = *l->taken;
        const double begun = now_us();
        count = calls(&channel, times, l->seconds / 2);
        const double bytes_per_us = (double)(*l->taken - taken) / (now_us() - begun),
                     per_segment = 262144 / bytes_per_us;
        printf("gbps\t%.6g\nsegments\t%.6g\nsegments99\t%.6g\n", bytes_per_us * 1e-3,
               (times[count / 2] - before) / per_segment, (times[count * 99 / 100] - before) / per_segment);
    }
    printf("us\t%.6g\nus99\t%.6g\n", times[count / 2], times[count * 99 / 100]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) stop_process(all[i]);
    muster_stream_release(channel.stream);
    muster_context_close(c, 0);
    muster_context_release(c);
}

/* ---- one to many ---- */

enum { receivers = 8, block_bytes = 20000000 };

static void receiver(void *argument) {
    struct load *l = argument;
    muster_context *c = context();
    struct channel in = {star_dial(&l->star, c, "sender")};
    unsigned char *data = buffer(block_bytes);
    for (;;) {
        channel_read(&in, data, block_bytes);
        channel_write(&in, data, 1);
    }
}
static void send_block(muster_stream *const *streams, const unsigned char *data, muster_queue *queue, int together) {
    if (together) {
        check("write", muster_stream_write_owned_many(streams, receivers, data, block_bytes, queue, NULL, NULL), NULL);
    } else {
        for (int i = 0; i < receivers; i++)
            check("write", muster_stream_write_owned(streams[i], data, block_bytes, queue, (uint64_t)i), NULL);
    }
    for (int i = 0; i < receivers; i++) {
        muster_completion done;
        check("release", muster_queue_next(queue, -1, &done, NULL), NULL);
        check("release", done.status, NULL);
        unsigned char byte;
        channel_read(&(struct channel){streams[done.tag]}, &byte, 1);
    }
}
static void one_to_many(struct load *l, int together) {
    muster_context *c = context();
    muster_listener *listener = star_listen(&l->star, c, "sender");
    pid_t all[receivers];
    muster_stream *streams[receivers];
    for (int i = 0; i < receivers; i++) all[i] = start_process(receiver, l);
    for (int i = 0; i < receivers; i++) streams[i] = star_accept(listener);
    const unsigned char *data = buffer(block_bytes);
    muster_queue *queue;
    check("queue", muster_queue_create(c, NULL, &queue, NULL), NULL);
    send_block(streams, data, queue, together); /* warm */
    enum { rounds_max = 64 };
    double times[rounds_max];
    int rounds = 0;
    for (const double end = now_us() + l->seconds * 1e6; rounds < 3 || (now_us() < end && rounds < rounds_max);) {
        const double begun = now_us();
        send_block(streams, data, queue, together);
        times[rounds++] = now_us() - begun;
    }
    qsort(times, (size_t)rounds, sizeof *times, compare_doubles);
    printf("ms\t%.6g\n", times[rounds / 2] / 1000);
    for (int i = 0; i < receivers; i++) stop_process(all[i]);
    for (int i = 0; i < receivers; i++) muster_stream_release(streams[i]);
    muster_queue_release(queue);
    muster_listener_release(listener);
    muster_context_close(c, 0);
    muster_context_release(c);
}

/* ---- idle streams ---- */

static void idle_dialler(void *argument) {
    struct load *l = argument;
    muster_context *c = context();
    for (int i = 0; i < idle_streams; i++) star_dial(&l->star, c, "listener");
    for (;;) pause();
}
static double processor_ms(pid_t process) {
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &t) != 0) die("clock", "no such process");
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static void idle(struct load *l) {
    const pid_t dialler = start_process(idle_dialler, l);
    muster_context *c = context();
    muster_listener *listener = star_listen(&l->star, c, "listener");
    muster_stream *streams[idle_streams];
    for (int i = 0; i < idle_streams; i++) streams[i] = star_accept(listener);
    rest(l->seconds / 4);
    const pid_t who[] = {l->star.broker, getpid(), dialler};
    double used[3];
    for (int i = 0; i < 3; i++) used[i] = processor_ms(who[i]);
    rest(l->seconds);
    for (int i = 0; i < 3; i++) used[i] = (processor_ms(who[i]) - used[i]) / l->seconds;
    printf("broker_ms\t%.6g\nmember_ms\t%.6g\n", used[0], (used[1] + used[2]) / 2);
    stop_process(dialler);
    for (int i = 0; i < idle_streams; i++) muster_stream_release(streams[i]);
    muster_listener_release(listener);
    muster_context_close(c, 0);
    muster_context_release(c);
}

int main(int argc, char **argv) {
    struct load load = {.options = read_options(argc, argv)}, *l = &load;
    const char *mode = l->options.mode;
    l->seconds = (double)l->options.count / 4000; /* 4 s at full scale */
    l->taken = mmap(NULL, sizeof *l->taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (l->taken == MAP_FAILED || pipe(l->there) != 0 || pipe(l->start) != 0) die_errno("memory");
    star_begin(&l->star, l->options.over);
    if (!strcmp(mode, "memory"))
        memory(l);
    else if (!strcmp(mode, "streams"))
        idle(l);
    else if (!strncmp(mode, "to-", 3))
        one_to_many(l, !strcmp(mode, "to-all"));
    else
        fairness(l, !strncmp(mode, "fair-", 5), strstr(mode, "other") ? "D" : "B");
    star_end(&l->star);
    return 0;
}
