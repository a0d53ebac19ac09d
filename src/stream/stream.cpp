// SPDX-License-Identifier: MIT
// Life of a stream: made, finished, aborted, closed, released; and the list of those alive in a context.
#include "stream/stream.hpp"

#include "process/end_self.hpp"
#include "stream/streams.hpp"

#include <algorithm>

namespace muster {

Stream::Stream(Context &context, Ref<Duplex> duplex, int side, Ref<Carrier> carrier, std::string peer,
               std::string hello)
    : context_(&context), duplex_(std::move(duplex)), side_(side), carrier_(std::move(carrier)),
      carrier_drives_(carrier_ && !duplex_->shared() && carrier_->drives()), in_(duplex_->incoming(side)),
      out_(duplex_->outgoing(side)), peer_(std::move(peer)), hello_(std::move(hello)) {}

Ref<Stream> Stream::make(Context &context, Ref<Duplex> duplex, int side, Ref<Carrier> carrier, std::string peer,
                         std::string hello) {
    StreamsOfContext &streams = StreamsOfContext::of(context); // here it may fail, in the destructor it may not
    Ref<EventFdWatch> watch;
    if (duplex->shared()) watch = make_ref<EventFdWatch>(streams);
    auto stream = Ref<Stream>::adopt(
        new Stream(context, std::move(duplex), side, std::move(carrier), std::move(peer), std::move(hello)));
    Stream &s = *stream;
    s.event_fd_watch_ = std::move(watch);
    context.counters.streams_made.fetch_add(1, std::memory_order_relaxed);
    context.counters.streams_open.fetch_add(1, std::memory_order_relaxed);
    const bool in_time = streams.add(s);
    if (!s.duplex_->shared()) {
        s.in_.set_reader_waker(&s);
        s.out_.set_writer_waker(&s);
    }
    if (s.carrier_ && !s.duplex_->shared()) {
        s.read_.set_unusual(Direction::SOCKET, true);
        s.write_.set_unusual(Direction::SOCKET, true);
    }
    s.duplex_->set_side(side, &s);
    if (s.duplex_->is_ended()) s.ended();
    if (!in_time) s.context_closed();
    return stream;
}

void Stream::pair(Context &context, uint64_t window, std::string name, Ref<Stream> &first, Ref<Stream> &second) {
    Ref<Duplex> duplex = Duplex::make_private(window);
    Ref<Stream> one = make(context, duplex, 0, Ref<Carrier>(), name, std::string());
    second = make(context, std::move(duplex), 1, Ref<Carrier>(), std::move(name), std::string());
    first = std::move(one);
}

// An orderly end needs a living stream: the last reference is restored once for it.
void Stream::last_reference_gone() noexcept {
    if (std::exchange(torn_down_, true)) {
        delete this;
        return;
    }
    retain();
    close_now();
    release();
}

Stream::~Stream() {
    StreamsOfContext::of(*context_).remove(*this);
    if (event_fd_watch_) event_fd_watch_->end();
    context_->counters.streams_open.fetch_sub(1, std::memory_order_relaxed);
    context_->counters.bytes_in.fetch_add(read_.unreported, std::memory_order_relaxed);
    context_->counters.bytes_out.fetch_add(write_.unreported, std::memory_order_relaxed);
    watch(0, nullptr, 0);
    duplex_->set_side(side_, nullptr);
    if (!duplex_->shared()) {
        in_.set_reader_waker(nullptr);
        out_.set_writer_waker(nullptr);
    }
    drop_operations(read_, MUSTER_E_CLOSED);
    drop_operations(write_, MUSTER_E_CLOSED);
    for (const auto &at : at_queues_) at->queue().delist(*at);
    if (!out_.finished()) finish_pipe();
    carrier_closed();
    delete read_.operations;
    delete write_.operations;
}

// The end of the host's side, once: accepted bytes are still sent, nothing more is read.
void Stream::close_now() noexcept {
    if (closed_.load(std::memory_order_seq_cst) == 0) want_finish();
    if (closed_.exchange(1, std::memory_order_seq_cst) != 0) return;
    read_.set_unusual(Direction::OVER, true);
    interrupt(MUSTER_STREAM_READ | MUSTER_STREAM_WRITE);
    drop_operations(read_, MUSTER_E_CLOSED);
    in_.drop_reader();
    if (write_.waiting_operations.load(std::memory_order_seq_cst) == 0) carrier_closed();
}

void Stream::carrier_closed() noexcept {
    if (carrier_ && carrier_told_closed_.exchange(1, std::memory_order_seq_cst) == 0) carrier_->closed();
}

void Stream::host_release() noexcept {
    retain(); // one reference for each direction, and one that pump_writes() releases
    retain();
    retain();
    // Waiting buffers that were handed over are sent without the host; the last one releases the stream.
    lingers_.store(1, std::memory_order_seq_cst);
    released_.store(1, std::memory_order_seq_cst); // pairs with write_owned()
    leave_owned();
    close_now();
    const bool lingers = write_.waiting_operations.load(std::memory_order_seq_cst) != 0;
    if (!lingers && lingers_.exchange(0, std::memory_order_seq_cst) != 0) release();
    // A thread inside holds one of the two directions, and releases our reference of the stream when it leaves.
    for (Direction *d : {&read_, &write_}) {
        if (d == &write_ && lingers) {
            release();
            continue;
        }
        if (d->lock.orphan()) release();
    }
    release();
}

// After an abort there is no finish: the peer would take it for an orderly end.
void Stream::finish_pipe() noexcept {
    if (duplex_->ended_status() != MUSTER_E_ABORTED && !torn_.load(std::memory_order_seq_cst)) out_.finish();
}

// The holder of the write direction ends it.
void Stream::finish_held() noexcept {
    if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) {
        pump_writes(); // finishes when the last one is through
        return;
    }
    finish_pipe();
    if (carrier_ && !duplex_->shared()) carrier_->flush();
}

// This side writes no more. A write that waits in another thread ends; the holder of the direction finishes the pipe.
void Stream::want_finish() noexcept {
    finish_wanted_.store(1, std::memory_order_seq_cst); // before the wake-up; pairs with the check after a park
    write_.set_unusual(Direction::OVER, true);
    if (!try_take(write_, Direction::FINISH)) {
        interrupt(MUSTER_STREAM_WRITE);
        return;
    }
    finish_held();
    give(write_);
}

Status Stream::finish() noexcept {
    if (closed_.load(std::memory_order_seq_cst)) return MUSTER_E_CLOSED;
    if (const Status status = duplex_->ended_status(); status != MUSTER_OK) return status;
    if (write_.lent.load(std::memory_order_relaxed)) return MUSTER_E_BUSY;
    want_finish();
    return MUSTER_OK;
}

Status Stream::abort(uint64_t reason, std::string_view text) noexcept {
    if (closed_.load(std::memory_order_seq_cst)) return MUSTER_OK;
    const std::string_view told = text.empty() ? "aborted" : text;
    const Error why = Error::make(MUSTER_E_ABORTED, "%.*s", static_cast<int>(told.size()), told.data());
    if (!duplex_->end({why, reason, side_})) return MUSTER_OK;
    if (carrier_) carrier_->abort(reason, text.data(), text.size());
    return MUSTER_OK;
}

bool Stream::drained() noexcept {
    if (duplex_->is_ended() || out_.reader_gone()) return true;
    return write_.waiting_operations.load(std::memory_order_seq_cst) == 0 && out_.drained() &&
           (!carrier_ || duplex_->shared() || carrier_->flush());
}

// The result of a close, once drained() has been true (which may change again: a heartbeat is sent). OK: all has left.
Status Stream::closing_status() noexcept {
    // A peer that closed in order before, and had read everything, is not a failure.
    const bool both_closed = in_.finished() && out_.drained() && duplex_->ended_status() == MUSTER_E_PEER;
    if (const Status ended = duplex_->ended_status(); ended != MUSTER_OK && !both_closed) return ended;
    return out_.drained() ? MUSTER_OK : MUSTER_E_PEER; // or its reader left before the end
}

// A further close: how the first one ended, or the current state of the bytes that were in transit then.
Status Stream::close_again() noexcept {
    Status status = close_status_.load(std::memory_order_seq_cst);
    if (status != MUSTER_AGAIN) return status;
    const Ref<Stream> alive(this);
    if (!drained()) return MUSTER_AGAIN;
    status = closing_status();
    close_status_.store(status, std::memory_order_seq_cst);
    return status;
}

Status Stream::close(Deadline &deadline) noexcept {
    if (closed_.load(std::memory_order_seq_cst)) return close_again();
    const Ref<Stream> alive(this);
    const uint32_t cancels = write_.cancels.load(std::memory_order_seq_cst);
    want_finish();
    Status status = MUSTER_OK;
    while (status == MUSTER_OK && !drained()) {
        if (write_.cancels.load(std::memory_order_seq_cst) != cancels)
            status = MUSTER_E_CANCELED;
        else if (deadline.look_once())
            status = MUSTER_AGAIN;
        else if (deadline.passed())
            status = MUSTER_TIMEOUT;
        else if ((status = take(write_, deadline, cancels)) == MUSTER_OK) {
            if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) pump_writes();
            status = await_flush(true, deadline, cancels);
            if (status == MUSTER_TIMEOUT) status = MUSTER_OK;
            give(write_);
        }
    }
    const bool known = status == MUSTER_OK; // otherwise the wait ended, and not the event that it waited for
    if (known) status = closing_status();
    close_status_.store(known ? status : MUSTER_AGAIN, std::memory_order_seq_cst); // before any thread sees it closed
    close_now();
    return status;
}

void Stream::context_closed() noexcept {
    duplex_->end(Error::make(MUSTER_E_CLOSED, "the context was closed"));
    // No engine moves them any more, and no other thread will.
    drop_operations(read_, duplex_->ended_status());
    drop_operations(write_, duplex_->ended_status());
    carrier_closed();
    operations_done();
}

void Stream::about_to_end() noexcept {
    read_.set_unusual(Direction::OVER, true);
    write_.set_unusual(Direction::OVER, true);
}

void Stream::ended() noexcept {
    about_to_end(); // it may have ended before this side was known
    // The context closes before all bytes were sent: the peer must not take its bytes for all of them. torn_ keeps this
    // side from finishing the pipe; seq_cst as where a buffer is cancelled.
    const bool unsent = duplex_->shared() ? write_.waiting_operations.load(std::memory_order_seq_cst) != 0
                                          : !out_.drained() && !out_.reader_gone();
    if (unsent && duplex_->ended_status() == MUSTER_E_CLOSED) {
        constexpr std::string_view text = "the other side ended before all was sent";
        torn_.store(true, std::memory_order_seq_cst);
        if (carrier_) carrier_->abort(0, text.data(), text.size());
    }
    interrupt(MUSTER_STREAM_READ | MUSTER_STREAM_WRITE);
    notify_events(MUSTER_STREAM_ENDED | MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE);
    const int64_t grace = exit_grace_ns_.exchange(-1, std::memory_order_seq_cst);
    if (grace >= 0 && peer_is_gone()) end_self(*context_, grace);
    if (read_.waiting_operations.load(std::memory_order_seq_cst) != 0 ||
        write_.waiting_operations.load(std::memory_order_seq_cst) != 0)
        post_pump(); // last: this stream may be destroyed there
}

void Stream::peer_events(uint32_t events) noexcept {
    notify_events(events);
}

Status Stream::reason(uint64_t *out_reason, muster_error *error) noexcept {
    const Ending e = duplex_->is_ended() ? duplex_->ending() : Ending();
    if (out_reason != nullptr) *out_reason = e.reason;
    Error detail;
    if (e.why.status != MUSTER_OK) {
        const bool from_here = e.aborted_by == side_;
        detail = Error::make(e.why.status, "%s%s%s", from_here ? "" : peer_.c_str(),
                             from_here || peer_.empty() ? "" : ": ", e.why.message);
        detail.os_errno = e.why.os_errno;
    } else if (closed_.load(std::memory_order_seq_cst)) {
        detail = Error::make(MUSTER_E_CLOSED, "%s: closed on this side", peer_.c_str());
    }
    if (detail.status < 0 && error != nullptr) detail.give(*error);
    return detail.status;
}

// An end that this side has caused (close, abort, the context's close) does not concern the peer.
bool Stream::peer_is_gone() noexcept {
    if (closed_.load(std::memory_order_seq_cst) != 0 || !duplex_->is_ended()) return false;
    const Ending e = duplex_->ending();
    return e.aborted_by != side_ && e.why.status != MUSTER_E_CLOSED;
}

Status Stream::exit_with_peer(int64_t grace_ns) noexcept {
    if (context_->external() || !carrier_) return MUSTER_E_UNSUPPORTED;
    exit_grace_ns_.store(grace_ns, std::memory_order_seq_cst);
    // It may have ended before the first query.
    if (grace_ns >= 0 && peer_is_gone() && exit_grace_ns_.exchange(-1, std::memory_order_seq_cst) >= 0)
        end_self(*context_, grace_ns);
    return MUSTER_OK;
}

void Stream::stats(muster_stream_stats &out) noexcept {
    out = {};
    const Carrier::Io io = carrier_ ? carrier_->io() : Carrier::Io{0, 0, 0};
    out.bytes_in = read_.bytes.get();
    out.bytes_out = write_.bytes.get();
    // relaxed loads: a picture of a moving thing
    const auto between = [](PipeControl &c) {
        const uint64_t tail = c.tail.load(std::memory_order_relaxed), head = c.head.load(std::memory_order_relaxed);
        return head > tail ? head - tail : 0;
    };
    out.buffered_in = between(in_.control());
    out.buffered_out = between(out_.control());
    out.reads = read_.calls.get();
    out.writes = write_.calls.get();
    out.waits = read_.waits.get() + write_.waits.get();
    out.wakeups =
        out_.wakeups_of_reader.load(std::memory_order_relaxed) + in_.wakeups_of_writer.load(std::memory_order_relaxed);
    out.spins_won = read_.spins_won.get();
    out.spins_lost = read_.spins_lost.get();
    out.caller_io = io.caller_io;
    out.loop_io = io.loop_io;
    out.last_received_ns = io.last_received_ns;
    out.round_trip_ns = carrier_ ? static_cast<uint64_t>(carrier_->round_trip_ns()) : 0;
    out.multicast_group = reinterpret_cast<uintptr_t>(multicast_group());
}

} // namespace muster
