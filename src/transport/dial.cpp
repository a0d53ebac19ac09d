// SPDX-License-Identifier: MIT
#include "transport/dial.hpp"

#include "context/host_call.hpp"

namespace muster {

HostDial::HostDial(Context &context, Ref<Transport> transport, Address address, TransportOptions options,
                   int64_t timeout_ns)
    : context_(&context), hub_(Hub::of(context)), transport_(std::move(transport)), address_(std::move(address)),
      options_(std::move(options)), deadline_(timeout_ns), result_(Error()) {
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
    {
        const std::lock_guard hold(lock_);
        if (finished_) return; // cancelled before the loop has begun it
    }
    context_->on_closing(closing_);
    if (!deadline_.endless()) hub_.start_timer(limit_, deadline_.at());
    attempt();
}

void HostDial::attempt() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
    }
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
    {
        const std::lock_guard hold(lock_);
        over = std::move(attempt_);
        if (finished_) return true;
    }
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
    std::unique_lock hold(lock_);
    if (finished_) return; // too late: a stream closes with `result`
    finished_ = true;
    const Ref<Attempt> over = std::move(attempt_); // destroyed without the lock
    Ref<Queue> queue = std::move(queue_);
    const uint64_t tag = tag_;
    if (!queue) {
        result_ = std::move(result);
        hold.unlock();
        context_->notify(signal_);
    } else {
        hold.unlock();
        Entry entry;
        entry.completion.kind = MUSTER_DONE_DIAL;
        entry.completion.tag = tag;
        if (result) {
            entry.completion.object = wrap(result->get());
            entry.object = std::move(*result);
        } else {
            entry.completion.status = result.error().status;
            entry.error = result.error();
        }
        queue->complete(std::move(entry), this);
    }
    if (context_->on_loop())
        tidy();
    else
        tidy_.post(*context_);
}

void HostDial::tidy() noexcept {
    context_->forget_closing(closing_);
    hub_.stop_timer(limit_);
    hub_.stop_timer(retry_);
}

void HostDial::end(Status status, const char *why) noexcept {
    Ref<Attempt> attempt;
    {
        const std::lock_guard hold(lock_);
        if (finished_) return;
        attempt = std::move(attempt_);
    }
    finish(Error::make(status, "dial %s: %s", address_.text.c_str(), why));
    if (attempt) attempt->stop();
}

bool HostDial::stop_by(Ref<Attempt> attempt) noexcept {
    const std::lock_guard hold(lock_);
    if (finished_) return false;
    attempt_ = std::move(attempt);
    return true;
}

Result<Ref<Stream>> HostDial::wait() {
    if (transport_->would_deadlock())
        return Error::make(MUSTER_E_WOULD_DEADLOCK, "dial %s: this thread has to serve the transport it would wait for",
                           address_.text.c_str());
    if (!start_.post(*context_))
        return Error::make(MUSTER_E_CLOSED, "dial %s: the context is closed", address_.text.c_str());
    const auto look = [this] { return Status{finished_ ? MUSTER_OK : MUSTER_AGAIN}; };
    // Also without a timeout it drives an external context once.
    Deadline limit = deadline_.endless() ? deadline_ : Deadline::until(deadline_.at());
    for (Status status; (status = context_->wait(signal_, limit, lock_, look)) != MUSTER_OK;)
        end(status, status < 0 ? HostCall::why_ended(status) : "not in time");
    return std::move(result_);
}

bool HostDial::cancel_operation(uint64_t tag) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (finished_ || tag != tag_) return false;
    }
    end(MUSTER_E_CANCELED, "cancelled");
    return true;
}

Result<void> HostDial::begin(Queue &queue, uint64_t tag) {
    {
        const std::lock_guard hold(lock_);
        queue_ = Ref<Queue>(&queue);
        tag_ = tag;
    }
    if (!queue.reserve(this)) {
        if (queue.closed()) return Error::make(MUSTER_E_CLOSED, "dial %s: the queue is closed", address_.text.c_str());
        return Result<void>::positive(MUSTER_AGAIN);
    }
    if (start_.post(*context_)) return {};
    {
        const std::lock_guard hold(lock_);
        if (finished_) return {}; // the queue has ended it just now
        finished_ = true;
        queue_.reset();
    }
    queue.unreserve(*this);
    return Error::make(MUSTER_E_CLOSED, "dial %s: the context is closed", address_.text.c_str());
}

} // namespace muster
