// SPDX-License-Identifier: MIT
#include "transport/dial.hpp"

#include "context/host_call.hpp"

namespace muster {

HostDial::HostDial(Context &context, Ref<Transport> transport, Address address, TransportOptions options,
                   int64_t timeout_ns)
    : QueueOperation(context, MUSTER_DONE_DIAL), context_(&context), hub_(Hub::of(context)),
      transport_(std::move(transport)), address_(std::move(address)), options_(std::move(options)),
      deadline_(timeout_ns) {
    if (!deadline_.endless()) deadline_.at(); // time runs from here
    if (options_.retry_ns > 0) retry_until_ = Deadline(options_.retry_ns).at();
}

Result<Ref<HostDial>> HostDial::make(Context &context, std::string_view text, const TransportOptions &options,
                                     int64_t timeout_ns) {
    auto address = parse_address(text);
    if (!address) return address.error();
    auto transport = Registry::of(context).find(address->scheme);
    if (!transport) return transport.error();
    if (auto usable = Hub::of(context).usable(); !usable) return usable.error();
    return make_ref<HostDial>(context, std::move(*transport), std::move(*address), options, timeout_ns);
}

void HostDial::start() noexcept {
    keep_time(deadline_.endless() ? INT64_MAX : deadline_.at());
    attempt();
}

void HostDial::attempt() noexcept {
    if (is_over()) return;
    if (auto usable = hub_.usable(); !usable) return finish(usable.error());
    try {
        transport_->dial(address_, options_, Ref<Dial>(this));
    } catch (const std::bad_alloc &) {
        end(MUSTER_E_NOMEM, "out of memory");
    }
}

// While there is no listener at the address yet.
bool HostDial::retry_later(const Error &why) noexcept {
    return why.status == MUSTER_E_UNREACHABLE && retry_until_ != 0 && attempt_until(retry_until_);
}

void HostDial::busy(const Error &why) noexcept {
    if (busy_until_ == 0) busy_until_ = now_ns() + context_->settings.handshake_timeout_ns;
    if (!attempt_until(busy_until_)) finish(why);
}

// Another attempt after a pause that grows. False: the time for that is over.
bool HostDial::attempt_until(int64_t until_ns) noexcept {
    const int64_t now = now_ns();
    const int64_t pause = back_off_.next_ns();
    if (now + pause > until_ns) return false;
    Ref<Attempt> over; // destroyed without the lock
    if (!unless_over([&] { over = std::move(attempt_); })) return true;
    retry_at_ = now + pause;
    return pause_.post(*context_);
}

void HostDial::pause() noexcept {
    hub_.start_timer(retry_, retry_at_);
}

void HostDial::done(Result<Ref<Stream>> result) noexcept {
    if (!result && retry_later(result.error())) return;
    finish(std::move(result));
}

void HostDial::finish(Result<Ref<Stream>> result) noexcept {
    const Ref<HostDial> self(this);
    Outcome outcome;
    if (result)
        outcome.give(std::move(*result));
    else
        outcome.why = result.error();
    if (!complete(std::move(outcome))) return; // too late: a stream closes with the outcome
    Ref<Attempt> over;                         // destroyed without the lock
    const std::lock_guard hold(lock_);
    over = std::move(attempt_);
}

void HostDial::end_early(Ending why) noexcept {
    switch (why) {
    case Ending::timeout:
        return end(MUSTER_TIMEOUT, "not in time");
    case Ending::cancelled:
        return end(MUSTER_E_CANCELED, "cancelled");
    case Ending::queue_closed:
        return end(MUSTER_E_CLOSED, "the queue was closed");
    case Ending::context_closed:
        return end(MUSTER_E_CANCELED, "the context was closed");
    }
}

void HostDial::end(Status status, const char *why) noexcept {
    Ref<Attempt> attempt;
    if (!unless_over([&] { attempt = std::move(attempt_); })) return;
    finish(Error::make(status, "dial %s: %s", address_.text.c_str(), why));
    if (attempt) attempt->stop();
}

bool HostDial::stop_by(Ref<Attempt> attempt) noexcept {
    return unless_over([&] { attempt_ = std::move(attempt); });
}

Result<Ref<Stream>> HostDial::wait() {
    if (transport_->would_deadlock())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "dial %s: this thread has to serve the transport it would wait for",
                           address_.text.c_str());
    if (!start_.post(*context_))
        return Error::make(MUSTER_E_CLOSED, "dial %s: the context is closed", address_.text.c_str());
    // Also without a timeout it drives an external context once.
    Deadline limit = deadline_.endless() ? deadline_ : Deadline::until(deadline_.at());
    Outcome outcome = QueueOperation::wait(
        limit, [this](Status status) { end(status, status < 0 ? HostCall::why_ended(status) : "not in time"); });
    if (outcome.why.status != MUSTER_OK) return outcome.why;
    return outcome.take<Stream>();
}

Result<void> HostDial::begin(Queue &queue, uint64_t tag) {
    auto reserved = deliver_to(queue, tag);
    if (!reserved) return Error::make(reserved.status(), "dial %s: the queue is closed", address_.text.c_str());
    if (reserved.status() != MUSTER_OK || start_.post(*context_)) return reserved;
    withdraw();
    return Error::make(MUSTER_E_CLOSED, "dial %s: the context is closed", address_.text.c_str());
}

} // namespace muster
