// SPDX-License-Identifier: MIT
#include "cluster/member/connections.hpp"

#include <algorithm>
#include <sys/resource.h>

namespace muster {

namespace {

constexpr rlim_t for_others = 64, default_min = 16;

uint32_t default_max() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT32_MAX) return UINT32_MAX;
    return static_cast<uint32_t>(std::max(limit.rlim_cur, for_others + default_min) - for_others);
}

} // namespace

class ConnectionSlot final : public Object {
  public:
    explicit ConnectionSlot(ConnectionLimit &limit) noexcept : limit_(&limit) {
        limit_->taken_.fetch_add(1, std::memory_order_relaxed);
    }

  private:
    ~ConnectionSlot() override { limit_->taken_.fetch_sub(1, std::memory_order_relaxed); }
    const Ref<ConnectionLimit> limit_;
};

ConnectionLimit::ConnectionLimit(uint32_t max) noexcept : given_(max != 0), max_(given_ ? max : default_max()) {}

Ref<Object> ConnectionLimit::acquire(size_t links) {
    if (!has_room(links)) return {};
    return make_ref<ConnectionSlot>(*this);
}

} // namespace muster
