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
    int wanted = 0;
    void start() noexcept;
};

// libuv stops a poll handle when its descriptor has an error. The callback may have read only the data before the
// error, so the handle is started again until the watch is ended: level-triggered, as without an error.
void LoopPoll::Handle::start() noexcept {
    uv_poll_start(&poll, wanted, [](uv_poll_t *of, int status, int happened) {
        Handle &handle = *static_cast<Handle *>(of->data);
        handle.ready(status < 0 ? UV_READABLE | UV_WRITABLE | UV_DISCONNECT : happened);
        auto *const any = reinterpret_cast<uv_handle_t *>(of); // it is there until it has been closed
        if (status < 0 && handle.wanted != 0 && !uv_is_closing(any) && !uv_is_active(any)) handle.start();
    });
}

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
    handle_->wanted = events;
    if (events == 0)
        uv_poll_stop(&handle_->poll);
    else
        handle_->start();
}

} // namespace muster
