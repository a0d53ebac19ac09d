// SPDX-License-Identifier: MIT
// muster run: the workers of a node, and of several as one world.
#include "run/progress.hpp"
#include "run/report.hpp"
#include "serving.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace {

using run::Options;

struct Running {
    const Options &options;
    muster_agent *agent = nullptr;
    muster_queue *queue = nullptr;
    run::Progress progress{options};
    int stopped_by = 0; // signal
    bool over = false;
    muster_error outcome{};
};

int failed(const muster_error &error) {
    fprintf(stderr, "muster run: %s\n", error.message);
    return error.status == MUSTER_E_ARG ? 2 : 1;
}

// Output that is neither shown nor logged is that of this command; the lines of several workers are distinguished by
// names.
std::vector<muster_agent_outputs> outputs_of(const Options &options) {
    const bool named = options.workers > 1 && !options.no_prefix;
    std::vector<muster_agent_outputs> all;
    for (uint32_t worker = 0; worker < options.workers; worker++) {
        const uint32_t filed = options.redirects.of(worker), both = options.tee.of(worker);
        const std::vector<uint32_t> &shown = options.shown_ranks;
        if (shown.empty() || std::find(shown.begin(), shown.end(), worker) != shown.end())
            all.push_back({worker, filed | both, both | (named ? ~filed & 3u : 0), 0});
        else
            all.push_back({worker, filed | both, 0, 3});
    }
    return all;
}

muster_status start(const Options &options, muster_context *context, muster_queue *queue, muster_agent **agent,
                    muster_error *error) {
    muster_rendezvous_config meeting{};
    meeting.struct_size = sizeof meeting;
    meeting.flags = options.reopen ? MUSTER_RENDEZVOUS_REOPEN : 0;
    if (options.new_run) meeting.flags |= MUSTER_RENDEZVOUS_DISCARD_STATE;
    meeting.state_dir = options.state_dir.data();
    meeting.state_dir_bytes = options.state_dir.size();
    meeting.run_id = options.run_id.data();
    meeting.run_id_bytes = options.run_id.size();
    meeting.url = options.rdzv.data();
    meeting.url_bytes = options.rdzv.size();
    meeting.min = options.min_nodes;
    meeting.max = options.max_nodes;
    if (options.node_rank) meeting.flags |= MUSTER_RENDEZVOUS_HAS_RANK;
    meeting.rank = options.node_rank.value_or(0);
    meeting.keep_alive_ns = options.keep_alive_ns;
    meeting.keep_alive_attempts = options.keep_alive_attempts;
    meeting.last_call_ns = options.last_call_ns;

    std::vector<const char *> argv;
    for (const std::string &word : options.program) argv.push_back(word.c_str());
    argv.push_back(nullptr);
    const auto text = [](const std::string &one) { return one.empty() ? nullptr : one.c_str(); };
    muster_agent_config config{};
    config.struct_size = sizeof config;
    config.flags = (options.no_guard ? uint32_t{MUSTER_AGENT_NO_GUARD} : 0) |
                   (options.virtual_local_rank ? uint32_t{MUSTER_AGENT_VIRTUAL_LOCAL_RANK} : 0);
    config.argv = argv.data();
    config.worker_count = options.workers;
    config.max_restarts = options.max_restarts;
    config.grace_ns = options.grace_ns;
    config.run_id = text(options.run_id);
    config.role = text(options.role);
    config.log_dir = text(options.log_dir);
    const std::vector<muster_agent_outputs> outputs = outputs_of(options);
    config.outputs = outputs.data();
    config.output_count = outputs.size();
    config.local_address = text(options.local_address);
    config.rendezvous = options.meets() ? &meeting : nullptr;
    config.master_address = text(options.master_address);
    config.master_port = options.master_port;
    config.join_timeout_ns = options.join_timeout_ns;
    config.exit_timeout_ns = options.exit_timeout_ns;
    return muster_agent_start(context, &config, queue, 0, agent, error);
}

void take_signals(int signals, Running &running) {
    signalfd_siginfo got{};
    while (read(signals, &got, sizeof got) == sizeof got) {
        const int number = static_cast<int>(got.ssi_signo);
        if (number == SIGUSR1 || number == SIGUSR2) {
            muster_agent_signal(running.agent, number);
        } else if (running.stopped_by == 0) {
            running.stopped_by = number;
            muster_agent_stop(running.agent, number, -1);
        } else {
            muster_agent_stop(running.agent, SIGKILL, 0);
        }
    }
}

void take_events(Running &running) {
    muster_completion event;
    muster_error detail{};
    while (muster_queue_next(running.queue, 0, &event, &detail) == MUSTER_OK) {
        running.progress.erase();
        if (event.kind == MUSTER_EVENT_LOG) fprintf(stderr, "muster run: %s\n", detail.message);
        if (event.kind == MUSTER_EVENT_AGENT) run::show_event(running.options, running.agent, event, detail);
        if (event.kind == MUSTER_DONE_AGENT) {
            running.over = true;
            running.outcome = detail;
            running.outcome.status = event.status;
        }
        detail = {};
    }
}

int exit_status(const Running &running) {
    const muster_error &outcome = running.outcome;
    if (outcome.status == MUSTER_OK) return 0;
    if (outcome.status == MUSTER_E_CANCELED) return 128 + running.stopped_by;
    if (outcome.status != MUSTER_E_ABORTED) return outcome.status == MUSTER_E_ARG ? 2 : 1;
    const int64_t code = outcome.provider_code;
    return code < 0 && code > -128 ? static_cast<int>(128 - code) : code > 0 && code < 256 ? static_cast<int>(code) : 1;
}

// Waits until the agent is over, and the output of its workers has been shown.
int serve(Running &running, int queue_fd, int signals) {
    while (!running.over) {
        pollfd fds[2] = {{signals, POLLIN, 0}, {queue_fd, POLLIN, 0}};
        if (poll(fds, 2, running.progress.is_possible() ? run::Progress::update_ms : -1) < 0 && errno != EINTR) break;
        take_signals(signals, running);
        take_events(running);
        running.progress.update(running.agent);
    }
    running.progress.erase();
    // The reader of the output may be slow; a signal ends the wait.
    while (muster_agent_flush(running.agent, 100'000'000) == MUSTER_TIMEOUT) {
        pollfd again{signals, POLLIN, 0};
        if (poll(&again, 1, 0) > 0) break;
    }
    if (running.outcome.status != MUSTER_OK && running.outcome.status != MUSTER_E_CANCELED)
        run::show_failure(running.options, running.agent, running.outcome);
    return exit_status(running);
}

} // namespace

int run_command(const Arguments &arguments) {
    Options options;
    if (const auto status = run::read_options(arguments, options)) return *status;
    const int signals = serving::block_signals();
    muster_error error{};
    muster_context *context = nullptr;
    Running running{options};
    int32_t queue_fd = -1;
    if (muster_context_create(nullptr, &context, &error) != MUSTER_OK) return failed(error);
    if (muster_queue_create(context, nullptr, &running.queue, &error) != MUSTER_OK) return failed(error);
    muster_queue_fd(running.queue, &queue_fd);
    muster_context_log(context, options.log_level, running.queue, 0);
    if (const std::string wrong = options.scraping.begin("muster run", context); !wrong.empty()) {
        fprintf(stderr, "muster run: %s\n", wrong.c_str());
        return 1;
    }
    if (start(options, context, running.queue, &running.agent, &error) != MUSTER_OK) return failed(error);
    serving::Publishing publishing;
    if (!options.metrics_store.empty()) publishing.begin("muster run", context, options.metrics_store);
    const int status = serve(running, queue_fd, signals);
    publishing.end();
    options.scraping.end();
    muster_agent_release(running.agent);
    muster_context_close(context, 1'000'000'000);
    muster_queue_release(running.queue);
    muster_context_release(context);
    close(queue_fd);
    return status;
}
