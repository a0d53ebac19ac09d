// SPDX-License-Identifier: MIT
#pragma once
// The records that the agents of a round exchange in its store view, as text: each agent writes an offer, and the agent
// of rank 0 writes for each node the places of its workers. Values.
#include "agent/plan.hpp"

#include <string_view>

namespace muster {

struct Offer { // of a node
    uint32_t worker_count = 0, restarts = 0;
    std::string role;
};

std::string write_offer(const Offer &offer);
Result<Offer> read_offer(std::string_view text);

// From the offers of all nodes, in the order of their ranks: the place of each. The number of restarts is the highest
// of all offers: an agent that has seen a failure counts it, the others get it here.
std::vector<Standing> make_standings(const std::vector<Offer> &offers, const std::string &master_address,
                                     uint16_t master_port);

std::string write_standing(const Standing &standing);
Result<Standing> read_standing(std::string_view text); // without round and the node's own rank

} // namespace muster
