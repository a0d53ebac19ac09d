// SPDX-License-Identifier: MIT
#pragma once
// A connection to a broker, from its first packet to its end: of a member, or of a broker below. One DEALER for one
// connection: libzmq's own reconnecting would keep bytes for a broker that does not know them any more, so whoever
// wants another connection makes another uplink.
#include "role.hpp"
#include "socket.hpp"

#include <memory>
#include <optional>
#include <string>

namespace star {

struct UplinkConfig {               // a value
    std::string endpoint;           // tcp://host:port
    std::optional<CurveKeys> curve; // none: no CURVE
    std::optional<CurveKey> pinned; // the public role key that the broker has to prove; none: the secret is enough
    const RoleKey *role = nullptr;  // of a broker below, which proves it; outlives the uplink
    bool broker = false;            // what we are
    uint32_t prefix = 0;            // a broker's
};

// Told from inside process() and tick(), which the uplink survives.
class UplinkOwner {
  public:
    virtual void up_ready(uint64_t id, uint64_t window) = 0;
    virtual void up_message(const Head &head, Message &message) = 0;
    virtual void up_lost(muster_status status, const std::string &why) = 0; // once, the last

  protected:
    ~UplinkOwner() = default;
};

// One thread.
class Uplink {
  public:
    static constexpr int64_t patience_ns = 5'000'000'000; // from the first packet to ready
    static constexpr int most_messages = 64;              // taken at a time

    Uplink(void *context, UplinkConfig config, const Keys &keys, UplinkOwner &owner);
    ~Uplink();
    // OK: fd() and monitor_fd() are there to be watched.
    muster_status open(int64_t now_ns);
    int fd() const noexcept { return socket_.fd(); }
    int monitor_fd() const noexcept { return monitor_.fd(); }
    // Takes what has come in; `events`: looks at monitor_fd()'s news, too. True: there is more.
    bool process(bool events);
    void tick(int64_t now_ns); // from time to time: is it late?
    bool ready() const noexcept { return state_ == State::ready; }
    bool readable() const noexcept {
        return socket_.readable();
    } // look after send(): libzmq's descriptor has been emptied
    uint64_t id() const noexcept { return id_; }
    bool send(Message &message) noexcept { return socket_.send(message); }
    bool send(const Head &head, std::string_view payload = {}) noexcept;
    void leave(int64_t linger_ms) noexcept; // what was sent still has so long to go out, at the end of the context

  private:
    enum class State : uint8_t { closed, connecting, proving, ready, lost };
    void take(Message &message);
    void happened(const Monitor::Event &event);
    void ended(muster_status status, std::string why);
    void lose(muster_status status, const std::string &why);
    void welcome(std::string_view payload);
    std::string why_no_handshake() const;

    void *const context_;
    const UplinkConfig config_;
    const Keys &keys_;
    UplinkOwner &owner_;
    State state_ = State::closed;
    bool connected_ = false;
    int64_t since_ns_ = 0;
    muster_status end_status_ = MUSTER_OK; // the connection has ended; what came before that is taken first
    std::string end_why_;
    Nonce nonce_{};
    std::optional<RoleCheck> check_; // if a key is pinned
    uint64_t id_ = 0;
    Socket socket_;
    Monitor monitor_; // of socket_
};

// What every socket between members and brokers is set to; a broker's connections are watched over by libzmq as well.
void set_common(Socket &socket);
std::string unique_inproc(const char *what);

} // namespace star
