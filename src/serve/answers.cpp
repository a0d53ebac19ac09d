// SPDX-License-Identifier: MIT
// The host's answers.
#include "serve/transport.hpp"

#include <algorithm>

namespace muster {

namespace {

unsigned long long printed(uint64_t id) noexcept {
    return id;
}

Result<Ref<TransportRequest>> find(Queue &queue, uint64_t id, bool answered = false) {
    return ServedRequests::of(queue.context()).find<TransportRequest>(&queue, id, answered);
}

} // namespace

Result<std::string> ServedTransport::address(Queue &queue, uint64_t id) {
    auto request = find(queue, id);
    if (!request) return request.error();
    return (*request)->pump ? (*request)->pump->requested() : (*request)->listener->requested().text;
}

Result<Ref<Stream>> ServedTransport::answer_stream(Queue &queue, uint64_t id) {
    Context &context = queue.context();
    if (context.closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    auto request = find(queue, id);
    if (!request) return request.error();
    const Ref<Pump> pump = (*request)->pump;
    if (!pump) return Error::make(MUSTER_E_ARG, "request %llu asks to listen", printed(id));
    const Ref<Duplex> duplex = Duplex::make_private(context.settings.window_bytes);
    Ref<Stream> end = pump->make_end(duplex);
    ServedRequests &requests = ServedRequests::of(context);
    if (!requests.answer_and_keep(**request)) return requests.stale(id);
    pump->attach_later(duplex);
    return end;
}

Result<void> ServedTransport::answer_listening(Queue &queue, uint64_t id, std::string_view address) {
    auto request = find(queue, id);
    if (!request) return request.error();
    const Ref<ServedListener> listener = (*request)->listener;
    if (!listener) return Error::make(MUSTER_E_ARG, "request %llu asks to connect", printed(id));
    if (!address.empty()) {
        const Result<Address> parsed = parse_address(address);
        if (!parsed) return parsed.error();
        const std::string &requested = listener->requested().text;
        if (requested.compare(0, address.find("://"), address, 0, address.find("://")) != 0)
            return Error::make(MUSTER_E_ADDRESS, "address %.*s is of another scheme than %s",
                               static_cast<int>(std::min<size_t>(address.size(), 100)), address.data(),
                               requested.c_str());
    }
    std::string text(address);
    ServedRequests &requests = ServedRequests::of(queue.context());
    if (!requests.answer_and_keep(**request)) return requests.stale(id);
    listener->answer(std::move(text));
    return {};
}

Result<void> ServedTransport::fail(Queue &queue, uint64_t id, const Error &why) {
    auto request = find(queue, id);
    if (!request) return request.error();
    ServedRequests &requests = ServedRequests::of(queue.context());
    if (!requests.answer(**request)) return requests.stale(id);
    if (const Ref<Pump> &pump = (*request)->pump) {
        pump->fail_later(why);
    } else {
        ServedListener &listener = *(*request)->listener;
        listener.fail(Error::make(why.status, "listen %s: %s", listener.requested().full.c_str(), why.message));
    }
    return {};
}

Result<Ref<Stream>> ServedTransport::accept(Queue &queue, uint64_t listen_id, std::string_view peer, uint64_t &out_id) {
    Context &context = queue.context();
    if (context.closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    auto listening = find(queue, listen_id, true);
    if ((!listening && find(queue, listen_id)) || (listening && !(*listening)->listener))
        return Error::make(MUSTER_E_ARG, "request %llu is no listener", printed(listen_id));
    if (!listening) return listening.error();
    ServedTransport &transport = (*listening)->transport();
    ServedListener &listener = *(*listening)->listener;
    SessionConfig config;
    config.auth = listener.requested().auth;
    config.seal = listener.requested().seal;
    config.peer = peer.empty() ? listener.address() : std::string(peer);
    const auto request = make_ref<TransportRequest>(transport, MUSTER_REQUEST_OPEN);
    if (!listener.admit_one())
        return Error::make(MUSTER_E_LIMIT, "too many connections that have not proved the secret");
    struct Unfinished {
        ServedListener *listener;
        Ref<Pump> pump; // counts as admitted; it and its session hold each other until the session ends
        Error why = Error::from_status(MUSTER_E_NOMEM);
        ~Unfinished() {
            if (pump)
                pump->fail_later(why);
            else if (listener != nullptr)
                listener->proved_one();
        }
    } unfinished{&listener, {}};
    const auto pump =
        make_ref<Pump>(transport, request->id(), (*listening)->listener, std::string(), std::move(config));
    request->pump = unfinished.pump = pump;
    const Ref<Duplex> duplex = Duplex::make_private(context.settings.window_bytes);
    Ref<Stream> end = pump->make_end(duplex);
    if (auto entered = transport.requests().enter(*request); !entered) return unfinished.why = entered.error();
    unfinished.listener = nullptr;
    unfinished.pump.reset();
    out_id = request->id();
    pump->attach_later(duplex);
    return end;
}

} // namespace muster
