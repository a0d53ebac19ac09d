// SPDX-License-Identifier: MIT
#pragma once
#include "cluster/cluster.hpp"
#include "cluster/ticket.hpp"

namespace muster {

// The ticket of a context, until a worker is made of it. Any thread.
class TicketPlace final : public ContextPart {
  public:
    static TicketPlace &of(Context &context);
    void put(Ticket ticket);
    Result<Ticket> take(); // once

  private:
    std::mutex lock_; // guards the rest
    bool was_there_ = false;
    std::optional<Ticket> ticket_;
};

// A member that a master has launched. Any thread, unless a member says otherwise.
class ClusterWorker final : public Cluster {
  public:
    // Comes in; waits for that on this thread.
    static Result<Ref<ClusterWorker>> start(Context &context, const muster_worker_config &config, Deadline &deadline);
    Status member(uint32_t member, muster_member_info &out) noexcept override;
    bool knows_all() const noexcept override { return false; }

  private:
    ClusterWorker(Context &context, Ticket ticket, const muster_worker_config &config, Ref<Queue> inbox,
                  Ref<Queue> events);
    static Result<Ticket> ticket_of(Context &context, const muster_worker_config &config, Deadline &deadline);
    Error meet(Deadline &deadline); // before the thread is there: the link
    Error dial_master(const muster_transport_config &config, Deadline &deadline, muster_stream *&stream);
    Result<StreamHandle> be_dialled(Deadline &deadline);
    Error report() const;
    Error introduce(Deadline &deadline);

    // ---- the cluster's thread ----
    void begin() override;
    void end_soon(int64_t timeout_ns) override;
    bool ended() const noexcept override { return closing_; }
    void abandon() noexcept override;
    void find(const Ref<ClusterDial> &dial) override;
    bool call(ClusterDial &dial) override;
    void accepted(const ClusterGreeting &greeting, StreamHandle stream) override;
    void find_shelf(uint32_t member, FoundShelf then) override;
    bool say(uint32_t to, ControlMessage message) override;
    size_t links() const noexcept override { return 1; }
    void hear();
    void take(const ControlMessage &message);
    using ToldWhere = std::function<void(const ControlMessage &)>;
    void ask_where(uint32_t member, uint64_t number, ToldWhere then);
    void interrupt();
    void master_gone(const Error &why);

    Ticket ticket_; // its secret is not kept
    const uint32_t flags_;
    const int64_t exit_grace_ns_;
    const int report_fd_;
    std::string host_, own_address_, master_address_, master_shelf_; // set before the thread is there

    // The cluster's thread.
    std::unique_ptr<ControlLink> link_;   // of the thread that starts it, before
    std::map<uint64_t, ToldWhere> asked_; // where is that?
};

} // namespace muster
