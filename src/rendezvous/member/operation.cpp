// SPDX-License-Identifier: MIT
#include "rendezvous/member/operation.hpp"

#include "context/host_call.hpp"
#include "rendezvous/member/member.hpp"

namespace muster {

RendezvousOperation::RendezvousOperation(Member &member, uint32_t kind, std::string_view why, int64_t timeout)
    : QueueOperation(member.context(), MUSTER_DONE_RENDEZVOUS), what(kind), reason(why), timeout_ns(timeout),
      member_(&member), begun_ns_(now_ns()) {}

RendezvousOperation::~RendezvousOperation() = default;

double RendezvousOperation::seconds() const noexcept {
    return static_cast<double>(now_ns() - begun_ns_) * 1e-9;
}

void RendezvousOperation::start() noexcept {
    if (!member_->enlist(*this)) return finish(Error::from_status(MUSTER_E_NOMEM));
    member_->start(Ref<RendezvousOperation>(this));
    if (const Status why = stopped_.load(std::memory_order_relaxed); why != MUSTER_OK) member_->stop(*this, why);
    if (!look_after_.post(member_->context())) finish(Error::make(MUSTER_E_CLOSED, "the context is closed"));
}

// Member::start() and Member::stop() take the member's lock. If this stop took it first, it found nothing to stop, and
// start() above sees the value that was stored before; else the operation has begun, and ends here.
void RendezvousOperation::stop(Status why) noexcept {
    const Ref<RendezvousOperation> self(this);
    stopped_.store(why, std::memory_order_relaxed);
    member_->stop(*this, why);
}

Error RendezvousOperation::wait(Ref<Round> &out_round) {
    start();
    Deadline endless(-1); // its own is kept on the loop, as of those that are begun
    Outcome outcome = QueueOperation::wait(endless, [this](Status status) {
        stop(status);
        finish(Error::make(status, "%s", HostCall::why_ended(status)));
    });
    out_round = outcome.take<Round>();
    return outcome.why;
}

bool RendezvousOperation::begin(Queue &queue, uint64_t tag) {
    if (const auto reserved = deliver_to(queue, tag); !reserved || reserved.status() != MUSTER_OK) return false;
    start();
    if (queue.closed()) end_early(Ending::queue_closed); // perhaps before there was an operation to end
    return true;
}

void RendezvousOperation::look_after() noexcept {
    const bool is_limited = timeout_ns >= 0 && timeout_ns <= INT64_MAX - begun_ns_;
    keep_time(is_limited ? begun_ns_ + timeout_ns : INT64_MAX);
}

// A closed queue cannot report a round: it must not be joined.
void RendezvousOperation::end_early(Ending why) noexcept {
    switch (why) {
    case Ending::timeout:
        return stop(MUSTER_TIMEOUT);
    case Ending::cancelled:
        return stop(MUSTER_E_CANCELED);
    case Ending::queue_closed:
        return stop(MUSTER_E_CLOSED);
    case Ending::context_closed:
        return finish(Error::make(MUSTER_E_CLOSED, "the context was closed"));
    }
}

void RendezvousOperation::finish(const Error &error, Ref<Round> round) noexcept {
    const Ref<RendezvousOperation> self(this);
    Outcome outcome{error};
    if (round) {
        member_->context().counters.round_time.observe(now_ns() - begun_ns_);
        outcome.give(std::move(round));
    }
    if (complete(std::move(outcome))) member_->delist(*this);
}

} // namespace muster
