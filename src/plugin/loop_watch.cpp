// SPDX-License-Identifier: MIT
#include "plugin/loop_watch.hpp"

#include "context/uv_memory.hpp"

#include <uv.h>

namespace muster {

struct LoopTimer::Handle {
    uv_timer_t timer;
    std::function<void()> due;
};

LoopTimer::LoopTimer(Context &context, std::function<void()> due) : handle_(new Handle{{}, std::move(due)}) {
    uv_timer_init(context.loop(), &handle_->timer);
    handle_->timer.data = handle_;
}

LoopTimer::~LoopTimer() {
    uv_close(reinterpret_cast<uv_handle_t *>(&handle_->timer),
             [](uv_handle_t *handle) { delete static_cast<Handle *>(handle->data); });
}

void LoopTimer::start(int64_t after_ns, int64_t repeat_ns) noexcept {
    const auto milliseconds = [](int64_t ns) {
        return static_cast<uint64_t>(ns <= 0 ? 0 : (ns + 999'999) / 1'000'000);
    };
    uv_update_time(handle_->timer.loop);
    uv_timer_start(
        &handle_->timer, [](uv_timer_t *timer) { static_cast<Handle *>(timer->data)->due(); }, milliseconds(after_ns),
        milliseconds(repeat_ns));
}

struct LoopPoll::Handle {
    uv_poll_t poll;
    std::function<void(int)> ready;
};

Result<std::unique_ptr<LoopPoll>> LoopPoll::make(Context &context, int fd, std::function<void(int)> ready) {
    auto watch = std::unique_ptr<LoopPoll>(new LoopPoll);
    auto handle = std::make_unique<Handle>();
    handle->ready = std::move(ready);
    if (const int rc = prepare_poll(context.loop(), &handle->poll, fd); rc != 0)
        return Error::from_errno(-rc, rc == UV_EEXIST ? MUSTER_E_EXISTS : MUSTER_OK, "watch descriptor %d", fd);
    handle->poll.data = handle.get();
    watch->handle_ = handle.release(); // the loop knows it now
    return watch;
}

LoopPoll::~LoopPoll() {
    if (handle_ == nullptr) return;
    uv_poll_stop(&handle_->poll);
    uv_close(reinterpret_cast<uv_handle_t *>(&handle_->poll),
             [](uv_handle_t *handle) { delete static_cast<Handle *>(handle->data); });
}

void LoopPoll::want(int events) noexcept {
    if (events == 0) {
        uv_poll_stop(&handle_->poll);
        return;
    }
    uv_poll_start(&handle_->poll, events, [](uv_poll_t *poll, int status, int happened) {
        static_cast<Handle *>(poll->data)->ready(status < 0 ? UV_READABLE | UV_WRITABLE | UV_DISCONNECT : happened);
    });
}

} // namespace muster
