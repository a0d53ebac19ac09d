// SPDX-License-Identifier: MIT
#include "metrics/publication.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr int64_t max_wait_ns = 10'000'000'000, end_wait_ns = 2'000'000'000;
} // namespace

void MetricsPublication::get_state(muster_metrics_state &out) noexcept {
    const std::lock_guard hold(lock_);
    out = state_;
}

bool MetricsPublication::ended() noexcept {
    const std::lock_guard hold(lock_);
    return ended_;
}

// After a start, a call, or the end.
void MetricsPublication::wake() noexcept {
    bool over;
    int64_t at_ns;
    {
        const std::lock_guard hold(lock_);
        over = ended_;
        at_ns = state_.published + state_.failed == 0 ? now_ns() : now_ns() + interval_ns_;
    }
    if (!over)
        context_->loop().start_timer(timer_, at_ns);
    else
        context_->loop().stop_timer(timer_);
}

void MetricsPublication::due() noexcept {
    const std::lock_guard hold(lock_);
    if (ended_ || is_calling_) return;
    is_calling_ = CallThreads::add(*this);
    if (!is_calling_) context_->loop().start_timer(timer_, now_ns() + interval_ns_); // no thread is left now
}

void MetricsPublication::run() noexcept {
    const Ref<MetricsPublication> self(this);
    if (!ended()) {
        Error why;
        try {
            why = publish();
        } catch (const std::bad_alloc &) {
            why = Error::from_status(MUSTER_E_NOMEM);
        }
        const std::lock_guard hold(lock_);
        state_.status = why.status;
        (why.status == MUSTER_OK ? state_.published : state_.failed)++;
    }
    bool over;
    {
        const std::lock_guard hold(lock_);
        over = ended_;
        is_calling_ = over; // nothing follows
    }
    if (over)
        end_lease();
    else
        wake_.post(*context_);
}

Error MetricsPublication::publish() {
    const std::string text = metrics_text(*context_);
    const int64_t wait_ns = std::min(interval_ns_, max_wait_ns);
    Error why;
    if (lease_ == nullptr) {
        why.status = muster_store_lease(wrap(store_.get()), 3 * interval_ns_ + 1'000'000'000, MUSTER_LEASE_CONNECTED,
                                        wait_ns, &lease_, &why);
        if (why.status != MUSTER_OK) return why;
    }
    muster_store_op op{};
    op.kind = MUSTER_STORE_SET;
    op.key = key_.data();
    op.key_bytes = key_.size();
    op.value = text.data();
    op.value_bytes = text.size();
    op.lease = muster_lease_id(lease_);
    why.status = muster_store_do(wrap(store_.get()), &op, 1, wait_ns, nullptr, &why);
    if (why.status == MUSTER_E_STALE) muster_lease_release(std::exchange(lease_, nullptr)); // a new one next time
    return why;
}

void MetricsPublication::end_lease() noexcept {
    muster_lease *const lease = std::exchange(lease_, nullptr);
    if (lease == nullptr) return;
    muster_lease_end(lease, end_wait_ns, nullptr); // otherwise it expires
    muster_lease_release(lease);
}

void MetricsPublication::host_release() noexcept {
    if (!forked()) {
        const std::lock_guard hold(lock_);
        ended_ = true;
        if (!is_calling_) is_calling_ = CallThreads::add(*this); // ends the lease
        wake_.post(*context_);
    }
    release();
}

} // namespace muster
