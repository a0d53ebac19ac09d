// SPDX-License-Identifier: MIT
#pragma once
// A call of the host that may wait: the reasons that end its wait early, whatever it waits for.
//
// Each call that may block has a HostCall on the stack of its thread. Context::sleep(), where all of them sleep, finds
// it there and returns its status once, so that the call undoes what it has begun as it does at its deadline. A wait
// ends early when
// - the host releases the object of the call (MUSTER_E_CLOSED),
// - the call is cancelled: by muster_context_cancel(), or because it was begun with a tag (MUSTER_E_CANCELED),
// - it waits for work that only this thread would do (MUSTER_E_WOULD_DEADLOCK): see await_servant().
#include "base/list.hpp"
#include "context/context.hpp"

#include <mutex>

namespace muster {

class HostCall;

// The calls of a context that wait, or can be cancelled. Any thread.
class HostCalls {
  public:
    void end_all_on(Object &subject) noexcept; // its handle is released: no call on it waits any longer
    void cancel_all() noexcept;                // those that muster_context_cancel() ends

  private:
    friend class HostCall;
    std::mutex lock_; // guards the list, and the members of HostCall that name it
    List<HostCall> calls_;
};

// The calling thread's, but for cancel().
class HostCall final : public Listed<HostCall> {
  public:
    enum class EndedBy { handle, context_too }; // can muster_context_cancel() end it?
    // `subject`: the object of the call, which the caller keeps alive; or none.
    HostCall(Context &context, Object *subject, EndedBy ended_by = EndedBy::handle) noexcept;
    HostCall(const HostCall &) = delete;
    HostCall &operator=(const HostCall &) = delete;
    ~HostCall();

    void cancel() noexcept; // any thread, as long as it exists
    // The innermost one of this thread in this context; or none.
    static HostCall *here(const Context &context) noexcept;

    // The call waits for work that is served through a queue from which no thread has taken an entry so far, and this
    // thread may be the one that has to: another one gets some time to begin. `served` returns whether it has; `queue`
    // is kept.
    void await_servant(Ref<Object> queue, bool (*served)(Object &queue) noexcept) noexcept;

    static const char *why_ended(Status status) noexcept; // for texts, of a wait that ended with a failure

    // ---- from Context::sleep()
    // Not OK: do not sleep. `wake`: for callers that sleep elsewhere than on the signal alone.
    using Wake = void (*)(void *of) noexcept;
    Status sleep_begins(Signal *signal, Wake wake = nullptr, void *of = nullptr) noexcept;
    Status sleep_ends() noexcept;
    int64_t look_at_ns() const noexcept { return queue_ ? servant_until_ns_ : INT64_MAX; } // sleep no longer than that
    Status look_for_servant() noexcept;                                                    // then: OK, sleep on

  private:
    friend class HostCalls;
    void end(Status why) noexcept; // under the lock
    Status take() noexcept;        // the same

    Context &context_;
    Object *const subject_;
    const bool by_context_;
    HostCall *const outer_;
    Ref<Object> queue_;
    bool (*served_)(Object &queue) noexcept = nullptr;
    int64_t servant_until_ns_ = INT64_MAX;
    // Under the lock.
    bool listed_ = false, release_reported_ = false;
    Status end_ = MUSTER_OK;   // not delivered yet
    Signal *signal_ = nullptr; // where it sleeps
    Wake wake_ = nullptr;
    void *wake_of_ = nullptr;
};

// muster_..._release() of an object with calls that wait: they return MUSTER_E_CLOSED.
template <class T>
void release_handle(T &object) noexcept {
    if (!object.context().forked()) object.context().host_calls().end_all_on(object);
    object.release();
}

} // namespace muster
