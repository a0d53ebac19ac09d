// SPDX-License-Identifier: MIT
#include "stream/streams.hpp"

#include "context/uv_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

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

// Streams may go during the walk, and while one of them is looked at without the lock.
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
    while (EventFdWatch *watch = watches_.first()) watch->close();
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
    fd_ = fcntl(alive->duplex().own_event(), F_DUPFD_CLOEXEC, 3);
    if (fd_ < 0 || prepare_poll(part_.context_.loop(), &poll_, fd_) != 0) {
        if (fd_ >= 0) ::close(fd_);
        alive->duplex().end(Error::make(MUSTER_E_LIMIT, "no descriptor left to watch it"));
        return;
    }
    poll_.data = this;
    retain(); // until the handle is closed
    part_.watches_.push_back(*this);
    uv_poll_start(&poll_, UV_READABLE, [](uv_poll_t *handle, int, int) {
        auto &watch = *static_cast<EventFdWatch *>(handle->data);
        uint64_t count;
        [[maybe_unused]] const ssize_t got = ::read(watch.fd_, &count, sizeof count); // libuv's poll is level-triggered
        const Ref<Stream> stream = watch.stream();
        if (!stream) return;
        stream->wake_reader();
        stream->wake_writer();
    });
    alive->wake_reader(); // what was written before the watch began
    alive->wake_writer();
}

void EventFdWatch::close() noexcept {
    if (!List<EventFdWatch>::holds(*this)) return;
    part_.watches_.remove(*this);
    uv_close(reinterpret_cast<uv_handle_t *>(&poll_), [](uv_handle_t *handle) {
        auto *watch = static_cast<EventFdWatch *>(handle->data);
        ::close(watch->fd_);
        watch->release();
    });
}

} // namespace muster
