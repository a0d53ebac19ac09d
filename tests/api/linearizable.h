// SPDX-License-Identifier: MIT
// Is a history of a stack, a queue or a set linearizable: is there an order of its operations that a sequential one
// explains? (J. M. Wing and C. Gong, Testing and verifying concurrent objects, 1993)
#ifndef LINEARIZABLE_H
#define LINEARIZABLE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { put, take, insert, erase, find };

typedef struct operation {
    enum kind kind;
    uint64_t value;  // put in, or the key
    uint64_t result; // taken, or 0: empty; for keys 1: done
    uint64_t begin, end;
} operation;

// The sequential one: a stack, a queue or a set.
typedef enum structure { a_stack, a_queue, a_table } structure;
enum { max_history = 16 };
typedef struct model {
    uint64_t values[max_history];
    int count;
} model;

// Applies an operation; 0 if the model gives another result.
static inline int apply(structure what, model *m, const operation *o) {
    int at = -1;
    switch (o->kind) {
    case put:
        m->values[m->count++] = o->value;
        return 1;
    case take:
        if (m->count == 0) return o->result == 0;
        at = what == a_stack ? m->count - 1 : 0;
        if (m->values[at] != o->result) return 0;
        break;
    default:
        for (int i = 0; i < m->count; i++)
            if (m->values[i] == o->value) at = i;
        if (o->kind == find) return o->result == (at >= 0);
        if (o->kind == insert) {
            if (at < 0) m->values[m->count++] = o->value;
            return o->result == (at < 0);
        }
        if (o->result != (at >= 0)) return 0;
        if (at < 0) return 1;
    }
    memmove(&m->values[at], &m->values[at + 1], (size_t)(m->count - at - 1) * sizeof *m->values);
    m->count--;
    return 1;
}
static inline int linearizable(structure what, const operation *history, int count, uint32_t done, const model *m) {
    if (done == (1U << count) - 1) return 1;
    uint64_t first_end = UINT64_MAX;
    for (int i = 0; i < count; i++)
        if (!(done >> i & 1) && history[i].end < first_end) first_end = history[i].end;
    for (int i = 0; i < count; i++) {
        if (done >> i & 1 || history[i].begin > first_end) continue; // another one ended before it began
        model next = *m;
        if (apply(what, &next, &history[i]) && linearizable(what, history, count, done | 1U << i, &next)) return 1;
    }
    return 0;
}
// Ends the test, and prints the history, if it is not.
static inline void check_history(structure what, const operation *history, int count) {
    const model empty = {.count = 0};
    if (linearizable(what, history, count, 0, &empty)) return;
    for (int i = 0; i < count; i++)
        fprintf(stderr, "operation %d: kind %d, value %d, result %d, from %d to %d\n", i, history[i].kind,
                (int)history[i].value, (int)history[i].result, (int)history[i].begin, (int)history[i].end);
    abort();
}

#endif
