/* SPDX-License-Identifier: MIT */
/* A host that knows nothing of MPI and is not linked with it: the plug-in initialises it.
 * guest <scenario> [ranks] [options of addresses] */
#include "ranks.h"
#include "stopped.h"

#include <signal.h>
#include <sys/wait.h>

static int ranks;
static char service[32] = "echo";

/* ---- everybody with everybody, also with themselves ----------------------------------------------------------------
 */

struct served {
    pthread_t thread;
    muster_stream *stream;
};

static void *echo(void *argument) {
    struct served *one = argument;
    unsigned char piece[30000];
    for (;;) {
        size_t moved = 0;
        const muster_status status = muster_stream_read(one->stream, piece, sizeof piece, PATIENCE, &moved);
        if (status == MUSTER_E_END) break;
        EXPECT(status == MUSTER_OK);
        put(one->stream, piece, moved);
    }
    OK(muster_stream_finish(one->stream));
    close_stream(one->stream);
    return NULL;
}

struct writer {
    muster_stream *stream;
    uint64_t size, sequence;
};
static void *write_all(void *argument) {
    const struct writer *w = argument;
    put_sequence(w->stream, w->size, w->sequence);
    OK(muster_stream_finish(w->stream));
    return NULL;
}

static void talk_with(muster_context *context, int rank, uint64_t size) {
    struct writer w = {dial_rank(context, rank, service), size, (uint64_t)(rank * 100 + rank_of_job)};
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, write_all, &w) == 0);
    get_sequence(w.stream, size, w.sequence);
    pthread_join(thread, NULL);
    char byte;
    size_t moved;
    EXPECT(muster_stream_read(w.stream, &byte, 1, PATIENCE, &moved) == MUSTER_E_END);
    close_stream(w.stream);
}

static void *serve_all(void *argument) {
    muster_listener *listener = argument;
    struct served *all = calloc((size_t)ranks, sizeof *all);
    EXPECT(all != NULL);
    for (int i = 0; i < ranks; i++) {
        all[i].stream = accept_one(listener);
        EXPECT(pthread_create(&all[i].thread, NULL, echo, &all[i]) == 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(all[i].thread, NULL);
    free(all);
    return NULL;
}

static void everybody(muster_context *context, uint64_t size) {
    char address[64];
    snprintf(address, sizeof address, "mpi:///%s", service);
    muster_listener *listener = listen_at(context, address);
    pthread_t server;
    EXPECT(pthread_create(&server, NULL, serve_all, listener) == 0);
    for (int i = 0; i < ranks; i++) talk_with(context, (rank_of_job + i) % ranks, size);
    pthread_join(server, NULL);
    muster_listener_release(listener);
}

static void exchange(void) {
    muster_context *context = new_context(0);
    everybody(context, 3000000);
    close_context(context);
}

/* ---- signals -------------------------------------------------------------------------------------------------------
 */

static void own_handler(int number) {
    (void)number;
}

/* Also those of libraries that MPI brings along, which set theirs as soon as they are loaded. */
static void signals(void) {
    static struct sigaction before[NSIG];
    struct sigaction own = {.sa_handler = own_handler, .sa_flags = SA_RESTART};
    sigaction(SIGBUS, &own, NULL); /* the host's */
    sigaction(SIGSEGV, &own, NULL);
    for (int number = 1; number < NSIG; number++) sigaction(number, NULL, &before[number]);
    muster_context *context = new_context(0);
    everybody(context, 100000);
    const int set_by_libc = 0x04000000; /* SA_RESTORER */
    const int by_mpich = getenv("OMPI_COMM_WORLD_RANK") == NULL;
    for (int number = 1; number < NSIG; number++) {
        struct sigaction after;
        if (sigaction(number, NULL, &after) != 0) continue;
        if (by_mpich && number == SIGUSR1) continue; /* see docs/guide/mpi.md */
        if (after.sa_handler != before[number].sa_handler ||
            ((after.sa_flags ^ before[number].sa_flags) & ~set_by_libc) != 0) {
            fprintf(stderr, "signal %d has another handler\n", number);
            _exit(1);
        }
    }
    close_context(context);
}

/* ---- idle ----------------------------------------------------------------------------------------------------------
 */

/* Connected and silent: what a second of it costs. Heartbeats go once a second. */
static void idle(void) {
    muster_context *context = new_context(0);
    muster_stream *stream;
    muster_listener *listener = NULL;
    if (rank_of_job == 0) {
        listener = listen_at(context, "mpi:///idle");
        stream = accept_one(listener);
    } else {
        stream = dial_rank(context, 0, "idle");
    }
    char byte = 'x';
    size_t moved = 0;
    for (int i = 0; i < 1000; i++) { /* there was traffic before */
        if (rank_of_job == 0) put(stream, &byte, 1);
        get(stream, &byte, 1);
        if (rank_of_job != 0) put(stream, &byte, 1);
    }
    EXPECT(muster_stream_read(stream, &byte, 1, SECOND / 5, &moved) == MUSTER_TIMEOUT); /* it comes to rest */
    const double before = processor_ms();
    const int64_t begun = now();
    if (rank_of_job == 0) /* until the other has had its second, which may have begun earlier or later */
        EXPECT(muster_stream_read(stream, &byte, 1, PATIENCE, &moved) == MUSTER_OK);
    else
        EXPECT(muster_stream_read(stream, &byte, 1, SECOND, &moved) == MUSTER_TIMEOUT);
    const double used = processor_ms() - before, seconds = (double)(now() - begun) / (double)SECOND;
    if (used >= 5 * (1 + seconds))
        fprintf(stderr, "rank %d: %.1f ms of processor time in %.1f idle seconds\n", rank_of_job, used, seconds);
    EXPECT(used < 5 * (1 + seconds));
    put(stream, &byte, 1); /* and it wakes up */
    if (rank_of_job != 0) get(stream, &byte, 1);
    close_stream(stream);
    muster_listener_release(listener);
    close_context(context);
}

/* Loaded, and some rank has not come yet: whoever waits for it costs next to nothing as well. */
static void late(void) {
    muster_context *context = new_context(0);
    OK(muster_plugin_find(context, "mpi", 3, &error));
    if (rank_of_job == 0) listen_at(context, "mpi:///late");
    const double before = processor_ms();
    const int64_t begun = now();
    while (now() - begun < SECOND) usleep(50000);
    EXPECT(processor_ms() - before < 10);
    close_context(context);
}

/* ---- death ---------------------------------------------------------------------------------------------------------
 */

/* Rank 1 dies while it is written to; rank 2 is not touched by that, nobody hangs, not even at exit. */
static void killed(void) {
    muster_context *context = new_context(0);
    OK(muster_plugin_find(context, "mpi", 3, &error));
    if (rank_of_job == 0) {
        muster_stream *victim = dial_rank(context, 1, "pid"), *other = dial_rank(context, 2, "pid");
        const pid_t pid = (pid_t)get_number(victim);
        get_number(other);
        unsigned char *bytes = calloc(1, 32 << 20);
        size_t moved = 0;
        EXPECT(bytes != NULL);
        EXPECT(muster_stream_write(victim, bytes, 32 << 20, SECOND / 4, &moved) == MUSTER_TIMEOUT); /* it is full */
        EXPECT(kill(pid, SIGKILL) == 0);
        const int64_t begun = now();
        EXPECT(muster_stream_write(victim, bytes, 32 << 20, PATIENCE, &moved) == MUSTER_E_PEER);
        EXPECT(now() - begun < 5 * SECOND);
        muster_error why = {0};
        EXPECT(muster_stream_reason(victim, NULL, &why) == MUSTER_E_PEER);
        if (options_of_addresses[0] != '\0') EXPECT(strstr(why.message, "rank 1") != NULL);
        const muster_status again = refused_dial(context, "mpi://1/pid", &why);
        EXPECT(again == MUSTER_E_UNREACHABLE || again == MUSTER_E_PEER); /* it may be about to die */
        put_sequence(other, 5000000, 77);
        EXPECT(get_number(other) == 77);
        muster_stream_release(victim);
        close_stream(other);
        free(bytes);
    } else {
        muster_listener *listener = listen_at(context, "mpi:///pid");
        muster_stream *stream = accept_one(listener);
        put_number(stream, (uint64_t)getpid());
        if (rank_of_job == 1)
            for (;;) pause();
        get_sequence(stream, 5000000, 77);
        put_number(stream, 77);
        close_stream(stream);
        muster_listener_release(listener);
    }
    close_context(context);
    passed();
}

/* A sender dies with much under way; what it had sent before is there, and the receiver lives on. */
static void killed_sender(void) {
    muster_context *context = new_context(0);
    OK(muster_plugin_find(context, "mpi", 3, &error));
    if (rank_of_job == 0) {
        muster_listener *listener = listen_at(context, "mpi:///in");
        muster_stream *stream = accept_one(listener);
        const pid_t pid = (pid_t)get_number(stream);
        get_sequence(stream, 20000000, 5);
        EXPECT(kill(pid, SIGKILL) == 0);
        unsigned char *piece = malloc(1 << 20);
        muster_status status;
        size_t moved;
        do status = muster_stream_read(stream, piece, 1 << 20, PATIENCE, &moved);
        while (status == MUSTER_OK);
        EXPECT(status == MUSTER_E_PEER);
        free(piece);
        muster_stream_release(stream);
        muster_listener_release(listener);
    } else {
        muster_stream *stream = dial_rank(context, 0, "in");
        put_number(stream, (uint64_t)getpid());
        put_sequence(stream, (uint64_t)1 << 40, 5); /* until it is killed */
    }
    close_context(context);
    passed();
}

/* The sender dies while the receiver is stopped: what MPI has announced can never be fetched. */
static void killed_unread(void) {
    muster_context *context = new_context(0);
    OK(muster_plugin_find(context, "mpi", 3, &error));
    if (rank_of_job == 2) { /* holds the strings */
        muster_listener *listener = listen_at(context, "mpi:///strings");
        pid_t pids[2];
        for (int i = 0; i < 2; i++) {
            muster_stream *stream = accept_one(listener);
            const uint64_t rank = get_number(stream);
            pids[rank] = (pid_t)get_number(stream);
            muster_stream_release(stream);
        }
        usleep(100000); /* so that they are in the middle of it; either way it has to come out well */
        EXPECT(kill(pids[0], SIGSTOP) == 0);
        usleep(100000);
        EXPECT(kill(pids[1], SIGKILL) == 0 && kill(pids[0], SIGCONT) == 0);
        muster_listener_release(listener);
    } else {
        muster_stream *strings = dial_rank(context, 2, "strings"), *stream;
        muster_listener *listener = NULL;
        if (rank_of_job == 0) {
            listener = listen_at(context, "mpi:///in");
            stream = accept_one(listener);
        } else {
            stream = dial_rank(context, 0, "in");
        }
        put_number(strings, (uint64_t)rank_of_job);
        put_number(strings, (uint64_t)getpid());
        if (rank_of_job == 1) put_sequence(stream, (uint64_t)1 << 40, 8); /* until it is killed */
        unsigned char *piece = malloc(1 << 20), *wanted = malloc(1 << 20);
        EXPECT(piece != NULL && wanted != NULL);
        uint64_t at = 0;
        muster_status status;
        for (size_t moved = 0;; at += moved) {
            status = muster_stream_read(stream, piece, 1 << 20, PATIENCE, &moved);
            if (status != MUSTER_OK) break;
            fill(wanted, moved, at, 8);
            EXPECT(memcmp(piece, wanted, moved) == 0); /* a part of it perhaps, but nothing else */
        }
        EXPECT(status == MUSTER_E_PEER && at > 0);
        free(piece), free(wanted);
        muster_stream_release(stream);
        muster_stream_release(strings);
        muster_listener_release(listener);
    }
    muster_context_close(context, PATIENCE);
    muster_context_release(context);
    passed();
}

/* ---- a stopped receiver --------------------------------------------------------------------------------------------
 */

static void stopped(void) {
    const uint64_t size = 24000000;
    muster_context *context = new_context(0);
    OK(muster_plugin_find(context, "mpi", 3, &error));
    if (rank_of_job == 0) {
        muster_stream *stream = dial_rank(context, 1, "in");
        const pid_t pid = (pid_t)get_number(stream);
        stop_process(pid);
        unsigned char *bytes = malloc(size);
        size_t moved = 0;
        EXPECT(bytes != NULL);
        fill(bytes, size, 0, 6);
        EXPECT(muster_stream_write(stream, bytes, size, SECOND / 2, &moved) == MUSTER_TIMEOUT); /* all is full */
        size_t at = moved;
        const double before = processor_ms();
        EXPECT(muster_stream_write(stream, bytes + at, size - at, SECOND, &moved) == MUSTER_TIMEOUT);
        const double used = processor_ms() - before;
        if (used >= 10) fprintf(stderr, "%.1f ms of processor time for a second with a stopped peer\n", used);
        EXPECT(used < 10);
        at += moved;
        EXPECT(kill(pid, SIGCONT) == 0);
        put(stream, bytes + at, size - at);
        EXPECT(get_number(stream) == size);
        close_stream(stream);
        free(bytes);
    } else {
        muster_listener *listener = listen_at(context, "mpi:///in");
        muster_stream *stream = accept_one(listener);
        put_number(stream, (uint64_t)getpid());
        get_sequence(stream, size, 6);
        put_number(stream, size);
        close_stream(stream);
        muster_listener_release(listener);
    }
    close_context(context);
}

/* ---- addresses -----------------------------------------------------------------------------------------------------
 */

static void expect_refusal(muster_context *context, const char *address, muster_status wanted, const char *text) {
    muster_error why;
    const int64_t begun = now();
    const muster_status status = refused_dial(context, address, &why);
    if (status != wanted || strstr(why.message, text) == NULL) {
        fprintf(stderr, "%s: %s: %s\n", address, muster_status_name(status), why.message);
        _exit(1);
    }
    EXPECT(now() - begun < 5 * SECOND);
}

static void bad_ranks(void) {
    muster_context *context = new_context(0);
    expect_refusal(context, "mpi://2/x", MUSTER_E_UNREACHABLE, "no rank 2");
    expect_refusal(context, "mpi://999999999/x", MUSTER_E_UNREACHABLE, "no rank 999999999");
    expect_refusal(context, "mpi://99999999999999999999/x", MUSTER_E_ADDRESS, "is no rank");
    expect_refusal(context, "mpi://-1/x", MUSTER_E_ADDRESS, "is no rank");
    expect_refusal(context, "mpi://one/x", MUSTER_E_ADDRESS, "`one` is no rank");
    expect_refusal(context, "mpi:///x", MUSTER_E_ADDRESS, "is no rank");
    expect_refusal(context, "mpi://0./x", MUSTER_E_ADDRESS, "is no rank");
    expect_refusal(context, "mpi://0.8/x", MUSTER_E_UNREACHABLE, "8");
    expect_refusal(context, "mpi://1/nobody", MUSTER_E_UNREACHABLE, "listen"); /* at its door, or by it */
    expect_refusal(context, "mpi://1/x?upgrate=no", MUSTER_E_ADDRESS, "upgrate");
    muster_listener *listener = NULL;
    muster_error why = {0};
    const char *other = rank_of_job == 0 ? "mpi://1/x" : "mpi://0/x";
    EXPECT(muster_transport_listen(context, other, strlen(other), NULL, &listener, &why) == MUSTER_E_ADDRESS);
    EXPECT(strstr(why.message, "cannot listen as rank") != NULL);
    close_context(context);
    /* The job is as good as before. */
    context = new_context(0);
    everybody(context, 1000);
    close_context(context);
}

/* Without mpirun there is an error, at once, and nothing is lost. */
static void outside(void) {
    muster_context *context = new_context(0);
    const int64_t begun = now();
    for (int i = 0; i < 2; i++) {
        muster_error why = {0};
        muster_listener *listener = NULL;
        EXPECT(muster_transport_listen(context, "mpi:///x", 8, NULL, &listener, &why) == MUSTER_E_UNSUPPORTED);
        EXPECT(strstr(why.message, getenv("MUSTER_EXPECTED_TEXT")) != NULL);
    }
    EXPECT(now() - begun < 2 * SECOND);
    muster_listener *listener = NULL;
    OK(muster_transport_listen(context, "inproc://x", 10, NULL, &listener, &error));
    muster_listener_release(listener);
    close_context(context);
}

/* Two contexts of one process are two endpoints; the names of those that are closed are free. */
static void contexts(void) {
    const int other = 1 - rank_of_job;
    muster_context *one = new_context(0), *two = new_context(0);
    muster_listener *first = listen_at(one, "mpi:///a"), *second = listen_at(two, "mpi:///b");
    char text[64], wanted[64];
    size_t size = 0;
    OK(muster_listener_address(second, text, sizeof text, &size));
    snprintf(wanted, sizeof wanted, "mpi://%d.1/b", rank_of_job);
    EXPECT(size == strlen(wanted) && memcmp(text, wanted, size) == 0);
    snprintf(text, sizeof text, "mpi://%d.1/b", other);
    muster_stream *to_first = dial_rank(two, other, "a"), *to_second = dial(one, text);
    muster_stream *at_first = accept_one(first), *at_second = accept_one(second);
    put_number(to_first, 1), put_number(to_second, 2);
    EXPECT(get_number(at_first) == 1 && get_number(at_second) == 2);
    put_number(at_second, 3);
    EXPECT(get_number(to_second) == 3); /* nobody needs the first contexts any more */
    put_number(to_second, 4);
    EXPECT(get_number(at_second) == 4);
    muster_stream_release(to_first), muster_stream_release(to_second);
    muster_stream_release(at_first), muster_stream_release(at_second);
    muster_listener_release(first);
    muster_listener_release(second);
    muster_context_close(one, PATIENCE);
    muster_context_release(one);
    muster_context *three = new_context(0);
    muster_listener *third = listen_at(three, "mpi:///c");
    OK(muster_listener_address(third, text, sizeof text, &size));
    snprintf(wanted, sizeof wanted, "mpi://%d/c", rank_of_job);
    EXPECT(size == strlen(wanted) && memcmp(text, wanted, size) == 0);
    muster_stream *to_third = dial_rank(three, other, "c"), *at_third = accept_one(third);
    put_number(to_third, 5);
    EXPECT(get_number(at_third) == 5);
    close_stream(to_third), muster_stream_release(at_third);
    muster_listener_release(third);
    muster_context_close(two, PATIENCE);
    muster_context_release(two);
    muster_context_close(three, PATIENCE);
    muster_context_release(three);
}

/* Many contexts one after the other, in one job. */
static void again(void) {
    for (int i = 0; i < 20; i++) {
        snprintf(service, sizeof service, "echo-%d", i); /* who is ahead waits for the others */
        muster_context *context = new_context(0);
        everybody(context, 300000);
        close_context(context);
    }
}

/* A rank that is ready before the others exits without harm to them. */
static void early(void) {
    muster_context *context = new_context(0);
    OK(muster_plugin_find(context, "mpi", 3, &error));
    if (rank_of_job == 1) {
        muster_stream *stream = dial_rank(context, 0, "bye");
        close_stream(stream);
        close_context(context);
        return;
    }
    if (rank_of_job == 0) {
        muster_listener *listener = listen_at(context, "mpi:///bye");
        muster_stream *stream = accept_one(listener);
        char byte;
        size_t moved;
        EXPECT(muster_stream_read(stream, &byte, 1, PATIENCE, &moved) ==
               MUSTER_E_END); /* it has gone, or is about to */
        muster_stream_release(stream);
        stream = dial_rank(context, 2, "in");
        put_sequence(stream, 3000000, 9);
        EXPECT(get_number(stream) == 9);
        close_stream(stream);
        muster_listener_release(listener);
    } else {
        muster_listener *listener = listen_at(context, "mpi:///in");
        muster_stream *stream = accept_one(listener);
        get_sequence(stream, 3000000, 9);
        put_number(stream, 9);
        close_stream(stream);
        muster_listener_release(listener);
    }
    close_context(context);
}

/* More than any int of MPI counts, in one stream. */
static void large(void) {
    const uint64_t size = ((uint64_t)5 << 29) + 12345; /* 2.5 GiB */
    muster_context *context = new_context(0);
    if (rank_of_job == 0) {
        muster_stream *stream = dial_rank(context, 1, "in");
        put_sequence(stream, size, 11);
        EXPECT(get_number(stream) == size);
        close_stream(stream);
    } else {
        muster_listener *listener = listen_at(context, "mpi:///in");
        muster_stream *stream = accept_one(listener);
        get_sequence(stream, size, 11);
        put_number(stream, size);
        close_stream(stream);
        muster_listener_release(listener);
    }
    close_context(context);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"exchange", exchange},
        {"signals", signals},
        {"idle", idle},
        {"late", late},
        {"killed", killed},
        {"killed_sender", killed_sender},
        {"killed_unread", killed_unread},
        {"stopped", stopped},
        {"bad_ranks", bad_ranks},
        {"outside", outside},
        {"contexts", contexts},
        {"again", again},
        {"early", early},
        {"large", large},
    };
    rank_of_job = rank_by_environment();
    if (argc < 3) return 2;
    ranks = atoi(argv[2]);
    if (argc > 3) options_of_addresses = argv[3];
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[1]) != 0) continue;
        scenarios[i].run();
        return 0;
    }
    fprintf(stderr, "no such scenario: %s\n", argv[1]);
    return 2;
}
