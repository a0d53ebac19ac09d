// SPDX-License-Identifier: MIT
#pragma once
// Changes of a range of keys, as reported by a stream of etcd, and the latest of them for later requests.
#include "client.hpp"

namespace etcd {

struct Range {
    std::string begin, end; // in the notation of etcd: a zero byte: no end
    bool holds(const std::string &key) const noexcept {
        return key >= begin && (end == std::string(1, '\0') || key < end);
    }
    bool covers(const Range &other) const noexcept {
        return begin <= other.begin &&
               (end == std::string(1, '\0') || (other.end != std::string(1, '\0') && other.end <= end));
    }
    bool operator==(const Range &) const = default;
};

struct Change {
    uint64_t revision;
    bool there;
    std::string key, value;
};

// A task that waits for changes of a range after a revision.
class Watcher {
  public:
    virtual ~Watcher() = default;
    // There are changes, or the stream has begun; the watcher leaves if it needs no further ones.
    virtual void changed() = 0;
    virtual void compacted(uint64_t first) = 0;       // the changes after its revision were compacted; it has left
    virtual void unreachable(const Failure &why) = 0; // it has left
    Range range;
    uint64_t behind = 0;
    class Watch *stream = nullptr; // that it is in
};

// One stream. Loop thread only.
class Watch {
  public:
    Watch(class Watches &all, Range range, uint64_t behind);
    ~Watch();
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;

    const Range &range() const noexcept { return range_; }
    // All changes after this revision are stored here, up to at(): there are no later ones.
    uint64_t floor() const noexcept { return floor_; }
    uint64_t at() const noexcept { return at_; }
    uint64_t begun_at() const noexcept { return begun_at_; } // the store's, as the stream began; 0: not yet
    const std::deque<Change> &changes() const noexcept { return changes_; }
    bool idle() const noexcept { return watchers_.empty(); }

  private:
    friend class Watches;
    void begin();
    void on_line(std::string_view line);
    void ended(const Failure &why);
    void begin_again(const Failure &why);
    void notify_tasks();
    void stop_timers() noexcept;

    static constexpr size_t max_changes = 65536, max_bytes = 4 << 20;
    Watches &all_;
    const Range range_;
    uint64_t floor_, at_, begun_at_ = 0;
    std::deque<Change> changes_;
    size_t bytes_ = 0;
    std::set<Watcher *> watchers_;
    Transfer *stream_ = nullptr;
    Call *token_ = nullptr; // the request for a token
    muster_timer *again_ = nullptr, *idle_ = nullptr;
    int64_t begun_ns_ = 0;     // the latest stream
    int64_t lost_ns_ = 0;      // since when there is no stream; 0: there is one
    bool is_retrying_ = false; // the next attempt follows a pause
    muster::BackOff back_off_{80 * ms, 500 * ms};
};

// The streams of a store. Loop thread only.
class Watches {
  public:
    Watches(Client &client, Range everything) : client_(client), everything_(std::move(everything)) {}
    // Waits for changes of watcher.range behind watcher.behind.
    Watch &enter(Watcher &watcher);
    void leave(Watcher &watcher) noexcept;

  private:
    friend class Watch;
    static constexpr size_t max_streams = 16;
    void drop(Watch &watch) noexcept;
    Client &client_;
    const Range everything_;
    std::vector<std::unique_ptr<Watch>> watches_;
};

} // namespace etcd
