/* SPDX-License-Identifier: MIT */
/* A host that uses MPI itself, and has initialised it. host <scenario> [options of addresses], two ranks. */
#include "ranks.h"

#include <mpi.h>

static int level_of(const char *name) {
    return !strcmp(name, "single")       ? MPI_THREAD_SINGLE
           : !strcmp(name, "funneled")   ? MPI_THREAD_FUNNELED
           : !strcmp(name, "serialized") ? MPI_THREAD_SERIALIZED
                                         : MPI_THREAD_MULTIPLE;
}

/* Messages of the host's own, of any source and tag: none of ours is among them. */
static void own_traffic(int round) {
    const int other = 1 - rank_of_job, out[2] = {rank_of_job, round};
    int in[2] = {-1, -1};
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(in, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    MPI_Send(out, 2, MPI_INT, other, round, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    EXPECT(status.MPI_SOURCE == other && status.MPI_TAG == round && in[0] == other && in[1] == round);
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    EXPECT(flag == 0);
}

static void talk(muster_context *context) {
    muster_listener *listener = NULL;
    muster_stream *stream;
    if (rank_of_job == 0) {
        listener = listen_at(context, "mpi:///host");
        stream = accept_one(listener);
    } else {
        stream = dial_rank(context, 0, "host");
    }
    for (int round = 0; round < 30; round++) {
        const uint64_t size = (uint64_t)1 << (round % 20);
        own_traffic(round);
        if (rank_of_job == 0) {
            put_sequence(stream, size, (uint64_t)round);
            EXPECT(get_number(stream) == size);
        } else {
            get_sequence(stream, size, (uint64_t)round);
            put_number(stream, size);
        }
        /* A context that is driven does nothing while its host is inside of MPI. */
        if (rank_of_job == 1 && round < 29) OK(muster_stream_flush(stream, PATIENCE));
    }
    close_stream(stream);
    muster_listener_release(listener);
}

static void *load(void *context) {
    muster_error *why = calloc(1, sizeof *why);
    why->status = muster_plugin_find(context, "mpi", 3, why);
    return why;
}

static void expect_declined(muster_error *why, const char *text) {
    if (why->status != MUSTER_E_UNSUPPORTED || strstr(why->message, text) == NULL) {
        fprintf(stderr, "%s: %s\n", muster_status_name(why->status), why->message);
        _exit(1);
    }
}

/* Each level of threads: refused where it cannot be, with the reason; else it works beside the host's own MPI. */
static void level(int level, int argc, char **argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, level, &provided);
    EXPECT(provided == level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_job);
    muster_context *threaded = new_context(0), *driven = new_context(MUSTER_CONTEXT_EXTERNAL);
    if (level < MPI_THREAD_MULTIPLE) {
        muster_error *why = load(threaded);
        expect_declined(why, "MUSTER_CONTEXT_EXTERNAL");
        free(why);
    }
    if (level < MPI_THREAD_SERIALIZED) { /* another thread than the one that may call MPI */
        pthread_t thread;
        void *why = NULL;
        EXPECT(pthread_create(&thread, NULL, load, driven) == 0);
        pthread_join(thread, &why);
        expect_declined(why, "MPI_THREAD_FUNNELED");
        free(why);
    }
    talk(driven);
    close_context(driven); /* it was the rank, and has no thread to give the name back later */
    if (level == MPI_THREAD_MULTIPLE) talk(threaded);
    close_context(threaded);
    own_traffic(99);
    int finalised = 1;
    MPI_Finalized(&finalised);
    EXPECT(!finalised); /* it is the host's */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

/* Driven by a thread that may not call MPI: told, not done. */
static void *drive(void *context) {
    char byte;
    size_t moved = 0;
    muster_stream **stream = context;
    muster_status *status = malloc(sizeof *status);
    *status = muster_stream_read(*stream, &byte, 1, PATIENCE, &moved);
    return status;
}
static void wrong_thread(int argc, char **argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_job);
    muster_context *context = new_context(MUSTER_CONTEXT_EXTERNAL);
    muster_listener *listener = NULL;
    muster_stream *stream;
    if (rank_of_job == 0) {
        listener = listen_at(context, "mpi:///x");
        stream = accept_one(listener);
        pthread_t thread;
        void *got = NULL;
        EXPECT(pthread_create(&thread, NULL, drive, &stream) == 0);
        pthread_join(thread, &got);
        EXPECT(*(muster_status *)got == MUSTER_E_PEER);
        muster_error why = {0};
        EXPECT(muster_stream_reason(stream, NULL, &why) == MUSTER_E_PEER);
        EXPECT(strstr(why.message, "MPI_THREAD_FUNNELED") != NULL);
        free(got);
    } else {
        char byte = 0;
        size_t moved = 0;
        stream = dial_rank(context, 0, "x");
        put(stream, &byte, 1);
        EXPECT(muster_stream_read(stream, &byte, 1, PATIENCE, &moved) == MUSTER_E_PEER);
    }
    muster_stream_release(stream);
    muster_listener_release(listener);
    muster_context_close(context, SECOND);
    muster_context_release(context);
    MPI_Finalize();
}

/* The host finalises MPI under a stream that is open: the stream ends with the reason. MPICH takes no lock any more
 * when it finalises, so there no other thread may be in MPI then: the host drives the context (docs/guide/mpi.md). */
#ifdef MPICH_VERSION
#define OPEN_WHEN_FINALISED MUSTER_CONTEXT_EXTERNAL
#else
#define OPEN_WHEN_FINALISED 0
#endif
static void finalised(int argc, char **argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_job);
    muster_context *context = new_context(OPEN_WHEN_FINALISED);
    muster_listener *listener = NULL;
    muster_stream *stream;
    if (rank_of_job == 0) {
        listener = listen_at(context, "mpi:///x");
        stream = accept_one(listener);
    } else {
        stream = dial_rank(context, 0, "x");
    }
    put_number(stream, 1);
    OK(muster_stream_flush(stream, PATIENCE));
    EXPECT(get_number(stream) == 1);
    MPI_Barrier(MPI_COMM_WORLD); /* both have read: MPI_Finalize() ends what has not left */
    MPI_Finalize();
    char byte;
    size_t moved = 0;
    EXPECT(muster_stream_read(stream, &byte, 1, PATIENCE, &moved) == MUSTER_E_PEER);
    muster_error why;
    EXPECT(refused_dial(context, "mpi://0/x", &why) == MUSTER_E_CLOSED);
    EXPECT(strstr(why.message, "finalised") != NULL);
    muster_stream_release(stream);
    muster_listener_release(listener);
    muster_context_close(context, SECOND);
    muster_context_release(context);
}

/* Ranks load the plug-in when they like; the one that is first waits for nobody but its dial. */
static void order(int argc, char **argv) {
    int provided = -1, go = 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_of_job);
    muster_context *context = new_context(0);
    if (rank_of_job == 0) {
        OK(muster_plugin_find(context, "mpi", 3, &error));
        MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD); /* only now does the other go on */
    } else {
        MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    talk(context);
    close_context(context);
    MPI_Finalize();
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    rank_of_job = rank_by_environment();
    if (argc > 2) options_of_addresses = argv[2];
    if (!strcmp(argv[1], "wrong_thread"))
        wrong_thread(argc, argv);
    else if (!strcmp(argv[1], "finalised"))
        finalised(argc, argv);
    else if (!strcmp(argv[1], "order"))
        order(argc, argv);
    else
        level(level_of(argv[1]), argc, argv);
    return 0;
}
