// SPDX-License-Identifier: MIT
#pragma once
// A call of the host on a member: its deadline, and the destination of its result.
#include "queue/operation.hpp"
#include "rendezvous/machine/round.hpp"

namespace muster {

class Member;

// Any thread.
class RendezvousOperation final : public Object, public QueueOperation {
  public:
    RendezvousOperation(Member &member, uint32_t what, std::string_view reason, int64_t timeout_ns);
    const uint32_t what; // a muster_rendezvous_operation value
    const std::string reason;
    const int64_t timeout_ns;

    Error wait(Ref<Round> &out_round);
    bool begin(Queue &queue, uint64_t tag); // false: it has no slot, or is closed
    // The first one counts. Any thread, no lock held.
    void finish(const Error &error, Ref<Round> round = {}) noexcept;
    // Ends it if it is in progress, or is about to begin. Any thread, no lock held.
    void stop(Status why) noexcept;
    double seconds() const noexcept; // since it began

  private:
    ~RendezvousOperation() override;
    void start() noexcept;
    void look_after() noexcept; // loop thread
    void end_early(Ending why) noexcept override;
    Object &owner() noexcept override { return *this; }

    const Ref<Member> member_;
    const int64_t begun_ns_;
    std::atomic<Status> stopped_{MUSTER_OK}; // why; relaxed: ordered by the lock of the member, see stop()
    PostedTask<RendezvousOperation, &RendezvousOperation::look_after> look_after_{*this};
};

} // namespace muster
