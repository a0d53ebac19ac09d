// SPDX-License-Identifier: MIT
// ctest: quick timeout=60
// The exchange of a broker under many thousands of random schedules: members that talk, ask for names, stop reading,
// leave and die, brokers below that come and go, and words that are late. What must hold: bytes between two members
// that live arrive once and in order; whoever talked to one that is gone is told; nobody is told of one that lives and
// can be reached; the count of bytes on their way is what is on its way; a name has one owner; and when all have gone
// nothing is left. Then the same where memory runs out: connections end, but of those that are left the same holds.
#include "exchange.hpp"
#include "tests/common/limited_memory.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <deque>
#include <map>
#include <set>

extern "C" {
#include <cmocka.h>
}

using namespace star;

namespace {

constexpr uint64_t window = 4096;

struct Random { // xorshift: the same numbers in every run
    uint64_t state;
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
    uint64_t below(uint64_t n) { return next() % n; }
    bool one_in(uint64_t n) { return below(n) == 0; }
};

std::string frame(const Head &head, std::string_view payload) {
    std::string text(head_bytes, '\0');
    put_head(reinterpret_cast<unsigned char *>(text.data()), head);
    return text.append(payload);
}

struct Tree;

// A broker: an exchange and its connections, each a queue of frames in either direction.
struct Node final : Outlet {
    Node(Tree &tree, uint32_t prefix);
    bool send(Route route, const Head &head, std::string_view payload) noexcept override {
        const EnoughMemory enough;
        return put(route, frame(head, payload));
    }
    bool forward(Route route, Packet &packet) noexcept override {
        const EnoughMemory enough;
        return put(route, {reinterpret_cast<const char *>(packet.data), packet.size});
    }
    bool forward_copy(Route route, Packet &packet) noexcept override { return forward(route, packet); }
    void log(int32_t, std::string_view) noexcept override {}
    void cut(Route route) noexcept override {
        const EnoughMemory enough;
        cuts.insert(route);
    }
    bool put(Route route, std::string text);

    Tree &tree;
    Exchange exchange;
    std::map<Route, std::deque<std::string>> out; // to members, and to brokers below; parent_route: to the one above
    std::set<Route> cuts;                         // connections that end after the running call
    Node *parent = nullptr, *above = nullptr;     // above: the parent, also while there is no connection to it
    Route route_at_parent = 0;
    bool alive = true;
};

struct Member {
    Node *node = nullptr;
    Route route = 0;
    uint64_t id = 0;
    bool alive = true, ready = false, reads = true;
    std::deque<std::string> in;                  // to the broker, not taken by it yet
    std::map<uint64_t, uint64_t> out, sent, due; // by partner: cost under way, last number sent, cost not credited
    std::map<uint64_t, uint64_t> got;            // last number that came
    std::set<uint64_t> talked, lost;
    std::map<uint32_t, std::string> claims; // not answered yet, by request
    std::set<std::string> names;
    uint32_t requests = 0;
};

struct Tree {
    explicit Tree(uint64_t seed) : random{seed * 2654435761u + 88172645463325252u} {}
    Random random;
    bool lacks_memory = false; // now and then
    int64_t now = 1;
    std::vector<std::unique_ptr<Node>> nodes;
    std::vector<std::unique_ptr<Member>> members;
    Route next_route = 1;

    Member *find(uint64_t id) {
        for (auto &m : members)
            if (m->id == id && m->ready) return m.get();
        return nullptr;
    }
    Member *at(Node &node, Route route) {
        for (auto &m : members)
            if (m->node == &node && m->route == route) return m.get();
        return nullptr;
    }
    Node *below(Node &node, Route route) {
        for (auto &n : nodes)
            if (n->alive && n->parent == &node && n->route_at_parent == route) return n.get();
        return nullptr;
    }
    void give(Node &node, Route route, std::string text) {
        Packet packet{reinterpret_cast<unsigned char *>(text.data()), text.size(), nullptr};
        bool ended = false;
        if (lacks_memory && random.one_in(20)) allocations_left = static_cast<int64_t>(random.below(6));
        try {
            node.exchange.message(route, packet, now);
        } catch (const std::bad_alloc &) {
            ended = true;
        }
        allocations_left = -1;
        if (ended) node.cuts.insert(route);
        end_cut_connections();
    }
    // The exchange learns of the end of a connection; it may have no memory at all for that.
    void end(Node &node, Route route) {
        if (lacks_memory) allocations_left = 0;
        route == parent_route ? node.exchange.parent_down() : node.exchange.gone(route);
        allocations_left = -1;
    }
    void end_cut_connections();
    void cut_below(Node &child);
    Member &join(Node &node);
    void attach(Node &child, Node &parent);
    void claim(Member &member);
    void die(Member &member);
    void die(Node &child);
    void speak(Member &member);
    void hear(Member &member, const std::string &text);
    bool step(); // one frame moves somewhere
    void retire() {
        while (step()) {
        }
    }
};

Node::Node(Tree &t, uint32_t prefix)
    : tree(t), exchange(*this, [&] {
          ExchangeConfig config;
          config.open = true;
          config.window = window;
          config.prefix = prefix;
          config.role_below = [](const Nonce &, const Nonce &) { return Proof{}; };
          return config;
      }()) {}

bool Node::put(Route route, std::string text) {
    if (route == parent_route) {
        if (parent == nullptr) return false;
    } else {
        Member *const member = tree.at(*this, route);
        if ((member == nullptr || !member->alive) && tree.below(*this, route) == nullptr) return false;
    }
    if (tree.lacks_memory && tree.random.one_in(200)) {
        cuts.insert(route);
        return false;
    }
    out[route].push_back(std::move(text));
    return true;
}

void Tree::end_cut_connections() {
    for (bool more = true; std::exchange(more, false);)
        for (auto &node : nodes) {
            if (!node->alive || node->cuts.empty()) continue;
            more = true;
            const Route route = *node->cuts.begin();
            node->cuts.erase(node->cuts.begin());
            if (route == parent_route) {
                if (node->parent != nullptr) cut_below(*node);
            } else if (Member *const member = at(*node, route); member != nullptr && member->alive) {
                member->alive = false;
                node->out.erase(route);
                end(*node, route);
            } else if (Node *const child = below(*node, route)) {
                cut_below(*child);
            }
        }
}

// The connection between a broker and its parent breaks, with what was in transit on it.
void Tree::cut_below(Node &child) {
    Node &parent = *std::exchange(child.parent, nullptr);
    parent.out.erase(child.route_at_parent);
    child.out.erase(parent_route);
    end(parent, child.route_at_parent);
    end(child, parent_route);
}

Member &Tree::join(Node &node) {
    members.push_back(std::make_unique<Member>());
    Member &m = *members.back();
    m.node = &node;
    m.route = next_route++;
    m.in.push_back(frame(Head{Kind::hello, 0, 0, 0}, std::string(1 + nonce_bytes, '\0')));
    m.in.push_back(frame(Head{Kind::proof, 0, 0, 0}, std::string(proof_bytes, '\0')));
    return m;
}

void Tree::attach(Node &child, Node &parent) {
    child.parent = child.above = &parent;
    child.route_at_parent = next_route++;
    const bool lacked = std::exchange(lacks_memory, false);
    give(parent, child.route_at_parent,
         frame(Head{Kind::hello, 0, 0, 0}, std::string(1, '\1') + std::string(nonce_bytes, '\0')));
    unsigned char word[4];
    put_u32(word, child.exchange.prefix());
    give(parent, child.route_at_parent,
         frame(Head{Kind::proof, 0, 0, 0},
               std::string(reinterpret_cast<char *>(word), 4) + std::string(proof_bytes, '\0')));
    parent.out[child.route_at_parent].clear(); // welcome and ready: the uplink's
    child.exchange.parent_up();
    lacks_memory = lacked;
    end_cut_connections();
}

// Asks for a name, or releases one of its own.
void Tree::claim(Member &m) {
    if (!m.names.empty() && random.one_in(3)) {
        m.in.push_back(frame(Head{Kind::release, 0, 0, m.id}, *m.names.begin()));
        m.names.erase(m.names.begin());
        return;
    }
    const std::string name(1, static_cast<char>('a' + random.below(4)));
    const auto is_same = [&](const auto &one) { return one.second == name; };
    if (m.names.count(name) != 0 || std::any_of(m.claims.begin(), m.claims.end(), is_same)) return;
    m.claims[++m.requests] = name;
    m.in.push_back(frame(Head{Kind::claim, m.requests, 0, m.id}, name));
}

// What it had said before may have arrived, or not.
void Tree::die(Member &m) {
    while (!m.in.empty() && m.alive && !random.one_in(3)) {
        const std::string text = m.in.front();
        m.in.pop_front();
        give(*m.node, m.route, text);
    }
    m.in.clear();
    if (!std::exchange(m.alive, false)) return; // it was cut off meanwhile
    m.node->out.erase(m.route);
    if (m.node->alive) end(*m.node, m.route);
    end_cut_connections();
}

void Tree::die(Node &child) {
    child.alive = false;
    Node *const parent = child.parent;
    for (auto &m : members)
        if (m->node == &child) m->alive = false;
    child.out.clear();
    if (parent != nullptr) {
        parent->out.erase(child.route_at_parent);
        end(*parent, child.route_at_parent);
    }
    end_cut_connections();
}

void Tree::speak(Member &m) {
    if (!m.ready || members.empty()) return;
    Member &to = *members[random.below(members.size())];
    if (!to.ready || m.lost.count(to.id) != 0) return;
    const bool many = random.one_in(8);
    std::vector<uint64_t> ids{to.id};
    if (many)
        for (auto &other : members)
            if (other->ready && other->id != to.id && random.one_in(2) && m.lost.count(other->id) == 0)
                ids.push_back(other->id);
    const size_t size = 8 + random.below(600);
    const uint64_t charge = cost(head_bytes + size);
    for (const uint64_t id : ids)
        if (m.out[id] != 0 && m.out[id] + charge > window) return;
    // The number of each partner's message is its own: a group's payload carries the numbers in the order of the list.
    std::string payload, numbers;
    for (const uint64_t id : ids) {
        m.out[id] += charge;
        m.talked.insert(id);
        m.sent[id]++;
    }
    if (!many) {
        unsigned char word[8];
        put_u64(word, m.sent[to.id]);
        payload.assign(reinterpret_cast<char *>(word), 8);
        payload.resize(size, 'd');
        m.in.push_back(frame(Head{Kind::data, 0, to.id, m.id}, payload));
        return;
    }
    for (const uint64_t id : ids) {
        unsigned char word[8];
        put_u64(word, id);
        payload.append(reinterpret_cast<char *>(word), 8);
    }
    payload.resize(payload.size() + size, 'g');
    m.in.push_back(frame(Head{Kind::group, static_cast<uint32_t>(ids.size()), 0, m.id}, payload));
}

void Tree::hear(Member &m, const std::string &text) {
    Head head;
    assert_true(get_head(reinterpret_cast<const unsigned char *>(text.data()), text.size(), head));
    const std::string_view payload = std::string_view(text).substr(head_bytes);
    switch (head.kind) {
    case Kind::welcome:
        return;
    case Kind::answer: {
        Answer answer;
        assert_true(answer.decode(payload));
        const auto asked = m.claims.find(head.word);
        if (asked == m.claims.end()) return; // of a claim that its broker has made again
        if (answer.status == MUSTER_OK) m.names.insert(asked->second);
        m.claims.erase(asked);
        return;
    }
    case Kind::ready:
        m.ready = true;
        m.id = head.to;
        return;
    case Kind::data:
    case Kind::group: {
        const size_t list = head.kind == Kind::group ? head.word * size_t{8} : 0;
        if (lacks_memory && m.lost.count(head.from) != 0) return; // beyond a connection that was established again
        assert_int_equal(m.lost.count(head.from), 0);             // a lost member sends nothing more
        uint64_t &got = m.got[head.from];
        got++;
        if (head.kind == Kind::data) {
            const uint64_t number = get_u64(reinterpret_cast<const unsigned char *>(payload.data()));
            assert_int_equal(head.to, m.id);
            assert_true(number >= got); // in order
            // None is missing, unless the sender is about to learn that a connection between brokers broke.
            if (!lacks_memory) assert_int_equal(number, got);
            got = number;
        }
        m.talked.insert(head.from);
        m.due[head.from] += cost(text.size() - list);
        if (m.due[head.from] >= window / 4 || random.one_in(3)) {
            m.in.push_back(frame(Head{Kind::credit, static_cast<uint32_t>(m.due[head.from]), head.from, m.id}, {}));
            m.due[head.from] = 0;
        }
        return;
    }
    case Kind::credit:
        if (lacks_memory && m.lost.count(head.from) != 0) return;
        assert_true(m.out[head.from] >= head.word);
        m.out[head.from] -= head.word;
        return;
    case Kind::lost:
        m.lost.insert(head.from);
        return;
    default:
        fail_msg("a member was told something of kind %d", static_cast<int>(head.kind));
    }
}

bool Tree::step() {
    now += 1'000'000;
    std::vector<std::function<void()>> moves;
    for (auto &m : members) {
        Member *const member = m.get();
        if (!member->alive) continue;
        if (!member->in.empty())
            moves.push_back([this, member] {
                const std::string text = member->in.front();
                member->in.pop_front();
                give(*member->node, member->route, text);
            });
        auto &queue = member->node->out[member->route];
        if (member->reads && !queue.empty())
            moves.push_back([this, member, &queue] {
                const std::string text = queue.front();
                queue.pop_front();
                hear(*member, text);
            });
    }
    for (auto &n : nodes) {
        Node *const node = n.get();
        if (!node->alive || node->parent == nullptr || !node->parent->alive) continue;
        auto &up = node->out[parent_route];
        auto &down = node->parent->out[node->route_at_parent];
        if (!up.empty())
            moves.push_back([this, node, &up] {
                const std::string text = up.front();
                up.pop_front();
                give(*node->parent, node->route_at_parent, text);
            });
        if (!down.empty())
            moves.push_back([this, node, &down] {
                const std::string text = down.front();
                down.pop_front();
                give(*node, parent_route, text);
            });
    }
    if (moves.empty()) return false;
    moves[random.below(moves.size())]();
    return true;
}

void check_quiet(Tree &tree) {
    uint64_t queued = 0, known = 0;
    for (auto &m : tree.members) {
        if (!m->alive) continue;
        for (const uint64_t partner : m->talked) {
            Member *const other = tree.find(partner);
            const bool there = other != nullptr && other->alive;
            if (m->lost.count(partner) == 0 && !there) fail_msg("a member does not know that its partner is gone");
            if (m->lost.count(partner) == 0 && other->lost.count(m->id) == 0)
                assert_int_equal(other->got[m->id], m->sent[partner]);
        }
        for (const auto &[partner, cost] : m->out)
            if (m->lost.count(partner) == 0) queued += cost;
        assert_true(m->claims.empty());
    }
    for (auto &n : tree.nodes)
        if (n->alive) known += n->exchange.stats().queued_bytes;
    if (tree.lacks_memory) return; // messages to a lost member count until the receiver ends; names may be lost
    assert_int_equal(queued, known);
    std::map<std::string, uint64_t> owners;
    for (auto &m : tree.members)
        for (const std::string &name : m->names)
            if (m->alive) assert_true(owners.emplace(name, m->id).second);
    assert_int_equal(tree.nodes[0]->exchange.stats().names, owners.size());
}

void run_schedule(uint64_t seed, bool brokers_die, bool lacks_memory) {
    Tree tree(seed);
    const size_t node_count = 1 + tree.random.below(4);
    for (size_t i = 0; i < node_count; i++)
        tree.nodes.push_back(std::make_unique<Node>(tree, static_cast<uint32_t>(i) + 1));
    for (size_t i = 1; i < node_count; i++) tree.attach(*tree.nodes[i], *tree.nodes[tree.random.below(i)]);
    tree.retire();
    tree.lacks_memory = lacks_memory;
    for (int turn = 0; turn < 300; turn++) {
        Node &node = *tree.nodes[tree.random.below(node_count)];
        Member *const member =
            tree.members.empty() ? nullptr : tree.members[tree.random.below(tree.members.size())].get();
        switch (tree.random.below(13)) {
        case 0:
            if (node.alive && tree.members.size() < 12) tree.join(node);
            break;
        case 1:
            if (member != nullptr && member->alive && tree.random.one_in(3)) tree.die(*member);
            break;
        case 2:
            if (member != nullptr && member->alive && member->ready && tree.random.one_in(3)) {
                member->in.push_back(frame(Head{Kind::bye, 0, 0, 0}, {})); // it leaves after its last messages
                while (!member->in.empty() && member->alive) {
                    const std::string text = member->in.front();
                    member->in.pop_front();
                    tree.give(*member->node, member->route, text);
                }
                tree.die(*member);
            }
            break;
        case 3:
            if (member != nullptr) member->reads = tree.random.one_in(2);
            break;
        case 4: { // a broker at the edge dies
            bool leaf = node.parent != nullptr && node.alive;
            for (auto &other : tree.nodes) leaf = leaf && !(other->alive && other->parent == &node);
            if (brokers_die && leaf && tree.random.one_in(10)) tree.die(node);
            break;
        }
        case 5:
            if (member != nullptr && member->alive && member->ready) tree.claim(*member);
            if (node.alive && node.parent == nullptr && node.above != nullptr && node.above->alive)
                tree.attach(node, *node.above);
            break;
        default:
            if (member != nullptr && member->alive && member->ready) tree.speak(*member);
        }
        for (uint64_t steps = tree.random.below(6); steps != 0 && tree.step(); steps--) {
        }
    }
    for (auto &m : tree.members) m->reads = true;
    tree.retire();
    check_quiet(tree);
    if (!brokers_die && !lacks_memory) // no living member was reported as gone
        for (auto &m : tree.members)
            for (const uint64_t id : m->lost)
                if (m->alive) assert_false(tree.find(id)->alive);
    for (auto &m : tree.members)
        if (m->alive) tree.die(*m);
    tree.retire();
    for (auto &n : tree.nodes) {
        if (!n->alive) continue;
        const ExchangeStats stats = n->exchange.stats();
        assert_int_equal(stats.members, 0);
        assert_int_equal(stats.pairs, 0);
        assert_int_equal(stats.queued_bytes, 0);
        assert_int_equal(stats.names, 0);
        assert_int_equal(stats.refused, 0); // and no member was disconnected
    }
}

void test_random_schedules_keep_every_promise(void **) {
    for (uint64_t seed = 1; seed <= 3000; seed++) run_schedule(seed, false, false);
}

void test_also_when_brokers_die(void **) {
    for (uint64_t seed = 1; seed <= 3000; seed++) run_schedule(seed, true, false);
}

void test_also_when_memory_runs_out(void **) {
    for (uint64_t seed = 1; seed <= 6000; seed++) run_schedule(seed, seed % 2 == 0, true);
}

// ---- one by one
// ------------------------------------------------------------------------------------------------------

struct Single {
    Tree tree{7};
    Node &node;
    Single() : node(*tree.nodes.emplace_back(std::make_unique<Node>(tree, 9))) {}
    Member &member() {
        Member &m = tree.join(node);
        tree.retire();
        assert_true(m.ready);
        return m;
    }
    void send(Member &m, const Head &head, std::string_view payload = {}) {
        tree.give(node, m.route, frame(head, payload));
    }
    uint64_t refused() { return node.exchange.stats().refused; }
};

// Each of these ends the membership of its sender, and of no other member.
void test_rules_are_kept_or_it_ends(void **) {
    const std::vector<std::function<void(Single &, Member &, Member &)>> breaches = {
        [](Single &s, Member &m, Member &) { s.tree.give(s.node, m.route, "nonsense"); },
        [](Single &s, Member &m, Member &other) {
            s.send(m, {Kind::data, 0, other.id, other.id}, "for another");
        },
        [](Single &s, Member &m, Member &other) {
            s.send(m, {Kind::data, 0, other.id, m.id}, std::string(max_message_bytes + 1, 'x'));
        },
        [](Single &s, Member &m, Member &other) { // beyond the window
            for (int i = 0; i < 100; i++) s.send(m, {Kind::data, 0, other.id, m.id}, std::string(1000, 'x'));
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::claim, 1, 0, m.id}, "a name that cannot be one");
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::find, 1, 0, m.id}, "");
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::group, 4, 0, m.id}, "no list");
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::group, 0xffffffff, 0, m.id}, std::string(100, 'x'));
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::attach, 77, 0, m.id});
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::detach, 9, 0, m.id});
        },
        [](Single &s, Member &m, Member &) {
            s.send(m, {Kind::hello, 0, 0, m.id}, std::string(1 + nonce_bytes, 'x'));
        },
        [](Single &s, Member &m, Member &) { // questions without end
            for (int i = 0; i < 100000 && s.refused() == 0; i++) s.send(m, {Kind::find, 1, 0, m.id}, "nobody");
        },
        [](Single &s, Member &m, Member &) { // endless messages without a receiver
            for (int i = 0; i < 100000 && s.refused() == 0; i++) s.send(m, {Kind::data, 0, 12345, m.id}, "x");
        },
    };
    for (const auto &breach : breaches) {
        Single s;
        Member &bad = s.member(), &good = s.member(), &partner = s.member();
        s.send(bad, {Kind::data, 0, partner.id, bad.id}, std::string(8, '\1'));
        breach(s, bad, good);
        assert_int_equal(s.refused(), 1);
        assert_int_equal(s.node.exchange.stats().members, 2);
        const auto &told = s.node.out[partner.route];
        Head last;
        assert_true(get_head(reinterpret_cast<const unsigned char *>(told.back().data()), told.back().size(), last));
        assert_true(last.kind == Kind::lost && last.from == bad.id);
        s.send(bad, {Kind::data, 0, good.id, bad.id}, "later"); // is not processed any more
        s.send(good, {Kind::data, 0, partner.id, good.id}, std::string(8, '\1'));
        assert_int_equal(s.node.exchange.stats().messages, s.node.exchange.stats().messages);
        assert_int_equal(s.node.exchange.stats().members, 2);
    }
}

void test_unauthenticated_peers_get_ten_seconds(void **) {
    Single s;
    s.tree.give(s.node, 500, "GET / HTTP/1.1");
    assert_false(s.node.exchange.has_node(500)); // forgotten at once
    s.tree.give(s.node, 501, frame(Head{Kind::hello, 0, 0, 0}, std::string(1 + nonce_bytes, '\0')));
    assert_true(s.node.exchange.has_node(501));
    assert_int_equal(s.refused(), 1);
    s.node.exchange.tick(s.tree.now + 9'000'000'000);
    assert_int_equal(s.refused(), 1);
    s.node.exchange.tick(s.tree.now + 11'000'000'000);
    assert_int_equal(s.refused(), 2);
    s.tree.give(s.node, 501, frame(Head{Kind::proof, 0, 0, 0}, std::string(proof_bytes, '\0')));
    assert_int_equal(s.node.exchange.stats().members, 0); // too late
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_random_schedules_keep_every_promise),
        cmocka_unit_test(test_also_when_brokers_die),
        cmocka_unit_test(test_also_when_memory_runs_out),
        cmocka_unit_test(test_rules_are_kept_or_it_ends),
        cmocka_unit_test(test_unauthenticated_peers_get_ten_seconds),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
