// SPDX-License-Identifier: MIT
#pragma once
// The membership of this context in one star. It is connected while it has claimed a name, resolves one or exchanges
// data; it connects again with back-off after the broker was lost; and it counts the credit of each peer. Where memory
// runs out, the connection to the broker ends, with everything that depends on it, and is established again; that its
// end is reported and that it is tried again needs no memory.
#include "alarm.hpp"
#include "base/back_off.hpp"
#include "uplink.hpp"

#include <muster/plugin.h>

#include <map>
#include <unordered_map>
#include <vector>

namespace star {

class Plugin;

// The authority `[name@]host[:port][?options]` of an address, with curve=no or curve=/file, and broker=KEY. A value.
struct BrokerAddress {
    std::string name, place;            // place: host:port
    std::string curve_file;             // percent-encoded, as in the address
    std::optional<CurveKey> broker_key; // the broker's public role key
    bool curve = true, local = false;

    static bool parse(std::string_view authority, BrokerAddress &out, std::string &why);
    std::string key() const; // without the name: identifies the star
    std::string authority_of(const std::string &who) const { return who + "@" + key(); }
};

// Loop thread only.
class Star final : public UplinkOwner {
  public:
    Star(Plugin &plugin, BrokerAddress address, std::optional<CurveKeys> keys, std::optional<CurveKey> pinned);
    ~Star();
    Star(const Star &) = delete;
    Star &operator=(const Star &) = delete;
    muster_status open() noexcept { return alarm_.open(); } // before all other calls

    // Plugin::answer() completes both later.
    void find(const std::string &name, uint64_t id);
    void claim(const std::string &name, uint64_t id);
    void release(std::string_view name) noexcept;
    // Peers by the broker's numbers.
    muster_status send(uint64_t id, const muster_span *spans, uint32_t count);
    muster_status send_buffer(uint64_t id, void *segment, size_t offset, size_t size);
    // `offset` leaves room for the head and the numbers.
    muster_status send_multicast(const std::vector<uint64_t> &ids, void *segment, size_t offset, size_t size);
    void forget(uint64_t id);
    void leave() noexcept;                 // begins to leave; only drain() follows
    void drain(int64_t limit_ns) noexcept; // after leave(): waits until the sent bytes are written
    const BrokerAddress &address() const noexcept { return address_; }

  private:
    struct Peer {
        uint64_t number = 0; // the library's number
        uint64_t out = 0;    // cost of data sent and not credited yet
        uint64_t due = 0;    // cost of data consumed and not credited yet
        bool blocked = false, known = false;
    };
    struct NameRequest {
        bool claim = false;
        std::string name;
        uint64_t id = 0; // the library's request; 0: completed before
    };
    struct Name {
        uint32_t users = 0;
        bool ours = false; // confirmed by the broker
    };

    void uplink_ready(uint64_t id, uint64_t window) override;
    void uplink_message(const Head &head, Message &message) override;
    void uplink_lost(muster_status status, std::string_view why) noexcept override;
    muster_status watch_uplink(int fd, bool writable) override;
    void connect() noexcept;
    void disconnect() noexcept;
    template <class Body>
    void call(Body body) noexcept;
    void ready();                // the descriptor is ready
    void due();                  // the alarm rings
    void report_down() noexcept; // reports a lost connection to the library, outside of the uplink
    void tick();
    void ask(const NameRequest &request);
    void answered(const Head &head, std::string_view payload);
    void data(uint64_t from, const unsigned char *bytes, size_t size, Message &message);
    void multicast_data(const Head &head, const unsigned char *bytes, size_t size, Message &message);
    void received_bytes(uint64_t from, size_t message_bytes);
    void credit(uint64_t from, uint64_t bytes);
    void lost(uint64_t who, std::string_view text);
    Peer *peer(uint64_t id);                                           // nullptr: too many
    void report_lost(const Peer &peer, std::string_view why) noexcept; // of a peer that is not in peers_ any more
    bool may_send(Peer &peer, size_t message_bytes);
    muster_status complete_send(Peer &peer, Message &message, bool done);
    void give_credit(uint64_t id, Peer &peer);
    void retire(uint64_t id, Peer &peer); // removes a peer that the library has forgotten, once nothing is in flight

    Plugin &plugin_;
    const BrokerAddress address_;
    const std::optional<CurveKeys> keys_;
    const std::optional<CurveKey> pinned_;
    std::unique_ptr<Uplink> uplink_;
    muster_watch *watch_ = nullptr;
    int watched_ = -1;
    Alarm alarm_; // for the end of a connection, else for tick(), else, without a connection, for the next one
    muster::BackOff back_off_{20'000'000, 2'000'000'000}; // between two connections to the broker
    uint64_t window_ = 0;
    bool down_ = false; // the connection has ended; report_down() follows
    muster_status down_status_ = MUSTER_OK;
    char down_why_[200] = "";
    std::unordered_map<uint64_t, Peer> peers_;
    std::map<uint32_t, NameRequest> requests_; // by the number in the message
    uint32_t next_request_ = 1;
    std::map<std::string, Name, std::less<>> names_;
};

} // namespace star
