/* SPDX-License-Identifier: MIT */
/* A locale of a global memory that programs of four languages share: global RANK STORE here|elsewhere. All of them use
 * one stack (examples/c/global.h): they push and pop, the sums agree in the end, and no node is left. This one is rank
 * 0, and finds that out. */
#include "examples/c/global.h"

#include <muster/muster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t second = 1000000000;
enum { locales = 4, rounds = 200 };
static muster_error error;

static void must(const char *what, int status) {
    if (status >= 0) return;
    fprintf(stderr, "C: %s: %s %s\n", what, muster_status_name(status), error.message);
    exit(1);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    const uint32_t rank = (uint32_t)atoi(arguments[1]);
    muster_context *context;
    muster_store *store;
    muster_group *group;
    must("context", muster_context_create(NULL, &context, &error));
    must("store", muster_store_open(context, arguments[2], strlen(arguments[2]), NULL, 30 * second, &store, &error));
    static const char listen[] = "tcp://127.0.0.1:0";
    const muster_group_config members = {.struct_size = sizeof members,
                                         .rank = rank,
                                         .size = locales,
                                         .store = store,
                                         .name = arguments[3],
                                         .name_bytes = strlen(arguments[3]),
                                         .listen = listen,
                                         .listen_bytes = sizeof listen - 1};
    must("group", muster_group_open(context, &members, 120 * second, &group, &error));
    const muster_memory_config config = {.struct_size = sizeof config,
                                         .segment_bytes = 1 << 20,
                                         .flags = strcmp(arguments[3], "here") ? MUSTER_MEMORY_NO_SHARED_MEMORY : 0};
    global g = {.timeout_ns = 30 * second};
    must("memory", muster_memory_open(group, &config, 60 * second, &g.memory, &error));
    uint64_t at[2];
    for (int i = 0; i < 2; i++) must("symmetric", muster_memory_symmetric(g.memory, 8, 8, 60 * second, &at[i], &error));
    muster_gptr top, sums;
    must("pointer", muster_memory_pointer(g.memory, 0, at[0], &top));
    must("pointer", muster_memory_pointer(g.memory, 0, at[1], &sums));
    muster_epoch *epoch;
    must("view", muster_memory_get_view(g.memory, &g.view));
    must("epoch", muster_memory_epoch(g.memory, &epoch));
    must("token", muster_epoch_register(epoch, &g.token, &error));
    uint64_t sum = 0, value, popped = 0;
    for (uint64_t i = 1; i <= rounds; i++) {
        must("push", global_push(&g, top, (uint32_t)(i % locales), i));
        sum += i;
        const int status = global_pop(&g, top, &value);
        must("pop", status);
        if (status == 1) sum -= value, popped++;
        must("reclaim", muster_memory_reclaim(g.memory, g.token, 16, 0, NULL));
    }
    const muster_memory_operation add = {
        .struct_size = sizeof add, .kind = MUSTER_MEMORY_FETCH, .target = sums, .value = sum};
    must("add", muster_memory_run(g.memory, &add, 30 * second, NULL));
    must("barrier", muster_group_barrier(group, 120 * second, &error));
    uint64_t left = 0;
    must("sums", global_read(&g, sums, &left));
    while (global_pop(&g, top, &value) == 1) left -= value, popped++;
    must("barrier", muster_group_barrier(group, 120 * second, &error));
    for (int i = 0; i < 3; i++) {
        must("synchronize", muster_epoch_synchronize(g.token, 30 * second, NULL));
        must("reclaim", muster_memory_reclaim(g.memory, g.token, UINT32_MAX, 0, NULL));
    }
    must("flush", muster_memory_flush(g.memory, UINT32_MAX, 30 * second));
    must("barrier", muster_group_barrier(group, 120 * second, &error));
    uint64_t blocks = 0, allocated = 0;
    for (uint32_t r = 0; r < locales; r++) {
        muster_memory_stats stats;
        must("stats", muster_memory_get_stats(g.memory, r, 30 * second, &stats));
        blocks += stats.used_blocks, allocated += stats.allocated;
    }
    must("barrier", muster_group_barrier(group, 120 * second, &error));
    printf("%s: %llu nodes of four languages, C popped %llu; sum %lld, %llu nodes left\n", arguments[3],
           (unsigned long long)allocated, (unsigned long long)popped, (long long)left, (unsigned long long)blocks);
    return left != 0 || blocks != 0 || allocated != locales * rounds;
}
