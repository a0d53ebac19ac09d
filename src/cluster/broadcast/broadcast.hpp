// SPDX-License-Identifier: MIT
#pragma once
// One block of bytes to many members.
//
// Members on this host receive one sealed memory in their inboxes. Others receive the bytes by streams of the library's
// own, along a tree: a relay sends on what it has while more arrives, and shares it with the members on its own host.
// Streams get the bytes by muster_stream_write_owned_many() alone, which sends them once where the transport has
// multicast groups (docs/adr/0015). Each member reports to the origin, over the links of the cluster, that it holds the
// bytes, or why not. The origin itself serves the members whose relay is lost or stalls; bytes that arrive twice are
// dropped by the number of the broadcast.
#include "cluster/broadcast/inbox.hpp"
#include "cluster/broadcast/shared_bytes.hpp"
#include "cluster/broadcast/wire.hpp"
#include "cluster/member/cluster.hpp"

#include <set>

namespace muster {

// A stream that sends the bytes to one member.
struct BroadcastFlow {
    uint64_t id = 0, watch = 0;
    std::string head; // precedes the bytes
    size_t head_sent = 0;
    uint64_t given = 0, sent = 0; // of the bytes: handed over to the stream, and of these no longer used by it
    int64_t moved_ns = 0;
    bool has_group = false; // the transport sends to many at once
    Ref<ClusterDial> dial;
    StreamHandle stream;
};

// The common part of the origin and a relay.
struct BroadcastSender {
    BroadcastHead head; // its stations are not used
    const unsigned char *data = nullptr;
    uint64_t filled = 0; // of data
    int64_t deadline_ns = INT64_MAX;
    Ref<BroadcastBytes> shared; // for the members on this host, when it is whole and sealed
    bool sealed = false;
    std::map<uint32_t, InboxAddress> neighbours; // members on this host that have not received it
    std::map<uint32_t, BroadcastFlow> flows;
};

// The side of the caller. Any thread; fields of the cluster's thread are marked.
class ClusterBroadcast final : public Object, public QueueOperation {
  public:
    // `members` empty: all. `out_statuses` may be NULL.
    ClusterBroadcast(Context &context, std::vector<uint32_t> members, std::string label, const void *data,
                     uint64_t size, int64_t timeout_ns, Status *out_statuses);
    Result<void> wait();                                                             // of one without a queue
    void begins_in(Cluster &cluster) noexcept { cluster_ = Ref<Cluster>(&cluster); } // before all other calls
    // Ended by the host, perhaps before the cluster's thread has started it. seq_cst: set before that thread is
    // notified, read by it after the start.
    bool is_cancelled() const noexcept { return is_cancelled_.load(std::memory_order_seq_cst); }

    // ---- the cluster's thread ----
    struct Target {
        bool asked = false, located = false, over = false;
        Error why; // once it is over
        InboxAddress inbox;
        bool is_local = false; // it is on this host: it receives the memory
        uint32_t server = 0;   // else, the member that sends it the bytes
        int64_t moved_ns = 0;  // when progress was last seen
        uint32_t tries = 0;
        std::vector<Station> below{}; // its own station, and those it relays to
    };
    void end() noexcept;                  // each target is over
    void fail(const Error &why) noexcept; // it was not started

    BroadcastSender sender;
    std::vector<uint32_t> members; // as they were named
    std::map<uint32_t, Target> targets;
    size_t not_located = 0, not_over = 0;
    bool planned = false;
    ClusterTimer deadline_timer, plan_timer;

  private:
    void end_early(Ending why) noexcept override;
    void end_operations() noexcept override;
    Object &owner() noexcept override { return *this; }

    Ref<Cluster> cluster_;
    std::atomic<bool> is_cancelled_{false};
    Status *const out_statuses_;
};

// The broadcasts of a member. The cluster's thread.
class Broadcasts {
  public:
    Broadcasts(Cluster &cluster, Ref<MemoryInbox> inbox, uint64_t max_waiting);
    ~Broadcasts();
    Broadcasts(const Broadcasts &) = delete;
    Broadcasts &operator=(const Broadcasts &) = delete;

    bool has_inbox() const noexcept { return static_cast<bool>(memory_inbox_); }
    bool fails(const Cluster::StepSubject &subject, const Error &why); // false: the step was about none of them
    void start(const Ref<ClusterBroadcast> &broadcast);
    void fail_all(const Error &why);
    void cancel_awaited();
    void set_subject(ClusterBroadcast &own) noexcept {
        cluster_.set_subject(Cluster::StepSubject{{}, Ref<Object>(&own), 0, false, UINT32_MAX});
    }
    void cancel(const Ref<ClusterBroadcast> &broadcast, const Error &why) { end(broadcast, why); }
    void member_gone(uint32_t member, const Error &why);
    void take_stream(uint32_t from, StreamHandle stream);                     // on which bytes arrive
    void receive_report(uint32_t from, const struct ControlMessage &message); // of a member, to the origin
    void receive_over(uint32_t origin, uint64_t number);                      // of the origin
    // Adds up the members of the broadcasts of this process: those that have not received the bytes, and all.
    void count(size_t &not_over, size_t &all) const noexcept;

  private:
    // A broadcast that arrives at this member.
    struct Arrival {
        BroadcastSender sender;
        Ref<BroadcastBytes> bytes;
        bool whole = false;
        int64_t reported_ns = 0, moved_ns = 0;
    };
    struct Inflow {
        uint32_t from = 0;
        StreamHandle stream;
        std::string head; // until it is whole
        std::optional<BroadcastKey> key;
        uint64_t at = 0;
        int64_t since_ns = 0;
    };

    // ---- the origin ----
    void find(const Ref<ClusterBroadcast> &broadcast, uint32_t member);
    void plan_located(ClusterBroadcast &broadcast);
    void located(const Ref<ClusterBroadcast> &broadcast, uint32_t member, const Error &why, const std::string &inbox);
    void plan(ClusterBroadcast &broadcast, const std::vector<uint32_t> &members, bool first);
    void give(ClusterBroadcast &broadcast, std::vector<Station> branch);
    void assign(ClusterBroadcast &broadcast, const std::vector<Station> &branch);
    void serve(ClusterBroadcast &broadcast, uint32_t member, const Error &why);
    void prepare_memory(ClusterBroadcast &broadcast);
    void server_lost(ClusterBroadcast &broadcast, uint32_t member);
    void copy_some(BroadcastKey key);
    void settle(ClusterBroadcast &broadcast, uint32_t member, const Error &why);
    void check_progress(ClusterBroadcast &broadcast, int64_t now);
    void send_over(const ClusterBroadcast &broadcast);
    void end(Ref<ClusterBroadcast> broadcast, const Error &rest);
    ClusterBroadcast *origin_of(BroadcastKey key) noexcept;
    bool star() const;

    // ---- handing on ----
    BroadcastSender *sender_of(BroadcastKey key) noexcept;
    void add_flow(BroadcastSender &sender, uint32_t member, const std::vector<Station> &stations);
    void dial_waiting(BroadcastSender &sender);
    void connected(BroadcastKey key, uint32_t member, uint64_t id, StreamHandle stream, const Error &why);
    void pump(BroadcastKey key, uint32_t member, uint64_t id);
    void pump_all(BroadcastKey key);
    void hand_over(BroadcastSender &sender, bool ticks);
    void give_to_streams(BroadcastSender &sender, const std::vector<uint32_t> &members, uint64_t from, uint64_t size);
    void given_back(BroadcastKey key, uint32_t member, uint64_t id, uint64_t size, const Error &why);
    BroadcastFlow *flow_of(BroadcastKey key, uint32_t member, uint64_t id) noexcept;
    void flow_over(BroadcastKey key, uint32_t member, const Error &why);
    void drop(BroadcastFlow &flow) noexcept;
    void drop_flows(BroadcastSender &sender) noexcept;
    void share_memory(BroadcastSender &sender);
    void not_local(BroadcastKey key, uint32_t member);

    // ---- arriving ----
    void read(uint64_t id);
    bool read_head(uint64_t id, Inflow &inflow);
    bool take_head(uint64_t id, Inflow &inflow, BroadcastHead head);
    void inflow_over(uint64_t id, const Error &why);
    void receive_memory();
    void take_memory();
    Result<void> check_room(uint64_t size);
    void arrived(BroadcastKey key);
    void find_neighbour(BroadcastKey key, uint32_t member);
    bool is_known(BroadcastKey key);
    bool has_inflow(BroadcastKey key) const; // a stream is receiving it
    void drop_arrival(BroadcastKey key);
    void drop_inflows(BroadcastKey key);
    void check_arrivals(int64_t now);
    void forget_if_done(BroadcastKey key);
    void report(BroadcastKey key, uint32_t about, const Error &why);

    void tick();
    void keep_ticking();

    Cluster &cluster_;
    Ref<MemoryInbox> memory_inbox_; // or none
    ReceivedMemory received_;       // the next one; its memory is allocated before it arrives
    const uint64_t max_waiting_;
    std::map<BroadcastKey, Ref<ClusterBroadcast>> own_;
    std::map<BroadcastKey, Arrival> arrivals_;
    std::map<uint64_t, Inflow> inflows_;
    std::set<BroadcastKey> seen_;
    std::deque<BroadcastKey> seen_order_;
    uint64_t arriving_bytes_ = 0; // announced, and not yet reported to the host
    ClusterTimer tick_timer_, share_timer_;
    uint64_t inbox_handler_ = 0;
};

} // namespace muster
