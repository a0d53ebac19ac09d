// SPDX-License-Identifier: MIT
#pragma once
#include "cluster/launch/ticket.hpp"
#include "cluster/member/cluster.hpp"
#include "cluster/worker/master_search.hpp"

#include <muster/worker.h>

namespace muster {

// The ticket of a context, until a worker is made of it. Any thread.
class ContextTicket final : public ContextPart {
  public:
    static ContextTicket &of(Context &context);
    void put(Ticket ticket);
    Result<Ticket> take(); // once

  private:
    std::mutex lock_; // guards the rest
    bool has_existed_ = false;
    std::optional<Ticket> ticket_;
};

// A member that a master has launched, or that joins by itself. It joins on the cluster's thread (join.cpp). Any
// thread, unless a member says otherwise.
class ClusterWorker final : public Cluster {
  public:
    // The receiver of the result of the join: the caller of await(), or the events.
    enum class ReportsTo { caller, events };
    static Result<Ref<ClusterWorker>> begin(Context &context, const muster_worker_config &config, int64_t timeout_ns,
                                            ReportsTo reports_to);
    Error await() noexcept; // until it has joined; or the reason of the failure: then nothing of it is left
    Status member(uint32_t member, muster_member_info &out) noexcept override;
    bool knows_all_members() const noexcept override { return false; }
    Result<std::string> store_address(Deadline &deadline) override;

  private:
    ClusterWorker(Context &context, Ticket ticket, const muster_worker_config &config, int64_t deadline_ns,
                  ReportsTo reports_to, Ref<Queue> completions, Ref<Queue> events);
    // Before the thread is started.
    static Result<Ticket> ticket_of(Context &context, const muster_worker_config &config);
    Error prepare(const muster_worker_config &config, Deadline &deadline);

    // ---- the cluster's thread ----
    void begin() override;
    void open_store();
    void search_master();
    void reach_master();
    void dial_master();
    void await_master();
    Error report() const;
    void send_hello(StreamHandle stream);
    void receive_join_answer(const ControlMessage &message);
    void joined();
    void join_failed(const Error &why) noexcept;
    void return_ticket() noexcept;
    int64_t left_ns() const noexcept; // as a timeout
    bool accepts() const noexcept override { return has_joined_ || !link_; }
    void begin_end(int64_t timeout_ns) override;
    bool has_ended() const noexcept override { return closing_; }
    void abandon() noexcept override;
    void thread_ends() noexcept override { locating_.clear(); }
    void find(const Ref<ClusterDial> &dial) override;
    bool request_dial_back(ClusterDial &dial) override;
    void accepted(const ClusterHello &hello, StreamHandle stream) override;
    void find_inbox(uint32_t member, FoundInbox then) override;
    bool send_control(uint32_t to, ControlMessage message) override;
    size_t link_count() const noexcept override { return 1; }
    void receive();
    void take(const ControlMessage &message);
    using Located = std::function<void(const ControlMessage &)>;
    void locate(uint32_t member, uint64_t number, Located then);
    void ask_master(const ControlMessage &question, Located then); // answered by a location
    void interrupt();
    void master_gone(const Error &why);
    bool fail_link(const StepSubject &subject, const Error &why) override;

    const uint32_t flags_;
    const int64_t exit_grace_ns_;
    const int report_fd_;
    const ReportsTo reports_to_;
    const int64_t deadline_ns_;                                      // of the join; INT64_MAX: none
    Error join_error_;                                               // before it is over: why this member never was in
    std::string host_, own_address_, master_address_, master_inbox_; // set before self() is known

    // The cluster's thread.
    Ticket ticket_;                      // its secret is not kept
    const Ticket original_ticket_;       // unchanged; from a launcher, if it has a number
    std::string store_url_, store_name_; // to be opened; empty: none, or it is
    std::unique_ptr<MasterSearch> search_;
    bool has_joined_ = false;
    bool is_listening_known_ = false;
    int resets_ = 0;           // of the connection to the master, before it is in
    std::string timeout_text_; // the text for the timeout
    ClusterTimer join_timer_;
    std::unique_ptr<ControlLink> link_;
    std::map<uint64_t, Located> locating_; // where is that?
};

} // namespace muster
