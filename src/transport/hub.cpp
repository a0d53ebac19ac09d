// SPDX-License-Identifier: MIT
#include "transport/hub.hpp"

#include "base/boundary.hpp"

#include "base/uncancelled.hpp"
#include "context/uv_memory.hpp"
#include "transport/link.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

namespace muster {

namespace {
constexpr int64_t idle_tick_ns = 10'000'000;
} // namespace

struct Hub::Loop {
    uv_poll_t poll{};
    uv_timer_t timer{};
    int open = 0; // handles
};

Hub &Hub::of(Context &context) {
    static const char key = 0;
    auto &hub = static_cast<Hub &>(
        context.part(&key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Hub>(c); }));
    return hub;
}

Hub::Hub(Context &context)
    : secret(secret_key(context.settings.secret.data(), context.settings.secret.size())), host(HostIdentity::own()),
      context_(context) {
    if (!start_crypto()) broken_ = Error::make(MUSTER_E_SYSTEM, "the kernel gives no random bytes");
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    // The next call that needs a hub makes another one.
    if (!epoll_) throw Failure(Error::from_errno(errno, MUSTER_OK, "start the transports: epoll"));
    staging_.reset(new unsigned char[staging_bytes]);
    loop_ = std::make_unique<Loop>();
    const ContextSettings &s = context.settings;
    tick_ns_ = std::min(s.heartbeat_ns / 2, s.silent_ns / 4);
    if (s.dead_ns > 0) tick_ns_ = std::min(tick_ns_, s.dead_ns / 4);
    tick_ns_ = std::max<int64_t>(tick_ns_, 2'000'000);
    begin_.post(context);
}

Hub::~Hub() {
    for (size_t i = 0; i < bell_count_; i++) ::close(bells_[i].epoll), ::close(bells_[i].event);
}

Result<void> Hub::usable() const noexcept {
    if (broken_.status < 0) return broken_;
    if (const int why = blind_.load(std::memory_order_relaxed); why != 0)
        return Error::from_errno(why, MUSTER_OK, "start the transports");
    // relaxed: what begins a moment later is ended by stop().
    if (closing_.load(std::memory_order_relaxed) || context_.closed())
        return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

void Hub::begin() noexcept {
    loop_->poll.data = loop_->timer.data = this;
    uv_timer_init(context_.loop(), &loop_->timer);
    loop_->open = 1;
    begun_ = true;
    if (context_.wait_first(this, epoll_.get())) return arm_timer();
    int rc = prepare_poll(context_.loop(), &loop_->poll, epoll_.get());
    if (rc == 0) {
        loop_->open = 2;
        rc = uv_poll_start(&loop_->poll, UV_READABLE,
                           [](uv_poll_t *handle, int, int) { static_cast<Hub *>(handle->data)->serve_descriptors(); });
    }
    if (rc != 0) blind_.store(-rc, std::memory_order_relaxed);
    arm_timer();
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

Result<void> Hub::add(int fd, uint32_t epoll_events, Pollable &who) noexcept {
    epoll_event event{};
    event.events = epoll_events | EPOLLET;
    event.data.ptr = &who;
    who.pollable_object().retain();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    const int why = errno;
    who.pollable_object().release();
    return Error::from_errno(why, MUSTER_OK, "watch a socket");
}

void Hub::modify(int fd, uint32_t epoll_events, Pollable &who) noexcept {
    epoll_event event{};
    event.events = epoll_events | EPOLLET;
    event.data.ptr = &who;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Hub::remove(int fd, Pollable &who) noexcept {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    // The loop may hold an event of it already: it lives on until that turn is over.
    {
        const std::lock_guard hold(lock_);
        if (who.removed_++ == 0) who.next_removed_ = std::exchange(removed_, &who);
    }
    if (!sweep_.post(context_)) sweep();
}

void Hub::sweep() noexcept {
    for (;;) {
        Object *object;
        uint32_t times;
        {
            const std::lock_guard hold(lock_);
            if (removed_ == nullptr) return;
            Pollable &gone = *removed_;
            removed_ = gone.next_removed_;
            object = &gone.pollable_object();
            times = std::exchange(gone.removed_, 0);
        }
        while (times-- != 0) object->release();
    }
}

void Hub::on_ready(void *key, uint32_t epoll_events) noexcept {
    static_cast<Pollable *>(key)->on_events(epoll_events);
}

void Hub::serve_descriptors() noexcept {
    epoll_event events[64];
    for (int round = 0; round < 4; round++) {
        const int n = epoll_wait(epoll_.get(), events, static_cast<int>(std::size(events)), 0);
        for (int i = 0; i < n; i++) static_cast<Pollable *>(events[i].data.ptr)->on_events(events[i].events);
        if (n < static_cast<int>(std::size(events))) return;
    }
}

// ---- timers ---------------------------------------------------------------------------------------------------------

void Hub::start_timer(TimerNode &timer, int64_t at_ns) noexcept {
    if (stopped_) return;
    if (timers_.start(timer, at_ns)) arm_timer();
}

void Hub::arm_timer() noexcept {
    if (!begun_ || stopped_ || timers_.empty()) return;
    const int64_t left = timers_.next_ns() - now_ns();
    uv_update_time(context_.loop());
    uv_timer_start(
        &loop_->timer, [](uv_timer_t *handle) { static_cast<Hub *>(handle->data)->serve_timers(); },
        left <= 0 ? 0 : static_cast<uint64_t>((left + 999'999) / 1'000'000), 0);
}

void Hub::serve_timers() noexcept {
    timers_.serve(now_ns());
    arm_timer();
}

// ---- links ----------------------------------------------------------------------------------------------------------

void Hub::add_link(Link &link) noexcept {
    link.retain();
    links_.push_back(link);
    if (ticks_.running()) return;
    last_tick_ = now_ns();
    start_timer(ticks_, last_tick_ + tick_ns_);
}

void Hub::remove_link(Link &link) noexcept {
    if (!links_.holds(link)) return;
    links_.remove(link);
    link.release(); // may be the last reference
}

void Hub::tick() noexcept {
    const int64_t now = now_ns();
    // A process that was stopped, or a host that did not drive its engine, has no right to call others silent.
    const bool late = now - std::exchange(last_tick_, now) > 4 * tick_ns_;
    for (Ref<Link> link(links_.begin_walk()); link; link = Ref<Link>(links_.next())) link->tick(now, late);
    if (!links_.empty()) start_timer(ticks_, now + tick_ns_);
}

void Hub::watch_over(Link &link) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (near_over_) return;
        link.retain();
        near_.push_back(link);
    }
    // acq_rel: pairs with idle_tick(), which looks at the list once more after it has taken the flag down.
    if (!idle_ticking_.exchange(true, std::memory_order_acq_rel)) start_idle_ticks_.post(context_);
}

void Hub::start_idle_ticks() noexcept {
    start_timer(idle_ticks_, now_ns() + idle_tick_ns);
}

void Hub::idle_tick() noexcept {
    List<Link, NearLinks> now, later;
    {
        const std::lock_guard hold(lock_);
        now.swap(near_);
    }
    while (Link *const link = now.pop_front()) {
        if (link->idle_tick())
            later.push_back(*link);
        else
            link->release();
    }
    {
        const std::lock_guard hold(lock_);
        while (Link *const link = later.pop_front()) near_.push_back(*link);
        if (near_.empty()) {
            idle_ticking_.store(false, std::memory_order_release);
            return;
        }
    }
    start_idle_ticks();
}

Result<Bell> Hub::take_bell() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (bell_count_ != 0) return bells_[--bell_count_];
    }
    Fd epoll(epoll_create1(EPOLL_CLOEXEC)), event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLET;
    if (!epoll || !event || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &wanted) != 0)
        return Error::from_errno(errno, MUSTER_OK, "wait on a socket");
    return Bell{epoll.detach(), event.detach()};
}

void Hub::give_bell(Bell bell) noexcept {
    if (bell.event < 0) return;
    {
        const std::lock_guard hold(lock_);
        if (bell_count_ < most_spare_bells) {
            bells_[bell_count_++] = bell;
            return;
        }
    }
    uncancelled::close(bell.epoll);
    uncancelled::close(bell.event);
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Hub::on_closing(ClosingNode &who) noexcept {
    if (who.keep()) closing_list_.push_back(who);
}

void Hub::forget_closing(ClosingNode &who) noexcept {
    if (!closing_list_.holds(who)) return;
    closing_list_.remove(who);
    who.let_go();
}

void Hub::close() noexcept {
    closing_.store(true, std::memory_order_relaxed);
    while (ClosingNode *const who = closing_list_.pop_front()) {
        who->call();
        who->let_go();
    }
}

bool Hub::drained() noexcept {
    bool all = true;
    for (Ref<Link> link(links_.begin_walk()); link; link = Ref<Link>(links_.next())) all = link->wind_down() && all;
    return all;
}

void Hub::stop() noexcept {
    close();
    for (Ref<Link> link(links_.first()); link; link = Ref<Link>(links_.first())) {
        link->stop();
        remove_link(*link);
    }
    stopped_ = true;
    timers_.stop_all();
    List<Link, NearLinks> near;
    {
        const std::lock_guard hold(lock_);
        near.swap(near_);
        near_over_ = true;
    }
    while (Link *const link = near.pop_front()) link->release();
    if (begun_) {
        context_.wait_first(nullptr, -1);
        Loop *const loop = loop_.release();
        const auto closed = [](uv_handle_t *handle) {
            auto *loop = static_cast<Loop *>(handle->data);
            if (--loop->open == 0) delete loop;
        };
        loop->poll.data = loop->timer.data = loop;
        if (loop->open == 2) uv_close(reinterpret_cast<uv_handle_t *>(&loop->poll), closed);
        uv_close(reinterpret_cast<uv_handle_t *>(&loop->timer), closed);
    }
    sweep();
}

} // namespace muster
