// SPDX-License-Identifier: MIT
#pragma once
// What waits inside an object to call it back: a task for the loop, a timer, a wish to hear of the end. As a part of
// the object it needs no memory of its own, so that what must happen at the end can always be asked for.

namespace muster {

// Whoever holds it keeps the object while the call is due.
class Call {
  public:
    virtual bool keep() noexcept = 0; // false: the object is on its way out
    virtual void let_go() noexcept = 0;
    virtual void call() noexcept = 0;

  protected:
    ~Call() = default;
};

// Ties a node (what a queue, a heap or a list holds; a Call) to a member function of the object it is part of. Objects
// without references, parts of a context, stay by themselves.
template <class Owner, void (Owner::*Function)() noexcept, class Node>
class Bound final : public Node {
  public:
    explicit Bound(Owner &owner) noexcept : owner_(owner) {}
    Bound(const Bound &) = delete;
    Bound &operator=(const Bound &) = delete;

  private:
    bool keep() noexcept override {
        if constexpr (requires { owner_.try_retain(); }) return owner_.try_retain();
        return true;
    }
    void let_go() noexcept override {
        if constexpr (requires { owner_.release(); }) owner_.release();
    }
    void call() noexcept override { (owner_.*Function)(); }
    Owner &owner_;
};

} // namespace muster
