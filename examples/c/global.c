/* SPDX-License-Identifier: MIT */
/* Three processes share a stack, a queue and a hash table in global memory. First they use each other's segments
 * directly, as processes of one host do; then as if each were on a host of its own, by active messages. At the end
 * everything that went in has come out once, and every node is freed. */
#include "global_table.h"

#include <muster/muster.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t second = 1000000000;
enum { locales = 3 };

static int failed(const char *what, const muster_error *error) {
    fprintf(stderr, "global: %s: %s\n", what, error->message);
    return 1;
}

/* What one locale does with the structures; 0 if everything was as it has to be. */
static int work(const global *g, muster_gptr top, muster_gptr head, const global_table *table, uint64_t rounds,
                int64_t *out_sum) {
    const uint32_t own = muster_memory_locale(g->memory);
    for (uint64_t i = 1; i <= rounds; i++) {
        const uint32_t locale = (uint32_t)(i % locales);
        const uint64_t key = own * rounds + i;
        uint64_t value;
        if (global_push(g, top, locale, i) != 1 || global_enqueue(g, head, locale, i) != 1) return 1;
        *out_sum += 2 * (int64_t)i;
        int popped = global_pop(g, top, &value);
        if (popped == 1) *out_sum -= (int64_t)value;
        int taken = global_dequeue(g, head, &value);
        if (taken == 1) *out_sum -= (int64_t)value;
        if (popped < 0 || taken < 0) return 1;
        if (global_insert(g, table, locale, key, i) != 1) return 1;
        if (global_find(g, table, key, &value) != 1 || value != i) return 1;
        if (i % 2 == 0 && global_erase(g, table, key) != 1) return 1;
        muster_memory_reclaim(g->memory, g->token, 64, 0, NULL);
    }
    return 0;
}

/* Takes what is left out of the structures, whichever locale has the nodes. */
static int clean_up(const global *g, muster_gptr top, muster_gptr head, const global_table *table, uint64_t rounds,
                    int64_t *out_sum, uint64_t *out_found) {
    uint64_t value;
    while (global_pop(g, top, &value) == 1) *out_sum -= (int64_t)value;
    while (global_dequeue(g, head, &value) == 1) *out_sum -= (int64_t)value;
    for (uint64_t key = 1; key <= locales * rounds; key++) {
        if (global_find(g, table, key, &value) == 1) ++*out_found;
        global_erase(g, table, key);
    }
    return 0;
}
static int free_all(const global *g) {
    for (int i = 0; i < 3; i++) {
        if (muster_epoch_synchronize(g->token, 30 * second, NULL) != MUSTER_OK) return 1;
        if (muster_memory_reclaim(g->memory, g->token, UINT32_MAX, 0, NULL) != MUSTER_OK) return 1;
    }
    return muster_memory_flush(g->memory, UINT32_MAX, 30 * second) != MUSTER_OK;
}

static int share(muster_group *group, uint32_t flags, uint64_t rounds) {
    muster_error error;
    const uint32_t own = muster_group_rank(group);
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 4 << 20, .flags = flags};
    global g = {.timeout_ns = 30 * second};
    if (muster_memory_open(group, &config, 30 * second, &g.memory, &error) != MUSTER_OK)
        return failed("the memory", &error);
    global_table table = {.buckets = 16};
    uint64_t words = 0;
    muster_gptr top = 0, head = 0;
    muster_epoch *epoch = NULL;
    if (muster_memory_symmetric(g.memory, 32, 16, 30 * second, &words, &error) != MUSTER_OK ||
        muster_memory_symmetric(g.memory, 8 * table.buckets, 8, 30 * second, &table.offset, &error) != MUSTER_OK)
        return failed("symmetric memory", &error);
    muster_memory_get_view(g.memory, &g.view);
    muster_memory_pointer(g.memory, 0, words, &head);
    muster_memory_pointer(g.memory, locales - 1, words + 16, &top);
    if (muster_memory_epoch(g.memory, &epoch) != MUSTER_OK ||
        muster_epoch_register(epoch, &g.token, &error) != MUSTER_OK)
        return failed("the epoch", &error);
    int wrong = own == 0 && global_queue_make(&g, head, 0) != 0;
    int64_t sum = 0;
    uint64_t found = 0;
    if (muster_group_barrier(group, 30 * second, &error) != MUSTER_OK) return failed("a barrier", &error);
    wrong |= work(&g, top, head, &table, rounds, &sum);
    if (muster_group_barrier(group, 60 * second, &error) != MUSTER_OK) return failed("a barrier", &error);
    if (own == 0) wrong |= clean_up(&g, top, head, &table, rounds, &sum, &found);
    if (own == 0) global_table_clear(&g, &table);
    wrong |= free_all(&g);
    int64_t all[3] = {sum, (int64_t)found, wrong};
    if (muster_group_all_reduce(group, NULL, all, 3, MUSTER_TYPE_I64, MUSTER_REDUCE_SUM, 60 * second, &error) !=
        MUSTER_OK)
        return failed("the sums", &error);
    uint64_t left = 0, allocated = 0;
    for (uint32_t r = 0; own == 0 && r < locales; r++) {
        muster_memory_stats stats;
        if (muster_memory_get_stats(g.memory, r, 30 * second, &stats) != MUSTER_OK) return 1;
        left += stats.used_blocks;
        allocated += stats.allocated;
    }
    if (own == 0)
        printf("%d locales, %s: %llu nodes allocated, %llu left\n", locales,
               flags ? "active messages" : "shared memory", (unsigned long long)allocated, (unsigned long long)left);
    muster_epoch_unregister(g.token);
    wrong = all[0] != 0 || all[1] != (int64_t)(locales * rounds / 2) || all[2] != 0 || (own == 0 && left != 1);
    if (wrong && own == 0) fprintf(stderr, "wrong: sum %lld, %lld keys found\n", (long long)all[0], (long long)all[1]);
    /* The last use of the segments by others is over. */
    if (muster_group_barrier(group, 60 * second, &error) != MUSTER_OK) return failed("a barrier", &error);
    muster_memory_release(g.memory);
    return wrong;
}

static int locale(uint32_t rank, const char *store_address) {
    muster_error error;
    muster_context *context;
    muster_store *store;
    muster_group *group;
    static const char listen[] = "tcp://127.0.0.1:0";
    if (muster_context_create(NULL, &context, &error) != MUSTER_OK) return failed("a context", &error);
    if (muster_store_open(context, store_address, strlen(store_address), NULL, 30 * second, &store, &error) !=
        MUSTER_OK)
        return failed("the store", &error);
    const muster_group_config config = {.struct_size = sizeof config,
                                        .rank = rank,
                                        .size = locales,
                                        .store = store,
                                        .listen = listen,
                                        .listen_bytes = sizeof listen - 1};
    if (muster_group_open(context, &config, 30 * second, &group, &error) != MUSTER_OK)
        return failed("the group", &error);
    int wrong = share(group, 0, 5000) || share(group, MUSTER_MEMORY_NO_SHARED_MEMORY, 300);
    if (muster_group_close(group, 30 * second, &error) != MUSTER_OK) wrong = failed("the end", &error);
    fflush(stdout);
    muster_group_release(group);
    muster_store_release(store);
    muster_context_close(context, 10 * second);
    muster_context_release(context);
    return wrong;
}

int main(void) {
    setenv("MUSTER_SECRET", "the locales of one example", 0);
    int addresses[locales][2];
    pid_t children[locales];
    for (uint32_t r = 0; r < locales; r++) {
        if (pipe(addresses[r]) != 0) return 1;
        const pid_t parent = getpid();
        children[r] = fork();
        if (children[r] < 0) return 1;
        if (children[r] != 0) continue;
        char address[256] = "";
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || read(addresses[r][0], address, sizeof address - 1) <= 0) _exit(1);
        _exit(locale(r, address));
    }
    muster_error error;
    muster_context *context;
    muster_store_server *server;
    char address[256];
    size_t bytes = 0;
    if (muster_context_create(NULL, &context, &error) != MUSTER_OK) return failed("a context", &error);
    static const char listen[] = "tcp://127.0.0.1:0";
    if (muster_store_server_open(context, listen, sizeof listen - 1, NULL, &server, &error) != MUSTER_OK)
        return failed("the store", &error);
    if (muster_store_server_address(server, address, sizeof address, &bytes) != MUSTER_OK) return 1;
    int wrong = 0;
    for (uint32_t r = 0; r < locales; r++)
        if (write(addresses[r][1], address, bytes) != (ssize_t)bytes) wrong = 1;
    for (uint32_t r = 0; r < locales; r++) {
        int status = 1;
        waitpid(children[r], &status, 0);
        wrong |= status != 0;
    }
    muster_store_server_release(server);
    muster_context_close(context, 10 * second);
    muster_context_release(context);
    if (!wrong) printf("everything came out once, and every node is freed\n");
    return wrong;
}
