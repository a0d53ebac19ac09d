// SPDX-License-Identifier: MIT
#include "cluster/member/connections.hpp"

#include <algorithm>
#include <sys/resource.h>

namespace muster {

namespace {

constexpr rlim_t for_others = 64, default_least = 16;

uint32_t default_most() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT32_MAX) return UINT32_MAX;
    return static_cast<uint32_t>(std::max(limit.rlim_cur, for_others + default_least) - for_others);
}

} // namespace

class ConnectionSlot final : public Object {
  public:
    explicit ConnectionSlot(ConnectionLimit &bound) noexcept : connection_limit_(&bound) {
        connection_limit_->taken_.fetch_add(1, std::memory_order_relaxed);
    }

  private:
    ~ConnectionSlot() override { connection_limit_->taken_.fetch_sub(1, std::memory_order_relaxed); }
    const Ref<ConnectionLimit> connection_limit_;
};

ConnectionLimit::ConnectionLimit(uint32_t most) noexcept : given_(most != 0), max_(given_ ? most : default_most()) {}

Ref<Object> ConnectionLimit::take(size_t links) {
    if (!room(links)) return {};
    return make_ref<ConnectionSlot>(*this);
}

} // namespace muster
