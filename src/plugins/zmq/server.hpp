// SPDX-License-Identifier: MIT
#pragma once
// The sockets of a broker: it listens, and holds the connections. Numbers of connections are random and its own.
// Whoever has not become a member in time is hung up on, and where there are too many of those, the one that came
// first makes room for the one that comes. One thread, but for the listening.
#include "connection.hpp"

#include <muster/base.h>

#include <list>
#include <unordered_map>

namespace star {

// What happens to connections, told from inside wait() and tick(). Calls of the server from there are fine.
class ServerOwner : public ConnectionOwner {
  public:
    virtual void gone(Route route) = 0;                   // it had sent something
    virtual void strange() = 0;                           // one that did not get through the handshake has ended
    virtual void cannot_take(const std::string &why) = 0; // connections wait in front of the door

  protected:
    ~ServerOwner() = default;
};

struct ServerConfig {                      // a value
    std::unique_ptr<CurveServerKeys> keys; // none: no CURVE
    size_t early_max = 1024;               // connections that are not admitted
    size_t connections_max = 131072;
    uint64_t queue_max = uint64_t{4} << 30; // bytes that wait for one connection
};

class Server {
  public:
    static constexpr int64_t early_ns = 10'000'000'000;   // from coming to being admitted
    static constexpr uint64_t last_words_max = 64 * 1024; // that a connection may still read when it is hung up on
    static constexpr uint32_t own_tags = 16;              // watch()'s are below

    Server(ServerOwner &owner) noexcept : owner_(owner) {}
    ~Server();
    Server(const Server &) = delete;
    // `place`: host:port, port 0: any. What is wrong goes to `why` and errno.
    muster_status listen(const std::string &place, ServerConfig config, std::string &why);
    uint16_t port() const noexcept { return port_; }
    // Until the descriptor is closed; again: changes what it is watched for. False: errno tells.
    bool watch(int fd, uint32_t tag, bool writable = false);
    // Serves connections. Returns the tags, or-ed, of the other descriptors that are ready.
    uint32_t wait(int timeout_ms);
    void tick(int64_t now_ns);
    bool send(Route route, Message &message); // false: it is gone, or goes
    void admit(Route route);
    void hang_up(Route route); // when everything has been written, unless that is more than the last words
    void cut(Route route);     // at the end of this turn, whatever waits for it
    Queued queued(Route route) const noexcept;
    void drain(int64_t limit_ns); // until everything has been written, or it is over
    size_t count() const noexcept { return connections_.size(); }

  private:
    using Listed = std::list<Route>;
    struct Held {
        std::unique_ptr<Connection> connection;
        Listed::iterator early; // early_.end(): it is admitted
        bool doomed = false;    // closed at the end of the turn
    };
    void take_connections();
    void add(int fd);
    void no_descriptors(int number);
    bool displace();
    void serve(Held &held, uint32_t events);
    void flush();
    void write(Held &held);
    void doom(Held &held);
    void bury();
    void close_one(Route route);
    bool take_reserve();
    void free_reserve();

    ServerOwner &owner_;
    ServerConfig config_;
    Scratch scratch_;
    int listener_ = -1, epoll_ = -1;
    int reserve_[4] = {-1, -1, -1, -1}; // descriptors to get on with when there are none
    bool full_ = false;                 // there were none at failed_ns_
    int64_t failed_ns_ = 0, now_ns_ = 0;
    uint16_t port_ = 0;
    std::unordered_map<Route, Held> connections_;
    Listed early_;             // the first came first
    std::vector<Route> dirty_; // to be written to
    uint64_t dirty_bytes_ = 0;
    std::vector<Route> doomed_;
};

} // namespace star
