// SPDX-License-Identifier: MIT
#include "cluster/lifecycle/launch_keys.hpp"

#include <sodium.h>

namespace muster {

namespace {

constexpr size_t key_bytes = 32;

} // namespace

Result<std::vector<unsigned char>> LaunchKeys::make(std::shared_ptr<const LaunchPlan> plan, uint32_t first,
                                                    uint32_t count) {
    std::vector<unsigned char> key(key_bytes);
    randombytes_buf(key.data(), key.size());
    Launch launch;
    launch.plan = std::move(plan);
    for (uint32_t i = 0; i < count; i++) launch.left.insert(launch.left.end(), first + i);
    launch.waiting = launch.left;
    launches_.emplace(first, std::move(launch));
    if (keys_->add(first, secret_key(key.data(), key.size()))) return key;
    launches_.erase(first);
    return Error::make(MUSTER_E_LIMIT, "%zu launches are under way", OtherKeys::max_keys);
}

Result<std::shared_ptr<const LaunchPlan>> LaunchKeys::take(uint64_t key, uint32_t member) {
    const auto launch = launches_.find(static_cast<uint32_t>(key));
    if (key > UINT32_MAX || launch == launches_.end() || launch->second.left.count(member) == 0)
        return Error::make(MUSTER_E_STALE, "the master does not expect worker %u any more", member);
    if (launch->second.waiting.erase(member) == 0)
        return Error::make(MUSTER_E_EXISTS, "another process has fetched the ticket of worker %u", member);
    return launch->second.plan;
}

void LaunchKeys::over(uint32_t member) noexcept {
    auto launch = launches_.upper_bound(member);
    if (launch == launches_.begin()) return;
    --launch;
    if (launch->second.left.erase(member) == 0) return;
    launch->second.waiting.erase(member);
    if (!launch->second.left.empty()) return;
    keys_->remove(launch->first);
    launches_.erase(launch);
}

} // namespace muster
