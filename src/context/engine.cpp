// SPDX-License-Identifier: MIT
#include "context/engine.hpp"

#include "base/thread.hpp"
#include "base/uncancelled.hpp"

#include <sys/eventfd.h>
#include <sys/prctl.h>

namespace muster {

Context::Engine::~Engine() {
    while (latest_part != nullptr) delete std::exchange(latest_part, latest_part->earlier);
}

Result<void> Context::Engine::open() {
    end_fd = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!end_fd) return Error::from_errno(errno, MUSTER_OK, "start a context: eventfd");
    return loop.open(context.external() ? Loop::Mode::polled : Loop::Mode::waits);
}

Result<void> Context::Engine::start() {
    started = true; // before the thread may check it
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
    loop.enter();
    // acquire: pairs with share(); the loop is prepared.
    while (!ending && !share_wanted.load(std::memory_order_acquire)) {
        loop.turn(INT64_MAX);
        turned();
    }
    if (!ending) run_shared();
    begin_teardown();
    teardown();
    // From here on nothing of the context may be touched unless the references are gone, too.
    if (gone.fetch_or(engine_gone, std::memory_order_acq_rel) & references_gone) delete &context;
}

void Context::Engine::turned() noexcept {
    const bool released = orphaned.load(std::memory_order_acquire);
    if (ending || (!released && !closing.load(std::memory_order_acquire))) return;

    if (!close_begun) {
        close_begun = true;
        each_part([](ContextPart &part) { part.close(); });
        context.notify_closing();
    }
    bool drained = true;
    each_part([&](ContextPart &part) { drained = part.drained() && drained; });
    const int64_t at = close_at.load(std::memory_order_relaxed);
    const int64_t left = at == INT64_MAX ? INT64_MAX : at - now_ns();
    if (drained || released || left <= 0) {
        forced.store(!drained, std::memory_order_relaxed);
        ending = true;
    } else if (left != INT64_MAX) {
        loop.start_timer(close_timer, at);
    }
}

void Context::Engine::ask_close(int64_t at) noexcept {
    int64_t earliest = close_at.load(std::memory_order_relaxed);
    while (at < earliest && !close_at.compare_exchange_weak(earliest, at, std::memory_order_relaxed)) {
    }
    closing.store(true, std::memory_order_release);
    loop.wake();
}

ContextPart &Context::Engine::part(const void *key, std::unique_ptr<ContextPart> (*make)(Context &)) {
    const std::lock_guard hold(parts_lock);
    for (ContextPart *part = latest_part; part != nullptr; part = part->earlier)
        if (part->key == key) return *part;
    ContextPart *const made = make(context).release();
    made->key = key;
    made->earlier = latest_part; // only now: it may have requested others while it was made
    return *(latest_part = made);
}

void Context::Engine::begin_teardown() noexcept {
    loop.refuse_tasks();
    context.notify_closing();
    each_part([](ContextPart &part) { part.stop(); });
}

void Context::Engine::teardown() noexcept {
    loop.close();
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(end_fd.get(), &one, sizeof one);
    stopped.store(true, std::memory_order_release); // last: after a close has returned, the queues are at their end
    context.notify(stop_signal);
}

} // namespace muster
