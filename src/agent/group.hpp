// SPDX-License-Identifier: MIT
#pragma once
#include "agent/error_file.hpp"
#include "agent/files.hpp"
#include "agent/guard.hpp"
#include "agent/output.hpp"

namespace muster {

struct Worker {
    Ref<Process> process; // none: not started
    muster_agent_worker info{};
    FailureReport report;
};

// The workers of this node, from one start until the last of them has ended. The agent's thread only.
class WorkerGroup {
  public:
    // Exits are entries of the queue, ::MUSTER_DONE_EXIT, with tag_of().
    WorkerGroup(Context &context, Queue &exits, const AgentPlan &plan, WorkerFiles &files, Output &output,
                std::string agent_id);
    Result<void> prepare(); // starts the guard; before everything else

    // On failure the workers that were started run: stop them.
    Result<void> start(const Standing &standing);
    // Handles an exit. False: it belongs to an earlier start.
    bool take_exit(uint64_t tag, Status status, const muster_process_exit &exit);
    void signal(int number) noexcept;
    void begin_stop(int number) noexcept; // a worker that ends from here on was stopped
    void kill() noexcept;
    void kill_and_wait() noexcept; // where exits are no longer reported
    void end_guarding() noexcept;  // no worker runs any more

    uint32_t running() const noexcept { return running_; }
    const std::vector<Worker> &workers() const noexcept { return workers_; }
    static uint32_t local_rank_of(uint64_t tag) noexcept { return static_cast<uint32_t>(tag & 0xffff); }

  private:
    uint64_t tag_of(uint32_t local_rank) const noexcept { return start_ << 16 | local_rank; }
    static constexpr uint64_t guard_tag = UINT64_MAX;
    Result<void> start_guard();
    void replace_guard() noexcept;
    Result<void> start_worker(uint32_t local_rank, const Standing &standing);
    void read_report(Worker &worker);
    void update_guard() noexcept;

    Context &context_;
    Queue &exits_;
    const AgentPlan &plan_;
    WorkerFiles &files_;
    Output &output_;
    const std::string agent_id_;
    Guard guard_;
    int guards_ = 0; // started so far
    std::vector<Worker> workers_;
    uint64_t start_ = 0; // number of the start
    uint32_t running_ = 0;
    bool stopping_ = false;
};

// "worker 1 (rank 3) failed with exit code 7: <message>", with rank and code in the error's fields.
Error failure_error(const Worker &worker) noexcept;

// The worker that failed first, or none.
const Worker *earliest_failure(const std::vector<Worker> &workers) noexcept;

} // namespace muster
