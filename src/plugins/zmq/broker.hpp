// SPDX-License-Identifier: MIT
#pragma once
// A running broker: the server with its connections, the exchange, and the thread that runs both.
#include "base/back_off.hpp"
#include "exchange.hpp"
#include "server.hpp"
#include "uplink.hpp"

#include <muster/plugin.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace star {

// make(), stats() and stop(): any thread, one at a time; the rest: the broker's thread.
class Broker final : public Outlet, public ServerOwner, public UplinkOwner {
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
    muster_status open_parent(std::string_view address, muster_error *error);
    muster_status choose_keys(const muster_broker_config &config, bool curve, CurveServerKeys &of_server,
                              muster_error *error);
    void run() noexcept;
    template <class Body>
    void with_parent(Body body) noexcept;
    void connect_parent() noexcept;
    void drop_parent() noexcept;
    void publish_stats() noexcept;
    void tick() noexcept;

    bool send(Route route, const Head &head, std::string_view payload) noexcept override;
    bool forward(Route route, Packet &packet) noexcept override;
    bool forward_copy(Route route, Packet &packet) noexcept override;
    void log(int32_t level, std::string_view text) noexcept override;
    void admitted(Route route) noexcept override { server_.admit(route); }
    void hang_up(Route route) noexcept override { server_.hang_up(route); }
    void cut(Route route) noexcept override;
    Queued queued(Route route) noexcept override { return server_.queued(route); }
    void received(Route route, Message &message) override;
    void gone(Route route) noexcept override { exchange_->gone(route); }
    void rejected() noexcept override;
    void accept_failed(const char *why) noexcept override;
    bool send_to(Route route, Message &message) noexcept;
    void uplink_ready(uint64_t id, uint64_t window) override;
    void uplink_message(const Head &head, Message &message) override;
    void uplink_lost(muster_status status, std::string_view why) override;
    muster_status watch_uplink(int fd, bool writable) override;

    const muster_host *const host_;
    Keys keys_;
    std::optional<RoleKey> role_; // none: the key of the server derives from the secret, as those of members
    bool named_role_ = false;     // the address for members has its public key
    Server server_{*this};
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<Scratch> scratch_; // of the connection to the parent broker
    std::unique_ptr<Uplink> parent_;
    UplinkConfig parent_config_;
    bool want_parent_ = false, parent_lost_ = false;
    muster::BackOff parent_back_off_{20'000'000, 2'000'000'000};
    int64_t parent_retry_ns_ = 0, ticked_ns_ = 0, stats_ns_ = 0;
    int64_t turn_ns_ = 0;                    // when this turn of the thread began
    uint64_t rejected_ = 0, unreported_ = 0; // by the handshake; since the last log record
    int64_t reported_ns_ = 0;
    int stop_event_ = -1;
    uint32_t news_ = 0;                 // tags of descriptors that are ready
    std::atomic<bool> stopping_{false}; // release by stop(), acquire by the thread
    std::atomic<int64_t> linger_ns_{0}; // relaxed: before stopping_
    std::thread thread_;
    std::mutex stats_lock_; // guards the next
    muster_broker_stats stats_{};
};

extern const muster_broker_ops broker_ops;

} // namespace star
