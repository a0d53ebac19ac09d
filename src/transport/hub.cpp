// SPDX-License-Identifier: MIT
#include "transport/hub.hpp"

#include "transport/link.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <uv.h>

namespace muster {

namespace {
constexpr int64_t idle_tick_ns = 10'000'000;
constexpr size_t most_spare_bells = 64;
} // namespace

struct Hub::Loop {
    uv_poll_t poll;
    uv_timer_t timer;
    int open = 2;
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
    if (!epoll_) broken_ = Error::from_errno(errno, MUSTER_OK, "start the transports: epoll");
    staging_.reset(new unsigned char[staging_bytes]);
    const ContextSettings &s = context.settings;
    tick_ns_ = std::min(s.heartbeat_ns / 2, s.silent_ns / 4);
    if (s.dead_ns > 0) tick_ns_ = std::min(tick_ns_, s.dead_ns / 4);
    tick_ns_ = std::max<int64_t>(tick_ns_, 2'000'000);
    if (epoll_) context.post([this] { begin(); });
}

Hub::~Hub() {
    for (const Bell &bell : bells_) ::close(bell.epoll), ::close(bell.event);
}

Result<void> Hub::usable() const noexcept {
    if (broken_.status < 0) return broken_;
    // relaxed: what begins a moment later is ended by stop().
    if (closing_.load(std::memory_order_relaxed) || context_.closed())
        return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

void Hub::begin() noexcept {
    loop_ = new Loop;
    loop_->poll.data = loop_->timer.data = this;
    uv_timer_init(context_.loop(), &loop_->timer);
    if (uv_poll_init(context_.loop(), &loop_->poll, epoll_.get()) == 0)
        uv_poll_start(&loop_->poll, UV_READABLE,
                      [](uv_poll_t *handle, int, int) { static_cast<Hub *>(handle->data)->serve_descriptors(); });
    arm_timer();
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

Result<void> Hub::add(int fd, uint32_t epoll_events, Pollable &who) {
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
        graveyard_.push_back(&who.pollable_object());
    }
    if (sweeping_.exchange(true, std::memory_order_acq_rel)) return;
    if (!context_.post([this] { sweep(); })) sweep();
}

void Hub::sweep() noexcept {
    // acq_rel: pairs with remove(); what was buried before it saw `true` is in the list by now.
    sweeping_.exchange(false, std::memory_order_acq_rel);
    std::vector<Object *> gone;
    {
        const std::lock_guard hold(lock_);
        gone.swap(graveyard_);
    }
    for (Object *object : gone) object->release();
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

uint64_t Hub::start_timer(int64_t at_ns, std::function<void()> due) {
    const uint64_t id = next_id_++;
    timers_.emplace(std::make_pair(at_ns, id), std::move(due));
    timer_at_[id] = at_ns;
    if (timers_.begin()->first.second == id) arm_timer();
    return id;
}

void Hub::stop_timer(uint64_t id) noexcept {
    const auto found = timer_at_.find(id);
    if (found == timer_at_.end()) return;
    timers_.erase({found->second, id});
    timer_at_.erase(found);
}

void Hub::arm_timer() noexcept {
    if (loop_ == nullptr || stopped_ || timers_.empty()) return;
    const int64_t left = timers_.begin()->first.first - now_ns();
    uv_update_time(context_.loop());
    uv_timer_start(
        &loop_->timer, [](uv_timer_t *handle) { static_cast<Hub *>(handle->data)->serve_timers(); },
        left <= 0 ? 0 : static_cast<uint64_t>((left + 999'999) / 1'000'000), 0);
}

void Hub::serve_timers() noexcept {
    const int64_t now = now_ns();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
        auto due = std::move(timers_.begin()->second);
        timer_at_.erase(timers_.begin()->first.second);
        timers_.erase(timers_.begin());
        due();
    }
    arm_timer();
}

// ---- links ----------------------------------------------------------------------------------------------------------

void Hub::add_link(Ref<Link> link) {
    links_.push_back(std::move(link));
    start_ticking();
}

void Hub::remove_link(Link &link) noexcept {
    const auto found = std::find_if(links_.begin(), links_.end(), [&](const Ref<Link> &l) { return l.get() == &link; });
    if (found == links_.end()) return;
    const Ref<Link> last = std::move(*found); // may be the last reference: gone after the list is whole again
    *found = std::move(links_.back());
    links_.pop_back();
}

void Hub::start_ticking() {
    if (std::exchange(ticking_, true)) return;
    last_tick_ = now_ns();
    start_timer(last_tick_ + tick_ns_, [this] { tick(); });
}

void Hub::tick() noexcept {
    const int64_t now = now_ns();
    // A process that was stopped, or a host that did not drive its engine, has no right to call others silent.
    const bool late = now - std::exchange(last_tick_, now) > 4 * tick_ns_;
    const std::vector<Ref<Link>> links = links_;
    for (const Ref<Link> &link : links) link->tick(now, late);
    if (links_.empty() || stopped_) {
        ticking_ = false;
        return;
    }
    start_timer(now + tick_ns_, [this] { tick(); });
}

void Hub::schedule(Link &link) noexcept {
    bool first;
    {
        const std::lock_guard hold(lock_);
        first = scheduled_.empty();
        scheduled_.emplace_back(&link);
    }
    if (first) context_.post([this] { serve_scheduled(); });
}

void Hub::serve_scheduled() noexcept {
    std::vector<Ref<Link>> links;
    {
        const std::lock_guard hold(lock_);
        links.swap(scheduled_);
    }
    for (const Ref<Link> &link : links) link->turn();
}

void Hub::watch_over(Link &link) noexcept {
    {
        const std::lock_guard hold(lock_);
        watched_over_.emplace_back(&link);
    }
    // acq_rel: pairs with idle_tick(), which looks at the list once more after it has taken the flag down.
    if (idle_ticking_.exchange(true, std::memory_order_acq_rel)) return;
    context_.post([this] { start_timer(now_ns() + idle_tick_ns, [this] { idle_tick(); }); });
}

void Hub::idle_tick() noexcept {
    std::vector<Ref<Link>> links;
    {
        const std::lock_guard hold(lock_);
        links.swap(watched_over_);
    }
    const auto calm = std::remove_if(links.begin(), links.end(), [](const Ref<Link> &l) { return !l->idle_tick(); });
    links.erase(calm, links.end());
    bool more;
    {
        const std::lock_guard hold(lock_);
        watched_over_.insert(watched_over_.end(), links.begin(), links.end());
        more = !watched_over_.empty() && !stopped_;
        if (!more) idle_ticking_.store(false, std::memory_order_release);
    }
    if (more) start_timer(now_ns() + idle_tick_ns, [this] { idle_tick(); });
}

Result<Bell> Hub::take_bell() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (!bells_.empty()) {
            const Bell bell = bells_.back();
            bells_.pop_back();
            return bell;
        }
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
        if (bells_.size() < most_spare_bells) {
            bells_.push_back(bell);
            return;
        }
    }
    ::close(bell.epoll);
    ::close(bell.event);
}

// ---- the end --------------------------------------------------------------------------------------------------------

uint64_t Hub::on_closing(std::function<void()> run) {
    const uint64_t id = next_id_++;
    closers_.emplace(id, std::move(run));
    return id;
}

void Hub::forget_closing(uint64_t id) noexcept {
    closers_.erase(id);
}

void Hub::close() noexcept {
    closing_.store(true, std::memory_order_relaxed);
    while (!closers_.empty()) {
        auto run = std::move(closers_.begin()->second);
        closers_.erase(closers_.begin());
        run();
    }
}

bool Hub::drained() noexcept {
    const std::vector<Ref<Link>> links = links_;
    bool all = true;
    for (const Ref<Link> &link : links) all = link->wind_down() && all;
    return all;
}

void Hub::stop() noexcept {
    close();
    stopped_ = true;
    std::vector<Ref<Link>> links;
    links.swap(links_);
    for (const Ref<Link> &link : links) link->stop();
    links.clear();
    {
        const std::lock_guard hold(lock_);
        links.swap(scheduled_);
        links.insert(links.end(), watched_over_.begin(), watched_over_.end());
        watched_over_.clear();
    }
    links.clear();
    timers_.clear();
    timer_at_.clear();
    if (loop_ != nullptr) {
        const auto closed = [](uv_handle_t *handle) {
            auto *loop = static_cast<Loop *>(handle->data);
            if (--loop->open == 0) delete loop;
        };
        loop_->poll.data = loop_->timer.data = loop_;
        uv_close(reinterpret_cast<uv_handle_t *>(&loop_->poll), closed);
        uv_close(reinterpret_cast<uv_handle_t *>(&loop_->timer), closed);
        loop_ = nullptr;
    }
    sweep();
}

} // namespace muster
