// SPDX-License-Identifier: MIT
#pragma once
// The store of a handle: a prefix and a backend, which keeps the keys in this process or reaches the process that does.
#include "base/fork.hpp"
#include "base/spare_memory.hpp"
#include "store/backend/guard.hpp"
#include "store/backend/operation.hpp"

#include <mutex>
#include <unordered_map>

namespace muster {

class Store;

// The result of withdrawing an operation: it was removed and not applied; it was removed, and may have been applied;
// the store was asked, and withdrawn() or finish() follows; it has ended, or is about to end.
enum class Withdrawn { yes, in_doubt, asked, over };

// Keeps the keys, or reaches the process that does. Any thread.
class StoreBackend : public Object {
  public:
    explicit StoreBackend(Context &context, int64_t grace_ns = 0) : context_(&context), grace_ns_(grace_ns) {}
    Context &context() const noexcept { return *context_; }
    virtual uint32_t capabilities() const noexcept = 0;
    // Requests that the store does not support are refused before they are sent.
    virtual Result<void> allows(const StoreRequest &request) const;
    // Another process or the host answers: a request that does not wait for values takes time, too.
    virtual bool answers_later() const noexcept { return false; }
    // muster_store_config::grace_ns
    int64_t grace_ns() const noexcept { return grace_ns_; }
    // Only the store knows whether the request was applied: it is asked shortly before the deadline, so that its answer
    // arrives by the deadline.
    virtual bool withdraws_ahead(const StoreRequest &) const noexcept { return false; }
    // Must the calling thread itself serve the store? Then it must not wait for it.
    virtual bool would_deadlock() const noexcept { return false; }
    virtual const char *shown() const noexcept { return "the store"; } // for texts
    virtual int64_t min_lease_ns() const noexcept { return 0; }
    // ---- of a store that the process of a client serves, in addition to its other work
    virtual bool hosted() const noexcept { return false; }
    virtual bool served_here() const noexcept { return false; } // by this object
    virtual std::string local_host() const { return {}; }       // this process's address as the store sees it
    // The store counts as lost after the first time without a message and the second without a connection.
    virtual void watch_closely(int64_t, int64_t) noexcept {}
    // Does the backend end its operations when the context closes? Then the operations need not do so.
    virtual bool ends_with_context() const noexcept { return false; }
    // Calls finish() of the operation once, perhaps before it returns. False: not yet; the backend keeps the operation
    // until then.
    virtual bool submit(StoreOperation &operation) noexcept = 0;
    // Removes a waiting operation; `missing`: the values for which it waits.
    virtual Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept = 0;
    // After Withdrawn::asked, when no answer has followed in time. True: it was removed, and no answer follows.
    virtual bool forget(StoreOperation &) noexcept { return false; }
    // Where the thread that waits for an operation sleeps; as Context::sleep().
    virtual Status sleep(StoreOperation &, Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
        return context_->sleep(signal, seen, deadline);
    }
    virtual void woken() noexcept {} // such a signal was notified

    // submit() grants leases. keep() sends a renewal; MUSTER_E_STALE: the lease is known to have ended.
    virtual Status keep(uint64_t lease, int64_t ttl_ns) noexcept = 0;
    // The lease is no longer renewed, and expires.
    virtual void abandon(uint64_t lease, int64_t ttl_ns) noexcept = 0;

    SpareMemory &spare() noexcept { return spare_; } // of operations
    // Operations that the host may name.
    uint64_t enlist(StoreOperation &operation);
    void delist(uint64_t number) noexcept;
    Ref<StoreOperation> find(uint64_t number) noexcept;
    std::vector<Ref<StoreOperation>> awaited_with(const Store &store);

  protected:
    ~StoreBackend() override = default;

  private:
    const Ref<Context> context_;
    const int64_t grace_ns_;
    SpareMemory spare_{sizeof(StoreOperation)};
    std::mutex lock_; // guards the rest
    uint64_t next_ = 1;
    std::unordered_map<uint64_t, StoreOperation *> operations_;
};

// The parameters of opening a store.
struct StoreOpening {
    Context &context;
    std::string_view url; // all of it
    std::string shown;    // for texts: printable, and without a password
    const muster_store_config &config;
    Deadline &deadline;
    std::string_view behind_scheme() const noexcept { return url.substr(url.find(':') + 1); }
};

// Any thread.
class Store final : public Object {
  public:
    static Result<Ref<Store>> open(Context &context, std::string_view url, const muster_store_config &config,
                                   Deadline &deadline);
    Store(Ref<StoreBackend> backend, std::string prefix, Ref<StoreGuard> guard = {}) noexcept
        : backend_(std::move(backend)), prefix_(std::move(prefix)), guard_(std::move(guard)) {}
    Result<Ref<Store>> view(std::string_view prefix) const;
    Result<Ref<Store>> view(std::string_view prefix, Ref<StoreGuard> guard) const; // replaces the guard of this store

    StoreBackend &backend() const noexcept { return *backend_; }
    Context &context() const noexcept { return backend_->context(); }
    const std::string &prefix() const noexcept { return prefix_; }
    StoreGuard *guard() const noexcept { return guard_.get(); }
    std::span<const StoreCondition> conditions() const noexcept {
        if (!guard_) return {};
        return guard_->conditions;
    }
    bool forked() const noexcept { return context().forked(); }

  private:
    const Ref<StoreBackend> backend_;
    const std::string prefix_;
    const Ref<StoreGuard> guard_;
};

// Any thread.
class StoreLease final : public Object {
  public:
    static Result<void> check(Store &store, int64_t ttl_ns, uint32_t flags);
    StoreLease(Store &store, int64_t ttl_ns, uint32_t flags) noexcept
        : store_(&store), ttl_ns_(ttl_ns), flags_(flags) {}
    void granted(uint64_t number) noexcept { number_ = number; } // before another thread has the object
    uint64_t number() const noexcept { return number_; }
    int64_t ttl_ns() const noexcept { return ttl_ns_; }
    uint32_t flags() const noexcept { return flags_; }
    Store &store() const noexcept { return *store_; }
    Context &context() const noexcept { return store_->context(); }
    bool forked() const noexcept { return store_->forked(); }
    Status keep() noexcept {
        return flags_ & MUSTER_LEASE_MANUAL ? store_->backend().keep(number_, ttl_ns_) : Status{MUSTER_OK};
    }

  private:
    ~StoreLease() override {
        if (number_ != 0 && (flags_ & MUSTER_LEASE_MANUAL) == 0 && !forked())
            store_->backend().abandon(number_, ttl_ns_);
    }
    const Ref<Store> store_;
    const int64_t ttl_ns_;
    const uint32_t flags_;
    uint64_t number_ = 0;
};

// By scheme; open.cpp has the table.
Result<Ref<StoreBackend>> open_memory_store(const StoreOpening &opening); // memory: and memory:name
Result<Ref<StoreBackend>> open_file_store(const StoreOpening &opening);   // file:///path
Result<Ref<StoreBackend>> open_served_store(const StoreOpening &opening); // of the host, or of a plug-in
// A store at a tcp address, connected in the background, with one attempt: requests wait for it, or fail with its
// reason.
struct StoreReach {
    std::string url;
    int64_t once_ns, silent_ns, lost_after_ns;
};
Result<Ref<Store>> reach_store(Context &context, const StoreReach &reach);
bool builtin_store(std::string_view scheme) noexcept;
Result<Ref<StoreBackend>> open_remote_store(const StoreOpening &opening); // tcp://, unix://

inline Store *unwrap(muster_store *handle) noexcept {
    return reinterpret_cast<Store *>(handle);
}
inline const Store *unwrap(const muster_store *handle) noexcept {
    return reinterpret_cast<const Store *>(handle);
}
inline muster_store *wrap(Store *object) noexcept {
    return reinterpret_cast<muster_store *>(object);
}
inline StoreLease *unwrap(muster_lease *handle) noexcept {
    return reinterpret_cast<StoreLease *>(handle);
}
inline const StoreLease *unwrap(const muster_lease *handle) noexcept {
    return reinterpret_cast<const StoreLease *>(handle);
}
inline muster_lease *wrap(StoreLease *object) noexcept {
    return reinterpret_cast<muster_lease *>(object);
}

} // namespace muster
