// SPDX-License-Identifier: MIT
#include "context/host_call.hpp"

namespace muster {

namespace {

thread_local HostCall *innermost = nullptr;
// The time for a thread that was started to serve, for example in a program that is compiled while it runs.
constexpr int64_t servant_grace_ns = 2'000'000'000;

} // namespace

void HostCalls::end_all_on(Object &subject) noexcept {
    subject.leave_handle(); // first: a call that is about to sleep checks it under the lock
    const std::lock_guard hold(lock_);
    for (HostCall *call = calls_.first(); call != nullptr; call = List<HostCall>::after(*call))
        if (call->subject_ == &subject) call->end(call->take()); // delivered by its sleep
}

void HostCalls::cancel_all() noexcept {
    const std::lock_guard hold(lock_);
    for (HostCall *call = calls_.first(); call != nullptr; call = List<HostCall>::after(*call))
        if (call->by_context_) call->end(MUSTER_E_CANCELED);
}

HostCall::HostCall(Context &context, Object *subject, EndedBy ended_by) noexcept
    : context_(context), subject_(subject), by_context_(ended_by == EndedBy::context_too), outer_(innermost) {
    innermost = this;
    if (!by_context_) return; // enters the list when it sleeps
    const std::lock_guard hold(context_.host_calls().lock_);
    context_.host_calls().calls_.push_back(*this);
    listed_ = true;
}

HostCall::~HostCall() {
    innermost = outer_;
    if (!listed_) return; // written by this thread
    const std::lock_guard hold(context_.host_calls().lock_);
    context_.host_calls().calls_.remove(*this);
}

HostCall *HostCall::here(const Context &context) noexcept {
    return innermost != nullptr && &innermost->context_ == &context ? innermost : nullptr;
}

void HostCall::cancel() noexcept {
    const std::lock_guard hold(context_.host_calls().lock_);
    end(MUSTER_E_CANCELED);
}

void HostCall::end(Status why) noexcept {
    if (why != MUSTER_OK) end_ = why;
    if (end_ == MUSTER_OK || signal_ == nullptr) return;
    if (wake_ != nullptr)
        wake_(wake_of_);
    else
        context_.notify(*signal_);
}

Status HostCall::take() noexcept {
    if (subject_ != nullptr && subject_->handle_left() && !std::exchange(release_reported_, true))
        end_ = MUSTER_E_CLOSED;
    return std::exchange(end_, MUSTER_OK);
}

Status HostCall::sleep_begins(Signal *signal, Wake wake, void *of) noexcept {
    const std::lock_guard hold(context_.host_calls().lock_);
    if (!listed_) context_.host_calls().calls_.push_back(*this);
    listed_ = true;
    if (const Status why = take(); why != MUSTER_OK) return why;
    if (signal_ != nullptr) return MUSTER_OK; // inside another sleep of this call, which has another wake-up
    signal_ = signal;
    wake_ = wake;
    wake_of_ = of;
    return MUSTER_OK;
}

Status HostCall::sleep_ends() noexcept {
    const std::lock_guard hold(context_.host_calls().lock_);
    signal_ = nullptr;
    wake_ = nullptr;
    return take();
}

void HostCall::await_servant(Ref<Object> queue, bool (*served)(Object &queue) noexcept) noexcept {
    queue_ = std::move(queue);
    served_ = served;
    servant_until_ns_ = now_ns() + servant_grace_ns;
}

const char *HostCall::why_ended(Status status) noexcept {
    switch (status) {
    case MUSTER_E_CANCELED:
        return "cancelled";
    case MUSTER_E_CLOSED:
        return "released while it waited";
    case MUSTER_E_WOULD_DEADLOCK:
        return "this thread has to serve what it would wait for";
    default:
        return "cannot wait here";
    }
}

Status HostCall::look_for_servant() noexcept {
    if (!queue_) return MUSTER_OK;
    const bool is_served = served_(*queue_);
    if (!is_served && now_ns() < servant_until_ns_) return MUSTER_OK;
    queue_.reset();
    return is_served ? MUSTER_OK : MUSTER_E_WOULD_DEADLOCK;
}

} // namespace muster
