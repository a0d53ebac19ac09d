// SPDX-License-Identifier: MIT
// The host's answers.
#include "queue/refusal.hpp"
#include "serve/served.hpp"

#include <algorithm>

namespace muster {

Requests &Requests::of(Context &context) {
    static const char key = 0;
    return static_cast<Requests &>(
        context.part(&key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<Requests>(); }));
}

Result<void> Requests::serve(Context &context, const std::string &scheme, Ref<Served> transport) {
    if (context.closed()) return Error::make(MUSTER_E_CLOSED, "serve %s://: the context is closed", scheme.c_str());
    if (transport->queue().closed())
        return Error::make(MUSTER_E_CLOSED, "serve %s://: the queue is closed", scheme.c_str());
    if (!transport->reserve_last_word())
        return why_refused(transport->queue(), ("serve " + scheme + "://: the queue of requests").c_str());
    struct Reserved {
        Served *transport;
        ~Reserved() {
            if (transport != nullptr) transport->give_back_last_word();
        }
    } reserved{transport.get()};
    std::map<std::string, Ref<Served>> line; // made before anybody can find the scheme
    line.emplace(scheme, transport);
    const std::lock_guard hold(lock_);
    if (Result<void> added = Registry::of(context).add(scheme, Ref<Transport>(transport)); !added) return added;
    transport->queue().set_server(*this);
    served_.insert(line.extract(line.begin()));
    reserved.transport = nullptr;
    transport->use(); // the end of the context is its end, too, also if nobody ever dials
    return {};
}

Result<void> Requests::withdraw(const std::string &scheme) {
    ServedLine gone;
    {
        const std::lock_guard hold(lock_);
        gone = served_.extract(scheme);
    }
    if (!gone)
        return Error::make(MUSTER_E_NOT_FOUND, "withdraw %s://: the host serves no such transport", scheme.c_str());
    withdraw(std::move(gone));
    return {};
}

void Requests::withdraw(ServedLine line) noexcept {
    Served &transport = *line.mapped();
    Registry::of(transport.context()).remove(line.key());
    transport.withdraw_soon();
}

void Requests::queue_released(Queue &queue) noexcept {
    for (;;) {
        ServedLine gone;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(served_.begin(), served_.end(),
                                            [&](const auto &line) { return &line.second->queue() == &queue; });
            if (found == served_.end()) return;
            gone = served_.extract(found);
        }
        withdraw(std::move(gone));
    }
}

// A copy of an open request of this queue.
Result<Requests::Request> Requests::find(Queue &queue, uint64_t id, bool open) {
    const auto found = requests_.find(id);
    if (found == requests_.end() || &found->second.transport->queue() != &queue)
        return Error::make(MUSTER_E_STALE, "request %llu is over, or never was", static_cast<unsigned long long>(id));
    if (open && found->second.state != State::waiting)
        return Error::make(MUSTER_E_STALE, "request %llu was answered", static_cast<unsigned long long>(id));
    return found->second;
}

Result<void> Requests::address(Queue &queue, uint64_t id, std::string &out) {
    const std::lock_guard hold(lock_);
    Result<Request> request = find(queue, id, true);
    if (!request) return request.error();
    out = request->listener ? request->listener->wanted().text : request->pump->wanted();
    return {};
}

Result<Ref<Stream>> Requests::stream(Queue &queue, uint64_t id) {
    Context &context = queue.context();
    if (context.closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    Ref<Pump> pump;
    {
        const std::lock_guard hold(lock_);
        Result<Request> request = find(queue, id, true);
        if (!request) return request.error();
        if (!request->pump)
            return Error::make(MUSTER_E_ARG, "request %llu asks to listen", static_cast<unsigned long long>(id));
        pump = request->pump;
    }
    const Ref<Duplex> duplex = Duplex::make_private(context.settings.window_bytes);
    Ref<Stream> end = pump->make_end(duplex);
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second.state != State::waiting)
        return Error::make(MUSTER_E_STALE, "request %llu is over", static_cast<unsigned long long>(id));
    pump->attach_later(duplex);
    found->second.state = State::answered;
    return end;
}

Result<void> Requests::listening(Queue &queue, uint64_t id, std::string_view address) {
    Ref<ServedListener> listener;
    std::string text(address);
    {
        const std::lock_guard hold(lock_);
        Result<Request> request = find(queue, id, true);
        if (!request) return request.error();
        if (!request->listener)
            return Error::make(MUSTER_E_ARG, "request %llu asks to connect", static_cast<unsigned long long>(id));
        if (!address.empty()) {
            const Result<Address> parsed = parse_address(address);
            if (!parsed) return parsed.error();
            const std::string &wanted = request->listener->wanted().text;
            if (wanted.compare(0, address.find("://"), address, 0, address.find("://")) != 0)
                return Error::make(MUSTER_E_ADDRESS, "address %.*s is of another scheme than %s",
                                   static_cast<int>(std::min<size_t>(address.size(), 100)), address.data(),
                                   wanted.c_str());
        }
        requests_.find(id)->second.state = State::answered;
        listener = request->listener;
    }
    listener->answer(std::move(text)); // wakes a thread that waits in listen: not under the lock
    return {};
}

Result<void> Requests::fail(Queue &queue, uint64_t id, const Error &why) {
    Request request;
    {
        const std::lock_guard hold(lock_);
        Result<Request> found = find(queue, id, true);
        if (!found) return found.error();
        request = *found;
        requests_.find(id)->second.state = State::answered;
    }
    const Ref<Served> transport = request.transport;
    if (request.listener) {
        request.listener->fail(
            Error::make(why.status, "listen %s: %s", request.listener->wanted().full.c_str(), why.message));
        transport->unused(id);
    } else {
        transport->unused(id);
        request.pump->fail_later(why);
    }
    return {};
}

Result<Ref<Stream>> Requests::incoming(Queue &queue, uint64_t listen_id, std::string_view peer, uint64_t &out_id) {
    Context &context = queue.context();
    if (context.closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    Request listening;
    {
        const std::lock_guard hold(lock_);
        Result<Request> request = find(queue, listen_id, false);
        if (!request) return request.error();
        if (!request->listener || request->state != State::answered)
            return Error::make(MUSTER_E_ARG, "request %llu is no listener", static_cast<unsigned long long>(listen_id));
        listening = *request;
    }
    ServedListener &listener = *listening.listener;
    if (!listener.admit_one())
        return Error::make(MUSTER_E_LIMIT, "too many connections that have not proved the secret");
    struct Admitted {
        ServedListener *listener;
        ~Admitted() {
            if (listener != nullptr) listener->proved_one();
        }
    } admitted{&listener};
    if (!queue.reserve()) return why_refused(queue, "the queue of requests");
    RequestMade made(*listening.transport, 1);
    SessionConfig config;
    config.auth = listener.wanted().auth;
    config.seal = listener.wanted().seal;
    config.peer = peer.empty() ? listener.address() : std::string(peer);
    Ref<Pump> pump;
    out_id = made.enter([&](Request &request, uint64_t number) {
        request.state = State::answered;
        pump = make_ref<Pump>(*listening.transport, number, listening.listener, std::string(), std::move(config));
        request.pump = pump;
    });
    if (out_id == 0) return Error::make(MUSTER_E_CLOSED, "the transport was taken back");
    admitted.listener = nullptr; // the pump's now
    const Ref<Duplex> duplex = Duplex::make_private(context.settings.window_bytes);
    Ref<Stream> end = pump->make_end(duplex);
    made.keep();
    pump->attach_later(duplex);
    return end;
}

} // namespace muster
