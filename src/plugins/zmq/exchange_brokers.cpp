// SPDX-License-Identifier: MIT
// Child brokers and the parent broker: joining, their messages, their ends.
#include "exchange.hpp"

#include <muster/context.h>

namespace star {

void Exchange::log_child(int32_t level, const Node &node, const char *what) noexcept {
    char text[64];
    snprintf(text, sizeof text, "broker %x%s", prefix_of(node.id), what);
    outlet_.log(level, text);
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
    log_child(MUSTER_LOG_INFO, node, " has joined as a child");
}

void Exchange::attach(Node &node, uint32_t prefix) {
    node.prefixes.insert(prefix);
    prefixes_[prefix] = node.route;
    if (parent_) send(parent_route, Kind::attach, prefix, 0, 0);
}

// A prefix is not reached any more: notifies members here, the other children and the parent. `is_up`: the connection
// over which it was reached stands.
void Exchange::detach(Node &node, uint32_t prefix, bool is_up) noexcept {
    node.prefixes.erase(prefix);
    const auto found = prefixes_.find(prefix);
    if (found == prefixes_.end() || found->second != node.route) return;
    prefixes_.erase(found);
    unreachable(prefix, node.route, is_up);
}

void Exchange::detach_all(Node &node) noexcept {
    while (!node.prefixes.empty()) detach(node, *node.prefixes.begin(), false);
}

// Reports partners of a member as lost. Each report removes its pair. What the member has sent may still reach a
// partner over `via`, if the brokers there connect again; so the member is reported as lost behind it: no broker would
// know of the pair when the member ends. 0: there is no such connection.
template <class Is>
void Exchange::report_partners_lost(Node &member, Is is_lost, Route via, std::string_view why) noexcept {
    for (auto pair = member.pairs.begin(); pair != member.pairs.end();) {
        const uint64_t partner = (pair++)->first;
        if (!is_lost(prefix_of(partner))) continue;
        report_lost(partner, member.id, why);
        if (via != 0) send(via, Kind::lost, 0, partner, member.id, why);
    }
}

void Exchange::unreachable(uint32_t prefix, Route route, bool is_up) noexcept {
    forget_questions(uint64_t{prefix} << 32, uint64_t{prefix} << 32 | UINT32_MAX);
    const auto is_there = [prefix](uint32_t of) { return of == prefix; };
    for (const auto &[id, member] : members_)
        report_partners_lost(*member, is_there, is_up ? route : 0, "its broker is gone");
    if (!parent_)
        for (auto one = owners_.begin(); one != owners_.end();) {
            const uint64_t owner = (one++)->first;
            if (prefix_of(owner) == prefix) release_all(owner);
        }
    for (const auto &[other, node] : nodes_)
        if (other != route && node->state == State::broker) send(other, Kind::detach, prefix, 0, 0);
    if (parent_ && route != parent_route) send(parent_route, Kind::detach, prefix, 0, 0);
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
        if (asked_.erase({head.to, head.word}) != 0 && asked != nullptr) asked->asked--;
        return;
    }
    case Kind::detach:
        if (node != nullptr) return detach(*node, head.word, true);
        return head.word != 0 ? unreachable(head.word, parent_route, true)
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
    case Kind::find:
        if (!is_valid_name(name)) return;
        if (!parent_) return head.kind == Kind::claim ? claim(head, route, name) : find(head, route, name);
        if (head.word != 0) return ask_parent(head, route, name);
        outlet_.forward(parent_route, packet); // a name that a broker claims again: no member waits for the answer
        return;
    case Kind::release:
        return parent_ ? void(outlet_.forward(parent_route, packet)) : release(head.from, name);
    case Kind::release_all:
        return parent_ ? void(outlet_.forward(parent_route, packet)) : release_all(head.from);
    default:
        return ban(*node, "message that brokers do not send");
    }
}

// Reports prefixes and names to the parent, which answers for names from now on.
void Exchange::parent_up() noexcept {
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
void Exchange::parent_down() noexcept {
    if (!std::exchange(parent_, false)) return;
    for (const auto &[id, member] : members_) {
        try {
            for (const std::string &name : member->names) record_name(id, name);
        } catch (const std::bad_alloc &) { // it claims its names again when it has connected again
            outlet_.cut(member->route);
        }
        member->asked = 0;
    }
    for (const auto &[asker, question] : std::exchange(asked_, {})) {
        const Head head{question.kind, asker.second, 0, asker.first};
        try {
            question.kind == Kind::claim ? claim(head, question.route, question.name)
                                         : find(head, question.route, question.name);
        } catch (const std::bad_alloc &) {
            outlet_.cut(question.route);
        }
    }
    beyond_gone("the parent broker is gone");
}

// All members that are reached through the parent count as lost, also those of brokers that are connected still.
void Exchange::beyond_gone(std::string_view why) noexcept {
    const auto is_beyond = [this](uint32_t of) { return of != config_.prefix && prefixes_.count(of) == 0; };
    for (const auto &[id, member] : members_) report_partners_lost(*member, is_beyond, parent_ ? parent_route : 0, why);
    for (const auto &[route, node] : nodes_)
        if (node->state == State::broker) send(route, Kind::detach, 0, 0, 0);
}

} // namespace star
