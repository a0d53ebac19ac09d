// SPDX-License-Identifier: MIT
#include "rendezvous/machine/ranks.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace muster {

namespace {

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

// Removes a number from the front of the text, without its leading zeros.
std::string_view take_number(std::string_view &text) noexcept {
    while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) text.remove_prefix(1);
    size_t size = 0;
    while (size < text.size() && is_digit(text[size])) size++;
    const std::string_view number = text.substr(0, size);
    text.remove_prefix(size);
    return number;
}

} // namespace

int natural_order(std::string_view a, std::string_view b) noexcept {
    const std::string_view whole_a = a, whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a[0]) && is_digit(b[0])) {
            const std::string_view x = take_number(a), y = take_number(b);
            if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
            if (const int order = x.compare(y); order != 0) return order;
            continue;
        }
        if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]) ? -1 : 1;
        a.remove_prefix(1);
        b.remove_prefix(1);
    }
    if (a.empty() != b.empty()) return a.empty() ? -1 : 1;
    return whole_a.compare(whole_b); // node07 and node7
}

std::vector<uint32_t> give_ranks(const std::vector<RankRequest> &requests) {
    const size_t world = requests.size();
    std::vector<uint32_t> ranks(world, RankRequest::none), in_order(world);
    std::vector<bool> taken(world);
    std::iota(in_order.begin(), in_order.end(), 0);
    std::sort(in_order.begin(), in_order.end(), [&](uint32_t a, uint32_t b) {
        const RankRequest &x = requests[a], &y = requests[b];
        if (const int order = natural_order(x.order_key, y.order_key); order != 0) return order < 0;
        return std::tuple(x.arrived, x.id) < std::tuple(y.arrived, y.id);
    });
    const auto take = [&](uint32_t who, uint32_t rank) {
        if (rank >= world || taken[rank] || ranks[who] != RankRequest::none) return;
        taken[rank] = true;
        ranks[who] = rank;
    };
    std::vector<uint32_t> latest_first = in_order;
    std::stable_sort(latest_first.begin(), latest_first.end(),
                     [&](uint32_t a, uint32_t b) { return requests[a].old_round > requests[b].old_round; });
    for (const uint32_t who : latest_first)
        if (requests[who].old_round != 0) take(who, requests[who].old_rank);
    for (const uint32_t who : in_order) take(who, requests[who].preferred);
    uint32_t next = 0;
    for (const uint32_t who : in_order) {
        if (ranks[who] != RankRequest::none) continue;
        while (taken[next]) next++;
        take(who, next);
    }
    return ranks;
}

} // namespace muster
