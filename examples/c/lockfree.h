/* SPDX-License-Identifier: MIT */
/* Three structures that threads share without waiting for each other, on epoch.h:
 * - a stack (R. K. Treiber, 1986), whose top is an ABA cell;
 * - a queue (M. Michael and M. Scott, PODC 1996);
 * - a hash table with interlocked buckets (as in the paper on the Chapel modules): finding takes no lock, changing
 * locks one bucket, and a bucket that becomes long is replaced by a table of its own. Every function takes the token of
 * the calling thread and pins it. Memory is freed by lockfree_free(), when no thread can read it any more; call
 * muster_epoch_poll() now and then. */
#ifndef LOCKFREE_H
#define LOCKFREE_H

#include <muster/epoch.h>
#include <muster/inline/atomic.h>
#include <muster/inline/epoch.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct lockfree_node {
    _Atomic(struct lockfree_node *) next;
    uint64_t key, value;
} lockfree_node;

static inline void lockfree_free(void *user, void *object) {
    (void)user;
    free(object);
}
/* muster_epoch_defer() refuses when very many objects wait: then this thread helps. A thread that is still pinned
 * cannot help itself, so this is called after the unpin. */
static inline void lockfree_defer(muster_epoch_token *token, void *object) {
    while (muster_epoch_defer(token, lockfree_free, NULL, object) == MUSTER_AGAIN) {
        muster_epoch_try_reclaim(token, NULL);
        muster_epoch_poll(token, 64, 0, NULL, 0, NULL, NULL);
        sched_yield();
    }
}
static inline lockfree_node *lockfree_make(uint64_t key, uint64_t value) {
    lockfree_node *const made = malloc(sizeof *made);
    if (made == NULL) return NULL;
    atomic_init(&made->next, NULL);
    made->key = key;
    made->value = value;
    return made;
}

/* ---- stack: all zero is an empty one */
typedef struct lockfree_stack {
    muster_aba_cell top;
} lockfree_stack;

/* 0 if memory ran out. */
static inline int lockfree_push(lockfree_stack *stack, muster_epoch_token *token, uint64_t value) {
    lockfree_node *const made = lockfree_make(0, value);
    if (made == NULL) return 0;
    muster_epoch_pin_inline(token);
    muster_aba top = muster_aba_guess_inline(&stack->top.now);
    do atomic_store_explicit(&made->next, (lockfree_node *)(uintptr_t)top.value, memory_order_relaxed);
    while (!muster_aba_compare_exchange_inline(&stack->top.now, &top, (uintptr_t)made));
    muster_epoch_unpin_inline(token);
    return 1;
}
/* 0 if the stack is empty. */
static inline int lockfree_pop(lockfree_stack *stack, muster_epoch_token *token, uint64_t *out_value) {
    muster_epoch_pin_inline(token);
    muster_aba top = muster_aba_guess_inline(&stack->top.now);
    lockfree_node *node;
    do {
        node = (lockfree_node *)(uintptr_t)top.value;
        if (node == NULL) break;
    } while (!muster_aba_compare_exchange_inline(&stack->top.now, &top,
                                                 (uintptr_t)atomic_load_explicit(&node->next, memory_order_relaxed)));
    if (node != NULL) *out_value = node->value;
    muster_epoch_unpin_inline(token);
    if (node != NULL) lockfree_defer(token, node);
    return node != NULL;
}

/* ---- queue: the first node is a dummy, whose value was taken */
typedef struct lockfree_queue {
    _Alignas(128) _Atomic(lockfree_node *) head;
    _Alignas(128) _Atomic(lockfree_node *) tail;
} lockfree_queue;

static inline int lockfree_queue_init(lockfree_queue *queue) {
    lockfree_node *const dummy = lockfree_make(0, 0);
    atomic_init(&queue->head, dummy);
    atomic_init(&queue->tail, dummy);
    return dummy != NULL;
}
static inline int lockfree_enqueue(lockfree_queue *queue, muster_epoch_token *token, uint64_t value) {
    lockfree_node *const made = lockfree_make(0, value);
    if (made == NULL) return 0;
    muster_epoch_pin_inline(token);
    for (;;) {
        lockfree_node *tail = atomic_load(&queue->tail), *next = atomic_load(&tail->next);
        if (next == NULL && atomic_compare_exchange_strong(&tail->next, &next, made)) {
            atomic_compare_exchange_strong(&queue->tail, &tail, made);
            break;
        }
        atomic_compare_exchange_strong(&queue->tail, &tail, next); /* help the thread that has added `next` */
    }
    muster_epoch_unpin_inline(token);
    return 1;
}
static inline int lockfree_dequeue(lockfree_queue *queue, muster_epoch_token *token, uint64_t *out_value) {
    lockfree_node *head, *next;
    muster_epoch_pin_inline(token);
    for (;;) {
        head = atomic_load(&queue->head);
        lockfree_node *tail = atomic_load(&queue->tail);
        next = atomic_load(&head->next);
        if (next == NULL) break;
        if (head == tail) { /* the tail must not fall behind the head */
            atomic_compare_exchange_strong(&queue->tail, &tail, next);
            continue;
        }
        *out_value = next->value;
        if (atomic_compare_exchange_strong(&queue->head, &head, next)) break;
    }
    muster_epoch_unpin_inline(token);
    if (next != NULL) lockfree_defer(token, head);
    return next != NULL;
}
/* No thread uses the queue any more. */
static inline void lockfree_queue_destroy(lockfree_queue *queue) {
    for (lockfree_node *node = atomic_load(&queue->head), *next; node != NULL; node = next) {
        next = atomic_load(&node->next);
        free(node);
    }
}

/* ---- hash table: a bucket is a list of nodes, or, with bit 0 set, a table */
enum { lockfree_buckets = 16, lockfree_longest_bucket = 8 };
typedef struct lockfree_table {
    struct {
        _Atomic uintptr_t first;
        uint32_t lock; /* held to change the bucket */
    } buckets[lockfree_buckets];
} lockfree_table;

static inline uint32_t lockfree_bucket(uint64_t key, uint32_t level) {
    uint64_t hash = key + 0x9e3779b97f4a7c15ULL; /* the finaliser of splitmix64 */
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
    return (uint32_t)((hash ^ (hash >> 31)) >> (4 * level)) % lockfree_buckets;
}
static inline lockfree_table *lockfree_nested(uintptr_t first) {
    return first & 1 ? (lockfree_table *)(first & ~(uintptr_t)1) : NULL;
}
/* 0 if there is no such key. */
static inline int lockfree_find(lockfree_table *table, muster_epoch_token *token, uint64_t key, uint64_t *out_value) {
    muster_epoch_pin_inline(token);
    uintptr_t first = atomic_load(&table->buckets[lockfree_bucket(key, 0)].first);
    for (uint32_t level = 1; (table = lockfree_nested(first)) != NULL; level++)
        first = atomic_load(&table->buckets[lockfree_bucket(key, level)].first);
    lockfree_node *node = (lockfree_node *)first;
    while (node != NULL && node->key != key) node = atomic_load(&node->next);
    if (node != NULL) *out_value = node->value;
    muster_epoch_unpin_inline(token);
    return node != NULL;
}
/* Locks the bucket of a key, in the innermost table. Tables stay until the end, so no pin is needed. */
static inline lockfree_table *lockfree_lock(lockfree_table *table, uint64_t key, uint32_t *level) {
    for (*level = 0;;) {
        const uint32_t i = lockfree_bucket(key, *level);
        lockfree_table *nested = lockfree_nested(atomic_load(&table->buckets[i].first));
        if (nested == NULL) {
            while (muster_atomic_test_and_set(&table->buckets[i].lock, MUSTER_ATOMIC_ACQ_REL) == MUSTER_AGAIN)
                sched_yield();
            nested = lockfree_nested(atomic_load(&table->buckets[i].first));
            if (nested == NULL) return table;
            muster_atomic_clear(&table->buckets[i].lock, MUSTER_ATOMIC_ACQ_REL); /* replaced meanwhile */
        }
        table = nested;
        ++*level;
    }
}
/* Replaces a long bucket, which is locked, by a table with copies of its nodes. Readers of the old nodes go on. */
static inline lockfree_node *lockfree_split(lockfree_table *table, uint32_t i, uint32_t level) {
    lockfree_table *const made = calloc(1, sizeof *made);
    lockfree_node *const old = (lockfree_node *)atomic_load(&table->buckets[i].first);
    int failed = made == NULL;
    for (lockfree_node *node = old; node != NULL && !failed; node = atomic_load(&node->next)) {
        lockfree_node *const copy = lockfree_make(node->key, node->value);
        failed = copy == NULL;
        if (failed) break;
        _Atomic uintptr_t *const first = &made->buckets[lockfree_bucket(node->key, level + 1)].first;
        atomic_store(&copy->next, (lockfree_node *)atomic_load(first));
        atomic_store(first, (uintptr_t)copy);
    }
    if (!failed) {
        atomic_store(&table->buckets[i].first, (uintptr_t)made | 1);
        return old;
    }
    for (uint32_t b = 0; made != NULL && b < lockfree_buckets; b++) /* a long bucket works, too */
        for (lockfree_node *node = (lockfree_node *)atomic_load(&made->buckets[b].first), *next; node; node = next) {
            next = atomic_load(&node->next);
            free(node);
        }
    free(made);
    return NULL;
}
/* 1: inserted; 0: the key exists; -1: memory ran out. */
static inline int lockfree_insert(lockfree_table *table, muster_epoch_token *token, uint64_t key, uint64_t value) {
    lockfree_node *const made = lockfree_make(key, value);
    if (made == NULL) return -1;
    uint32_t level, length = 0;
    table = lockfree_lock(table, key, &level);
    const uint32_t i = lockfree_bucket(key, level);
    lockfree_node *const first = (lockfree_node *)atomic_load(&table->buckets[i].first), *node = first, *old = NULL;
    for (; node != NULL && node->key != key; node = atomic_load(&node->next)) length++;
    const int inserted = node == NULL;
    if (inserted) {
        atomic_store(&made->next, first);
        atomic_store(&table->buckets[i].first, (uintptr_t)made);
        if (length >= lockfree_longest_bucket && level < 7) old = lockfree_split(table, i, level);
    }
    muster_atomic_clear(&table->buckets[i].lock, MUSTER_ATOMIC_ACQ_REL);
    if (!inserted) free(made);
    for (lockfree_node *next; old != NULL; old = next) {
        next = atomic_load(&old->next); /* before it may be freed */
        lockfree_defer(token, old);
    }
    return inserted;
}
/* 0 if there is no such key. */
static inline int lockfree_erase(lockfree_table *table, muster_epoch_token *token, uint64_t key) {
    uint32_t level;
    table = lockfree_lock(table, key, &level);
    const uint32_t i = lockfree_bucket(key, level);
    lockfree_node *node = (lockfree_node *)atomic_load(&table->buckets[i].first), *before = NULL;
    for (; node != NULL && node->key != key; node = atomic_load(&node->next)) before = node;
    if (node != NULL && before == NULL)
        atomic_store(&table->buckets[i].first, (uintptr_t)atomic_load(&node->next));
    else if (node != NULL)
        atomic_store(&before->next, atomic_load(&node->next));
    muster_atomic_clear(&table->buckets[i].lock, MUSTER_ATOMIC_ACQ_REL);
    if (node != NULL) lockfree_defer(token, node);
    return node != NULL;
}
/* No thread uses the table any more. The table itself is the caller's. */
static inline void lockfree_table_destroy(lockfree_table *table) {
    for (uint32_t i = 0; i < lockfree_buckets; i++) {
        const uintptr_t first = atomic_load(&table->buckets[i].first);
        lockfree_table *const nested = lockfree_nested(first);
        if (nested != NULL) {
            lockfree_table_destroy(nested);
            free(nested);
            continue;
        }
        for (lockfree_node *node = (lockfree_node *)first, *next; node != NULL; node = next) {
            next = atomic_load(&node->next);
            free(node);
        }
    }
}

#endif
