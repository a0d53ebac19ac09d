// SPDX-License-Identifier: MIT
#include "agent/group.hpp"

#include "base/libc.hpp"
#include "base/status.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <tuple>

namespace muster {

namespace {

int64_t wall_clock_ns() noexcept { // to be shown
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// One output of one worker: the end it writes to, and the end that is copied from.
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
    if (guard_.watch_end(exits_, guard_tag) != MUSTER_OK)
        return Error::make(MUSTER_E_CLOSED, "the guard of the workers cannot be watched");
    update_guard();
    return {};
}

// It was killed.
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
        worker.info.local_rank = local_rank;
        worker.info.rank = standing.first_rank + local_rank;
        worker.info.restarts = standing.restarts;
        worker.info.round = standing.round;
        copy_text(worker.info.directory, "");
    }
    if (auto made = files_.begin_attempt(start_ - 1, plan_.worker_count); !made) return made;
    for (uint32_t local_rank = 0; local_rank < plan_.worker_count; local_rank++)
        if (auto started = start_worker(local_rank, standing); !started) return started;
    return {};
}

Result<void> WorkerGroup::start_worker(uint32_t local_rank, const Standing &standing) {
    Worker &worker = workers_[local_rank];
    copy_text(worker.info.directory, files_.folder(local_rank));
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
        if (!writing.end && (outputs.discarded_outputs & bit)) {
            writing.end = Fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
            if (!writing.end) return Error::from_errno(errno, MUSTER_OK, "open /dev/null for worker %u", local_rank);
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
    worker.info.pid = worker.process->pid();
    worker.info.state = MUSTER_WORKER_RUNNING;
    worker.info.started_unix_ns = wall_clock_ns();
    running_++;
    update_guard();
    // The queue of exits has room for each worker; the context may be closed, or memory is short.
    const Status watched = worker.process->watch(exits_, tag_of(local_rank));
    if (watched == MUSTER_OK) return {};
    worker.process->kill(SIGKILL); // its end would not be reported
    Deadline deadline(1'000'000'000);
    worker.process->wait(deadline, nullptr);
    running_--;
    worker.info.state = MUSTER_WORKER_STOPPED;
    return Error::make(watched == MUSTER_AGAIN ? MUSTER_E_NOMEM : watched, "watch worker %u: %s", local_rank,
                       status_text(watched == MUSTER_AGAIN ? MUSTER_E_NOMEM : watched));
}

bool WorkerGroup::take_exit(uint64_t tag, Status status, const muster_process_exit &exit) {
    if (tag == guard_tag && status == MUSTER_OK) replace_guard();
    const uint32_t local_rank = local_rank_of(tag);
    if (local_rank >= workers_.size() || tag != tag_of(local_rank)) return false;
    Worker &worker = workers_[local_rank];
    if (worker.info.state != MUSTER_WORKER_RUNNING) return false;
    if (status == MUSTER_E_CLOSED) return false;   // the context is closing, and kill_and_wait() follows
    if (status < 0) worker.process->kill(SIGKILL); // the system watches it no longer
    running_--;
    worker.info.exit = status < 0 ? muster_process_exit{MUSTER_PROCESS_UNKNOWN, 0} : exit;
    worker.info.ended_unix_ns = worker.info.failed_unix_ns = wall_clock_ns();
    const bool good = worker.info.exit.kind == MUSTER_PROCESS_EXITED && worker.info.exit.value == 0;
    worker.info.state = good ? MUSTER_WORKER_SUCCEEDED : stopping_ ? MUSTER_WORKER_STOPPED : MUSTER_WORKER_FAILED;
    if (!good) read_report(worker);
    update_guard();
    return true;
}

void WorkerGroup::read_report(Worker &worker) {
    worker.report = read_failure(files_.error_file(worker.info.local_rank));
    if (worker.report.message.empty()) return;
    make_printable(worker.report.message.data(), worker.report.message.size());
    copy_text(worker.info.message, worker.report.message);
    if (worker.report.timestamp_s > 0 && worker.report.timestamp_s < INT64_MAX / 1'000'000'000)
        worker.info.failed_unix_ns = worker.report.timestamp_s * 1'000'000'000;
}

void WorkerGroup::signal(int number) noexcept {
    for (Worker &worker : workers_)
        if (worker.info.state == MUSTER_WORKER_RUNNING) worker.process->kill(number);
}

void WorkerGroup::begin_stop(int number) noexcept {
    stopping_ = true;
    signal(number);
    signal(SIGCONT); // a stopped process could not handle the signal
}

void WorkerGroup::kill() noexcept {
    signal(SIGKILL);
}

void WorkerGroup::kill_and_wait() noexcept {
    kill();
    constexpr int64_t timeout_ns = 5'000'000'000; // a process inside the kernel may need some time
    Deadline deadline(timeout_ns);
    for (Worker &worker : workers_)
        if (worker.info.state == MUSTER_WORKER_RUNNING) {
            worker.process->wait(deadline, &worker.info.exit);
            worker.info.state = MUSTER_WORKER_STOPPED;
            worker.info.ended_unix_ns = wall_clock_ns();
        }
    running_ = 0;
    end_guarding();
}

void WorkerGroup::end_guarding() noexcept {
    output_.finish();
    update_guard();
}

void WorkerGroup::update_guard() noexcept {
    if (!guard_) return;
    try {
        std::vector<pid_t> leaders;
        for (const Worker &worker : workers_)
            if (worker.info.state == MUSTER_WORKER_RUNNING) leaders.push_back(worker.info.pid);
        guard_.watch(leaders);
    } catch (const std::bad_alloc &) { // the guard still finds them by the variable
    }
}

Error failure_error(const Worker &worker) noexcept {
    const muster_agent_worker &info = worker.info;
    char how[96];
    const char *const name = info.exit.kind == MUSTER_PROCESS_KILLED ? libc::signal_name(info.exit.value) : nullptr;
    if (info.exit.kind == MUSTER_PROCESS_KILLED)
        snprintf(how, sizeof how, "was killed by signal %d%s%s", info.exit.value, name ? ", SIG" : "",
                 name ? name : "");
    else if (info.exit.kind == MUSTER_PROCESS_EXITED)
        snprintf(how, sizeof how, "failed with exit code %d", info.exit.value);
    else
        snprintf(how, sizeof how, "ended, unknown how: this process ignores or reaps all its children");
    Error error = Error::make(MUSTER_E_ABORTED, "worker %u (rank %u) %s%s%s", info.local_rank, info.rank, how,
                              info.message[0] ? ": " : "", info.message);
    error.rank = info.rank;
    error.provider_code = info.exit.kind == MUSTER_PROCESS_KILLED ? -info.exit.value : info.exit.value;
    return error;
}

const Worker *earliest_failure(const std::vector<Worker> &workers) noexcept {
    // Error files know seconds only; within one it is the order in which the workers ended.
    const auto when = [](const Worker &worker) {
        return std::tuple(worker.info.failed_unix_ns / 1'000'000'000, worker.info.state == MUSTER_WORKER_STOPPED,
                          worker.info.ended_unix_ns);
    };
    const Worker *first = nullptr;
    for (const Worker &worker : workers) {
        const bool failed = worker.info.state == MUSTER_WORKER_FAILED;
        // A worker that was stopped may have written its error file before: then it may be the cause of the other
        // failures.
        const bool reported = worker.info.state == MUSTER_WORKER_STOPPED && worker.report.timestamp_s != 0;
        if ((failed || reported) && (!first || when(worker) < when(*first))) first = &worker;
    }
    return first;
}

} // namespace muster
