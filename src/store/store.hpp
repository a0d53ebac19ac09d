// SPDX-License-Identifier: MIT
#pragma once
// Stores as hosts hold them: a prefix, and what lies behind: this process's memory, or a way to where the store is.
#include "base/fork.hpp"
#include "store/operation.hpp"

#include <mutex>
#include <unordered_map>

namespace muster {

class Store;

// What keeps the keys, or knows who does. Any thread.
class StoreBackend : public Object {
  public:
    explicit StoreBackend(Context &context) noexcept : context_(&context) {}
    Context &context() const noexcept { return *context_; }
    virtual uint32_t capabilities() const noexcept = 0;
    // Sees to it that finish() of the operation is called once, perhaps before it returns. False: not yet, and it is
    // kept until then.
    virtual bool submit(StoreOperation &operation) noexcept = 0;
    // Forgets an operation that waits, and tells what it lacks. False: it is over, or will be.
    virtual bool withdraw(StoreOperation &operation, std::string &missing) noexcept = 0;

    // Operations that the host may name.
    uint64_t enlist(StoreOperation &operation);
    void delist(uint64_t number) noexcept;
    Ref<StoreOperation> find(uint64_t number) noexcept;
    std::vector<Ref<StoreOperation>> awaited_with(const Store &store);

  protected:
    ~StoreBackend() override = default;

  private:
    const Ref<Context> context_;
    std::mutex lock_; // guards the rest
    uint64_t next_ = 1;
    std::unordered_map<uint64_t, StoreOperation *> operations_;
};

// Any thread.
class Store final : public Object {
  public:
    static Result<Ref<Store>> open(Context &context, std::string_view url, const muster_store_config &config);
    Store(Ref<StoreBackend> backend, std::string prefix) noexcept
        : backend_(std::move(backend)), prefix_(std::move(prefix)) {}
    Result<Ref<Store>> view(std::string_view prefix) const;

    StoreBackend &backend() const noexcept { return *backend_; }
    Context &context() const noexcept { return backend_->context(); }
    const std::string &prefix() const noexcept { return prefix_; }
    bool forked() const noexcept { return context().forked(); }

  private:
    const Ref<StoreBackend> backend_;
    const std::string prefix_;
};

// `memory:` and `memory:name`.
Result<Ref<StoreBackend>> open_memory_store(Context &context, std::string_view name, uint64_t most_bytes);

inline Store *unwrap(muster_store *handle) noexcept {
    return reinterpret_cast<Store *>(handle);
}
inline const Store *unwrap(const muster_store *handle) noexcept {
    return reinterpret_cast<const Store *>(handle);
}
inline muster_store *wrap(Store *object) noexcept {
    return reinterpret_cast<muster_store *>(object);
}

} // namespace muster
