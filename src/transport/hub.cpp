// SPDX-License-Identifier: MIT
#include "transport/hub.hpp"

#include "base/boundary.hpp"
#include "base/uncancelled.hpp"
#include "transport/link.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace muster {

Hub &Hub::of(Context &context) {
    static const char key = 0;
    auto &hub = static_cast<Hub &>(
        context.part(&key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Hub>(c); }));
    return hub;
}

// libsodium is initialised before its first use: it chooses its functions for this processor then, and contexts of
// other threads may use it already.
static SecretKey first_key(const ContextSettings &settings) noexcept {
    start_crypto();
    return secret_key(settings.secret.data(), settings.secret.size());
}

Hub::Hub(Context &context) : secret(first_key(context.settings)), host(HostIdentity::own()), context_(context) {
    if (!start_crypto()) broken_ = Error::make(MUSTER_E_SYSTEM, "the kernel gives no random bytes");
    staging_.reset(new unsigned char[staging_bytes]);
    const ContextSettings &s = context.settings;
    int64_t longest = s.silent_ns / 4;
    if (s.dead_ns > 0) longest = std::min(longest, s.dead_ns / 4);
    short_interval_ns_ = std::max<int64_t>(std::min(s.heartbeat_ns / 2, longest), 2'000'000);
    long_interval_ns_ = std::max(std::min(s.heartbeat_ns, longest), short_interval_ns_);
}

Hub::~Hub() {
    for (size_t i = 0; i < notifier_count_; i++) ::close(notifiers_[i].epoll), ::close(notifiers_[i].event);
}

Result<void> Hub::usable() const noexcept {
    if (broken_.status < 0) return broken_;
    // relaxed: a handshake that begins a moment later is ended by stop().
    if (closing_.load(std::memory_order_relaxed) || context_.closed())
        return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

Result<void> Hub::add(int fd, uint32_t epoll_events, Watch &watch) noexcept {
    return context_.loop().watch(watch, fd, epoll_events | EPOLLET);
}

void Hub::modify(int fd, uint32_t epoll_events, Watch &watch) noexcept {
    context_.loop().modify(watch, fd, epoll_events | EPOLLET);
}

// ---- links ----------------------------------------------------------------------------------------------------------

void Hub::add_link(Link &link) noexcept {
    link.retain();
    links_.push_back(link);
    if (ticks_.running()) return;
    last_tick_ns_ = now_ns();
    interval_ns_ = short_interval_ns_;
    in_use_ = true;
    start_timer(ticks_, last_tick_ns_ + interval_ns_);
}

void Hub::remove_link(Link &link) noexcept {
    if (!links_.holds(link)) return;
    links_.remove(link);
    link.release(); // may be the last reference
}

// A link that is in use rarely needs a heartbeat if it is examined twice per heartbeat interval. An idle one sends one
// in each interval, and is examined only then: the timer wakes an idle process half as often.
void Hub::tick() noexcept {
    const int64_t now = now_ns(), last = std::exchange(last_tick_ns_, now);
    // A process that was stopped, or a host that did not drive its engine, has no right to call others silent.
    const bool late = now - last > interval_ns_ + 3 * short_interval_ns_;
    interval_ns_ = in_use_ ? short_interval_ns_ : long_interval_ns_;
    const Tick tick{now, last, now + interval_ns_, late};
    in_use_ = false;
    for (Ref<Link> link(links_.begin_walk()); link; link = Ref<Link>(links_.next()))
        if (link->tick(tick)) in_use_ = true;
    if (!links_.empty()) start_timer(ticks_, tick.next_ns);
}

Result<Notifier> Hub::take_notifier() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (notifier_count_ != 0) return notifiers_[--notifier_count_];
    }
    Fd epoll(epoll_create1(EPOLL_CLOEXEC)), event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLET;
    if (!epoll || !event || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &wanted) != 0)
        return Error::from_errno(errno, MUSTER_OK, "wait on a socket");
    return Notifier{epoll.detach(), event.detach()};
}

void Hub::give_notifier(Notifier notifier) noexcept {
    if (notifier.event < 0) return;
    {
        const std::lock_guard hold(lock_);
        if (notifier_count_ < max_spare_notifiers) {
            notifiers_[notifier_count_++] = notifier;
            return;
        }
    }
    uncancelled::close(notifier.epoll);
    uncancelled::close(notifier.event);
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Hub::close() noexcept {
    closing_.store(true, std::memory_order_relaxed);
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
}

} // namespace muster
