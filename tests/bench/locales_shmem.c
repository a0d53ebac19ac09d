/* SPDX-License-Identifier: MIT */
/* The workloads of locales.h over OpenSHMEM (oshrun -n N): the same random operations, and the same table, whose
 * buckets are ordered lists (M. M. Michael, 2002) of nodes on all ranks. Its nodes are never freed or used again, so it
 * does not pay for reclamation. */
#include "locales.h"

#include <shmem.h>

typedef struct node {
    unsigned long next, key, value; /* rank << 40 | number of a node, shifted left by one; the lowest bit: erased */
} node;

static int own;
static node *nodes; /* number 0 is nil */
static unsigned long used = 1;

static unsigned long *place_of(unsigned long pointer, int *rank) { /* the word `next` of a node */
    *rank = (int)(pointer >> 41);
    return &nodes[(pointer & ((unsigned long)1 << 41) - 1) >> 1].next;
}

/* 1: `current` has the key. 0: it belongs before `current`. */
static int search(unsigned long *bucket, int bucket_rank, unsigned long key, unsigned long **previous,
                  int *previous_rank, unsigned long *current, node *found) {
again:
    *previous = bucket, *previous_rank = bucket_rank;
    *current = shmem_ulong_atomic_fetch(bucket, bucket_rank);
    for (;;) {
        if (*current == 0) return 0;
        int rank;
        unsigned long *const at = place_of(*current, &rank);
        shmem_getmem(found, at, sizeof *found, rank);
        const unsigned long next = found->next & ~(unsigned long)1;
        if (found->next & 1) {
            if (shmem_ulong_atomic_compare_swap(*previous, *current, next, *previous_rank) != *current) goto again;
            *current = next;
            continue;
        }
        if (found->key >= key) return found->key == key;
        *previous = at, *previous_rank = rank;
        *current = next;
    }
}

static void operate(unsigned long *buckets, int ranks, unsigned long random, unsigned long key) {
    unsigned long hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    const unsigned long at = hash % buckets_of_all, each = (unsigned long)(buckets_of_all / ranks);
    unsigned long *const bucket = &buckets[at % each], *previous, current;
    const int rank = (int)(at / each);
    int previous_rank;
    node found;
    if (random % 4 < 2) {
        search(bucket, rank, key, &previous, &previous_rank, &current, &found);
        return;
    }
    if (random % 4 == 2) {
        node *const made = &nodes[used];
        made->key = key, made->value = random;
        const unsigned long pointer = (unsigned long)own << 41 | used << 1;
        for (;;) {
            if (search(bucket, rank, key, &previous, &previous_rank, &current, &found)) return;
            made->next = current;
            if (shmem_ulong_atomic_compare_swap(previous, current, pointer, previous_rank) != current) continue;
            used++;
            return;
        }
    }
    while (search(bucket, rank, key, &previous, &previous_rank, &current, &found)) {
        int holder;
        unsigned long *const next = place_of(current, &holder);
        if (shmem_ulong_atomic_compare_swap(next, found.next, found.next | 1, holder) != found.next) continue;
        shmem_ulong_atomic_compare_swap(previous, current, found.next, previous_rank);
        return;
    }
}

static void mix(const struct workload *w, unsigned long *cells) {
    unsigned long state = (unsigned long)own, seen = 0;
    for (long i = 0; i < w->count; i++) {
        const unsigned long random = next_random(&state), value = random >> 60;
        unsigned long *const cell = &cells[(random >> 40) % words];
        const int to = locale_for(w, own, random >> 8);
        switch (random % 5) {
        case 0:
            seen = shmem_ulong_atomic_fetch(cell, to);
            break;
        case 1:
            shmem_ulong_atomic_set(cell, value, to);
            break;
        case 2:
            seen = shmem_ulong_atomic_swap(cell, value, to);
            break;
        case 3:
            seen = shmem_ulong_atomic_compare_swap(cell, seen, value, to);
            break;
        default:
            seen = shmem_ulong_atomic_fetch_add(cell, value, to);
        }
    }
    shmem_quiet();
}

int main(int argc, char **argv) {
    struct workload w = read_workload(argc, argv);
    shmem_init();
    own = shmem_my_pe();
    w.ranks = shmem_n_pes();
    unsigned long *const cells = shmem_calloc(words, sizeof *cells);
    unsigned long *const buckets = shmem_calloc(buckets_of_all, sizeof *buckets);
    nodes = shmem_calloc((size_t)w.count + 1, sizeof *nodes);
    shmem_barrier_all();
    const double begun = now_us();
    if (!strcmp(w.what, "mix")) {
        mix(&w, cells);
    } else {
        unsigned long state = (unsigned long)own;
        for (long i = 0; i < w.count; i++) {
            const unsigned long random = next_random(&state);
            operate(buckets, w.ranks, random, 1 + (random >> 8) % keys);
        }
    }
    shmem_barrier_all();
    if (own == 0) print_operations(&w, now_us() - begun);
    fflush(stdout);
    shmem_barrier_all();
    shmem_global_exit(0); /* shmem_finalize() crashes in Debian 12 */
    return 0;
}
