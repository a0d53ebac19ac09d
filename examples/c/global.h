/* SPDX-License-Identifier: MIT */
/* A stack, a queue and a hash table in global memory, used by processes of one host or of several without a lock: each
 * change is one compare-and-exchange on a word of some locale. Nodes are blocks on any locale, named by global
 * pointers; epochs keep a node from being freed while a locale may read it, which also keeps its pointer from being
 * used again too early (the ABA problem).
 *
 * The stack is that of R. K. Treiber (1986), the queue that of M. M. Michael and M. L. Scott (1996). The buckets of the
 * table are distributed over all locales in blocks, and each is an ordered list as of M. M. Michael (High performance
 * dynamic lock-free hash tables and list-based sets, 2002): the lowest bit of a node's `next` says that it is erased.
 *
 * Functions return 1 (done), 0 (empty, not found, or there already), or a failure: MUSTER_E_PEER if the locale of a
 * node has ended. MUSTER_AGAIN: no memory is left now. `token` belongs to the calling thread; it frees nodes with
 * muster_memory_reclaim().
 *
 * A word or node of this host is used where it is mapped, by the atomics of C; muster_memory_run() does the same, with
 * checks, and reaches all other hosts. Both may be mixed. */
#ifndef GLOBAL_H
#define GLOBAL_H

#include <muster/inline/epoch.h>
#include <muster/inline/memory.h>
#include <stddef.h>

typedef struct global {
    muster_memory *memory;
    muster_epoch_token *token;
    int64_t timeout_ns;      /* of an operation on a locale elsewhere */
    muster_memory_view view; /* of muster_memory_get_view(); zero: each operation is a call */
} global;

/* ---- words and bytes anywhere; a failure, or 0 */

/* NULL: its segment is not mapped here. */
static inline uint64_t *global_words(const global *g, muster_gptr at) {
    if (g->view.bases == NULL || g->view.bases[at >> g->view.offset_bits] == 0) return NULL;
    return (uint64_t *)muster_memory_at_inline(&g->view, at);
}
static inline int global_read(const global *g, muster_gptr cell, uint64_t *out) {
    const uint64_t *const word = global_words(g, cell);
    if (word != NULL) {
        *out = __atomic_load_n(word, __ATOMIC_SEQ_CST);
        return MUSTER_OK;
    }
    const muster_memory_operation what = {.struct_size = sizeof what, .kind = MUSTER_MEMORY_READ, .target = cell};
    muster_memory_result seen = {0};
    const muster_status status = muster_memory_run(g->memory, &what, g->timeout_ns, &seen);
    *out = seen.value;
    return status;
}
/* 1: the cell was `expected`, and is `desired` now. 0: it was another one. */
static inline int global_exchange(const global *g, muster_gptr cell, uint64_t expected, uint64_t desired) {
    uint64_t *const word = global_words(g, cell);
    if (word != NULL)
        return __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    const muster_memory_operation what = {.struct_size = sizeof what,
                                          .kind = MUSTER_MEMORY_COMPARE_EXCHANGE,
                                          .target = cell,
                                          .expected = expected,
                                          .value = desired};
    const muster_status status = muster_memory_run(g->memory, &what, g->timeout_ns, NULL);
    return status == MUSTER_OK ? 1 : status == MUSTER_AGAIN ? 0 : status;
}
/* Whole words; each is read or written by itself, since another locale may change it. */
static inline int global_copy(const global *g, uint32_t kind, muster_gptr at, void *local, uint64_t bytes) {
    uint64_t *const words = global_words(g, at), *const own = (uint64_t *)local;
    if (words != NULL) {
        for (uint64_t i = 0; i < bytes / 8; i++) {
            if (kind == MUSTER_MEMORY_GET)
                own[i] = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);
            else
                __atomic_store_n(&words[i], own[i], __ATOMIC_RELEASE);
        }
        return MUSTER_OK;
    }
    const muster_memory_operation what = {
        .struct_size = sizeof what, .kind = kind, .target = at, .local = local, .bytes = bytes};
    return muster_memory_run(g->memory, &what, g->timeout_ns, NULL);
}
static inline void global_pin(const global *g) {
    muster_epoch_pin_inline(g->token);
}
/* Returns its argument, for the ends of functions. */
static inline int global_unpin(const global *g, int result) {
    muster_epoch_unpin_inline(g->token);
    return result;
}
/* The node is unlinked: no locale finds it any more. While very many wait, because some token is pinned for long, this
 * waits, too; its own token is not pinned. */
static inline int global_retire(const global *g, muster_gptr node) {
    while (muster_epoch_retire(g->token, node) == MUSTER_AGAIN) {
        const muster_status status = muster_epoch_synchronize(g->token, g->timeout_ns, NULL);
        if (status != MUSTER_OK) return status;
        muster_memory_reclaim(g->memory, g->token, UINT32_MAX, 0, NULL);
    }
    return MUSTER_OK;
}

/* ---- nodes: a word `next` first */

typedef struct global_node {
    uint64_t next, key, value;
} global_node;

static inline int global_make(const global *g, uint32_t locale, const global_node *content, muster_gptr *out) {
    const muster_status status = muster_memory_allocate(g->memory, locale, sizeof *content, g->timeout_ns, out);
    if (status != MUSTER_OK) return status;
    return global_copy(g, MUSTER_MEMORY_PUT, *out, (void *)content, sizeof *content);
}

/* ---- stack: `top` is a word that is 0 at first */

static inline int global_push(const global *g, muster_gptr top, uint32_t locale, uint64_t value) {
    global_node node = {.value = value};
    muster_gptr made;
    int status = global_read(g, top, &node.next);
    if (status == 0) status = global_make(g, locale, &node, &made);
    if (status != 0) return status;
    for (;;) {
        status = global_exchange(g, top, node.next, made);
        if (status != 0) return status;
        if ((status = global_read(g, top, &node.next)) != 0) return status;
        if ((status = global_copy(g, MUSTER_MEMORY_PUT, made, &node.next, sizeof node.next)) != 0) return status;
    }
}
static inline int global_pop(const global *g, muster_gptr top, uint64_t *out_value) {
    global_node node;
    uint64_t first;
    int status;
    global_pin(g);
    do {
        if ((status = global_read(g, top, &first)) != 0 || first == 0) return global_unpin(g, status);
        if ((status = global_copy(g, MUSTER_MEMORY_GET, first, &node, sizeof node)) != 0)
            return global_unpin(g, status);
        status = global_exchange(g, top, first, node.next);
    } while (status == 0);
    global_unpin(g, 0);
    if (status < 0) return status;
    *out_value = node.value;
    status = global_retire(g, first);
    return status != 0 ? status : 1;
}

/* ---- queue: two words, `head` and 8 bytes behind it the tail; made by one locale before the others use it */

static inline int global_queue_make(const global *g, muster_gptr head, uint32_t locale) {
    const global_node empty = {0};
    muster_gptr dummy;
    int status = global_make(g, locale, &empty, &dummy);
    uint64_t words[2] = {dummy, dummy};
    if (status == 0) status = global_copy(g, MUSTER_MEMORY_PUT, head, words, sizeof words);
    return status;
}
static inline int global_enqueue(const global *g, muster_gptr head, uint32_t locale, uint64_t value) {
    const global_node node = {.value = value};
    const muster_gptr tail = head + 8;
    muster_gptr made;
    int status = global_make(g, locale, &node, &made);
    if (status != 0) return status;
    global_pin(g);
    for (;;) {
        uint64_t last, next;
        if ((status = global_read(g, tail, &last)) != 0) break;
        if ((status = global_read(g, last, &next)) != 0) break;
        if (next != 0) { /* another one is about to move the tail */
            if ((status = global_exchange(g, tail, last, next)) < 0) break;
            continue;
        }
        if ((status = global_exchange(g, last, 0, made)) < 0) break;
        if (status == 0) continue;
        if ((status = global_exchange(g, tail, last, made)) >= 0)
            status = 1; /* the value is in the queue, whichever locale moves the tail */
        break;
    }
    return global_unpin(g, status);
}
static inline int global_dequeue(const global *g, muster_gptr head, uint64_t *out_value) {
    const muster_gptr tail = head + 8;
    global_node node;
    uint64_t first, last, next;
    int status;
    global_pin(g);
    for (;;) {
        if ((status = global_read(g, head, &first)) != 0 || (status = global_read(g, tail, &last)) != 0) break;
        if ((status = global_read(g, first, &next)) != 0) break;
        if (first == last) {
            if (next == 0) break; /* empty */
            if ((status = global_exchange(g, tail, last, next)) < 0) break;
            continue;
        }
        if ((status = global_copy(g, MUSTER_MEMORY_GET, next, &node, sizeof node)) != 0) break;
        if ((status = global_exchange(g, head, first, next)) != 0) break;
    }
    global_unpin(g, 0);
    if (status != 1) return status;
    *out_value = node.value;
    status = global_retire(g, first);
    return status != 0 ? status : 1;
}

/* ---- hash table: `buckets` words at the same offset of every locale, 0 at first */

typedef struct global_table {
    uint64_t offset;  /* of symmetric memory */
    uint64_t buckets; /* of each locale */
} global_table;

static inline uint64_t global_bucket(const global *g, const global_table *t, uint64_t key, muster_gptr *out) {
    uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    const uint64_t at = hash % (t->buckets * muster_memory_locales(g->memory));
    return (uint64_t)muster_memory_pointer(g->memory, (uint32_t)(at / t->buckets), t->offset + 8 * (at % t->buckets),
                                           out);
}
/* Where a key is, or belongs; pinned. Erased nodes on the way are unlinked, and noted in `unlinked`, 8 at most, and one
 * of the caller's. */
typedef struct global_place {
    muster_gptr previous, current; /* the word that points to the node, and the node or 0 */
    global_node node;
    int count;
    muster_gptr unlinked[9];
} global_place;

static inline int global_search(const global *g, muster_gptr bucket, uint64_t key, global_place *p) {
    int status;
again:
    p->previous = bucket;
    if ((status = global_read(g, bucket, &p->current)) != 0) return status;
    for (;;) {
        if (p->current == 0) return 0;
        if ((status = global_copy(g, MUSTER_MEMORY_GET, p->current, &p->node, sizeof p->node)) != 0) return status;
        const muster_gptr next = p->node.next & ~(uint64_t)1;
        if (p->node.next & 1) {
            if (p->count == 8) return 2; /* the caller retires them, which it cannot while it is pinned */
            if ((status = global_exchange(g, p->previous, p->current, next)) < 0) return status;
            if (status == 0) goto again;
            p->unlinked[p->count++] = p->current;
            p->current = next;
            continue;
        }
        if (p->node.key >= key) return p->node.key == key;
        p->previous = p->current;
        p->current = next;
    }
}
static inline int global_leave(const global *g, global_place *p, int result) {
    global_unpin(g, 0);
    while (p->count > 0) {
        const int status = global_retire(g, p->unlinked[--p->count]);
        if (status != 0 && result >= 0) result = status;
    }
    return result;
}
static inline int global_find(const global *g, const global_table *t, uint64_t key, uint64_t *out_value) {
    muster_gptr bucket;
    int status = (int)global_bucket(g, t, key, &bucket);
    global_place p = {.count = 0};
    if (status != 0) return status;
    do {
        global_pin(g);
        status = global_search(g, bucket, key, &p);
        if (status == 1) *out_value = p.node.value;
        status = global_leave(g, &p, status);
    } while (status == 2);
    return status;
}
/* Returns 0 if the table has the key already. */
static inline int global_insert(const global *g, const global_table *t, uint32_t locale, uint64_t key, uint64_t value) {
    global_node node = {.key = key, .value = value};
    muster_gptr bucket, made;
    int status = (int)global_bucket(g, t, key, &bucket);
    if (status == 0) status = global_make(g, locale, &node, &made);
    if (status != 0) return status;
    for (;;) {
        global_place p = {.count = 0};
        global_pin(g);
        status = global_search(g, bucket, key, &p);
        if (status == 0) {
            status = global_copy(g, MUSTER_MEMORY_PUT, made, &p.current, sizeof p.current);
            if (status == 0 && (status = global_exchange(g, p.previous, p.current, made)) == 1)
                return global_leave(g, &p, 1);
            if (status == 0) status = 2; /* another one has changed the list */
        }
        status = global_leave(g, &p, status);
        if (status == 2) continue;
        const muster_status freed =
            muster_memory_free(g->memory, made, g->timeout_ns); /* no other locale has seen the node */
        return status == 1 ? (freed < 0 ? freed : 0) : status;
    }
}
static inline int global_erase(const global *g, const global_table *t, uint64_t key) {
    muster_gptr bucket;
    int status = (int)global_bucket(g, t, key, &bucket);
    if (status != 0) return status;
    for (;;) {
        global_place p = {.count = 0};
        global_pin(g);
        status = global_search(g, bucket, key, &p);
        if (status != 1) {
            status = global_leave(g, &p, status);
            if (status == 2) continue;
            return status;
        }
        status = global_exchange(g, p.current, p.node.next, p.node.next | 1);
        if (status != 1) {
            status = global_leave(g, &p, status);
            if (status == 0) continue;
            return status;
        }
        /* It is erased. A later search unlinks it if this does not. */
        if (global_exchange(g, p.previous, p.current, p.node.next) == 1)
            p.unlinked[p.count++] = p.current;
        else
            global_search(g, bucket, key, &p);
        return global_leave(g, &p, 1);
    }
}

#endif
