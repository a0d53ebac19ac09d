// SPDX-License-Identifier: MIT
#pragma once
// Ties the requests of a view to something that has to be so: each carries its conditions, and those that wait end when
// it is known here that they do not hold any more.
#include "store/request.hpp"

#include <atomic>
#include <mutex>
#include <unordered_set>

namespace muster {

class StoreOperation;

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
    // Nothing is asked of the store any more, and what waits ends. Only the first call counts.
    void end(const Error &why) noexcept;
    // Operations under way. Who comes in looks whether it is over afterwards.
    void enlist(StoreOperation &operation);
    void delist(StoreOperation &operation) noexcept;
    // What a request is told whose conditions do not hold; `first`: the first entry of these.
    virtual Error broken(const StoreResult &instead, size_t first) const noexcept = 0;

  private:
    std::mutex lock_;
    Error why_; // written before `over`
    std::unordered_set<StoreOperation *> operations_;
    std::atomic<bool> over_{false};
};

} // namespace muster
