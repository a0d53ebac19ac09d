/* SPDX-License-Identifier: MIT */
/** @file
 * Pin and unpin of epoch.h as inline functions, unchecked: the token must be registered, and belong to this process.
 *
 * Another language does the same on muster_epoch_token:
 * - pin: if epoch is not 0, add 1 to depth. Otherwise load the global epoch, at the address of the token plus to_global
 *   with bit 0 cleared, and store it in epoch: with a compiler fence after it if bit 0 of to_global is 0, or with
 *   a sequentially consistent fence after it if it is 1 (on x86-64 a sequentially consistent exchange is that, too).
 * - unpin: if depth is not 0, subtract 1; otherwise store 0 in epoch with release order. */
#ifndef MUSTER_INLINE_EPOCH_H
#define MUSTER_INLINE_EPOCH_H

#include <muster/epoch.h>

/** Pins a token; see muster_epoch_pin().
 * @param[in] token  Registered token. */
static inline void muster_epoch_pin_inline(muster_epoch_token *token) {
    /* relaxed: only the owner writes its epoch, apart from the thread that finds the owner dead. */
    if (__builtin_expect(__atomic_load_n(&token->epoch, __ATOMIC_RELAXED) != 0, 0)) {
        token->depth++;
        return;
    }
    const int64_t to_global = token->to_global;
    const uint64_t *const global = (const uint64_t *)((const char *)token + (to_global & ~(int64_t)1));
    /* relaxed: an old epoch only delays others. The store comes before every read of the structure: with a fence here,
     * or with the membarrier of the thread that advances the epoch, which this compiler fence makes sufficient.
     * release: an object protected before this pin is seen by the thread that sees the pin. */
    const uint64_t now = __atomic_load_n(global, __ATOMIC_RELAXED);
    if (__builtin_expect((to_global & 1) == 0, 1)) {
        __atomic_store_n(&token->epoch, now, __ATOMIC_RELEASE);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
#if defined(__x86_64__)
        /* A full fence there, and faster than one after a store. */
        (void)__atomic_exchange_n(&token->epoch, now, __ATOMIC_SEQ_CST);
#else
        __atomic_store_n(&token->epoch, now, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    }
}

/** Ends one pin; see muster_epoch_unpin().
 * @param[in] token  Pinned token. */
static inline void muster_epoch_unpin_inline(muster_epoch_token *token) {
    if (__builtin_expect(token->depth != 0, 0))
        token->depth--;
    else /* release: reads of the structure come before it. */
        __atomic_store_n(&token->epoch, 0, __ATOMIC_RELEASE);
}

#endif
