// SPDX-License-Identifier: MIT
#pragma once
// A running broker: the server with its connections, one thread that serves them, and the exchange that decides.
#include "base/back_off.hpp"
#include "exchange.hpp"
#include "server.hpp"
#include "uplink.hpp"

#include <muster/plugin.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace star {

// make(), stats() and stop() from any thread, one at a time; the rest on its own.
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
    void connect_parent();
    void drop_parent();
    void publish_stats();
    void tick();

    bool send(Route route, const Head &head, std::string_view payload) override;
    bool forward(Route route, Parcel &parcel) override;
    bool forward_copy(Route route, Parcel &parcel) override;
    void log(int32_t level, const std::string &text) override;
    void admitted(Route route) override { server_.admit(route); }
    void hang_up(Route route) override { server_.hang_up(route); }
    void cut(Route route) override { server_.cut(route); }
    Queued queued(Route route) override { return server_.queued(route); }
    void received(Route route, Message &message) override;
    void gone(Route route) override { exchange_->gone(route); }
    void strange() override;
    void cannot_take(const std::string &why) override;
    bool send_to(Route route, Message &message);
    void up_ready(uint64_t id, uint64_t window) override;
    void up_message(const Head &head, Message &message) override;
    void up_lost(muster_status status, const std::string &why) override;
    muster_status up_watch(int fd, bool writable) override;

    const muster_host *const host_;
    Keys keys_;
    std::optional<RoleKey> role_; // what only brokers hold; none: the keys come from the secret, as those of members
    bool named_role_ = false;     // the address that members use names its public key
    Server server_{*this};
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<Scratch> scratch_; // of the connection to the broker above, if there is one
    std::unique_ptr<Uplink> parent_;
    UplinkConfig parent_config_;
    bool want_parent_ = false, parent_lost_ = false;
    muster::BackOff parent_back_off_{20'000'000, 2'000'000'000};
    int64_t parent_retry_ns_ = 0, ticked_ns_ = 0, stats_ns_ = 0;
    int64_t turn_ns_ = 0;                 // when this turn of the thread began
    uint64_t strangers_ = 0, untold_ = 0; // not let in by the handshake; since the last that was logged
    int64_t told_ns_ = 0;
    int stop_event_ = -1;
    uint32_t news_ = 0;                 // whose descriptors have been ready
    std::atomic<bool> stopping_{false}; // release by stop(), acquire by the thread
    std::atomic<int64_t> linger_ns_{0}; // relaxed: before stopping_
    std::thread thread_;
    std::mutex stats_lock_; // guards the next
    muster_broker_stats stats_{};
};

extern const muster_broker_ops broker_ops;

} // namespace star
