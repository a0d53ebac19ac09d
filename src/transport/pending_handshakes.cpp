// SPDX-License-Identifier: MIT
#include "transport/pending_handshakes.hpp"

namespace muster {

void PendingHandshakes::add(PendingHandshake &connection) {
    origins_[connection.origin()]++;
    connection.pending_object().retain(); // for the list
    list_.push_back(connection);
    count_++;
}

void PendingHandshakes::remove(PendingHandshake &connection) noexcept {
    const auto origin = origins_.find(connection.origin());
    if (--origin->second == 0) origins_.erase(origin);
    list_.remove(connection);
    count_--;
    connection.pending_object().release();
}

uint32_t PendingHandshakes::from(const PendingHandshake &connection) const noexcept {
    return origins_.find(connection.origin())->second;
}

PendingHandshake *PendingHandshakes::displaceable(uint32_t limit, int64_t now) const noexcept {
    PendingHandshake *silent = nullptr, *crowd = nullptr;
    uint32_t silent_of = 0;
    for (PendingHandshake *one = list_.first(); one != nullptr; one = list_.after(*one)) {
        if (one->lingers()) return one;
        const int64_t age = now - one->since();
        if (age < hello_ns) continue;
        const uint32_t of = from(*one);
        if (!one->has_hello() && of > silent_of) {
            silent = one;
            silent_of = of;
        } else if (crowd == nullptr && age >= distant_ns && of > limit / 2) {
            crowd = one;
        }
    }
    if (silent != nullptr) return silent;
    if (crowd != nullptr) return crowd;
    PendingHandshake *const oldest = list_.first();
    return oldest != nullptr && now - oldest->since() >= max_age_ns ? oldest : nullptr;
}

} // namespace muster
