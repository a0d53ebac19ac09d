// SPDX-License-Identifier: MIT
#include "context/loop.hpp"

#include "base/time.hpp"
#include "base/uncancelled.hpp"
#include "context/uv_guard.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace muster {

namespace {

constexpr int max_tasks = 1024; // in a row, before descriptors and timers have their turn
constexpr int max_rounds = 4;   // of epoll_wait() per turn
constexpr int64_t never = INT64_MAX;

Error no_descriptors(const char *what) noexcept {
    return Error::from_errno(errno, MUSTER_OK, "start an event loop: %s", what);
}

} // namespace

Loop::~Loop() {
    if (!open_) return;
    enter();
    close();
}

Result<void> Loop::open(Mode mode) {
    is_shown_.store(mode == Mode::waits, std::memory_order_relaxed);
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    if (!wake_ || !epoll_) return no_descriptors("descriptors");
    // Each write is an edge; timers and libuv are quiet once they have been served.
    if (!add(wake_.get(), EPOLLIN | EPOLLET, nullptr)) return no_descriptors("watch its own descriptor");
    if (mode == Mode::polled)
        if (Result<void> prepared = prepare_polled(); !prepared) return prepared;
    if (const int rc = open_uv_loop(uv_, epoll_.get()); rc != 0)
        return Error::from_errno(-rc, MUSTER_OK, "start an event loop");
    if (!add(uv_backend_fd(&uv_), EPOLLIN, &uv_)) {
        const Error why = no_descriptors("watch libuv's descriptor");
        uv_loop_close(&uv_);
        return why;
    }
    uv_timer_init(&uv_, &uv_timer_);
    uv_timer_.data = this;
    open_ = true;
    return {};
}

bool Loop::add(int fd, uint32_t events, void *key) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.ptr = key;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

Result<void> Loop::prepare_polled() noexcept {
    const std::lock_guard hold(lock_);
    if (timer_fd_) return {};
    Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer || !add(timer.get(), EPOLLIN, nullptr)) return no_descriptors("a timer");
    timer_fd_ = std::move(timer);
    return {};
}

void Loop::become_polled() noexcept {
    uv_timer_stop(&uv_timer_);
    armed_ns_ = never;
    is_shown_.store(false, std::memory_order_seq_cst);
    show_timers();
}

// ---- tasks ----------------------------------------------------------------------------------------------------------

bool Loop::post(TaskNode &task) noexcept {
    // On the loop thread nothing sleeps: tasks run before the next wait. Elsewhere the task may carry the caller's own
    // reference to the owner, and be gone before it is time to wake.
    const Ref<Object> owner(on_loop() ? nullptr : &owner_);
    TaskNode *latest = mailbox_.load(std::memory_order_relaxed);
    do {
        if (latest == refusing()) {
            task.refuse_task();
            return false;
        }
        task.next = latest;
        // release: pairs with fetch_tasks(); publishes the task. seq_cst: pairs with begin_wait() and show_tasks(). On
        // failure nothing is read but the pointer.
    } while (!mailbox_.compare_exchange_weak(latest, &task, std::memory_order_seq_cst, std::memory_order_relaxed));
    posts_.fetch_add(1, std::memory_order_relaxed);
    if (owner && latest == nullptr && (is_shown_.load(std::memory_order_seq_cst) || is_waited_for()))
        wake(); // the first of a burst
    return true;
}

bool Loop::begin_wait() noexcept {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    return mailbox_.load(std::memory_order_seq_cst) == nullptr;
}

void Loop::show_tasks() noexcept {
    is_shown_.store(true, std::memory_order_seq_cst);
    if (mailbox_.load(std::memory_order_seq_cst) != nullptr) wake(); // for those that were posted before
}

void Loop::wake() noexcept {
    const uint64_t one = 1;
    // Each write is an edge; the counter is never read, and cannot fill in the life of a process.
    [[maybe_unused]] const ssize_t written = uncancelled::write(wake_.get(), &one, sizeof one);
}

void Loop::fetch_tasks(TaskNode *leave_behind) noexcept {
    // acquire: pairs with post(); the task sees everything that the poster wrote.
    TaskNode *latest = mailbox_.exchange(leave_behind, std::memory_order_acquire);
    while (latest != nullptr) {
        TaskNode *const earlier = latest->next;
        latest->next = tasks_;
        tasks_ = latest;
        latest = earlier;
    }
}

void Loop::run_task() noexcept {
    TaskNode *const task = tasks_;
    tasks_ = task->next;
    task->run_task();
}

void Loop::run_tasks() noexcept {
    for (int done = 0; done < max_tasks; done++) {
        if (tasks_ == nullptr) {
            if (mailbox_.load(std::memory_order_relaxed) == nullptr) return;
            fetch_tasks(nullptr);
        }
        run_task();
    }
}

void Loop::refuse_tasks() noexcept {
    while (tasks_ != nullptr) run_task();
    fetch_tasks(refusing());
    while (tasks_ != nullptr) run_task();
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

Result<void> Loop::watch(Watch &watch, int fd, uint32_t epoll_events) noexcept {
    epoll_event event{};
    event.events = epoll_events;
    event.data.ptr = &watch;
    const std::lock_guard hold(lock_);
    if (watches_ended_) return Error::make(MUSTER_E_CLOSED, "watch a descriptor: the event loop has ended");
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        return Error::from_errno(errno, MUSTER_OK, "watch a descriptor");
    watch.watch_owner().retain();
    if (watch.descriptors_++ == 0) watches_.push_back(watch);
    return {};
}

void Loop::modify(Watch &watch, int fd, uint32_t epoll_events) noexcept {
    epoll_event event{};
    event.events = epoll_events;
    event.data.ptr = &watch;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::unwatch(Watch &watch, int fd) noexcept {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    {
        const std::lock_guard hold(lock_);
        if (watch.descriptors_ == 0) return; // the loop has ended
        if (--watch.descriptors_ == 0) watches_.remove(watch);
        // The loop may hold an event of it already: tasks run after all events of a turn.
        if (watch.removed_++ == 0) watch.next_removed_ = std::exchange(removed_, &watch);
    }
    if (!release_removed_.post(*this)) release_removed();
}

void Loop::release_removed() noexcept {
    for (;;) {
        Object *object;
        uint32_t count;
        {
            const std::lock_guard hold(lock_);
            if (removed_ == nullptr) return;
            Watch &watch = *removed_;
            removed_ = watch.next_removed_;
            object = &watch.watch_owner();
            count = std::exchange(watch.removed_, 0);
        }
        while (count-- != 0) object->release();
    }
}

void Loop::serve_descriptors(int timeout_ms) noexcept {
    epoll_event events[64];
    for (int round = 0; round < max_rounds; round++, timeout_ms = 0) {
        const int count = epoll_wait(epoll_.get(), events, static_cast<int>(std::size(events)), timeout_ms);
        bool is_libuv_ready = count == 0 && timeout_ms > 0; // its timer
        for (int i = 0; i < count; i++) {
            void *const key = events[i].data.ptr;
            if (key == &uv_)
                is_libuv_ready = true;
            else if (key != nullptr)
                static_cast<Watch *>(key)->on_events(events[i].events);
        }
        if (is_libuv_ready) uv_run(&uv_, UV_RUN_NOWAIT);
        if (count < static_cast<int>(std::size(events))) return;
    }
}

// ---- timers ---------------------------------------------------------------------------------------------------------

int64_t Loop::now_ns() noexcept {
    if (now_ns_ == 0) now_ns_ = muster::now_ns();
    return now_ns_;
}

void Loop::start_timer(TimerNode &timer, int64_t at_ns) noexcept {
    if (open_) timers_.start(timer, at_ns);
}

bool Loop::is_due() noexcept {
    return has_tasks() || (!timers_.empty() && timers_.next_ns() <= muster::now_ns());
}

void Loop::show_timers() noexcept {
    const int64_t next = timers_.empty() ? never : timers_.next_ns();
    if (!has_tasks() && next == armed_ns_) return; // if it has expired, it is readable until it is set again
    const bool now = is_due();
    const int64_t at = now ? 0 : next;
    armed_ns_ = at;
    itimerspec when{}; // all zero: off
    if (now)
        when.it_value.tv_nsec = 1; // in the past: readable at once
    else if (at != never)
        when.it_value = {at / 1'000'000'000, at % 1'000'000'000};
    timerfd_settime(timer_fd_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

// ---- turns ----------------------------------------------------------------------------------------------------------

void Loop::turn(int64_t until_ns) noexcept {
    run_tasks();
    now_ns_ = 0;
    wait(has_tasks() ? 0 : timers_.empty() ? until_ns : std::min(until_ns, timers_.next_ns()));
    turns_.fetch_add(1, std::memory_order_relaxed);
    now_ns_ = 0;
    run_tasks();
    if (!timers_.empty()) timers_.serve(now_ns());
}

void Loop::wait(int64_t until_ns) noexcept {
    if (until_ns == 0) return serve_descriptors(0);
    if (until_ns != armed_ns_) {
        armed_ns_ = until_ns;
        const int64_t left_ns = until_ns == never ? 0 : std::max<int64_t>(until_ns - muster::now_ns(), 0);
        uv_update_time(&uv_);
        if (until_ns == never)
            uv_timer_stop(&uv_timer_);
        else
            uv_timer_start(
                &uv_timer_, [](uv_timer_t *timer) { static_cast<Loop *>(timer->data)->armed_ns_ = never; },
                static_cast<uint64_t>((left_ns + 999'999) / 1'000'000), 0);
    } else {
        uv_update_time(&uv_);
    }
    const int timeout_ms = until_ns == never ? -1 : uv_backend_timeout(&uv_);
    if (timeout_ms == 0) uv_run(&uv_, UV_RUN_NOWAIT); // its timer is due, by whole milliseconds
    serve_descriptors(timeout_ms);
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Loop::close() noexcept {
    if (!std::exchange(open_, false)) return;
    timers_.stop_all();
    for (;;) {
        Watch *watch;
        Ref<Object> object;
        {
            const std::lock_guard hold(lock_);
            watches_ended_ = true;
            if ((watch = watches_.first()) == nullptr) break;
            object = Ref<Object>(&watch->watch_owner());
        }
        watch->on_loop_end();
        const std::lock_guard hold(lock_);
        if (watch->descriptors_ == 0) continue;
        watches_.remove(*watch);
        if (std::exchange(watch->removed_, watch->removed_ + watch->descriptors_) == 0)
            watch->next_removed_ = std::exchange(removed_, watch);
        watch->descriptors_ = 0;
    }
    release_removed();
    uv_walk(
        &uv_,
        [](uv_handle_t *handle, void *) {
            if (!uv_is_closing(handle)) uv_close(handle, nullptr);
        },
        nullptr);
    while (uv_run(&uv_, UV_RUN_DEFAULT) != 0) {
    }
    uv_loop_close(&uv_);
    leave();
}

} // namespace muster
