// SPDX-License-Identifier: MIT
#include "rendezvous/member/operation.hpp"

#include "context/host_call.hpp"
#include "rendezvous/member/member.hpp"

namespace muster {

RendezvousOperation::RendezvousOperation(Member &member, uint32_t kind, std::string_view why, int64_t timeout)
    : what(kind), reason(why), timeout_ns(timeout), member_(&member), context_(member.context()), begun_ns_(now_ns()) {}

RendezvousOperation::~RendezvousOperation() = default;

double RendezvousOperation::seconds() const noexcept {
    return static_cast<double>(now_ns() - begun_ns_) * 1e-9;
}

void RendezvousOperation::start() noexcept {
    member_->start(Ref<RendezvousOperation>(this)); // first: a thread that stops it finds it begun
    if (!member_->enlist(*this)) return member_->stop(*this, MUSTER_E_NOMEM);
    bool over = false;
    {
        const std::lock_guard hold(lock_);
        over = finished_;
    }
    if (over) return member_->delist(*this);
    if (!look_after_.post(context_)) finish(Error::make(MUSTER_E_CLOSED, "the context is closed"));
}

Error RendezvousOperation::wait(Ref<Round> &out_round) {
    start();
    Deadline endless(-1); // its own is kept on the loop, as of those that are begun
    const auto look = [this] { return Status{finished_ ? MUSTER_OK : MUSTER_AGAIN}; };
    for (Status status; (status = context_.wait(signal_, endless, lock_, look)) != MUSTER_OK;) {
        member_->stop(*this, status);
        finish(Error::make(status, "%s", HostCall::why_ended(status)));
    }
    out_round = std::move(round_);
    return error_;
}

bool RendezvousOperation::begin(Queue &queue, uint64_t tag) {
    {
        const std::lock_guard hold(lock_);
        queue_ = Ref<Queue>(&queue);
        tag_ = tag;
    }
    if (!queue.reserve(this)) return false;
    start();
    if (queue.closed()) end_operations(); // perhaps before there was an operation to end
    return true;
}

// A closed queue cannot report a round: it must not be joined.
void RendezvousOperation::end_operations() noexcept {
    const Ref<RendezvousOperation> self(this);
    member_->stop(*this, MUSTER_E_CLOSED);
}

bool RendezvousOperation::cancel_operation(uint64_t tag) noexcept {
    const Ref<RendezvousOperation> self(this);
    {
        const std::lock_guard hold(lock_);
        if (finished_ || tag != tag_) return false;
    }
    member_->stop(*this, MUSTER_E_CANCELED);
    return true;
}

void RendezvousOperation::look_after() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        looked_after_ = true;
    }
    context_.on_closing(closing_);
    if (context_.closed()) return context_closes(); // perhaps those in the list were notified before
    if (timeout_ns >= 0)
        context_.loop().start_timer(limit_, timeout_ns > INT64_MAX - begun_ns_ ? INT64_MAX : begun_ns_ + timeout_ns);
}

void RendezvousOperation::tidy() noexcept {
    context_.forget_closing(closing_);
    context_.loop().stop_timer(limit_);
}

void RendezvousOperation::too_late() noexcept {
    member_->stop(*this, MUSTER_TIMEOUT);
}

void RendezvousOperation::finish(const Error &error, Ref<Round> round) noexcept {
    const Ref<RendezvousOperation> self(this);
    Ref<Queue> queue;
    bool tidy_up = false;
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        finished_ = true;
        tidy_up = looked_after_;
        queue = std::move(queue_);
        error_ = error;
        round_ = std::move(round);
    }
    member_->delist(*this);
    if (!queue) {
        context_.notify(signal_);
    } else {
        Entry entry;
        entry.completion.kind = MUSTER_DONE_RENDEZVOUS;
        entry.completion.tag = tag_;
        entry.completion.status = error_.status; // no other thread reads it
        entry.error = error_;
        if (round_) {
            entry.completion.object = wrap(round_.get());
            entry.object = std::move(round_);
        }
        queue->complete(std::move(entry), this);
    }
    if (!tidy_up) return;
    if (context_.on_loop())
        tidy();
    else
        tidy_.post(context_);
}

} // namespace muster
