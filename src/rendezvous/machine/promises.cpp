// SPDX-License-Identifier: MIT
#include "rendezvous/machine/promises.hpp"

#include <charconv>

namespace muster {

void Promises::see(std::string_view key, std::string_view value) {
    const size_t slash = key.find('/');
    if (slash == std::string_view::npos) return;
    uint64_t round = 0;
    uint32_t rank = 0;
    const std::string_view number = key.substr(0, slash), of = key.substr(slash + 1);
    if (std::from_chars(number.data(), number.data() + number.size(), round).ptr != number.data() + number.size())
        return;
    if (of == "all" && value == given) settled_.insert(round);
    if (std::from_chars(of.data(), of.data() + of.size(), rank).ptr != of.data() + of.size()) return;
    if (value == given) given_[round].insert(rank);
    if (value == with_host) with_host_[round].insert(rank);
    if (value == dead) dead_[round].insert(rank);
}

bool Promises::suffice(const RoundRecord &last) const {
    const uint64_t round = last.attempt.number;
    if (settled_.count(round) != 0) return true;
    if (!last.elsewhere && last.host != no_rank && !by_member(round, last.host)) return false;
    return count(last) >= needed(last.world, last.elsewhere);
}

uint32_t Promises::count(const RoundRecord &last) const {
    const uint64_t round = last.attempt.number;
    const auto in = [&](const Ranks &ranks) {
        const auto found = ranks.find(round);
        return found == ranks.end() ? std::set<uint32_t>() : found->second;
    };
    std::set<uint32_t> counted = in(given_);
    if (!last.elsewhere) counted.merge(in(dead_));
    if (!last.elsewhere || (last.host != no_rank && by_member(round, last.host))) counted.merge(in(with_host_));
    return static_cast<uint32_t>(counted.size());
}

std::vector<std::string> Promises::take_before(uint64_t round) {
    std::vector<std::string> names;
    for (Ranks *const ranks : {&given_, &with_host_, &dead_})
        while (!ranks->empty() && ranks->begin()->first < round) {
            for (const uint32_t rank : ranks->begin()->second)
                names.push_back(keys::promise_of(ranks->begin()->first, rank));
            ranks->erase(ranks->begin());
        }
    for (; !settled_.empty() && *settled_.begin() < round; settled_.erase(settled_.begin()))
        names.push_back(keys::promise_of_all(*settled_.begin()));
    return names;
}

} // namespace muster
