// SPDX-License-Identifier: MIT
#pragma once
#include "commands.hpp"
#include "scraping.hpp"

#include <muster/agent.h>

#include <map>
#include <optional>

namespace run {

// Outputs of workers: of all of them, or of those that are named. Values are muster_agent_output bits.
struct OutputChoice {
    uint32_t all = 0;
    std::map<uint32_t, uint32_t> named; // by local rank
    uint32_t of(uint32_t local_rank) const {
        const auto found = named.find(local_rank);
        return found == named.end() ? all : found->second;
    }
    bool any() const { return all != 0 || !named.empty(); }
};

// The options of `muster run`. Configurations that are made from them point to the strings here.
struct Options {
    std::vector<std::string> program;
    uint32_t min_nodes = 1, max_nodes = 1, workers = 1;
    uint32_t max_restarts = 0, keep_alive_attempts = 0;
    std::string rdzv, run_id, role = "default", local_address, log_dir, master_address;
    std::string metrics_store; // empty: none
    std::string state_dir;     // empty: that of the library's default
    std::optional<uint32_t> node_rank;
    uint16_t master_port = 0;
    std::vector<uint32_t> shown_ranks; // --local-ranks-filter; empty: all
    bool virtual_local_rank = false;
    bool standalone = false, reopen = false, new_run = false, no_guard = false, no_prefix = false;
    int64_t grace_ns = 0, join_timeout_ns = 0, exit_timeout_ns = 0, last_call_ns = 0, keep_alive_ns = 0;
    OutputChoice redirects, tee;
    serving::Scraping scraping;
    int32_t log_level = MUSTER_LOG_WARN;

    bool meets() const { return !rdzv.empty(); }
};

// The exit status where the command is to end at once: after --help, or when arguments are wrong.
std::optional<int> read_options(const Arguments &arguments, Options &options);

} // namespace run
