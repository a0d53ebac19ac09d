/* SPDX-License-Identifier: MIT */
/* Four threads work on a stack, a queue and a hash table without waiting for each other; memory is freed while they
 * run. At the end everything that went in has come out once, and nothing is left to be freed. */
#include "lockfree.h"

#include <pthread.h>
#include <stdio.h>

enum { threads = 4, rounds = 50000 };

static muster_epoch *epoch;
static lockfree_stack stack;
static lockfree_queue queue;
static lockfree_table table;

typedef struct sums {
    uint64_t in, out;
    int failed;
} sums;

static void *work(void *argument) {
    sums *const own = argument;
    const uint64_t number = own->in; /* of the thread */
    own->in = 0;
    muster_epoch_token *token;
    if (muster_epoch_register(epoch, &token, NULL) != MUSTER_OK) {
        own->failed = 1;
        return NULL;
    }
    for (uint64_t i = 1; i <= rounds && !own->failed; i++) {
        uint64_t value, key = number * rounds + i;
        if (!lockfree_push(&stack, token, i) || !lockfree_enqueue(&queue, token, i)) own->failed = 1;
        own->in += 2 * i;
        if (lockfree_pop(&stack, token, &value)) own->out += value;
        if (lockfree_dequeue(&queue, token, &value)) own->out += value;
        if (lockfree_insert(&table, token, key, i) != 1) own->failed = 1;
        if (!lockfree_find(&table, token, key, &value) || value != i) own->failed = 1;
        if (i % 2 == 0 && !lockfree_erase(&table, token, key)) own->failed = 1;
        muster_epoch_poll(token, 0, 0, NULL, 0, NULL, NULL); /* a few objects, if their time has come */
    }
    muster_epoch_unregister(token);
    return NULL;
}

int main(void) {
    muster_error error;
    if (muster_epoch_create(NULL, &epoch, &error) != MUSTER_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (!lockfree_queue_init(&queue)) return 1;
    pthread_t running[threads];
    sums all[threads];
    for (uint64_t i = 0; i < threads; i++) {
        all[i] = (sums){.in = i};
        if (pthread_create(&running[i], NULL, work, &all[i]) != 0) return 1;
    }
    uint64_t in = 0, out = 0;
    int failed = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
        in += all[i].in;
        out += all[i].out;
        failed |= all[i].failed;
    }
    muster_epoch_token *token;
    if (muster_epoch_register(epoch, &token, NULL) != MUSTER_OK) return 1;
    uint64_t value, found = 0;
    while (lockfree_pop(&stack, token, &value)) out += value;
    while (lockfree_dequeue(&queue, token, &value)) out += value;
    for (uint64_t key = 1; key <= (uint64_t)threads * rounds; key++) found += lockfree_find(&table, token, key, &value);
    muster_epoch_stats stats;
    muster_epoch_get_stats(epoch, &stats);
    printf("%d threads: %llu objects deferred, %llu of them freed while they ran\n", threads,
           (unsigned long long)stats.deferred, (unsigned long long)stats.freed);
    muster_epoch_unregister(token);
    muster_epoch_release(epoch); /* frees the rest */
    lockfree_queue_destroy(&queue);
    lockfree_table_destroy(&table);
    if (failed || in != out || found != (uint64_t)threads * rounds / 2) {
        fprintf(stderr, "wrong: in %llu, out %llu, found %llu\n", (unsigned long long)in, (unsigned long long)out,
                (unsigned long long)found);
        return 1;
    }
    printf("the sums agree\n");
    return 0;
}
