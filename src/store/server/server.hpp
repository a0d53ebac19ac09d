// SPDX-License-Identifier: MIT
#pragma once
// The server of a store: a table, its clients' sessions, and a listener.
#include "store/journal/journal.hpp"
#include "store/server/session.hpp"
#include "store/standby/pair.hpp"
#include "transport/listener.hpp"

#include <muster/store_server.h>

#include <atomic>
#include <deque>

namespace muster {

struct StoreServerSettings {
    std::string url, data_dir; // no folder: all is gone with the process
    bool hosted = false;       // by the process of a client, in addition to its other work
    bool sync = true;          // acknowledged changes survive a crash of the machine, too
    uint64_t max_bytes = uint64_t{1} << 30;
    uint32_t max_clients = 65536;
    int64_t session_ns = 60'000'000'000; // how long a disconnected client may reconnect
    StorePairSettings pair;
    std::vector<StoreRequest> initial; // done before the first client is accepted; of a store without a data folder
};

class StoreServerHandle;

// Loop thread, unless a member says otherwise.
class StoreServer final : public Object, public PairedServer, private SocketTaker {
  public:
    // Any thread. After a failure nothing is left, the lock of the data folder included.
    static Result<Ref<StoreServerHandle>> open(Context &context, StoreServerSettings settings);
    const std::string &address() const noexcept override { return address_; }
    void get_stats(muster_store_server_stats &out) const noexcept;
    Status close(Deadline &deadline) noexcept;                                       // may wait
    bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); } // it has stopped by itself
    void close_soon() noexcept;
    Status go_alone() noexcept; // the host declares that the other server of the pair is dead
    Context &context() const noexcept { return *context_; }

    StoreServer(Context &context, StoreServerSettings settings);

    // --- from its connections ---
    Hub &hub() noexcept override { return hub_; }
    Object &server_object() noexcept override { return *this; }
    bool take(StoreConnection &from, const StoreHead &head, std::string_view body); // false: nonsense
    void lost(StoreConnection &connection) noexcept;
    void flush() noexcept override;              // sends the pending bytes of connections
    void forget(StoreSession &session) noexcept; // ends a session, and destroys it
    void count_refused() noexcept { refused_.fetch_add(1, std::memory_order_relaxed); }
    bool serves() const noexcept { return !pair_ || pair_->lets_in(); } // a session's or lease's time runs
    bool clogged() const noexcept { return pair_ && pair_->clogged(); } // clients are not read for now

    // --- standby.cpp: PairedServer
    void begin_serving() noexcept override;
    void resume_serving() noexcept override;
    void dismiss_clients(bool to_the_other_server) noexcept override;
    void publish_role() noexcept override;
    void release_held() noexcept override;
    void clear_held_positions() noexcept override;
    bool has_instance() const noexcept override { return known_instance_; }
    const StoreId &instance() const noexcept override { return instance_; }
    std::string address_for_others() const override;
    bool has_journal() const noexcept override { return journal_ != nullptr; }
    uint64_t durable() const noexcept override { return journal_->durable(); }
    uint64_t appended() const noexcept override { return journal_->appended(); }
    uint64_t write_mark(const PairMark &mark) override;
    std::function<bool(std::string &)> make_snapshot(const PairMark *mark) const override;
    void clear() noexcept override;
    bool apply_change(std::string_view note) override;
    bool replay(std::string_view record) override;
    Installing install_snapshot(bool begun) override;

  private:
    struct Lease {
        StoreSession *session; // whose existence renews the lease; or NULL
        int64_t ttl_ns;
        uint32_t flags;
        Ref<StoreNote> abandoned, ended; // recorded then; empty: it was
    };
    struct IdHash {
        size_t operator()(const StoreId &id) const noexcept { // clients choose them at random
            size_t hash;
            std::memcpy(&hash, id.data(), sizeof hash);
            return hash;
        }
    };

    ~StoreServer() override { context_->metrics.remove(metrics_); }
    void write_metrics(MetricsWriter &writer);
    MetricsNode<StoreServer, &StoreServer::write_metrics> metrics_{*this};
    // SocketTaker
    bool admit() noexcept override;
    void take(ProvedSocket socket) noexcept override;
    Object &socket_taker() noexcept override { return *this; }

    bool hello(StoreConnection &from, std::string_view body);
    bool ask(StoreSession &session, const StoreHead &head, std::string_view body);
    bool keep_hanging(std::unique_ptr<ServerRequest> &who, bool waits, size_t bytes);
    void withdraw(StoreSession &session, uint64_t number);
    void keep(StoreSession &session, uint64_t lease, bool abandon);
    Result<StoreRequest> understand(const std::vector<muster_store_op> &ops, StoreRequest &before);
    std::unique_ptr<ServerRequest> take_request(StoreSession &session, uint64_t number);
    void give_request(std::unique_ptr<ServerRequest> request) noexcept;
    void see_to_lease(ServerRequest &who, List<StoreWaiter> &over);
    void withdraw_all(StoreSession &session) noexcept;
    void settle(List<StoreWaiter> &over) noexcept;
    void answer(StoreSession &session, uint64_t number, const StoreAnswer &answer);
    void send(StoreSession &session, std::string_view record);
    void touch(StoreConnection &connection) noexcept;
    bool can_take(StoreConnection *connection) noexcept; // another answer
    void tell_ended(StoreSession *session, uint64_t lease) noexcept;
    void end_lease(uint64_t lease, uint32_t why, List<StoreWaiter> &over) noexcept;
    void look_at_leases() noexcept;
    void look_again() noexcept;     // when the next lease may end
    void stop() noexcept;           // the context closes, or the host closes it
    void close_listener() noexcept; // any thread
    void abandon() noexcept;        // undoes what open() has begun
    void show_figures() noexcept;

    // --- journal.cpp
    Result<void> open_journal();
    void write_down(Ref<StoreNote> note) noexcept;
    bool writes_down() const noexcept { return !replaying_ && (journal_ || pair_); }
    bool has_room(size_t bytes) noexcept;
    void give_up_journal(const Error &why) noexcept;
    bool is_durable() const noexcept;
    void journal_moved() noexcept;
    void begin_snapshot() noexcept;

    void enter() noexcept;
    void fill(std::vector<StoreRequest> requests); // before it listens
    bool starts_serving() const noexcept;          // or has to meet the other first
    void make_pair();
    void do_go_alone() noexcept {
        if (pair_) pair_->go_alone();
    }
    void look_at_clog() noexcept;

    const Ref<Context> context_;
    Hub &hub_;
    const StoreServerSettings settings_;
    std::string address_; // these two are written before another thread has the object
    Ref<Transport> transport_;
    std::mutex listener_lock_; // guards
    Ref<TransportListener> listener_;

    StoreTable table_;
    StoreId instance_{};
    std::unordered_map<StoreId, Ref<StoreSession>, IdHash> sessions_;
    std::unordered_map<uint64_t, Lease> leases_;
    List<StoreConnection> connections_; // holds a reference to each
    uint32_t connection_count_ = 0;
    std::vector<StoreConnection *> dirty_; // with something to send
    std::vector<muster_store_op> ops_;     // scratch
    std::unique_ptr<ServerRequest> spare_; // one that is over, kept for its memory; or none
    int64_t lease_look_ns_ = INT64_MAX, grace_from_ns_ = 0;
    struct Held { // an answer that waits until its changes are durable and confirmed by the standby
        uint64_t position, number;
        StoreSession *session;
        std::string record;
    };
    Histogram sync_time_;                   // before the journal, whose thread uses it
    std::unique_ptr<StoreJournal> journal_; // or none
    std::deque<Held> held_;
    std::unique_ptr<StorePair> pair_; // or none yet
    PairMark mark_;                   // as it was read
    bool was_clogged_ = false;
    uint64_t shown_role_ = UINT64_MAX;
    bool replaying_ = false, known_instance_ = false;
    PostedTask<StoreServer, &StoreServer::journal_moved> journal_moved_{*this};
    bool stopped_ = false, flushing_ = false, spoiled_ = false;
    Timer<StoreServer, &StoreServer::look_at_leases> lease_timer_{*this};
    PostedTask<StoreServer, &StoreServer::enter> enter_{*this};
    PostedTask<StoreServer, &StoreServer::stop> stop_{*this};
    PostedTask<StoreServer, &StoreServer::do_go_alone> go_alone_{*this};
    Closing<StoreServer, &StoreServer::stop> closing_{*this};

    Signal signal_;
    std::atomic<bool> over_{false};   // seq_cst: the signal follows
    std::atomic<bool> failed_{false}; // relaxed: before that
    std::atomic<uint64_t> clients_{0}, requests_{0}, refused_{0}, keys_{0}, bytes_{0}, revision_{0}, waiting_{0},
        lease_count_{0}, session_count_{0}, role_{0}, epoch_{0}, lag_{0}; // relaxed: counters
};

// The handle of the host; the server stops with its last reference. Any thread.
class StoreServerHandle final : public Object {
  public:
    StoreServer &server() const noexcept { return *server_; }
    Context &context() const noexcept { return server_->context(); }

  private:
    ~StoreServerHandle() override {
        if (server_ && !server_->context().forked()) server_->close_soon();
    }
    friend class StoreServer;
    Ref<StoreServer> server_; // empty until StoreServer::open() succeeds
};

inline StoreServerHandle *unwrap(muster_store_server *handle) noexcept {
    return reinterpret_cast<StoreServerHandle *>(handle);
}
inline muster_store_server *wrap(StoreServerHandle *object) noexcept {
    return reinterpret_cast<muster_store_server *>(object);
}

} // namespace muster
