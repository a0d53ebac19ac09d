// SPDX-License-Identifier: MIT
#pragma once
// Tasks: work that any thread posts to an event loop, to be run on the thread that runs the loop.
#include "base/bound.hpp"

#include <atomic>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace muster {

// A node of a loop's list of tasks.
struct TaskNode {
    virtual void run_task() noexcept = 0;    // on the loop thread
    virtual void refuse_task() noexcept = 0; // instead, where the loop has ended; any thread
    TaskNode *next = nullptr;                // the loop's

  protected:
    ~TaskNode() = default;
};

// A task that is allocated when it is posted, and deleted after it has run or was refused.
struct Task : TaskNode {
    virtual ~Task() = default;
    virtual void run() noexcept = 0;

  private:
    void run_task() noexcept final {
        run();
        delete this;
    }
    void refuse_task() noexcept final { delete this; }
};

// A task that calls a function object.
template <class F>
requires std::is_invocable_v<F &> std::unique_ptr<Task> make_task(F body) {
    struct FunctionTask final : Task {
        F body;
        explicit FunctionTask(F &&b) : body(std::move(b)) {}
        void run() noexcept override {
            try {
                body();
            } catch (...) { // out of memory; a body that must not be lost catches it itself
            }
        }
    };
    return std::unique_ptr<Task>(new FunctionTask(std::move(body)));
}

// A task that is part of an object: posting it needs no memory, and posts merge until it runs. Any thread.
class PostedTaskNode : private TaskNode, private Call {
  public:
    // `target`: a Context or a Loop. False: the task will not run, because the loop has ended (or the object is being
    // destroyed).
    template <class Target>
    bool post(Target &target) noexcept {
        // acq_rel: pairs with run_task(); everything done before a post is seen by the run that follows it.
        if (posted_.exchange(true, std::memory_order_acq_rel)) return true;
        if (keep()) return target.post(static_cast<TaskNode &>(*this));
        posted_.store(false, std::memory_order_release);
        return false;
    }

  protected:
    PostedTaskNode() noexcept = default;
    ~PostedTaskNode() = default;

  private:
    void run_task() noexcept override {
        posted_.exchange(false, std::memory_order_acq_rel);
        call();
        let_go();
    }
    void refuse_task() noexcept override {
        posted_.store(false, std::memory_order_release);
        let_go();
    }
    std::atomic<bool> posted_{false};
};

// PostedTask<Link, &Link::turn> turn_{*this};
template <class Owner, void (Owner::*Run)() noexcept>
using PostedTask = Bound<Owner, Run, PostedTaskNode>;

} // namespace muster
