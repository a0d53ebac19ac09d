// SPDX-License-Identifier: MIT
#pragma once
// The unanswered requests of a client, in the order of their numbers, and by number.
#include "store/backend/operation.hpp"

#include <algorithm>

namespace muster {

// One user at a time. Holds a reference to each operation; its number is `place`.
class PendingOperations {
  public:
    using Order = List<StoreOperation, PendingOperations>;

    bool empty() const noexcept { return order_.empty(); }
    size_t size() const noexcept { return count_; }
    StoreOperation *first() const noexcept { return order_.first(); }
    // Numbers below are answered, but for requests that change nothing: `number` is that of a request about to be sent.
    uint64_t floor(uint64_t number) const noexcept {
        return first_change_ == nullptr ? number : std::min(number, PendingOperations::number(*first_change_));
    }
    static StoreOperation *after(StoreOperation &operation) noexcept { return Order::after(operation); }
    static uint64_t number(const StoreOperation &operation) noexcept {
        return operation.place.load(std::memory_order_relaxed);
    }

    // Numbers grow. May throw, and has then done nothing.
    void add(StoreOperation &operation, uint64_t number) {
        if (count_ == chains_.size()) grow();
        operation.retain();
        operation.place.store(number, std::memory_order_relaxed);
        order_.push_back(operation);
        put(operation);
        count_++;
        if (first_change_ == nullptr && operation.request.changes()) first_change_ = &operation;
    }
    StoreOperation *find(uint64_t number) const noexcept {
        if (count_ == 0) return nullptr;
        StoreOperation *one = chains_[number & (chains_.size() - 1)];
        while (one != nullptr && PendingOperations::number(*one) != number) one = one->sending.next_in_chain;
        return one;
    }
    bool holds(const StoreOperation &operation) const noexcept { return find(number(operation)) == &operation; }
    Ref<StoreOperation> take(StoreOperation &operation) noexcept {
        if (first_change_ == &operation) do
                first_change_ = Order::after(*first_change_);
            while (first_change_ != nullptr && !first_change_->request.changes());
        order_.remove(operation);
        StoreOperation **at = &chain(operation);
        while (*at != &operation) at = &(*at)->sending.next_in_chain;
        *at = operation.sending.next_in_chain;
        count_--;
        return Ref<StoreOperation>::adopt(&operation);
    }

  private:
    StoreOperation *&chain(const StoreOperation &operation) noexcept {
        return chains_[number(operation) & (chains_.size() - 1)];
    }
    void put(StoreOperation &operation) noexcept {
        StoreOperation *&first = chain(operation);
        operation.sending.next_in_chain = first;
        first = &operation;
    }
    void grow() {
        std::vector<StoreOperation *> more(std::max<size_t>(16, 2 * chains_.size()));
        chains_.swap(more);
        for (StoreOperation *one = order_.first(); one != nullptr; one = Order::after(*one)) put(*one);
    }

    Order order_;
    std::vector<StoreOperation *> chains_; // by the last bits of numbers; a power of two of them
    size_t count_ = 0;
    StoreOperation *first_change_ = nullptr; // the first that changes something
};

} // namespace muster
