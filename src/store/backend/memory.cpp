// SPDX-License-Identifier: MIT
// Stores in this process's memory: a table and a lock.
#include "store/backend/store.hpp"

namespace muster {

namespace {

constexpr uint64_t default_max_bytes = uint64_t{1} << 30;

class MemoryStore;

// The named ones of a context.
struct MemoryStores final : ContextPart {
    static MemoryStores &of(Context &context) {
        static const char key = 0;
        return static_cast<MemoryStores &>(context.part(
            &key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<MemoryStores>(); }));
    }
    std::mutex lock; // guards the rest
    std::map<std::string, MemoryStore *, std::less<>> named;
};

class MemoryStore final : public StoreBackend {
  public:
    MemoryStore(Context &context, std::string name, uint64_t max_bytes)
        : StoreBackend(context), name_(std::move(name)), table_(max_bytes) {}

    uint32_t capabilities() const noexcept override {
        return MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_QUEUE | MUSTER_STORE_CAN_WAIT | MUSTER_STORE_CAN_WATCH |
               MUSTER_STORE_CAN_LEASE | MUSTER_STORE_CAN_BARRIER;
    }

    bool submit(StoreOperation &operation) noexcept override {
        List<StoreWaiter> over;
        bool hangs = true;
        {
            const std::lock_guard hold(lock_);
            operation.retain(); // until it is over
            if (operation.request.of_lease())
                see_to_lease(operation, over);
            else
                table_.submit(operation, over);
            for (StoreWaiter *one = over.first(); one != nullptr; one = List<StoreWaiter>::after(*one))
                hangs = hangs && one != &operation;
        }
        finish(over);
        return !hangs;
    }

    Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept override {
        {
            const std::lock_guard hold(lock_);
            try {
                missing = table_.missing(operation.request);
            } catch (const std::bad_alloc &) { // then the text does without
            }
            if (!table_.withdraw(operation)) return Withdrawn::over;
        }
        operation.release();
        return Withdrawn::yes;
    }

    Status keep(uint64_t lease, int64_t ttl_ns) noexcept override {
        const std::lock_guard hold(lock_);
        return table_.keep(lease, now_ns() + ttl_ns) ? MUSTER_OK : MUSTER_E_STALE;
    }
    void abandon(uint64_t lease, int64_t ttl_ns) noexcept override {
        const std::lock_guard hold(lock_);
        const int64_t until = now_ns() + ttl_ns;
        if (table_.keep(lease, until)) look_again_at(until);
    }

  private:
    // With the lock.
    void see_to_lease(StoreWaiter &who, List<StoreWaiter> &over) noexcept {
        const StoreOp &op = who.request.ops().front();
        try {
            auto result = make_ref<StoreResult>();
            result->entries.resize(1);
            if (op.kind == store_grant) {
                const int64_t until = op.version & MUSTER_LEASE_MANUAL ? now_ns() + op.number : INT64_MAX;
                result->entries[0].number = static_cast<int64_t>(table_.grant(until));
                look_again_at(until);
            } else if (!table_.end_lease(op.lease, MUSTER_STORE_LEASE_ENDED, over)) {
                who.answer.error = Error::make(MUSTER_E_STALE, "the lease had ended before");
            }
            if (who.answer.error.status == MUSTER_OK) who.answer.result = std::move(result);
        } catch (const std::bad_alloc &) {
            who.answer.error = Error::make(MUSTER_E_NOMEM, "out of memory");
        }
        over.push_back(who);
    }

    static void finish(List<StoreWaiter> &over) noexcept {
        while (StoreWaiter *const one = over.first()) {
            over.remove(*one);
            const auto ended = Ref<StoreOperation>::adopt(static_cast<StoreOperation *>(one));
            ended->finish(std::move(one->answer));
        }
    }

    // With the lock. Renewing a lease does not move the timer: it checks when it expires, and is started again.
    void look_again_at(int64_t until_ns) noexcept {
        if (until_ns >= look_at_ns_) return;
        look_at_ns_ = until_ns;
        arm_.post(context());
    }
    void arm() noexcept { // loop thread
        const std::lock_guard hold(lock_);
        if (look_at_ns_ != INT64_MAX) context().loop().start_timer(timer_, look_at_ns_);
    }
    void look_at_leases() noexcept { // loop thread
        List<StoreWaiter> over;
        {
            const std::lock_guard hold(lock_);
            table_.end_leases(now_ns(), over);
            look_at_ns_ = table_.next_end_ns();
        }
        arm();
        finish(over);
    }

    ~MemoryStore() override {
        if (name_.empty() || context().forked()) return;
        MemoryStores &stores = MemoryStores::of(context());
        const std::lock_guard hold(stores.lock);
        const auto found = stores.named.find(name_);
        if (found != stores.named.end() && found->second == this) stores.named.erase(found);
    }

    const std::string name_;
    std::mutex lock_; // guards the rest
    StoreTable table_;
    int64_t look_at_ns_ = INT64_MAX;
    PostedTask<MemoryStore, &MemoryStore::arm> arm_{*this};
    Timer<MemoryStore, &MemoryStore::look_at_leases> timer_{*this};
};

} // namespace

Result<Ref<StoreBackend>> open_memory_store(const StoreOpening &opening) {
    const std::string_view name = opening.behind_scheme();
    for (const char c : name)
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.')
            return Error::make(MUSTER_E_ADDRESS, "store \"%s\": a name is made of letters, digits, '-', '_' and '.'",
                               opening.shown.c_str());
    Context &context = opening.context;
    const uint64_t max_bytes = opening.config.max_bytes == 0 ? default_max_bytes : opening.config.max_bytes;
    if (name.empty()) return Ref<StoreBackend>(make_ref<MemoryStore>(context, std::string(), max_bytes));
    MemoryStores &stores = MemoryStores::of(context);
    const std::lock_guard hold(stores.lock);
    MemoryStore *&named = stores.named[std::string(name)];
    if (named != nullptr && named->try_retain()) return Ref<StoreBackend>(Ref<MemoryStore>::adopt(named));
    try {
        Ref<MemoryStore> fresh = make_ref<MemoryStore>(context, std::string(name), max_bytes);
        named = fresh.get();
        return Ref<StoreBackend>(std::move(fresh));
    } catch (...) {
        stores.named.erase(stores.named.find(name));
        throw;
    }
}

} // namespace muster
