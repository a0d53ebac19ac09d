// SPDX-License-Identifier: MIT
#pragma once
#include "process/spawn.hpp"
#include "queue/queue.hpp"

#include <mutex>

namespace muster {

// A child process. The loop holds a reference while the child runs, so that a released one is still reaped. The loop or
// a waiting thread reaps it, whichever notices its end first. Any thread, unless a member says otherwise.
class Process final : public Object, private Watch {
  public:
    enum class Rest { lives, ends }; // the rest of its group when it has ended
    static Result<Ref<Process>> spawn(Context &context, const muster_process_config &config, Rest rest = Rest::lives);

    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }
    pid_t pid() const noexcept { return pid_; }
    Status wait(Deadline &deadline, muster_process_exit *out) noexcept;
    Status watch(Queue &queue, uint64_t tag) noexcept;
    Status kill(int signal) noexcept;

  private:
    Process(Context &context) noexcept : context_(&context) {}
    void last_reference_gone() noexcept override;
    bool abandoned() noexcept;
    bool look() noexcept;                   // reaps it if it has ended; true when it is over
    void complete(Status status) noexcept;  // the watch of the host, if any
    void end_watch(Status status) noexcept; // loop thread
    void on_events(uint32_t epoll_events) noexcept override;
    void on_loop_end() noexcept override { end_watch(MUSTER_E_CLOSED); }
    Object &watch_owner() noexcept override { return *this; }

    Ref<Context> context_;
    pid_t pid_ = 0;
    Fd pidfd_;
    Rest rest_ = Rest::lives;

    std::mutex lock_; // for the members below; also held while signalling, so that the child is not reaped meanwhile
    bool over_ = false;
    Status abandoned_ = MUSTER_OK; // why nothing will complete a watch: the context has ended
    muster_process_exit exit_{};
    bool watched_ = false;
    Signal changed_;   // it has ended, or is not watched any more
    Ref<Queue> queue_; // a slot is reserved while this is set
    uint64_t tag_ = 0;
};

// muster_process_exit_with().
Result<void> exit_with(Context &context, pid_t pid, int64_t grace_ns);

inline Process *unwrap(muster_process *handle) noexcept {
    return reinterpret_cast<Process *>(handle);
}
inline const Process *unwrap(const muster_process *handle) noexcept {
    return reinterpret_cast<const Process *>(handle);
}
inline muster_process *wrap(Process *object) noexcept {
    return reinterpret_cast<muster_process *>(object);
}

} // namespace muster
