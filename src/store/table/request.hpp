// SPDX-License-Identifier: MIT
#pragma once
// Requests to a store, checked, and their results.
#include "base/result.hpp"
#include "base/small_vector.hpp"
#include "store/table/blob.hpp"

#include <muster/store.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace muster {

constexpr size_t store_key_max = 8192, store_value_max = 8 << 20, store_ops_max = 4096;
constexpr size_t store_request_max = 16 << 20, store_result_max = 16 << 20, store_list_bytes = 4 << 20;
constexpr size_t store_prefix_max = 4096;
constexpr uint32_t store_members_max = 1 << 20;
// Operations in addition to those of hosts. Granting a lease: `number` is its time to live, `version` holds
// muster_lease_flag values; the entry has the number of the lease. Ending the lease `lease`.
constexpr uint32_t store_grant = 1000, store_end_lease = 1001;
constexpr int64_t store_list_default = 1000, store_queue_default = 65536;

// A key that must have a value; of a guard. The key as the store has it.
struct StoreCondition {
    std::string key, value;
};

struct StoreOp {
    uint32_t kind = MUSTER_STORE_NONE;
    uint32_t condition = MUSTER_STORE_ALWAYS;
    std::string_view key, value, expected;
    uint64_t version = 0;
    int64_t number = 0;
    uint64_t lease = 0;
    uint32_t count = 0, rank = 0; // of a barrier

    bool waits() const noexcept {
        return kind == MUSTER_STORE_GET || kind == MUSTER_STORE_WAIT || kind == MUSTER_STORE_POP ||
               kind == MUSTER_STORE_WATCH;
    }
    bool takes() const noexcept { return kind == MUSTER_STORE_POP || kind == MUSTER_STORE_TRY_POP; }
    bool of_queue() const noexcept;
    bool changes() const noexcept; // perhaps
    bool of_many() const noexcept; // keys that begin with `key`
};

// A movable value: the operations, followed in the same allocation by the bytes that they point to.
class StoreRequest {
  public:
    // Checks and copies the operations of a host. `prefix` is put before each key. `conditions` are those of a guard;
    // they are added after the operations. The memory of `before`, which has ended, is reused.
    static Result<StoreRequest> read(const muster_store_op *ops, size_t count, std::string_view prefix,
                                     std::span<const StoreCondition> conditions = {}, StoreRequest *before = nullptr);
    static StoreRequest grant(int64_t ttl_ns, uint32_t flags);
    static StoreRequest end_lease(uint64_t lease);
    std::span<const StoreOp> ops() const noexcept { return {ops_, count_}; }
    bool of_lease() const noexcept { return ops_->kind >= store_grant; }
    bool changes() const noexcept; // perhaps
    bool grants() const noexcept { return ops_->kind == store_grant; }
    // Does it matter whether it was applied? Not for a lease whose number is lost: it expires.
    bool has_effect() const noexcept { return changes() && !grants(); }
    void hide_prefix(size_t bytes) noexcept { prefix_bytes_ = bytes; } // error texts omit so many bytes of each key
    size_t prefix_bytes() const noexcept { return prefix_bytes_; }
    size_t guards() const noexcept { return guards_; }
    size_t bytes() const noexcept { return size_; } // of keys and values
    bool waits() const noexcept;                    // for absent values
    // For people: `get "a/b"`, as the host has named it.
    std::string name(size_t op) const;
    std::string names_of_waits() const; // `get "a", get "b" and 3 more`
    // Why it ends with MUSTER_E_CHANGED.
    std::string what_does_not_hold(const class StoreResult &instead) const;

  private:
    // Places for so many operations and bytes.
    static StoreRequest make(size_t count, size_t bytes, StoreRequest *before = nullptr);
    std::unique_ptr<char[]> memory_;
    StoreOp *ops_ = nullptr; // where it begins
    size_t room_ = 0, count_ = 0;
    size_t size_ = 0, prefix_bytes_ = 0, guards_ = 0;
};

struct StoreEntry {
    uint32_t op = 0, flags = 0;
    uint64_t version = 0;
    int64_t number = 0;
    Ref<Blob> key, value;
    static constexpr size_t about_bytes = 64; // of its own, where results are bounded
    size_t bytes() const noexcept { return about_bytes + (key ? key->size() : 0) + (value ? value->size() : 0); }
};

// Filled by one thread, then read by any.
class StoreResult final : public Object {
  public:
    SmallVector<StoreEntry, 1> entries;
    uint64_t revision = 0;
    size_t prefix_bytes = 0; // of the view: not shown
};

// The result of a request.
struct StoreAnswer {
    // With bodies: the braces of an aggregate write zeros to all of it first (see Result<void>).
    StoreAnswer() noexcept {} // NOLINT(modernize-use-equals-default)
    StoreAnswer(const Error &why, Ref<StoreResult> with, bool has_changed = false) noexcept
        : error(why), result(std::move(with)), changed(has_changed) {}
    Error error;             // MUSTER_OK, MUSTER_E_CHANGED or why nothing was done
    Ref<StoreResult> result; // with these two
    bool changed = false;    // something is otherwise than before
};

inline StoreResult *unwrap(muster_store_result *handle) noexcept {
    return reinterpret_cast<StoreResult *>(handle);
}
inline const StoreResult *unwrap(const muster_store_result *handle) noexcept {
    return reinterpret_cast<const StoreResult *>(handle);
}
inline muster_store_result *wrap(StoreResult *object) noexcept {
    return reinterpret_cast<muster_store_result *>(object);
}

} // namespace muster
