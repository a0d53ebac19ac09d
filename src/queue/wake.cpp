// SPDX-License-Identifier: MIT
#include "queue/wake.hpp"

#include "base/uncancelled.hpp"
#include "context/uv_memory.hpp"

#include <cerrno>
#include <sys/epoll.h>

namespace muster {

// The watches of a context whose handles are open, each with a reference. Loop thread only.
class WakeWatches final : public ContextPart {
  public:
    static WakeWatches &of(Context &context) {
        static const char key = 0;
        return static_cast<WakeWatches &>(context.part(
            &key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<WakeWatches>(); }));
    }

    void stop() noexcept override {
        while (first_) first_->close_handle();
    }

    void add(WakeWatch &watch) noexcept {
        watch.list_ = this;
        watch.next_ = first_;
        if (first_) first_->prev_ = &watch;
        first_ = &watch;
    }

    void remove(WakeWatch &watch) noexcept {
        (watch.prev_ ? watch.prev_->next_ : first_) = watch.next_;
        if (watch.next_) watch.next_->prev_ = watch.prev_;
        watch.list_ = nullptr;
        watch.next_ = watch.prev_ = nullptr;
    }

  private:
    WakeWatch *first_ = nullptr;
};

Result<Ref<WakeWatch>> WakeWatch::create(Context &context, int queue_fd) {
    WakeWatches::of(context); // made here, where it may fail
    Fd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return Error::from_errno(errno, MUSTER_OK, "watch a queue for its wake function");
    auto watch = Ref<WakeWatch>::adopt(new WakeWatch(std::move(epoll), queue_fd));
    if (auto started = watch->start(context); !started) return started.error();
    return watch;
}

Result<void> WakeWatch::set(muster_wake_fn wake, void *user) noexcept {
    const std::lock_guard hold(lock_);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    if (wake && !wake_ && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, queue_fd_, &event) != 0)
        return Error::from_errno(errno, MUSTER_OK, "watch a queue for its wake function");
    if (!wake && wake_) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, queue_fd_, nullptr);
    wake_ = wake;
    user_ = user;
    return {};
}

Result<void> WakeWatch::start(Context &context) {
    const bool posted = context.post([self = Ref<WakeWatch>(this), &context]() mutable {
        const int rc = prepare_poll(context.loop(), &self->handle_, self->epoll_.get());
        if (rc != 0) {
            context.log(MUSTER_LOG_ERROR, "watch a queue for its wake function: %s", uv_strerror(rc));
            return;
        }
        self->handle_.data = self.get();
        uv_poll_start(&self->handle_, UV_READABLE,
                      [](uv_poll_t *handle, int, int) { static_cast<WakeWatch *>(handle->data)->ready(); });
        WakeWatches::of(context).add(*self);
        self.detach(); // given back when the handle is closed
    });
    if (!posted) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

void WakeWatch::ready() noexcept {
    epoll_event event;
    if (uncancelled::wait_epoll(epoll_.get(), &event, 1, 0) <= 0) return; // takes the edge
    const std::lock_guard hold(lock_);
    if (wake_) wake_(user_);
}

void WakeWatch::stop(Context &context) noexcept {
    struct Stop final : Task {
        Ref<WakeWatch> watch;
        void run() noexcept override {
            if (watch->list_) watch->close_handle();
        }
    };
    // Without memory the handle stays until the context ends, and does nothing.
    if (auto *task = new (std::nothrow) Stop) {
        task->watch = Ref<WakeWatch>(this);
        context.post(std::unique_ptr<Task>(task)); // refused: the context has ended and closed it
    }
}

void WakeWatch::close_handle() noexcept {
    list_->remove(*this);
    uv_close(reinterpret_cast<uv_handle_t *>(&handle_),
             [](uv_handle_t *handle) { static_cast<WakeWatch *>(handle->data)->release(); });
}

} // namespace muster
