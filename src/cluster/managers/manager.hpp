// SPDX-License-Identifier: MIT
#pragma once
// Who launches workers, and ends them by force.
#include "base/object.hpp"
#include "cluster/launch/launch_plan.hpp"
#include "queue/queue.hpp"

#include <muster/manager.h>

#include <functional>

namespace muster {

class ClusterMaster;

// What is asked about one worker.
struct ManagerQuestion {
    uint32_t want = 0, member = 0, from = 0; // want: a muster_manager_operation value
    uint64_t data = 0;
    std::string address{};
};

// The cluster's thread. It reports to ClusterMaster: ready(), failed(), process_over().
class ClusterManager : public Object {
  public:
    // Can this be launched, as far as can be told before? Any thread.
    virtual Result<void> check(const LaunchPlan &plan) const {
        (void)plan;
        return {};
    }
    virtual uint32_t wants() const noexcept = 0; // what it hears of: bits
    // Nothing is launched: a launch is an offer to as many workers as its count, which connect when they want to.
    virtual bool takes_newcomers() const noexcept { return false; }
    // Each worker that was ready is reported once more, when its process is over.
    virtual bool sees_exits() const noexcept = 0;
    virtual const Queue *queue() const noexcept { return nullptr; } // by which a host serves it
    // Is the calling thread the one that has to answer what it is asked? Then it must not wait for that. Any thread.
    virtual bool would_deadlock() noexcept { return false; }
    virtual void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) = 0;
    using Answer = std::function<void(const Result<std::string> &)>; // an address, where one was asked for
    virtual void ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) = 0;
    // The launch of it is not wanted any more, and not reported.
    virtual void forget(ClusterMaster &master, uint32_t member) noexcept = 0;
    // Unanswered questions about a worker that is gone: whether it is killed, and interrupted, matters no more.
    virtual void drop_questions(ClusterMaster &master, uint32_t member) noexcept { (void)master, (void)member; }
    virtual void finish() noexcept {} // the cluster is over, and all its workers are
};

// Those that are built in, each of one cluster.
Ref<ClusterManager> make_local_manager(Context &context);
Ref<ClusterManager> make_ssh_manager(Context &context);
Ref<ClusterManager> make_mpi_manager(Context &context);
Ref<ClusterManager> make_slurm_manager(Context &context);
Ref<ClusterManager> make_elastic_manager(Context &context);

using MakeManager = Ref<ClusterManager> (*)(Context &context);
MakeManager find_built_in_manager(std::string_view name) noexcept; // or none

// A cluster is over: nobody is told any more what managers of the host's answer to it.
void leave_served_managers(ClusterMaster &master) noexcept;

// One of the host's; none of that name: empty.
Ref<ClusterManager> find_served_manager(Context &context, const std::string &name);

} // namespace muster
