// SPDX-License-Identifier: MIT
#include "exchange.hpp"

#include <muster/context.h>

#include <algorithm>

namespace star {

namespace {

constexpr uint64_t max_control_bytes = 1024 * 1024; // of messages that are not data and wait for one member
constexpr int64_t join_timeout_ns = 10'000'000'000; // from the first message to ready

} // namespace

Exchange::Exchange(Outlet &outlet, ExchangeConfig config) : outlet_(outlet), config_(std::move(config)) {}

void Exchange::send(Route route, Kind kind, uint32_t word, uint64_t to, uint64_t from,
                    std::string_view payload) noexcept {
    outlet_.send(route, Head{kind, word, to, from}, payload);
    if (const auto found = nodes_.find(route); found != nodes_.end()) check_backlog(*found->second);
}

// Bounds the memory for a member that does not read. Data: twice what others may send by their windows (a multicast
// message carries the numbers of its receivers), and two windows for what was credited without having been read, or was
// sent by members that have left. Everything else: 1 MiB, and 1 KiB for each partner. Beyond that the member is cut
// off.
void Exchange::check_backlog(Node &to) noexcept {
    if (to.state != State::member || to.overfull) return;
    const Queued queued = outlet_.queued(to.route);
    const bool data = queued.data > 2 * to.owed + 2 * config_.window + max_control_bytes;
    if (!data && queued.control <= max_control_bytes + 1024 * to.pairs.size()) return;
    to.overfull = true;
    overfull_.push_back(to.route); // a new node makes room for itself
}

void Exchange::cut_overfull_members() noexcept {
    while (!overfull_.empty()) {
        const Route route = overfull_.back();
        overfull_.pop_back();
        const auto found = nodes_.find(route);
        if (found == nodes_.end() || found->second->state != State::member) continue;
        outlet_.cut(route);
        remove_member(*found->second, "it does not read what is sent to it");
        found->second->state = State::banned;
        stats_.refused++;
        outlet_.log(MUSTER_LOG_WARN, "a member is cut off: it does not read what is sent to it");
    }
}

Exchange::Node *Exchange::local(uint64_t id) noexcept {
    const auto found = members_.find(id);
    return found == members_.end() ? nullptr : found->second;
}

Route Exchange::route_of(uint32_t prefix) const noexcept {
    const auto found = prefixes_.find(prefix);
    if (found != prefixes_.end()) return found->second;
    return parent_ ? parent_route : 0;
}

uint64_t Exchange::make_id() noexcept {
    return uint64_t{config_.prefix} << 32 | next_id_++;
}

// ---- joining --------------------------------------------------------------------------------------------------------

void Exchange::message(Route route, Packet &packet, int64_t now_ns) {
    take(route, packet, now_ns);
    cut_overfull_members();
}

void Exchange::take(Route route, Packet &packet, int64_t now_ns) {
    now_ns_ = now_ns;
    Head head;
    const bool is_valid = get_head(packet.data, packet.size, head);
    if (route == parent_route) {
        if (is_valid && parent_) from_broker(route, nullptr, head, packet);
        return;
    }
    auto found = nodes_.find(route);
    if (found == nodes_.end()) {
        if (!is_valid || head.kind != Kind::hello) {
            outlet_.log(MUSTER_LOG_WARN, "a connection is closed: its first message is no hello");
            stats_.refused++;
            return outlet_.hang_up(route);
        }
        if (const size_t all = nodes_.size() + 1 + overfull_.size(); overfull_.capacity() < all)
            overfull_.reserve(2 * all);
        found = nodes_.emplace(route, std::make_unique<Node>()).first;
        found->second->route = route;
        found->second->since_ns = found->second->tokens_ns = now_ns;
    }
    Node &node = *found->second;
    if (node.state == State::banned) return;
    if (!is_valid) return ban(node, "malformed message");
    switch (node.state) {
    case State::unauthenticated:
        return head.kind == Kind::hello ? hello(node, payload_of(packet)) : ban(node, "hello expected");
    case State::proving:
        return head.kind == Kind::proof ? proof(node, payload_of(packet)) : ban(node, "proof expected");
    case State::member:
        return from_member(node, head, packet, now_ns);
    default:
        return from_broker(route, &node, head, packet);
    }
}

void Exchange::hello(Node &node, std::string_view payload) {
    muster::ByteReader from(payload);
    const auto role = from.number<uint8_t>();
    if (config_.is_secret_proved && role == 0 && from.is_complete()) return welcome_member(node);
    node.broker = role == 1;
    node.theirs = from.array<nonce_bytes>();
    const bool is_challenged = from.left() != 0;
    std::array<unsigned char, challenge_bytes> challenge{};
    if (is_challenged) challenge = from.array<challenge_bytes>();
    if (!from.is_complete() || role > 1) return ban(node, "malformed hello");
    node.ours = make_nonce();
    node.state = State::proving;
    Proof shown{};
    if (is_challenged && config_.prove_role) {
        if (!config_.prove_role(challenge, node.theirs, node.ours, shown)) return ban(node, "the challenge is no key");
    } else if (!config_.open) {
        shown = config_.proof(true, node.theirs, node.ours);
    }
    muster::ByteWriter reply;
    reply.number(static_cast<uint8_t>(config_.open)).bytes(node.ours).bytes(shown);
    send(node.route, Kind::welcome, 0, 0, 0, reply.take());
}

void Exchange::proof(Node &node, std::string_view payload) {
    if (node.broker) return welcome_broker(node, payload);
    if (payload.size() != proof_bytes) return ban(node, "proof of impossible length");
    if (!config_.open && !equal(as_bytes(payload), config_.proof(false, node.theirs, node.ours).data(), proof_bytes))
        return refuse(node, MUSTER_E_AUTH, "it has another secret");
    welcome_member(node);
}

void Exchange::welcome_member(Node &node) {
    if (members_.size() >= config_.max_members)
        return refuse(node, MUSTER_E_LIMIT, "the broker has its maximum of members");
    node.id = make_id();
    members_.emplace(node.id, &node);
    node.state = State::member;
    outlet_.admitted(node.route);
    send_ready(node);
}

void Exchange::send_ready(const Node &node) {
    send(node.route, Kind::ready, 0, node.id, 0, muster::ByteWriter().number(config_.window).take());
}

void Exchange::refuse(Node &node, muster_status status, const std::string &why) {
    send(node.route, Kind::refused, static_cast<uint32_t>(status), 0, 0, why);
    node.state = State::banned;
    outlet_.hang_up(node.route);
    stats_.refused++;
    outlet_.log(MUSTER_LOG_WARN, "a connection is refused: " + why);
}

// Expels a peer that has broken the protocol; its further messages are ignored.
void Exchange::ban(Node &node, std::string_view why) {
    const std::string text(why);
    if (node.state == State::member) remove_member(node, "protocol error: " + text);
    if (node.state == State::broker) detach_all(node);
    refuse(node, MUSTER_E_PROTOCOL, text);
}

bool Exchange::spend_token(Node &node, int64_t now_ns) {
    const double passed = static_cast<double>(now_ns - node.tokens_ns) / 1e9;
    node.tokens = std::min(max_tokens, node.tokens + passed * tokens_per_s);
    node.tokens_ns = now_ns;
    if (node.tokens < 1) return false;
    node.tokens -= 1;
    return true;
}

void Exchange::tick(int64_t now_ns) noexcept {
    for (auto it = nodes_.begin(); it != nodes_.end();) {
        Node &node = *(it++)->second;
        const bool early = node.state == State::unauthenticated || node.state == State::proving;
        if (!early || now_ns - node.since_ns <= join_timeout_ns) continue;
        try {
            refuse(node, MUSTER_E_AUTH, "no proof in time");
        } catch (const std::bad_alloc &) {
            outlet_.cut(node.route);
        }
    }
}

// ---- members --------------------------------------------------------------------------------------------------------

void Exchange::from_member(Node &node, const Head &head, Packet &packet, int64_t now_ns) {
    if (head.kind != Kind::bye && head.from != node.id) return ban(node, "message in the name of another member");
    switch (head.kind) {
    case Kind::data:
        return data(node, head, packet);
    case Kind::group:
        return group(&node, node.route, head, packet);
    case Kind::credit:
        if (packet.size != head_bytes) return ban(node, "credit with a payload");
        if (!spend_token(node, now_ns) && head.word < 1024) return ban(node, "too many small credits");
        node.owed -= std::min<uint64_t>(node.owed, head.word);
        if (!is_owed(head)) return;
        return route_on(head, packet, node.route);
    case Kind::part: {
        const auto pair = node.pairs.find(head.to);
        if (pair != node.pairs.end() && pair->second.out == 0) node.pairs.erase(pair);
        return;
    }
    case Kind::bye:
        remove_member(node, "it has left");
        node.state = State::banned;
        node.left = true;
        outlet_.hang_up(node.route);
        return;
    default:
        break;
    }
    const std::string name(payload_of(packet));
    if (!spend_token(node, now_ns)) return ban(node, "too many requests");
    if (!is_valid_name(name)) return ban(node, "malformed name");
    switch (head.kind) {
    case Kind::claim:
        if (node.names.count(name) == 0 && node.names.size() >= max_names)
            return send_answer(node.route, head, {MUSTER_E_LIMIT, name, "a member has at most 64 names"});
        node.claims = true;
        if (!parent_) return claim(head, node.route, name);
        break;
    case Kind::release:
        if (node.names.erase(name) == 0) return;
        return parent_ ? send(parent_route, Kind::release, 0, 0, node.id, name) : release(node.id, name);
    case Kind::find:
        if (!parent_) return find(head, node.route, name);
        break;
    default:
        return ban(node, "message that only brokers send");
    }
    if (node.asked >= max_asked)
        return send_answer(node.route, head, {MUSTER_E_LIMIT, name, "too many requests without an answer"});
    ask_parent(head, node.route, name);
}

void Exchange::data(Node &from, const Head &head, Packet &packet) {
    if (packet.size > head_bytes + max_message_bytes) return ban(from, "message too long");
    if (from.pairs.size() >= max_pairs && from.pairs.count(head.to) == 0) return ban(from, "too many partners");
    Node *const to = local(head.to);
    if (to == nullptr && (prefix_of(head.to) == config_.prefix || route_of(prefix_of(head.to)) == 0)) {
        if (!spend_token(from, now_ns_)) return ban(from, "too many messages to unknown members");
        return report_lost(head.to, from.id, "there is no such member");
    }
    Pair &pair = from.pairs[head.to];
    const uint64_t charge = cost(packet.size);
    if (pair.out != 0 && pair.out + charge > config_.window) return ban(from, "data without credit");
    if (to != nullptr) to->pairs[head.from]; // so that it is notified when the sender leaves
    pair.out += charge;
    queued_ += charge;
    stats_.messages++;
    stats_.bytes += packet.size - head_bytes;
    if (to != nullptr) return deliver(*to, packet);
    outlet_.forward(route_of(prefix_of(head.to)), packet);
}

// Forwards to a member of this broker, which has a pair with the sender.
void Exchange::deliver(Node &to, Packet &packet) noexcept {
    to.owed += cost(packet.size);
    outlet_.forward(to.route, packet);
    check_backlog(to);
}

// Credit for a member of this broker is valid up to what that member has sent; other credit is ignored.
bool Exchange::is_owed(const Head &head) noexcept {
    const Node *const sender = local(head.to);
    if (sender == nullptr) return prefix_of(head.to) != config_.prefix;
    const auto pair = sender->pairs.find(head.from);
    return pair != sender->pairs.end() && pair->second.out >= head.word && head.word != 0;
}

void Exchange::credited(const Head &head) noexcept {
    Node *const sender = local(head.to);
    if (sender == nullptr) return;
    const auto pair = sender->pairs.find(head.from);
    if (pair == sender->pairs.end()) return;
    const uint64_t bytes = std::min<uint64_t>(pair->second.out, head.word);
    pair->second.out -= bytes;
    queued_ -= bytes;
}

// Forwards a message between members towards its receiver.
void Exchange::route_on(const Head &head, Packet &packet, Route came_from) {
    Node *const to = local(head.to);
    if (head.kind == Kind::credit) credited(head);
    if (to != nullptr) {
        if (head.kind == Kind::data) {
            to->pairs[head.from];
            stats_.messages++;
            stats_.bytes += packet.size - head_bytes;
            deliver(*to, packet);
        } else {
            if (head.kind == Kind::lost) {
                const auto pair = to->pairs.find(head.from);
                if (pair != to->pairs.end()) {
                    queued_ -= pair->second.out;
                    to->pairs.erase(pair);
                }
            }
            outlet_.forward(to->route, packet);
            check_backlog(*to);
        }
        return;
    }
    const uint32_t prefix = prefix_of(head.to);
    const Route next = prefix == config_.prefix ? 0 : route_of(prefix);
    if (next == 0 || next == came_from) {
        if (head.kind == Kind::data) report_lost(head.to, head.from, "there is no such member");
        return;
    }
    outlet_.forward(next, packet);
}

// Multicast: each broker delivers to its own members, and forwards once to each neighbour that leads to others.
void Exchange::group(Node *from, Route came_from, const Head &head, Packet &packet) {
    const std::string_view payload = payload_of(packet);
    const size_t count = head.word, list = count * 8;
    const bool is_valid = count != 0 && count <= max_group_members && payload.size() >= list &&
                          payload.size() - list <= max_message_bytes;
    if (!is_valid) return from != nullptr ? ban(*from, "malformed multicast") : void();
    const uint64_t charge = cost(head_bytes + payload.size() - list);
    stats_.multicasts += from != nullptr;
    std::vector<Route> next;
    for (size_t i = 0; i < count; i++) {
        unsigned char *const place = packet.data + head_bytes + 8 * i;
        const uint64_t id = get_u64(place);
        if (id == 0) continue;
        Node *const to = local(id);
        const Route beyond = to != nullptr || prefix_of(id) == config_.prefix ? 0 : route_of(prefix_of(id));
        if (to != nullptr) to->pairs[head.from];
        if (from != nullptr && (to != nullptr || beyond != 0)) {
            if (from->pairs.size() >= max_pairs && from->pairs.count(id) == 0) return ban(*from, "too many partners");
            Pair &pair = from->pairs[id];
            if (pair.out != 0 && pair.out + charge > config_.window) return ban(*from, "data without credit");
            pair.out += charge;
            queued_ += charge;
        }
        if (to != nullptr || (from != nullptr && beyond != 0)) {
            stats_.messages++;
            stats_.bytes += payload.size() - list;
        }
        if (to != nullptr) {
            to->owed += charge;
            outlet_.forward_copy(to->route, packet);
            check_backlog(*to);
        } else if (beyond != 0 && beyond != came_from) {
            if (std::find(next.begin(), next.end(), beyond) == next.end()) next.push_back(beyond);
        } else if (beyond == 0) {
            report_lost(id, head.from, "there is no such member");
            put_u64(place,
                    0); // nor is it to receive the message by a broker that knows it: its brokers may be changing
        }
    }
    for (const Route route : next) outlet_.forward_copy(route, packet);
}

// ---- names ----------------------------------------------------------------------------------------------------------

void Exchange::send_answer(Route route, const Head &question, const Answer &answer, uint64_t found) {
    send(route, Kind::answer, question.word, question.from, found, answer.encode());
    if (answer.status == MUSTER_OK) record_claim(question.from, found, answer.name);
}

// Records a name that a member of this broker owns: it is claimed again at the next parent.
void Exchange::record_claim(uint64_t asked, uint64_t owner, const std::string &name) {
    Node *const member = asked == owner ? local(asked) : nullptr;
    if (member != nullptr && member->names.size() < max_names) member->names.insert(name);
}

void Exchange::ask_parent(const Head &head, Route route, const std::string &name) {
    const auto [place, fresh] = asked_.insert_or_assign({head.from, head.word}, Question{head.kind, route, name});
    if (Node *const member = local(head.from); member != nullptr && fresh) member->asked++;
    send(parent_route, head.kind, head.word, 0, head.from, name);
}

// Of the askers from `first` to `last`.
void Exchange::forget_questions(uint64_t first, uint64_t last) noexcept {
    asked_.erase(asked_.lower_bound({first, 0}), asked_.upper_bound({last, UINT32_MAX}));
}

void Exchange::claim(const Head &head, Route route, const std::string &name) {
    const auto found = names_.find(name);
    if (found != names_.end() && found->second != head.from)
        return send_answer(route, head, {MUSTER_E_EXISTS, name, "another process has the name " + name});
    record_name(head.from, name);
    send_answer(route, head, {MUSTER_OK, name, {}}, head.from);
}

// Without memory the name may be recorded for its owner only, and is released with the others of that owner.
void Exchange::record_name(uint64_t owner, const std::string &name) {
    owners_[owner].insert(name);
    names_.emplace(name, owner);
}

void Exchange::find(const Head &head, Route route, const std::string &name) {
    const auto found = names_.find(name);
    if (found == names_.end())
        return send_answer(route, head, {MUSTER_E_UNREACHABLE, name, "no process has the name " + name});
    send_answer(route, head, {MUSTER_OK, name, {}}, found->second);
}

void Exchange::release(uint64_t owner, const std::string &name) noexcept {
    const auto found = names_.find(name);
    if (found == names_.end() || found->second != owner) return;
    names_.erase(found);
    const auto of_owner = owners_.find(owner);
    of_owner->second.erase(name);
    if (of_owner->second.empty()) owners_.erase(of_owner);
}

void Exchange::release_all(uint64_t owner) noexcept {
    const auto found = owners_.find(owner);
    if (found == owners_.end()) return;
    for (const std::string &name : found->second)
        if (const auto place = names_.find(name); place != names_.end() && place->second == owner) names_.erase(place);
    owners_.erase(found);
}

// ---- ends -----------------------------------------------------------------------------------------------------------

void Exchange::report_lost(uint64_t who, uint64_t to, std::string_view why) noexcept {
    if (Node *const partner = local(to)) {
        const auto pair = partner->pairs.find(who);
        if (pair != partner->pairs.end()) {
            queued_ -= pair->second.out;
            partner->pairs.erase(pair);
        }
        return send(partner->route, Kind::lost, 0, to, who, why);
    }
    const Route next = prefix_of(to) == config_.prefix ? 0 : route_of(prefix_of(to));
    if (next != 0) send(next, Kind::lost, 0, to, who, why);
}

void Exchange::remove_member(Node &node, std::string_view why) noexcept {
    const uint64_t id = std::exchange(node.id, 0);
    members_.erase(id);
    for (const auto &[partner, pair] : std::exchange(node.pairs, {})) {
        queued_ -= pair.out;
        if (Node *const to = local(partner)) to->owed -= std::min(to->owed, pair.out);
        report_lost(id, partner, why);
    }
    forget_questions(id, id);
    // Also of one whose claim has not been answered.
    if (node.claims) parent_ ? send(parent_route, Kind::release_all, 0, 0, id) : release_all(id);
    node.names.clear();
}

void Exchange::gone(Route route) noexcept {
    const auto found = nodes_.find(route);
    if (found == nodes_.end()) return;
    Node &node = *found->second;
    if (node.state == State::member) {
        stats_.lost++;
        remove_member(node, "the process is gone");
    }
    if (node.state == State::broker) {
        stats_.lost++;
        log_child(MUSTER_LOG_WARN, node, ", a child, is gone");
        detach_all(node);
    }
    nodes_.erase(found);
    cut_overfull_members();
}

ExchangeStats Exchange::stats() const {
    ExchangeStats stats = stats_;
    stats.members = members_.size();
    for (const auto &[route, node] : nodes_) {
        stats.brokers += node->state == State::broker;
        stats.pairs += node->pairs.size();
    }
    stats.names = names_.size();
    stats.queued_bytes = queued_;
    return stats;
}

} // namespace star
