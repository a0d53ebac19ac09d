// SPDX-License-Identifier: MIT
#include "store/backend/store.hpp"

namespace muster {

namespace {
constexpr int64_t shortest_lease_ns = 1'000'000, longest_lease_ns = 86'400'000'000'000;
} // namespace

Result<void> StoreBackend::allows(const StoreRequest &request) const {
    const uint32_t can = capabilities();
    const auto refuse = [&](size_t i, const char *what) {
        return Error::make(MUSTER_E_UNSUPPORTED, "%s: the store has no %s", request.name(i).c_str(), what);
    };
    const std::span<const StoreOp> ops = request.ops();
    if (ops.size() > 1 && !(can & MUSTER_STORE_CAN_TRANSACT)) return refuse(1, "requests of several operations");
    for (size_t i = 0; i < ops.size(); i++) {
        if (ops[i].condition != MUSTER_STORE_ALWAYS && !(can & MUSTER_STORE_CAN_TRANSACT))
            return refuse(i, "conditions");
        if (ops[i].of_queue() && !(can & MUSTER_STORE_CAN_QUEUE)) return refuse(i, "queues");
        if (ops[i].kind == MUSTER_STORE_WATCH && !(can & MUSTER_STORE_CAN_WATCH)) return refuse(i, "changes to watch");
        if (ops[i].kind == MUSTER_STORE_BARRIER && !(can & MUSTER_STORE_CAN_BARRIER)) return refuse(i, "barriers");
        if (ops[i].lease != 0 && !(can & MUSTER_STORE_CAN_LEASE)) return refuse(i, "leases");
    }
    return {};
}

uint64_t StoreBackend::enlist(StoreOperation &operation) {
    const std::lock_guard hold(lock_);
    operations_.emplace(next_, &operation);
    return next_++;
}

void StoreBackend::delist(uint64_t number) noexcept {
    const std::lock_guard hold(lock_);
    operations_.erase(number);
}

Ref<StoreOperation> StoreBackend::find(uint64_t number) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = operations_.find(number);
    if (found == operations_.end() || !found->second->try_retain()) return {};
    return Ref<StoreOperation>::adopt(found->second);
}

std::vector<Ref<StoreOperation>> StoreBackend::awaited_with(const Store &store) {
    std::vector<Ref<StoreOperation>> found;
    const std::lock_guard hold(lock_);
    for (const auto &[number, operation] : operations_)
        if (operation->awaited_with(store) && operation->try_retain())
            found.push_back(Ref<StoreOperation>::adopt(operation));
    return found;
}

Result<Ref<Store>> Store::view(std::string_view prefix) const {
    return view(prefix, guard_);
}

Result<Ref<Store>> Store::view(std::string_view prefix, Ref<StoreGuard> guard) const {
    if (prefix_.size() + prefix.size() > store_prefix_max)
        return Error::make(MUSTER_E_ARG, "a prefix of %zu bytes in all, at most %zu", prefix_.size() + prefix.size(),
                           store_prefix_max);
    return make_ref<Store>(backend_, std::string(prefix_).append(prefix), std::move(guard));
}

Result<void> StoreLease::check(Store &store, int64_t ttl_ns, uint32_t flags) {
    if (ttl_ns < shortest_lease_ns || ttl_ns > longest_lease_ns)
        return Error::make(MUSTER_E_ARG, "a lease of %lld ns, it lasts 1 ms to 24 hours",
                           static_cast<long long>(ttl_ns));
    if ((flags & ~uint32_t{MUSTER_LEASE_MANUAL | MUSTER_LEASE_CONNECTED}) != 0)
        return Error::make(MUSTER_E_ARG, "unknown flags %u", flags);
    if ((store.backend().capabilities() & MUSTER_STORE_CAN_LEASE) == 0)
        return Error::make(MUSTER_E_UNSUPPORTED, "the store has no leases");
    if (ttl_ns < store.backend().min_lease_ns())
        return Error::make(MUSTER_E_UNSUPPORTED, "a lease of %lld ms, the store has none shorter than %lld ms",
                           static_cast<long long>(ttl_ns / 1'000'000),
                           static_cast<long long>(store.backend().min_lease_ns() / 1'000'000));
    return {};
}

} // namespace muster
