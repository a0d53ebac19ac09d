// SPDX-License-Identifier: MIT
// Readiness of watched objects: sources and their descriptors.
#include "queue/state.hpp"

#include <cerrno>
#include <sys/epoll.h>

namespace muster {

namespace {

epoll_event event_of(int fd, uint32_t generation, uint32_t events) noexcept {
    epoll_event event{};
    event.events = events | EPOLLET;
    event.data.u64 = uint64_t{generation} << 32 | static_cast<uint32_t>(fd);
    return event;
}

} // namespace

void Queue::State::link(Source &source, uint32_t events) noexcept {
    const bool linked = source.pending_ != 0;
    source.pending_ |= events;
    if (linked) return;
    source.order_ = order++;
    source.next_ = nullptr;
    source.prev_ = ready_last;
    (ready_last ? ready_last->next_ : ready_first) = &source;
    ready_last = &source;
    ready_count++;
}

void Queue::State::unlink(Source &source) noexcept {
    if (source.pending_ == 0) return;
    source.pending_ = 0;
    (source.prev_ ? source.prev_->next_ : ready_first) = source.next_;
    (source.next_ ? source.next_->prev_ : ready_last) = source.prev_;
    source.next_ = source.prev_ = nullptr;
    ready_count--;
}

void Queue::State::remember(Source &source) noexcept {
    for (const Source *known : recent)
        if (known == &source) return;
    recent[next_recent++ % recent_sources] = &source;
}

void Queue::attach(Source &source, uint64_t tag) noexcept {
    const std::lock_guard hold(state_->lock);
    source.tag_ = tag;
    source.attached_ = true;
}

void Queue::raise(Source &source, uint32_t events) noexcept {
    State &s = *state_;
    std::unique_lock hold(s.lock);
    if (events == 0 || !source.attached_ || s.closed) return;
    s.link(source, events);
    const bool should_signal = s.parking.pushed();
    hold.unlock();
    if (should_signal) s.signal();
}

void Queue::detach(Source &source) noexcept {
    State &s = *state_;
    std::unique_lock hold(s.lock);
    source.attached_ = false;
    s.unlink(source);
    for (Source *&recent : s.recent)
        if (recent == &source) recent = nullptr; // it is not looked at again
    for (auto it = s.watches.begin(); it != s.watches.end();) {
        if (it->second.source != &source) {
            ++it;
            continue;
        }
        epoll_ctl(s.inner.get(), EPOLL_CTL_DEL, it->first, nullptr);
        it = s.watches.erase(it);
    }
    const Uncancelled guard;
    s.detaching.fetch_add(1, std::memory_order_relaxed);
    s.idle.wait(hold, [&] { return source.busy_ == 0; });
    s.detaching.fetch_sub(1, std::memory_order_relaxed);
    s.unlink(source); // on_fd() may have reported events
}

Result<void> Queue::add_fd(Source &source, int fd, uint32_t epoll_events) noexcept {
    State &s = *state_;
    const std::lock_guard hold(s.lock);
    try {
        s.watches[fd] = {&source, ++s.generation};
    } catch (const std::bad_alloc &) {
        return Error::make(MUSTER_E_NOMEM, "watch a descriptor: out of memory");
    }
    epoll_event event = event_of(fd, s.generation, epoll_events);
    if (epoll_ctl(s.inner.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    const int why = errno;
    s.watches.erase(fd);
    return Error::from_errno(why, MUSTER_OK, "watch a descriptor");
}

bool Queue::modify_fd(Source &source, int fd, uint32_t epoll_events) noexcept {
    State &s = *state_;
    const std::lock_guard hold(s.lock);
    const auto found = s.watches.find(fd);
    if (found == s.watches.end() || found->second.source != &source) return false;
    epoll_event event = event_of(fd, found->second.generation, epoll_events);
    return epoll_ctl(s.inner.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Queue::remove_fd(Source &source, int fd) noexcept {
    State &s = *state_;
    const std::lock_guard hold(s.lock);
    const auto found = s.watches.find(fd);
    if (found == s.watches.end() || found->second.source != &source) return;
    epoll_ctl(s.inner.get(), EPOLL_CTL_DEL, fd, nullptr);
    s.watches.erase(found);
}

void Queue::State::serve_fd(std::unique_lock<std::mutex> &hold, uint64_t key, uint32_t events) noexcept {
    const auto found = watches.find(static_cast<int>(static_cast<uint32_t>(key)));
    if (found == watches.end() || found->second.generation != key >> 32) return; // an event of a watch that is over
    Source &source = *found->second.source;
    if (!source.owner().try_retain()) return; // in its destructor, about to detach
    Ref<Object> owner = Ref<Object>::adopt(&source.owner());
    source.busy_++;
    hold.unlock();
    const uint32_t ready = source.on_fd(events);
    hold.lock();
    if (ready != 0 && source.attached_ && !closed) link(source, ready);
    if (--source.busy_ == 0) idle.notify_all();
    hold.unlock();
    owner.reset(); // may be the last reference, which detaches
    hold.lock();
}

} // namespace muster
