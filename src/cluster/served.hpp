// SPDX-License-Identifier: MIT
#pragma once
// Managers of the host's: what a cluster wants becomes requests, answered by id.
//
// A request has a slot of the queue for itself and one for its last word (CANCEL), reserved when it is made, so none of
// them is ever lost.
#include "cluster/lifecycle/master.hpp"

namespace muster {

// One name. Any thread.
class ServedManager final : public ClusterManager, public RequestTable {
  public:
    // `ops` NULL: requests are pulled.
    ServedManager(Context &context, std::string name, uint32_t wants, Queue &queue, const muster_manager_ops *ops,
                  void *self, uint64_t tag);
    const std::string &name() const noexcept { return name_; }
    Context &context() const noexcept { return context_; }
    const Queue *queue() const noexcept override { return queue_.get(); }
    bool would_deadlock() noexcept override { return !queue_->awaited() && queue_->taken_here(); }
    Queue &requests() const noexcept { return *queue_; }
    bool has_table() const noexcept { return with_ops_; }

    uint32_t wants() const noexcept override { return wants_; }
    bool sees_exits() const noexcept override { return false; }
    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override;
    void ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) override;
    void forget(ClusterMaster &master, uint32_t member) noexcept override;
    void drop_questions(ClusterMaster &master, uint32_t member) noexcept override;

    // Into a slot that was reserved. `about` NULL: the end of the table.
    void say(int32_t kind, class ManagerRequest *about) noexcept;

  private:
    void serve(const muster_completion &entry) override;
    Context &context_;
    const std::string name_;
    const uint32_t wants_;
    const Ref<Queue> queue_;
    muster_manager_ops ops_{};
    const bool with_ops_;
    void *const self_;
    const uint64_t tag_;
};

// What it asks is not changed any more once others know it; the rest is under the lock of ServedManagers.
class ManagerRequest final : public Object {
  public:
    ManagerRequest(ServedManager &to, ClusterMaster &from) : manager(&to), master_(&from) {}
    void tell(muster_manager_request &out) const noexcept; // under the lock of ServedManagers
    bool launches() const noexcept { return question.want == MUSTER_MANAGER_LAUNCH; }

    const Ref<ServedManager> manager;
    uint64_t id = 0;
    ManagerQuestion question;
    std::shared_ptr<const LaunchPlan> plan; // LAUNCH
    ClusterManager::Answer answer;          // the others; run on the cluster's thread

  private:
    friend class ServedManagers;
    Ref<ClusterMaster> master_; // empty: the cluster is over
    std::vector<bool> reported_;
    size_t left_ = 0; // of those that are not reported
};

// The managers and open requests of a context. Any thread.
class ServedManagers final : public ContextPart, private QueueServer {
  public:
    static ServedManagers &of(Context &context);
    explicit ServedManagers(Context &context) : context_(context) {}

    Result<void> add(Ref<ServedManager> manager);
    Result<void> withdraw(const std::string &name);
    Ref<ServedManager> find(const std::string &name);

    // ---- the cluster's thread ----
    Result<void> send(Ref<ManagerRequest> request);
    void forget(ServedManager &manager, ClusterMaster &master, uint32_t member) noexcept;
    void drop_questions(ServedManager &manager, ClusterMaster &master, uint32_t member) noexcept;
    void leave(ClusterMaster &master) noexcept;

    // ---- the host's words ----
    Ref<ManagerRequest> open(uint64_t id, muster_manager_request &out) noexcept;
    Result<void> read(Queue &queue, uint64_t id, muster_manager_request &out);
    Result<std::string> ticket(Queue &queue, uint64_t id, uint32_t member);
    Result<void> ready(Queue &queue, uint64_t id, uint32_t member, std::string address, uint64_t data);
    Result<void> failed(Queue &queue, uint64_t id, uint32_t member, const Error &why);
    Result<void> done(Queue &queue, uint64_t id, std::string address);
    Result<void> fail(Queue &queue, uint64_t id, const Error &why);

  private:
    Result<Ref<ManagerRequest>> look(Queue &queue, uint64_t id); // with the lock, as what follows
    Result<Ref<ManagerRequest>> look_at_launch(Queue &queue, uint64_t id, uint32_t member);
    Result<void> report(ManagerRequest &request, uint32_t member, std::function<void(ClusterMaster &)> how);
    Result<void> answer(Queue &queue, uint64_t id, const Result<std::string> &what);
    void part_with(uint64_t id, bool cancelled) noexcept;
    void take_back(Ref<ServedManager> manager) noexcept; // it is out of the table
    void queue_released(Queue &queue) noexcept override;
    void close() noexcept override;

    Context &context_;
    std::mutex lock_; // guards the rest
    std::map<uint64_t, Ref<ManagerRequest>> requests_;
    std::map<std::string, Ref<ServedManager>> managers_;
    uint64_t next_ = uint64_t{7} << 60; // away from the numbers of other rooms' requests
};

} // namespace muster
