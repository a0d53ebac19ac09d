// SPDX-License-Identifier: MIT
#include "rendezvous/member/member.hpp"
#include "base/trace.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr size_t max_events = 1024;
constexpr uint32_t ready = 1; // MUSTER_STREAM_READABLE

bool gives_way(const muster_rendezvous_event &before, const muster_rendezvous_event &to) noexcept {
    return before.kind == to.kind && (to.kind == MUSTER_RENDEZVOUS_JOINED || to.kind == MUSTER_RENDEZVOUS_WAITING);
}
} // namespace

void Member::open_events() noexcept {
    if (settings.queue) settings.queue->attach(*this, settings.tag);
}

void Member::leave_queue() noexcept {
    if (settings.queue && !forked()) settings.queue->detach(*this);
}

// From the end of the context on, or from a destructor.
void Member::close_events() noexcept {
    {
        const std::lock_guard hold(lock_);
        over_ = true;
    }
    context_->notify(signal_);
}

bool Member::enlist(RendezvousOperation &operation) noexcept {
    const std::lock_guard hold(lock_);
    try {
        operations_.emplace_back(&operation);
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

void Member::delist(RendezvousOperation &operation) noexcept {
    Ref<RendezvousOperation> last; // released without the lock
    const std::lock_guard hold(lock_);
    for (Ref<RendezvousOperation> &one : operations_) {
        if (one.get() != &operation) continue;
        last = std::move(one);
        std::swap(one, operations_.back());
        operations_.pop_back();
        return;
    }
}

void Member::cancel() noexcept {
    std::vector<Ref<RendezvousOperation>> all;
    {
        const std::lock_guard hold(lock_);
        cancels_++;
        try {
            all = operations_;
        } catch (const std::bad_alloc &) { // waiting threads have their deadlines
        }
    }
    for (const Ref<RendezvousOperation> &one : all) one->stop(MUSTER_E_CANCELED);
    context_->notify(signal_);
}

Status Member::next_event(Deadline &deadline, muster_rendezvous_event &out) noexcept {
    bool first = true;
    uint64_t cancels = 0;
    return context_->wait(signal_, deadline, lock_, [&]() -> Status {
        if (!events_.empty()) {
            out = events_.front();
            events_.pop_front();
            return MUSTER_OK;
        }
        if (over_ || context_->closed()) return MUSTER_E_CLOSED;
        if (std::exchange(first, false)) cancels = cancels_;
        return cancels != cancels_ ? MUSTER_E_CANCELED : MUSTER_AGAIN;
    });
}

muster_rendezvous_state Member::state() noexcept {
    const std::lock_guard hold(lock_);
    muster_rendezvous_state state = state_;
    if (state.last_call_remaining_ns > 0)
        state.last_call_remaining_ns = std::max<int64_t>(0, state.last_call_remaining_ns - (now_ns() - state_ns_));
    return state;
}

void Member::set_state(const muster_rendezvous_state &state) noexcept {
    const std::lock_guard hold(lock_);
    state_ = state;
    state_ns_ = now_ns();
}

void Member::emit(const muster_rendezvous_event &event) noexcept {
    if (event.kind == MUSTER_RENDEZVOUS_COMPLETE) Trace::mark("rendezvous", "round complete");
    if (event.kind == MUSTER_RENDEZVOUS_DEAD) Trace::mark("rendezvous", "member dead");
    if (event.kind == MUSTER_RENDEZVOUS_LEFT) Trace::mark("rendezvous", "member left");
    {
        const std::lock_guard hold(lock_);
        try {
            if (!events_.empty() && gives_way(events_.back(), event))
                events_.back() = event;
            else
                events_.push_back(event);
            if (events_.size() > max_events) events_.pop_front();
        } catch (const std::bad_alloc &) { // the state has the current numbers
        }
    }
    context_->notify(signal_);
    if (settings.queue) settings.queue->raise(*this, ready);
}

} // namespace muster
