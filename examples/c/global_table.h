/* SPDX-License-Identifier: MIT */
/* A hash table in global memory, without locks. Its root is an array of buckets that is distributed over all locales in
 * blocks. A bucket is an ordered list as of M. M. Michael (High performance dynamic lock-free hash tables and
 * list-based sets, 2002), and once that is long, a nested array of 16 buckets, each of which may be nested again.
 *
 * A link is a global pointer with marks in its lowest bits. To nest a bucket, its links are frozen from the first to
 * the last, so that the list cannot change any more; then its nodes are copied into a new array, and the word of the
 * bucket changes from the frozen list to the array. Every operation that finds a frozen list does all of that itself,
 * so a locale that stops or dies in the middle holds up no other. */
#ifndef GLOBAL_TABLE_H
#define GLOBAL_TABLE_H

#include "global.h"

enum {
    global_erased = 1, /* of a node's `next`: the node is erased, and unlinked by the next search */
    global_frozen = 2, /* of any link of a list that is about to be nested: it does not change */
    global_nested = 4, /* of the word of a bucket: it is an array */
    global_marks = 15,
    global_array_buckets = 16,
    global_max_depth = 12 /* arrays in each other; lists below are as long as they are */
};

typedef struct global_table {
    uint64_t offset;  /* of symmetric memory: `buckets` words, 0 at first */
    uint64_t buckets; /* of each locale */
    uint32_t nest_at; /* an insertion behind so many nodes nests the bucket; 0: 8 */
} global_table;

/* Where a key is, or belongs; pinned. */
typedef struct global_place {
    muster_gptr bucket, previous, current; /* the word that points to the node, and the node or 0 */
    global_node node;
    uint32_t depth, before; /* arrays above, and nodes before it */
    int count;
    muster_gptr unlinked[9]; /* to retire: 8 of erased nodes on the way, and one of the caller's */
    muster_gptr replaced;    /* to retire: a list that was nested */
} global_place;

static inline uint64_t global_hash(uint64_t key) {
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}
static inline int global_bucket(const global *g, const global_table *t, uint64_t key, muster_gptr *out) {
    const uint64_t at = global_hash(key) % (t->buckets * muster_memory_locales(g->memory));
    return muster_memory_pointer(g->memory, (uint32_t)(at / t->buckets), t->offset + 8 * (at % t->buckets), out);
}
/* Of the nodes of a list: as good as random, so that keys which grow or shrink are not always at one end. */
static inline uint64_t global_order(uint64_t key) {
    return global_hash(key ^ 0xD1B54A32D192ED03u);
}
static inline uint64_t global_index(uint64_t key, uint32_t depth) { /* in the array below so many others */
    return global_order(key) >> 4 * depth & (global_array_buckets - 1);
}

/* ---- nesting */

/* Freezes a link, and returns what it was; a failure, or 0. Stops at an array. */
static inline int global_freeze(const global *g, muster_gptr link, uint64_t *out) {
    int status = global_read(g, link, out);
    while (status == 0 && (*out & (global_frozen | global_nested)) == 0) {
        status = global_exchange(g, link, *out, *out | global_frozen);
        if (status == 1) return 0;
        if (status == 0) status = global_read(g, link, out);
    }
    return status;
}
/* An array, and what is in its lists, that no other locale has seen; or the nodes of a list alone. */
static inline void global_discard(const global *g, uint64_t link, int is_array) {
    const muster_gptr at = link & ~(uint64_t)global_marks;
    if (at == 0) return;
    uint64_t words[global_array_buckets] = {0};
    global_copy(g, MUSTER_MEMORY_GET, at, words, is_array ? sizeof words : sizeof *words);
    for (int i = 0; i < (is_array ? global_array_buckets : 1); i++)
        global_discard(g, words[i], is_array && (words[i] & global_nested) != 0);
    muster_memory_free(g->memory, at, g->timeout_ns);
}
/* Turns a bucket into an array on this locale. 1: done, here or by another locale; MUSTER_AGAIN: no memory is left. */
static inline int global_nest(const global *g, uint32_t locale, global_place *p) {
    uint64_t words[global_array_buckets] = {0}, list, link;
    muster_gptr last[global_array_buckets] = {0}, array, made;
    int status = muster_memory_allocate(g->memory, locale, sizeof words, g->timeout_ns, &array);
    if (status != MUSTER_OK) return status;
    status = global_freeze(g, p->bucket, &list);
    if (status == 0 && (list & global_nested)) status = 1;
    for (muster_gptr at = list & ~(uint64_t)global_marks; status == 0 && at != 0; at = link & ~(uint64_t)global_marks) {
        global_node node;
        status = global_freeze(g, at, &link);
        if (status == 0) status = global_copy(g, MUSTER_MEMORY_GET, at, &node, sizeof node);
        if (status != 0 || (link & global_erased)) continue;
        const uint64_t i = global_index(node.key, p->depth);
        node.next = 0;
        status = global_make(g, locale, &node, &made);
        if (status != 0) break;
        if (last[i] == 0)
            words[i] = made;
        else
            status = global_copy(g, MUSTER_MEMORY_PUT, last[i], &made, sizeof made);
        last[i] = made;
    }
    if (status == 0) status = global_copy(g, MUSTER_MEMORY_PUT, array, words, sizeof words);
    if (status == 0) {
        list = (list & ~(uint64_t)global_marks) | global_frozen;
        status = global_exchange(g, p->bucket, list, array | global_nested);
        if (status == 1) {
            p->replaced = list & ~(uint64_t)global_marks;
            return 1;
        }
        if (status == 0) status = 1; /* by another locale */
    }
    for (int i = 0; i < global_array_buckets; i++) global_discard(g, words[i], 0);
    muster_memory_free(g->memory, array, g->timeout_ns);
    return status;
}

/* ---- searching */

/* 1: `current` has the key. 0: it belongs before `current`. 2: something is to be retired, which the caller cannot
 * while it is pinned; then it searches again. `locale` gets the array of a bucket that has to be nested. */
static inline int global_search(const global *g, uint32_t locale, uint64_t key, global_place *p) {
    const uint64_t order = global_order(key);
    int status;
again:
    p->previous = p->bucket;
    p->before = 0;
    if ((status = global_read(g, p->bucket, &p->current)) != 0) return status;
    if (p->current & global_nested) {
        p->bucket = (p->current & ~(uint64_t)global_marks) + 8 * global_index(key, p->depth++);
        goto again;
    }
    uint64_t link = p->current;
    for (;;) {
        if (link & global_frozen) {
            status = global_nest(g, locale, p);
            if (status != 1) return status;
            if (p->replaced != 0) return 2;
            goto again;
        }
        if (p->current == 0) return 0;
        if ((status = global_copy(g, MUSTER_MEMORY_GET, p->current, &p->node, sizeof p->node)) != 0) return status;
        link = p->node.next;
        if (link & global_frozen) continue;
        if (link & global_erased) {
            if (p->count == 8) return 2;
            status = global_exchange(g, p->previous, p->current, link & ~(uint64_t)global_erased);
            if (status < 0) return status;
            if (status == 0) goto again;
            p->unlinked[p->count++] = p->current;
            p->current = link = link & ~(uint64_t)global_erased;
            continue;
        }
        if (global_order(p->node.key) >= order) return p->node.key == key;
        p->previous = p->current;
        p->current = link;
        p->before++;
    }
}
static inline int global_begin(const global *g, const global_table *t, uint64_t key, global_place *p) {
    *p = (global_place){0};
    const int status = global_bucket(g, t, key, &p->bucket);
    global_pin(g);
    return status;
}
/* Ends the pin, and retires. */
static inline int global_leave(const global *g, global_place *p, int result) {
    global_unpin(g, 0);
    while (p->count > 0) {
        const int status = global_retire(g, p->unlinked[--p->count]);
        if (status != 0 && result >= 0) result = status;
    }
    while (p->replaced != 0) { /* frozen, and ours */
        uint64_t next;
        int status = global_read(g, p->replaced, &next);
        if (status == 0) status = global_retire(g, p->replaced);
        if (status != 0 && result >= 0) result = status;
        p->replaced = status == 0 ? next & ~(uint64_t)global_marks : 0;
    }
    return result;
}

/* ---- operations */

static inline int global_find(const global *g, const global_table *t, uint64_t key, uint64_t *out_value) {
    global_place p;
    int status;
    do {
        status = global_begin(g, t, key, &p);
        if (status == 0) status = global_search(g, muster_memory_locale(g->memory), key, &p);
        if (status == 1) *out_value = p.node.value;
        status = global_leave(g, &p, status);
    } while (status == 2);
    return status;
}
/* The node is made on `locale`. Returns 0 if the table has the key already. */
static inline int global_insert(const global *g, const global_table *t, uint32_t locale, uint64_t key, uint64_t value) {
    const global_node node = {.key = key, .value = value};
    const uint32_t nest_at = t->nest_at == 0 ? 8 : t->nest_at;
    muster_gptr made;
    int status = global_make(g, locale, &node, &made);
    if (status != 0) return status;
    do {
        global_place p;
        status = global_begin(g, t, key, &p);
        if (status == 0) status = global_search(g, locale, key, &p);
        if (status == 0 && p.before >= nest_at && p.depth < global_max_depth) {
            status = global_nest(g, locale, &p);
            if (status == 1) status = 2;            /* and again */
            if (status == MUSTER_AGAIN) status = 0; /* the list grows, unless it is frozen already */
        }
        if (status == 0) status = global_copy(g, MUSTER_MEMORY_PUT, made, &p.current, sizeof p.current);
        if (status == 0) {
            status = global_exchange(g, p.previous, p.current, made);
            if (status == 1) return global_leave(g, &p, 1);
            if (status == 0) status = 2; /* another one has changed the list */
        }
        status = global_leave(g, &p, status);
    } while (status == 2);
    const muster_status freed = muster_memory_free(g->memory, made, g->timeout_ns); /* no other locale has seen it */
    return status == 1 ? (freed < 0 ? freed : 0) : status;
}
static inline int global_erase(const global *g, const global_table *t, uint64_t key) {
    const uint32_t own = muster_memory_locale(g->memory);
    global_place p;
    int status;
    do {
        status = global_begin(g, t, key, &p);
        if (status == 0) status = global_search(g, own, key, &p);
        if (status == 1) {
            status = global_exchange(g, p.current, p.node.next, p.node.next | global_erased);
            if (status == 1) { /* It is erased. A later search unlinks it if this does not. */
                if (global_exchange(g, p.previous, p.current, p.node.next) == 1) p.unlinked[p.count++] = p.current;
                return global_leave(g, &p, 1);
            }
            if (status == 0) status = 2;
        }
        status = global_leave(g, &p, status);
    } while (status == 2);
    return status;
}
/* Frees all nodes and arrays, by one locale, while no other uses the table. */
static inline void global_table_clear(const global *g, const global_table *t) {
    static const uint64_t none = 0;
    for (uint64_t i = 0; i < t->buckets * muster_memory_locales(g->memory); i++) {
        muster_gptr bucket;
        uint64_t link = 0;
        muster_memory_pointer(g->memory, (uint32_t)(i / t->buckets), t->offset + 8 * (i % t->buckets), &bucket);
        if (global_read(g, bucket, &link) != 0 || link == 0) continue;
        global_discard(g, link, (link & global_nested) != 0);
        global_copy(g, MUSTER_MEMORY_PUT, bucket, (void *)&none, sizeof none);
    }
}

#endif
