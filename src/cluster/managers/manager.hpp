// SPDX-License-Identifier: MIT
#pragma once
// The interface of managers, which launch workers and kill them.
#include "base/object.hpp"
#include "cluster/launch/launch_plan.hpp"
#include "queue/queue.hpp"

#include <muster/manager.h>

#include <functional>

namespace muster {

class ClusterMaster;

// A request about one worker.
struct ManagerQuestion {
    uint32_t want = 0, member = 0, from = 0; // want: a muster_manager_operation value
    uint64_t data = 0;
    std::string address{};
};

// The cluster's thread. It reports to ClusterMaster: ready(), failed(), process_over().
class ClusterManager : public Object {
  public:
    // Is the launch possible, as far as that can be checked in advance? Any thread.
    virtual Result<void> check(const LaunchPlan &plan) const {
        (void)plan;
        return {};
    }
    virtual uint32_t wants() const noexcept = 0; // the requests that it supports: bits
    // Nothing is launched: a launch is an offer to as many workers as its count, which connect by themselves.
    virtual bool takes_newcomers() const noexcept { return false; }
    // Does it report the exit of each worker that was ready?
    virtual bool sees_exits() const noexcept = 0;
    virtual const Queue *queue() const noexcept { return nullptr; } // through which a host serves it
    // Would the calling thread have to answer a request? Then it must not wait for the answer. Any thread.
    virtual bool would_deadlock() noexcept { return false; }
    virtual void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) = 0;
    using Answer = std::function<void(const Result<std::string> &)>; // an address, if one was requested
    virtual void ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) = 0;
    // The launch of this worker is cancelled; no report of it is expected.
    virtual void forget(ClusterMaster &master, uint32_t member) noexcept = 0;
    // The worker is gone: unanswered requests to kill or interrupt it are cancelled.
    virtual void drop_questions(ClusterMaster &master, uint32_t member) noexcept { (void)master, (void)member; }
    virtual void finish() noexcept {} // the cluster has ended, and so have all its workers
};

// The managers that are built in; each belongs to one cluster.
Ref<ClusterManager> make_local_manager(Context &context);
Ref<ClusterManager> make_ssh_manager(Context &context);
Ref<ClusterManager> make_mpi_manager(Context &context);
Ref<ClusterManager> make_slurm_manager(Context &context);
Ref<ClusterManager> make_command_manager(Context &context);
Ref<ClusterManager> make_elastic_manager(Context &context);

using MakeManager = Ref<ClusterManager> (*)(Context &context);
MakeManager find_built_in_manager(std::string_view name) noexcept; // or none

// The cluster has ended: answers of managers that a host serves are no longer delivered to it.
void leave_served_managers(ClusterMaster &master) noexcept;

// A manager that a host serves; empty: no manager has that name.
Ref<ClusterManager> find_served_manager(Context &context, const std::string &name);

} // namespace muster
