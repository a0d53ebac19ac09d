// SPDX-License-Identifier: MIT
#include "store/server/server.hpp"

#include <sodium.h>
#include <system_error>

namespace muster {

StoreServer::StoreServer(Context &context, StoreServerSettings settings)
    : context_(&context), hub_(Hub::of(context)), settings_(std::move(settings)), table_(settings_.max_bytes) {
    randombytes_buf(instance_.data(), instance_.size());
}

Result<Ref<StoreServerHandle>> StoreServer::open(Context &context, StoreServerSettings settings) {
    auto address = parse_address(settings.url);
    if (!address) return address.error();
    if (address->scheme != "tcp" && address->scheme != "unix")
        return Error::make(MUSTER_E_UNSUPPORTED, "serve a store at %s: only over tcp and unix", address->text.c_str());
    if (address->scheme == "tcp" && address->port < 0) address->port = store_port;
    if (!settings.pair.standby_of.empty()) {
        auto other = parse_address(settings.pair.standby_of);
        if (!other) return other.error();
        if (other->scheme != "tcp" && other->scheme != "unix")
            return Error::make(MUSTER_E_UNSUPPORTED, "stand by for %s: only over tcp and unix", other->text.c_str());
        if (other->port == 0)
            return Error::make(MUSTER_E_ADDRESS, "stand by for %s: port 0 is not the address of a server",
                               other->text.c_str());
    }
    auto transport = Registry::of(context).find(address->scheme);
    if (!transport) return transport.error();
    std::vector<StoreRequest> initial = std::exchange(settings.initial, {});
    auto handle = make_ref<StoreServerHandle>();
    auto server = make_ref<StoreServer>(context, std::move(settings));
    if (auto usable = server->hub_.usable(); !usable) return usable.error();
    if (auto opened = server->open_journal(); !opened) return opened.error();
    if (!server->starts_serving() || server->mark_.kind != PairMark::none) server->make_pair();
    server->fill(std::move(initial));
    TransportOptions options;
    options.hello = store_hello_server;
    options.window_bytes = context.settings.window_bytes;
    options.taker = server.get();
    auto listener = (*transport)->listen(*address, options, make_ref<ListenerCore>(context, 1));
    if (!listener) return listener.error();
    server->transport_ = std::move(*transport);
    server->listener_ = std::move(*listener);
    try {
        server->address_ = server->listener_->address();
        if (server->journal_)
            server->journal_->start([server = server.get()] { server->journal_moved_.post(*server->context_); },
                                    &server->sync_time_);
    } catch (const std::system_error &failure) {
        server->abandon();
        return Error::from_errno(failure.code().value(), MUSTER_E_NOMEM, "serve a store at %s: a thread for its folder",
                                 address->text.c_str());
    } catch (...) {
        server->abandon();
        throw;
    }
    if (server->enter_.post(context)) {
        context.metrics.add(server->metrics_);
        handle->server_ = std::move(server);
        return handle;
    }
    server->abandon();
    return Error::make(MUSTER_E_CLOSED, "serve a store at %s: the context is closed", address->text.c_str());
}

void StoreServer::fill(std::vector<StoreRequest> requests) {
    struct Initial final : StoreWaiter {
        using StoreWaiter::StoreWaiter;
    };
    for (StoreRequest &request : requests) {
        Initial waiter(std::move(request));
        table_.do_now(waiter);
    }
}

void StoreServer::get_stats(muster_store_server_stats &out) const noexcept {
    const auto read = [](const std::atomic<uint64_t> &figure) { return figure.load(std::memory_order_relaxed); };
    out = {};
    out.clients = read(clients_);
    out.sessions = read(session_count_);
    out.requests = read(requests_);
    out.waiting = read(waiting_);
    out.refused = read(refused_);
    out.keys = read(keys_);
    out.bytes = read(bytes_);
    out.leases = read(lease_count_);
    out.revision = read(revision_);
    out.role = read(role_);
    out.epoch = read(epoch_);
    out.lag = read(lag_);
    out.failed = failed_.load(std::memory_order_relaxed) ? 1 : 0;
}

void StoreServer::write_metrics(MetricsWriter &writer) {
    static constexpr Metric clients{"muster_store_server_clients", Metric::gauge, "Open connections."};
    static constexpr Metric sessions{"muster_store_server_sessions", Metric::gauge,
                                     "Sessions of connected clients, and of disconnected ones that may reconnect."};
    static constexpr Metric requests{"muster_store_server_requests_total", Metric::counter, "Requests."};
    static constexpr Metric waiting{"muster_store_server_waiting_requests", Metric::gauge,
                                    "Requests that wait for a value or an event."};
    static constexpr Metric refused{"muster_store_server_refused_total", Metric::counter,
                                    "Connections that were refused."};
    static constexpr Metric keys{"muster_store_server_keys", Metric::gauge, "Keys in the store."};
    static constexpr Metric bytes{"muster_store_server_bytes", Metric::gauge, "Bytes of keys and values."};
    static constexpr Metric leases{"muster_store_server_leases", Metric::gauge, "Leases in the store."};
    static constexpr Metric revision{"muster_store_server_revision", Metric::counter, "Revision of the last change."};
    static constexpr Metric is_failed{"muster_store_server_failed", Metric::gauge,
                                      "1: the server has stopped by itself because of its folder."};
    static constexpr Metric role{"muster_store_server_role", Metric::gauge,
                                 "A value of muster_store_server_role: 0 serves, 1 paired, 2 halted, 3 standby."};
    static constexpr Metric epoch{"muster_store_server_epoch", Metric::counter, "Times that a server has taken over."};
    static constexpr Metric lag{"muster_store_server_lag", Metric::gauge,
                                "Changes that the standby has not confirmed yet."};
    muster_store_server_stats now;
    get_stats(now);
    const std::string label = metric_label("address", address_);
    const auto add = [&](const Metric &metric, uint64_t value) {
        writer.add(metric, static_cast<double>(value), label);
    };
    add(clients, now.clients);
    add(sessions, now.sessions);
    add(requests, now.requests);
    add(waiting, now.waiting);
    add(refused, now.refused);
    add(keys, now.keys);
    add(bytes, now.bytes);
    add(leases, now.leases);
    add(revision, now.revision);
    add(is_failed, now.failed);
    add(role, now.role);
    add(epoch, now.epoch);
    add(lag, now.lag);
    static constexpr Metric sync_time{"muster_store_server_sync_seconds", Metric::histogram,
                                      "Time of fdatasync() of the journal: until changes are on the disk."};
    if (!settings_.data_dir.empty()) writer.add(sync_time, sync_time_, label);
}

// ---- the end --------------------------------------------------------------------------------------------------------

Status StoreServer::close(Deadline &deadline) noexcept {
    close_listener();
    if (!stop_.post(*context_)) return MUSTER_OK; // the engine has stopped it
    return context_->wait(signal_, deadline, [this] { return over_.load(std::memory_order_seq_cst); });
}

// The listener may have accepted clients already, so the loop thread ends it; its references are released with that.
void StoreServer::abandon() noexcept {
    if (context_->on_loop()) return stop();
    Deadline endless(-1);
    close(endless);
}

// The listener keeps its taker, which is this.
void StoreServer::close_listener() noexcept {
    Ref<TransportListener> listener;
    {
        const std::lock_guard hold(listener_lock_);
        listener = std::move(listener_);
    }
    if (listener) listener->close();
}

void StoreServer::close_soon() noexcept {
    close_listener();
    stop_.post(*context_);
}

void StoreServer::stop() noexcept {
    if (stopped_) return;
    const Ref<StoreServer> self(this);
    stopped_ = true;
    close_listener();
    context_->forget_closing(closing_);
    hub_.stop_timer(lease_timer_);
    const bool goes_on = journal_ || (pair_ && pair_->roles().role() != PairRole::alone);
    if (pair_) pair_->stop();
    while (StoreConnection *const connection = connections_.first()) {
        try {
            put_record(connection->out(), {0, StoreRecord::bye, goes_on ? uint8_t{0} : store_bye_for_good, 0});
        } catch (const std::bad_alloc &) { // then the end of the connection shows it
        }
        connection->send_all();
        if (!connection->over()) connection->shut("");
    }
    while (!sessions_.empty()) forget(*sessions_.begin()->second);
    journal_.reset(); // writes the rest
    over_.store(true, std::memory_order_seq_cst);
    context_->notify(signal_);
}

// The sessions of the data folder wait for their clients.
void StoreServer::enter() noexcept {
    context_->on_closing(closing_);
    if (context_->closed()) return stop();
    if (pair_)
        pair_->start();
    else
        begin_serving();
}

// ---- clients --------------------------------------------------------------------------------------------------------

bool StoreServer::admit() noexcept {
    if (!stopped_ && connection_count_ < settings_.max_clients) return true;
    count_refused();
    return false;
}

void StoreServer::take(ProvedSocket socket) noexcept {
    if (stopped_ || connection_count_ >= settings_.max_clients) return;
    if (socket.agreed.hello == store_hello_pair) {
        try {
            if (!pair_) make_pair(), pair_->start();
        } catch (const std::bad_alloc &) {
            return;
        }
        return pair_->take(std::move(socket));
    }
    if (socket.agreed.hello != store_hello_client) {
        count_refused();
        context_->log(MUSTER_LOG_WARN, "store: %s: it is no client of a store", socket.peer.c_str());
        return;
    }
    try {
        const auto connection = make_ref<StoreConnection>(*this, std::move(socket));
        connection->retain(); // for the list
        connections_.push_back(*connection);
        connection_count_++;
        clients_.store(connection_count_, std::memory_order_relaxed);
        connection->start();
    } catch (const std::bad_alloc &) {
        context_->log(MUSTER_LOG_ERROR, "store: out of memory for a client");
    }
}

// The session waits for its client to reconnect; the client repeats the requests that were not applied. A server that
// stops must not report its clients as dead: it is the server that stops.
void StoreServer::lost(StoreConnection &connection) noexcept {
    connections_.remove(connection);
    connection_count_--;
    clients_.store(connection_count_, std::memory_order_relaxed);
    if (connection.dirty) std::erase(dirty_, &connection);
    if (StoreSession *const session = std::exchange(connection.session, nullptr)) {
        session->connection = nullptr;
        withdraw_all(*session);
        session->start_leaving(now_ns() + settings_.session_ns);
        for (const uint64_t lease : session->leases) {
            const auto found = leases_.find(lease);
            if (stopped_ || found == leases_.end() || (found->second.flags & MUSTER_LEASE_CONNECTED) == 0) continue;
            // It is the next to end; so no memory is needed.
            table_.keep(lease, INT64_MIN);
        }
        look_at_leases();
    }
    connection.release();
    flush();
}

void StoreServer::forget(StoreSession &session) noexcept {
    withdraw_all(session);
    session.stop_leaving();
    for (const uint64_t lease : session.leases) {
        const auto found = leases_.find(lease);
        if (found == leases_.end()) continue;
        found->second.session = nullptr;
        if ((found->second.flags & MUSTER_LEASE_MANUAL) == 0)
            table_.keep(lease, std::max(session.heard_ns, grace_from_ns_) + found->second.ttl_ns);
    }
    if (session.connection != nullptr) session.connection->session = nullptr;
    for (Held &held : held_)
        if (held.session == &session) held.session = nullptr;
    if (!stopped_) write_down(std::move(session.forgotten_note));
    sessions_.erase(session.id());
    session_count_.store(sessions_.size(), std::memory_order_relaxed);
    look_again();
}

bool StoreServer::hello(StoreConnection &from, std::string_view body) {
    StoreId id;
    bool resume = false;
    if (!get_hello(body, id, resume)) return false;
    if (!serves()) {
        put_record(from.out(), {0, StoreRecord::elsewhere, 0, 0});
        from.send_all();
        if (!from.over()) from.shut("");
        return true;
    }
    StoreWelcome welcome;
    welcome.instance = instance_;
    welcome.capabilities = server_capabilities;
    welcome.flags = journal_ ? 0 : store_is_volatile;
    if (settings_.hosted) welcome.flags |= store_is_hosted;
    auto found = sessions_.find(id);
    if (found != sessions_.end() && resume) {
        welcome.flags |= store_resumed;
        StoreSession &session = *found->second;
        session.stop_leaving();
        if (StoreConnection *const old = std::exchange(session.connection, nullptr)) { // the client has given it up
            old->session = nullptr;
            withdraw_all(session);
            old->shut("");
        }
    } else if (found != sessions_.end()) {
        return false; // two clients cannot be one
    } else if (sessions_.size() >= settings_.max_clients || !has_room(0)) {
        count_refused();
        from.shut(sessions_.size() >= settings_.max_clients ? "there are too many clients, or were a moment ago"
                                                            : journal_->why_no_room().message);
        return false;
    } else {
        Ref<StoreNote> begins = note_of_session(id, true);
        found = sessions_.emplace(id, make_ref<StoreSession>(*this, id)).first;
        write_down(std::move(begins));
        session_count_.store(sessions_.size(), std::memory_order_relaxed);
    }
    StoreSession &session = *found->second;
    session.heard_ns = now_ns();
    session.connection = &from;
    from.session = &session;
    welcome.revision = table_.revision();
    std::string record;
    put_welcome(record, welcome);
    send(session, record);
    return true;
}

bool StoreServer::take(StoreConnection &from, const StoreHead &head, std::string_view body) {
    if (from.session == nullptr) return head.type == StoreRecord::hello && hello(from, body);
    StoreSession &session = *from.session;
    switch (head.type) {
    case StoreRecord::ask:
        return ask(session, head, body);
    case StoreRecord::withdraw:
        withdraw(session, head.number);
        return body.empty();
    case StoreRecord::keep:
        keep(session, head.number, head.flags != 0);
        return body.empty();
    case StoreRecord::ping:
        put_record(from.out(), {0, StoreRecord::pong, 0, head.number});
        touch(from);
        return body.empty();
    case StoreRecord::bye:
        forget(session);
        from.shut("");
        return body.empty();
    default:
        return false;
    }
}

// ---- sending --------------------------------------------------------------------------------------------------------

void StoreServer::touch(StoreConnection &connection) noexcept {
    if (std::exchange(connection.dirty, true)) return;
    try {
        dirty_.push_back(&connection);
    } catch (const std::bad_alloc &) {
        connection.dirty = false;
        connection.send_all();
    }
}

bool StoreServer::can_take(StoreConnection *connection) noexcept {
    if (connection == nullptr) return false;
    if (!connection->drowns()) return true;
    touch(*connection); // so it ends with the next flush
    return false;
}

void StoreServer::flush() noexcept {
    if (std::exchange(flushing_, true)) return; // a connection was lost meanwhile
    if (pair_) {
        pair_->flush();
        lag_.store(pair_->lag(), std::memory_order_relaxed);
        look_at_clog();
    }
    while (!dirty_.empty()) {
        const Ref<StoreConnection> connection(dirty_.back());
        dirty_.pop_back();
        connection->dirty = false;
        connection->send_all(); // the end of a connection may give others their values
    }
    flushing_ = false;
}

} // namespace muster
