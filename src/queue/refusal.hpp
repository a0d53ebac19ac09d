// SPDX-License-Identifier: MIT
#pragma once
// The reason why Queue::reserve() or Queue::try_post() returned false.
#include "queue/queue.hpp"

namespace muster {

// `what` names the queue. If a slot is available by now, it was refused because memory ran out.
inline Error why_refused(Queue &queue, const char *what) noexcept {
    if (queue.closed()) return Error::make(MUSTER_E_CLOSED, "%s is closed", what);
    if (!queue.reserve()) return Error::make(MUSTER_E_LIMIT, "%s is full", what);
    queue.unreserve();
    return Error::make(MUSTER_E_NOMEM, "%s has no memory for another entry", what);
}

} // namespace muster
