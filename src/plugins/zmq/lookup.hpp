// SPDX-License-Identifier: MIT
#pragma once
// The addresses of a broker, from its name: getaddrinfo() waits, so it has a thread of its own, which nobody waits for.
#include <muster/base.h>

#include <atomic>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace star {

struct SocketAddress { // a value
    sockaddr_storage bytes{};
    socklen_t size = 0;
};

class Lookup {
  public:
    // `place`: host:port, [v6]:port. Addresses in numbers are there at once. NULL: errno tells.
    static std::shared_ptr<Lookup> begin(const std::string &place);
    ~Lookup();
    Lookup(const Lookup &) = delete;
    int fd() const noexcept { return event_; } // readable when it is done
    bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    // When it is done. Empty: `why_not()`.
    std::vector<SocketAddress> take() noexcept { return std::move(found_); }
    const std::string &why_not() const noexcept { return why_not_; }

  private:
    Lookup() = default;
    void run(int flags) noexcept;

    int event_ = -1;
    std::string host_, port_;
    std::vector<SocketAddress> found_; // until done_ is set by the thread that looks
    std::string why_not_;
    std::atomic<bool> done_{false}; // release by the thread that looks, acquire by the owner
};

} // namespace star
