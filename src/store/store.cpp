// SPDX-License-Identifier: MIT
#include "store/store.hpp"

#include "base/text.hpp"

namespace muster {

namespace {
constexpr uint64_t most_bytes_usual = uint64_t{1} << 30;
constexpr int64_t shortest_lease_ns = 1'000'000, longest_lease_ns = 86'400'000'000'000;
} // namespace

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

Result<Ref<Store>> Store::open(Context &context, std::string_view url, const muster_store_config &config) {
    constexpr std::string_view memory = "memory:";
    std::string shown(url.substr(0, 200));
    make_printable(shown.data(), shown.size());
    const size_t colon = url.find(':');
    if (colon == std::string_view::npos || colon == 0)
        return Error::make(MUSTER_E_ADDRESS, "store \"%s\": it begins with no scheme, as memory: does", shown.c_str());
    if (!url.starts_with(memory))
        return Error::make(MUSTER_E_NOT_FOUND, "store \"%s\": there is no such kind; there is memory:", shown.c_str());
    const std::string_view name = url.substr(memory.size());
    for (const char c : name)
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.')
            return Error::make(MUSTER_E_ADDRESS, "store \"%s\": a name is made of letters, digits, '-', '_' and '.'",
                               shown.c_str());
    auto backend = open_memory_store(context, name, config.most_bytes == 0 ? most_bytes_usual : config.most_bytes);
    if (!backend) return backend.error();
    return make_ref<Store>(std::move(*backend), std::string());
}

Result<Ref<Store>> Store::view(std::string_view prefix) const {
    if (prefix_.size() + prefix.size() > store_prefix_max)
        return Error::make(MUSTER_E_ARG, "a prefix of %zu bytes in all, at most %zu", prefix_.size() + prefix.size(),
                           store_prefix_max);
    return make_ref<Store>(backend_, std::string(prefix_).append(prefix));
}

Result<Ref<StoreLease>> StoreLease::make(Store &store, int64_t ttl_ns, bool manual) {
    if (ttl_ns < shortest_lease_ns || ttl_ns > longest_lease_ns)
        return Error::make(MUSTER_E_ARG, "a lease of %lld ns, it lasts 1 ms to 24 hours",
                           static_cast<long long>(ttl_ns));
    if ((store.backend().capabilities() & MUSTER_STORE_CAN_LEASE) == 0)
        return Error::make(MUSTER_E_UNSUPPORTED, "the store has no leases");
    auto number = store.backend().grant(ttl_ns, manual);
    if (!number) return number.error();
    try {
        return make_ref<StoreLease>(store, *number, ttl_ns, manual);
    } catch (const std::bad_alloc &) {
        store.backend().end_lease(*number);
        throw;
    }
}

} // namespace muster
