// SPDX-License-Identifier: MIT
#include "agent/group.hpp"

#include "base/status.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <tuple>

namespace muster {

namespace {

int64_t wall_clock_ns() noexcept { // to be shown
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// One output of one worker: what it writes to, and what that is carried from.
struct Writing {
    Fd end, carried, copy;
};

std::vector<const char *> pointers(const std::vector<std::string> &list) {
    std::vector<const char *> all;
    all.reserve(list.size() + 1);
    for (const std::string &one : list) all.push_back(one.c_str());
    all.push_back(nullptr);
    return all;
}

template <size_t room>
void copy_text(char (&to)[room], const std::string &text) noexcept {
    size_t size = std::min(text.size(), room - 1);
    while (size > 0 && size < text.size() && (text[size] & 0xc0) == 0x80) size--; // whole characters
    memcpy(to, text.data(), size);
    to[size] = '\0';
}

} // namespace

WorkerGroup::WorkerGroup(Context &context, Queue &exits, const AgentPlan &plan, WorkerFiles &files, Output &output,
                         std::string agent_id)
    : context_(context), exits_(exits), plan_(plan), files_(files), output_(output), agent_id_(std::move(agent_id)),
      workers_(plan.worker_count) {}

Result<void> WorkerGroup::prepare() {
    return plan_.guard ? start_guard() : Result<void>();
}

Result<void> WorkerGroup::start_guard() {
    auto guard = Guard::start(context_, agent_id_);
    if (!guard) return guard.error();
    guards_++;
    guard_ = std::move(*guard);
    if (guard_.tell_end(exits_, guard_tag) != MUSTER_OK)
        return Error::make(MUSTER_E_CLOSED, "the guard of the workers cannot be watched");
    tell_guard();
    return {};
}

// Somebody has killed it.
void WorkerGroup::replace_guard() noexcept {
    constexpr int most = 100;
    guard_ = {};
    Result<void> done = Error::make(MUSTER_E_LIMIT, "%d of them have ended", most);
    try {
        if (guards_ < most) done = start_guard();
    } catch (const std::bad_alloc &) {
        done = Error::from_status(MUSTER_E_NOMEM);
    }
    if (done)
        context_.log(MUSTER_LOG_WARN, "the guard of the workers was killed; here is another one");
    else
        context_.log(MUSTER_LOG_ERROR, "the workers have no guard any more: %s", done.error().message);
}

Result<void> WorkerGroup::start(const Standing &standing) {
    start_++;
    stopping_ = false;
    for (uint32_t local_rank = 0; local_rank < plan_.worker_count; local_rank++) {
        Worker &worker = workers_[local_rank];
        worker = {};
        worker.told.local_rank = local_rank;
        worker.told.rank = standing.first_rank + local_rank;
        worker.told.restarts = standing.restarts;
        worker.told.round = standing.round;
        copy_text(worker.told.directory, "");
    }
    if (auto made = files_.begin_attempt(start_ - 1, plan_.worker_count); !made) return made;
    for (uint32_t local_rank = 0; local_rank < plan_.worker_count; local_rank++)
        if (auto started = start_worker(local_rank, standing); !started) return started;
    return {};
}

Result<void> WorkerGroup::start_worker(uint32_t local_rank, const Standing &standing) {
    Worker &worker = workers_[local_rank];
    copy_text(worker.told.directory, files_.folder(local_rank));
    std::vector<muster_process_fd> fds{{-1, STDIN_FILENO}};
    const AgentPlan::Outputs outputs = plan_.outputs[local_rank];
    Writing writings[2];
    for (const bool err : {false, true}) {
        const uint32_t bit = err ? MUSTER_AGENT_STDERR : MUSTER_AGENT_STDOUT;
        Writing &writing = writings[err];
        if (outputs.log_outputs & bit) {
            auto file = files_.open_output(local_rank, err);
            if (!file) return file.error();
            (outputs.console_outputs & bit ? writing.copy : writing.end) = std::move(*file);
        }
        if (outputs.console_outputs & bit) {
            int ends[2];
            if (pipe2(ends, O_CLOEXEC) != 0)
                return Error::from_errno(errno, MUSTER_OK, "a pipe for the output of worker %u", local_rank);
            writing.carried = Fd(ends[0]);
            writing.end = Fd(ends[1]);
        }
        if (writing.end) fds.push_back({writing.end.get(), err ? STDERR_FILENO : STDOUT_FILENO});
    }
    const std::vector<std::string> environment =
        worker_environment(plan_, standing, local_rank, files_.error_file(local_rank), agent_id_);
    const std::vector<const char *> argv = pointers(plan_.argv), envp = pointers(environment);
    muster_process_config config{};
    config.struct_size = sizeof config;
    config.argv = argv.data();
    config.envp = envp.data();
    config.directory = plan_.directory.empty() ? nullptr : plan_.directory.c_str();
    config.fds = fds.data();
    config.fd_count = fds.size();
    const std::string prefix = '[' + plan_.role + std::to_string(local_rank) + "]: ";
    for (const bool err : {false, true})
        if (writings[err].carried) {
            auto added = output_.add(std::move(writings[err].carried), std::move(writings[err].copy), err, prefix);
            if (!added) return added;
        }
    auto process = Process::spawn(context_, config, Process::Rest::ends);
    if (!process) return process.error();
    worker.process = std::move(*process);
    worker.told.pid = worker.process->pid();
    worker.told.state = MUSTER_WORKER_RUNNING;
    worker.told.started_unix_ns = wall_clock_ns();
    running_++;
    tell_guard();
    // The queue of exits has room for each worker; the context may be closed, or memory is short.
    const Status watched = worker.process->watch(exits_, tag_of(local_rank));
    if (watched == MUSTER_OK) return {};
    worker.process->kill(SIGKILL); // nothing would report its end
    Deadline deadline(1'000'000'000);
    worker.process->wait(deadline, nullptr);
    running_--;
    worker.told.state = MUSTER_WORKER_STOPPED;
    return Error::make(watched == MUSTER_AGAIN ? MUSTER_E_NOMEM : watched, "watch worker %u: %s", local_rank,
                       status_text(watched == MUSTER_AGAIN ? MUSTER_E_NOMEM : watched));
}

bool WorkerGroup::take_exit(uint64_t tag, Status status, const muster_process_exit &exit) {
    if (tag == guard_tag && status == MUSTER_OK) replace_guard();
    const uint32_t local_rank = local_rank_of(tag);
    if (local_rank >= workers_.size() || tag != tag_of(local_rank)) return false;
    Worker &worker = workers_[local_rank];
    if (worker.told.state != MUSTER_WORKER_RUNNING) return false;
    if (status == MUSTER_E_CLOSED) return false;   // the context is closing, and kill_and_wait() comes
    if (status < 0) worker.process->kill(SIGKILL); // the system watches it no longer
    running_--;
    worker.told.exit = status < 0 ? muster_process_exit{MUSTER_PROCESS_UNKNOWN, 0} : exit;
    worker.told.ended_unix_ns = worker.told.failed_unix_ns = wall_clock_ns();
    const bool good = worker.told.exit.kind == MUSTER_PROCESS_EXITED && worker.told.exit.value == 0;
    worker.told.state = good ? MUSTER_WORKER_SUCCEEDED : stopping_ ? MUSTER_WORKER_STOPPED : MUSTER_WORKER_FAILED;
    if (!good) read_report(worker);
    tell_guard();
    return true;
}

void WorkerGroup::read_report(Worker &worker) {
    worker.report = read_failure(files_.error_file(worker.told.local_rank));
    if (worker.report.message.empty()) return;
    make_printable(worker.report.message.data(), worker.report.message.size());
    copy_text(worker.told.message, worker.report.message);
    if (worker.report.timestamp_s > 0 && worker.report.timestamp_s < INT64_MAX / 1'000'000'000)
        worker.told.failed_unix_ns = worker.report.timestamp_s * 1'000'000'000;
}

void WorkerGroup::signal(int number) noexcept {
    for (Worker &worker : workers_)
        if (worker.told.state == MUSTER_WORKER_RUNNING) worker.process->kill(number);
}

void WorkerGroup::begin_stop(int number) noexcept {
    stopping_ = true;
    signal(number);
    signal(SIGCONT); // one that is stopped could not act upon it
}

void WorkerGroup::kill() noexcept {
    signal(SIGKILL);
}

void WorkerGroup::kill_and_wait() noexcept {
    kill();
    constexpr int64_t patience_ns = 5'000'000'000; // a process inside the kernel may take its time
    Deadline deadline(patience_ns);
    for (Worker &worker : workers_)
        if (worker.told.state == MUSTER_WORKER_RUNNING) {
            worker.process->wait(deadline, &worker.told.exit);
            worker.told.state = MUSTER_WORKER_STOPPED;
            worker.told.ended_unix_ns = wall_clock_ns();
        }
    running_ = 0;
    all_over();
}

void WorkerGroup::all_over() noexcept {
    output_.finish();
    tell_guard();
}

void WorkerGroup::tell_guard() noexcept {
    if (!guard_) return;
    try {
        std::vector<pid_t> leaders;
        for (const Worker &worker : workers_)
            if (worker.told.state == MUSTER_WORKER_RUNNING) leaders.push_back(worker.told.pid);
        guard_.watch(leaders);
    } catch (const std::bad_alloc &) { // it still finds them by the variable
    }
}

Error failure_error(const Worker &worker) noexcept {
    const muster_agent_worker &told = worker.told;
    char how[96];
    const char *const name = told.exit.kind == MUSTER_PROCESS_KILLED ? sigabbrev_np(told.exit.value) : nullptr;
    if (told.exit.kind == MUSTER_PROCESS_KILLED)
        snprintf(how, sizeof how, "was killed by signal %d%s%s", told.exit.value, name ? ", SIG" : "",
                 name ? name : "");
    else if (told.exit.kind == MUSTER_PROCESS_EXITED)
        snprintf(how, sizeof how, "failed with exit code %d", told.exit.value);
    else
        snprintf(how, sizeof how, "ended, unknown how: this process ignores or reaps all its children");
    Error error = Error::make(MUSTER_E_ABORTED, "worker %u (rank %u) %s%s%s", told.local_rank, told.rank, how,
                              told.message[0] ? ": " : "", told.message);
    error.rank = told.rank;
    error.provider_code = told.exit.kind == MUSTER_PROCESS_KILLED ? -told.exit.value : told.exit.value;
    return error;
}

const Worker *earliest_failure(const std::vector<Worker> &workers) noexcept {
    // Error files know seconds only; within one it is the order in which the workers ended.
    const auto when = [](const Worker &worker) {
        return std::tuple(worker.told.failed_unix_ns / 1'000'000'000, worker.told.state == MUSTER_WORKER_STOPPED,
                          worker.told.ended_unix_ns);
    };
    const Worker *first = nullptr;
    for (const Worker &worker : workers) {
        const bool failed = worker.told.state == MUSTER_WORKER_FAILED;
        // One that was stopped may have written down before why it was about to fail, and been the cause of the others.
        const bool told = worker.told.state == MUSTER_WORKER_STOPPED && worker.report.timestamp_s != 0;
        if ((failed || told) && (!first || when(worker) < when(*first))) first = &worker;
    }
    return first;
}

} // namespace muster
