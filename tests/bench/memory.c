/* SPDX-License-Identifier: MIT */
/* Global memory: rank 0 uses the segment of rank 1, another process of this host. Nanoseconds per operation, or GB/s.
 *   --over muster|address|bare|malloc --what fetch|exchange|put|get|begun-put|begun-get|allocate --size BYTES
 *   --scale PERCENT
 * begun: up to 16 at a time, with a queue, as a stream has several messages under way.
 *   --mode tcp|shm: the segment is not mapped, as if it were on another host: active messages over this transport. The
 *   time of an operation is then printed as a half round trip, too (us).
 * address: the same on the address of the place, found each time by inline/memory.h, by the atomics of C, or memcpy.
 * bare: the same on memory that was mapped before. malloc: malloc and free of the C
 * library, of two processes that have nothing in common. */
#include "bench.h"

#include <muster/inline/memory.h>
#include <muster/muster.h>

#include <signal.h>
#include <stdatomic.h>

static void check(const char *where, muster_status status, const muster_error *error) {
    if (status != MUSTER_OK) die(where, error && error->message_bytes ? error->message : muster_status_name(status));
}

/* The segments are not mapped, and the group meets over this transport. */
static const char *elsewhere;

static muster_memory *open_rank(uint32_t rank, const char *store_url, uint64_t segment_bytes, muster_group **out_group,
                                muster_context **out_context) {
    static const char secret[] = "both ranks of the benchmark know this";
    char listen[64] = "tcp://127.0.0.1:0";
    if (elsewhere && !strcmp(elsewhere, "tcp")) snprintf(listen, sizeof listen, "tcp://127.0.0.1:0?upgrade=no");
    if (elsewhere && !strcmp(elsewhere, "shm")) snprintf(listen, sizeof listen, "shm://memory-%d", (int)getpid());
    const muster_context_config config = {
        .struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *context = NULL;
    muster_store *store = NULL;
    muster_memory *memory = NULL;
    muster_error error = {0};
    check("context", muster_context_create(&config, &context, &error), &error);
    *out_context = context;
    check("store", muster_store_open(context, store_url, strlen(store_url), NULL, 10000000000, &store, &error), &error);
    const muster_group_config members = {.struct_size = sizeof members,
                                         .rank = rank,
                                         .size = 2,
                                         .store = store,
                                         .listen = listen,
                                         .listen_bytes = strlen(listen)};
    check("group", muster_group_open(context, &members, 60000000000, out_group, &error), &error);
    const muster_memory_config sizes = {.struct_size = sizeof sizes,
                                        .segment_bytes = segment_bytes,
                                        .flags = elsewhere ? MUSTER_MEMORY_NO_SHARED_MEMORY : 0};
    check("memory", muster_memory_open(*out_group, &sizes, 60000000000, &memory, &error), &error);
    return memory;
}

static void measure_begun(muster_memory *memory, muster_context *context, const struct options *o, int puts) {
    enum { under_way = 16 };
    muster_gptr block = 0;
    muster_error error = {0};
    muster_queue *queue = NULL;
    check("queue", muster_queue_create(context, NULL, &queue, &error), &error);
    check("allocate", muster_memory_allocate(memory, 1, o->size * under_way, -1, &block), &error);
    unsigned char *const local = buffer(o->size * under_way);
    memset(local, 1, o->size * under_way);
    muster_memory_operation operation = {
        .struct_size = sizeof operation, .kind = puts ? MUSTER_MEMORY_PUT : MUSTER_MEMORY_GET, .bytes = o->size};
    long begun = 0, done = 0;
    const double from = now_us();
    while (done < o->count) {
        muster_status status = MUSTER_AGAIN;
        if (begun < o->count && begun - done < under_way) {
            operation.target = block + (uint64_t)(begun % under_way) * o->size;
            operation.local = local + (size_t)(begun % under_way) * o->size;
            status = muster_memory_begin(memory, &operation, NULL, queue, 1);
            if (status < 0) check("begin", status, NULL);
            if (status == MUSTER_OK) begun++;
        }
        muster_completion entry;
        if (status == MUSTER_AGAIN && muster_queue_next(queue, -1, &entry, NULL) == MUSTER_OK) {
            check("entry", entry.status, NULL);
            done++;
        }
    }
    printf("gbps\t%.6g\n", (double)o->size * (double)o->count / (now_us() - from) * 1e-3);
}

static void measure(muster_memory *memory, const struct options *o, const char *what) {
    muster_gptr block = 0;
    void *address = NULL;
    muster_error error = {0};
    check("allocate", muster_memory_allocate(memory, 1, o->size < 64 ? 64 : o->size, -1, &block), &error);
    if (!elsewhere) check("address", muster_memory_address(memory, block, o->size, &address), &error);
    unsigned char *const local = buffer(o->size < 64 ? 64 : o->size);
    const int is_muster = !strcmp(o->over, "muster"), is_malloc = !strcmp(o->over, "malloc");
    const int puts = !strcmp(what, "put"), gets = !strcmp(what, "get"), fetches = !strcmp(what, "fetch");
    const int allocates = !strcmp(what, "allocate");
    const long count = puts || gets || elsewhere ? o->count : o->count * 20;
    muster_memory_operation operation = {.struct_size = sizeof operation, .target = block, .value = 1};
    operation.kind = puts      ? MUSTER_MEMORY_PUT
                     : gets    ? MUSTER_MEMORY_GET
                     : fetches ? MUSTER_MEMORY_FETCH
                               : MUSTER_MEMORY_COMPARE_EXCHANGE;
    if (puts || gets) operation.local = local, operation.bytes = o->size, operation.value = 0;
    muster_memory_result seen = {0};
    uint64_t expected = 0;
    muster_memory_view view;
    check("view", muster_memory_get_view(memory, &view), &error);
    const int finds = !strcmp(o->over, "address");
    if (puts || gets) { /* both have their pages */
        if (!elsewhere) memset(address, 1, o->size);
        if (elsewhere) check("put", muster_memory_run(memory, &operation, -1, NULL), &error);
        memset(local, 1, o->size);
    }
    /* Elsewhere a time is the median, as that of the stream beside it. Small operations go once through the ring of the
     * stream before: where the kernel maps its pages one by one, the first use of each takes longer than they do. */
    const long unmeasured = !elsewhere ? 0 : o->size < 4096 ? 30000 : count / 10 + 10;
    double *const times = elsewhere ? malloc((size_t)count * sizeof *times) : NULL;
    if (elsewhere && times == NULL) die_errno("malloc");
    double begun = now_us();
    for (long i = -unmeasured; i < count; i++) {
        if (i == 0 && elsewhere) begun = now_us();
        const double from = elsewhere && i >= 0 ? now_us() : 0;
        if (finds) {
            __asm__ volatile("" : "+r"(block)); /* it may be another one each time */
            address = muster_memory_at_inline(&view, block);
        }
        if (allocates && is_malloc) {
            void *volatile made = malloc(o->size);
            free(made);
        } else if (allocates) {
            muster_gptr made;
            if (muster_memory_allocate(memory, 1, o->size, -1, &made) != MUSTER_OK) die("allocate", "failed");
            muster_memory_free(memory, made, -1);
        } else if (is_muster) {
            operation.expected = !puts && !gets && !fetches ? seen.value : 0;
            operation.value = puts || gets ? 0 : (uint64_t)i;
            if (muster_memory_run(memory, &operation, -1, &seen) == MUSTER_OK && operation.expected == seen.value &&
                !fetches)
                seen.value = (uint64_t)i;
        } else if (puts) {
            memcpy(address, local, o->size);
            __asm__ volatile("" ::: "memory");
        } else if (gets) {
            memcpy(local, address, o->size);
            __asm__ volatile("" ::: "memory");
        } else if (fetches) {
            atomic_fetch_add((_Atomic uint64_t *)address, (uint64_t)i);
        } else if (atomic_compare_exchange_strong((_Atomic uint64_t *)address, &expected, (uint64_t)i)) {
            expected = (uint64_t)i;
        }
        if (elsewhere && i >= 0) times[i] = now_us() - from;
    }
    const double us = now_us() - begun;
    if (elsewhere) {
        const double middle = median(times, count) / 2; /* sorted now */
        printf("us\t%.6g\nmean_us\t%.6g\nlate_us\t%.6g\n", middle, us / (double)count / 2, times[count * 99 / 100] / 2);
        free(times);
    }
    printf("ns\t%.6g\ngbps\t%.6g\n", us * 1e3 / (double)count, (double)o->size * (double)count / us * 1e-3);
}

int main(int argc, char **argv) {
    const char *what = "fetch";
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--what")) what = argv[i + 1];
    struct options o = read_options(argc, argv);
    if (!strcmp(o.mode, "tcp") || !strcmp(o.mode, "shm")) elsewhere = o.mode;
    int urls[2], ends[2];
    if (pipe(urls) != 0 || pipe(ends) != 0) die_errno("pipe");
    const pid_t child = fork();
    if (child < 0) die_errno("fork");
    char url[300] = "";
    muster_group *group = NULL;
    const uint64_t segment = (o.size < 1 << 20 ? 1 << 20 : 2 * o.size) + (4 << 20); /* begun: 16 of 64 KiB */
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        take_core(CORES_TWO, 1);
        if (read(urls[0], url, sizeof url) <= 0) die("store", "no address");
        muster_context *own;
        open_rank(1, url, segment, &group, &own);
        close(ends[1]);
        if (read(ends[0], url, 1) != 0) die("end", "not expected"); /* sleeps until rank 0 has ended */
        _exit(0);
    }
    close(ends[0]);
    take_core(CORES_TWO, 0);
    muster_context *context = NULL;
    muster_store_server *server = NULL;
    muster_error error = {0};
    size_t size = 0;
    static const char secret[] = "both ranks of the benchmark know this";
    const muster_context_config config = {
        .struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    check("context", muster_context_create(&config, &context, &error), &error);
    check("server", muster_store_server_open(context, "tcp://127.0.0.1:0", 17, NULL, &server, &error), &error);
    check("address", muster_store_server_address(server, url, sizeof url - 1, &size), &error);
    url[size] = '\0';
    if (write(urls[1], url, size + 1) != (ssize_t)size + 1) die_errno("write");
    muster_memory *const memory = open_rank(0, url, segment, &group, &context);
    if (!strncmp(what, "begun-", 6))
        measure_begun(memory, context, &o, !strcmp(what, "begun-put"));
    else
        measure(memory, &o, what);
    fflush(stdout);
    _exit(0);
}
