// SPDX-License-Identifier: MIT
#pragma once
// For transports between the ranks of a job, where a child process would not be a rank: every rank runs this program
// with the same arguments. One of them becomes the checker; the others are servants, to which it sends over a socket in
// a folder the names at which they listen, and which it may kill.
#include "transport_check/harness.hpp"

namespace check {

class RankPool {
  public:
    // The listening socket if this process is the checker; else -1, and it is a servant.
    static int become_checker(const std::string &folder);
    explicit RankPool(int door) : door_(door) {}
    ~RankPool();
    RankPool(const RankPool &) = delete;
    RankPool &operator=(const RankPool &) = delete;
    // A rank that serves there; it returns to the others unless it was killed. Throws Skipped if none is left.
    std::unique_ptr<Peer> start(const std::string &secret, const std::string &address);

  private:
    friend class RankPeer;
    struct Rank {
        int fd = -1;
        int pid = 0;
        std::string text; // its output without a newline so far
    };
    std::unique_ptr<Rank> take();
    static std::string line(Rank &rank, int64_t timeout); // empty: it is gone
    int door_;
    bool anybody_ = false;
    std::vector<std::unique_ptr<Rank>> idle_;
};

} // namespace check
