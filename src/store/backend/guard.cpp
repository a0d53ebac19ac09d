// SPDX-License-Identifier: MIT
#include "store/backend/guard.hpp"

#include "store/backend/operation.hpp"

namespace muster {

void StoreGuard::end(const Error &why) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (over()) return;
        why_ = why;
        over_.store(true, std::memory_order_release);
    }
    for (;;) { // one after the other: that needs no memory
        Ref<StoreOperation> next;
        {
            const std::lock_guard hold(lock_);
            while (!next && !operations_.empty()) {
                StoreOperation *const one = *operations_.begin();
                operations_.erase(operations_.begin());
                if (one->try_retain()) next = Ref<StoreOperation>::adopt(one);
            }
        }
        if (!next) return;
        next->look_at_guard();
    }
}

void StoreGuard::enlist(StoreOperation &operation) {
    const std::lock_guard hold(lock_);
    operations_.insert(&operation);
}

void StoreGuard::delist(StoreOperation &operation) noexcept {
    const std::lock_guard hold(lock_);
    operations_.erase(&operation);
}

} // namespace muster
