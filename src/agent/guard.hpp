// SPDX-License-Identifier: MIT
#pragma once
#include "process/process.hpp"

#include <string>
#include <vector>

namespace muster {

// A small process that outlives this one for a moment: if this one is killed, the guard kills the workers. (A signal by
// PR_SET_PDEATHSIG would also be sent when the thread ends that started the child.) One thread.
class Guard {
  public:
    // `agent_id` is the value of agent_id_variable in the workers' environment.
    static Result<Guard> start(Context &context, const std::string &agent_id);
    Guard() noexcept = default; // none
    Guard(Guard &&) noexcept = default;
    Guard &operator=(Guard &&) noexcept = default;
    ~Guard(); // as finish()

    void watch(const std::vector<pid_t> &leaders) noexcept; // process groups, in place of those named before
    explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
    void finish(int64_t timeout_ns) noexcept; // no workers are left: waits until the guard has ended
    Status watch_end(Queue &queue, uint64_t tag) noexcept { return process_->watch(queue, tag); }

  private:
    void write_line(const std::string &line) noexcept;
    Ref<Process> process_;
    Fd socket_;
};

} // namespace muster
