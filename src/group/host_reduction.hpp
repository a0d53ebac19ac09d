// SPDX-License-Identifier: MIT
#pragma once
// A reduction of the host in an operation that was begun: the operation is performed on a thread of the library, and
// the function of the host is called on the thread that takes entries of the operation's queue.
#include "base/fd.hpp"
#include "group/group.hpp"

#include <condition_variable>

namespace muster {

class HostReduction final : public Object, private Source {
  public:
    // `deadline`: of the operation.
    static Result<Ref<HostReduction>> make(Group &group, Queue &queue, const Reduction &of_host, Deadline deadline);
    // What the operation uses instead: its function hands the arrays over, and waits.
    Reduction reduction() noexcept;
    // OK, unless the function was not called: the result of the operation is of no use then.
    Status status() const noexcept { return status_; } // once the operation is over
    // Is the calling thread inside a function of the host for an operation of this group? The operation does not end
    // before that returns.
    static bool is_inside(const Group &group) noexcept;

  private:
    enum class State { idle, posted, running, done };
    HostReduction(Group &group, Queue &queue, const Reduction &of_host, Deadline deadline, Fd event) noexcept
        : group_(&group), queue_(&queue), of_host_(of_host), deadline_(deadline), event_(std::move(event)) {}
    ~HostReduction() override;
    Object &owner() noexcept override { return *this; }
    uint32_t on_fd(uint32_t epoll_events) noexcept override; // inside muster_queue_next()
    void combine(const void *input, void *inout, uint64_t count) noexcept;

    const Ref<Group> group_;
    const Ref<Queue> queue_;
    const Reduction of_host_;
    Deadline deadline_;
    const Fd event_;                // readable where arrays are to be combined
    std::condition_variable ended_; // a call of the function has ended
    std::mutex lock_;               // guards these; after the lock of the group
    State state_ = State::idle;
    const void *input_ = nullptr;
    void *inout_ = nullptr;
    uint64_t count_ = 0;
    Status status_ = MUSTER_OK; // of the thread that performs the operation
};

} // namespace muster
