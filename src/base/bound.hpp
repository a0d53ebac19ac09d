// SPDX-License-Identifier: MIT
#pragma once
// Nodes inside an object by which it is called back: a task for the loop, a timer, a notification of the end. As a part
// of the object a node needs no memory of its own, so that the actions at the end can always be requested.

namespace muster {

// Keeps the object alive while the call is due.
class Call {
  public:
    virtual bool keep() noexcept = 0; // false: the object is being destroyed
    virtual void let_go() noexcept = 0;
    virtual void call() noexcept = 0;

  protected:
    ~Call() = default;
};

// Ties a node (of a queue, a heap or a list; a Call) to a member function of the object of which it is a part. Objects
// without references, such as parts of a context, need not be kept alive.
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
