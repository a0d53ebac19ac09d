// SPDX-License-Identifier: MIT
#pragma once
// What a broker knows and decides: who is in, who has which name, who talks to whom, and how many bytes of each pair
// are on their way. It has no socket and no clock, so tests and fuzzing can be its members.
#include "keys.hpp"
#include "wire.hpp"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace star {

// A connection of the broker's. Members and brokers below have numbers; the broker above is `parent_route`.
using Route = uint64_t; // as in connection.hpp
constexpr Route parent_route = UINT64_MAX;

// A message on its way; `message` is the outlet's own, and moves with forward().
struct Parcel {
    const unsigned char *data;
    size_t size;
    void *message;
};

inline std::string_view payload_of(const Parcel &parcel) noexcept {
    return {reinterpret_cast<const char *>(parcel.data) + head_bytes, parcel.size - head_bytes};
}
inline const unsigned char *bytes(std::string_view text) noexcept {
    return reinterpret_cast<const unsigned char *>(text.data());
}
std::string broker_number(uint64_t prefix); // in hex, for logs

// Where an exchange's words go. False: the connection is gone, Exchange::gone() follows soon.
class Outlet {
  public:
    virtual bool send(Route route, const Head &head, std::string_view payload) = 0;
    virtual bool forward(Route route, Parcel &parcel) = 0;      // the parcel is empty then
    virtual bool forward_copy(Route route, Parcel &parcel) = 0; // its bytes are shared, and stay
    virtual void log(int32_t level, const std::string &text) = 0;
    virtual void admitted(Route) {} // it is a member or a broker from now on
    virtual void hang_up(Route) {}  // when what was sent is written; gone() follows
    virtual void cut(Route) {}      // at once, soon: what waits for it is dropped; gone() follows
    virtual Queued queued(Route) { return {}; }

  protected:
    ~Outlet() = default;
};

struct ExchangeConfig {
    bool open = false; // members need no proof
    // The connection has proved that a peer holds the secret: with CURVE keys that derive from it.
    bool is_secret_proved = false;
    uint64_t window = 1024 * 1024;
    size_t members_max = 65536;
    uint32_t prefix = 0;
    // The proof of one side for two nonces: Keys::proof().
    std::function<Proof(bool, const Nonce &, const Nonce &)> proof;
    // The role key, RoleKey in role.hpp: prove() answers the challenge of a hello, below() is what a broker below has
    // to show. Empty: this broker has no role key, and accepts no brokers below it.
    std::function<bool(const std::array<unsigned char, challenge_bytes> &, const Nonce &, const Nonce &, Proof &)>
        prove_role;
    std::function<Proof(const Nonce &, const Nonce &)> role_below;
};

struct ExchangeStats { // a value
    uint64_t members = 0, brokers = 0, pairs = 0, names = 0;
    uint64_t bytes = 0, messages = 0; // of members, sent on
    uint64_t multicasts = 0;          // that came once for many, from members of this broker
    uint64_t queued_bytes = 0;        // at most so many are on their way, by the windows
    uint64_t refused = 0, lost = 0;   // members not let in or thrown out; gone without a word
};

// One thread.
class Exchange {
  public:
    Exchange(Outlet &outlet, ExchangeConfig config);
    // A message came in. True: its sender is a stranger's first word, Exchange::gone() is wanted for that route.
    void message(Route from, Parcel &parcel, int64_t now_ns);
    void gone(Route route); // the connection has ended
    void tick(int64_t now_ns);
    // The broker above; between these two everything this one does not know is sent there.
    void parent_up();
    void parent_down();
    bool has_parent() const noexcept { return parent_; }
    bool knows(Route route) const noexcept { return nodes_.count(route) != 0; }
    ExchangeStats stats() const;
    uint32_t prefix() const noexcept { return config_.prefix; }

  private:
    enum class State : uint8_t { stranger, proving, member, broker, banned };
    struct Pair {
        uint64_t out = 0; // cost of what was sent and not credited yet
    };
    struct Node {
        Route route = 0;
        State state = State::stranger;
        bool broker = false, left = false, overfull = false;
        uint64_t owed = 0; // a member: cost of data for it that it has not credited
        uint64_t id = 0;
        int64_t since_ns = 0;
        double tokens = tokens_max; // questions it may ask
        int64_t tokens_ns = 0;
        Nonce theirs{}, ours{};
        std::unordered_map<uint64_t, Pair> pairs;
        std::unordered_set<std::string> names;
        std::unordered_set<uint32_t> prefixes; // brokers: reached through it
    };
    static constexpr double tokens_max = 8192, tokens_per_s = 2048;
    static constexpr size_t names_max = 64, pairs_max = 1 << 20, group_max = 4096;

    void take(Route from, Parcel &parcel, int64_t now_ns);
    void hello(Node &node, std::string_view payload);
    void proof(Node &node, std::string_view payload);
    void welcome_member(Node &node);
    void say_ready(const Node &node);
    void welcome_broker(Node &node, std::string_view payload);
    void refuse(Node &node, muster_status status, const std::string &why);
    void ban(Node &node, const std::string &why);
    bool spend(Node &node, int64_t now_ns);
    void from_member(Node &node, const Head &head, Parcel &parcel, int64_t now_ns);
    void from_broker(Route route, Node *node, const Head &head, Parcel &parcel);
    void data(Node &from, const Head &head, Parcel &parcel);
    void group(Node *from, Route route, const Head &head, Parcel &parcel);
    void route_on(const Head &head, Parcel &parcel, Route came_from);
    bool deliver(Node &to, const Head &head, Parcel &parcel);
    void watch(Node &to);
    void cut_overfull();
    void credited(const Head &head);
    bool is_owed(const Head &head) noexcept;
    void claim(const Head &head, Route route, const std::string &name);
    void find(const Head &head, Route route, const std::string &name);
    void release(uint64_t owner, const std::string &name);
    void forsake(uint64_t owner);
    void tell_lost(uint64_t who, uint64_t to, const std::string &why);
    void say(Route route, Kind kind, uint32_t word, uint64_t to, uint64_t from, std::string_view payload = {});
    void unreachable(uint32_t prefix, Route except);
    void beyond_gone(const std::string &why);
    void note_claim(uint64_t asked, uint64_t owner, const std::string &name);
    void attach(Node &node, uint32_t prefix);
    void detach(Route route, Node &node, uint32_t prefix);
    void remove_member(Node &node, const std::string &why);
    void say_answer(Route route, const Head &question, const Answer &answer, uint64_t found = 0);
    Route route_of(uint32_t prefix) const noexcept; // 0: none
    Node *local(uint64_t id) noexcept;
    uint64_t make_id() noexcept;

    Outlet &outlet_;
    const ExchangeConfig config_;
    bool parent_ = false;
    uint32_t next_id_ = 1;
    int64_t now_ns_ = 0;
    std::unordered_map<Route, std::unique_ptr<Node>> nodes_;
    std::unordered_map<uint64_t, Node *> members_;    // of this broker
    std::unordered_map<uint32_t, Route> prefixes_;    // of brokers below
    std::unordered_map<std::string, uint64_t> names_; // of the whole tree, where there is no broker above
    std::unordered_map<uint64_t, std::unordered_set<std::string>> owners_; // the same by owner
    ExchangeStats stats_;
    uint64_t queued_ = 0;
    std::vector<Route> overfull_; // cut when the message at hand is done with
};

} // namespace star
