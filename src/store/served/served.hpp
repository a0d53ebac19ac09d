// SPDX-License-Identifier: MIT
#pragma once
// Stores served by the host or by a plug-in: operations become requests to the provider, answered by id.
#include "plugin/plugins.hpp"
#include "queue/served.hpp"
#include "store/backend/store.hpp"

#include <muster/store_serve.h>

namespace muster {

class Plugin;
class ServedLease;
class ServedLeases;

// One scheme. Any thread.
class StoreProvider final : public Provided<Object> {
  public:
    static constexpr ServedKind served_kind = ServedKind::store;
    // `ops` NULL: requests are pulled. `queue` NULL: a plug-in's.
    StoreProvider(Context &context, const std::string &scheme, Queue *queue, const muster_store_host_ops *ops,
                  void *self, uint64_t tag = 0);
    void set_plugin(Plugin &plugin) noexcept { plugin_ = &plugin; } // of the callbacks

    // --- answers; `queue` NULL: from a plug-in
    static Result<void> read(Context &context, Queue *queue, uint64_t id, muster_store_request &out);
    static Result<void> opened(Context &context, Queue *queue, uint64_t id, const muster_store_traits &traits);
    static Result<void> done(Context &context, Queue *queue, uint64_t id, Status status,
                             const muster_store_entry *entries, size_t count, uint64_t revision);
    static Result<void> fail(Context &context, Queue *queue, uint64_t id, Status status, uint32_t op,
                             std::string_view text);

  private:
    void call(int32_t kind, uint64_t id) override;
    void call_for(ServedRequest &request) override;

    const muster_store_host_ops ops_;
    Plugin *plugin_ = nullptr; // or none
};

// One request to the provider of a scheme. Any thread.
class StoreServedRequest final : public ServedRequest {
  public:
    static constexpr ServedKind served_kind = ServedKind::store;
    StoreServedRequest(StoreProvider &provider, uint32_t kind)
        : ServedRequest(provider, MUSTER_REQUEST_STORE), kind(kind) {}
    void set_operation(StoreOperation &operation, uint64_t store);
    void write(muster_store_request &out) const noexcept;
    void end(const Error &why) noexcept; // ends the operation, the opening or the lease with this status; once
    void lease_done() noexcept;

    const uint32_t kind; // MUSTER_STORE_REQUEST_OPEN and others
    uint64_t store = 0, lease = 0;
    int64_t ttl_ns = 0;
    uint32_t flags = 0;
    std::string url;                                // OPEN
    Ref<StoreOperation> operation;                  // DO, GRANT, END
    Ref<ServedAnswer<muster_store_traits>> opening; // OPEN
    Ref<ServedLease> keeper;                        // GRANT, KEEP
    Ref<ServedLeases> leases;                       // GRANT

  private:
    void withdrawn(const Error &why, bool answered) noexcept override {
        if (!answered) end(why);
    }
    std::vector<muster_store_op> ops_;
};

// The leases of one store that are renewed, by number. Any thread.
class ServedLeases final : public Object {
  public:
    void add(uint64_t number, Ref<class ServedLease> lease);
    Ref<ServedLease> find(uint64_t number);
    void remove(uint64_t number) noexcept; // with its timer
    void remove_all() noexcept;

  private:
    std::mutex lock_; // guards the rest
    std::map<uint64_t, Ref<ServedLease>> leases_;
};

// A lease until it is known to have ended, or its handle was released. The library renews it; of a MANUAL one it checks
// that the host does. Any thread.
class ServedLease final : public Object {
  public:
    ServedLease(Ref<StoreServedRequest> home, Ref<ServedLeases> all, uint64_t number, int64_t ttl_ns,
                bool manual) noexcept
        : home_(std::move(home)), all_(std::move(all)), number_(number), ttl_ns_(ttl_ns), manual_(manual) {}
    void restart() noexcept { arm_.post(context()); }
    void abandon() noexcept;
    bool is_abandoned() const noexcept { return abandoned_.load(std::memory_order_relaxed); }
    Status renew();
    void renewed(Status status) noexcept; // the answer to one KEEP

  private:
    ~ServedLease() override = default;
    Context &context() const noexcept { return home_->provider().context(); }
    void arm() noexcept; // loop thread
    void due() noexcept; // loop thread
    const Ref<StoreServedRequest> home_;
    const Ref<ServedLeases> all_;
    const uint64_t number_;
    const int64_t ttl_ns_;
    const bool manual_;
    std::atomic<bool> abandoned_{false}, renewing_{false}; // relaxed: each is independent
    PostedTask<ServedLease, &ServedLease::arm> arm_{*this};
    Timer<ServedLease, &ServedLease::due> timer_{*this};
};

// An open one. Any thread.
class ServedStore final : public StoreBackend {
  public:
    ServedStore(const StoreOpening &opening, Ref<StoreServedRequest> home, const muster_store_traits &traits)
        : StoreBackend(opening.context, opening.config.grace_ns), shown_("store " + opening.shown),
          home_(std::move(home)), traits_(traits), leases_(make_ref<ServedLeases>()) {}
    uint32_t capabilities() const noexcept override { return traits_.capabilities; }
    bool answers_later() const noexcept override { return true; }
    bool withdraws_ahead(const StoreRequest &request) const noexcept override {
        return answers_cancel() && request.has_effect();
    }
    const char *shown() const noexcept override { return shown_.c_str(); }
    int64_t min_lease_ns() const noexcept override { return traits_.min_lease_ns; }
    bool would_deadlock() const noexcept override { return home_->provider().would_deadlock(); }
    Result<void> allows(const StoreRequest &request) const override;
    bool submit(StoreOperation &operation) noexcept override;
    Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept override;
    bool forget(StoreOperation &operation) noexcept override;
    Status keep(uint64_t lease, int64_t ttl_ns) noexcept override;
    void abandon(uint64_t lease, int64_t ttl_ns) noexcept override;

  private:
    ~ServedStore() override;
    bool is_elsewhere() const noexcept { return (traits_.flags & MUSTER_STORE_IS_REMOTE) != 0; }
    bool answers_cancel() const noexcept {
        return is_elsewhere() && (traits_.flags & MUSTER_STORE_ANSWERS_CANCEL) != 0;
    }
    Ref<StoreServedRequest> request_for(StoreOperation &operation);
    const std::string shown_;
    const Ref<StoreServedRequest> home_;
    const muster_store_traits traits_;
    const Ref<ServedLeases> leases_;
};

// Checks and copies the answer to a DO.
Result<Ref<StoreResult>> read_answer(const StoreRequest &request, Status status, const muster_store_entry *entries,
                                     size_t count, uint64_t revision);

} // namespace muster
