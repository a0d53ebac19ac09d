/* SPDX-License-Identifier: MIT */
/* A locale of a global memory on two hosts:  hosts RANK STORE OWN_ADDRESS
 * Ranks 0 and 1 are on one host, 2 and 3 on the other. They share a stack; the script cuts the hosts off from each
 * other for a moment, kills rank 3, and cuts them off for good. Before each of these a rank prints a line and waits for
 * a byte of its standard input. */
#include "examples/c/global.h"

#include <muster/muster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;
enum { locales = 4, objects = 100 };
static muster_error error;

static void must(const char *what, int status) {
    if (status >= 0) return;
    printf("FAILED: %s: %s %s\n", what, muster_status_name(status), error.message);
    exit(1);
}
static void expect(const char *what, int holds) {
    if (holds) return;
    printf("FAILED: %s\n", what);
    exit(1);
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static void wait_for_script(const char *line) {
    char byte;
    printf("%s\n", line);
    expect("a byte of the script", read(0, &byte, 1) == 1);
}

/* Pushes and pops until the time is over; what it has added to the stack in the end. */
static uint64_t work(const global *g, muster_gptr top, double seconds) {
    uint64_t sum = 0, value = 0;
    const double until = now() + seconds;
    for (uint64_t i = 1; now() < until; i++) {
        must("push", global_push(g, top, (uint32_t)(i % locales), i));
        sum += i;
        const int status = global_pop(g, top, &value);
        must("pop", status);
        if (status == 1) sum -= value;
        must("reclaim", muster_memory_reclaim(g->memory, g->token, 16, 0, NULL));
    }
    return sum;
}
static void add_to(const global *g, muster_gptr cell, uint64_t value) {
    const muster_memory_operation add = {
        .struct_size = sizeof add, .kind = MUSTER_MEMORY_FETCH, .target = cell, .value = value};
    must("add", muster_memory_run(g->memory, &add, g->timeout_ns, NULL));
}
/* The locale cannot be used any more; how long that took to find out is limited by the context. */
static void await_end(const global *g, uint32_t locale, muster_gptr cell) {
    const double begun = now();
    uint64_t value;
    int status;
    while ((status = global_read(g, cell, &value)) == 0)
        ;
    expect("a locale that has ended", status == MUSTER_E_PEER && now() - begun < 15);
    muster_memory_locale_info info;
    must("locale", muster_memory_get_locale(g->memory, locale, &info, NULL));
    expect("its state", info.status == MUSTER_E_PEER && !info.is_mapped);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const uint32_t rank = (uint32_t)atoi(arguments[1]), host = rank / 2;
    muster_context_config options;
    muster_context *context;
    muster_store *store;
    muster_group *group;
    muster_config_init(&options, sizeof options);
    options.heartbeat_ns = second / 4, options.silent_ns = 2 * second, options.dead_ns = 5 * second;
    must("context", muster_context_create(&options, &context, &error));
    must("store", muster_store_open(context, arguments[2], strlen(arguments[2]), NULL, 30 * second, &store, &error));
    char listen[64];
    snprintf(listen, sizeof listen, "tcp://%s:0", arguments[3]);
    const muster_group_config members = {.struct_size = sizeof members,
                                         .rank = rank,
                                         .size = locales,
                                         .store = store,
                                         .name = "hosts",
                                         .name_bytes = 5,
                                         .listen = listen,
                                         .listen_bytes = strlen(listen)};
    must("group", muster_group_open(context, &members, 60 * second, &group, &error));
    const muster_memory_config config = {.struct_size = sizeof config, .segment_bytes = 1 << 20};
    global g = {.timeout_ns = 30 * second};
    must("memory", muster_memory_open(group, &config, 60 * second, &g.memory, &error));
    for (uint32_t r = 0; r < locales; r++) {
        muster_memory_locale_info info;
        must("locale", muster_memory_get_locale(g.memory, r, &info, NULL));
        expect("locales of a host share memory, and others do not", info.is_mapped == (r / 2 == host));
    }
    uint64_t offsets[2];
    for (int i = 0; i < 2; i++)
        must("symmetric", muster_memory_symmetric(g.memory, 8, 8, 60 * second, &offsets[i], &error));
    muster_gptr top, sums, cells[locales];
    must("pointer", muster_memory_pointer(g.memory, 1, offsets[0], &top));
    must("pointer", muster_memory_pointer(g.memory, 2, offsets[1], &sums));
    for (uint32_t r = 0; r < locales; r++) must("pointer", muster_memory_pointer(g.memory, r, offsets[0], &cells[r]));
    muster_epoch *epoch;
    must("view", muster_memory_get_view(g.memory, &g.view));
    must("epoch", muster_memory_epoch(g.memory, &epoch));
    must("token", muster_epoch_register(epoch, &g.token, &error));

    /* 1: they work, while nothing passes between the hosts for a moment. */
    wait_for_script("works");
    add_to(&g, sums, work(&g, top, 4));
    must("barrier", muster_group_barrier(group, 60 * second, &error));
    if (rank == 0) {
        uint64_t left, value = 0;
        must("sums", global_read(&g, sums, &left));
        while (global_pop(&g, top, &value) == 1) left -= value;
        expect("everything came out once", left == 0);
    }
    must("barrier", muster_group_barrier(group, 60 * second, &error));
    must("clear", muster_memory_clear(g.memory, g.token, 30 * second, NULL));
    must("barrier", muster_group_barrier(group, 60 * second, &error));
    muster_memory_stats stats;
    must("stats", muster_memory_get_stats(g.memory, (rank + 2) % locales, 30 * second, &stats));
    expect("no node is left", stats.used_blocks == 0);
    must("barrier", muster_group_barrier(group, 60 * second, &error));

    /* 2: rank 3 is killed while its token is pinned. */
    if (rank == 3) must("pin", muster_epoch_pin(g.token));
    wait_for_script(rank == 3 ? "is pinned" : "has worked");
    if (rank == 3) pause();
    if (host == 0)
        await_end(&g, 3, cells[3]);
    else
        must("its own host", global_read(&g, cells[3], &offsets[0])); /* its segment stays for those of its host */
    muster_gptr left_there[objects];
    for (int i = 0; i < objects; i++)
        must("allocate", muster_memory_allocate(g.memory, host == 0 ? 2 : 0, 32, 30 * second, &left_there[i]));
    muster_gptr local;
    must("allocate", muster_memory_allocate(g.memory, rank, 32, -1, &local));
    must("retire", muster_epoch_retire(g.token, local));
    uint64_t freed = 0;
    must("clear after a death", muster_memory_clear(g.memory, g.token, 30 * second, &freed));
    expect("one object", freed == 1);

    /* 3: the hosts are cut off from each other for good: each side goes on alone. */
    wait_for_script("goes on");
    await_end(&g, host == 0 ? 2 : 0, cells[host == 0 ? 2 : 0]);
    for (int i = 0; i < objects; i++) must("retire", muster_epoch_retire(g.token, left_there[i]));
    must("clear alone", muster_memory_clear(g.memory, g.token, 60 * second, &freed));
    muster_memory_locale_info info;
    must("locale", muster_memory_get_locale(g.memory, host == 0 ? 2 : 0, &info, NULL));
    expect("they are counted", freed == objects && info.dropped == objects);
    must("unregister", muster_epoch_unregister(g.token));
    printf("is alone\n");
    muster_memory_release(g.memory);
    muster_group_release(group);
    muster_store_release(store);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}
