// SPDX-License-Identifier: MIT
#include "context/timers.hpp"

#include <utility>

namespace muster {

// Joins two trees: the later root becomes a child of the earlier one; of two equal ones the second does.
TimerNode *Timers::meld(TimerNode *a, TimerNode *b) noexcept {
    if (a == nullptr) return b;
    if (b == nullptr) return a;
    if (b->at_ns_ < a->at_ns_) std::swap(a, b);
    b->sibling_ = a->child_;
    if (b->sibling_ != nullptr) b->sibling_->held_by_ = &b->sibling_;
    a->child_ = b;
    b->held_by_ = &a->child_;
    return a;
}

// Siblings in pairs, then the pairs from the last to the first: that order makes it logarithmic in the long run.
TimerNode *Timers::meld_all(TimerNode *first) noexcept {
    TimerNode *pairs = nullptr;
    while (first != nullptr) {
        TimerNode *const a = first, *const b = a->sibling_;
        first = b != nullptr ? b->sibling_ : nullptr;
        a->sibling_ = nullptr;
        if (b != nullptr) b->sibling_ = nullptr;
        TimerNode *const pair = meld(a, b);
        pair->sibling_ = pairs;
        pairs = pair;
    }
    TimerNode *tree = nullptr;
    while (pairs != nullptr) {
        TimerNode *const pair = pairs;
        pairs = pair->sibling_;
        pair->sibling_ = nullptr;
        tree = meld(tree, pair);
    }
    return tree;
}

void Timers::hang(TimerNode *tree) noexcept {
    root_ = tree;
    if (tree != nullptr) tree->held_by_ = &root_;
}

void Timers::take_out(TimerNode &timer) noexcept {
    *timer.held_by_ = timer.sibling_;
    if (timer.sibling_ != nullptr) timer.sibling_->held_by_ = timer.held_by_;
    timer.sibling_ = nullptr;
    timer.held_by_ = nullptr;
    hang(meld(root_, meld_all(std::exchange(timer.child_, nullptr))));
}

bool Timers::start(TimerNode &timer, int64_t at_ns) noexcept {
    if (timer.running_)
        take_out(timer);
    else if (!timer.keep())
        return false;
    timer.running_ = true;
    timer.at_ns_ = at_ns;
    hang(meld(root_, &timer));
    return root_ == &timer;
}

void Timers::stop(TimerNode &timer) noexcept {
    if (!std::exchange(timer.running_, false)) return;
    take_out(timer);
    timer.let_go();
}

void Timers::serve(int64_t now_ns) noexcept {
    while (root_ != nullptr && root_->at_ns_ <= now_ns) {
        TimerNode &timer = *root_;
        take_out(timer);
        timer.running_ = false;
        timer.call();
        timer.let_go();
    }
}

void Timers::stop_all() noexcept {
    while (root_ != nullptr) stop(*root_);
}

} // namespace muster
