// SPDX-License-Identifier: MIT
#pragma once
// A call of the host on a member: its deadline, and the destination of its result.
#include "queue/queue.hpp"
#include "rendezvous/machine/round.hpp"

namespace muster {

class Member;

// Any thread.
class RendezvousOperation final : public Object, private QueueUser {
  public:
    RendezvousOperation(Member &member, uint32_t what, std::string_view reason, int64_t timeout_ns);
    const uint32_t what; // a muster_rendezvous_operation value
    const std::string reason;
    const int64_t timeout_ns;

    Error wait(Ref<Round> &out_round);
    bool begin(Queue &queue, uint64_t tag); // false: it has no slot, or is closed
    // The first one counts. Any thread, no lock held.
    void finish(const Error &error, Ref<Round> round = {}) noexcept;
    double seconds() const noexcept; // since it began

  private:
    ~RendezvousOperation() override;
    void start() noexcept;
    void look_after() noexcept; // loop thread
    void tidy() noexcept;       // loop thread
    void too_late() noexcept;
    void end_operations() noexcept override;
    bool cancel_operation(uint64_t tag) noexcept override;
    Object &owner() noexcept override { return *this; }
    void context_closes() noexcept { finish(Error::make(MUSTER_E_CLOSED, "the context was closed")); }

    const Ref<Member> member_;
    Context &context_;
    const int64_t begun_ns_;
    PostedTask<RendezvousOperation, &RendezvousOperation::look_after> look_after_{*this};
    PostedTask<RendezvousOperation, &RendezvousOperation::tidy> tidy_{*this};
    Timer<RendezvousOperation, &RendezvousOperation::too_late> limit_{*this};
    Closing<RendezvousOperation, &RendezvousOperation::context_closes> closing_{*this};

    Signal signal_;
    std::mutex lock_; // guards the rest
    bool finished_ = false, looked_after_ = false;
    Error error_;
    Ref<Round> round_;
    Ref<Queue> queue_;
    uint64_t tag_ = 0;
};

} // namespace muster
