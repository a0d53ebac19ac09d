/* SPDX-License-Identifier: MIT */
/* A stack and a queue in global memory, and what a hash table (global_table.h) needs, used by processes of one host or
 * of several without a lock: each change is one compare-and-exchange on a word of some locale. Nodes are blocks on any
 * locale, named by global pointers; epochs keep a node from being freed while a locale may read it, which also keeps
 * its pointer from being used again too early (the ABA problem).
 *
 * The stack is that of R. K. Treiber (1986), the queue that of M. M. Michael and M. L. Scott (1996).
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

#endif
