// SPDX-License-Identifier: MIT
#include "context/engine.hpp"

#include "base/futex.hpp"
#include "base/trace.hpp"
#include "context/host_call.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

Context::Context(const ContextSettings &settings)
    : settings(settings), host_calls_(std::make_unique<HostCalls>()), engine_(std::make_unique<Engine>(*this)) {}

Context::~Context() {
    // The bytes belong to the vector and are not const; only the pointer that is used here is.
    if (!settings.secret.empty())
        explicit_bzero(const_cast<unsigned char *>(settings.secret.data()), settings.secret.size());
}

Result<Ref<Context>> Context::create(const ContextSettings &settings) {
    watch_forks();
    Trace::start_by_environment();
    auto context = Ref<Context>::adopt(new Context(settings));
    Engine &engine = *context->engine_;
    Result<void> done = engine.open();
    if (done) done = context->external() ? engine.open_external() : engine.start();
    if (!done) return done.error();
    return context;
}

void Context::last_reference_gone() noexcept {
    if (forked()) return;    // the threads, locks and descriptors are those of the parent: copies are not touched
    if (!engine_->started) { // creation failed
        delete this;
        return;
    }
    if (external()) return engine_->finish_released();
    // release: pairs with turned(); the engine sees everything that the last owner did.
    engine_->orphaned.store(true, std::memory_order_release);
    loop_.wake();
    if (engine_->gone.fetch_or(Engine::references_gone, std::memory_order_acq_rel) & Engine::engine_gone) delete this;
}

// A thread that drives an external context stops: a released handle must not drive it again.
void Context::host_release() noexcept {
    if (!forked() && external()) {
        leave_handle();
        engine_->notify();
    }
    release();
}

bool Context::closed() const noexcept {
    // relaxed: objects made a moment later are ended by their part's close(), or at the latest by stop().
    return engine_->closing.load(std::memory_order_relaxed);
}

Status Context::sleep(Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
    if (on_loop()) return MUSTER_E_WOULD_DEADLOCK;
    HostCall *const call = HostCall::here(*this);
    if (call == nullptr) return sleep_unended(signal, seen, deadline);
    if (const Status ended = call->sleep_begins(&signal); ended != MUSTER_OK) return ended;
    Status status = MUSTER_OK;
    for (;;) {
        // It wakes up periodically only as long as no thread serves what it waits for.
        const int64_t look_at = call->look_at_ns();
        const bool look =
            !deadline.look_once() && look_at != INT64_MAX && (deadline.endless() || look_at < deadline.at());
        Deadline until_look(look ? std::max<int64_t>(1, look_at - now_ns()) : 0);
        status = sleep_unended(signal, seen, look ? until_look : deadline);
        if (!look || status != MUSTER_TIMEOUT) break;
        if ((status = call->look_for_servant()) != MUSTER_OK) break;
    }
    const Status ended = call->sleep_ends();
    return ended != MUSTER_OK ? ended : status;
}

Status Context::sleep_unended(Signal &signal, uint32_t seen, Deadline &deadline) noexcept {
    // seq_cst here and in notify(): a sleeper announces itself and then checks the sequence (the kernel checks again),
    // a notifier changes the sequence and then checks for sleepers; one of the two sees the other.
    signal.sleepers_.fetch_add(1, std::memory_order_seq_cst);
    Status status = MUSTER_OK;
    if (external()) {
        const Ref<Context> self(this); // the host may release the object it waits on
        status = engine_->await_change(signal.sequence_, seen, deadline);
    } else {
        leave_loop();
        while (signal.sequence_.load(std::memory_order_acquire) == seen) {
            if (!deadline.look_once() && futex_wait(signal.sequence_, seen, deadline, false) != ETIMEDOUT) continue;
            if (signal.sequence_.load(std::memory_order_acquire) == seen) status = MUSTER_TIMEOUT;
            break;
        }
    }
    signal.sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return status;
}

void Context::notify(Signal &signal) noexcept {
    // seq_cst: see sleep(); also publishes everything written before, pairs with Signal::seen().
    signal.sequence_.fetch_add(1, std::memory_order_seq_cst);
    if (signal.sleepers_.load(std::memory_order_seq_cst) == 0) return;
    if (external())
        engine_->notify();
    else
        futex_wake(signal.sequence_, INT_MAX, false);
}

Status Context::pause(int64_t ns) noexcept {
    Signal never_notified;
    Deadline deadline(ns);
    const Status status = sleep(never_notified, never_notified.seen(), deadline);
    return status == MUSTER_TIMEOUT ? Status{MUSTER_OK} : status;
}

Status Context::wait_fd(int fd, Deadline &deadline) noexcept {
    if (on_loop()) return MUSTER_E_WOULD_DEADLOCK;
    const Ref<Context> self(this);
    return engine_->await_fd(fd, deadline);
}

Status Context::progress(Deadline &deadline) noexcept {
    if (!external()) return MUSTER_E_UNSUPPORTED;
    const Ref<Context> self(this);
    const Status status = engine_->progress(deadline);
    return handle_left() ? MUSTER_E_CLOSED : status;
}

void Context::on_closing(ClosingNode &node) noexcept {
    if (node.keep()) closing_list_.push_back(node);
}

void Context::forget_closing(ClosingNode &node) noexcept {
    if (!closing_list_.holds(node)) return;
    closing_list_.remove(node);
    node.let_go();
}

void Context::notify_closing() noexcept {
    while (ClosingNode *const node = closing_list_.pop_front()) {
        node->call();
        node->let_go();
    }
}

Result<void> Context::share() {
    return external() ? Result<void>() : engine_->share();
}

bool Context::begin_drive() noexcept {
    return engine_->begin_drive();
}

void Context::end_drive() noexcept {
    engine_->end_drive();
}

void Context::Driver::run_posted() noexcept {
    context_.engine_->drives++;
    context_.loop_.run_tasks();
}

Result<int> Context::external_fd() noexcept {
    if (!external())
        return Error::make(MUSTER_E_UNSUPPORTED, "the context has a thread of its own; there is nothing to poll");
    if (closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    loop_.show_tasks();
    return duplicate(loop_.fd(), "a context");
}

int Context::end_fd() const noexcept {
    return engine_->end_fd.get();
}

Status Context::close(Deadline &deadline) noexcept {
    if (on_loop()) return MUSTER_E_WOULD_DEADLOCK;
    const Ref<Context> self(this);
    engine_->ask_close(deadline.endless() ? INT64_MAX : deadline.look_once() ? 0 : deadline.at());
    Deadline endless(-1);
    // acquire: pairs with teardown(); `forced` was written before.
    const auto stopped = [this] { return engine_->stopped.load(std::memory_order_acquire); };
    while (wait(engine_->stop_signal, endless, stopped) != MUSTER_OK) {
    }
    return engine_->forced.load(std::memory_order_relaxed) ? MUSTER_TIMEOUT : MUSTER_OK;
}

ContextPart &Context::part(const void *key, std::unique_ptr<ContextPart> (*make)(Context &)) {
    return engine_->part(key, make);
}

bool Context::logs(int32_t level) const noexcept {
    return level <= engine_->log.level.load(std::memory_order_relaxed);
}

} // namespace muster
