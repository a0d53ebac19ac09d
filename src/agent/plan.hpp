// SPDX-License-Identifier: MIT
#pragma once
#include "base/fd.hpp"
#include "store/backend/store.hpp"

#include <muster/agent.h>

#include <optional>
#include <string>
#include <vector>

namespace muster {

inline constexpr uint32_t max_workers = 1024; // of a node

// The rendezvous of the agents of several nodes: a copy of the host's configuration.
struct RendezvousPlan {
    std::string run_id, url, address, order_key, state_dir;
    Ref<Store> store;
    muster_rendezvous_config numbers{}; // the rest of it
    muster_rendezvous_config config() const noexcept;
};

// The configuration of an agent: that of the host, checked and copied. Immutable after construction.
struct AgentPlan {
    std::vector<std::string> argv, environment;
    std::string directory; // empty: this process's own
    bool guard = true, has_virtual_local_ranks = false;
    uint32_t worker_count = 1, max_restarts = 0;
    int64_t grace_ns = 30'000'000'000;
    std::string run_id = "none", role = "default", log_dir;
    std::string local_address;                // empty: to be found out
    std::string master_address;               // empty: that of rank 0's host
    uint16_t master_port = 0;                 // 0: a free port of the host of rank 0
    std::optional<RendezvousPlan> rendezvous; // none: a single node
    int64_t join_timeout_ns = 600'000'000'000, exit_timeout_ns = -1;
    struct Outputs {
        uint32_t log_outputs = 0, console_outputs = 0, discarded_outputs = 0; // muster_agent_output bits
    };
    std::vector<Outputs> outputs; // by local rank
    Fd out, err;                  // destinations for console_outputs
};

Result<AgentPlan> read_plan(const muster_agent_config &config);

// The entries of CUDA_VISIBLE_DEVICES; none: the environment does not have it.
std::optional<std::vector<std::string>> visible_devices(const std::vector<std::string> &environment);

// Ranks and addresses of this node's workers among all, once they are known. A value.
struct Standing {
    uint64_t round = 0;
    uint32_t restarts = 0;
    uint32_t group_rank = 0, group_world_size = 1;
    uint32_t first_rank = 0, world_size = 1;
    uint32_t first_role_rank = 0, role_world_size = 1;
    std::string master_address;
    uint16_t master_port = 0;
};

// The address by which other hosts reach this one: the local address of a connection to `url` (scheme://host:port/...).
// Calls the resolver, and may block for it.
std::string find_local_address(const std::string &url);

// Variables for the worker with this local rank: those of the plan, and over them those of the agent.
std::vector<std::string> worker_environment(const AgentPlan &plan, const Standing &standing, uint32_t local_rank,
                                            const std::string &error_file, const std::string &agent_id);

// The variable by which the guard identifies the processes of an agent.
inline constexpr char agent_id_variable[] = "MUSTER_AGENT_ID";

} // namespace muster
