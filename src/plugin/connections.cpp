// SPDX-License-Identifier: MIT
#include "plugin/connections.hpp"

#include "base/boundary.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

// ---- the transport --------------------------------------------------------------------------------------------------

Result<Ref<Connections>> Connections::make(Plugin &plugin, const std::string &scheme, const muster_connections_ops &ops,
                                           void *self) {
    const Result<void> good = check_table(plugin, scheme,
                                          {
                                              {ops.dial != nullptr, "dial"},
                                              {ops.listen != nullptr, "listen"},
                                              {ops.unlisten != nullptr, "unlisten"},
                                              {ops.send != nullptr, "send"},
                                              {ops.resume != nullptr, "resume"},
                                              {ops.close != nullptr, "close"},
                                              {ops.abort != nullptr, "abort"},
                                          },
                                          ops.flags, MUSTER_PLUGIN_LOCAL | MUSTER_PLUGIN_SEALS);
    if (!good) return good.error();
    return Ref<Connections>::adopt(new Connections(plugin, scheme, ops, self));
}

Connections::Connections(Plugin &plugin, std::string scheme, const muster_connections_ops &ops, void *self)
    : PluginTransport(plugin, std::move(scheme), self), ops_(ops) {}

Result<void> Connections::ensure_started() {
    return start_once([this](Error &error) { return ops_.start != nullptr ? ops_.start(self_, &error) : MUSTER_OK; });
}

void Connections::dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) {
    Result<SessionAddress> own = session_address(context_, address);
    if (!own) return dial->done(own.error());
    if (const Result<void> started = ensure_started(); !started) return dial->done(started.error());
    SessionConfig config;
    config.dialer = true;
    config.auth = own->auth;
    config.seal = own->seal;
    config.peer = own->full;
    const Ref<ConnectionLink> link = make_link(std::move(config));
    try { // everything that may fail if memory runs out comes before the connection
        link->session_->open({}, options, std::move(dial));
    } catch (const std::bad_alloc &) {
        link->session_->end_now(Error::make(MUSTER_E_NOMEM, "dial %s: out of memory", own->full.c_str()));
        throw;
    }
    Error error;
    const Status status = timed(plugin_, "dial", [&] {
        return ops_.dial(self_, own->text.data(), own->text.size(), reinterpret_cast<muster_link *>(link.get()),
                         &link->connection_, &error);
    });
    if (status != MUSTER_OK) {
        link->connection_ = nullptr;
        link->session_->lost(plugin_error(plugin_, error, status, "dial", own->full));
    } else if (link->connection_ == nullptr && link->session_) {
        link->session_->lost(Error::make(MUSTER_E_PLUGIN, "dial %s: %s answered MUSTER_OK without a connection",
                                         own->full.c_str(), plugin_.name()));
    }
}

Ref<ConnectionLink> Connections::make_link(SessionConfig config) {
    config.single = true;
    config.local = (ops_.flags & MUSTER_PLUGIN_LOCAL) != 0;
    config.covered = (ops_.flags & MUSTER_PLUGIN_SEALS) != 0;
    links_.emplace_back(); // the place first: once made, a link and its session hold each other
    try {
        links_.back() = make_ref<ConnectionLink>(*this, std::move(config));
    } catch (const std::bad_alloc &) {
        links_.pop_back();
        throw;
    }
    return links_.back();
}

Result<Ref<TransportListener>> Connections::listen(const Address &address, const TransportOptions &options,
                                                   Ref<ListenerCore> core) {
    Result<SessionAddress> own = session_address(context_, address);
    if (!own) return own.error();
    const auto listener = make_ref<ConnectionListener>(*this, *own, options, std::move(core));
    const Result<void> done = run_on_loop(context_, [this, listener]() -> Result<void> {
        if (Result<void> started = ensure_started(); !started) return started;
        const SessionAddress &wanted = listener->wanted_;
        Error error;
        char text[4096];
        uint64_t text_bytes = 0;
        listener->address_.reserve(sizeof text); // nothing after the plug-in listens needs memory
        listeners_.push_back(listener);
        const Status status = timed(plugin_, "listen", [&] {
            return ops_.listen(self_, wanted.text.data(), wanted.text.size(),
                               reinterpret_cast<muster_acceptor *>(listener.get()), &listener->listener_, text,
                               &text_bytes, &error);
        });
        if (status != MUSTER_OK) {
            listeners_.pop_back();
            return plugin_error(plugin_, error, status, "listen", wanted.full);
        }
        if (text_bytes == 0 || text_bytes > sizeof text) {
            listeners_.pop_back();
            timed(plugin_, "unlisten", [&] { return ops_.unlisten(self_, listener->listener_); });
            return Error::make(MUSTER_E_PLUGIN, "listen %s: %s answered with an address of %llu bytes, it has 1 to %zu",
                               wanted.full.c_str(), plugin_.name(), static_cast<unsigned long long>(text_bytes),
                               sizeof text);
        }
        listener->open_ = true;
        listener->address_.assign(text, text_bytes);
        return {};
    });
    if (!done) return done.error();
    return Ref<TransportListener>(listener);
}

void Connections::context_closes() noexcept {
    closing_ = true;
    for (const Ref<ConnectionListener> &listener : std::exchange(listeners_, {})) listener->unlisten();
    for (const Ref<ConnectionLink> &link : links_) link->session_->end_when_idle(); // they leave in their own turns
}

bool Connections::context_drained() noexcept {
    for (const Ref<ConnectionLink> &link : links_) link->session_->wind_down();
    return links_.empty();
}

void Connections::context_stops() noexcept {
    if (state_ == State::stopped) return;
    context_closes();
    while (!links_.empty())
        Ref<ConnectionLink>(links_.front())->session_->end_now(Error::make(MUSTER_E_CLOSED, "the context is closed"));
    state_ = State::stopped;
    if (ops_.stop != nullptr) timed(plugin_, "stop", [&] { return ops_.stop(self_); });
}

// ---- a listener -----------------------------------------------------------------------------------------------------

ConnectionListener::ConnectionListener(Connections &transport, const SessionAddress &address,
                                       const TransportOptions &options, Ref<ListenerCore> core)
    : transport_(&transport), wanted_(address), options_(options), core_(std::move(core)),
      pending_(make_ref<PendingSessions>(transport.context_, core_, wanted_.full)) {}

void ConnectionListener::close() noexcept {
    const Result<void> done = run_on_loop(transport_->context_, [this]() -> Result<void> {
        unlisten();
        return {};
    });
    if (!done) return; // the loop has stopped, and has dropped the task
}

void ConnectionListener::unlisten() noexcept {
    if (!std::exchange(open_, false)) return;
    const Ref<ConnectionListener> alive(this);
    std::erase_if(transport_->listeners_, [this](const auto &listener) { return listener.get() == this; });
    timed(transport_->plugin_, "unlisten", [&] { return transport_->ops_.unlisten(transport_->self_, listener_); });
}

// ---- a connection ---------------------------------------------------------------------------------------------------

ConnectionLink::ConnectionLink(Connections &transport, SessionConfig config)
    : PendingSession(config.peer), transport_(&transport) {
    session_ = make_ref<Session>(transport.context_, *transport.plugin_.plugins().pool, Ref<Channel>(this),
                                 static_cast<SessionOwner &>(*this), std::move(config));
}

Status ConnectionLink::send(const void *data, size_t size, size_t &taken) noexcept {
    const muster_span span{data, size};
    uint64_t bytes = 0;
    const Status status =
        timed(transport_->plugin_, "send", [&] { return transport_->ops_.send(connection_, &span, 1, &bytes); });
    if (status < 0) return status;
    taken = bytes;
    if (bytes < size) blocked_ = true;
    return bytes == size ? MUSTER_OK : status == MUSTER_AGAIN ? MUSTER_AGAIN : MUSTER_E_PLUGIN;
}

void ConnectionLink::resume() noexcept {
    if (connection_ != nullptr)
        timed(transport_->plugin_, "resume", [&] { return transport_->ops_.resume(connection_); });
}

void ConnectionLink::finish() noexcept {
    if (connection_ != nullptr && transport_->ops_.finish != nullptr)
        timed(transport_->plugin_, "finish", [&] { return transport_->ops_.finish(connection_); });
}

void ConnectionLink::proved() noexcept {
    if (connection_ != nullptr && transport_->ops_.authenticated != nullptr)
        timed(transport_->plugin_, "authenticated", [&] { return transport_->ops_.authenticated(connection_); });
}

void ConnectionLink::paired(Ref<SharedSegment> segment, Status status) noexcept {
    segment_ = std::move(segment);
    if (connection_ != nullptr && transport_->ops_.segment_shared != nullptr)
        timed(transport_->plugin_, "segment_shared", [&] {
            return transport_->ops_.segment_shared(connection_, segment_ ? &segment_->table() : nullptr, status);
        });
}

void ConnectionLink::close(bool orderly) noexcept {
    void *connection = std::exchange(connection_, nullptr);
    if (connection == nullptr) return;
    if (orderly)
        timed(transport_->plugin_, "close", [&] { return transport_->ops_.close(connection); });
    else
        timed(transport_->plugin_, "abort", [&] { return transport_->ops_.abort(connection); });
}

void ConnectionLink::session_proved(Session &) {
    if (listener_) listener_->pending_->remove(*this);
}

SessionListener ConnectionLink::session_listener(Session &, std::string_view service) {
    if (!listener_ || !listener_->open_ || !service.empty()) return {};
    return {listener_->core_, listener_->options_.window_bytes, listener_->options_.hello};
}

void ConnectionLink::session_over(Session &, const Error &why) {
    const Ref<ConnectionLink> alive(this);
    if (listener_) listener_->pending_->remove(*this);
    transport_->context_.log(MUSTER_LOG_INFO, "%s", why.message);
    std::erase_if(transport_->links_, [this](const auto &link) { return link.get() == this; });
    session_.reset();
}

// ---- the host table -------------------------------------------------------------------------------------------------

struct ConnectionHost {
    static ConnectionLink &of(muster_link *link) noexcept { return *reinterpret_cast<ConnectionLink *>(link); }

    static Status accepted(muster_acceptor *acceptor, void *connection, const char *peer, uint64_t peer_bytes,
                           muster_link **out_link) {
        auto &listener = *reinterpret_cast<ConnectionListener *>(acceptor);
        Connections &transport = *listener.transport_;
        if (out_link == nullptr || connection == nullptr) return MUSTER_E_ARG;
        if (!listener.open_ || transport.closing_) return MUSTER_E_CLOSED;
        if (listener.pending_->full()) {
            transport.context_.counters.handshakes_failed.fetch_add(1, std::memory_order_relaxed);
            return MUSTER_E_LIMIT;
        }
        return boundary([&]() -> Status {
            SessionConfig config;
            config.auth = listener.wanted_.auth;
            config.seal = listener.wanted_.seal;
            config.peer = peer != nullptr && peer_bytes != 0 ? std::string(peer, std::min<uint64_t>(peer_bytes, 200))
                                                             : listener.address_;
            const Ref<ConnectionLink> link = transport.make_link(std::move(config));
            link->listener_ = Ref<ConnectionListener>(&listener);
            try {
                listener.pending_->add(*link);
            } catch (const std::bad_alloc &) { // a link and its session hold each other until the session ends
                link->session_->end_now(Error::make(MUSTER_E_NOMEM, "%s: out of memory", listener.address_.c_str()));
                throw;
            }
            link->connection_ = connection;
            *out_link = reinterpret_cast<muster_link *>(link.get());
            link->session_->start();
            return MUSTER_OK;
        });
    }

    static void connected(muster_link *link) {
        boundary([&]() -> Status {
            of(link).session_->start();
            return MUSTER_OK;
        });
    }

    static uint64_t deliver(muster_link *link, const void *data, uint64_t size_bytes) {
        return of(link).session_->deliver(data, size_bytes, false);
    }

    static void writable(muster_link *link) {
        of(link).blocked_ = false;
        of(link).session_->writable();
    }

    static void lost(muster_link *link, Status status, int32_t os_errno, const char *text, uint64_t text_bytes) {
        ConnectionLink &self = of(link);
        const bool dialing = self.session_->dialer() && !self.session_->proved();
        Error why;
        if (text != nullptr && text_bytes != 0)
            why = Error::make(status, "%s%s: %.*s", dialing ? "dial " : "", self.session_->peer().c_str(),
                              static_cast<int>(std::min<uint64_t>(text_bytes, 200)), text);
        else
            why = Error::make(status, "%s%s: %s", dialing ? "dial " : "", self.session_->peer().c_str(),
                              muster_status_text(status));
        if (status >= 0) why.status = MUSTER_E_PLUGIN;
        why.os_errno = os_errno;
        self.session_->lost(why);
    }

    static Status pair(muster_link *link, uint64_t size_bytes) { return of(link).session_->pair(size_bytes); }
};

void Connections::fill(muster_host &table) noexcept {
    table.accepted = ConnectionHost::accepted;
    table.connected = ConnectionHost::connected;
    table.deliver = ConnectionHost::deliver;
    table.writable = ConnectionHost::writable;
    table.lost = ConnectionHost::lost;
    table.share_segment = ConnectionHost::pair;
}

} // namespace muster
