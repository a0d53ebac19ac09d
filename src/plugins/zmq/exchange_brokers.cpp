// SPDX-License-Identifier: MIT
// Child brokers and the parent broker: joining, their messages, their ends.
#include "exchange.hpp"

#include <muster/context.h>

namespace star {

std::string broker_number(uint64_t prefix) {
    char text[17];
    snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(prefix));
    return text;
}

// The messages of a broker are trusted, whatever source they name. Every member holds the secret, so that only the
// broker secret proves a broker. An open broker requires it as well.
void Exchange::welcome_broker(Node &node, std::string_view payload) {
    muster::ByteReader from(payload);
    const auto prefix = from.number<uint32_t>();
    if (!from.is_valid()) return ban(node, "its proof has an impossible length");
    payload = from.rest();
    if (!config_.role_below)
        return refuse(node, MUSTER_E_AUTH, "this broker has no broker secret, so it accepts no child brokers");
    if (payload.size() != proof_bytes ||
        !equal(as_bytes(payload), config_.role_below(node.theirs, node.ours).data(), proof_bytes))
        return refuse(node, MUSTER_E_AUTH, "it joins as a broker and does not prove the broker secret");
    if (prefix == 0 || prefix == config_.prefix || prefixes_.count(prefix) != 0)
        return refuse(node, MUSTER_E_EXISTS, "another broker has that number");
    node.state = State::broker;
    node.id = uint64_t{prefix} << 32;
    attach(node, prefix);
    outlet_.admitted(node.route);
    send_ready(node);
    outlet_.log(MUSTER_LOG_INFO, "broker " + broker_number(prefix) + " has joined as a child");
}

void Exchange::attach(Node &node, uint32_t prefix) {
    node.prefixes.insert(prefix);
    prefixes_[prefix] = node.route;
    if (parent_) send(parent_route, Kind::attach, prefix, 0, 0);
}

// A prefix is not reached any more: notifies members here, the other children and the parent.
void Exchange::detach(Route route, Node &node, uint32_t prefix) {
    node.prefixes.erase(prefix);
    const auto found = prefixes_.find(prefix);
    if (found == prefixes_.end() || found->second != route) return;
    prefixes_.erase(found);
    unreachable(prefix, route);
}

void Exchange::unreachable(uint32_t prefix, Route except) {
    for (const auto &[id, member] : members_) {
        std::vector<uint64_t> partners;
        for (const auto &[partner, pair] : member->pairs)
            if (prefix_of(partner) == prefix) partners.push_back(partner);
        for (const uint64_t partner : partners) report_lost(partner, id, "its broker is gone");
    }
    if (!parent_) {
        std::vector<uint64_t> owners;
        for (const auto &[owner, names] : owners_)
            if (prefix_of(owner) == prefix) owners.push_back(owner);
        for (const uint64_t owner : owners) release_all(owner);
    }
    for (const auto &[route, node] : nodes_)
        if (route != except && node->state == State::broker) send(route, Kind::detach, prefix, 0, 0);
    if (parent_ && except != parent_route) send(parent_route, Kind::detach, prefix, 0, 0);
}

// Messages of brokers are trusted: a broker has proved the role key, and runs the same code.
void Exchange::from_broker(Route route, Node *node, const Head &head, Packet &packet) {
    switch (head.kind) {
    case Kind::data:
    case Kind::credit:
    case Kind::lost:
        return route_on(head, packet, route);
    case Kind::group:
        return group(nullptr, route, head, packet);
    case Kind::answer: {
        Node *const asked = local(head.to);
        Answer answer;
        if (asked != nullptr) {
            if (answer.decode(payload_of(packet)) && answer.status == MUSTER_OK)
                record_claim(head.to, head.from, answer.name);
            outlet_.forward(asked->route, packet);
            check_backlog(*asked);
        } else if (const Route next = prefix_of(head.to) == config_.prefix ? 0 : route_of(prefix_of(head.to));
                   next != 0 && next != route) {
            outlet_.forward(next, packet);
        }
        return;
    }
    case Kind::detach:
        if (node != nullptr) return detach(route, *node, head.word);
        return head.word != 0 ? unreachable(head.word, parent_route)
                              : beyond_gone("the parent broker has lost its parent");
    default:
        break;
    }
    if (node == nullptr) return;
    const std::string name(payload_of(packet));
    switch (head.kind) {
    case Kind::attach:
        if (head.word == 0 || head.word == config_.prefix || prefixes_.count(head.word) != 0)
            return ban(*node, "it attaches a broker that is attached already");
        return attach(*node, head.word);
    case Kind::claim:
        if (!is_valid_name(name)) return;
        return parent_ ? void(outlet_.forward(parent_route, packet)) : claim(head, route, name);
    case Kind::find:
        if (!is_valid_name(name)) return;
        return parent_ ? void(outlet_.forward(parent_route, packet)) : find(head, route, name);
    case Kind::release:
        return parent_ ? void(outlet_.forward(parent_route, packet)) : release(head.from, name);
    case Kind::release_all:
        return parent_ ? void(outlet_.forward(parent_route, packet)) : release_all(head.from);
    default:
        return ban(*node, "message that brokers do not send");
    }
}

// Reports prefixes and names to the parent, which answers for names from now on.
void Exchange::parent_up() {
    parent_ = true;
    for (const auto &[prefix, route] : prefixes_) send(parent_route, Kind::attach, prefix, 0, 0);
    for (const auto &[owner, names] : owners_)
        for (const std::string &name : names) send(parent_route, Kind::claim, 0, 0, owner, name);
    names_.clear();
    owners_.clear();
    for (const auto &[id, member] : members_)
        for (const std::string &name : member->names) send(parent_route, Kind::claim, 0, 0, id, name);
}

// All members beyond the parent are lost; this broker answers for the names of its own members until there is a parent.
void Exchange::parent_down() {
    if (!std::exchange(parent_, false)) return;
    for (const auto &[id, member] : members_)
        for (const std::string &name : member->names) {
            names_.emplace(name, id);
            owners_[id].insert(name);
        }
    beyond_gone("the parent broker is gone");
}

// All members that are reached through the parent count as lost.
void Exchange::beyond_gone(const std::string &why) {
    for (const auto &[id, member] : members_) {
        std::vector<uint64_t> partners;
        for (const auto &[partner, pair] : member->pairs)
            if (prefix_of(partner) != config_.prefix && prefixes_.count(prefix_of(partner)) == 0)
                partners.push_back(partner);
        for (const uint64_t partner : partners) report_lost(partner, id, why);
    }
    for (const auto &[route, node] : nodes_)
        if (node->state == State::broker) send(route, Kind::detach, 0, 0, 0);
}

} // namespace star
