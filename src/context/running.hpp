// SPDX-License-Identifier: MIT
#pragma once
#include "base/list.hpp"
#include "context/task.hpp"

#include <mutex>

namespace muster {

// Those of a kind that have a thread of their own and are not over. A context that closes tells each to end
// (T::context_closes(), with a lock held), and waits for that as long as it waits at all. Any thread.
template <class T>
class Running final : public ContextPart {
  public:
    static Running &of(Context &context) {
        static const char key = 0;
        return static_cast<Running &>(context.part(
            &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Running>(c); }));
    }
    explicit Running(Context &context) noexcept : context_(context) {}

    bool add(T &one) noexcept { // false: the context is closing
        const std::lock_guard hold(lock_);
        if (closing_) return false;
        list_.push_back(one);
        return true;
    }
    void remove(T &one) noexcept {
        {
            const std::lock_guard hold(lock_);
            list_.remove(one);
        }
        turn_.post(context_);
    }

    void close() noexcept override {
        const std::lock_guard hold(lock_);
        closing_ = true;
        for (T *one = list_.first(); one != nullptr; one = List<T>::after(*one)) one->context_closes();
    }
    bool drained() noexcept override {
        const std::lock_guard hold(lock_);
        return list_.empty();
    }

  private:
    void look() noexcept {} // a turn of the loop, after which it asks again
    Context &context_;
    PostedTask<Running, &Running::look> turn_{*this};
    std::mutex lock_; // for what follows
    List<T> list_;
    bool closing_ = false;
};

} // namespace muster
