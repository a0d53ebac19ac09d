// SPDX-License-Identifier: MIT
#include "table.hpp"

#include "markup.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace top {

namespace {

using markup::with_unit;

std::string whole(double value) {
    return std::to_string(std::llround(value));
}

std::string counted(double value, const char *noun) {
    return whole(value) + " " + noun + (std::llround(value) == 1 ? "" : "s");
}

std::string milliseconds(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
    return text;
}

std::string rate_of(const std::optional<double> &rate) {
    return rate ? with_unit(*rate) : "-";
}

void add_part(std::string &all, const std::string &part) {
    all += (all.empty() ? "" : ", ") + part;
}

std::string cut(std::string line, size_t columns) {
    if (columns == 0) return line;
    size_t shown = 0, at = 0;
    while (at < line.size() && shown < columns) { // characters of UTF-8
        at++;
        while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) at++;
        shown++;
    }
    line.resize(at);
    return line;
}

} // namespace

std::string what_is(const Process &process) {
    std::string all;
    const auto add = [&](const char *metric, const char *name) {
        if (process.now.has(metric)) all += (all.empty() ? "" : "+") + std::string(name);
    };
    add("muster_store_server_keys", "store");
    add("muster_broker_members", "broker");
    add("muster_agent_phase", "agent");
    add("muster_cluster_members", "cluster");
    return all.empty() ? "member" : all;
}

std::string details_of(const Process &process) {
    const Sample &now = process.now;
    std::string all;
    if (now.has("muster_store_server_keys")) {
        static constexpr const char *roles[] = {"", "paired", "halted", "standby", "catching up", "waiting"};
        add_part(all, counted(now.sum("muster_store_server_clients"), "client"));
        add_part(all, rate_of(process.rate("muster_store_server_requests_total")) + " requests/s");
        add_part(all, whole(now.sum("muster_store_server_waiting_requests")) + " waiting");
        add_part(all, counted(now.sum("muster_store_server_keys"), "key") + " of " +
                          with_unit(now.sum("muster_store_server_bytes"), 1024) + "B");
        const double role = now.sum("muster_store_server_role");
        if (role >= 1 && role <= 5) add_part(all, roles[static_cast<size_t>(role)]);
        if (now.sum("muster_store_server_failed") > 0) add_part(all, "STOPPED: its folder cannot be written");
    }
    if (now.has("muster_broker_members")) {
        add_part(all, counted(now.sum("muster_broker_members"), "member"));
        add_part(all, rate_of(process.rate("muster_broker_messages_total")) + " messages/s");
        add_part(all, rate_of(process.rate("muster_broker_bytes_total")) + "B/s");
        add_part(all, with_unit(now.sum("muster_broker_queued_bytes"), 1024) + "B queued");
        add_part(all, whole(now.sum("muster_broker_lost_total")) + " lost");
    }
    if (now.has("muster_agent_phase")) {
        static constexpr const char *phases[] = {"", "joining", "starting", "running", "stopping", "done", "ended"};
        const double phase = now.sum("muster_agent_phase");
        if (phase >= 1 && phase <= 6) add_part(all, phases[static_cast<size_t>(phase)]);
        add_part(all, "round " + whole(now.sum("muster_agent_round")));
        add_part(all, whole(now.sum("muster_agent_workers_running")) + " of " + whole(now.sum("muster_agent_workers")) +
                          " workers");
        add_part(all,
                 "node " + whole(now.sum("muster_agent_node_rank")) + " of " + whole(now.sum("muster_agent_nodes")));
        const double restarts = now.sum("muster_agent_restarts_total");
        if (restarts > 0) add_part(all, counted(restarts, "restart"));
    }
    if (now.has("muster_cluster_members"))
        for (const char *const state : {"joined", "launching", "launched", "connected", "leaving"}) {
            const double count = now.sum("muster_cluster_members", "state", state);
            if (count > 0 || std::string_view(state) == "joined") add_part(all, whole(count) + " " + state);
        }
    for (const char *const how : {"dead", "failed", "removed"})
        if (const double count = now.sum("muster_cluster_ended_total", "how", how); count > 0)
            add_part(all, whole(count) + " " + how);
    if (now.has("muster_socket_peers")) {
        add_part(all, counted(now.sum("muster_socket_peers"), "peer"));
        add_part(all, rate_of(process.rate("muster_socket_messages_total")) + " messages/s");
        add_part(all, whole(now.sum("muster_socket_queued_messages")) + " queued");
    }
    if (now.has("muster_memory_heap_bytes"))
        add_part(all, "heap " + with_unit(now.sum("muster_memory_used_bytes"), 1024) + "B of " +
                          with_unit(now.sum("muster_memory_heap_bytes"), 1024) + "B");
    if (const double seconds = now.largest("muster_stream_round_trip_seconds"); seconds > 0)
        add_part(all, "round trips up to " + milliseconds(seconds));
    if (process.repeated > 3) add_part(all, "STALE: no new numbers");
    return all;
}

std::vector<std::string> make_table(const Job &job, const std::string &title, size_t columns, size_t lines) {
    size_t name_width = 7, what_width = 5;
    for (const auto &[name, process] : job.processes) {
        name_width = std::max(name_width, std::min<size_t>(name.size(), 40));
        what_width = std::max(what_width, std::min<size_t>(what_is(process).size(), 30));
    }
    std::vector<std::string> table{cut(title, columns), ""};
    char line[512];
    std::snprintf(line, sizeof line, "%-*s %-*s %5s %7s %5s %7s %8s %8s  %s", static_cast<int>(name_width), "PROCESS",
                  static_cast<int>(what_width), "WHAT", "CPU%", "MEMORY", "FDS", "STREAMS", "READ/s", "WRIT/s",
                  "DETAILS");
    table.push_back(cut(line, columns));
    // What does not fit is counted; the last changes have room for three at least.
    const size_t room = lines == 0 ? SIZE_MAX : lines > 9 ? lines - 8 : 1;
    size_t shown = 0;
    for (const auto &[name, process] : job.processes) {
        if (shown++ == room) {
            table.push_back("... and " + std::to_string(job.processes.size() - room) + " more");
            break;
        }
        const Sample &now = process.now;
        const auto cpu = process.rate("muster_process_cpu_seconds_total");
        char percent[16] = "-";
        if (cpu) std::snprintf(percent, sizeof percent, "%.1f", *cpu * 100);
        std::snprintf(
            line, sizeof line, "%-*.*s %-*.30s %5s %7s %5s %7s %8s %8s  ", static_cast<int>(name_width),
            static_cast<int>(name_width), name.c_str(), static_cast<int>(what_width), what_is(process).c_str(), percent,
            with_unit(now.sum("muster_process_resident_bytes"), 1024).c_str(),
            whole(now.sum("muster_process_open_descriptors")).c_str(), whole(now.sum("muster_streams")).c_str(),
            rate_of(process.rate("muster_read_bytes_total")).c_str(),
            rate_of(process.rate("muster_written_bytes_total")).c_str());
        table.push_back(cut(line + details_of(process), columns));
    }
    if (job.processes.empty()) table.push_back("No process publishes its metrics here: see muster top --help.");
    if (job.changes.empty()) return table;
    table.push_back("");
    const size_t used = table.size() + 1, free = lines == 0 ? 10 : lines > used ? lines - used : 0;
    const size_t from = job.changes.size() - std::min(free, job.changes.size());
    for (size_t i = from; i < job.changes.size(); i++) table.push_back(cut(job.changes[i], columns));
    return table;
}

} // namespace top
