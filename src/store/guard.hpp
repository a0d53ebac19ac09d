// SPDX-License-Identifier: MIT
#pragma once
// Ties the requests of a view to something that has to be so: each carries its conditions, and those that wait end when
// it is known here that they do not hold any more.
#include "store/request.hpp"

#include <atomic>
#include <mutex>

namespace muster {

// Any thread.
class StoreGuard : public Object {
  public:
    struct Condition {
        std::string key, value; // the key as the store has it
    };
    explicit StoreGuard(std::vector<Condition> what) noexcept : conditions(std::move(what)) {}
    const std::vector<Condition> conditions;

    bool over() const noexcept { return over_.load(std::memory_order_acquire); } // pairs with end(): its `why`
    Error why() const noexcept { return over() ? why_ : Error::from_status(MUSTER_E_STALE); }
    // Nothing is asked of the store any more. Whoever calls it then looks at those that wait: see
    // StoreBackend::guarded_by(). Only the first call counts.
    void end(const Error &why) noexcept {
        const std::lock_guard hold(lock_);
        if (over()) return;
        why_ = why;
        over_.store(true, std::memory_order_release);
    }
    // What a request is told whose conditions do not hold; `first`: the first entry of these.
    virtual Error broken(const StoreResult &instead, size_t first) const noexcept = 0;

  private:
    std::mutex lock_;
    Error why_; // written before `over`
    std::atomic<bool> over_{false};
};

} // namespace muster
