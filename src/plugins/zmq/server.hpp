// SPDX-License-Identifier: MIT
#pragma once
// The sockets of a broker: the listener and the connections. It numbers connections by random numbers. A connection
// that is not admitted in time is closed; where there are too many of these, the oldest one is closed for a new one.
// A connection for which there is no memory ends: its peer connects again, and is not left without an answer. Closing
// it needs no memory. One thread, except listen().
#include "connection.hpp"

#include <muster/base.h>

#include <list>
#include <unordered_map>

namespace star {

// Observes connections, from inside wait() and tick(); it may call the server.
class ServerOwner : public ConnectionOwner {
  public:
    virtual void gone(Route route) noexcept = 0;              // of a connection that had sent a message
    virtual void rejected() noexcept = 0;                     // a connection ended before the end of its handshake
    virtual void accept_failed(const char *why) noexcept = 0; // connections wait in the backlog

  protected:
    ~ServerOwner() = default;
};

struct ServerConfig {                      // a value
    std::unique_ptr<CurveServerKeys> keys; // none: no CURVE
    size_t max_unauthenticated = 1024;     // connections that are not admitted
    size_t max_connections = 131072;
    uint64_t max_queue_bytes = uint64_t{4} << 30; // that wait for one connection
};

class Server {
  public:
    static constexpr int64_t join_timeout_ns = 10'000'000'000; // from accept() to admit()
    static constexpr uint64_t max_unsent_bytes = 64 * 1024;    // that are still written after hang_up()
    static constexpr uint32_t own_tags = 16;                   // tags of watch() are below

    explicit Server(ServerOwner &owner) : owner_(owner) {}
    ~Server();
    Server(const Server &) = delete;
    // `place`: host:port, port 0: any. A failure sets `why` and errno.
    muster_status listen(const std::string &place, ServerConfig config, std::string &why);
    uint16_t port() const noexcept { return port_; }
    // Watches a descriptor until it is closed; a second call changes the events. Returns false with errno set.
    bool watch(int fd, uint32_t tag, bool writable = false) noexcept;
    // Serves connections. Returns the tags, or-ed, of the other descriptors that are ready.
    uint32_t wait(int timeout_ms) noexcept;
    void tick(int64_t now_ns) noexcept;
    // False: the connection has ended, or is closing; it closes where there is no memory for the message.
    bool send(Route route, Message &message) noexcept;
    void admit(Route route) noexcept;
    void hang_up(Route route) noexcept; // after everything is written, unless that is more than max_unsent_bytes
    void cut(Route route) noexcept;     // at the end of this turn, without the bytes that wait for it
    Queued queued(Route route) const noexcept;
    void drain(int64_t limit_ns) noexcept; // until everything is written
    size_t count() const noexcept { return connections_.size(); }

  private:
    using Listed = std::list<Route>;
    struct Held {
        std::unique_ptr<Connection> connection;
        Listed::iterator place;  // in early_ or admitted_
        bool is_early = true;    // it is not admitted
        bool is_closing = false; // closed at the end of the turn
    };
    void accept_connections() noexcept;
    void add(int fd) noexcept;
    Held &hold(int fd);
    void on_no_descriptors(int number) noexcept;
    bool displace() noexcept;
    void serve(Held &held, uint32_t events) noexcept;
    void flush() noexcept;
    void mark_dirty(Connection &connection) noexcept;
    void write(Held &held) noexcept;
    void close_later(Held &held) noexcept;
    void close_pending() noexcept;
    void close_one(Route route) noexcept;
    bool take_reserve() noexcept;
    void free_reserve() noexcept;

    ServerOwner &owner_;
    ServerConfig config_;
    Scratch scratch_;
    int listener_ = -1, epoll_ = -1;
    int reserve_[4] = {-1, -1, -1, -1}; // released when the process has no descriptors left
    bool full_ = false;                 // no descriptors were left at failed_ns_
    int64_t failed_ns_ = 0, now_ns_ = 0;
    uint16_t port_ = 0;
    std::unordered_map<Route, Held> connections_;
    Listed early_, admitted_; // of connections; in early_ the oldest is first
    // Each has room for every connection that is not in it yet: a new one makes room for itself.
    std::vector<Route> dirty_; // flush() writes to these
    std::vector<Route> closing_;
    uint64_t dirty_bytes_ = 0;
};

} // namespace star
