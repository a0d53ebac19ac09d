/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share: a rank, its context, streams that must work. A promise that is not kept ends
 * the rank with status 1, and mpirun the job. */
#ifndef MUSTER_TESTS_MPI_RANKS_H
#define MUSTER_TESTS_MPI_RANKS_H

#include <muster/muster.h>
#include <muster/plugin.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define PATIENCE (30 * SECOND)

static int rank_of_job = -1;
static const char *options_of_addresses = ""; /* "?upgrade=no": through MPI also on one host */

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", rank_of_job, __FILE__, __LINE__, #condition);              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        muster_error error = {0};                                                                                      \
        const muster_status got = (call);                                                                              \
        if (got != MUSTER_OK) {                                                                                        \
            fprintf(stderr, "rank %d: %s:%d: %s: %s %s\n", rank_of_job, __FILE__, __LINE__, #call,                     \
                    muster_status_name(got), error.message);                                                           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static inline int rank_by_environment(void) {
    const char *text = getenv("OMPI_COMM_WORLD_RANK");
    if (text == NULL) text = getenv("PMI_RANK");
    return text != NULL ? atoi(text) : -1;
}

static inline int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static inline double processor_ms(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-3;
}

static inline muster_context *new_context(uint32_t flags) {
    static const char secret[] = "known to all ranks of the test";
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    config.flags = flags;
    muster_context *made = NULL;
    OK(muster_context_create(&config, &made, &error));
    return made;
}

static inline muster_listener *listen_at(muster_context *context, const char *address) {
    char text[256];
    snprintf(text, sizeof text, "%s%s", address, options_of_addresses);
    muster_listener *made = NULL;
    OK(muster_transport_listen(context, text, strlen(text), NULL, &made, &error));
    return made;
}

/* Waits until somebody listens there. */
static inline muster_stream *dial(muster_context *context, const char *address) {
    char text[256];
    snprintf(text, sizeof text, "%s%s", address, options_of_addresses);
    const muster_transport_config patient = {.struct_size = sizeof patient, .retry_ns = PATIENCE};
    muster_stream *made = NULL;
    muster_error why = {0};
    muster_status status;
    const int64_t until = now() + PATIENCE;
    do status = muster_transport_dial(context, text, strlen(text), &patient, PATIENCE, &made, &why);
    while (status == MUSTER_E_PEER && now() < until); /* one that listened before, and was about to leave */
    if (status != MUSTER_OK)
        fprintf(stderr, "rank %d: %s: %s %s\n", rank_of_job, text, muster_status_name(status), why.message);
    EXPECT(status == MUSTER_OK);
    return made;
}

static inline muster_stream *dial_rank(muster_context *context, int rank, const char *service) {
    char address[128];
    snprintf(address, sizeof address, "mpi://%d/%s", rank, service);
    return dial(context, address);
}

/* What a dial answers that is not to work. */
static inline muster_status refused_dial(muster_context *context, const char *address, muster_error *why) {
    muster_stream *stream = NULL;
    memset(why, 0, sizeof *why);
    const muster_status status = muster_transport_dial(context, address, strlen(address), NULL, PATIENCE, &stream, why);
    muster_stream_release(stream);
    return status;
}

static inline muster_stream *accept_one(muster_listener *listener) {
    muster_stream *made = NULL;
    OK(muster_listener_accept(listener, PATIENCE, &made, &error));
    return made;
}

static inline void put(muster_stream *stream, const void *data, size_t size) {
    size_t moved = 0;
    OK(muster_stream_write(stream, data, size, PATIENCE, &moved));
    (void)moved;
}
static inline void get(muster_stream *stream, void *data, size_t size) {
    size_t moved = 0;
    const muster_status status = muster_stream_read_into(stream, data, size, 0, PATIENCE, &moved);
    muster_error why = {0};
    if (status != MUSTER_OK && muster_stream_reason(stream, NULL, &why) != MUSTER_OK)
        fprintf(stderr, "rank %d: %s\n", rank_of_job, why.message);
    OK(status);
    EXPECT(moved == size);
}
static inline uint64_t get_number(muster_stream *stream) {
    uint64_t number = 0;
    get(stream, &number, sizeof number);
    return number;
}
static inline void put_number(muster_stream *stream, uint64_t number) {
    put(stream, &number, sizeof number);
}
static inline void close_stream(muster_stream *stream) {
    OK(muster_stream_close(stream, PATIENCE));
    muster_stream_release(stream);
}
static inline void close_context(muster_context *context) {
    OK(muster_context_close(context, PATIENCE));
    muster_context_release(context);
}

/* The byte at a place of a numbered sequence; no period that a lost piece could hide in. */
static inline void fill(unsigned char *to, size_t size, uint64_t place, uint64_t sequence) {
    for (size_t i = 0; i < size; i++) {
        const uint64_t x = (place + i) * 0x9E3779B97F4A7C15u + sequence * 0xD1B54A32D192ED03u;
        to[i] = (unsigned char)(x >> 56 ^ x >> 24);
    }
}
static inline void put_sequence(muster_stream *stream, uint64_t size, uint64_t sequence) {
    static _Thread_local unsigned char piece[1 << 16];
    for (uint64_t at = 0; at < size;) {
        const size_t bytes = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        fill(piece, bytes, at, sequence);
        put(stream, piece, bytes);
        at += bytes;
    }
}
static inline void get_sequence(muster_stream *stream, uint64_t size, uint64_t sequence) {
    static _Thread_local unsigned char piece[1 << 16], wanted[1 << 16];
    for (uint64_t at = 0; at < size;) {
        const size_t bytes = size - at < sizeof piece ? (size_t)(size - at) : sizeof piece;
        get(stream, piece, bytes);
        fill(wanted, bytes, at, sequence);
        EXPECT(memcmp(piece, wanted, bytes) == 0);
        at += bytes;
    }
}

/* A file in the folder of this run tells the script what mpirun's status cannot: that the promises were kept although
 * a rank was killed. */
static inline void passed(void) {
    const char *folder = getenv("MUSTER_TEST_FOLDER");
    if (folder == NULL) return;
    char path[512];
    snprintf(path, sizeof path, "%s/passed.%d", folder, rank_of_job);
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    fclose(file);
}

#endif
