/* SPDX-License-Identifier: MIT */
/* Workloads of several locales of Muster, each a process; see locales.h. Further:
 *   --what defer-1 | defer-1024 | defer-end   an object is allocated, PERCENT of them elsewhere, and retired under a
 * pin; reclaimed after each operation, after 1024, or at the end
 *   --what rounds     the first locale waits, many times, until no locale is pinned in an earlier epoch, while the
 * others wait; with --mode messages each locale is a host of its own. Prints the time of one such wait, and the part of
 * it that the process of the first locale uses a processor.
 *   --mode mapped | messages                  their segments are mapped, or used by active messages over shared memory
 */
#include "locales.h"

#include "../../examples/c/global_table.h"

#include <muster/inline/memory.h>
#include <muster/muster.h>

#include <signal.h>

static void check(const char *where, muster_status status, const muster_error *error) {
    if (status != MUSTER_OK) die(where, error->message_bytes ? error->message : muster_status_name(status));
}

static void mix(const struct workload *w, const global *g, uint64_t offset) {
    const int own = (int)muster_memory_locale(g->memory);
    uint64_t state = (uint64_t)own;
    muster_memory_result seen = {0};
    static const uint32_t kinds[] = {MUSTER_MEMORY_READ, MUSTER_MEMORY_WRITE, MUSTER_MEMORY_EXCHANGE,
                                     MUSTER_MEMORY_COMPARE_EXCHANGE, MUSTER_MEMORY_FETCH};
    for (long i = 0; i < w->count; i++) {
        const uint64_t random = next_random(&state);
        muster_memory_operation what = {.struct_size = sizeof what, .kind = kinds[random % 5]};
        if (what.kind != MUSTER_MEMORY_READ) what.value = random >> 60;
        if (what.kind == MUSTER_MEMORY_COMPARE_EXCHANGE) what.expected = seen.value;
        if (what.kind == MUSTER_MEMORY_FETCH) what.operation = MUSTER_ATOMIC_ADD;
        const int to = locale_for(w, own, random >> 8);
        muster_memory_pointer(g->memory, (uint32_t)to, offset + 8 * (random >> 40) % (8 * words), &what.target);
        what.target &= ~(uint64_t)7;
        if (muster_memory_run(g->memory, &what, g->timeout_ns, &seen) < 0) die("mix", "an operation failed");
    }
}

static void table_of(const struct workload *w, const global *g, const global_table *table) {
    const uint32_t own = muster_memory_locale(g->memory);
    uint64_t state = own, value;
    for (long i = 0; i < w->count; i++) {
        const uint64_t random = next_random(&state), key = 1 + (random >> 8) % keys;
        const int status = random % 4 < 2    ? global_find(g, table, key, &value)
                           : random % 4 == 2 ? global_insert(g, table, own, key, random)
                                             : global_erase(g, table, key);
        if (status < 0) die("table", muster_status_name(status));
        if (i % 1024 == 0) muster_memory_reclaim(g->memory, g->token, UINT32_MAX, 0, NULL); /* as the paper */
    }
}

static void defer(const struct workload *w, const global *g) {
    const int own = (int)muster_memory_locale(g->memory);
    const long every = !strcmp(w->what, "defer-1") ? 1 : !strcmp(w->what, "defer-1024") ? 1024 : w->count;
    uint64_t state = (uint64_t)own;
    for (long i = 1; i <= w->count; i++) {
        muster_gptr made = 0;
        const uint32_t to = (uint32_t)locale_for(w, own, next_random(&state));
        while (muster_memory_allocate(g->memory, to, 32, g->timeout_ns, &made) == MUSTER_AGAIN)
            muster_memory_clear(g->memory, g->token, g->timeout_ns, NULL); /* the segment is full of what waits */
        global_pin(g);
        const muster_status status = muster_epoch_retire(g->token, made);
        global_unpin(g, 0);
        if (status != MUSTER_OK) die("retire", muster_status_name(status));
        if (i % every == 0 && every != w->count) muster_memory_reclaim(g->memory, g->token, UINT32_MAX, 0, NULL);
    }
    muster_memory_clear(g->memory, g->token, g->timeout_ns, NULL);
}

static double processor_us(void) { /* of all threads of this process */
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}
static void rounds(const struct workload *w, const global *g) {
    if (muster_memory_locale(g->memory) != 0) return;
    const long count = w->count / 200 + 1;
    const double begun = now_us(), used = processor_us();
    for (long i = 0; i < count; i++)
        if (muster_epoch_synchronize(g->token, g->timeout_ns, NULL) != MUSTER_OK) die("rounds", "a wait failed");
    const double took = now_us() - begun;
    printf("us\t%.6g\nshare\t%.3g\n", took / (double)count, (processor_us() - used) / took);
}

static void locale(const struct workload *w, int rank, const char *url) {
    static const char secret[] = "the locales of the benchmark know this";
    char listen[64];
    snprintf(listen, sizeof listen, "shm://locales-%d", (int)getpid());
    const muster_context_config config = {
        .struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *context = NULL;
    muster_store *store = NULL;
    muster_group *group = NULL;
    muster_error error = {0};
    check("context", muster_context_create(&config, &context, &error), &error);
    check("store", muster_store_open(context, url, strlen(url), NULL, 10000000000, &store, &error), &error);
    const muster_group_config members = {.struct_size = sizeof members,
                                         .rank = (uint32_t)rank,
                                         .size = (uint32_t)w->ranks,
                                         .store = store,
                                         .listen = listen,
                                         .listen_bytes = strlen(listen)};
    check("group", muster_group_open(context, &members, 60000000000, &group, &error), &error);
    const muster_memory_config sizes = {.struct_size = sizeof sizes,
                                        .segment_bytes = 8 << 20,
                                        .symmetric_bytes = 1 << 20,
                                        .max_pending = 1 << 17,
                                        .flags = strcmp(w->mode, "mapped") ? MUSTER_MEMORY_NO_SHARED_MEMORY : 0};
    global g = {.timeout_ns = 60000000000};
    check("memory", muster_memory_open(group, &sizes, 60000000000, &g.memory, &error), &error);
    global_table table = {.buckets = (uint64_t)(buckets_of_all / w->ranks)};
    uint64_t offset = 0;
    muster_epoch *epoch = NULL;
    check("words", muster_memory_symmetric(g.memory, 8 * words, 64, -1, &offset, &error), &error);
    check("table", muster_memory_symmetric(g.memory, 8 * table.buckets, 64, -1, &table.offset, &error), &error);
    check("view", muster_memory_get_view(g.memory, &g.view), &error);
    check("epoch", muster_memory_epoch(g.memory, &epoch), &error);
    check("token", muster_epoch_register(epoch, &g.token, &error), &error);
    check("barrier", muster_group_barrier(group, -1, &error), &error);
    const double begun = now_us();
    if (!strcmp(w->what, "mix"))
        mix(w, &g, offset);
    else if (!strcmp(w->what, "table"))
        table_of(w, &g, &table);
    else if (!strcmp(w->what, "rounds"))
        rounds(w, &g);
    else
        defer(w, &g);
    check("barrier", muster_group_barrier(group, -1, &error), &error);
    if (rank == 0 && strcmp(w->what, "rounds")) print_operations(w, now_us() - begun);
    fflush(stdout);
    check("barrier", muster_group_barrier(group, -1, &error), &error); /* the line is out before a process ends */
}

int main(int argc, char **argv) {
    struct workload w = read_workload(argc, argv);
    if (!strcmp(w.what, "defer-end") && w.count > 60000) w.count = 60000; /* fewer than max_pending */
    int urls[2];
    if (pipe(urls) != 0) die_errno("pipe");
    pid_t children[64];
    for (int rank = 0; rank < w.ranks; rank++) {
        if ((children[rank] = fork()) < 0) die_errno("fork");
        if (children[rank] != 0) continue;
        char url[300] = "";
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(urls[0], url, sizeof url) != sizeof url) _exit(1);
        locale(&w, rank, url);
        _exit(0);
    }
    muster_context *context = NULL;
    muster_store_server *server = NULL;
    muster_error error = {0};
    char url[300] = "";
    size_t bytes = 0;
    static const char secret[] = "the locales of the benchmark know this";
    const muster_context_config config = {
        .struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    check("context", muster_context_create(&config, &context, &error), &error);
    check("server", muster_store_server_open(context, "tcp://127.0.0.1:0", 17, NULL, &server, &error), &error);
    check("address", muster_store_server_address(server, url, sizeof url, &bytes), &error);
    for (int rank = 0; rank < w.ranks; rank++)
        if (write(urls[1], url, sizeof url) != sizeof url) die_errno("write");
    int failed = 0;
    for (int rank = 0; rank < w.ranks; rank++) {
        int status = 1;
        waitpid(children[rank], &status, 0);
        failed |= status != 0;
    }
    muster_store_server_release(server);
    muster_context_close(context, 10000000000);
    muster_context_release(context);
    return failed;
}
