// SPDX-License-Identifier: MIT
#include "stream/streams.hpp"

#include <sys/epoll.h>

namespace muster {

StreamsOfContext &StreamsOfContext::of(Context &context) {
    static const char key = 0;
    return static_cast<StreamsOfContext &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<StreamsOfContext>(c); }));
}

bool StreamsOfContext::add(Stream &stream) noexcept {
    const std::lock_guard guard(lock_);
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
