// SPDX-License-Identifier: MIT
// Brokers below and above: who is accepted as one, what they send, and what their ends mean.
#include "exchange.hpp"

#include <muster/context.h>

namespace star {

std::string broker_number(uint64_t prefix) {
    char text[17];
    snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(prefix));
    return text;
}

// Every member holds the secret, so the secret proves no broker: what a broker sends is believed, whatever the source
// it names, and only the role key proves one. An open broker asks for it as well.
void Exchange::welcome_broker(Node &node, std::string_view payload) {
    muster::ByteReader from(payload);
    const auto prefix = from.number<uint32_t>();
    if (!from.is_valid()) return ban(node, "its proof has an impossible length");
    payload = from.rest();
    if (!config_.role_below)
        return refuse(node, MUSTER_E_AUTH, "this broker has no broker secret, so it accepts no brokers below it");
    if (payload.size() != proof_bytes ||
        !equal(bytes(payload), config_.role_below(node.theirs, node.ours).data(), proof_bytes))
        return refuse(node, MUSTER_E_AUTH, "it joins as a broker and does not prove the broker secret");
    if (prefix == 0 || prefix == config_.prefix || prefixes_.count(prefix) != 0)
        return refuse(node, MUSTER_E_EXISTS, "a broker of that number is there already");
    node.state = State::broker;
    node.id = uint64_t{prefix} << 32;
    attach(node, prefix);
    outlet_.admitted(node.route);
    say_ready(node);
    outlet_.log(MUSTER_LOG_INFO, "broker " + broker_number(prefix) + " has joined below");
}

void Exchange::attach(Node &node, uint32_t prefix) {
    node.prefixes.insert(prefix);
    prefixes_[prefix] = node.route;
    if (parent_) say(parent_route, Kind::attach, prefix, 0, 0);
}

// A prefix is reached no more: those it matters to are told, here and beyond.
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
        for (const uint64_t partner : partners) tell_lost(partner, id, "its broker is gone");
    }
    if (!parent_) {
        std::vector<uint64_t> owners;
        for (const auto &[owner, names] : owners_)
            if (prefix_of(owner) == prefix) owners.push_back(owner);
        for (const uint64_t owner : owners) forsake(owner);
    }
    for (const auto &[route, node] : nodes_)
        if (route != except && node->state == State::broker) say(route, Kind::detach, prefix, 0, 0);
    if (parent_ && except != parent_route) say(parent_route, Kind::detach, prefix, 0, 0);
}

// What brokers send is believed: they have proved the role key, and run the same code.
void Exchange::from_broker(Route route, Node *node, const Head &head, Parcel &parcel) {
    switch (head.kind) {
    case Kind::data:
    case Kind::credit:
    case Kind::lost:
        return route_on(head, parcel, route);
    case Kind::group:
        return group(nullptr, route, head, parcel);
    case Kind::answer: {
        Node *const asked = local(head.to);
        Answer answer;
        if (asked != nullptr) {
            if (answer.decode(payload_of(parcel)) && answer.status == MUSTER_OK)
                note_claim(head.to, head.from, answer.name);
            outlet_.forward(asked->route, parcel);
            watch(*asked);
        } else if (const Route next = prefix_of(head.to) == config_.prefix ? 0 : route_of(prefix_of(head.to));
                   next != 0 && next != route) {
            outlet_.forward(next, parcel);
        }
        return;
    }
    case Kind::detach:
        if (node != nullptr) return detach(route, *node, head.word);
        return head.word != 0 ? unreachable(head.word, parent_route) : beyond_gone("the broker above has lost its own");
    default:
        break;
    }
    if (node == nullptr) return;
    const std::string name(payload_of(parcel));
    switch (head.kind) {
    case Kind::attach:
        if (head.word == 0 || head.word == config_.prefix || prefixes_.count(head.word) != 0)
            return ban(*node, "it brings a broker that is there already");
        return attach(*node, head.word);
    case Kind::claim:
        if (!valid_name(name)) return;
        return parent_ ? void(outlet_.forward(parent_route, parcel)) : claim(head, route, name);
    case Kind::find:
        if (!valid_name(name)) return;
        return parent_ ? void(outlet_.forward(parent_route, parcel)) : find(head, route, name);
    case Kind::release:
        return parent_ ? void(outlet_.forward(parent_route, parcel)) : release(head.from, name);
    case Kind::forsake:
        return parent_ ? void(outlet_.forward(parent_route, parcel)) : forsake(head.from);
    default:
        return ban(*node, "it says what brokers do not say");
    }
}

// What is here is told to the one above: prefixes and names. What only this one knew as a root is its business now.
void Exchange::parent_up() {
    parent_ = true;
    for (const auto &[prefix, route] : prefixes_) say(parent_route, Kind::attach, prefix, 0, 0);
    for (const auto &[owner, names] : owners_)
        for (const std::string &name : names) say(parent_route, Kind::claim, 0, 0, owner, name);
    names_.clear();
    owners_.clear();
    for (const auto &[id, member] : members_)
        for (const std::string &name : member->names) say(parent_route, Kind::claim, 0, 0, id, name);
}

// Everything beyond it is gone; names of members here are found here until it is back.
void Exchange::parent_down() {
    if (!std::exchange(parent_, false)) return;
    for (const auto &[id, member] : members_)
        for (const std::string &name : member->names) {
            names_.emplace(name, id);
            owners_[id].insert(name);
        }
    beyond_gone("the broker above is gone");
}

// Whatever is reached through the broker above counts as lost.
void Exchange::beyond_gone(const std::string &why) {
    for (const auto &[id, member] : members_) {
        std::vector<uint64_t> partners;
        for (const auto &[partner, pair] : member->pairs)
            if (prefix_of(partner) != config_.prefix && prefixes_.count(prefix_of(partner)) == 0)
                partners.push_back(partner);
        for (const uint64_t partner : partners) tell_lost(partner, id, why);
    }
    for (const auto &[route, node] : nodes_)
        if (node->state == State::broker) say(route, Kind::detach, 0, 0, 0);
}

} // namespace star
