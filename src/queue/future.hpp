// SPDX-License-Identifier: MIT
#pragma once
#include "context/context.hpp"

#include <mutex>
#include <optional>

namespace muster {

// The result of something that ends once: the first completion counts. Part of an object that outlives the call of
// complete(). Any thread.
template <class T>
class Future {
  public:
    bool complete(Context &context, T value) noexcept { // false: it was complete before
        {
            const std::lock_guard hold(lock_);
            if (value_) return false;
            value_.emplace(std::move(value));
        }
        context.notify(signal_);
        return true;
    }
    bool is_complete() noexcept {
        const std::lock_guard hold(lock_);
        return value_.has_value();
    }
    Status wait(Context &context, Deadline &deadline) noexcept { // MUSTER_OK: complete; else as Context::wait()
        return context.wait(signal_, deadline, lock_, [this]() -> Status { return value_ ? MUSTER_OK : MUSTER_AGAIN; });
    }
    T &value() noexcept { return *value_; } // once complete; it does not change any more

  private:
    Signal signal_;
    std::mutex lock_; // guards the value
    std::optional<T> value_;
};

} // namespace muster
