// SPDX-License-Identifier: MIT
#include "cluster/connections.hpp"

#include <algorithm>
#include <sys/resource.h>

namespace muster {

namespace {

constexpr rlim_t for_others = 64, usual_least = 16;

uint32_t usual_most() noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT32_MAX) return UINT32_MAX;
    return static_cast<uint32_t>(std::max(limit.rlim_cur, for_others + usual_least) - for_others);
}

} // namespace

class ConnectionPlace final : public Object {
  public:
    explicit ConnectionPlace(ConnectionBound &bound) noexcept : bound_(&bound) {
        bound_->taken_.fetch_add(1, std::memory_order_relaxed);
    }

  private:
    ~ConnectionPlace() override { bound_->taken_.fetch_sub(1, std::memory_order_relaxed); }
    const Ref<ConnectionBound> bound_;
};

ConnectionBound::ConnectionBound(uint32_t most) noexcept : given_(most != 0), most_(given_ ? most : usual_most()) {}

Ref<Object> ConnectionBound::take(size_t links) {
    if (!room(links)) return {};
    return make_ref<ConnectionPlace>(*this);
}

} // namespace muster
