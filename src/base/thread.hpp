// SPDX-License-Identifier: MIT
#pragma once
// Threads of the library: they receive no signal meant for the host, and no thread waits for them.
#include <csignal>
#include <initializer_list>
#include <pthread.h>

namespace muster {

// Every signal but those that the kernel raises for a fault of the thread itself, which must reach the handlers of the
// host (a blocked SIGSEGV would kill the process without a message).
inline sigset_t asynchronous_signals() noexcept {
    sigset_t set;
    sigfillset(&set);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&set, fault);
    return set;
}

// Starts a detached thread; it names itself. Returns 0 or an errno. Its end does not coincide with the exit of the
// process; thread.cpp says why.
int start_thread(void *(*body)(void *), void *argument) noexcept;

// The exit of the process waits for threads at their end before it calls what a library has registered so far with
// atexit(). `library`: any address that is the same for each use of it.
void end_threads_before(const void *library) noexcept;

// Blocks asynchronous signals on this thread while it lives: around calls into other libraries that start threads of
// their own, which inherit the mask.
class SignalsBlocked {
  public:
    SignalsBlocked() noexcept {
        const sigset_t set = asynchronous_signals();
        pthread_sigmask(SIG_BLOCK, &set, &before_);
    }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

} // namespace muster
