// SPDX-License-Identifier: MIT
#include "transport/listener.hpp"

#include "context/host_call.hpp"

namespace muster {

ListenerCore::~ListenerCore() {
    if (queue_) queue_->detach(*this);
}

bool ListenerCore::reserve() {
    const std::lock_guard hold(lock_);
    if (closed_ || failed_.status < 0 || waiting_.size() + reserved_.size() >= backlog_) return false;
    reserved_.emplace_back();
    return true;
}

void ListenerCore::unreserve() noexcept {
    const std::lock_guard hold(lock_);
    reserved_.pop_back();
}

// Notifies waiters and the watch, after it has released the lock.
void ListenerCore::changed(std::unique_lock<std::mutex> &hold) noexcept {
    const Ref<Queue> told = std::exchange(armed_, false) ? queue_ : Ref<Queue>();
    hold.unlock();
    context_->notify(signal_);
    if (told) told->raise(*this, MUSTER_STREAM_READABLE);
}

void ListenerCore::offer(Ref<Stream> stream) noexcept {
    std::unique_lock hold(lock_);
    if (closed_) {
        reserved_.pop_back();
        hold.unlock(); // the stream closes without the lock
        return;
    }
    reserved_.back() = std::move(stream);
    waiting_.splice(waiting_.end(), reserved_, std::prev(reserved_.end()));
    changed(hold);
}

void ListenerCore::fail(const Error &why) noexcept {
    std::unique_lock hold(lock_);
    if (failed_.status < 0 || closed_) return;
    failed_ = why;
    changed(hold);
}

void ListenerCore::set_opening() noexcept {
    const std::lock_guard hold(lock_);
    opening_ = true;
}

void ListenerCore::opened() noexcept {
    std::unique_lock hold(lock_);
    opening_ = false;
    changed(hold);
}

Status ListenerCore::await_opened(Deadline &deadline, Error &why) noexcept {
    const Status status = context_->wait(signal_, deadline, lock_, [&]() -> Status {
        if (failed_.status < 0) why = failed_;
        if (closed_ && failed_.status >= 0) why = Error::make(MUSTER_E_CLOSED, "listen: the listener is closed");
        if (why.status < 0) return why.status;
        if (!opening_) return MUSTER_OK;
        armed_ = armed_ || deadline.look_once();
        return MUSTER_AGAIN;
    });
    if (status == MUSTER_TIMEOUT)
        why = Error::make(MUSTER_TIMEOUT, "the host that serves the transport did not answer in time");
    else if (status < 0 && why.status >= 0)
        why = Error::make(status, "listen: %s", HostCall::why_ended(status));
    return status;
}

Status ListenerCore::accept(Deadline &deadline, Ref<Stream> &out, Error &why) noexcept {
    bool first = true;
    uint32_t cancels = 0;
    const auto look = [&]() -> Status {
        if (std::exchange(first, false)) cancels = cancels_;
        if (!waiting_.empty()) {
            out = std::move(waiting_.front());
            waiting_.pop_front();
            return MUSTER_OK;
        }
        if (closed_)
            why = Error::make(MUSTER_E_CLOSED, "accept: the listener is closed");
        else if (failed_.status < 0)
            why = failed_;
        else if (cancels != cancels_)
            why = Error::make(MUSTER_E_CANCELED, "accept: cancelled");
        else
            armed_ = armed_ || deadline.look_once();
        return why.status < 0 ? why.status : Status{MUSTER_AGAIN};
    };
    const Status status = context_->wait(signal_, deadline, lock_, look);
    if (status == MUSTER_TIMEOUT) { // at the deadline: checks a last time
        const std::lock_guard hold(lock_);
        const Status last = look();
        return last == MUSTER_AGAIN ? Status{MUSTER_TIMEOUT} : last;
    }
    if (status < 0 && why.status >= 0) why = Error::make(status, "accept: %s", HostCall::why_ended(status));
    return status;
}

Status ListenerCore::watch(Queue *queue, uint64_t tag) {
    Ref<Queue> old;
    {
        const std::lock_guard hold(lock_);
        if (queue != nullptr && (closed_ || queue->closed())) return MUSTER_E_CLOSED;
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
    std::list<Ref<Stream>> refused; // closed without the lock
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

Result<Ref<Listener>> Listener::open(Context &context, std::string_view text, const TransportOptions &options,
                                     Opening opening) {
    auto address = parse_address(text);
    if (!address) return address.error();
    auto transport = Registry::of(context).find(address->scheme);
    if (!transport) return transport.error();
    Deadline deadline(options.listen_timeout_ns);
    if (opening == Opening::awaited && (*transport)->would_deadlock())
        return Error::make(MUSTER_E_WOULD_DEADLOCK,
                           "listen at %.*s: this thread has to serve the transport it would wait for",
                           static_cast<int>(text.size()), text.data());
    // Everything that may fail if memory runs out comes before the socket.
    auto open = make_ref<OpenListener>(context, options);
    auto opened = make_ref<Listener>(open);
    if (auto usable = open->hub.usable(); !usable) return usable.error();
    auto listener = (*transport)->listen(*address, options, open->core);
    if (!listener) return listener.error();
    open->transport = std::move(*transport);
    // Options that both sides have to give; for the others one side is enough.
    if (address->option("auth") == "none") open->options = "auth=none";
    if (address->option("seal") == "no") open->options.append(open->options.empty() ? "" : "&").append("seal=no");
    open->listener = std::move(*listener);
    Error why;
    if (!open->enter()) {
        why = Error::make(MUSTER_E_CLOSED, "listen at %.*s: the context is closed", static_cast<int>(text.size()),
                          text.data());
    } else if (opening == Opening::begun || open->core->await_opened(deadline, why) == MUSTER_OK) {
        return opened;
    }
    open->close();
    return why;
}

std::string Listener::address() {
    std::string text = open_->listener->address();
    if (open_->options.empty()) return text;
    return text.append(text.find('?') == std::string::npos ? "?" : "&").append(open_->options);
}

void OpenListener::close() noexcept {
    end();
    leave_.post(hub.context());
}

void OpenListener::close_soon() noexcept {
    if (!close_.post(hub.context())) end();
}

Status Listener::accept(Deadline &deadline, Ref<Stream> &out, Error &why) noexcept {
    if (!deadline.look_once() && open_->transport->would_deadlock()) {
        why = Error::make(MUSTER_E_WOULD_DEADLOCK, "accept: this thread has to serve the transport it would wait for");
        return why.status;
    }
    return open_->core->accept(deadline, out, why);
}

void Listener::last_reference_gone() noexcept {
    if (context().forked()) return;
    const Ref<Context> context(&open_->core->context());
    if (open_->listener) { // else the host never had it
        open_->core->watch(nullptr, 0);
        open_->close_soon(); // a finalizer must not wait while a socket is closed
    }
    delete this;
}

} // namespace muster
