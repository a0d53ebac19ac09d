// SPDX-License-Identifier: MIT
#pragma once
#include "agent/plan.hpp"
#include "base/fd.hpp"

namespace muster {

// Where workers write: <log_dir>/<run id>_<six letters>/attempt_<n>/<local rank>/, as in torch elastic. Without a
// log_dir it is a temporary folder, which is removed at the end; if the agent was killed, the next agent of this user
// removes it: a lock on the folder shows whether its agent is alive. One thread.
class WorkerFiles {
  public:
    static Result<WorkerFiles> make(const AgentPlan &plan);
    WorkerFiles(WorkerFiles &&other) noexcept
        : root_(std::exchange(other.root_, {})), temporary_(other.temporary_), attempt_(other.attempt_),
          lock_(std::move(other.lock_)) {}
    WorkerFiles &operator=(WorkerFiles &&) = delete;
    ~WorkerFiles();

    Result<void> begin_attempt(uint64_t number, uint32_t worker_count);
    std::string folder(uint32_t local_rank) const; // of this attempt
    std::string error_file(uint32_t local_rank) const { return folder(local_rank) + "/error.json"; }
    Result<Fd> open_output(uint32_t local_rank, bool err) const;

  private:
    WorkerFiles(std::string root, bool temporary, Fd lock) noexcept
        : root_(std::move(root)), temporary_(temporary), lock_(std::move(lock)) {}
    std::string attempt() const { return root_ + "/attempt_" + std::to_string(attempt_); }
    std::string root_; // empty: moved away
    bool temporary_;
    uint64_t attempt_ = 0;
    Fd lock_; // the folder, if it is temporary
};

} // namespace muster
