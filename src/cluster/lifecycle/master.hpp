// SPDX-License-Identifier: MIT
#pragma once
#include "cluster/launch/ticket.hpp"
#include "cluster/lifecycle/cluster_store.hpp"
#include "cluster/lifecycle/launch_keys.hpp"
#include "cluster/lifecycle/progress.hpp"
#include "cluster/lifecycle/worker_machine.hpp"
#include "cluster/managers/manager.hpp"
#include "cluster/member/cluster.hpp"
#include "queue/future.hpp"

#include <set>

namespace muster {

class AddressPublication;
struct ElasticOptions;

// The result of an `elastic` launch with a store; the caller may wait for it. Any thread.
class PublicationResult final : public Object {
  public:
    explicit PublicationResult(Context &context) noexcept : context_(context) {}
    void finish(const Error &why) noexcept { future_.complete(context_, why); } // the first one counts
    Error wait() noexcept;

  private:
    Context &context_;
    Future<Error> future_;
};

// The member that has opened the cluster. Any thread, unless a member says otherwise.
class ClusterMaster final : public Cluster {
  public:
    static Result<Ref<ClusterMaster>> open(Context &context, const muster_cluster_config &config);

    // Returns the number of the first worker. If the address of the master has to be published in a store, that is only
    // begun: `result` gets the outcome, or without a `result` an event reports a failure.
    Result<uint32_t> add(const std::shared_ptr<const LaunchPlan> &plan, const Ref<PublicationResult> &result = {});
    void cancel_publication(const Ref<PublicationResult> &result); // soon, if it is still in progress
    Status remove(uint32_t member, int64_t grace_ns);
    Status interrupt(uint32_t member);
    Status member(uint32_t member, muster_member_info &out) noexcept override;
    bool knows_all_members() const noexcept override { return true; }
    Result<std::string> store_address(Deadline &) override { return store_.address(address_); }
    Status list(uint32_t *out, size_t capacity, size_t *out_count) noexcept;
    Status process_ended(const Queue &served_by, uint32_t member, std::string text);
    Ticket ticket(const LaunchPlan &plan, uint32_t member) const;
    const std::string &address() const noexcept { return address_; }
    bool would_deadlock_at_end() noexcept override;

    // ---- reports of managers; from other threads by post_report() ----
    bool gone_by(uint32_t member) noexcept; // a worker it had
    bool post_report(std::function<void(ClusterMaster &)> report);
    bool wanted(uint32_t member) noexcept { return workers_.count(member) != 0; }
    bool is_launched(uint32_t member) noexcept { return wanted(member) && workers_.at(member).machine.has_started(); }
    bool has_joined(uint32_t member) noexcept { return wanted(member) && workers_.at(member).machine.has_joined(); }
    void ready(uint32_t member, const std::string &address, uint64_t data);
    void failed(uint32_t member, const Error &why);
    void process_over(uint32_t member, const std::string &how);
    void lost_sight(uint32_t member) noexcept; // its manager will not see its exit
    // A key by which the workers of a launch fetch their tickets; empty: they cannot, where this master listens.
    Result<std::vector<unsigned char>> make_launch_key(const std::shared_ptr<const LaunchPlan> &plan, uint32_t first);
    Queue &completions() noexcept { return *completions_; }
    // The functions of a cluster's thread that managers need.
    using Cluster::cancel_timer;
    using Cluster::drop_handler;
    using Cluster::on_completion;
    using Cluster::post;
    using Cluster::start_timer;

  private:
    // A worker that is not gone yet. The cluster's thread.
    struct WorkerRecord {
        WorkerRecord(uint32_t number, std::shared_ptr<const LaunchPlan> launch, Ref<ClusterManager> by,
                     const WorkerMachine::Settings &settings)
            : member(number), plan(std::move(launch)), manager(std::move(by)), launched_ns(now_ns()),
              machine(settings, launched_ns) {}

        const uint32_t member;
        const std::shared_ptr<const LaunchPlan> plan;
        const Ref<ClusterManager> manager;
        const int64_t launched_ns;
        WorkerMachine machine;
        ClusterTimer timer; // at machine.wake_at_ns()
        std::unique_ptr<ControlLink> link;
        uint64_t link_handler = 0; // of its completions; 0: there never was a link
        std::string host, address, inbox;
        int64_t pid = 0;
        uint64_t data = 0;
        std::set<uint32_t> partners;                 // workers that are notified of its end
        std::vector<std::function<void()>> awaiting; // the operations that wait until it joins, or is gone
        uint32_t shown_state = MUSTER_MEMBER_LAUNCHING;
    };
    // The result of muster_cluster_get_member() for it.
    struct PublicRecord {
        uint32_t state = 0;
        int64_t pid = 0;
        uint64_t data = 0;
        std::string host, address;
        Ref<ClusterManager> manager;
    };

    // For workers without a launch.
    struct Offer {
        std::shared_ptr<const LaunchPlan> plan;
        Ref<ClusterManager> manager;
        std::set<uint32_t> members; // that have joined by it
    };

    ClusterMaster(Context &context, const muster_cluster_config &config, Ref<Queue> completions, Ref<Queue> events);
    ~ClusterMaster() override { context().metrics.remove(metrics_); }
    void write_metrics(MetricsWriter &writer);
    Ref<ClusterManager> manager_of(const std::string &name);
    Result<uint32_t> offer(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager,
                           const Ref<PublicationResult> &result);

    // ---- the cluster's thread ----
    void begin() override;
    void begin_end(int64_t timeout_ns) override;
    bool has_ended() const noexcept override { return closing_ && workers_.empty() && !withdrawal_; }
    void abandon() noexcept override;
    void thread_ends() noexcept override;
    void find(const Ref<ClusterDial> &dial) override;
    bool request_dial_back(ClusterDial &dial) override;
    void accepted(const ClusterHello &hello, StreamHandle stream) override;
    std::shared_ptr<OtherKeys> other_keys() override { return launch_keys_.other_keys(); }
    void send_ticket(uint64_t key, uint32_t member, StreamHandle stream) override;
    void find_inbox(uint32_t member, FoundInbox then) override;
    bool send_control(uint32_t to, ControlMessage message) override;
    std::vector<uint32_t> all_members() override;
    size_t link_count() const noexcept override { return workers_.size(); }
    bool allows_relays() const noexcept override { return topology_ == MUSTER_CLUSTER_ALL_TO_ALL; }
    bool fail_link(const StepSubject &subject, const Error &why) override;

    // ---- workers (worker_records.cpp) ----
    void launch(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager, uint32_t first);
    WorkerRecord &expect(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager,
                         uint32_t member);
    Offer replace_offer(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager);
    void publish(const ElasticOptions &where, const std::shared_ptr<const LaunchPlan> &plan,
                 const Ref<ClusterManager> &manager, const Ref<PublicationResult> &result);
    void end_publication(const Error &why);
    Result<WorkerRecord *> take_newcomer();
    void accept_newcomer(StreamHandle stream, bool posted = false);
    void accept_link(WorkerRecord &worker, StreamHandle stream);
    void refuse(StreamHandle stream, Status status, const std::string &why);
    WorkerRecord *worker_of(uint32_t member) noexcept;
    // Passes an event to the machine of a worker, and executes its actions. The record may be gone afterwards.
    template <class Event>
    void drive(uint32_t member, const Event &event) {
        WorkerRecord *const worker = worker_of(member);
        if (worker == nullptr) return;
        set_subject_link(member);
        event(worker->machine);
        execute_actions(member);
    }
    void execute_actions(uint32_t member);
    void execute(WorkerRecord &worker, const WorkerAction &action);
    void report_failed_launch(uint32_t member) noexcept;
    void publish_record(WorkerRecord &worker);
    void update_timer(WorkerRecord &worker);
    void dial_worker(WorkerRecord &worker);
    void dial_control(uint32_t member, const std::string &address);
    void welcome(WorkerRecord &worker);
    void kill(WorkerRecord &worker);
    void forget_worker(uint32_t member);
    void lose_link(uint32_t member, const Error &why);
    void ask(WorkerRecord &worker, uint32_t want, uint32_t from, const std::string &address,
             ClusterManager::Answer answer);

    // ---- messages of workers ----
    void receive(uint32_t member);
    bool handle_message(WorkerRecord &worker, const ControlMessage &message); // false: the record may be gone
    void handle_hello(WorkerRecord &worker, const ControlMessage &hello);
    void answer_locate(WorkerRecord &worker, const ControlMessage &question);
    void answer_find_store(WorkerRecord &worker, const ControlMessage &question);
    void pass_dial_back(WorkerRecord &worker, const ControlMessage &request);
    bool pass_on(WorkerRecord &worker, const ControlMessage &message); // false: it is for the master
    void interrupt_by_link(uint32_t member);
    Error reachable(uint32_t from, uint32_t to); // may they, and is the other in? AGAIN: it has not joined yet

    const uint32_t topology_;
    const int64_t join_timeout_ns_, leave_timeout_ns_;
    std::string address_; // of the listener; set before the thread starts
    ClusterStore store_;

    // The cluster's thread.
    std::map<uint32_t, WorkerRecord> workers_;
    uint32_t expected_links_ = 0; // of these workers, those that have not connected
    Offer offer_;
    std::shared_ptr<AddressPublication> publication_;      // of the offer; or none
    std::shared_ptr<AddressPublication> next_publication_; // the one in progress
    std::function<void(const Error &)> publication_ends_;  // reports how that has gone
    Ref<PublicationResult> publication_result_;            // to this one, or to the host
    std::shared_ptr<AddressPublication> withdrawal_;       // the end of the cluster waits for it
    LaunchKeys launch_keys_;

    void show_progress();

    ClusterProgress progress_; // the cluster's thread
    Histogram join_time_;
    std::atomic<uint64_t> failed_count_{0}, dead_count_{0}, removed_count_{0}; // relaxed: metrics

    std::mutex public_lock_; // guards the rest
    std::map<uint32_t, PublicRecord> public_records_;
    std::map<std::string, Ref<ClusterManager>> built_in_;   // those that are in use
    std::map<uint32_t, Ref<ClusterManager>> kills_awaited_; // of these workers: the end waits for their managers
    uint32_t next_member_ = 1;
    bool refuses_ = false; // it is being closed
    MetricsNode<ClusterMaster, &ClusterMaster::write_metrics> metrics_{*this};
};

} // namespace muster
