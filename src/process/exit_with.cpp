// SPDX-License-Identifier: MIT
// A worker's end when its master is gone.
#include "process/process.hpp"

#include "context/uv_memory.hpp"

#include <algorithm>
#include <csignal>

namespace muster {

namespace {

constexpr int64_t default_grace_ns = 2'000'000'000;
constexpr int64_t longest_grace_ns = INT64_MAX / 8; // 36 years

// One watched master. Loop thread only; ends with the loop.
struct Master {
    uv_poll_t watch{};
    uv_timer_t grace{};
    Fd pidfd;
    int64_t grace_ns = 0;
    int open_handles = 0;
    Master *next = nullptr;

    void begin(uv_loop_t *loop) noexcept {
        uv_timer_init(loop, &grace);
        grace.data = watch.data = this;
        open_handles = 1;
        if (!pidfd) return gone();                                       // it had ended before it could be watched
        if (prepare_poll(loop, &watch, pidfd.get()) != 0) return gone(); // blind: end rather than run on unwatched
        open_handles = 2;
        uv_poll_start(&watch, UV_READABLE, [](uv_poll_t *handle, int, int) {
            uv_poll_stop(handle);
            static_cast<Master *>(handle->data)->gone();
        });
    }

    void gone() noexcept {
        kill(getpid(), SIGTERM);
        const auto ms = static_cast<uint64_t>((grace_ns + 999'999) / 1'000'000);
        uv_timer_start(
            &grace, [](uv_timer_t *) { kill(getpid(), SIGKILL); }, ms, 0);
    }

    void close() noexcept {
        const auto closed = [](uv_handle_t *handle) {
            auto *self = static_cast<Master *>(handle->data);
            if (--self->open_handles == 0) delete self;
        };
        if (open_handles == 2) uv_close(reinterpret_cast<uv_handle_t *>(&watch), closed);
        uv_close(reinterpret_cast<uv_handle_t *>(&grace), closed);
    }
};

class Masters final : public ContextPart {
  public:
    static Masters &of(Context &context) {
        static const char key = 0;
        return static_cast<Masters &>(
            context.part(&key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<Masters>(); }));
    }

    void begin(std::unique_ptr<Master> master, uv_loop_t *loop) noexcept {
        Master *const owned = master.release();
        owned->next = first_;
        first_ = owned;
        owned->begin(loop);
    }

    void stop() noexcept override {
        while (first_) std::exchange(first_, first_->next)->close();
    }

  private:
    Master *first_ = nullptr;
};

} // namespace

Result<void> exit_with(Context &context, pid_t pid, int64_t grace_ns) {
    if (context.external())
        return Error::make(MUSTER_E_UNSUPPORTED, "the context has no thread that could end this process");
    if (pid <= 0 || pid == getpid()) return Error::make(MUSTER_E_ARG, "pid is %d", static_cast<int>(pid));
    if (grace_ns < 0) return Error::make(MUSTER_E_ARG, "grace_ns is %lld", static_cast<long long>(grace_ns));
    Masters &masters = Masters::of(context);
    auto master = std::make_unique<Master>();
    master->grace_ns = grace_ns ? std::min(grace_ns, longest_grace_ns) : default_grace_ns;
    master->pidfd = Fd(open_pidfd(pid));
    if (!master->pidfd && errno != ESRCH) {
        const Status status = errno == EINVAL ? MUSTER_E_ARG : errno == EMFILE ? MUSTER_E_LIMIT : MUSTER_E_SYSTEM;
        return Error::from_errno(errno, status, "watch process %d", static_cast<int>(pid));
    }
    const bool posted = context.post([&masters, &context, master = std::move(master)]() mutable {
        masters.begin(std::move(master), context.loop());
    });
    if (!posted) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

} // namespace muster
