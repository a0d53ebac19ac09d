// SPDX-License-Identifier: MIT
#include "run/report.hpp"

#include "base/libc.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace run {

namespace {

constexpr char rule[] = "------------------------------------------------------------";

std::string ended_how(const muster_agent_worker &worker) {
    if (worker.state == MUSTER_WORKER_NONE) return "not started";
    if (worker.state == MUSTER_WORKER_RUNNING) return "runs";
    if (worker.exit.kind == MUSTER_PROCESS_EXITED) return "exit code " + std::to_string(worker.exit.value);
    if (worker.exit.kind != MUSTER_PROCESS_KILLED) return "unknown how";
    const char *const name = muster::libc::signal_name(worker.exit.value);
    return "signal " + std::to_string(worker.exit.value) + (name ? std::string(" (SIG") + name + ")" : "");
}

std::string clock_time(int64_t unix_ns) {
    const time_t seconds = unix_ns / 1'000'000'000;
    tm local{};
    char text[64] = "-";
    if (unix_ns != 0 && localtime_r(&seconds, &local)) strftime(text, sizeof text, "%F %T", &local);
    return text;
}

std::string host_name() {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
}

std::string failure_text(muster_agent *agent) {
    size_t bytes = 0;
    if (muster_agent_failure_text(agent, nullptr, 0, &bytes) != MUSTER_OK) return {};
    std::string text(bytes, '\0');
    if (muster_agent_failure_text(agent, text.data(), text.size(), &bytes) != MUSTER_OK) return {};
    // The text of a worker: lines and tabs are kept, other control characters are not.
    for (char &c : text)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = '.';
    return text;
}

void show_first(const Options &options, muster_agent *agent, const muster_agent_worker &first) {
    fprintf(stderr, "first failure on this node:\n");
    fprintf(stderr, "  worker     %u of host %s (rank %u), pid %d\n", first.local_rank, host_name().c_str(), first.rank,
            first.pid);
    fprintf(stderr, "  ended by   %s\n", ended_how(first).c_str());
    fprintf(stderr, "  at         %s\n", clock_time(first.failed_unix_ns).c_str());
    fprintf(stderr, "  after      %u restarts, in round %" PRIu64 "\n", first.restarts, first.round);
    if (!options.log_dir.empty()) fprintf(stderr, "  files      %s\n", first.directory);
    if (first.message[0] != '\0') fprintf(stderr, "  message    %s\n", first.message);
    const std::string text = failure_text(agent);
    if (!text.empty() && text != first.message) fprintf(stderr, "%s%s", text.c_str(), text.back() == '\n' ? "" : "\n");
}

void show_table(muster_agent *agent, const muster_agent_state &state) {
    static const char *const states[] = {"-", "running", "succeeded", "failed", "stopped"};
    fprintf(stderr, "%s\n%-7s %-7s %-10s %-20s %s\n", rule, "worker", "rank", "state", "ended by", "at");
    for (uint32_t i = 0; i < state.worker_count; i++) {
        muster_agent_worker worker;
        if (muster_agent_get_worker(agent, i, &worker) != MUSTER_OK || worker.state == MUSTER_WORKER_NONE) continue;
        fprintf(stderr, "%-7u %-7u %-10s %-20s %s\n", i, worker.rank, states[std::min(worker.state, 4u)],
                ended_how(worker).c_str(), clock_time(worker.ended_unix_ns).c_str());
    }
}

} // namespace

void show_waiting(const Options &options, muster_agent *agent) {
    muster_rendezvous *meeting = nullptr;
    if (muster_agent_rendezvous(agent, &meeting) != MUSTER_OK) return;
    muster_rendezvous_state state{};
    muster_rendezvous_get_state(meeting, &state);
    char names[1024];
    size_t bytes = 0;
    // This queries the store, which may be slow; without names the line is useful, too.
    if (muster_rendezvous_list(meeting, names, sizeof names, 500'000'000, &bytes, nullptr) != MUSTER_OK) bytes = 0;
    muster_rendezvous_release(meeting);
    std::string line = std::to_string(state.joined) + " of " + std::to_string(options.min_nodes);
    if (options.max_nodes != options.min_nodes) line += " to " + std::to_string(options.max_nodes);
    line += " nodes have joined";
    if (bytes > 0) {
        std::string list(names, bytes - 1);
        for (size_t at = 0; (at = list.find('\n', at)) != list.npos; at += 2) list.replace(at, 1, ", ");
        line += " (" + list + ")";
    }
    if (state.missing > 0) line += ", " + std::to_string(state.missing) + " missing";
    if (state.last_call_remaining_ns >= 0)
        line += ", last call in " + std::to_string((state.last_call_remaining_ns + 999'999'999) / 1'000'000'000) + " s";
    if (state.spares > 0) line += ", " + std::to_string(state.spares) + " spare";
    static std::string shown; // the same line is not printed twice
    if (state.joined > 0 && line != shown) fprintf(stderr, "muster run: %s\n", line.c_str());
    shown = line;
}

void show_event(const Options &options, muster_agent *agent, const muster_completion &event,
                const muster_error &detail) {
    muster_agent_state state{};
    muster_agent_get_state(agent, &state);
    switch (event.events) {
    case MUSTER_AGENT_STARTED:
        if (options.meets() || state.restarts > 0)
            fprintf(stderr, "muster run: round %" PRIu64 ": ranks %u to %u of %u here, node %u of %u\n", event.bytes,
                    state.first_rank, state.first_rank + state.worker_count - 1, state.world_size, state.group_rank,
                    state.group_world_size);
        break;
    case MUSTER_AGENT_RESTARTING:
        if (event.status == MUSTER_E_ABORTED)
            fprintf(stderr, "muster run: %s; restart %" PRIu64 " of %u\n", detail.message, event.bytes,
                    options.max_restarts);
        else
            fprintf(stderr, "muster run: workers are started again: %s\n", detail.message);
        break;
    case MUSTER_AGENT_RENDEZVOUS_EVENT:
        if (event.bytes == MUSTER_RENDEZVOUS_JOINED || event.bytes == MUSTER_RENDEZVOUS_LAST_CALL)
            if (state.phase == MUSTER_AGENT_JOINING) show_waiting(options, agent);
        break;
    default:
        break;
    }
}

void show_failure(const Options &options, muster_agent *agent, const muster_error &outcome) {
    muster_agent_state state{};
    muster_agent_get_state(agent, &state);
    fprintf(stderr, "%s\nmuster run: %s: %s\n", rule, options.program[0].c_str(), outcome.message);
    muster_agent_worker first{};
    if (muster_agent_first_failure(agent, &first) == MUSTER_OK) show_first(options, agent, first);
    if (state.round > 0) show_table(agent, state);
    fprintf(stderr, "%s\n", rule);
}

} // namespace run
