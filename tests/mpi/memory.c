/* SPDX-License-Identifier: MIT */
/* Locales of an MPI job, which need no store and no rendezvous: the addresses of the members are the ranks. They share
 * memory, or exchange active messages through MPI; with "killed" the last one is killed, and the others go on.
 * memory <shared|messages> <lives|killed> <ranks> [options of addresses] */
#include "ranks.h"

#include <signal.h>
#include <stdbool.h>

enum { adds = 500, block_bytes = 3 << 20, retired = 200 };

static uint32_t ranks;
static muster_group *group;
static muster_memory *memory;

static void meet(void) {
    OK(muster_group_barrier(group, PATIENCE, &error));
}

static void open_all(muster_context *context, bool is_shared) {
    char addresses[1024] = "";
    size_t used = 0;
    for (uint32_t r = 0; r < ranks; r++)
        used += (size_t)snprintf(addresses + used, sizeof addresses - used, "%smpi://%u/locales%s", r == 0 ? "" : "\n",
                                 r, options_of_addresses);
    EXPECT(used < sizeof addresses);
    const muster_group_config members = {.struct_size = sizeof members,
                                         .rank = (uint32_t)rank_of_job,
                                         .size = ranks,
                                         .addresses = addresses,
                                         .addresses_bytes = used};
    OK(muster_group_open(context, &members, PATIENCE, &group, &error));
    const muster_memory_config config = {.struct_size = sizeof config,
                                         .flags = is_shared ? 0 : MUSTER_MEMORY_NO_SHARED_MEMORY};
    OK(muster_memory_open(group, &config, PATIENCE, &memory, &error));
    for (uint32_t r = 0; r < ranks; r++) {
        muster_memory_locale_info info;
        EXPECT(muster_memory_get_locale(memory, r, &info, NULL) == MUSTER_OK);
        EXPECT(info.is_mapped == (is_shared || r == (uint32_t)rank_of_job));
    }
}

static muster_status add(muster_gptr word, uint64_t value, uint64_t *out_before) {
    const muster_memory_operation what = {
        .struct_size = sizeof what, .kind = MUSTER_MEMORY_FETCH, .target = word, .value = value, .notify = 1};
    muster_memory_result before = {0};
    const muster_status status = muster_memory_run(memory, &what, PATIENCE, &before);
    *out_before = before.value;
    return status;
}

static void copy(uint32_t kind, muster_gptr block, void *local) {
    const muster_memory_operation what = {
        .struct_size = sizeof what, .kind = kind, .target = block, .local = local, .bytes = block_bytes};
    EXPECT(muster_memory_run(memory, &what, PATIENCE, NULL) == MUSTER_OK);
}

static void use_all(muster_gptr *counters) {
    uint64_t seen = 0;
    for (uint32_t i = 0; i < adds; i++)
        for (uint32_t r = 0; r < ranks; r++) EXPECT(add(counters[r], 1, &seen) == MUSTER_OK);
    const uint32_t next = ((uint32_t)rank_of_job + 1) % ranks;
    muster_gptr block = 0;
    EXPECT(muster_memory_allocate(memory, next, block_bytes, PATIENCE, &block) == MUSTER_OK);
    unsigned char *const bytes = malloc(2 * (size_t)block_bytes);
    EXPECT(bytes != NULL);
    for (size_t i = 0; i < block_bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 999 + (size_t)rank_of_job);
    copy(MUSTER_MEMORY_PUT, block, bytes);
    copy(MUSTER_MEMORY_GET, block, bytes + block_bytes);
    EXPECT(memcmp(bytes, bytes + block_bytes, block_bytes) == 0);
    free(bytes);
    EXPECT(muster_memory_free(memory, block, PATIENCE) == MUSTER_OK);
    EXPECT(muster_memory_free(memory, block, PATIENCE) == MUSTER_E_STALE);
    meet();
    EXPECT(add(counters[next], 0, &seen) == MUSTER_OK && seen == (uint64_t)adds * ranks);
}

/* Objects on all locales, which the epochs of all free; those on a dead one are dropped. */
static void retire_and_clear(uint32_t alive) {
    muster_epoch *epoch = NULL;
    muster_epoch_token *token = NULL;
    EXPECT(muster_memory_epoch(memory, &epoch) == MUSTER_OK);
    EXPECT(muster_epoch_register(epoch, &token, NULL) == MUSTER_OK);
    for (uint32_t i = 0; i < retired; i++) {
        muster_gptr made = 0;
        EXPECT(muster_memory_allocate(memory, i % alive, 40, PATIENCE, &made) == MUSTER_OK);
        EXPECT(muster_epoch_pin(token) == MUSTER_OK);
        EXPECT(muster_epoch_retire(token, made) == MUSTER_OK);
        EXPECT(muster_epoch_unpin(token) == MUSTER_OK);
    }
    uint64_t freed = 0;
    EXPECT(muster_memory_clear(memory, token, PATIENCE, &freed) == MUSTER_OK && freed == retired);
    EXPECT(muster_epoch_unregister(token) == MUSTER_OK);
}

int main(int argc, char **argv) {
    rank_of_job = rank_by_environment();
    if (argc < 4) return 2;
    const bool is_shared = strcmp(argv[1], "shared") == 0, kills = strcmp(argv[2], "killed") == 0;
    ranks = (uint32_t)atoi(argv[3]);
    if (argc > 4) options_of_addresses = argv[4];
    muster_context *const context = new_context(0);
    open_all(context, is_shared);
    muster_gptr counters[64];
    uint64_t offset = 0, seen = 0;
    EXPECT(ranks <= 64);
    OK(muster_memory_symmetric(memory, 8, 8, PATIENCE, &offset, &error));
    for (uint32_t r = 0; r < ranks; r++) EXPECT(muster_memory_pointer(memory, r, offset, &counters[r]) == MUSTER_OK);
    use_all(counters);
    retire_and_clear(ranks);
    meet();
    if (!kills) {
        for (uint32_t r = 0; r < ranks; r++) {
            muster_memory_stats stats;
            EXPECT(muster_memory_get_stats(memory, r, PATIENCE, &stats) == MUSTER_OK && stats.used_blocks == 0);
        }
        meet();
    } else {
        const uint32_t last = ranks - 1;
        if ((uint32_t)rank_of_job == last) kill(getpid(), SIGKILL);
        muster_error why = {0};
        EXPECT(muster_group_barrier(group, PATIENCE, &why) != MUSTER_OK);
        if (!is_shared) {
            const muster_status status = add(counters[last], 1, &seen);
            EXPECT(status == MUSTER_E_PEER || status == MUSTER_E_ABORTED || status == MUSTER_E_CLOSED);
        } else {
            EXPECT(add(counters[last], 1, &seen) == MUSTER_OK); /* its segment stays for this host */
        }
        retire_and_clear(last);
        /* Not before all survivors are done: they free on each other. */
        EXPECT(add(counters[0], 1, &seen) == MUSTER_OK);
        if (rank_of_job == 0) {
            void *cell = NULL;
            EXPECT(muster_memory_address(memory, counters[0], 8, &cell) == MUSTER_OK);
            muster_atomic_condition done = {.cell = cell,
                                            .value = (uint64_t)adds * ranks + last,
                                            .size_bytes = 8,
                                            .comparison = MUSTER_ATOMIC_EQUAL};
            EXPECT(muster_atomic_wait(&done, 1, 1, PATIENCE) == MUSTER_OK);
            for (uint32_t r = 1; r < last; r++) {
                const muster_status status = add(counters[r], 1, &seen);
                /* It may end before its library has replied. */
                EXPECT(status == MUSTER_OK || status == MUSTER_E_PEER || status == MUSTER_E_ABORTED);
            }
        } else {
            void *cell = NULL;
            EXPECT(muster_memory_address(memory, counters[rank_of_job], 8, &cell) == MUSTER_OK);
            muster_atomic_condition done = {
                .cell = cell, .value = (uint64_t)adds * ranks + 1, .size_bytes = 8, .comparison = MUSTER_ATOMIC_EQUAL};
            EXPECT(muster_atomic_wait(&done, 1, 1, PATIENCE) == MUSTER_OK);
        }
    }
    muster_memory_release(memory);
    muster_group_release(group);
    close_context(context);
    passed();
    return 0;
}
