// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

namespace muster {

int start_thread(void *(*body)(void *), void *argument) noexcept {
    pthread_attr_t attributes;
    if (const int rc = pthread_attr_init(&attributes)) return rc;
    const sigset_t set = asynchronous_signals();
    // The mask is an attribute of the new thread, so that of the host's thread does not change, not even for a moment.
    int rc = pthread_attr_setsigmask_np(&attributes, &set);
    if (rc == 0) rc = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    if (rc == 0) rc = pthread_create(&thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    return rc;
}

} // namespace muster
