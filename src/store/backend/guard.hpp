// SPDX-License-Identifier: MIT
#pragma once
// Ties the requests of a view to conditions: each request carries them, and requests that wait end when the conditions
// are known to have failed.
#include "store/table/request.hpp"

#include <atomic>
#include <mutex>
#include <unordered_set>

namespace muster {

class StoreOperation;

// Any thread.
class StoreGuard : public Object {
  public:
    explicit StoreGuard(std::vector<StoreCondition> what) noexcept : conditions(std::move(what)) {}
    const std::vector<StoreCondition> conditions;

    bool over() const noexcept { return over_.load(std::memory_order_acquire); } // pairs with end(): its `why`
    Error why() const noexcept { return over() ? why_ : Error::from_status(MUSTER_E_STALE); }
    // Later requests fail, and those that wait end. Only the first call has an effect.
    void end(const Error &why) noexcept;
    // Operations in progress. After enlist() the caller checks over().
    void enlist(StoreOperation &operation);
    void delist(StoreOperation &operation) noexcept;
    // The answer to a request whose conditions do not hold; `first`: the first entry of the guard.
    virtual Error broken(const StoreResult &instead, size_t first) const noexcept = 0;

  private:
    std::mutex lock_;
    Error why_; // written before `over`
    std::unordered_set<StoreOperation *> operations_;
    std::atomic<bool> over_{false};
};

} // namespace muster
