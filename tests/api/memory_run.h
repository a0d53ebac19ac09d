// SPDX-License-Identifier: MIT
// What the tests of global memory share: short forms of calls, and a stack of nodes on all locales.
#ifndef MEMORY_RUN_H
#define MEMORY_RUN_H

#include "group_run.h"

#include <muster/inline/epoch.h>
#include <muster/inline/memory.h>
#include <sched.h>

static uint32_t memory_flags; // of memories that are opened from now on

static inline muster_memory *open_memory(member *me, const muster_memory_config *given) {
    muster_memory *memory = NULL;
    muster_error error = {0};
    muster_memory_config config = *given;
    config.flags = memory_flags;
    CHECK_OK(muster_memory_open(me->group, &config, 30 * second, &memory, &error), error);
    CHECK(muster_memory_locale(memory) == me->rank && muster_memory_locales(memory) == me->size);
    return memory;
}
static inline uint64_t symmetric(muster_memory *memory, uint64_t bytes, uint64_t alignment) {
    uint64_t offset = 0;
    muster_error error = {0};
    CHECK_OK(muster_memory_symmetric(memory, bytes, alignment, 30 * second, &offset, &error), error);
    return offset;
}
static inline muster_gptr at(muster_memory *memory, uint32_t locale, uint64_t offset) {
    muster_gptr pointer = 0;
    CHECK(muster_memory_pointer(memory, locale, offset, &pointer) == MUSTER_OK);
    return pointer;
}
static inline muster_status run_one(muster_memory *memory, muster_memory_operation what, muster_memory_result *out) {
    what.struct_size = sizeof what;
    return muster_memory_run(memory, &what, -1, out);
}
// With segments that all locales have mapped, and then with active messages alone.
static inline void run_mapped_and_elsewhere(uint32_t size, member_body body) {
    run_members(size, &(member){0}, body);
    memory_flags = MUSTER_MEMORY_NO_SHARED_MEMORY;
    run_members(size, &(member){0}, body);
    memory_flags = 0;
}

// Of blocks anywhere.
static inline void put_bytes(muster_memory *memory, muster_gptr target, const void *from, uint64_t bytes) {
    CHECK(run_one(memory,
                  (muster_memory_operation){
                      .kind = MUSTER_MEMORY_PUT, .target = target, .local = (void *)from, .bytes = bytes},
                  NULL) == MUSTER_OK);
}
static inline void get_bytes(muster_memory *memory, muster_gptr target, void *to, uint64_t bytes) {
    CHECK(run_one(memory,
                  (muster_memory_operation){.kind = MUSTER_MEMORY_GET, .target = target, .local = to, .bytes = bytes},
                  NULL) == MUSTER_OK);
}

// ---- a stack of nodes on all locales, with epochs (R. K. Treiber, 1986)

typedef struct node {
    uint64_t next; // global pointers; nothing changes once the node is on the stack
    uint64_t value;
} node;

static inline bool push(muster_memory *memory, muster_gptr top, uint32_t locale, uint64_t value) {
    muster_gptr made = 0;
    const muster_status status = muster_memory_allocate(memory, locale, sizeof(node), 30 * second, &made);
    if (status == MUSTER_AGAIN) return false; // all nodes wait
    CHECK(status == MUSTER_OK);
    muster_memory_result seen = {0};
    muster_memory_operation change = {.kind = MUSTER_MEMORY_COMPARE_EXCHANGE, .target = top, .value = made};
    do {
        const node content = {seen.value, value};
        put_bytes(memory, made, &content, sizeof content);
        change.expected = seen.value;
    } while (run_one(memory, change, &seen) != MUSTER_OK);
    return true;
}
// The node that was popped, or 0. Only the epoch keeps this from the ABA problem.
static inline muster_gptr pop(muster_memory *memory, muster_gptr top, muster_epoch_token *token, uint64_t *out_value) {
    muster_epoch_pin_inline(token);
    muster_memory_result seen = {0};
    muster_memory_operation change = {.kind = MUSTER_MEMORY_READ, .target = top};
    CHECK(run_one(memory, change, &seen) == MUSTER_OK);
    change.kind = MUSTER_MEMORY_COMPARE_EXCHANGE;
    while (seen.value != 0) {
        node content;
        get_bytes(memory, seen.value, &content, sizeof content);
        change.expected = seen.value;
        change.value = content.next;
        *out_value = content.value;
        if (run_one(memory, change, &seen) == MUSTER_OK) break;
    }
    muster_epoch_unpin_inline(token);
    return seen.value;
}
static inline void free_polled(muster_memory *memory, muster_epoch_token *token) {
    CHECK(muster_memory_reclaim(memory, token, 4, 0, NULL) >= 0); // nothing is freed twice
}

// Very many objects wait while a pinned process is not running.
static inline void retire(muster_memory *memory, muster_epoch_token *token, muster_gptr object) {
    while (muster_epoch_retire(token, object) == MUSTER_AGAIN) {
        muster_epoch_try_reclaim(token, NULL);
        free_polled(memory, token);
        sched_yield();
    }
}

#endif
