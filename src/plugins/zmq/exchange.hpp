// SPDX-License-Identifier: MIT
#pragma once
// The state machine of a broker: its members, their names, which members exchange data, and how many bytes of each pair
// are in flight. It has no socket and no clock, so that tests and fuzzers can act as its members.
#include "keys.hpp"
#include "wire.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace star {

// The number of a connection of the broker. The connection to the parent broker is `parent_route`.
using Route = uint64_t; // as in connection.hpp
constexpr Route parent_route = UINT64_MAX;

// A received message; `message` belongs to the outlet, and moves with forward().
struct Packet {
    unsigned char *data;
    size_t size;
    void *message;
};

inline std::string_view payload_of(const Packet &packet) noexcept {
    return {reinterpret_cast<const char *>(packet.data) + head_bytes, packet.size - head_bytes};
}

// Sends the messages of an exchange. Functions that return false: the connection has ended, for want of memory perhaps;
// Exchange::gone() follows, or parent_down().
class Outlet {
  public:
    virtual bool send(Route route, const Head &head, std::string_view payload) noexcept = 0;
    virtual bool forward(Route route, Packet &packet) noexcept = 0;      // the packet is empty afterwards
    virtual bool forward_copy(Route route, Packet &packet) noexcept = 0; // its bytes are shared, the packet stays
    virtual void log(int32_t level, std::string_view text) noexcept = 0;
    virtual void admitted(Route) noexcept {} // the peer is a member or a broker now
    virtual void hang_up(Route) noexcept {}  // after the sent bytes are written; gone() follows
    virtual void cut(Route) noexcept {} // at the end of this turn, without the bytes that wait for it; gone() follows
    virtual Queued queued(Route) noexcept { return {}; }

  protected:
    ~Outlet() = default;
};

struct ExchangeConfig {
    bool open = false; // members need no proof
    // CURVE keys that derive from the secret have proved already that a peer holds it.
    bool is_secret_proved = false;
    uint64_t window = 1024 * 1024;
    size_t max_members = 65536;
    uint32_t prefix = 0;
    // The proof of one side for two nonces: Keys::proof().
    std::function<Proof(bool, const Nonce &, const Nonce &)> proof;
    // The role key, RoleKey in role.hpp: prove() answers the challenge of a hello, below() is the proof of a child
    // broker. Empty: this broker has no role key, and accepts no child brokers.
    std::function<bool(const std::array<unsigned char, challenge_bytes> &, const Nonce &, const Nonce &, Proof &)>
        prove_role;
    std::function<Proof(const Nonce &, const Nonce &)> role_below;
};

struct ExchangeStats { // a value
    uint64_t members = 0, brokers = 0, pairs = 0, names = 0;
    uint64_t bytes = 0, messages = 0; // of members, forwarded
    uint64_t multicasts = 0;          // received from members of this broker
    uint64_t queued_bytes = 0;        // upper bound of the bytes in flight, by the windows
    uint64_t refused = 0, lost = 0;   // members refused or expelled; connections that ended without bye
};

// One thread. Only message() needs memory of its own, and may throw: the connection that the message came from is to be
// ended then, and gone() restores what the message had changed in part.
class Exchange {
  public:
    Exchange(Outlet &outlet, ExchangeConfig config);
    // A message was received.
    void message(Route from, Packet &packet, int64_t now_ns);
    void gone(Route route) noexcept; // the connection has ended
    void tick(int64_t now_ns) noexcept;
    // The connection to the parent broker. While it stands, requests that this broker cannot answer go there.
    void parent_up() noexcept;
    void parent_down() noexcept;
    bool has_parent() const noexcept { return parent_; }
    bool has_node(Route route) const noexcept { return nodes_.count(route) != 0; }
    ExchangeStats stats() const;
    uint32_t prefix() const noexcept { return config_.prefix; }

  private:
    enum class State : uint8_t { unauthenticated, proving, member, broker, banned };
    struct Pair {
        uint64_t out = 0; // cost of data sent and not credited yet
    };
    struct Node {
        Route route = 0;
        State state = State::unauthenticated;
        bool broker = false, left = false, overfull = false;
        bool claims = false; // it has asked for a name
        uint32_t asked = 0;  // questions of it in asked_
        uint64_t owed = 0;   // a member: cost of data sent to it that it has not credited
        uint64_t id = 0;
        int64_t since_ns = 0;
        double tokens = max_tokens; // requests it may make now
        int64_t tokens_ns = 0;
        Nonce theirs{}, ours{};
        std::unordered_map<uint64_t, Pair> pairs;
        std::unordered_set<std::string> names;
        std::unordered_set<uint32_t> prefixes; // of brokers that are reached through it
    };
    static constexpr double max_tokens = 8192, tokens_per_s = 2048;
    static constexpr size_t max_names = 64, max_pairs = 1 << 20, max_group_members = 4096, max_asked = 8192;
    struct Question { // for the parent: a claim or a find
        Kind kind;
        Route route; // of its asker, or of the broker that leads to it
        std::string name;
    };

    void take(Route from, Packet &packet, int64_t now_ns);
    void hello(Node &node, std::string_view payload);
    void proof(Node &node, std::string_view payload);
    void welcome_member(Node &node);
    void send_ready(const Node &node);
    void welcome_broker(Node &node, std::string_view payload);
    void refuse(Node &node, muster_status status, const std::string &why);
    void ban(Node &node, std::string_view why);
    bool spend_token(Node &node, int64_t now_ns);
    void from_member(Node &node, const Head &head, Packet &packet, int64_t now_ns);
    void from_broker(Route route, Node *node, const Head &head, Packet &packet);
    void data(Node &from, const Head &head, Packet &packet);
    void group(Node *from, Route route, const Head &head, Packet &packet);
    void route_on(const Head &head, Packet &packet, Route came_from);
    void deliver(Node &to, Packet &packet) noexcept;
    void check_backlog(Node &to) noexcept;
    void cut_overfull_members() noexcept;
    void credited(const Head &head) noexcept;
    bool is_owed(const Head &head) noexcept;
    void ask_parent(const Head &head, Route route, const std::string &name);
    void forget_questions(uint64_t first, uint64_t last) noexcept;
    void claim(const Head &head, Route route, const std::string &name);
    void find(const Head &head, Route route, const std::string &name);
    void release(uint64_t owner, const std::string &name) noexcept;
    void release_all(uint64_t owner) noexcept;
    void record_name(uint64_t owner, const std::string &name);
    void report_lost(uint64_t who, uint64_t to, std::string_view why) noexcept;
    template <class Is>
    void report_partners_lost(Node &member, Is is_lost, Route via, std::string_view why) noexcept;
    void send(Route route, Kind kind, uint32_t word, uint64_t to, uint64_t from,
              std::string_view payload = {}) noexcept;
    void unreachable(uint32_t prefix, Route route, bool is_up) noexcept;
    void beyond_gone(std::string_view why) noexcept;
    void record_claim(uint64_t asked, uint64_t owner, const std::string &name);
    void attach(Node &node, uint32_t prefix);
    void detach(Node &node, uint32_t prefix, bool is_up) noexcept;
    void detach_all(Node &node) noexcept;
    void log_child(int32_t level, const Node &node, const char *what) noexcept;
    void remove_member(Node &node, std::string_view why) noexcept;
    void send_answer(Route route, const Head &question, const Answer &answer, uint64_t found = 0);
    Route route_of(uint32_t prefix) const noexcept; // 0: none
    Node *local(uint64_t id) noexcept;
    uint64_t make_id() noexcept;

    Outlet &outlet_;
    const ExchangeConfig config_;
    bool parent_ = false;
    uint32_t next_id_ = 1;
    int64_t now_ns_ = 0;
    std::unordered_map<Route, std::unique_ptr<Node>> nodes_;
    std::unordered_map<uint64_t, Node *> members_;                         // of this broker
    std::unordered_map<uint32_t, Route> prefixes_;                         // of brokers below
    std::unordered_map<std::string, uint64_t> names_;                      // of the whole tree, at the root
    std::unordered_map<uint64_t, std::unordered_set<std::string>> owners_; // the same, by owner
    // Not answered by the parent yet, by asker and number. Without the parent this broker answers them.
    std::map<std::pair<uint64_t, uint32_t>, Question> asked_;
    ExchangeStats stats_;
    uint64_t queued_ = 0;
    std::vector<Route> overfull_; // cut after the current message
};

} // namespace star
