// SPDX-License-Identifier: MIT
#pragma once
// A member of a star: this process's place at one broker, in one context. It keeps a connection while somebody is named
// here, asks for a name, or talks; comes back with growing pauses when the broker was lost; and keeps the windows.
#include "base/back_off.hpp"
#include "uplink.hpp"

#include <muster/plugin.h>

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace star {

class Plugin;

// Which broker, and how: from the authority `[name@]host[:port][?options]`, with curve=no or curve=/file, and
// broker=KEY. A value.
struct BrokerAddress {
    std::string name, place;            // place: host:port
    std::string curve_file;             // as it stands in the address
    std::optional<CurveKey> broker_key; // the public role key that the broker has to prove
    bool curve = true, local = false;

    static bool parse(std::string_view authority, BrokerAddress &out, std::string &why);
    std::string key() const; // without the name: which star
    std::string authority_of(const std::string &who) const { return who + "@" + key(); }
};

// Loop thread only.
class Star final : public UplinkOwner {
  public:
    Star(Plugin &plugin, BrokerAddress address, std::optional<CurveKeys> keys, std::optional<CurveKey> pinned);
    ~Star();
    Star(const Star &) = delete;
    Star &operator=(const Star &) = delete;

    // Both are answered later, by Plugin::answer().
    void find(const std::string &name, uint64_t question);
    void claim(const std::string &name, uint64_t question);
    void release(const std::string &name);
    // By the broker's numbers.
    muster_status send(uint64_t id, const muster_span *spans, uint32_t count);
    muster_status send_buffer(uint64_t id, void *segment, size_t offset, size_t size);
    // `offset` leaves room for the head and the numbers.
    muster_status send_multicast(const std::vector<uint64_t> &ids, void *segment, size_t offset, size_t size);
    void forget(uint64_t number, uint64_t id); // the library's, the broker's
    void leave();                              // begins to; nothing else is done afterwards
    void drain(int64_t limit_ns);              // after leave(): waits until what was sent is written
    const BrokerAddress &address() const noexcept { return address_; }

  private:
    struct Peer {
        uint64_t number = 0; // the library's
        uint64_t out = 0;    // cost of what was sent and not credited yet
        uint64_t due = 0;    // of what was taken and not told yet
        bool blocked = false, known = false;
    };
    struct Asked {
        bool claim = false;
        std::string name;
        uint64_t question = 0; // the library's; 0: it has been answered already
    };
    struct Name {
        uint32_t users = 0;
        bool ours = false; // the broker says so
    };

    void up_ready(uint64_t id, uint64_t window) override;
    void up_message(const Head &head, Message &message) override;
    void up_lost(muster_status status, const std::string &why) override;
    muster_status up_watch(int fd, bool writable) override;
    void connect();
    void disconnect();
    void retry_later();
    void ready();     // the connection has news
    void look();      // was it lost?
    void look_soon(); // from an operation: not inside it
    void tick();
    void ask(const Asked &asked);
    void answered(const Head &head, std::string_view payload);
    void data(uint64_t from, const unsigned char *bytes, size_t size, Message &message);
    void data_for_many(const Head &head, const unsigned char *bytes, size_t size, Message &message);
    void taken(uint64_t from, size_t message_bytes);
    void credit(uint64_t from, uint64_t bytes);
    void lost(uint64_t who, std::string_view text);
    Peer *peer(uint64_t id); // nullptr: no more of them
    void nonsense(const char *what);
    void tell_lost(const Peer &peer, const std::string &why); // one that is among peers_ no more
    bool may_send(Peer &peer, size_t message_bytes);
    muster_status sent(Peer &peer, Message &message, bool done);
    void give_credit(uint64_t id, Peer &peer);
    void settle(uint64_t id, Peer &peer); // forgotten by the library, and nothing under way: is no more

    Plugin &plugin_;
    const BrokerAddress address_;
    const std::optional<CurveKeys> keys_;
    const std::optional<CurveKey> pinned_;
    std::unique_ptr<Uplink> uplink_;
    muster_watch *watch_ = nullptr;
    int watched_ = -1;
    muster_timer *timer_ = nullptr, *retry_ = nullptr;
    muster::BackOff back_off_{20'000'000, 2'000'000'000}; // between two connections to the broker
    uint64_t window_ = 0;
    bool look_posted_ = false, down_ = false;
    muster_status down_status_ = MUSTER_OK;
    std::string down_why_;
    std::unordered_map<uint64_t, Peer> peers_;
    std::unordered_set<uint64_t> lost_; // numbers told to the library, not forgotten by it yet
    std::map<uint32_t, Asked> asked_;   // by the number of the question
    uint32_t next_asked_ = 1;
    std::map<std::string, Name> names_;
};

} // namespace star
