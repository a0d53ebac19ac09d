// SPDX-License-Identifier: MIT
#pragma once
// A connection to a broker, from its first packet to its end: of a member, or of a broker below. The protocol below the
// messages is ours (connection.hpp). It reads no more than its owner takes, so what a broker sends without credit waits
// in the kernel and at the broker. Whoever wants another connection makes another uplink.
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
    std::optional<CurveKey> pinned; // the public role key that the broker has to prove; none: the secret is enough
    const RoleKey *role = nullptr;  // of a broker below, which proves it; outlives the uplink
    bool broker = false;            // what we are
    uint32_t prefix = 0;            // a broker's
};

// Told from inside open(), process() and tick(), which the uplink survives; up_watch() also from send() and the end.
class UplinkOwner {
  public:
    virtual void up_ready(uint64_t id, uint64_t window) = 0;
    virtual void up_message(const Head &head, Message &message) = 0;
    virtual void up_lost(muster_status status, const std::string &why) = 0; // once, the last
    // Watches this descriptor, in place of the one before, until it is another one; `writable`: for room as well.
    // -1: none; the one before is closed after it. Not OK: it cannot.
    virtual muster_status up_watch(int fd, bool writable) = 0;

  protected:
    ~UplinkOwner() = default;
};

// One thread.
class Uplink final : private ConnectionOwner {
  public:
    static constexpr int64_t patience_ns = 5'000'000'000; // from the first packet to ready

    // `scratch` outlives it.
    Uplink(UplinkConfig config, const Keys &keys, Scratch &scratch, UplinkOwner &owner);
    ~Uplink();
    muster_status open(int64_t now_ns);
    void process();            // when the descriptor is ready: takes a bounded part of what has come in
    void tick(int64_t now_ns); // from time to time: is it late?
    bool ready() const noexcept { return state_ == State::ready; }
    uint64_t id() const noexcept { return id_; }
    // A member's messages are written at once, a broker's at flush(); what the kernel does not take waits here. False:
    // it is not connected, or is lost.
    bool send(Message &message);
    bool send(const Head &head, std::string_view payload = {});
    void flush() { write(); }
    // The end after what was sent, in order; the owner hears no more but up_watch().
    void leave();
    bool left() const noexcept { return state_ == State::lost; } // also when it was lost
    bool drain(int64_t limit_ns); // waits until everything is written, and after leave() for the end. False: it is not

  private:
    enum class State : uint8_t { closed, looking, connecting, greeting, proving, ready, leaving, lost };
    void received(Route route, Message &message) override;
    void welcome(std::string_view payload);
    void looked();
    void try_next();
    void connected();
    void read();
    void write();
    void look_at_end();
    void watch_again();
    void lose(muster_status status, const std::string &why);
    std::string why_no_handshake() const;

    const UplinkConfig config_;
    const Keys &keys_;
    Scratch &scratch_;
    UplinkOwner &owner_;
    State state_ = State::closed;
    int64_t since_ns_ = 0;
    std::shared_ptr<Lookup> lookup_;
    std::vector<SocketAddress> addresses_; // to be tried, the last one first
    int socket_ = -1;                      // until it is connected
    std::unique_ptr<Connection> connection_;
    int watched_ = -1; // as the owner knows it
    bool watched_writable_ = false;
    bool reading_ = false; // inside received(): what is sent is written afterwards
    Nonce nonce_{};
    std::optional<RoleCheck> check_; // if a key is pinned
    uint64_t id_ = 0;
};

} // namespace star
