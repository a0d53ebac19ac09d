// SPDX-License-Identifier: MIT
// One request of every kind, for tests that try all of them at a store in some state.
#ifndef EVERY_REQUEST_H
#define EVERY_REQUEST_H

#include <muster/store.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// The store before: "present" holds "1", the queue "filled" holds one value; "absent", "gone" and the queue "empty" do
// not exist.
typedef struct any_request {
    const char *name;
    muster_store_op ops[2];
    size_t count;
    bool changes;          // something, if it is applied
    uint32_t capabilities; // what the store needs
} any_request;

enum { any_request_count = 22 };

static inline muster_store_op any_op(uint32_t kind, const char *key, const char *value) {
    muster_store_op made;
    memset(&made, 0, sizeof made);
    made.kind = kind;
    made.key = key;
    made.key_bytes = strlen(key);
    made.value = value;
    made.value_bytes = value != NULL ? strlen(value) : 0;
    return made;
}

static inline void make_any_requests(any_request out[any_request_count]) {
    const uint32_t wait = MUSTER_STORE_CAN_WAIT, queue = MUSTER_STORE_CAN_QUEUE, transact = MUSTER_STORE_CAN_TRANSACT;
    const any_request all[any_request_count] = {
        {"get of a key that exists", {any_op(MUSTER_STORE_GET, "present", NULL)}, 1, false, 0},
        {"get of a key that is waited for", {any_op(MUSTER_STORE_GET, "absent", NULL)}, 1, false, wait},
        {"wait", {any_op(MUSTER_STORE_WAIT, "absent", NULL)}, 1, false, wait},
        {"read", {any_op(MUSTER_STORE_READ, "present", NULL)}, 1, false, 0},
        {"check", {any_op(MUSTER_STORE_CHECK, "present", NULL)}, 1, false, 0},
        {"count", {any_op(MUSTER_STORE_COUNT, "", NULL)}, 1, false, 0},
        {"list", {any_op(MUSTER_STORE_LIST, "", NULL)}, 1, false, 0},
        {"keys", {any_op(MUSTER_STORE_KEYS, "", NULL)}, 1, false, 0},
        {"length", {any_op(MUSTER_STORE_LENGTH, "filled", NULL)}, 1, false, queue},
        {"watch", {any_op(MUSTER_STORE_WATCH, "absent", NULL)}, 1, false, MUSTER_STORE_CAN_WATCH},
        {"set", {any_op(MUSTER_STORE_SET, "set", "x")}, 1, true, 0},
        {"add", {any_op(MUSTER_STORE_ADD, "sum", NULL)}, 1, true, 0},
        {"append", {any_op(MUSTER_STORE_APPEND, "text", "x")}, 1, true, 0},
        {"delete", {any_op(MUSTER_STORE_DELETE, "gone", NULL)}, 1, true, 0},
        {"compare and set", {any_op(MUSTER_STORE_SET, "swapped", "x")}, 1, true, transact},
        {"push", {any_op(MUSTER_STORE_PUSH, "pushed", "x")}, 1, true, queue},
        {"pop of a value that exists", {any_op(MUSTER_STORE_POP, "filled", NULL)}, 1, true, queue},
        {"pop of a value that is waited for", {any_op(MUSTER_STORE_POP, "empty", NULL)}, 1, true, queue | wait},
        {"clear", {any_op(MUSTER_STORE_CLEAR, "pushed", NULL)}, 1, true, queue},
        {"barrier", {any_op(MUSTER_STORE_BARRIER, "meeting", NULL)}, 1, true, MUSTER_STORE_CAN_BARRIER},
        {"transaction", {any_op(MUSTER_STORE_SET, "a", "x"), any_op(MUSTER_STORE_SET, "b", "x")}, 2, true, transact},
        {"transaction that waits",
         {any_op(MUSTER_STORE_WAIT, "absent", NULL), any_op(MUSTER_STORE_SET, "c", "x")},
         2,
         true,
         transact | wait},
    };
    memcpy(out, all, sizeof all);
    for (int i = 0; i < any_request_count; i++) {
        muster_store_op *const op = out[i].ops;
        if (op->kind == MUSTER_STORE_ADD) op->number = 1;
        if (op->kind == MUSTER_STORE_BARRIER) op->count = 2;
        if (strcmp(out[i].name, "compare and set") == 0) op->condition = MUSTER_STORE_IF_ABSENT;
    }
}

#endif
