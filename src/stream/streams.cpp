// SPDX-License-Identifier: MIT
#include "stream/streams.hpp"

#include <algorithm>
#include <sys/epoll.h>

namespace muster {

StreamsOfContext &StreamsOfContext::of(Context &context) {
    static const char key = 0;
    return static_cast<StreamsOfContext &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<StreamsOfContext>(c); }));
}

namespace {

// A text of metrics has to fit into a value of a store.
constexpr size_t max_shown = 16;

struct Shown {
    uint64_t number = 0;
    std::string peer;
    muster_stream_stats stats{};
    uint64_t bytes() const noexcept { return stats.bytes_in + stats.bytes_out; }
};

} // namespace

// The streams that have moved the most bytes.
void StreamsOfContext::write_metrics(MetricsWriter &writer) {
    static constexpr Metric read{"muster_stream_read_bytes_total", Metric::counter,
                                 "Bytes read from a stream; of the 16 streams with the most bytes."};
    static constexpr Metric written{"muster_stream_written_bytes_total", Metric::counter,
                                    "Bytes that a stream has accepted; of the same streams."};
    static constexpr Metric unread{"muster_stream_unread_bytes", Metric::gauge, "Bytes that wait to be read."};
    static constexpr Metric unsent{"muster_stream_unsent_bytes", Metric::gauge, "Bytes that are not sent yet."};
    static constexpr Metric waits{"muster_stream_waits_total", Metric::counter,
                                  "Times that a thread went to sleep on a stream."};
    static constexpr Metric quiet{"muster_stream_quiet_seconds", Metric::gauge,
                                  "Time since bytes of the peer, heartbeats included, were last received."};
    static constexpr Metric round_trip{"muster_stream_round_trip_seconds", Metric::gauge,
                                       "Round trip to the host of the peer, as TCP estimates it."};
    std::vector<Shown> most;
    most.reserve(max_shown);
    const auto fewer = [](const Shown &one, const Shown &other) { return one.bytes() > other.bytes(); };
    {
        const std::lock_guard guard(lock_); // a stream leaves the list before anything else of it ends
        for (Stream *stream = streams_.first(); stream != nullptr; stream = List<Stream>::after(*stream)) {
            Shown one;
            stream->stats(one.stats);
            if (most.size() == max_shown) {
                if (one.bytes() <= most.front().bytes()) continue;
                std::pop_heap(most.begin(), most.end(), fewer);
                most.pop_back();
            }
            one.number = stream->metrics_number_;
            one.peer = stream->peer();
            most.push_back(std::move(one));
            std::push_heap(most.begin(), most.end(), fewer);
        }
    }
    const auto now = static_cast<uint64_t>(now_ns());
    for (const Shown &one : most) {
        const std::string label = metric_label("peer", one.peer) + ",stream=\"" + std::to_string(one.number) + '"';
        writer.add(read, static_cast<double>(one.stats.bytes_in), label);
        writer.add(written, static_cast<double>(one.stats.bytes_out), label);
        writer.add(unread, static_cast<double>(one.stats.buffered_in), label);
        writer.add(unsent, static_cast<double>(one.stats.buffered_out), label);
        writer.add(waits, static_cast<double>(one.stats.waits), label);
        const uint64_t last = one.stats.last_received_ns;
        if (one.stats.round_trip_ns != 0)
            writer.add(round_trip, static_cast<double>(one.stats.round_trip_ns) * 1e-9, label);
        if (last != 0) writer.add(quiet, last < now ? static_cast<double>(now - last) * 1e-9 : 0, label);
    }
}

bool StreamsOfContext::add(Stream &stream) noexcept {
    const std::lock_guard guard(lock_);
    stream.metrics_number_ = ++last_number_;
    streams_.push_back(stream);
    return !stopped_;
}

void StreamsOfContext::remove(Stream &stream) noexcept {
    const std::lock_guard guard(lock_);
    streams_.remove(stream);
}

// Streams may be destroyed during the walk, also while one of them is used without the lock.
Ref<Stream> StreamsOfContext::next_alive(Walk walk) noexcept {
    const std::lock_guard guard(lock_);
    Stream *s = walk == Walk::begin ? streams_.begin_walk() : streams_.next();
    while (s != nullptr && !s->try_retain()) s = streams_.next();
    return Ref<Stream>::adopt(s);
}

bool StreamsOfContext::drained() noexcept {
    for (Ref<Stream> s = next_alive(Walk::begin); s; s = next_alive(Walk::go_on))
        if (!s->drained()) return false;
    return true;
}

void StreamsOfContext::stop() noexcept {
    {
        const std::lock_guard guard(lock_);
        stopped_ = true;
    }
    for (Ref<Stream> s = next_alive(Walk::begin); s; s = next_alive(Walk::go_on)) s->context_closed();
}

// ---- eventfds of shared memory --------------------------------------------------------------------------------------

void Stream::watch_event_fd() noexcept {
    event_fd_watch_->begin(*this);
}

void EventFdWatch::begin(Stream &stream) noexcept {
    if (begun_.exchange(true, std::memory_order_seq_cst)) return;
    {
        const std::lock_guard guard(part_.lock_);
        stream_ = &stream;
    }
    open_.post(part_.context_);
}

void EventFdWatch::end() noexcept {
    if (!begun_.load(std::memory_order_seq_cst)) return;
    {
        const std::lock_guard guard(part_.lock_);
        stream_ = nullptr; // no call of it is running: they hold the lock, or a reference
    }
    close_.post(part_.context_);
}

Ref<Stream> EventFdWatch::stream() noexcept {
    const std::lock_guard guard(part_.lock_);
    return stream_ != nullptr && stream_->try_retain() ? Ref<Stream>::adopt(stream_) : Ref<Stream>();
}

void EventFdWatch::open() noexcept {
    const Ref<Stream> alive = stream();
    if (!alive) return;
    fd_ = Fd(fcntl(alive->duplex().own_event(), F_DUPFD_CLOEXEC, 3));
    if (!fd_ || !part_.context_.loop().watch(*this, fd_.get(), EPOLLIN | EPOLLET)) {
        fd_.reset();
        alive->duplex().end(Error::make(MUSTER_E_LIMIT, "no descriptor left to watch it"));
        return;
    }
    alive->wake_reader(); // for bytes that were written before the watch began
    alive->wake_writer();
}

void EventFdWatch::on_events(uint32_t) noexcept {
    const Ref<Stream> alive = stream();
    if (!alive) return;
    alive->wake_reader();
    alive->wake_writer();
}

void EventFdWatch::close() noexcept {
    if (!fd_) return;
    part_.context_.loop().unwatch(*this, fd_.get());
    fd_.reset();
}

} // namespace muster
