// SPDX-License-Identifier: MIT
#pragma once
// The connections of a listener that have not proved the secret, and which of them is displaced by a new one. One
// policy for all listeners: of sockets, of plug-ins and of transports that the host serves.
#include "base/list.hpp"
#include "base/object.hpp"

#include <map>
#include <string>

namespace muster {

// A connection that has not proved the secret. Loop thread only.
class PendingHandshake : public Listed<PendingHandshake> {
  public:
    virtual int64_t since() const noexcept = 0;
    virtual bool has_hello() const noexcept = 0;
    virtual bool lingers() const noexcept = 0;              // it has failed, and waits for its refusal to be read
    virtual const std::string &origin() const noexcept = 0; // the same for connections of one origin
    virtual Object &pending_object() noexcept = 0;          // kept alive while it is in a list
    // For a newer connection: sends the refusal if that needs no waiting, ends, and leaves the list.
    virtual void displace() noexcept = 0;

  protected:
    ~PendingHandshake() = default;
};

// A flood must displace itself. In this order:
// 1. a connection that was refused and only waits for its refusal to be read;
// 2. one that has not sent its HELLO. A dialer sends it with the packet that completes the connection, so this needs
//    only little time; of these the oldest one from the origin that has the most connections here;
// 3. one of an origin that has more than half of all places, after a time that a handshake between distant hosts takes;
// 4. the oldest, after `max_age_ns`.
// Until one of these exists, new connections wait in the kernel's accept queue, or where there is none, some are
// accepted beyond the limit (PendingSessions). A connection that is displaced is sent a refusal (Refusal::busy), and a
// dialer of this library then dials again. Loop thread only.
class PendingHandshakes {
  public:
    // Before the first byte of the connection is handled. Throws bad_alloc.
    void add(PendingHandshake &connection);
    void remove(PendingHandshake &connection) noexcept;
    static bool holds(PendingHandshake &connection) noexcept { return List<PendingHandshake>::holds(connection); }
    uint32_t count() const noexcept { return count_; }
    PendingHandshake *any() const noexcept { return list_.first(); }
    // The one that is displaced when `limit` is reached, or NULL.
    PendingHandshake *displaceable(uint32_t limit, int64_t now) const noexcept;

    static constexpr int64_t hello_ns = 10'000'000;
    static constexpr int64_t distant_ns = 200'000'000;
    static constexpr int64_t max_age_ns = 1'000'000'000;

  private:
    uint32_t from(const PendingHandshake &connection) const noexcept;

    List<PendingHandshake> list_; // oldest first; holds a reference to each
    std::map<std::string, uint32_t, std::less<>> origins_;
    uint32_t count_ = 0;
};

} // namespace muster
