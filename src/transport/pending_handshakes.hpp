// SPDX-License-Identifier: MIT
#pragma once
// The connections of a listener that have not proved the secret, and which of them has to go for a new one.
#include "transport/greeter.hpp"

#include <map>
#include <string>

namespace muster {

// A flood must displace itself. In this order:
// 1. a connection that was refused and only waits for its refusal to be read;
// 2. one that has not sent its HELLO. A dialer sends it with the packet that completes the connection, so this needs
//    only little time; of these the oldest one from the origin that has the most connections here;
// 3. one of an origin that has more than half of all places, after a time that a handshake between distant hosts takes;
// 4. the oldest, after `patience_ns`.
// Until one of these exists, new connections wait in the kernel's accept queue. A connection that is displaced is told
// so (Refusal::busy), and a dialer of this library then dials again.
// Loop thread only.
class PendingHandshakes {
  public:
    // Before Greeter::start(). Throws bad_alloc.
    void add(Ref<Greeter> greeter);
    void remove(Greeter &greeter) noexcept;
    uint32_t count() const noexcept { return count_; }
    Greeter *any() const noexcept { return list_.first(); }
    // The one that makes place when `limit` is reached, or NULL.
    Greeter *displaceable(uint32_t limit, int64_t now) const noexcept;

    static constexpr int64_t hello_ns = 10'000'000;
    static constexpr int64_t distant_ns = 200'000'000;
    static constexpr int64_t patience_ns = 1'000'000'000;

  private:
    uint32_t from(const Greeter &greeter) const noexcept;

    List<Greeter> list_; // oldest first; holds a reference to each
    std::map<std::string, uint32_t, std::less<>> origins_;
    uint32_t count_ = 0;
};

} // namespace muster
