// SPDX-License-Identifier: MIT
// A transport this program serves itself, within one context: relay://. It takes every failure of the library for what
// it is, so that what is left over is the library's.
#ifndef MUSTER_TESTS_RELAY_H
#define MUSTER_TESTS_RELAY_H

#include <muster/muster.h>

typedef enum relay_kind { relay_dispatched, relay_any_thread, relay_pulled, relay_kinds } relay_kind;
typedef struct relay relay;

// NULL: the library could not; `status` says why. `start_thread` starts a thread without a failure of its own.
relay *relay_begin(muster_context *context, relay_kind kind, void (*start_thread)(void *(*run)(void *), void *argument),
                   muster_status *status);
// When the streams over it are closed: takes it back, waits for its threads, frees it.
void relay_end(relay *r);

#endif
