// SPDX-License-Identifier: MIT
// ctest: full timeout=300
// A host whose memory runs out: each allocation of the library fails once, one after the other, and some fail from a
// point on. Calls give a status; nothing crashes or hangs. The program also exports a C++ run-time that must not be
// used: exceptions inside the library stay inside, whatever the host brings along.
#include "guest.h"
#include "relay.h"
#include "workout.h"

#include <pthread.h>
#include <stdatomic.h>

// The C library's own, under the names that stay when malloc() is replaced.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long countdown = -1; // allocations until the one that fails; -1: none
static _Thread_local int is_host;  // what this thread allocates now is not what this is about
static atomic_long failures;
static int once; // does one fail, or every one from there on?

static int fails(void) {
    if (is_host || atomic_load(&countdown) < 0) return 0;
    const long left = atomic_fetch_sub(&countdown, 1);
    if (left > 0) return 0;
    if (left == 0 || !once) {
        if (!once) atomic_store(&countdown, 0);
        atomic_fetch_add(&failures, 1);
        errno = ENOMEM;
        return 1;
    }
    return 0;
}

void *malloc(size_t size) {
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    return fails() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *memory = fails() ? NULL : __libc_memalign(alignment, size);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}

#define CXX(name, symbol)                                                                                              \
    void name(void) __asm__(symbol);                                                                                   \
    void name(void) {                                                                                                  \
        fprintf(stderr, "the library called the host's %s\n", symbol);                                                 \
        _exit(97);                                                                                                     \
    }
CXX(operator_new, "_Znwm")
CXX(operator_new_nothrow, "_ZnwmRKSt9nothrow_t")
CXX(operator_delete, "_ZdlPv")
CXX(allocate_exception, "__cxa_allocate_exception")
CXX(free_exception, "__cxa_free_exception")
CXX(throw_exception, "__cxa_throw")
CXX(begin_catch, "__cxa_begin_catch")
CXX(end_catch, "__cxa_end_catch")
CXX(personality, "__gxx_personality_v0")
CXX(terminate, "_ZSt9terminatev")
CXX(raise_exception, "_Unwind_RaiseException")
CXX(resume_exception, "_Unwind_Resume")

enum { core, transports, plugged, served = plugged + 2 };
static const char *const names[] = {"core", "transports", "fifo", "mailbox", "dispatched", "any_thread", "pulled"};
// The rooms below the transports; the built-in ones as well; the example plug-ins; transports this program serves.
static int what;
static char folder[64] = "/tmp/muster-memory-XXXXXX"; // of the pipes

static int done(muster_status status, const muster_error *error) {
    if (status == MUSTER_OK) return 1;
    const muster_status expected[] = {MUSTER_E_NOMEM,       MUSTER_AGAIN,    MUSTER_E_LIMIT,       MUSTER_E_PEER,
                                      MUSTER_E_UNREACHABLE, MUSTER_E_END,    MUSTER_E_UNSUPPORTED, MUSTER_E_PROTOCOL,
                                      MUSTER_E_CANCELED,    MUSTER_E_ABORTED};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (status == expected[i]) return 0;
    // A plug-in, its loader and what it asks of the system have words of their own.
    if (what >= plugged && what < served && (status == MUSTER_E_PLUGIN || status == MUSTER_E_SYSTEM)) return 0;
    // Messages of a peer that there was no memory to know are lost: the dialler's time runs out.
    if (what == plugged + 1 && status == MUSTER_TIMEOUT) return 0;
    fprintf(stderr, "status %d when memory ran out: %s\n", status, error ? error->message : "");
    _exit(88);
}

typedef struct dialling {
    muster_context *context;
    char address[256];
    size_t bytes;
    muster_stream *stream;
    muster_status status;
    muster_error error;
} dialling;

static void *dial(void *argument) {
    dialling *d = argument;
    d->status = muster_transport_dial(d->context, d->address, d->bytes, NULL, 10 * SECOND, &d->stream, &d->error);
    return NULL;
}

static void talk(muster_stream *from, muster_stream *to) {
    static char sent[200000], got[sizeof sent];
    size_t bytes = 0, taken = 0;
    muster_status status = MUSTER_OK;
    if (!done(muster_stream_write(from, sent, 5000, SECOND, &bytes), NULL)) return;
    status = muster_stream_read_into(to, got, 5000, 0, 10 * SECOND, &taken);
    if (!done(status, NULL)) return;
    CHECK(memcmp(sent, got, 5000) == 0);
}

static void connect_over(muster_context *context, const char *scheme, pthread_attr_t *attributes) {
    dialling d = {.context = context};
    muster_listener *listener;
    muster_error error = {0};
    if (strcmp(scheme, "fifo") == 0)
        snprintf(d.address, sizeof d.address, "fifo://%s", folder);
    else
        workout_address(scheme, d.address, sizeof d.address);
    if (!done(muster_transport_listen(context, d.address, strlen(d.address), NULL, &listener, &error), &error)) return;
    if (!done(muster_listener_address(listener, d.address, sizeof d.address, &d.bytes), NULL)) {
        muster_listener_release(listener);
        return;
    }
    pthread_t thread;
    is_host = 1; // so is the thread
    CHECK(pthread_create(&thread, attributes, dial, &d) == 0);
    is_host = 0;
    muster_stream *accepted = NULL;
    muster_status status;
    // The dialler says when nothing will come.
    while ((status = muster_listener_accept(listener, 50 * MS, &accepted, &error)) == MUSTER_TIMEOUT)
        if (pthread_tryjoin_np(thread, NULL) == 0) {
            thread = 0;
            status = muster_listener_accept(listener, 100 * MS, &accepted, &error);
            break;
        }
    if (thread) pthread_join(thread, NULL);
    const int dialled = done(d.status, &d.error);
    if (status == MUSTER_OK && dialled) {
        talk(d.stream, accepted);
        talk(accepted, d.stream);
    }
    if (status == MUSTER_OK) muster_stream_release(accepted);
    if (dialled) muster_stream_release(d.stream);
    muster_listener_release(listener);
}

static long first_failure;
static uint32_t flags;
static relay_kind kind;

static pthread_attr_t attributes;

static void start_thread(void *(*run)(void *), void *argument) {
    pthread_t thread;
    is_host = 1;
    CHECK(pthread_create(&thread, &attributes, run, argument) == 0);
    CHECK(pthread_detach(thread) == 0);
    is_host = 0;
}

static void serve_and_connect(muster_context *context) {
    muster_status status;
    relay *r = relay_begin(context, kind, start_thread, &status);
    if (!done(status, NULL)) return;
    connect_over(context, "relay", &attributes);
    relay_end(r);
}

static int wake(void *user) {
    (void)user;
    return 0;
}

static void use_with(uint32_t flags) {
    muster_error error = {0};
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.flags = flags;
    muster_context *context;
    if (!done(muster_context_create(&config, &context, &error), &error)) return;
    muster_queue *queue = NULL;
    if (done(muster_queue_create(context, NULL, &queue, &error), &error)) {
        done(muster_queue_set_wake(queue, wake, NULL), NULL);
        done(muster_context_log(context, MUSTER_LOG_DEBUG, queue, 1), NULL);
        for (int i = 0; i < 3; i++) done(muster_queue_post(queue, 1, 1), NULL);
    }
    const char *const argv[] = {"true", NULL};
    muster_process_config child;
    muster_config_init(&child, sizeof child);
    child.argv = argv;
    muster_process *process;
    if (done(muster_process_spawn(context, &child, &process, &error), &error)) {
        if (queue) done(muster_process_watch(process, queue, 1), NULL);
        EXPECT(muster_process_wait(process, 20 * SECOND, NULL), MUSTER_OK);
        muster_process_release(process);
    }
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    muster_stream *one, *other;
    if (done(muster_stream_pair(context, NULL, &one, &other, &error), &error)) {
        talk(one, other);
        if (queue) done(muster_stream_watch(other, MUSTER_STREAM_READABLE, queue, 2), NULL);
        talk(other, one);
        muster_stream_release(one);
        muster_stream_release(other);
    }
    const char *const schemes[] = {"inproc", "tcp", "unix", "shm"};
    for (int i = 0; i < 4 && what == transports; i++) connect_over(context, schemes[i], &attributes);
    if (what >= plugged && what < served) connect_over(context, names[what], &attributes);
    if (what == served) serve_and_connect(context);
    if (queue) {
        muster_completion entry;
        while (muster_queue_next(queue, 0, &entry, &error) == MUSTER_OK) {
        }
        EXPECT(muster_queue_close(queue), MUSTER_OK);
        muster_queue_release(queue);
    }
    CHECK(muster_context_close(context, 10 * SECOND) >= 0);
    muster_context_release(context);
}

static void use(void) {
    pthread_attr_init(&attributes);
    CHECK(mkdtemp(folder) != NULL);
    atomic_store(&countdown, first_failure);
    use_with(flags);
    atomic_store(&countdown, -1);
    // With memory again all is well.
    const int beyond = atomic_load(&failures) == 0; // the last allocation
    if (!beyond) use_with(flags);
    CHECK(rmdir(folder) == 0 || errno == ENOENT); // nothing is left in it
    if (beyond) _exit(1);
}

static int ends(long n, int only_once) {
    first_failure = n;
    once = only_once;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(limit_s);
        use();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) return WEXITSTATUS(status);
    printf("FAILED  allocation %ld fails%s, %s: ended by %s %d\n", n, only_once ? "" : " and all after it",
           flags ? "external" : "threaded", WIFEXITED(status) ? "code" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    guest_failures++;
    return 0;
}

int main(int argc, char **argv) {
    int name = 0;
    for (int i = 0; i < 7; i++)
        if (argc > 1 && strcmp(argv[1], names[i]) == 0) name = i;
    what = name < served ? name : served;
    kind = (relay_kind)(name - what);
    if (argc == 5) { // one case: guest_memory <what> <allocation> <once> <flags>
        first_failure = atol(argv[2]);
        once = atoi(argv[3]);
        flags = (uint32_t)atoi(argv[4]);
        use();
        return 0;
    }
    const long step = argc == 3 ? atol(argv[2]) : 1; // guest_memory <what> [<step>]: each so many-th allocation
    for (int only_once = 1; only_once >= 0; only_once--)
        for (flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
            long n = 0;
            while (guest_failures < 10 && !ends(n, only_once)) n += step;
            CHECK(n > 25 || guest_failures); // else the trap was not set
            printf("%s  %s: %ld points of failure, %ld at a time, %s, %s\n", guest_failures ? "FAILED" : "ok    ",
                   names[name], n, step, only_once ? "once" : "from there on", flags ? "external" : "threaded");
        }
    return guest_result();
}
