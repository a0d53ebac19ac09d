// SPDX-License-Identifier: MIT
#pragma once
// Tasks that are part of an object.
#include "base/bound.hpp"
#include "context/context.hpp"

namespace muster {

// Posting it needs no memory, and posts merge until it runs. Any thread.
class ErrandNode : private Posted, private Call {
  public:
    // False: it will not run, since the engine has stopped (or the object is on its way out).
    bool post(Context &context) noexcept {
        // acq_rel: pairs with run_posted(); what was done before a post is seen by the run that follows it.
        if (posted_.exchange(true, std::memory_order_acq_rel)) return true;
        if (keep()) return context.post(static_cast<Posted &>(*this));
        posted_.store(false, std::memory_order_release);
        return false;
    }

  protected:
    ErrandNode() noexcept = default;
    ~ErrandNode() = default;

  private:
    void run_posted() noexcept override {
        posted_.exchange(false, std::memory_order_acq_rel);
        call();
        let_go();
    }
    void refuse_posted() noexcept override {
        posted_.store(false, std::memory_order_release);
        let_go();
    }
    std::atomic<bool> posted_{false};
};

// Errand<Link, &Link::turn> turn_{*this};
template <class Owner, void (Owner::*Run)() noexcept>
using Errand = Bound<Owner, Run, ErrandNode>;

} // namespace muster
