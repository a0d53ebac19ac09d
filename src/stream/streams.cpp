// SPDX-License-Identifier: MIT
#include "stream/streams.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <uv.h>

#include <vector>

namespace muster {

// A poll handle on a duplicate of a stream's eventfd. It knows the stream only while the stream is in the list.
struct StreamsOfContext::Watch {
    uv_poll_t poll;
    int fd;
    StreamsOfContext *part;
    Stream *stream; // under the part's lock; NULL once the stream is going
};

StreamsOfContext &StreamsOfContext::of(Context &context) {
    static const char key = 0;
    return static_cast<StreamsOfContext &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<StreamsOfContext>(c); }));
}

bool StreamsOfContext::add(Stream &stream) noexcept {
    const std::lock_guard guard(lock_);
    stream.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &stream;
    first_ = &stream;
    return !stopped_;
}

void StreamsOfContext::remove(Stream &stream) noexcept {
    const bool watched = stream.event_fd_watched_.load(std::memory_order_seq_cst) != 0;
    {
        const std::lock_guard guard(lock_);
        if (stream.previous_ != nullptr)
            stream.previous_->next_ = stream.next_;
        else if (first_ == &stream)
            first_ = stream.next_;
        if (stream.next_ != nullptr) stream.next_->previous_ = stream.previous_;
        if (!watched) return;
        const auto it = watches_.find(&stream);
        if (it == watches_.end()) return;
        it->second->stream = nullptr; // no call of it is running: they hold the lock
    }
    Stream *const gone = &stream;
    context_.post([this, gone] {
        Watch *watch = nullptr;
        {
            const std::lock_guard guard(lock_);
            const auto it = watches_.find(gone);
            if (it == watches_.end() || it->second->stream != nullptr) return; // another stream at this address by now
            watch = it->second;
            watches_.erase(it);
        }
        watch->poll.data = watch;
        uv_close(reinterpret_cast<uv_handle_t *>(&watch->poll), [](uv_handle_t *handle) {
            auto *w = static_cast<Watch *>(handle->data);
            ::close(w->fd);
            delete w;
        });
    });
}

void StreamsOfContext::watch_event_fd(Stream &stream) {
    const Ref<Stream> alive(&stream);
    context_.post([this, alive] {
        auto *watch = new Watch;
        watch->part = this;
        watch->stream = alive.get();
        watch->fd = fcntl(alive->duplex().own_event(), F_DUPFD_CLOEXEC, 0);
        if (watch->fd < 0 || uv_poll_init(context_.loop(), &watch->poll, watch->fd) != 0) {
            if (watch->fd >= 0) ::close(watch->fd);
            delete watch;
            Ending e;
            e.status = MUSTER_E_LIMIT;
            e.text = "no descriptor left to watch it";
            alive->duplex().end(std::move(e));
            return;
        }
        watch->poll.data = watch;
        {
            const std::lock_guard guard(lock_);
            watches_[watch->stream] = watch;
        }
        uv_poll_start(&watch->poll, UV_READABLE, [](uv_poll_t *handle, int, int) {
            auto *w = static_cast<Watch *>(handle->data);
            uint64_t count;
            [[maybe_unused]] const ssize_t got = ::read(w->fd, &count, sizeof count); // libuv's poll is level-triggered
            Ref<Stream> stream;
            {
                const std::lock_guard guard(w->part->lock_);
                if (w->stream != nullptr && w->stream->try_retain()) stream = Ref<Stream>::adopt(w->stream);
            }
            if (!stream) return;
            stream->wake_reader();
            stream->wake_writer();
        });
        alive->wake_reader(); // what was written before the watch began
        alive->wake_writer();
    });
}

bool StreamsOfContext::drained() noexcept {
    std::vector<Ref<Stream>> alive;
    {
        const std::lock_guard guard(lock_);
        for (Stream *s = first_; s != nullptr; s = s->next_)
            if (s->try_retain()) alive.push_back(Ref<Stream>::adopt(s));
    }
    for (const Ref<Stream> &s : alive)
        if (!s->drained()) return false;
    return true;
}

void StreamsOfContext::stop() noexcept {
    std::vector<Ref<Stream>> alive;
    std::vector<Watch *> watches;
    {
        const std::lock_guard guard(lock_);
        stopped_ = true;
        for (Stream *s = first_; s != nullptr; s = s->next_)
            if (s->try_retain()) alive.push_back(Ref<Stream>::adopt(s));
        for (auto &[stream, watch] : watches_) watches.push_back(watch), watch->stream = nullptr;
        watches_.clear();
    }
    for (const Ref<Stream> &s : alive) s->context_closed();
    for (Watch *watch : watches)
        uv_close(reinterpret_cast<uv_handle_t *>(&watch->poll), [](uv_handle_t *handle) {
            auto *w = static_cast<Watch *>(handle->data);
            ::close(w->fd);
            delete w;
        });
}

void Stream::watch_event_fd() noexcept {
    if (event_fd_watched_.exchange(1, std::memory_order_seq_cst) != 0) return;
    StreamsOfContext::of(*context_).watch_event_fd(*this);
}

} // namespace muster
