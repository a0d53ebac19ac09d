// SPDX-License-Identifier: MIT
#pragma once
// One open store: its requests, its leases, and the session by which it repeats requests that were not answered.
#include "watch.hpp"

#include <muster/store_serve.h>

#include <map>
#include <set>

namespace etcd {

class Task;

// A write leaves a mark, a key of this session that counts the writes of one slot and is deleted with the lease of the
// session. Each transaction has the condition that the mark has a certain count, and increments it: so it can be sent
// again when there was no answer, is applied at most once, and the mark says whether it was.
struct Slot {
    std::string key;
    uint64_t writes = 0;
};

class Session {
  public:
    explicit Session(Client &client, std::string marks) : client_(client), marks_(std::move(marks)) {}
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    bool ready() const noexcept { return lease_ != 0 && granted_; }
    void wait(Task &task);
    void forget(Task &task) noexcept { waiting_.erase(&task); }
    uint64_t lease() const noexcept { return lease_; }
    std::unique_ptr<Slot> take_slot();
    void give_back(std::unique_ptr<Slot> slot, uint64_t lease); // the result of its last write is known
    // Does the session still exist? Then `then(true)`; otherwise there will be a new one.
    void look(std::function<void(bool)> then);
    void end(std::function<void()> then);
    void stop_keeping() noexcept;
    void over() noexcept; // it is gone

  private:
    static constexpr int64_t ttl_seconds = 60;
    void grant();
    void keep();
    Client &client_;
    const std::string marks_;
    uint64_t lease_ = 0, next_slot_ = 0;
    bool granted_ = false, granting_ = false;
    muster_timer *timer_ = nullptr;
    std::vector<std::unique_ptr<Slot>> slots_; // free ones
    std::set<Task *> waiting_;
};

// Loop thread only.
class Store {
  public:
    Store(class Plugin &plugin, uint64_t open_request, Url url);
    ~Store();
    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;

    void request(uint64_t request, const muster_store_request &what);
    void cancel(uint64_t request) noexcept;
    void close() noexcept; // it has no handle any more, and ends by itself

    Client &client() noexcept { return client_; }
    Watches &watches() noexcept { return watches_; }
    Session &session() noexcept { return session_; }
    const std::string &root() const noexcept { return client_.url().root; }
    // Keys that begin so, without the store's own.
    Range range_of(std::string_view prefix) const;
    const muster_host *host() const noexcept { return client_.host(); }
    void fail(uint64_t request, const Failure &why, uint32_t op = UINT32_MAX) const noexcept;
    void drop(Task &task) noexcept;
    Task *find(uint64_t request) noexcept;

  private:
    void open();
    void grant(uint64_t request, uint64_t lease, int64_t ttl_ns);
    void keep(uint64_t request, uint64_t lease);
    void end(uint64_t request, uint64_t lease);
    void leave() noexcept;

    Plugin &plugin_;
    const uint64_t id_;
    Client client_;
    Watches watches_;
    Session session_;
    std::map<uint64_t, std::unique_ptr<Task>> tasks_;
    muster_timer *leaving_ = nullptr;
};

// The plug-in in one context.
class Plugin {
  public:
    explicit Plugin(const muster_host *host) noexcept : host_(host) {}
    const muster_host *host() const noexcept { return host_; }
    void request(uint64_t request, const muster_store_request &what);
    void cancel(uint64_t request) noexcept;
    void close(uint64_t store) noexcept;
    void drop(uint64_t store) noexcept { stores_.erase(store); }

  private:
    const muster_host *const host_;
    std::map<uint64_t, std::unique_ptr<Store>> stores_;
};

} // namespace etcd
