// SPDX-License-Identifier: MIT
#pragma once
#include "base/list.hpp"
#include "context/task.hpp"

#include <mutex>

namespace muster {

// The objects of one type in a context that have a thread of their own which still runs. A context that closes notifies
// each (T::context_closes(), with a lock held), and is drained once all have been removed. Any thread.
template <class T>
class ThreadedObjects final : public ContextPart {
  public:
    static ThreadedObjects &of(Context &context) {
        static const char key = 0;
        return static_cast<ThreadedObjects &>(context.part(
            &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<ThreadedObjects>(c); }));
    }
    explicit ThreadedObjects(Context &context) noexcept : context_(context) {}

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
    void look() noexcept {} // makes a turn of the loop, after which drained() is called again
    Context &context_;
    PostedTask<ThreadedObjects, &ThreadedObjects::look> turn_{*this};
    std::mutex lock_; // for the members below
    List<T> list_;
    bool closing_ = false;
};

} // namespace muster
