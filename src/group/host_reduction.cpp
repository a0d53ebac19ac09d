// SPDX-License-Identifier: MIT
#include "group/host_reduction.hpp"

#include "base/uncancelled.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace muster {

namespace {
struct Running { // a function of the host that this thread executes; one may take entries of a queue, which calls
                 // another
    const Group *group;
    const Running *outer;
};
thread_local const Running *innermost = nullptr;
} // namespace

bool HostReduction::is_inside(const Group &group) noexcept {
    for (const Running *one = innermost; one != nullptr; one = one->outer)
        if (one->group == &group) return true;
    return false;
}

Result<Ref<HostReduction>> HostReduction::make(Group &group, Queue &queue, const Reduction &of_host,
                                               Deadline deadline) {
    Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) return Error::from_errno(errno, MUSTER_OK, "an eventfd for a reduction of the host");
    auto made = Ref<HostReduction>::adopt(new HostReduction(group, queue, of_host, deadline, std::move(event)));
    queue.attach(*made, 0);
    if (auto added = queue.add_fd(*made, made->event_.get(), EPOLLIN); !added) return added.error();
    return made;
}

HostReduction::~HostReduction() {
    if (group_->forked()) return;
    queue_->remove_fd(*this, event_.get());
    queue_->detach(*this);
}

Reduction HostReduction::reduction() noexcept {
    Reduction made = of_host_;
    made.user = this;
    made.combine = [](void *self, const void *input, void *inout, uint64_t count) {
        static_cast<HostReduction *>(self)->combine(input, inout, count);
    };
    return made;
}

// The thread that performs the operation. After a failure the group has failed, so the operation ends soon. A cancel
// ends the wait before it fails the group (BegunCall::cancel()), so the group is failed here.
void HostReduction::combine(const void *input, void *inout, uint64_t count) noexcept {
    if (status_ != MUSTER_OK) return;
    {
        const std::lock_guard hold(lock_);
        input_ = input, inout_ = inout, count_ = count;
        state_ = State::posted;
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(event_.get(), &one, sizeof one);
    status_ = group_->wait_unless_failed(deadline_, [&] {
        const std::lock_guard hold(lock_);
        return state_ == State::done;
    });
    if (status_ == MUSTER_OK) return;
    { // A call that has begun uses the arrays to its end, and no cancel shortens that.
        const Uncancelled guard;
        std::unique_lock hold(lock_);
        ended_.wait(hold, [this] { return state_ != State::running; });
        state_ = State::idle;
    }
    // The arrays are not combined: nothing of this operation may reach another member any more.
    if (status_ == MUSTER_TIMEOUT || status_ == MUSTER_AGAIN)
        group_->fail(Error::make(MUSTER_E_ABORTED,
                                 "rank %u: no thread has taken entries of the queue in time, in which the reduction of "
                                 "the host is called",
                                 group_->rank()));
    else
        group_->fail(Error::make(status_, "rank %u: the reduction of the host was not called: %s", group_->rank(),
                                 muster_status_text(status_)));
}

uint32_t HostReduction::on_fd(uint32_t) noexcept {
    uint64_t rung = 0;
    [[maybe_unused]] const ssize_t got = uncancelled::read(event_.get(), &rung, sizeof rung);
    {
        const std::lock_guard hold(lock_);
        if (state_ != State::posted) return 0;
        state_ = State::running;
    }
    const Running here{group_.get(), innermost};
    innermost = &here;
    of_host_.combine(of_host_.user, input_, inout_, count_);
    innermost = here.outer;
    {
        const std::lock_guard hold(lock_);
        state_ = State::done;
    }
    ended_.notify_all();
    group_->notify_change();
    return 0; // no entry of the queue
}

} // namespace muster
