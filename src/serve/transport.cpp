// SPDX-License-Identifier: MIT
#include "serve/transport.hpp"

#include "transport/hub.hpp"

namespace muster {

ServedTransport::ServedTransport(Context &context, const std::string &scheme, Queue &queue, uint32_t flags,
                                 const muster_transport_ops *ops, void *self, uint64_t tag)
    : Provided({.context = context,
                .kind = ServedKind::transport,
                .name = scheme,
                .shown = "transport " + scheme,
                .queue = &queue,
                .tag = tag,
                .self = self,
                .has_callbacks = ops != nullptr,
                .is_on_loop = (flags & MUSTER_TRANSPORT_ANY_THREAD) != 0,
                .callbacks = callbacks_of(ops)}),
      ops_(ops != nullptr ? *ops : muster_transport_ops{}), flags_(flags) {
    Plugins::of(context); // made here, where it may fail
}

// It ends with the context, even if it was never dialled.
Result<void> ServedTransport::publish() {
    if (auto added = Registry::of(context()).add(name(), Ref<Transport>(this)); !added) return added;
    SessionTransport::enter(context(), false);
    return {};
}

void ServedTransport::unpublish() noexcept {
    Registry::of(context()).remove(name());
}

// ---- requests -----------------------------------------------------------------------------------------------------

void ServedTransport::call_for(ServedRequest &request) {
    const auto &what = static_cast<TransportRequest &>(request);
    const std::string &text = what.pump ? what.pump->requested() : what.listener->requested().text;
    (what.pump ? ops_.open : ops_.listen)(self(), request.id(), text.data(), text.size());
}

void ServedTransport::dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) {
    Result<SessionAddress> own = session_address(context(), address);
    if (!own) return dial->done(own.error());
    SessionConfig config;
    config.dialer = true;
    config.auth = own->auth;
    config.seal = own->seal;
    config.peer = own->full;
    const auto request = make_ref<TransportRequest>(*this, MUSTER_REQUEST_OPEN);
    const auto pump =
        make_ref<Pump>(*this, request->id(), Ref<ServedListener>(), std::move(own->text), std::move(config));
    request->pump = pump;
    try {
        pump->session().open({}, options, std::move(dial));
    } catch (const std::bad_alloc &) { // a pump and its session hold each other until the session ends
        pump->fail(Error::make(MUSTER_E_NOMEM, "dial %s: out of memory", own->full.c_str()));
        throw;
    }
    if (auto sent = requests().send(*request); !sent)
        pump->fail(Error::make(sent.error().status, "dial %s: %s", own->full.c_str(), sent.error().message));
}

Result<Ref<TransportListener>> ServedTransport::listen(const Address &address, const TransportOptions &options,
                                                       Ref<ListenerCore> core) {
    Result<SessionAddress> own = session_address(context(), address);
    if (!own) return own.error();
    const char *text = own->full.c_str();
    if ((flags_ & MUSTER_TRANSPORT_NO_LISTEN) != 0 || (has_callbacks() && ops_.listen == nullptr))
        return Error::make(MUSTER_E_UNSUPPORTED, "listen %s: the host's transport cannot listen", text);
    const auto request = make_ref<TransportRequest>(*this, MUSTER_REQUEST_LISTEN);
    request->listener = make_ref<ServedListener>(*this, request->id(), *own, options, std::move(core));
    if (auto sent = requests().send(*request); !sent)
        return Error::make(sent.error().status, "listen %s: %s", text, sent.error().message);
    return Ref<TransportListener>(request->listener);
}

// Connections continue.
void TransportRequest::withdrawn(const Error &why, bool answered) noexcept {
    if (pump) return answered ? void() : pump->fail_later(why);
    listener->fail(why);
    listener->close();
}

// ---- the end of the context ---------------------------------------------------------------------------------------

bool ServedTransport::context_drained() noexcept {
    bool all = true;
    for (uint64_t last = 0;;) {
        const auto request = requests().next<TransportRequest>(last, this);
        if (!request) return all;
        last = request->id();
        if (!request->pump) continue;
        if (request->pump->is_leaving()) {
            request->pump->leave();
            continue;
        }
        request->pump->wind_down();
        all = false;
    }
}

void ServedTransport::context_stops() noexcept {
    requests().withdraw(*this);
    for (uint64_t last = 0;;) {
        const auto request = requests().next<TransportRequest>(last, this);
        if (!request) break;
        last = request->id();
        request->pump->fail(Error::make(MUSTER_E_CLOSED, "the context is closed"));
        requests().end(last); // it may have ended by itself a moment ago
    }
}

// ---- a listener ---------------------------------------------------------------------------------------------------

ServedListener::ServedListener(ServedTransport &transport, uint64_t request, const SessionAddress &address,
                               const TransportOptions &options, Ref<ListenerCore> core)
    : transport_(&transport), request_(request), requested_(address), options_(options), core_(std::move(core)),
      pending_(make_ref<PendingSessions>(transport.context(), core_, address.full)), address_(address.text) {
    core_->set_opening();
}

std::string ServedListener::address() {
    const std::lock_guard hold(lock_);
    return address_;
}

void ServedListener::answer(std::string address) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!address.empty()) address_ = std::move(address);
    }
    core_->opened();
}

SessionListener ServedListener::target() {
    const std::lock_guard hold(lock_);
    if (closed_) return {};
    return {core_, options_.window_bytes, options_.hello};
}

bool ServedListener::admit_one() noexcept {
    if (unproved_.fetch_add(1, std::memory_order_relaxed) < pending_->limit()) return true;
    proved_one();
    return false;
}

void ServedListener::close() noexcept {
    const Ref<ServedListener> alive(this);
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(closed_, true)) return;
    }
    transport_->requests().end(request_);
}

} // namespace muster
