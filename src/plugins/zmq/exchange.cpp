// SPDX-License-Identifier: MIT
#include "exchange.hpp"

#include <muster/context.h>

#include <algorithm>

namespace star {

namespace {

constexpr uint64_t words_max = 1024 * 1024;     // of what is no data, waiting for one member
constexpr int64_t greeting_ns = 10'000'000'000; // a stranger has so long to become a member

} // namespace

Exchange::Exchange(Outlet &outlet, ExchangeConfig config) : outlet_(outlet), config_(std::move(config)) {}

void Exchange::say(Route route, Kind kind, uint32_t word, uint64_t to, uint64_t from, std::string_view payload) {
    outlet_.send(route, Head{kind, word, to, from}, payload);
    if (const auto found = nodes_.find(route); found != nodes_.end()) watch(*found->second);
}

// A member that does not read costs the broker no more than this: of data, what others may send it by their windows
// (twice, as a message for many brings their numbers along), and two windows of what was credited without having been
// read, or was sent by members that are gone; of everything else 1 MiB, and 1 KiB for each partner. One for which more
// waits is cut off.
void Exchange::watch(Node &to) {
    if (to.state != State::member || to.overfull) return;
    const Queued queued = outlet_.queued(to.route);
    const bool data = queued.data > 2 * to.owed + 2 * config_.window + words_max;
    if (!data && queued.words <= words_max + 1024 * to.pairs.size()) return;
    to.overfull = true;
    overfull_.push_back(to.route);
}

void Exchange::cut_overfull() {
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

// ---- who comes in
// ----------------------------------------------------------------------------------------------------

void Exchange::message(Route route, Parcel &parcel, int64_t now_ns) {
    take(route, parcel, now_ns);
    cut_overfull();
}

void Exchange::take(Route route, Parcel &parcel, int64_t now_ns) {
    now_ns_ = now_ns;
    Head head;
    const bool sound = get_head(parcel.data, parcel.size, head);
    if (route == parent_route) {
        if (sound && parent_) from_broker(route, nullptr, head, parcel);
        return;
    }
    auto found = nodes_.find(route);
    if (found == nodes_.end()) {
        if (!sound || head.kind != Kind::hello) {
            outlet_.log(MUSTER_LOG_WARN, "a connection that does not talk as a member does");
            stats_.refused++;
            return outlet_.hang_up(route);
        }
        found = nodes_.emplace(route, std::make_unique<Node>()).first;
        found->second->route = route;
        found->second->since_ns = found->second->tokens_ns = now_ns;
    }
    Node &node = *found->second;
    if (node.state == State::banned) return;
    if (!sound) return ban(node, "it sends what is no message of a star");
    switch (node.state) {
    case State::stranger:
        return head.kind == Kind::hello ? hello(node, payload_of(parcel)) : ban(node, "it does not greet");
    case State::proving:
        return head.kind == Kind::proof ? proof(node, payload_of(parcel)) : ban(node, "it does not prove itself");
    case State::member:
        return from_member(node, head, parcel, now_ns);
    default:
        return from_broker(route, &node, head, parcel);
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
    if (!from.is_complete() || role > 1) return ban(node, "it greets in an unknown way");
    node.ours = make_nonce();
    node.state = State::proving;
    Proof shown{};
    if (is_challenged && config_.prove_role) {
        if (!config_.prove_role(challenge, node.theirs, node.ours, shown)) return ban(node, "its challenge is no key");
    } else if (!config_.open) {
        shown = config_.proof(true, node.theirs, node.ours);
    }
    muster::ByteWriter reply;
    reply.number(static_cast<uint8_t>(config_.open)).bytes(node.ours).bytes(shown);
    say(node.route, Kind::welcome, 0, 0, 0, reply.take());
}

void Exchange::proof(Node &node, std::string_view payload) {
    if (node.broker) return welcome_broker(node, payload);
    if (payload.size() != proof_bytes) return ban(node, "its proof has an impossible length");
    if (!config_.open && !equal(bytes(payload), config_.proof(false, node.theirs, node.ours).data(), proof_bytes))
        return refuse(node, MUSTER_E_AUTH, "it has another secret");
    welcome_member(node);
}

void Exchange::welcome_member(Node &node) {
    if (members_.size() >= config_.members_max)
        return refuse(node, MUSTER_E_LIMIT, "the broker has as many members as it may have");
    node.state = State::member;
    node.id = make_id();
    members_.emplace(node.id, &node);
    outlet_.admitted(node.route);
    say_ready(node);
}

void Exchange::say_ready(const Node &node) {
    say(node.route, Kind::ready, 0, node.id, 0, muster::ByteWriter().number(config_.window).take());
}

void Exchange::refuse(Node &node, muster_status status, const std::string &why) {
    say(node.route, Kind::refused, static_cast<uint32_t>(status), 0, 0, why);
    node.state = State::banned;
    outlet_.hang_up(node.route);
    stats_.refused++;
    outlet_.log(MUSTER_LOG_WARN, "a connection is refused: " + why);
}

// Nothing of it is taken any more.
void Exchange::ban(Node &node, const std::string &why) {
    if (node.state == State::member) remove_member(node, "it broke the protocol: " + why);
    if (node.state == State::broker)
        for (const uint32_t prefix : std::exchange(node.prefixes, {})) detach(node.route, node, prefix);
    refuse(node, MUSTER_E_PROTOCOL, why);
}

bool Exchange::spend(Node &node, int64_t now_ns) {
    const double passed = static_cast<double>(now_ns - node.tokens_ns) / 1e9;
    node.tokens = std::min(tokens_max, node.tokens + passed * tokens_per_s);
    node.tokens_ns = now_ns;
    if (node.tokens < 1) return false;
    node.tokens -= 1;
    return true;
}

void Exchange::tick(int64_t now_ns) {
    for (auto it = nodes_.begin(); it != nodes_.end();) {
        Node &node = *(it++)->second;
        const bool early = node.state == State::stranger || node.state == State::proving;
        if (early && now_ns - node.since_ns > greeting_ns) refuse(node, MUSTER_E_AUTH, "the greeting took too long");
    }
}

// ---- members
// ---------------------------------------------------------------------------------------------------------

void Exchange::from_member(Node &node, const Head &head, Parcel &parcel, int64_t now_ns) {
    if (head.kind != Kind::bye && head.from != node.id) return ban(node, "it speaks for another");
    switch (head.kind) {
    case Kind::data:
        return data(node, head, parcel);
    case Kind::group:
        return group(&node, node.route, head, parcel);
    case Kind::credit:
        if (parcel.size != head_bytes) return ban(node, "it gives credit with a payload");
        if (!spend(node, now_ns) && head.word < 1024) return ban(node, "it gives credit in crumbs");
        node.owed -= std::min<uint64_t>(node.owed, head.word);
        if (!is_owed(head)) return;
        return route_on(head, parcel, node.route);
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
    const std::string name(payload_of(parcel));
    if (!spend(node, now_ns)) return ban(node, "it asks without end");
    if (!valid_name(name)) return ban(node, "it names what cannot be a name");
    switch (head.kind) {
    case Kind::claim:
        if (node.names.count(name) == 0 && node.names.size() >= names_max)
            return say_answer(node.route, head, {MUSTER_E_LIMIT, name, "one member has no more than 64 names"});
        return parent_ ? say(parent_route, Kind::claim, head.word, 0, node.id, name) : claim(head, node.route, name);
    case Kind::release:
        if (node.names.erase(name) == 0) return;
        return parent_ ? say(parent_route, Kind::release, 0, 0, node.id, name) : release(node.id, name);
    case Kind::find:
        return parent_ ? say(parent_route, Kind::find, head.word, 0, node.id, name) : find(head, node.route, name);
    default:
        return ban(node, "it says what only brokers say");
    }
}

void Exchange::data(Node &from, const Head &head, Parcel &parcel) {
    if (parcel.size > head_bytes + message_max) return ban(from, "it sends more in one message than it may");
    if (from.pairs.size() >= pairs_max && from.pairs.count(head.to) == 0)
        return ban(from, "it talks to more others than it may");
    Node *const to = local(head.to);
    if (to == nullptr && (prefix_of(head.to) == config_.prefix || route_of(prefix_of(head.to)) == 0)) {
        if (!spend(from, now_ns_)) return ban(from, "it talks to nobody without end");
        return tell_lost(head.to, from.id, "there is no such member");
    }
    Pair &pair = from.pairs[head.to];
    const uint64_t charge = cost(parcel.size);
    if (pair.out != 0 && pair.out + charge > config_.window) return ban(from, "it sends more than it has credit for");
    pair.out += charge;
    queued_ += charge;
    stats_.messages++;
    stats_.bytes += parcel.size - head_bytes;
    if (to != nullptr) {
        deliver(*to, head, parcel);
        return;
    }
    outlet_.forward(route_of(prefix_of(head.to)), parcel);
}

// To a member of this broker.
bool Exchange::deliver(Node &to, const Head &head, Parcel &parcel) {
    to.pairs[head.from]; // it is to hear of that one's end
    to.owed += cost(parcel.size);
    const bool sent = outlet_.forward(to.route, parcel);
    watch(to);
    return sent;
}

// Credit that goes to a member of this broker is for what that one has sent; other credit is nothing to anybody.
bool Exchange::is_owed(const Head &head) noexcept {
    const Node *const sender = local(head.to);
    if (sender == nullptr) return prefix_of(head.to) != config_.prefix;
    const auto pair = sender->pairs.find(head.from);
    return pair != sender->pairs.end() && pair->second.out >= head.word && head.word != 0;
}

void Exchange::credited(const Head &head) {
    Node *const sender = local(head.to);
    if (sender == nullptr) return;
    const auto pair = sender->pairs.find(head.from);
    if (pair == sender->pairs.end()) return;
    const uint64_t bytes = std::min<uint64_t>(pair->second.out, head.word);
    pair->second.out -= bytes;
    queued_ -= bytes;
}

// What is between members goes on to whom it is for.
void Exchange::route_on(const Head &head, Parcel &parcel, Route came_from) {
    Node *const to = local(head.to);
    if (head.kind == Kind::credit) credited(head);
    if (to != nullptr) {
        if (head.kind == Kind::data) {
            stats_.messages++;
            stats_.bytes += parcel.size - head_bytes;
            deliver(*to, head, parcel);
        } else {
            if (head.kind == Kind::lost) {
                const auto pair = to->pairs.find(head.from);
                if (pair != to->pairs.end()) {
                    queued_ -= pair->second.out;
                    to->pairs.erase(pair);
                }
            }
            outlet_.forward(to->route, parcel);
            watch(*to);
        }
        return;
    }
    const uint32_t prefix = prefix_of(head.to);
    const Route next = prefix == config_.prefix ? 0 : route_of(prefix);
    if (next == 0 || next == came_from) {
        if (head.kind == Kind::data) tell_lost(head.to, head.from, "there is no such member");
        return;
    }
    outlet_.forward(next, parcel);
}

// One message for many. Each broker gives it to those of its own and once to each neighbour that others hang on.
void Exchange::group(Node *from, Route came_from, const Head &head, Parcel &parcel) {
    const std::string_view payload = payload_of(parcel);
    const size_t count = head.word, list = count * 8;
    const bool sound =
        count != 0 && count <= group_max && payload.size() >= list && payload.size() - list <= message_max;
    if (!sound) return from != nullptr ? ban(*from, "it sends to an impossible group") : void();
    const uint64_t charge = cost(head_bytes + payload.size() - list);
    stats_.multicasts += from != nullptr;
    std::vector<Route> next;
    for (size_t i = 0; i < count; i++) {
        const uint64_t id = get_u64(bytes(payload) + 8 * i);
        Node *const to = local(id);
        const Route beyond = to != nullptr || prefix_of(id) == config_.prefix ? 0 : route_of(prefix_of(id));
        if (from != nullptr && (to != nullptr || beyond != 0)) {
            if (from->pairs.size() >= pairs_max && from->pairs.count(id) == 0)
                return ban(*from, "it talks to more others than it may");
            Pair &pair = from->pairs[id];
            if (pair.out != 0 && pair.out + charge > config_.window)
                return ban(*from, "it sends more than it has credit for");
            pair.out += charge;
            queued_ += charge;
        }
        if (to != nullptr || (from != nullptr && beyond != 0)) {
            stats_.messages++;
            stats_.bytes += payload.size() - list;
        }
        if (to != nullptr) {
            to->pairs[head.from];
            to->owed += charge;
            outlet_.forward_copy(to->route, parcel);
            watch(*to);
        } else if (beyond != 0 && beyond != came_from) {
            if (std::find(next.begin(), next.end(), beyond) == next.end()) next.push_back(beyond);
        } else if (beyond == 0) {
            tell_lost(id, head.from, "there is no such member");
        }
    }
    for (const Route route : next) outlet_.forward_copy(route, parcel);
}

// ---- names
// -----------------------------------------------------------------------------------------------------------

void Exchange::say_answer(Route route, const Head &question, const Answer &answer, uint64_t found) {
    say(route, Kind::answer, question.word, question.from, found, answer.encode());
    if (answer.status == MUSTER_OK) note_claim(question.from, found, answer.name);
}

// A member of this broker has got a name it claimed: it is claimed again if the broker above changes.
void Exchange::note_claim(uint64_t asked, uint64_t owner, const std::string &name) {
    Node *const member = asked == owner ? local(asked) : nullptr;
    if (member != nullptr && member->names.size() < names_max) member->names.insert(name);
}

void Exchange::claim(const Head &head, Route route, const std::string &name) {
    const auto [place, fresh] = names_.emplace(name, head.from);
    if (!fresh && place->second != head.from)
        return say_answer(route, head, {MUSTER_E_EXISTS, name, "another process has the name " + name});
    owners_[head.from].insert(name);
    say_answer(route, head, {MUSTER_OK, name, {}}, head.from);
}

void Exchange::find(const Head &head, Route route, const std::string &name) {
    const auto found = names_.find(name);
    if (found == names_.end()) return say_answer(route, head, {MUSTER_E_UNREACHABLE, name, "nobody is named " + name});
    say_answer(route, head, {MUSTER_OK, name, {}}, found->second);
}

void Exchange::release(uint64_t owner, const std::string &name) {
    const auto found = names_.find(name);
    if (found == names_.end() || found->second != owner) return;
    names_.erase(found);
    const auto of_owner = owners_.find(owner);
    of_owner->second.erase(name);
    if (of_owner->second.empty()) owners_.erase(of_owner);
}

void Exchange::forsake(uint64_t owner) {
    const auto found = owners_.find(owner);
    if (found == owners_.end()) return;
    for (const std::string &name : found->second) names_.erase(name);
    owners_.erase(found);
}

// ---- ends
// ------------------------------------------------------------------------------------------------------------

void Exchange::tell_lost(uint64_t who, uint64_t to, const std::string &why) {
    if (Node *const partner = local(to)) {
        const auto pair = partner->pairs.find(who);
        if (pair != partner->pairs.end()) {
            queued_ -= pair->second.out;
            partner->pairs.erase(pair);
        }
        return say(partner->route, Kind::lost, 0, to, who, why);
    }
    const Route next = prefix_of(to) == config_.prefix ? 0 : route_of(prefix_of(to));
    if (next != 0) say(next, Kind::lost, 0, to, who, why);
}

void Exchange::remove_member(Node &node, const std::string &why) {
    const uint64_t id = std::exchange(node.id, 0);
    members_.erase(id);
    for (const auto &[partner, pair] : std::exchange(node.pairs, {})) {
        queued_ -= pair.out;
        if (Node *const to = local(partner)) to->owed -= std::min(to->owed, pair.out);
        tell_lost(id, partner, why);
    }
    if (!node.names.empty()) parent_ ? say(parent_route, Kind::forsake, 0, 0, id) : forsake(id);
    node.names.clear();
}

void Exchange::gone(Route route) {
    const auto found = nodes_.find(route);
    if (found == nodes_.end()) return;
    Node &node = *found->second;
    if (node.state == State::member) {
        stats_.lost++;
        remove_member(node, "the process is gone");
    }
    if (node.state == State::broker) {
        stats_.lost++;
        outlet_.log(MUSTER_LOG_WARN, "broker " + broker_number(prefix_of(node.id)) + " below is gone");
        for (const uint32_t prefix : std::exchange(node.prefixes, {})) detach(route, node, prefix);
    }
    nodes_.erase(found);
    cut_overfull();
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
