// SPDX-License-Identifier: MIT
// What the tests of epochs share.
#ifndef EPOCH_RUN_H
#define EPOCH_RUN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <muster/epoch.h>
#include <muster/inline/epoch.h>

static const int64_t ms = 1000000, second = 1000000000;

static inline muster_epoch *make_epoch(uint32_t flags, uint32_t max_tokens, uint32_t max_pending) {
    const muster_epoch_config config = {
        .struct_size = sizeof config, .flags = flags, .max_tokens = max_tokens, .max_pending = max_pending};
    muster_epoch *made;
    muster_error error;
    assert_int_equal(muster_epoch_create(&config, &made, &error), MUSTER_OK);
    return made;
}
static inline muster_epoch_token *token_of(muster_epoch *epoch) {
    muster_epoch_token *made;
    assert_int_equal(muster_epoch_register(epoch, &made, NULL), MUSTER_OK);
    return made;
}
static inline muster_epoch_stats stats_of(muster_epoch *epoch) {
    muster_epoch_stats stats;
    assert_int_equal(muster_epoch_get_stats(epoch, &stats), MUSTER_OK);
    return stats;
}
// Frees everything that is ripe.
static inline uint32_t poll_all(muster_epoch_token *token) {
    uint32_t freed = 0;
    assert_int_equal(muster_epoch_poll(token, UINT32_MAX, 0, NULL, 0, NULL, &freed), MUSTER_OK);
    return freed;
}
// Counts the frees of an object in it.
static inline void count_free(void *user, void *object) {
    (void)user;
    ++*(int *)object;
}

#endif
