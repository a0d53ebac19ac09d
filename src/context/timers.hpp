// SPDX-License-Identifier: MIT
#pragma once
// Points in time at which objects are called. Timers are parts of these objects, tied together as a pairing heap:
// starting one needs no memory and one comparison, taking one out a logarithm of them.
// Fredman, Sedgewick, Sleator, Tarjan, "The Pairing Heap: A New Form of Self-Adjusting Heap" (1986).
#include "base/bound.hpp"

#include <cstdint>

namespace muster {

// Keeps its object while it is running.
class TimerNode : private Call {
  public:
    bool running() const noexcept { return running_; }

  protected:
    TimerNode() noexcept = default;
    ~TimerNode() = default;

  private:
    friend class Timers;
    int64_t at_ns_ = 0;
    bool running_ = false;
    TimerNode *child_ = nullptr, *sibling_ = nullptr; // first of the nodes below, next of its siblings
    TimerNode **held_by_ = nullptr;                   // the pointer that points to this node
};

// Timer<Link, &Link::finalize> again_{*this};
template <class Owner, void (Owner::*Due)() noexcept>
using Timer = Bound<Owner, Due, TimerNode>;

// One user at a time.
class Timers {
  public:
    bool empty() const noexcept { return root_ == nullptr; }
    int64_t next_ns() const noexcept { return root_->at_ns_; } // unless empty
    // Restarts it if it is running. True: it is the next one.
    bool start(TimerNode &timer, int64_t at_ns) noexcept;
    void stop(TimerNode &timer) noexcept; // nothing happens if it is not running
    void serve(int64_t now_ns) noexcept;  // calls those that are due
    void stop_all() noexcept;

  private:
    static TimerNode *meld(TimerNode *a, TimerNode *b) noexcept;
    static TimerNode *meld_all(TimerNode *first) noexcept;
    void hang(TimerNode *tree) noexcept;
    void take_out(TimerNode &timer) noexcept;
    TimerNode *root_ = nullptr;
};

} // namespace muster
