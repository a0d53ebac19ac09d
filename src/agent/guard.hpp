// SPDX-License-Identifier: MIT
#pragma once
#include "process/process.hpp"

#include <string>
#include <vector>

namespace muster {

// A small process that outlives this one by a moment: if this one is killed it kills the workers. (A signal asked of
// the kernel for the death of a parent comes when the thread ends that started the child, too.) One thread.
class Guard {
  public:
    // `agent_id` is the value of agent_id_variable in the workers' environment.
    static Result<Guard> start(Context &context, const std::string &agent_id);
    Guard() noexcept = default; // none
    Guard(Guard &&) noexcept = default;
    Guard &operator=(Guard &&) noexcept = default;
    ~Guard(); // there is nothing to guard any more

    void watch(const std::vector<pid_t> &leaders) noexcept; // process groups, in place of those named before
    explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
    void finish(int64_t patience_ns) noexcept; // there is nothing to guard: waits until it is gone
    Status tell_end(Queue &queue, uint64_t tag) noexcept { return process_->watch(queue, tag); }

  private:
    void write_line(const std::string &line) noexcept;
    Ref<Process> process_;
    Fd socket_;
};

} // namespace muster
