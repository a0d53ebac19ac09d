// SPDX-License-Identifier: MIT
#pragma once
// Assignment of ranks.
#include <cstdint>
#include <string_view>
#include <vector>

namespace muster {

struct RankRequest {
    static constexpr uint32_t none = UINT32_MAX;
    uint64_t old_round = 0; // latest round the member was in
    uint32_t old_rank = none;
    uint32_t preferred = none;
    std::string_view order_key, id;
    uint64_t arrived = 0;
};

// One rank for each, a permutation of 0 to requests.size() - 1: the member's rank in the latest round, otherwise in an
// earlier one, otherwise its preferred rank, otherwise by the natural order of keys, then of arrival.
std::vector<uint32_t> give_ranks(const std::vector<RankRequest> &requests);

// Natural order of names: node7 before node66. Negative, 0, positive.
int natural_order(std::string_view a, std::string_view b) noexcept;

} // namespace muster
