// SPDX-License-Identifier: MIT
#pragma once
// State that all links, listeners and handshakes of a context share: the list of links with their heartbeats, limits,
// and the inputs of the handshake. Their descriptors, timers and tasks are on the context's loop.
//
// Their nodes there are part of themselves (tasks, timers, watches, places in lists): when memory has run out links
// still end, and their waiters are notified.
#include "base/fd.hpp"
#include "base/list.hpp"
#include "context/context.hpp"
#include "transport/handshake.hpp"

#include <atomic>
#include <memory>
#include <mutex>

namespace muster {

class Link;

struct AllLinks; // the list every link is in

// Once in a while every link is examined. A value.
struct Tick {
    int64_t now_ns, last_ns, next_ns; // of this one, the one before and the next one
    bool late;                        // this process was stopped, or busy: silence proves nothing
};

// The descriptors on which a thread of the host sleeps: an epoll that holds an eventfd, both edge-triggered; -1: none.
struct Notifier {
    int epoll = -1, event = -1;
};

// Any thread, unless a member says otherwise.
class Hub final : public ContextPart {
  public:
    static Hub &of(Context &context);
    explicit Hub(Context &context);
    ~Hub() override;

    Context &context() const noexcept { return context_; }
    const SecretKey secret;
    const HostIdentity host;
    // Fails when descriptors or random bytes ran out as the hub was made, or the context is closing.
    Result<void> usable() const noexcept;

    // --- descriptors, edge-triggered: see Loop::watch() ---
    Result<void> add(int fd, uint32_t epoll_events, Watch &watch) noexcept;
    void modify(int fd, uint32_t epoll_events, Watch &watch) noexcept;
    void remove(int fd, Watch &watch) noexcept { context_.loop().unwatch(watch, fd); }

    // --- timers: loop thread ---
    void start_timer(TimerNode &timer, int64_t at_ns) noexcept { context_.loop().start_timer(timer, at_ns); }
    void stop_timer(TimerNode &timer) noexcept { context_.loop().stop_timer(timer); }

    // --- links: loop thread ---
    void add_link(Link &link) noexcept; // kept until remove_link()
    void remove_link(Link &link) noexcept;
    unsigned char *staging() noexcept { return staging_.get(); } // for receiving on the loop thread
    static constexpr size_t staging_bytes = 256 * 1024;

    // --- links: any thread ---
    Result<Notifier> take_notifier() noexcept;      // for a thread that waits on a socket
    void give_notifier(Notifier notifier) noexcept; // with nothing but its own event in its epoll

    // ContextPart
    void close() noexcept override;
    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    void tick() noexcept;

    Context &context_;
    Error broken_;
    std::atomic<bool> closing_{false};

    std::mutex lock_; // guards the members below, up to the next group
    static constexpr size_t max_spare_notifiers = 64;
    Notifier notifiers_[max_spare_notifiers];
    size_t notifier_count_ = 0;

    // loop thread
    Timer<Hub, &Hub::tick> ticks_{*this};
    List<Link, AllLinks> links_;
    // The time between ticks: short while a link is in use, longer while all are idle.
    int64_t short_interval_ns_ = 0, long_interval_ns_ = 0, interval_ns_ = 0;
    int64_t last_tick_ns_ = 0;
    bool in_use_ = true; // a link was in use before the last tick
    std::unique_ptr<unsigned char[]> staging_;
};

} // namespace muster
