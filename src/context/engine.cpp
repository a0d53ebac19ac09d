// SPDX-License-Identifier: MIT
#include "context/engine.hpp"

#include "base/thread.hpp"
#include "base/uncancelled.hpp"
#include "context/uv_memory.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

namespace muster {

namespace {

constexpr int most_tasks = 1024; // between two looks at the descriptors

} // namespace

Context::Engine::~Engine() {
    if (has_loop) { // never got as far as a thread
        close_handles();
        while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
        }
        uv_loop_close(&loop);
    }
    while (latest_part != nullptr) delete std::exchange(latest_part, latest_part->earlier);
}

Result<void> Context::Engine::open() {
    give_uv_a_reserve();
    wake_fd = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    end_fd = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_fd || !end_fd) return Error::from_errno(errno, MUSTER_OK, "start a context: eventfd");
    if (const int rc = uv_loop_init(&loop); rc < 0) {
        // libuv 1.44 leaks its first descriptor when it cannot have the second one. With async_wfd at 0 it has failed
        // before it got as far as descriptors.
        if (loop.async_wfd == -1 && loop.backend_fd >= 0) Fd(loop.backend_fd).reset();
        return Error::from_errno(-rc, MUSTER_OK, "start a context: event loop");
    }
    has_loop = true;
    loop.data = this;
    uv_prepare_init(&loop, &before_wait);
    uv_check_init(&loop, &after_wait);
    uv_timer_init(&loop, &close_timer);
    // Started first, so it runs last of all prepare handles: what they post is seen before the loop sleeps.
    uv_prepare_start(&before_wait, [](uv_prepare_t *handle) {
        auto &engine = *static_cast<Engine *>(handle->loop->data);
        engine.drain();
        engine.turn_now = 0; // the wait comes now
    });
    uv_check_start(&after_wait, [](uv_check_t *handle) { static_cast<Engine *>(handle->loop->data)->turned(); });
    int rc = prepare_poll(&loop, &wake_watch, wake_fd.get());
    if (rc == 0)
        rc = uv_poll_start(&wake_watch, UV_READABLE, [](uv_poll_t *handle, int, int) {
            auto &engine = *static_cast<Engine *>(handle->loop->data);
            uint64_t count;
            // The count is of no interest; reading makes the descriptor quiet before the mailbox is emptied.
            if (read(engine.wake_fd.get(), &count, sizeof count) > 0) engine.drain();
        });
    if (rc < 0) return Error::from_errno(-rc, MUSTER_OK, "start a context: watch its wake-up");
    return {};
}

Result<void> Context::Engine::start() {
    started = true; // before the thread may ask
    const int rc = start_thread(
        [](void *self) -> void * {
            static_cast<Engine *>(self)->run();
            return nullptr;
        },
        this);
    if (rc == 0) return {};
    started = false;
    return Error::from_errno(rc, MUSTER_E_NOMEM, "start a context: thread");
}

void Context::Engine::run() noexcept {
    prctl(PR_SET_NAME, "muster");
    driver.store(pthread_self(), std::memory_order_relaxed);
    while (!ending) {
        if (first == nullptr) {
            uv_run(&loop, UV_RUN_DEFAULT); // until there is a first watch
            continue;
        }
        uv_run(&loop, UV_RUN_NOWAIT);
        while (!ending && wait_first()) {
        }
    }
    teardown();
    // From here on nothing of the context may be touched unless the references are gone, too.
    if (gone.fetch_or(engine_gone, std::memory_order_acq_rel) & references_gone) delete &context;
}

// Libuv's own descriptor and the wake-up are in that epoll, too; their keys are these members' addresses.
bool Context::Engine::watch_first(FirstWatch *watch, int epoll) noexcept {
    if (context.external()) return false;
    if (watch == nullptr) {
        if (first == nullptr) return false;
        epoll_ctl(first_epoll, EPOLL_CTL_DEL, uv_backend_fd(&loop), nullptr);
        epoll_ctl(first_epoll, EPOLL_CTL_DEL, wake_fd.get(), nullptr);
        first = nullptr;
        return true;
    }
    epoll_event libuv{}, wake_up{};
    libuv.events = wake_up.events = EPOLLIN;
    libuv.data.ptr = &loop;
    wake_up.data.ptr = &wake_watch;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, uv_backend_fd(&loop), &libuv) != 0) return false;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, wake_fd.get(), &wake_up) != 0) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, uv_backend_fd(&loop), nullptr);
        return false;
    }
    uv_poll_stop(&wake_watch);
    first = watch;
    first_epoll = epoll;
    uv_stop(&loop);
    return true;
}

// As a turn of libuv's loop: tasks, the wait, what is ready. Whoever has left the epoll meanwhile may still have an
// event in hand, and is let go of by a task: so tasks come behind all events.
bool Context::Engine::wait_first() noexcept {
    drain();
    turn_now = 0;
    if (first == nullptr || ending || has_tasks() || has_unregistered(&loop)) return false;
    uv_update_time(&loop);
    int ms = uv_backend_timeout(&loop);
    if (ms == 0) return false;
    if (has_refused(&loop)) ms = ms < 0 ? retry_registration_ms : std::min(ms, retry_registration_ms);
    epoll_event events[64];
    const int n = epoll_wait(first_epoll, events, static_cast<int>(std::size(events)), ms);
    context.counters.loop_wakeups.fetch_add(1, std::memory_order_relaxed);
    bool uv_is_ready = n == 0, woken = false;
    for (int i = 0; i < n; i++) {
        void *const key = events[i].data.ptr;
        if (key == &loop)
            uv_is_ready = true;
        else if (key == &wake_watch)
            woken = true;
        else if (first != nullptr)
            first->on_ready(key, events[i].events);
    }
    if (woken) {
        uint64_t count;
        [[maybe_unused]] const ssize_t got = read(wake_fd.get(), &count, sizeof count);
        drain();
    }
    return !uv_is_ready && !closing.load(std::memory_order_acquire) && !orphaned.load(std::memory_order_acquire);
}

bool Context::Engine::post(Posted *work) noexcept {
    // On the loop thread nobody sleeps: the mailbox is emptied before the next wait. Elsewhere the task may carry the
    // caller's own reference, and be gone before it is time to wake.
    const Ref<Context> self(on_loop() ? nullptr : &context);
    Posted *latest = mailbox.load(std::memory_order_relaxed);
    do {
        if (latest == closed_mark()) {
            work->refuse_posted();
            return false;
        }
        work->next = latest;
        // release: pairs with fetch_tasks(); publishes the task. On failure nothing is read but the pointer.
    } while (!mailbox.compare_exchange_weak(latest, work, std::memory_order_release, std::memory_order_relaxed));
    context.counters.mailbox_posts.fetch_add(1, std::memory_order_relaxed);
    if (self && latest == nullptr) wake(); // the first of a burst
    return true;
}

void Context::Engine::wake() noexcept {
    const uint64_t one = 1;
    // Can fail only when the counter is full, and then the loop is awake.
    [[maybe_unused]] const ssize_t written = uncancelled::write(wake_fd.get(), &one, sizeof one);
}

void Context::Engine::fetch_tasks(Posted *leave_behind) noexcept {
    // acquire: pairs with post(); what the poster wrote is seen by the task.
    Posted *latest = mailbox.exchange(leave_behind, std::memory_order_acquire);
    while (latest != nullptr) {
        Posted *const earlier = latest->next;
        latest->next = todo;
        todo = latest;
        latest = earlier;
    }
}

void Context::Engine::run_task() noexcept {
    Posted *const work = todo;
    todo = work->next;
    work->run_posted();
}

void Context::Engine::drain() noexcept {
    for (int done = 0; done < most_tasks; done++) {
        if (todo == nullptr) {
            if (mailbox.load(std::memory_order_relaxed) == nullptr) return;
            fetch_tasks(nullptr);
        }
        run_task();
    }
    if (has_tasks()) wake(); // more than a turn's worth: let others have a look
}

void Context::Engine::turned() noexcept {
    if (first == nullptr) // else wait_first() counts
        context.counters.loop_wakeups.fetch_add(1, std::memory_order_relaxed);
    turn_now = 0;
    const bool released = orphaned.load(std::memory_order_acquire);
    if (ending || (!released && !closing.load(std::memory_order_acquire))) return;

    if (!close_begun) {
        close_begun = true;
        each_part([](ContextPart &part) { part.close(); });
    }
    bool drained = true;
    each_part([&](ContextPart &part) { drained = part.drained() && drained; });
    const int64_t at = close_at.load(std::memory_order_relaxed);
    const int64_t left = at == INT64_MAX ? INT64_MAX : at - now_ns();
    if (drained || released || left <= 0) {
        forced.store(!drained, std::memory_order_relaxed);
        ending = true;
        uv_stop(&loop);
    } else if (left != INT64_MAX) {
        uv_timer_start(
            &close_timer, [](uv_timer_t *) {}, static_cast<uint64_t>(left / 1'000'000 + 1), 0);
    }
}

void Context::Engine::ask_close(int64_t at) noexcept {
    int64_t earliest = close_at.load(std::memory_order_relaxed);
    while (at < earliest && !close_at.compare_exchange_weak(earliest, at, std::memory_order_relaxed)) {
    }
    closing.store(true, std::memory_order_release);
    wake();
}

ContextPart &Context::Engine::part(const void *key, std::unique_ptr<ContextPart> (*make)(Context &)) {
    const std::lock_guard hold(parts_lock);
    for (ContextPart *part = latest_part; part != nullptr; part = part->earlier)
        if (part->key == key) return *part;
    ContextPart *const made = make(context).release();
    made->key = key;
    made->earlier = latest_part; // by now: it may have asked for others while it was made
    return *(latest_part = made);
}

void Context::Engine::begin_teardown() noexcept {
    while (todo != nullptr) run_task();
    fetch_tasks(closed_mark()); // later posts are refused
    while (todo != nullptr) run_task();
    each_part([](ContextPart &part) { part.stop(); });
    close_handles();
}

void Context::Engine::close_handles() noexcept {
    uv_walk(
        &loop,
        [](uv_handle_t *handle, void *) {
            if (!uv_is_closing(handle)) uv_close(handle, nullptr);
        },
        nullptr);
}

void Context::Engine::end_teardown() noexcept {
    uv_loop_close(&loop);
    has_loop = false;
    driver.store(pthread_t{}, std::memory_order_relaxed);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(end_fd.get(), &one, sizeof one);
    stopped.store(true, std::memory_order_release); // last: who returns from a close finds the queues at their end
    context.notify(stop_signal);
}

void Context::Engine::teardown() noexcept {
    begin_teardown();
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
    }
    end_teardown();
}

} // namespace muster
