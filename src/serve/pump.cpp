// SPDX-License-Identifier: MIT
#include "serve/pump.hpp"

#include "serve/transport.hpp"

#include <algorithm>

namespace muster {

Pump::Pump(ServedTransport &transport, uint64_t request, Ref<ServedListener> listener, std::string requested,
           SessionConfig config)
    : PendingSession(config.peer), transport_(&transport), request_(request), listener_(std::move(listener)),
      peer_(config.peer), requested_(std::move(requested)), unproved_(static_cast<bool>(listener_)) {
    config.single = true;
    config.local = transport.is_local();
    config.covered = transport.seals();
    session_ = make_ref<Session>(transport.context(), *Plugins::of(transport.context()).pool, Ref<Channel>(this),
                                 static_cast<SessionOwner &>(*this), std::move(config));
}

Ref<Stream> Pump::make_end(const Ref<Duplex> &duplex) {
    Ref<Stream> end = Stream::make(transport_->context(), duplex, 1, Ref<Carrier>(), peer_, {});
    end->set_user(user_);
    return end;
}

void Pump::attach_later(Ref<Duplex> duplex) noexcept {
    given_ = std::move(duplex);
    answered_.post(transport_->context());
}

void Pump::fail_later(const Error &why) noexcept {
    refused_ = why;
    answered_.post(transport_->context());
}

void Pump::take_answer() noexcept {
    if (given_)
        attach(std::move(given_));
    else
        fail(refused_);
}

void Pump::attach(Ref<Duplex> duplex) noexcept {
    if (!session_) { // over before the host answered
        duplex->end(Error::make(MUSTER_E_CANCELED, "the connection was cancelled"));
        return;
    }
    if (listener_) {
        try {
            listener_->pending().add(*this);
        } catch (const std::bad_alloc &) {
            const Error why = Error::make(MUSTER_E_NOMEM, "%s: out of memory", peer_.c_str());
            duplex->end(why);
            return fail(why);
        }
    }
    duplex_ = std::move(duplex);
    duplex_->incoming(0).set_reader_waker(this);
    duplex_->outgoing(0).set_writer_waker(this);
    duplex_->set_side(0, this);
    session_->start();
}

// From any thread: the session exists until session_over(), which removes the wakers first.
void Pump::schedule() noexcept {
    session_->schedule();
}

size_t Pump::room() noexcept {
    return duplex_ && !full_ ? SegmentPool::segment_bytes : 0;
}

Status Pump::send(const void *data, size_t size, size_t &taken) noexcept {
    Pipe &out = duplex_->outgoing(0);
    for (;;) {
        if (out.reader_gone()) return MUSTER_E_PEER;
        size_t moved = 0;
        const Status status = out.push(static_cast<const unsigned char *>(data) + taken, size - taken, moved);
        taken += moved;
        if (status < 0) return status;
        if (taken == size) return MUSTER_OK;
        // A quarter of the window at once: fewer wake-ups.
        if (!out.park_writer(Park::FD, out.window() / 4)) continue;
        full_ = true;
        return MUSTER_AGAIN;
    }
}

void Pump::turn() noexcept {
    if (!duplex_) return;
    full_ = false;
    Pipe &in = duplex_->incoming(0);
    for (;;) {
        iovec span{};
        int count = 0;
        const bool finished = in.finished(); // before the check for bytes: no more follow it
        if (const Status status = in.gather(&span, 1, SegmentPool::segment_bytes, count); status < 0)
            return session_->lost(Error::make(MUSTER_E_PEER, "%s: a write to the pump was cancelled in the middle",
                                              session_->peer().c_str()));
        if (count == 0) {
            if (duplex_->is_ended())
                return session_->lost(
                    Error::make(MUSTER_E_PEER, "%s: %s", session_->peer().c_str(), duplex_->ending().why.message));
            if (finished) return session_->lost(Error::make(MUSTER_E_END, "%s: ended", session_->peer().c_str()));
            if (in.park_reader(Park::FD, 1)) break;
            continue;
        }
        const size_t taken = session_->deliver(span.iov_base, span.iov_len, false);
        in.consume(taken);
        if (taken < span.iov_len) return; // resume() will be called
    }
    // The host reads no more outgoing bytes.
    if (duplex_->outgoing(0).reader_gone())
        session_->lost(Error::make(MUSTER_E_PEER, "%s: the pump was closed", session_->peer().c_str()));
}

void Pump::close(bool orderly) noexcept {
    if (!duplex_) return;
    Pipe &out = duplex_->outgoing(0);
    duplex_->incoming(0).set_reader_waker(nullptr);
    out.set_writer_waker(nullptr);
    duplex_->set_side(0, nullptr);
    if (!orderly) {
        duplex_->end(Error::make(MUSTER_E_ABORTED, "the connection has failed"));
        return;
    }
    out.finish();
    duplex_->incoming(0).drop_reader();
    leaving_ = true;
    out.set_writer_waker(&host_closes_);
}

void Pump::HostCloses::wake_writer() noexcept {
    pump_.host_closed_.post(pump_.transport_->context());
}

// CLOSE follows when the host has closed its end: it may still be forwarding bytes that it has read before.
void Pump::host_closed() noexcept {
    if (!leaving_) return;
    Pipe &out = duplex_->outgoing(0);
    for (;;) {
        if (out.reader_gone() || duplex_->is_ended()) break;
        out.park_flusher(Park::FD);
        if (!out.reader_gone() && !duplex_->is_ended()) return;
    }
    leave();
}

void Pump::leave() noexcept {
    if (!std::exchange(leaving_, false)) return;
    const Ref<Pump> alive(this);
    duplex_->outgoing(0).set_writer_waker(nullptr);
    transport_->requests().end(request_);
}

void Pump::proved_or_over() noexcept {
    if (!std::exchange(unproved_, false)) return;
    listener_->pending().remove(*this);
    listener_->proved_one();
}

void Pump::session_proved(Session &) {
    proved_or_over();
}

SessionListener Pump::session_listener(Session &, std::string_view service) {
    if (!listener_ || !service.empty()) return {};
    return listener_->target();
}

void Pump::session_over(Session &, const Error &why) {
    const Ref<Pump> alive(this);
    proved_or_over();
    transport_->context().log(MUSTER_LOG_INFO, "%s", why.message);
    session_.reset();
    if (leaving_) return host_closed();
    transport_->requests().end(request_);
}

} // namespace muster
