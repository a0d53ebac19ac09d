// SPDX-License-Identifier: MIT
#include "process/process.hpp"

#include "base/uncancelled.hpp"
#include "context/host_call.hpp"

#include <algorithm>
#include <csignal>
#include <sys/epoll.h>
#include <sys/wait.h>

namespace muster {

namespace {
constexpr int64_t check_ns = 100'000'000;
}

Result<Ref<Process>> Process::spawn(Context &context, const muster_process_config &config, Rest rest) {
    auto process = Ref<Process>::adopt(new Process(context)); // before the child: this may fail if memory runs out
    process->rest_ = rest;
    auto child = muster::spawn(config);
    if (!child) return child.error();
    process->pid_ = child->pid;
    process->pidfd_ = std::move(child->pidfd);
    if (!process->pidfd_) { // the host has reaped it already
        process->over_ = true;
        process->exit_ = {MUSTER_PROCESS_UNKNOWN, 0};
    } else if (auto watched = context.loop().watch(*process, process->pidfd_.get(), EPOLLIN); !watched) {
        undo_spawn({process->pid_, std::move(process->pidfd_)});
        if (watched.status() == MUSTER_E_CLOSED)
            return Error::make(MUSTER_E_CLOSED, "start %s: the context is closed", config.argv[0]);
        return watched.error();
    }
    return process;
}

void Process::last_reference_gone() noexcept {
    if (!forked()) delete this; // in a fork's child the context's loop does not run
}

bool Process::look() noexcept {
    const std::lock_guard hold(lock_);
    if (over_) return true;
    siginfo_t info{};
    // P_PIDFD (Linux 5.4) never means another process, whatever became of the number. Older headers lack it.
    constexpr auto by_pidfd = static_cast<idtype_t>(3);
    const auto ask = [&](int options) {
        return uncancelled::wait_id(by_pidfd, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG | options);
    };
    if (rest_ == Rest::ends) {
        if (ask(WNOWAIT) == 0 && info.si_pid == 0) return false;
        if (info.si_pid != 0) ::kill(-pid_, SIGKILL); // not reaped yet: the number is still this group's
        info = {};
    }
    const int rc = ask(0);
    if (rc == 0 && info.si_pid == 0) return false;
    if (rc == 0)
        exit_ = {info.si_code == CLD_EXITED ? MUSTER_PROCESS_EXITED : MUSTER_PROCESS_KILLED, info.si_status};
    else if (errno == ECHILD)
        exit_ = {MUSTER_PROCESS_UNKNOWN, 0}; // the host reaps everything, or ignores SIGCHLD
    else
        return false;
    over_ = true;
    return true;
}

void Process::complete(Status status) noexcept {
    Ref<Queue> queue;
    Entry entry;
    {
        const std::lock_guard hold(lock_);
        queue = std::move(queue_);
        entry.completion.tag = tag_;
        entry.completion.bytes = uint64_t{static_cast<uint32_t>(exit_.kind)} << 32 | static_cast<uint32_t>(exit_.value);
    }
    if (!queue) return;
    entry.completion.kind = MUSTER_DONE_EXIT;
    entry.completion.status = status;
    if (status < 0) entry.error = Error::make(status, "process %d: no longer watched", static_cast<int>(pid_));
    queue->complete(std::move(entry));
}

void Process::on_events(uint32_t) noexcept {
    if (look()) end_watch(MUSTER_OK);
}

void Process::end_watch(Status status) noexcept {
    context_->loop().unwatch(*this, pidfd_.get());
    if (status < 0) {
        const std::lock_guard hold(lock_);
        abandoned_ = status;
    }
    context_->notify(changed_);
    complete(status);
}

bool Process::abandoned() noexcept {
    const std::lock_guard hold(lock_);
    return abandoned_ != MUSTER_OK;
}

Status Process::wait(Deadline &deadline, muster_process_exit *out) noexcept {
    for (;;) {
        const uint32_t seen = changed_.seen();
        if (look()) {
            if (out) *out = exit_; // never changes any more
            return MUSTER_OK;
        }
        if (deadline.look_once()) return MUSTER_AGAIN;
        if (deadline.passed()) return MUSTER_TIMEOUT;
        if (!abandoned()) { // the loop sees its end
            const Status status = context_->sleep(changed_, seen, deadline);
            if (status >= 0) continue;
            if (status != MUSTER_E_WOULD_DEADLOCK) return status;
        }
        // On the thread that drives the engine (a callback), or without an engine, it waits for the process alone, and
        // checks periodically whether the call was ended.
        if (HostCall *const call = HostCall::here(*context_)) {
            if (const Status ended = call->sleep_begins(nullptr); ended != MUSTER_OK) return ended;
        }
        pollfd one{pidfd_.get(), POLLIN, 0};
        const int64_t left = deadline.endless() ? check_ns : std::min(deadline.left(), check_ns);
        timespec limit{left / 1'000'000'000, left % 1'000'000'000}, *const until = &limit;
        if (uncancelled::wait_poll(&one, 1, until) < 0 && errno != EINTR) return MUSTER_E_SYSTEM;
    }
}

Status Process::watch(Queue &queue, uint64_t tag) noexcept {
    if (!queue.reserve()) return queue.closed() ? MUSTER_E_CLOSED : MUSTER_AGAIN;
    bool is_over = false;
    Status status = MUSTER_OK;
    {
        const std::lock_guard hold(lock_);
        if (watched_) {
            status = MUSTER_E_BUSY;
        } else if (abandoned_ != MUSTER_OK && !over_) {
            status = abandoned_;
        } else {
            watched_ = true;
            queue_ = Ref<Queue>(&queue);
            tag_ = tag;
            is_over = over_; // the loop may have seen the end before there was a watch
        }
    }
    if (status != MUSTER_OK) queue.unreserve();
    if (is_over) complete(MUSTER_OK);
    return status;
}

Status Process::kill(int signal) noexcept {
    if (look()) return MUSTER_E_STALE;
    const std::lock_guard hold(lock_); // not reaped by this context while it is signalled
    if (over_) return MUSTER_E_STALE;
    const int why = send_signal(pidfd_.get(), pid_, signal);
    return why == ESRCH ? MUSTER_E_STALE : status_of_errno(why);
}

} // namespace muster
