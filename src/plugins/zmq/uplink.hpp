// SPDX-License-Identifier: MIT
#pragma once
// The connection of a member or child broker to its broker: lookup, connect, handshake, traffic, end. ZMTP is in
// connection.hpp. It reads no more than its owner consumes, so that data sent without credit waits in the kernel and at
// the broker. An uplink is used once.
#include "connection.hpp"
#include "lookup.hpp"
#include "role.hpp"

#include <memory>
#include <optional>
#include <string>

namespace star {

struct UplinkConfig {               // a value
    std::string place;              // host:port
    std::optional<CurveKeys> curve; // none: no CURVE
    std::optional<CurveKey> pinned; // the broker's public role key; none: the secret suffices
    const RoleKey *role = nullptr;  // of a child broker; outlives the uplink
    bool broker = false;            // this side is a child broker
    uint32_t prefix = 0;            // of a child broker
};

// Called from inside open(), process() and tick(), during which the uplink stays; uplink_lost() also from send(),
// watch_uplink() also from send() and the destructor. An exception of the owner ends the connection in received().
class UplinkOwner {
  public:
    virtual void uplink_ready(uint64_t id, uint64_t window) = 0;
    virtual void uplink_message(const Head &head, Message &message) = 0;
    virtual void uplink_lost(muster_status status, std::string_view why) = 0; // once, the last call
    // Watches this descriptor in place of the previous one; `writable`: for room as well. -1: watches none; the
    // previous one is closed next.
    virtual muster_status watch_uplink(int fd, bool writable) = 0;

  protected:
    ~UplinkOwner() = default;
};

// One thread.
class Uplink final : private ConnectionOwner {
  public:
    static constexpr int64_t join_timeout_ns = 5'000'000'000; // from open() to ready

    // `scratch` outlives the uplink.
    Uplink(UplinkConfig config, const Keys &keys, Scratch &scratch, UplinkOwner &owner);
    ~Uplink();
    muster_status open(int64_t now_ns);
    void process();            // the descriptor is ready: reads a bounded part of what was received
    void tick(int64_t now_ns); // periodically: ends an uplink that is not ready in time
    bool ready() const noexcept { return state_ == State::ready; }
    uint64_t id() const noexcept { return id_; }
    // Messages of a member are written at once, those of a broker by flush(); what the kernel does not take waits here.
    // Returns false when it is not connected. The first throws without memory, and has sent nothing then; the second
    // ends the uplink.
    bool send(Message &message);
    bool send(const Head &head, std::string_view payload = {});
    void flush() { write(); }
    // Ends in order, after what was sent is written; only watch_uplink() is called from then on.
    void leave();
    bool left() const noexcept { return state_ == State::lost; } // ended in order, or lost
    bool
    drain(int64_t limit_ns); // waits until everything is written, and after leave() for the end; false: not in time

  private:
    enum class State : uint8_t { closed, resolving, connecting, welcome, joining, ready, leaving, lost };
    void received(Route route, Message &message) override;
    void welcome(std::string_view payload);
    void lookup_done();
    void try_next();
    void connected();
    void read();
    void write();
    void report_end();
    void watch_again();
    void lose(muster_status status, std::string_view why);
    std::string why_no_handshake() const;

    const UplinkConfig config_;
    const Keys &keys_;
    Scratch &scratch_;
    UplinkOwner &owner_;
    State state_ = State::closed;
    int64_t since_ns_ = 0;
    std::shared_ptr<Lookup> lookup_;
    std::vector<SocketAddress> addresses_; // to be tried, from the last one on
    int socket_ = -1;                      // before it is connected
    std::unique_ptr<Connection> connection_;
    int watched_ = -1; // by the owner
    bool watched_writable_ = false;
    bool reading_ = false; // inside received(): output is written afterwards
    Nonce nonce_{};
    std::optional<RoleCheck> check_; // without CURVE, if a key is pinned
    uint64_t id_ = 0;
};

} // namespace star
