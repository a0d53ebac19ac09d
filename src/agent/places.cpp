// SPDX-License-Identifier: MIT
#include "agent/places.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace muster {

namespace {

constexpr std::string_view version = "1";

// Removes one word from the front.
std::string_view take_word(std::string_view &text) noexcept {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

template <class Number>
bool take_number(std::string_view &text, Number &number) noexcept {
    const std::string_view word = take_word(text);
    const auto [end, why] = std::from_chars(word.data(), word.data() + word.size(), number);
    return why == std::errc() && end == word.data() + word.size();
}

template <class... Numbers>
std::string join_words(Numbers... numbers) {
    std::string text(version);
    ((text += ' ' + std::to_string(numbers)), ...);
    return text;
}

Error not_understood(const char *what) noexcept {
    return Error::make(MUSTER_E_PROTOCOL, "%s of another agent cannot be understood; is it another version of Muster?",
                       what);
}

} // namespace

std::string write_offer(const Offer &offer) {
    return join_words(offer.worker_count, offer.restarts) + ' ' + offer.role;
}

Result<Offer> read_offer(std::string_view text) {
    Offer offer;
    if (take_word(text) != version || !take_number(text, offer.worker_count) || !take_number(text, offer.restarts) ||
        offer.worker_count == 0 || offer.worker_count > max_workers || text.empty())
        return not_understood("the offer");
    offer.role = text;
    return offer;
}

std::vector<Standing> make_standings(const std::vector<Offer> &offers, const std::string &master_address,
                                     uint16_t master_port) {
    std::vector<Standing> standings(offers.size());
    std::map<std::string_view, uint32_t> of_role;
    uint32_t world = 0, restarts = 0;
    for (size_t node = 0; node < offers.size(); node++) {
        uint32_t &role_world = of_role[offers[node].role];
        standings[node].first_rank = world;
        standings[node].first_role_rank = role_world;
        world += offers[node].worker_count;
        role_world += offers[node].worker_count;
        restarts = std::max(restarts, offers[node].restarts);
    }
    for (size_t node = 0; node < offers.size(); node++) {
        Standing &standing = standings[node];
        standing.world_size = world;
        standing.role_world_size = of_role[offers[node].role];
        standing.restarts = restarts;
        standing.group_world_size = static_cast<uint32_t>(offers.size());
        standing.group_rank = static_cast<uint32_t>(node);
        standing.master_address = master_address;
        standing.master_port = master_port;
    }
    return standings;
}

std::string write_standing(const Standing &s) {
    return join_words(s.first_rank, s.world_size, s.first_role_rank, s.role_world_size, s.restarts, s.master_port) +
           ' ' + s.master_address;
}

Result<Standing> read_standing(std::string_view text) {
    Standing s;
    if (take_word(text) != version || !take_number(text, s.first_rank) || !take_number(text, s.world_size) ||
        !take_number(text, s.first_role_rank) || !take_number(text, s.role_world_size) ||
        !take_number(text, s.restarts) || !take_number(text, s.master_port) || text.empty() || text.size() > 255)
        return not_understood("the table of ranks");
    s.master_address = text;
    return s;
}

} // namespace muster
