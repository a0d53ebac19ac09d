// SPDX-License-Identifier: MIT
#pragma once
// A running broker: libzmq's sockets, one thread that serves them, and the exchange that decides.
#include "exchange.hpp"
#include "uplink.hpp"

#include <muster/plugin.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace star {

// make(), stats() and stop() from any thread, one at a time; the rest on its own.
class Broker final : public Outlet, public UplinkOwner {
  public:
    static std::unique_ptr<Broker> make(const muster_host *host, std::string_view authority,
                                        const muster_broker_config &config, std::string &out_authority,
                                        muster_error *error);
    ~Broker();
    void stats(muster_broker_stats &out);
    void stop(int64_t timeout_ns); // returns when the thread has ended

  private:
    explicit Broker(const muster_host *host);
    muster_status open(std::string_view authority, const muster_broker_config &config, std::string &out_authority,
                       muster_error *error);
    muster_status choose_keys(const muster_broker_config &config, CurveKeys &out, muster_error *error);
    void run() noexcept;
    bool serve_members();
    bool serve_monitor();
    void serve_ends();
    void serve_zap();
    void connect_parent();
    void drop_parent();
    void watch(int fd, uint32_t news);
    void publish_stats();
    void tick();
    void descriptors_ran_out(int number);
    void hang_up(int fd) const;
    bool take_reserve();
    void free_reserve();

    bool send(Route route, const Head &head, std::string_view payload) override;
    bool forward(Route route, Parcel &parcel) override;
    bool forward_copy(Route route, Parcel &parcel) override;
    void log(int32_t level, const std::string &text) override;
    bool send_to(Route route, Message &message);
    void up_ready(uint64_t id, uint64_t window) override;
    void up_message(const Head &head, Message &message) override;
    void up_lost(muster_status status, const std::string &why) override;

    const muster_host *const host_;
    Keys keys_;
    void *zmq_ = nullptr;
    Socket router_, zap_;
    Monitor monitor_;
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<Uplink> parent_;
    UplinkConfig parent_config_;
    bool want_parent_ = false, parent_lost_ = false;
    int64_t parent_retry_ns_ = 0, parent_pause_ns_ = 0, ticked_ns_ = 0, stats_ns_ = 0;
    uint16_t port_ = 0;                    // where it listens
    int reserve_[4] = {-1, -1, -1, -1};    // descriptors to get on with when there are none
    bool full_ = false;                    // there are none: who comes is hung up on
    int64_t failed_ns_ = 0;                // when a connection could not be taken last
    std::set<std::string> let_in_;         // CURVE keys of members, 32 bytes each; none: no CURVE
    std::unordered_map<int, Route> by_fd_; // connections that have talked
    std::vector<Route> ending_;            // disconnected, but what came before that may not be read yet
    uint64_t connections_ = 0, strangers_ = 0;
    int epoll_ = -1, stop_event_ = -1;
    uint32_t news_ = 0, fresh_news_ = 0; // whose descriptors have been readable; the latter: at the next turn
    std::atomic<bool> stopping_{false};  // release by stop(), acquire by the thread
    std::atomic<int> linger_ms_{0};      // relaxed: before stopping_
    std::thread thread_;
    std::mutex stats_lock_; // guards the next
    muster_broker_stats stats_{};
};

extern const muster_broker_ops broker_ops;

} // namespace star
