// SPDX-License-Identifier: MIT
#pragma once
#include "cluster/cluster.hpp"
#include "cluster/elastic.hpp"
#include "cluster/launch_keys.hpp"
#include "cluster/manager.hpp"
#include "cluster/ticket.hpp"

#include <set>

namespace muster {

// The member that has opened the cluster. Any thread, unless a member says otherwise.
class ClusterMaster final : public Cluster {
  public:
    static Result<Ref<ClusterMaster>> open(Context &context, const muster_cluster_config &config);

    Result<uint32_t> add(std::shared_ptr<const LaunchPlan> plan); // the number of the first worker
    Status remove(uint32_t member, int64_t grace_ns);
    Status interrupt(uint32_t member);
    Status member(uint32_t member, muster_member_info &out) noexcept override;
    bool knows_all() const noexcept override { return true; }
    Status list(uint32_t *out, size_t capacity, size_t *out_count) noexcept;
    Status process_ended(const Queue &served_by, uint32_t member, std::string text);
    Ticket ticket(const LaunchPlan &plan, uint32_t member) const;
    const std::string &address() const noexcept { return address_; }

    // ---- managers report; from other threads by post_report() ----
    bool gone_by(uint32_t member) noexcept; // a worker it had
    bool post_report(std::function<void(ClusterMaster &)> report);
    bool wanted(uint32_t member) noexcept { return lines_.count(member) != 0; }
    bool is_launched(uint32_t member) noexcept { return wanted(member) && lines_.at(member).launched; }
    bool has_joined(uint32_t member) noexcept {
        return wanted(member) && lines_.at(member).state >= MUSTER_MEMBER_JOINED;
    }
    void ready(uint32_t member, const std::string &address, uint64_t data);
    void failed(uint32_t member, const Error &why);
    void process_over(uint32_t member, const std::string &how);
    void lost_sight(uint32_t member) noexcept; // its manager will not see its end
    // A key by which the workers of a launch fetch their tickets; empty: they cannot, where this master listens.
    Result<std::vector<unsigned char>> make_launch_key(const std::shared_ptr<const LaunchPlan> &plan, uint32_t first);
    Queue &inbox() noexcept { return *inbox_; }
    // What managers need of a cluster's thread.
    using Cluster::at;
    using Cluster::forget;
    using Cluster::on;
    using Cluster::silence;

  private:
    // A worker that is not gone yet, on the cluster's thread.
    struct Line {
        uint32_t number = 0, state = MUSTER_MEMBER_LAUNCHING;
        std::shared_ptr<const LaunchPlan> plan;
        Ref<ClusterManager> manager;
        std::unique_ptr<ControlLink> link;
        uint64_t link_number = 0; // in the inbox
        std::string host, address, shelf;
        int64_t pid = 0;
        uint64_t data = 0;
        std::set<uint32_t> partners;                 // workers who are told of its end
        std::vector<std::function<void()>> awaiting; // what waits for it to join, or to be gone
        uint64_t join_alarm = 0, kill_alarm = 0;
        bool launched = false;               // a process may be there
        bool removing = false, left = false; // it is meant to go; it said that it goes
        bool process_over = false, registered = false, killed = false, unseen = false;
        bool by_force = false; // it was there, and well, when it was to be killed
        Error why;             // why it is cut off, where it is known before its end
        std::string how;       // its process has ended
        Error not_killed;      // it was to be ended by force, and perhaps has not
    };
    struct Shown {
        uint32_t state = 0;
        int64_t pid = 0;
        uint64_t data = 0;
        std::string host, address;
        Ref<ClusterManager> manager;
    };

    // For those who come by themselves.
    struct Offer {
        std::shared_ptr<const LaunchPlan> plan;
        Ref<ClusterManager> manager;
        std::unique_ptr<Beacon> beacon; // or none
        std::set<uint32_t> members;     // who have come by it
    };

    ClusterMaster(Context &context, const muster_cluster_config &config, Ref<Queue> inbox, Ref<Queue> events);
    Ref<ClusterManager> manager_of(const std::string &name);
    Result<uint32_t> offer(std::shared_ptr<const LaunchPlan> plan, Ref<ClusterManager> manager);

    // ---- the cluster's thread ----
    void begin() override;
    void end_soon(int64_t timeout_ns) override;
    bool ended() const noexcept override { return closing_ && lines_.empty(); }
    void abandon() noexcept override;
    void thread_ends() noexcept override;
    void find(const Ref<ClusterDial> &dial) override;
    bool call(ClusterDial &dial) override;
    void accepted(const ClusterGreeting &greeting, StreamHandle stream) override;
    std::shared_ptr<OtherKeys> other_keys() override { return launch_keys_.other_keys(); }
    void hand_ticket(uint64_t key, uint32_t member, StreamHandle stream) override;
    void find_shelf(uint32_t member, FoundShelf then) override;
    bool say(uint32_t to, ControlMessage message) override;
    std::vector<uint32_t> everybody() override;
    size_t links() const noexcept override { return lines_.size(); }
    bool members_hand_on() const noexcept override { return topology_ == MUSTER_CLUSTER_ALL_TO_ALL; }
    bool pass(Line &line, const ControlMessage &message); // false: it is for the master

    void launch(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager, uint32_t first);
    Line &expect(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager, uint32_t member);
    Result<Line *> take_newcomer();
    void newcomer(StreamHandle stream, bool posted = false);
    void arrived(Line &line, StreamHandle stream);
    void refuse(StreamHandle stream, Status status, const std::string &why);
    void show(Line &line);
    void launched(Line &line);
    void connect(Line &line);
    void dial_control(uint32_t member, const std::string &address);
    void connected(Line &line, StreamHandle stream);
    void hear(uint32_t member);
    bool take(Line &line, const ControlMessage &message); // false: the line may be gone
    void join(Line &line, const ControlMessage &hello);
    void answer_where(Line &line, const ControlMessage &question);
    void interrupt_by_link(uint32_t member);
    void pass_call(Line &line, const ControlMessage &call);
    Error reachable(uint32_t from, uint32_t to); // may they, and is the other there? AGAIN: it is not yet
    void remove_now(Line &line, int64_t grace_ns);
    void link_over(Line &line, const Error &why);
    bool link_fails(const Concern &concern, const Error &why) override;
    void consider(Line &line); // something of it is over
    void kill(Line &line);
    void finish(Line &line);
    void ask(Line &line, uint32_t want, uint32_t from, const std::string &address, ClusterManager::Answer answer);
    Line *line_of(uint32_t member) noexcept;

    const uint32_t topology_;
    const int64_t join_timeout_ns_, leave_timeout_ns_;
    std::string address_; // of the listener; set before the thread is there

    // The cluster's thread.
    std::map<uint32_t, Line> lines_;
    uint32_t coming_ = 0; // of these, who will dial, and have not
    Offer offer_;
    LaunchKeys launch_keys_;

    std::mutex shown_lock_; // guards the rest
    std::map<uint32_t, Shown> shown_;
    std::map<std::string, Ref<ClusterManager>> built_in_; // those that were wanted
    uint32_t next_ = 1;
    bool no_more_ = false; // it is being closed
};

} // namespace muster
