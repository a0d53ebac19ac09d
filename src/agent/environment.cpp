// SPDX-License-Identifier: MIT
// The environment of workers. The names without MUSTER_ are those of torchrun, which programs read.
#include "agent/plan.hpp"

#include <algorithm>
#include <string_view>

namespace muster {

namespace {

using Variable = std::pair<std::string, std::string>;

std::vector<Variable> variables(const AgentPlan &plan, const Standing &standing, uint32_t local_rank,
                                const std::string &error_file, const std::string &agent_id) {
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"RANK", standing.first_rank + local_rank},
                   {"WORLD_SIZE", standing.world_size},
                   {"LOCAL_RANK", local_rank},
                   {"LOCAL_WORLD_SIZE", plan.worker_count},
                   {"GROUP_RANK", standing.group_rank},
                   {"GROUP_WORLD_SIZE", standing.group_world_size},
                   {"ROLE_RANK", standing.first_role_rank + local_rank},
                   {"ROLE_WORLD_SIZE", standing.role_world_size},
                   {"MASTER_PORT", standing.master_port}};
    std::vector<Variable> all;
    const auto both = [&](const std::string &name, const std::string &value) {
        all.emplace_back(name, value);
        all.emplace_back("MUSTER_" + name, value);
    };
    for (const auto &number : numbers) both(number.name, std::to_string(number.value));
    if (plan.has_virtual_local_ranks) {
        std::find_if(all.begin(), all.end(), [](const Variable &one) { return one.first == "LOCAL_RANK"; })->second =
            "0";
        const std::optional<std::vector<std::string>> devices = visible_devices(plan.environment);
        all.emplace_back("CUDA_VISIBLE_DEVICES", devices ? (*devices)[local_rank] : std::to_string(local_rank));
    }
    both("MASTER_ADDR", standing.master_address);
    both("ROLE_NAME", plan.role);
    const auto elastic = [&](const std::string &name, const std::string &value) {
        all.emplace_back("TORCHELASTIC_" + name, value);
        all.emplace_back("MUSTER_" + name, value);
    };
    elastic("RESTART_COUNT", std::to_string(standing.restarts));
    elastic("MAX_RESTARTS", std::to_string(plan.max_restarts));
    elastic("RUN_ID", plan.run_id);
    elastic("ERROR_FILE", error_file);
    all.emplace_back("TORCHELASTIC_USE_AGENT_STORE", "False"); // rank 0 serves torch's own store at MASTER_PORT
    all.emplace_back("MUSTER_ROUND", std::to_string(standing.round));
    all.emplace_back(agent_id_variable, agent_id);
    return all;
}

} // namespace

std::optional<std::vector<std::string>> visible_devices(const std::vector<std::string> &environment) {
    constexpr std::string_view name = "CUDA_VISIBLE_DEVICES=";
    const auto given = std::find_if(environment.begin(), environment.end(),
                                    [&](const std::string &one) { return one.compare(0, name.size(), name) == 0; });
    if (given == environment.end()) return {};
    std::vector<std::string> devices;
    for (size_t from = name.size(), comma = from; comma != given->npos && from < given->size(); from = comma + 1) {
        comma = given->find(',', from);
        devices.push_back(given->substr(from, comma - from));
    }
    return devices;
}

std::vector<std::string> worker_environment(const AgentPlan &plan, const Standing &standing, uint32_t local_rank,
                                            const std::string &error_file, const std::string &agent_id) {
    const std::vector<Variable> own = variables(plan, standing, local_rank, error_file, agent_id);
    std::vector<std::string> environment;
    for (const std::string &given : plan.environment) {
        const std::string_view name = std::string_view(given).substr(0, given.find('='));
        const bool replaced =
            std::any_of(own.begin(), own.end(), [&](const Variable &one) { return one.first == name; });
        if (!replaced) environment.push_back(given);
    }
    for (const auto &[name, value] : own) environment.push_back(std::string(name).append("=").append(value));
    return environment;
}

} // namespace muster
