// SPDX-License-Identifier: MIT
#pragma once
// What all links, listeners and handshakes of a context share: one epoll inside the engine's loop, timers, the list of
// links with their heartbeats, limits, and what the handshake needs to know.
#include "base/fd.hpp"
#include "context/context.hpp"
#include "transport/handshake.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace muster {

class Link;

// Something with a descriptor in the hub's epoll, edge-triggered. The hub keeps it alive from add() to the loop turn
// after remove().
class Pollable {
  public:
    virtual void on_events(uint32_t epoll_events) noexcept = 0; // loop thread
    virtual Object &pollable_object() noexcept = 0;

  protected:
    ~Pollable() = default;
};

// What a thread of the host sleeps on: an epoll that holds an eventfd, both edge-triggered. Descriptors; -1: none.
struct Bell {
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

    // --- descriptors ---
    Result<void> add(int fd, uint32_t epoll_events, Pollable &who);
    void modify(int fd, uint32_t epoll_events, Pollable &who) noexcept; // tells again what is ready
    void remove(int fd, Pollable &who) noexcept;                        // before the descriptor is closed

    // --- timers: loop thread ---
    uint64_t start_timer(int64_t at_ns, std::function<void()> due);
    void stop_timer(uint64_t id) noexcept; // unknown ids are ignored

    // --- links: loop thread ---
    void add_link(Ref<Link> link);
    void remove_link(Link &link) noexcept;
    unsigned char *staging() noexcept { return staging_.get(); } // for receiving on the loop thread
    static constexpr size_t staging_bytes = 256 * 1024;

    // --- links: any thread ---
    void schedule(Link &link) noexcept;   // Link::turn() runs on the loop thread soon; calls merge
    void watch_over(Link &link) noexcept; // Link::idle_tick() runs on the loop thread every few ms until it says enough
    Result<Bell> take_bell() noexcept;    // for a thread that waits on a socket
    void give_bell(Bell bell) noexcept;   // with nothing but its own event in its epoll

    // What must be told when the context closes: returns an id for forget_closing(). Loop thread.
    uint64_t on_closing(std::function<void()> run);
    void forget_closing(uint64_t id) noexcept;

    // ContextPart
    void close() noexcept override;
    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    struct Loop; // libuv's handles
    void begin() noexcept;
    void serve_descriptors() noexcept;
    void serve_timers() noexcept;
    void serve_scheduled() noexcept;
    void arm_timer() noexcept;
    void sweep() noexcept;
    void tick() noexcept;
    void idle_tick() noexcept;
    void start_ticking();

    Context &context_;
    Error broken_;
    Fd epoll_;
    Loop *loop_ = nullptr; // freed by libuv's close callbacks
    std::atomic<bool> closing_{false};

    std::mutex lock_; // guards what follows, up to the next group
    std::vector<Object *> graveyard_;
    std::vector<Ref<Link>> scheduled_, watched_over_;
    std::vector<Bell> bells_;
    std::atomic<bool> sweeping_{false}, idle_ticking_{false};

    // loop thread
    std::map<std::pair<int64_t, uint64_t>, std::function<void()>> timers_;
    std::map<uint64_t, int64_t> timer_at_;
    std::map<uint64_t, std::function<void()>> closers_;
    std::vector<Ref<Link>> links_;
    uint64_t next_id_ = 1;
    bool ticking_ = false, stopped_ = false;
    int64_t tick_ns_ = 0, last_tick_ = 0;
    std::unique_ptr<unsigned char[]> staging_;
};

} // namespace muster
