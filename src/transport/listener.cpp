// SPDX-License-Identifier: MIT
#include "transport/listener.hpp"

#include "transport/hub.hpp"

namespace muster {

ListenerCore::~ListenerCore() {
    if (queue_) queue_->detach(*this);
}

bool ListenerCore::reserve() noexcept {
    const std::lock_guard hold(lock_);
    if (closed_ || failed_.status < 0 || waiting_.size() + reserved_ >= backlog_) return false;
    reserved_++;
    return true;
}

void ListenerCore::unreserve() noexcept {
    const std::lock_guard hold(lock_);
    reserved_--;
}

// Tells waiters and the watch; the lock is given back first.
void ListenerCore::changed(std::unique_lock<std::mutex> &hold) noexcept {
    const Ref<Queue> told = std::exchange(armed_, false) ? queue_ : Ref<Queue>();
    hold.unlock();
    context_->notify(signal_);
    if (told) told->raise(*this, MUSTER_STREAM_READABLE);
}

void ListenerCore::offer(Ref<Stream> stream) noexcept {
    std::unique_lock hold(lock_);
    reserved_--;
    if (closed_) {
        hold.unlock(); // the stream closes without the lock
        return;
    }
    waiting_.push_back(std::move(stream));
    changed(hold);
}

void ListenerCore::fail(const Error &why) noexcept {
    std::unique_lock hold(lock_);
    if (failed_.status < 0 || closed_) return;
    failed_ = why;
    changed(hold);
}

Status ListenerCore::accept(Deadline &deadline, Ref<Stream> &out, Error &why) noexcept {
    uint32_t cancels = 0;
    for (bool first = true;; first = false) {
        const uint32_t seen = signal_.seen();
        {
            const std::lock_guard hold(lock_);
            if (first) cancels = cancels_;
            if (!waiting_.empty()) {
                out = std::move(waiting_.front());
                waiting_.pop_front();
                return MUSTER_OK;
            }
            if (closed_) {
                why = Error::make(MUSTER_E_CLOSED, "accept: the listener is closed");
                return why.status;
            }
            if (failed_.status < 0) {
                why = failed_;
                return why.status;
            }
            if (cancels != cancels_) {
                why = Error::make(MUSTER_E_CANCELED, "accept: cancelled");
                return why.status;
            }
            if (deadline.look_once()) {
                armed_ = true;
                return MUSTER_AGAIN;
            }
        }
        const Status status = context_->sleep(signal_, seen, deadline);
        if (status == MUSTER_TIMEOUT) deadline = Deadline(0);
        if (status < 0) {
            why = Error::from_status(status);
            return status;
        }
        // The time is over: look a last time, and say so if there is still nothing.
        if (status == MUSTER_TIMEOUT) {
            const std::lock_guard hold(lock_);
            if (waiting_.empty() && !closed_ && failed_.status >= 0 && cancels == cancels_) return MUSTER_TIMEOUT;
        }
    }
}

Status ListenerCore::watch(Queue *queue, uint64_t tag) {
    Ref<Queue> old;
    {
        const std::lock_guard hold(lock_);
        if (closed_ && queue != nullptr) return MUSTER_E_CLOSED;
        old = std::move(queue_);
        queue_ = Ref<Queue>();
        armed_ = false;
    }
    if (old) old->detach(*this);
    if (queue == nullptr) return MUSTER_OK;
    queue->attach(*this, tag);
    std::unique_lock hold(lock_);
    queue_ = Ref<Queue>(queue);
    armed_ = true;
    if (!waiting_.empty() || closed_ || failed_.status < 0) changed(hold);
    return MUSTER_OK;
}

void ListenerCore::cancel() noexcept {
    std::unique_lock hold(lock_);
    cancels_++;
    hold.unlock();
    context_->notify(signal_);
}

void ListenerCore::close() noexcept {
    std::deque<Ref<Stream>> refused; // closed without the lock
    std::unique_lock hold(lock_);
    closed_ = true;
    refused.swap(waiting_);
    changed(hold);
}

bool ListenerCore::closed() noexcept {
    const std::lock_guard hold(lock_);
    return closed_;
}

// ---- the handle -----------------------------------------------------------------------------------------------------

Result<Ref<Listener>> Listener::open(Context &context, std::string_view text, const TransportOptions &options) {
    auto address = parse_address(text);
    if (!address) return address.error();
    auto transport = Registry::of(context).find(address->scheme);
    if (!transport) return transport.error();
    Hub &hub = Hub::of(context);
    if (auto usable = hub.usable(); !usable) return usable.error();
    auto core = make_ref<ListenerCore>(context, options.backlog);
    auto listener = (*transport)->listen(*address, options, core);
    if (!listener) return listener.error();
    auto opened = make_ref<Listener>(std::move(core), std::move(*transport), std::move(*listener));
    const auto end = [core = opened->core_, listener = opened->listener_] {
        core->close();
        listener->close();
    };
    if (!context.post([&hub, end, id = opened->closing_id_] { *id = hub.on_closing(end); })) {
        end();
        return Error::make(MUSTER_E_CLOSED, "listen at %.*s: the context is closed", static_cast<int>(text.size()),
                           text.data());
    }
    return opened;
}

Status Listener::accept(Deadline &deadline, Ref<Stream> &out, Error &why) {
    if (!deadline.look_once() && transport_->would_deadlock()) {
        why = Error::make(MUSTER_E_WOULD_DEADLOCK, "accept: this thread has to serve the transport it would wait for");
        return why.status;
    }
    return core_->accept(deadline, out, why);
}

void Listener::leave() noexcept {
    context().post([&hub = Hub::of(context()), id = closing_id_] { hub.forget_closing(*id); });
}

void Listener::close() noexcept {
    core_->close();
    listener_->close();
    leave();
}

void Listener::last_reference_gone() noexcept {
    if (context().forked()) return;
    // A finalizer must not wait while a socket is let go of.
    const Ref<Context> context(&core_->context());
    core_->watch(nullptr, 0);
    const auto end = [core = core_, listener = listener_] {
        core->close();
        listener->close();
    };
    if (!context->post(end)) end();
    leave();
    delete this;
}

} // namespace muster
