// SPDX-License-Identifier: MIT
// Stores in this process's memory: a table and a lock.
#include "store/store.hpp"

namespace muster {

namespace {

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
    MemoryStore(Context &context, std::string name, uint64_t most_bytes) noexcept
        : StoreBackend(context), name_(std::move(name)), table_(most_bytes) {}

    uint32_t capabilities() const noexcept override {
        return MUSTER_STORE_CAN_TRANSACT | MUSTER_STORE_CAN_QUEUE | MUSTER_STORE_CAN_WAIT;
    }

    bool submit(StoreOperation &operation) noexcept override {
        List<StoreWaiter> over;
        bool hangs = true;
        {
            const std::lock_guard hold(lock_);
            operation.retain(); // until it is over
            table_.submit(operation, over);
            for (StoreWaiter *one = over.first(); one != nullptr; one = List<StoreWaiter>::after(*one))
                hangs = hangs && one != &operation;
        }
        while (StoreWaiter *const one = over.first()) {
            over.remove(*one);
            const auto ended = Ref<StoreOperation>::adopt(static_cast<StoreOperation *>(one));
            ended->finish(std::move(one->answer));
        }
        return !hangs;
    }

    bool withdraw(StoreOperation &operation, std::string &missing) noexcept override {
        {
            const std::lock_guard hold(lock_);
            try {
                missing = table_.missing(operation.request);
            } catch (const std::bad_alloc &) { // then the text does without
            }
            if (!table_.withdraw(operation)) return false;
        }
        operation.release();
        return true;
    }

  private:
    ~MemoryStore() override {
        if (name_.empty()) return;
        MemoryStores &stores = MemoryStores::of(context());
        const std::lock_guard hold(stores.lock);
        const auto found = stores.named.find(name_);
        if (found != stores.named.end() && found->second == this) stores.named.erase(found);
    }

    const std::string name_;
    std::mutex lock_; // guards the rest
    StoreTable table_;
};

} // namespace

Result<Ref<StoreBackend>> open_memory_store(Context &context, std::string_view name, uint64_t most_bytes) {
    if (name.empty()) return Ref<StoreBackend>(make_ref<MemoryStore>(context, std::string(), most_bytes));
    MemoryStores &stores = MemoryStores::of(context);
    const std::lock_guard hold(stores.lock);
    MemoryStore *&named = stores.named[std::string(name)];
    if (named != nullptr && named->try_retain()) return Ref<StoreBackend>(Ref<MemoryStore>::adopt(named));
    try {
        Ref<MemoryStore> fresh = make_ref<MemoryStore>(context, std::string(name), most_bytes);
        named = fresh.get();
        return Ref<StoreBackend>(std::move(fresh));
    } catch (...) {
        stores.named.erase(stores.named.find(name));
        throw;
    }
}

} // namespace muster
