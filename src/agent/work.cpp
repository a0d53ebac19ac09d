// SPDX-License-Identifier: MIT
// The agent's own thread.
#include "agent/agent.hpp"
#include "context/threaded_objects.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace muster {

namespace {

constexpr int64_t kill_timeout_ns = 10'000'000'000; // a process inside the kernel may need some time

} // namespace

void Agent::run() noexcept {
    Error outcome;
    try {
        outcome = work();
    } catch (const std::bad_alloc &) {
        outcome = Error::make(MUSTER_E_NOMEM, "out of memory");
    } catch (const std::exception &failed) {
        outcome = Error::make(MUSTER_E_INTERNAL, "unexpected exception: %s", failed.what());
    }
    if (group_->running() > 0) group_->kill_and_wait();
    end(outcome);
}

// Starts the group until it succeeds, or may not be started again.
Error Agent::work() {
    Result<void> opened = open_rendezvous();
    Error others; // why the workers start again although none has failed on this node
    while (opened && stop_why() == MUSTER_OK) {
        Result<bool> settled = settle();
        if (!settled) return leave(settled.error());
        if (!*settled) continue;
        // Not before: the job may have ended.
        if (others.status != MUSTER_OK)
            post_event(MUSTER_AGENT_RESTARTING, standing_.restarts, std::exchange(others, {}));
        Result<void> started = start_group();
        if (started) await_failure();
        if (group_->running() > 0 && stop_why() == MUSTER_OK) begin_stop(SIGTERM, plan_.grace_ns);
        const bool last = standing_.restarts >= plan_.max_restarts;
        if (const Worker *const failed = earliest_failure(group_->workers()); failed && stop_why() == MUSTER_OK)
            report_failure(failure_error(*failed), last);
        await_end();
        const Worker *const failed = earliest_failure(group_->workers());
        show_failure(failed);
        if (stop_why() != MUSTER_OK) break;
        if (!started) return leave(started.error());
        if (failed != nullptr) {
            const Error change = failure_error(*failed);
            if (last) return leave(end_of_job(change));
            post_event(MUSTER_AGENT_RESTARTING, ++standing_.restarts, change);
        } else if (round_lost()) {
            others = lost_.why;
        } else {
            Result<bool> finished = finish(others);
            if (!finished) return leave(finished.error());
            if (*finished) return {};
            if (stop_why() != MUSTER_OK) break;
        }
    }
    if (!opened) return opened.error();
    return leave(stop_why() == MUSTER_E_CLOSED ? Error::make(MUSTER_E_CLOSED, "the context was closed")
                                               : Error::make(stop_why(), "stopped"));
}

Result<void> Agent::start_group() {
    if (stop_why() != MUSTER_OK) return {};
    show(MUSTER_AGENT_STARTING);
    port_.release();
    auto started = group_->start(standing_);
    show(MUSTER_AGENT_RUNNING);
    if (started) post_event(MUSTER_AGENT_STARTED, standing_.round, {});
    return started;
}

// Until all workers have ended, one has failed, other nodes need another round, or the agent is stopped.
void Agent::await_failure() {
    while (group_->running() > 0 && stop_why() == MUSTER_OK && !round_lost() &&
           earliest_failure(group_->workers()) == nullptr)
        take_next(never);
}

void Agent::begin_stop(int number, int64_t grace_ns) noexcept {
    show(MUSTER_AGENT_STOPPING);
    group_->begin_stop(number);
    const int64_t now = now_ns();
    kill_at_ns_ = grace_ns > never - now ? never : now + grace_ns;
}

// Until all workers that are being stopped have ended.
void Agent::await_end() {
    serve_commands(); // a stop may have arrived while the group was being started
    bool killed = false;
    while (group_->running() > 0 && !closed_) {
        if (now_ns() < kill_at_ns_) {
            take_next(kill_at_ns_);
        } else if (!killed) {
            group_->kill();
            killed = true;
            kill_at_ns_ = now_ns() + kill_timeout_ns;
        } else {
            context_->log(MUSTER_LOG_ERROR, "workers do not end after SIGKILL; they are left alone");
            break;
        }
    }
    if (group_->running() > 0)
        group_->kill_and_wait();
    else
        group_->end_guarding();
    show(MUSTER_AGENT_STOPPING);
}

// Takes one entry of the inbox, or waits for it up to a point in time.
void Agent::take_next(int64_t until_ns) {
    Deadline deadline(until_ns == never ? -1 : std::max<int64_t>(0, until_ns - now_ns()));
    muster_completion entry;
    muster_error detail{};
    const Status status = inbox_->next(deadline, &entry, &detail);
    if (status < 0) {
        closed_ = true;
        const std::lock_guard hold(lock_);
        stop_.why = MUSTER_E_CLOSED;
    }
    if (status != MUSTER_OK) return;
    if (entry.kind == MUSTER_DONE_EXIT) take_exit(entry);
    if (nodes_)
        nodes_->take(entry, detail, [this](const muster_rendezvous_event &event) { on_rendezvous_event(event); });
    serve_commands();
}

void Agent::take_exit(const muster_completion &entry) {
    const muster_process_exit exit{static_cast<int32_t>(entry.bytes >> 32), static_cast<int32_t>(entry.bytes)};
    if (!group_->take_exit(entry.tag, entry.status, exit)) return;
    const uint32_t local_rank = WorkerGroup::local_rank_of(entry.tag);
    const Worker &worker = group_->workers()[local_rank];
    {
        const std::lock_guard hold(lock_);
        workers_[local_rank] = worker.info;
        state_.running = group_->running();
    }
    const bool good = worker.info.state == MUSTER_WORKER_SUCCEEDED;
    post_event(MUSTER_AGENT_WORKER_ENDED, local_rank, good ? Error() : failure_error(worker));
}

void Agent::serve_commands() {
    uint64_t signals = 0;
    Stop stop;
    {
        const std::lock_guard hold(lock_);
        signals = std::exchange(signals_, 0);
        stop = stop_;
        stop_.fresh = false;
    }
    for (int number = 1; signals != 0; number++, signals >>= 1)
        if (signals & 1) group_->signal(number);
    if (stop.fresh && group_->running() > 0) begin_stop(stop.number, stop.grace_ns);
}

Status Agent::stop_why() noexcept {
    const std::lock_guard hold(lock_);
    return stop_.why;
}

void Agent::show(uint32_t phase) noexcept {
    const std::lock_guard hold(lock_);
    state_.phase = phase;
    state_.worker_count = plan_.worker_count;
    state_.running = group_->running();
    state_.restarts = standing_.restarts;
    state_.group_rank = standing_.group_rank;
    state_.group_world_size = standing_.group_world_size;
    state_.first_rank = standing_.first_rank;
    state_.world_size = standing_.world_size;
    state_.round = standing_.round;
    state_.master_port = standing_.master_port;
    const size_t size = std::min(standing_.master_address.size(), sizeof state_.master_address - 1);
    memcpy(state_.master_address, standing_.master_address.data(), size);
    state_.master_address[size] = '\0';
    for (size_t i = 0; i < workers_.size(); i++) workers_[i] = group_->workers()[i].info;
}

void Agent::show_failure(const Worker *failed) {
    if (failed == nullptr) return;
    const std::lock_guard hold(lock_);
    failure_ = failed->info;
    failure_text_ = failed->report.callstack.empty() ? failed->report.message : failed->report.callstack;
}

void Agent::post_event(uint32_t event, uint64_t bytes, const Error &detail) noexcept {
    Entry entry;
    entry.completion.kind = MUSTER_EVENT_AGENT;
    entry.completion.tag = tag_;
    entry.completion.bytes = bytes;
    entry.completion.events = event;
    entry.completion.status = detail.status;
    entry.error = detail;
    queue_->try_post(std::move(entry));
}

void Agent::end(const Error &outcome) noexcept {
    show(MUSTER_AGENT_ENDED);
    show_rendezvous(false);
    nodes_.reset();
    group_.reset(); // ends the guard
    files_.reset();
    output_->end();
    outcome_.complete(*context_, outcome); // before the completion: after it, calls on the agent find its end
    Entry entry;
    entry.completion.kind = MUSTER_DONE_AGENT;
    entry.completion.tag = tag_;
    entry.completion.status = outcome.status;
    entry.error = outcome;
    queue_->complete(std::move(entry));
    ThreadedObjects<Agent>::of(*context_).remove(*this);
}

} // namespace muster
