// SPDX-License-Identifier: MIT
// A socket and its connections: bound and dialled addresses, and what the loop thread does.
#include "socket/socket.hpp"

#include "context/host_call.hpp"

#include <sodium.h>

namespace muster {

namespace {
constexpr uint32_t queue_capacity = 1 << 22; // readiness needs no slot; dials do
constexpr uint64_t id_of_listeners = uint64_t{1} << 63;
constexpr size_t in_buffer_bytes = 64 * 1024;
constexpr int64_t always_ns = 1'000'000'000'000'000'000; // dials are retried
} // namespace

Socket::Socket(Context &context, Settings what, Ref<Queue> own, Ref<LoanPool> loans)
    : settings(std::move(what)), context_(&context), own_(std::move(own)), loans_(std::move(loans)),
      in_buffer_(in_buffer_bytes) {}

Socket::~Socket() {
    context_->metrics.remove(metrics_);
    if (settings.queue && !forked()) settings.queue->detach(*this);
}

Result<Ref<Socket>> Socket::make(Context &context, Settings settings) {
    auto own = Queue::create(context, queue_capacity);
    if (!own) return own.error();
    Hub::of(context); // initialises the source of random numbers
    settings.hello.incarnation = 0;
    randombytes_buf(&settings.hello.incarnation, sizeof settings.hello.incarnation);
    if (settings.hello.address == 0) {
        randombytes_buf(&settings.hello.address, sizeof settings.hello.address);
        settings.hello.address |= 1;
    }
    Ref<LoanPool> loans;
    if (settings.max_loaned_bytes != 0) {
        auto pool = LoanPool::make(settings.max_loaned_bytes);
        if (!pool) return pool.error();
        loans = std::move(*pool);
        settings.hello.loans = loans->origin();
    }
    auto made = Ref<Socket>::adopt(new Socket(context, std::move(settings), std::move(*own), std::move(loans)));
    if (made->settings.queue) made->settings.queue->attach(*made, made->settings.tag);
    const auto wake = [](void *self) noexcept -> int {
        static_cast<Socket *>(self)->turn_.post(static_cast<Socket *>(self)->context());
        return 0;
    };
    if (const Status status = made->own_->set_wake(wake, made.get()); status != MUSTER_OK)
        return Error::from_status(status);
    if (made->enter_.post(context)) {
        context.metrics.add(made->metrics_);
        return made;
    }
    made->own_->set_wake(nullptr, nullptr);
    return Error::make(MUSTER_E_CLOSED, "the context is closed");
}

void Socket::write_metrics(MetricsWriter &writer) {
    static constexpr Metric peers{"muster_socket_peers", Metric::gauge, "Peers that are connected."};
    static constexpr Metric messages{"muster_socket_messages_total", Metric::counter,
                                     "Messages received by the host, and written to streams."};
    static constexpr Metric bytes{"muster_socket_bytes_total", Metric::counter, "Bytes of their frames."};
    static constexpr Metric queued{"muster_socket_queued_messages", Metric::gauge, "Messages that wait to be written."};
    static constexpr Metric queued_bytes{"muster_socket_queued_bytes", Metric::gauge, "Their bytes."};
    static constexpr Metric undelivered{"muster_socket_undelivered_total", Metric::counter,
                                        "Messages that were returned."};
    static constexpr Metric lost{"muster_socket_connections_lost_total", Metric::counter, "Connections that ended."};
    static constexpr Metric malformed{"muster_socket_malformed_total", Metric::counter,
                                      "Connections that were closed because of what the peer sent."};
    muster_socket_stats now{};
    stats(now);
    const std::string label = metric_label("socket_address", std::to_string(settings.hello.address));
    const auto add = [&](const Metric &metric, uint64_t value, const char *direction = "") {
        writer.add(metric, static_cast<double>(value), label + direction);
    };
    add(peers, now.peers);
    add(messages, now.messages_in, ",direction=\"in\"");
    add(messages, now.messages_out, ",direction=\"out\"");
    add(bytes, now.bytes_in, ",direction=\"in\"");
    add(bytes, now.bytes_out, ",direction=\"out\"");
    add(queued, now.queued_messages);
    add(queued_bytes, now.queued_bytes);
    add(undelivered, now.undelivered);
    add(lost, now.connections_lost);
    add(malformed, now.malformed);
}

// Loop thread: from now on the close of the context ends the socket.
void Socket::enter() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (ended_) return;
    }
    context_->on_closing(closing_node_);
    if (context_->closed()) return end_at_loop(); // the list may have been notified before
}

// ---- the loop thread ------------------------------------------------------------------------------------------------

void Socket::turn() noexcept {
    const Ref<Socket> self(this);
    for (;;) {
        muster_completion entry;
        Error error;
        Deadline once(0);
        if (own_->next(once, &entry, &error) != MUSTER_OK) return; // it is armed again
        handle(entry, error);
    }
}

void Socket::handle(muster_completion &entry, const muster_error &error) noexcept {
    if (entry.kind == MUSTER_DONE_DIAL) {
        Ref<Stream> stream = Ref<Stream>::adopt(unwrap(static_cast<muster_stream *>(entry.object)));
        Connection *connection = nullptr;
        {
            const std::lock_guard hold(lock_);
            const auto found = connections_.find(entry.tag);
            if (found != connections_.end()) connection = found->second.get();
        }
        if (connection == nullptr || entry.status != MUSTER_OK) {
            if (stream) stream.detach()->host_release();
            if (connection == nullptr) return;
            report(MUSTER_SOCKET_REFUSED, {}, 0, error.message);
            return dial_later(*connection);
        }
        return connected(std::move(stream), connection);
    }
    if (entry.kind != MUSTER_EVENT_READY) return;
    if (entry.tag & id_of_listeners) {
        Ref<Listener> listener;
        {
            const std::lock_guard hold(lock_);
            const auto found = listeners_.find(entry.tag);
            if (found == listeners_.end()) return;
            listener = found->second;
        }
        return accept_all(*listener);
    }
    const Ref<SocketPeer> peer = find_peer(entry.tag);
    if (!peer) return;
    if (entry.events & MUSTER_STREAM_WRITABLE) flush(*peer);
    if (entry.events & MUSTER_STREAM_ENDED) {
        Error why;
        peer->stream.reason(nullptr, &why);
        end_output(*peer, MUSTER_SOCKET_LOST, why.message);
    }
    if (entry.events & MUSTER_STREAM_READABLE) look_for_end(*peer);
    if (entry.events & (MUSTER_STREAM_READABLE | MUSTER_STREAM_ENDED)) mark_readable(*peer);
}

void Socket::accept_all(Listener &listener) noexcept {
    for (;;) {
        Deadline once(0);
        Ref<Stream> stream;
        Error why;
        if (listener.accept(once, stream, why) != MUSTER_OK) return; // closed, or armed again
        connected(std::move(stream), nullptr);
    }
}

// A stream to a peer, which the socket owns from now on.
void Socket::connected(Ref<Stream> stream, Connection *connection) noexcept {
    const auto hello = PeerHello::read(stream->hello());
    auto added = hello ? add_peer(stream, *hello, connection)
                       : Error::make(MUSTER_E_PROTOCOL, "the other side is no socket for messages");
    if (!added) {
        if (stream) { // the peer does not have it
            stream->abort(0, added.error().message);
            stream.detach()->host_release();
        }
        report(MUSTER_SOCKET_REFUSED, hello.value_or(PeerHello()), 0, added.error().message);
        if (connection != nullptr) dial_later(*connection);
        return;
    }
    SocketPeer &peer = **added;
    report(MUSTER_SOCKET_CONNECTED, *hello, 0, "");
    flush(peer);
    made_room();
    interrupt_receiver(); // it may wait for the only peer that there was
}

// The stream belongs to the peer if there is a result, and is released if a peer could not be added after that.
Result<Ref<SocketPeer>> Socket::add_peer(Ref<Stream> &stream, const PeerHello &hello, Connection *connection) noexcept {
    Ref<SocketPeer> peer;
    try {
        std::vector<Ref<SocketPeer>> replaced;
        {
            const std::lock_guard hold(lock_);
            if (const auto found = routes_.find(hello.address); found != routes_.end())
                for (const Ref<SocketPeer> &one : found->second)
                    if (one->hello.address == hello.address && one->hello.incarnation != hello.incarnation)
                        replaced.push_back(one);
            // A socket that closes still connects, for messages that wait; it accepts no more.
            if (ended_ || (closing_ && connection == nullptr))
                return Error::make(MUSTER_E_CLOSED, "the socket is closed");
            if (live_.size() - std::min(live_.size(), replaced.size()) >= settings.max_peers)
                return Error::make(MUSTER_E_LIMIT, "too many peers are connected");
        }
        for (const Ref<SocketPeer> &one : replaced) { // the same peer, started again
            end_output(*one, MUSTER_SOCKET_REPLACED, "a peer with this address has connected again");
            one->stream.abort(0, "replaced by a later connection");
        }
        Ref<LoanView> view = LoanView::open(hello.loans, settings.hello.incarnation);
        const std::lock_guard hold(lock_);
        if (ended_) return Error::make(MUSTER_E_CLOSED, "the socket is closed");
        peer = make_ref<SocketPeer>(std::move(stream), hello, next_id_++, connection, settings.max_message_bytes,
                                    loans_.get(), std::move(view));
        peers_.emplace(peer->id, peer);
        constexpr uint32_t events = MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE | MUSTER_STREAM_ENDED;
        peer->stream.watch(events, own_.get(), peer->id);
        add_route(*peer);
        take_unrouted(*peer);
        stats_.connections_made++;
        if (connection != nullptr) connection->back_off.reset();
        return peer;
    } catch (const std::bad_alloc &) {
        if (peer) {
            const std::lock_guard hold(lock_);
            const std::lock_guard hold_peer(peer->out_lock);
            peer->abandon_loans();
            peers_.erase(peer->id);
        }
        return Error::make(MUSTER_E_NOMEM, "out of memory");
    }
}

void Socket::dial(Connection &connection) noexcept {
    TransportOptions options;
    try {
        options.hello = settings.hello.write();
        options.window_bytes = context_->settings.window_bytes;
        options.retry_ns = always_ns;
        auto dial = HostDial::make(*context_, connection.address, options, -1);
        if (!dial) {
            report(MUSTER_SOCKET_REFUSED, {}, 0, dial.error().message);
            return dial_later(connection);
        }
        if (const auto begun = (*dial)->begin(*own_, connection.id); !begun || begun.status() != MUSTER_OK)
            dial_later(connection);
    } catch (const std::bad_alloc &) {
        dial_later(connection);
    }
}

// Any thread.
void Socket::dial_later(Connection &connection) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (ended_) return;
        connection.retry_at_ns = now_ns() + connection.back_off.next_ns(connection.id);
    }
    redial_soon_.post(*context_);
}

void Socket::dial_due() noexcept {
    const Ref<Socket> self(this);
    const int64_t now = now_ns();
    int64_t next = INT64_MAX;
    std::vector<Connection *> due;
    {
        const std::lock_guard hold(lock_);
        if (ended_) return;
        try {
            for (auto &[id, connection] : connections_) {
                if (connection->retry_at_ns <= now) {
                    due.push_back(connection.get());
                    connection->retry_at_ns = INT64_MAX;
                } else {
                    next = std::min(next, connection->retry_at_ns);
                }
            }
        } catch (const std::bad_alloc &) {
            next = now + 100'000'000;
        }
    }
    for (Connection *const one : due) dial(*one); // connections stay until the end, which is on this thread
    if (next != INT64_MAX) context_->loop().start_timer(redial_, next);
}

// ---- calls of the host ----------------------------------------------------------------------------------------------

Result<std::string> Socket::bind(std::string_view address, size_t capacity) {
    TransportOptions options;
    options.hello = settings.hello.write();
    options.window_bytes = context_->settings.window_bytes;
    auto listener = Listener::open(*context_, address, options);
    if (!listener) return listener.error();
    struct CloseUnlessBound {
        Ref<Listener> listener;
        ~CloseUnlessBound() {
            if (listener) listener->close();
        }
    } guard{*listener};
    const std::string text = (*listener)->address();
    if (capacity != 0 && capacity < text.size() + 1)
        return Error::make(MUSTER_E_LIMIT, "the address has %zu characters, room for %zu", text.size(), capacity);
    uint64_t id = 0;
    {
        const std::lock_guard hold(lock_);
        if (closing_ || ended_) return Error::make(MUSTER_E_CLOSED, "the socket is closed");
        id = id_of_listeners | next_id_++;
        listeners_.emplace(id, *listener);
    }
    if (const Status status = (*listener)->watch(own_.get(), id); status < 0) {
        const std::lock_guard hold(lock_);
        listeners_.erase(id);
        return Error::from_status(status);
    }
    Result<std::string> bound(text);
    guard.listener.reset();
    return bound;
}

Result<void> Socket::connect(std::string_view address) {
    auto parsed = parse_address(address);
    if (!parsed) return parsed.error();
    if (auto known = Registry::of(*context_).find(parsed->scheme); !known) return known.error();
    {
        const std::lock_guard hold(lock_);
        if (closing_ || ended_) return Error::make(MUSTER_E_CLOSED, "the socket is closed");
        auto connection = std::make_unique<Connection>(std::string(address), next_id_++);
        connection->retry_at_ns = 0;
        connections_.emplace(connection->id, std::move(connection));
    }
    if (!redial_soon_.post(*context_)) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

Status Socket::wait_peers(uint32_t count, Deadline &deadline, uint32_t &out_count) noexcept {
    return wait_for(room_signal_, deadline, [&]() -> Status {
        out_count = static_cast<uint32_t>(live_.size());
        return out_count >= count ? MUSTER_OK : MUSTER_AGAIN;
    });
}

Status Socket::next_event(Deadline &deadline, muster_socket_event &out) noexcept {
    return wait_for(event_signal_, deadline, [&]() -> Status {
        if (events_.empty()) return MUSTER_AGAIN;
        out = events_.front();
        events_.pop_front();
        return MUSTER_OK;
    });
}

void Socket::stats(muster_socket_stats &out) noexcept {
    std::vector<Ref<SocketPeer>> peers;
    {
        const std::lock_guard hold(lock_);
        out = stats_;
        out.peers = live_.size();
        out.queued_messages = unrouted_.size();
        out.queued_bytes = unrouted_bytes_;
        try {
            peers = live_;
        } catch (const std::bad_alloc &) { // then without those that wait for a peer
        }
    }
    for (const Ref<SocketPeer> &peer : peers) {
        const std::lock_guard hold(peer->out_lock);
        out.queued_messages += peer->out.size();
        out.queued_bytes += peer->out_bytes;
        out.messages_out += peer->messages_out;
        out.bytes_out += peer->bytes_out;
    }
}

void Socket::cancel() noexcept {
    {
        const std::lock_guard hold(lock_);
        cancels_++;
    }
    for (Signal *const signal : {&in_signal_, &room_signal_, &event_signal_}) context_->notify(*signal);
    interrupt_.post(*context_);
}

// ---- the end --------------------------------------------------------------------------------------------------------

Status Socket::close(Deadline &deadline) {
    const Ref<Socket> self(this);
    uint64_t before = 0;
    std::unordered_map<uint64_t, Ref<Listener>> listeners;
    {
        const std::lock_guard hold(lock_);
        if (closing_ || ended_) return MUSTER_E_CLOSED;
        closing_ = true;
        before = stats_.undelivered;
        listeners.swap(listeners_);
    }
    for (auto &[id, listener] : listeners) listener->close();
    const auto look = [&]() -> Status {
        if (ended_) return MUSTER_OK;
        if (!unrouted_.empty() && live_.empty() && connections_.empty()) return MUSTER_OK; // no peer will connect
        if (!unrouted_.empty()) return MUSTER_AGAIN;
        for (const Ref<SocketPeer> &peer : live_) {
            const std::lock_guard hold(peer->out_lock);
            if (!peer->out.empty()) return MUSTER_AGAIN;
        }
        return MUSTER_OK;
    };
    Status status = context_->wait(room_signal_, deadline, lock_, look);
    std::vector<Ref<SocketPeer>> peers; // nothing is sent to them any more
    {
        const std::lock_guard hold(lock_);
        peers.swap(live_);
    }
    for (const Ref<SocketPeer> &peer : peers) {
        const Status read = peer->stream.close(deadline);
        if (status == MUSTER_OK && read != MUSTER_OK) status = read > 0 ? MUSTER_TIMEOUT : MUSTER_E_PEER;
    }
    for (const Ref<SocketPeer> &peer : peers) end_output(*peer, 0, "");
    end();
    const std::lock_guard hold(lock_);
    if (status == MUSTER_OK && stats_.undelivered != before) status = MUSTER_E_PEER;
    return status == MUSTER_AGAIN ? MUSTER_TIMEOUT : status;
}

// Any thread. What the loop thread uses ends there.
void Socket::end() noexcept {
    const Ref<Socket> self(this);
    std::vector<Ref<SocketPeer>> peers;
    std::list<Outgoing> unrouted;
    std::unordered_map<uint64_t, Ref<Listener>> listeners;
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(ended_, true)) return;
        peers.swap(live_);
        unrouted.swap(unrouted_);
        unrouted_bytes_ = 0;
        listeners.swap(listeners_);
    }
    for (auto &[id, listener] : listeners) listener->close();
    for (const Ref<SocketPeer> &peer : peers) end_output(*peer, 0, "");
    for (Outgoing &outgoing : unrouted) undelivered(std::move(outgoing), MUSTER_E_CLOSED);
    for (Signal *const signal : {&in_signal_, &room_signal_, &event_signal_}) context_->notify(*signal);
    if (!end_.post(*context_)) end_at_loop();
}

void Socket::end_at_loop() noexcept {
    const Ref<Socket> self(this);
    end();
    own_->set_wake(nullptr, nullptr);
    own_->close(); // ends the dials
    context_->forget_closing(closing_node_);
    context_->loop().stop_timer(redial_);
    context_->loop().stop_timer(arm_);
    try {
        if (loans_ && loans_->is_used() && !context_->closed()) LingeringLoans::begin(*context_, loans_);
    } catch (const std::bad_alloc &) { // what is not mapped yet is lost with this socket
    }
    interrupt_receiver();
    std::unordered_map<uint64_t, Ref<SocketPeer>> peers;
    std::unordered_map<uint64_t, std::vector<Ref<SocketPeer>>> routes;
    List<SocketPeer> readable;
    {
        const std::lock_guard hold(lock_);
        peers.swap(peers_);
        routes.swap(routes_);
        readable.swap(readable_);
    }
    while (SocketPeer *const peer = readable.pop_front()) peer->release();
}

void Socket::host_release() noexcept {
    if (!forked()) {
        context_->host_calls().end_all_on(*this);
        end();
    }
    release();
}

} // namespace muster
