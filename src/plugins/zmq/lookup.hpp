// SPDX-License-Identifier: MIT
#pragma once
// Resolves the host name of a broker. getaddrinfo() blocks, so it runs on a detached thread.
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
    // `place`: host:port, [v6]:port. Numeric addresses are resolved at once. Returns NULL with errno set.
    static std::shared_ptr<Lookup> begin(const std::string &place);
    ~Lookup();
    Lookup(const Lookup &) = delete;
    int fd() const noexcept { return event_; } // readable after done()
    bool done() const noexcept { return done_.load(std::memory_order_acquire); }
    // After done(). Empty: error() says why.
    std::vector<SocketAddress> take() noexcept { return std::move(found_); }
    const std::string &error() const noexcept { return error_; }

  private:
    Lookup() = default;
    void run(int flags) noexcept;

    int event_ = -1;
    std::string host_, port_;
    std::vector<SocketAddress> found_; // written before done_ is set
    std::string error_;
    std::atomic<bool> done_{false}; // release by the resolving thread, acquire by the owner
};

} // namespace star
