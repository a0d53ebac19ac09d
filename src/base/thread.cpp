// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

#include "base/libc.hpp"

namespace muster {

int start_thread(void *(*body)(void *), void *argument) noexcept {
    pthread_attr_t attributes;
    if (const int rc = pthread_attr_init(&attributes)) return rc;
    const sigset_t set = asynchronous_signals();
    int rc = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    if (rc == 0) rc = libc::create_thread(&thread, &attributes, set, body, argument);
    pthread_attr_destroy(&attributes);
    return rc;
}

} // namespace muster
