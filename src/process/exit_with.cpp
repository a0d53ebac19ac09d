// SPDX-License-Identifier: MIT
// A worker's end when its master is gone.
#include "process/process.hpp"

#include "process/end_self.hpp"

#include <algorithm>
#include <csignal>
#include <sys/epoll.h>

namespace muster {

namespace {

constexpr int64_t default_grace_ns = 2'000'000'000;
constexpr int64_t max_grace_ns = INT64_MAX / 8; // 36 years

// A watched master. Loop thread only; ends with the loop.
class Master final : public Object, private Watch {
  public:
    Master(Context &context, int64_t grace_ns) : context_(context), end_(make_ref<SelfEnd>(context, grace_ns)) {}

    Result<void> begin(Fd pidfd) noexcept { // any thread
        pidfd_ = std::move(pidfd);
        if (pidfd_) return context_.loop().watch(*this, pidfd_.get(), EPOLLIN);
        if (end_->post()) return {}; // it ended before it could be watched
        return Error::from_status(MUSTER_E_CLOSED);
    }

  private:
    void on_events(uint32_t) noexcept override {
        context_.loop().unwatch(*this, pidfd_.get());
        end_->begin();
    }
    Object &watch_owner() noexcept override { return *this; }

    Context &context_;
    const Ref<SelfEnd> end_;
    Fd pidfd_;
};

} // namespace

Result<void> exit_with(Context &context, pid_t pid, int64_t grace_ns) {
    if (context.external())
        return Error::make(MUSTER_E_UNSUPPORTED, "the context has no thread that could end this process");
    if (pid <= 0 || pid == getpid()) return Error::make(MUSTER_E_ARG, "pid is %d", static_cast<int>(pid));
    if (grace_ns < 0) return Error::make(MUSTER_E_ARG, "grace_ns is %lld", static_cast<long long>(grace_ns));
    const auto master = make_ref<Master>(context, grace_ns ? std::min(grace_ns, max_grace_ns) : default_grace_ns);
    Fd pidfd(open_pidfd(pid));
    if (!pidfd && errno != ESRCH) {
        const Status status = errno == EINVAL ? MUSTER_E_ARG : errno == EMFILE ? MUSTER_E_LIMIT : MUSTER_E_SYSTEM;
        return Error::from_errno(errno, status, "watch process %d", static_cast<int>(pid));
    }
    auto begun = master->begin(std::move(pidfd));
    if (begun.status() == MUSTER_E_CLOSED) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return begun;
}

} // namespace muster
