// SPDX-License-Identifier: MIT
#pragma once
#include "base/fd.hpp"

#include <muster/agent.h>

#include <string>
#include <vector>

namespace muster {

// What an agent runs: the host's configuration, checked and copied. Immutable after construction.
struct AgentPlan {
    std::vector<std::string> argv, environment;
    std::string directory; // empty: this process's own
    bool guard = true;
    uint32_t worker_count = 1, max_restarts = 0;
    int64_t grace_ns = 30'000'000'000;
    std::string run_id = "none", role = "default", log_dir, local_address = "127.0.0.1";
    uint32_t filed = 0, shown = 0; // muster_agent_output bits
    Fd out, err;                   // for what is shown
};

Result<AgentPlan> read_plan(const muster_agent_config &config);

// Where the workers of this node stand among all, once it is settled. A value.
struct Standing {
    uint64_t round = 0; // how often workers were started here, this time included
    uint32_t restarts = 0;
    uint32_t group_rank = 0, group_world_size = 1;
    uint32_t first_rank = 0, world_size = 1;
    uint32_t first_role_rank = 0, role_world_size = 1;
    std::string master_address;
    uint16_t master_port = 0;
};

// Variables for the worker with this local rank: those of the plan, and over them those of the agent.
std::vector<std::string> worker_environment(const AgentPlan &plan, const Standing &standing, uint32_t local_rank,
                                            const std::string &error_file, const std::string &agent_id);

// The variable by which the guard knows the processes of an agent.
inline constexpr char agent_id_variable[] = "MUSTER_AGENT_ID";

} // namespace muster
