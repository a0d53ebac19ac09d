// SPDX-License-Identifier: MIT
#pragma once
// Managers served by the host: the operations that a cluster needs become requests, answered by id.
#include "cluster/lifecycle/master.hpp"
#include "queue/served.hpp"

namespace muster {

// One manager with its name. Any thread, unless a member says otherwise.
class ServedManager final : public Provided<ClusterManager> {
  public:
    static constexpr ServedKind served_kind = ServedKind::manager;
    // `ops` NULL: requests are pulled.
    ServedManager(Context &context, const std::string &name, uint32_t wants, Queue &queue,
                  const muster_manager_ops *ops, void *self, uint64_t tag);
    const Queue *queue() const noexcept override { return ServedProvider::queue(); }
    bool would_deadlock() noexcept override;

    // ---- the cluster's thread
    uint32_t wants() const noexcept override { return wants_; }
    bool sees_exits() const noexcept override { return false; }
    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override;
    void ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) override;
    void forget(ClusterMaster &master, uint32_t member) noexcept override;
    void drop_questions(ClusterMaster &master, uint32_t member) noexcept override;

    // ---- the host's answers
    static Result<void> read(Queue &queue, uint64_t id, muster_manager_request &out);
    static Result<std::string> ticket(Queue &queue, uint64_t id, uint32_t member);
    static Result<void> ready(Queue &queue, uint64_t id, uint32_t member, std::string address, uint64_t data);
    static Result<void> failed(Queue &queue, uint64_t id, uint32_t member, const Error &why);
    static Result<void> done(Queue &queue, uint64_t id, std::string address);
    static Result<void> fail(Queue &queue, uint64_t id, const Error &why);

  private:
    void call_for(ServedRequest &request) override;
    Result<void> publish() override;
    Result<void> send(const Ref<class ManagerRequest> &request);

    const uint32_t wants_;
    const muster_manager_ops ops_;
};

// One request: a launch of some workers, or an operation on one. Its content does not change after it was sent. Any
// thread.
class ManagerRequest final : public ServedRequest {
  public:
    static constexpr ServedKind served_kind = ServedKind::manager;
    ManagerRequest(ServedManager &manager, ClusterMaster &master, ManagerQuestion question,
                   std::shared_ptr<const LaunchPlan> plan, ClusterManager::Answer answer);
    void write(muster_manager_request &out) noexcept;
    bool launches() const noexcept { return question.want == MUSTER_MANAGER_LAUNCH; }
    // Is `member` one of this launch?
    Result<void> check_member(uint32_t member) const noexcept;
    Ref<ClusterMaster> master() noexcept; // empty: the cluster has ended
    bool is_of(const ClusterMaster &master) noexcept;
    void leave_cluster() noexcept { detach(); }

    // Of a launch: passes a report of one worker on. True: it was the last one.
    Result<bool> report(uint32_t member, std::function<void(ClusterMaster &)> how);
    // The cluster does not expect the worker any more. True: no other is left.
    bool expect_no_more(uint32_t member) noexcept;
    // The end of all that is not reported: the answer, or a failure.
    void finish(const Result<std::string> &how) noexcept;

    const ManagerQuestion question;
    const std::shared_ptr<const LaunchPlan> plan; // LAUNCH

  private:
    void withdrawn(const Error &why, bool) noexcept override { finish(why); }
    Ref<ClusterMaster> detach() noexcept;

    const ClusterManager::Answer answer_; // of a question; called on the cluster's thread
    std::mutex lock_;                     // guards the rest
    Ref<ClusterMaster> master_;           // empty: finished, or the cluster has ended
    std::vector<bool> reported_;          // by worker of the launch
    size_t missing_ = 0;                  // those that are not
};

} // namespace muster
