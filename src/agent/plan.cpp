// SPDX-License-Identifier: MIT
#include "agent/plan.hpp"

#include "base/config.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr int64_t max_ns = INT64_MAX / 8; // 36 years; sums with it do not overflow
constexpr uint32_t both_outputs = MUSTER_AGENT_STDOUT | MUSTER_AGENT_STDERR;

std::vector<std::string> copy_list(const char *const *list) {
    std::vector<std::string> copy;
    for (; *list != nullptr; list++) copy.emplace_back(*list);
    return copy;
}

// A text that is shown, becomes a variable and part of a path.
Result<void> read_name(const char *given, const char *field, size_t most, std::string &name) {
    if (given == nullptr) return {};
    const size_t bytes = strnlen(given, most + 1);
    if (bytes == 0 || bytes > most)
        return Error::make(MUSTER_E_ARG, "%s has %s bytes, not 1 to %zu", field, bytes == 0 ? "no" : "more", most);
    for (const char *c = given; *c != '\0'; c++)
        if (static_cast<unsigned char>(*c) < 0x20 || *c == 0x7f)
            return Error::make(MUSTER_E_ARG, "%s has a control character", field);
    name = given;
    return {};
}

Result<void> check_numbers(const muster_agent_config &config) noexcept {
    if (config.flags & ~uint32_t{MUSTER_AGENT_NO_GUARD | MUSTER_AGENT_VIRTUAL_LOCAL_RANK})
        return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.worker_count > max_workers)
        return Error::make(MUSTER_E_ARG, "worker_count is %u, more than %u", config.worker_count, max_workers);
    if (config.grace_ns < 0)
        return Error::make(MUSTER_E_ARG, "grace_ns is %lld", static_cast<long long>(config.grace_ns));
    if (config.join_timeout_ns < -1)
        return Error::make(MUSTER_E_ARG, "join_timeout_ns is %lld", static_cast<long long>(config.join_timeout_ns));
    if (config.exit_timeout_ns < -1)
        return Error::make(MUSTER_E_ARG, "exit_timeout_ns is %lld", static_cast<long long>(config.exit_timeout_ns));
    if (config.master_port > 65535)
        return Error::make(MUSTER_E_ARG, "master_port is %u, more than 65535", config.master_port);
    bool zero = config.reserved0 == 0;
    for (const uint64_t one : config.reserved) zero = zero && one == 0;
    if (!zero) return Error::make(MUSTER_E_ARG, "muster_agent_config: reserved is zero");
    return {};
}

std::string copy_bytes(const void *bytes, uint64_t size) {
    return bytes ? std::string(static_cast<const char *>(bytes), size) : std::string();
}

Result<AgentPlan::Outputs> read_outputs(uint32_t log_outputs, uint32_t console_outputs, uint32_t discarded_outputs,
                                        bool log_dir) noexcept {
    if (log_outputs & ~both_outputs)
        return Error::make(MUSTER_E_ARG, "log_outputs has unknown bits: 0x%x", log_outputs);
    if (console_outputs & ~both_outputs)
        return Error::make(MUSTER_E_ARG, "console_outputs has unknown bits: 0x%x", console_outputs);
    if (log_outputs != 0 && !log_dir) return Error::make(MUSTER_E_ARG, "log_outputs is set, but there is no log_dir");
    if (discarded_outputs & ~both_outputs)
        return Error::make(MUSTER_E_ARG, "discarded_outputs has unknown bits: 0x%x", discarded_outputs);
    if (discarded_outputs & console_outputs)
        return Error::make(MUSTER_E_ARG, "an output is in discarded_outputs and in console_outputs: 0x%x",
                           discarded_outputs & console_outputs);
    return AgentPlan::Outputs{log_outputs, console_outputs, discarded_outputs};
}

Result<std::vector<AgentPlan::Outputs>> read_all_outputs(const muster_agent_config &config, uint32_t worker_count) {
    const bool log_dir = config.log_dir != nullptr;
    auto common = read_outputs(config.log_outputs, config.console_outputs, 0, log_dir);
    if (!common) return common.error();
    if (config.output_count > worker_count || (config.output_count > 0 && config.outputs == nullptr))
        return Error::make(MUSTER_E_ARG, "outputs names %llu workers, and there are %u",
                           static_cast<unsigned long long>(config.output_count), worker_count);
    std::vector<AgentPlan::Outputs> all(worker_count, *common);
    std::vector<bool> named(worker_count);
    for (uint64_t i = 0; i < config.output_count; i++) {
        const muster_agent_outputs &one = config.outputs[i];
        if (one.local_rank >= worker_count || named[one.local_rank])
            return Error::make(MUSTER_E_ARG, "outputs names worker %u %s", one.local_rank,
                               one.local_rank >= worker_count ? "of fewer" : "twice");
        auto own = read_outputs(one.log_outputs, one.console_outputs, one.discarded_outputs, log_dir);
        if (!own) return own.error();
        all[one.local_rank] = *own;
        named[one.local_rank] = true;
    }
    return all;
}

// muster_rendezvous_open() validates the rest; this checks the values that are copied.
Result<RendezvousPlan> read_rendezvous(const muster_rendezvous_config *given) {
    RendezvousPlan rendezvous;
    if (auto done = read_config(given, rendezvous.numbers, "muster_rendezvous_config"); !done) return done.error();
    const muster_rendezvous_config &config = rendezvous.numbers;
    if (config.run_id_bytes > 255 || config.url_bytes > 4096 || config.address_bytes > 1024 ||
        config.order_key_bytes > 256 || config.state_dir_bytes > 3072)
        return Error::make(MUSTER_E_ARG,
                           "muster_rendezvous_config: a run_id, url, address, order_key or state_dir is too long");
    rendezvous.run_id = copy_bytes(config.run_id, config.run_id_bytes);
    rendezvous.url = copy_bytes(config.url, config.url_bytes);
    rendezvous.address = copy_bytes(config.address, config.address_bytes);
    rendezvous.order_key = copy_bytes(config.order_key, config.order_key_bytes);
    rendezvous.state_dir = copy_bytes(config.state_dir, config.state_dir_bytes);
    // Nodes that are killed are restarted: an agent waits for them as long as for others.
    if (rendezvous.numbers.majority_timeout_ns == 0) rendezvous.numbers.majority_timeout_ns = -1;
    if (config.store) rendezvous.store = Ref<Store>(unwrap(config.store));
    return rendezvous;
}

// Each worker with a virtual local rank has a device.
Result<void> check_devices(const AgentPlan &plan) {
    const std::optional<std::vector<std::string>> devices = visible_devices(plan.environment);
    if (!devices || devices->size() >= plan.worker_count) return {};
    return Error::make(MUSTER_E_ARG, "CUDA_VISIBLE_DEVICES names %zu devices, and there are %u workers",
                       devices->size(), plan.worker_count);
}

Result<Fd> keep(int32_t plus_one, int standard, const char *field) noexcept {
    if (plus_one < 0) return Error::make(MUSTER_E_ARG, "%s is %d", field, plus_one);
    auto copy = duplicate(plus_one > 0 ? plus_one - 1 : standard, field);
    if (!copy) return copy.error();
    return Fd(*copy);
}

} // namespace

muster_rendezvous_config RendezvousPlan::config() const noexcept {
    muster_rendezvous_config config = numbers;
    const auto point = [](const std::string &text, const void *&bytes, uint64_t &size) {
        bytes = text.empty() ? nullptr : text.data();
        size = text.size();
    };
    point(run_id, config.run_id, config.run_id_bytes);
    point(url, config.url, config.url_bytes);
    point(address, config.address, config.address_bytes);
    point(order_key, config.order_key, config.order_key_bytes);
    point(state_dir, config.state_dir, config.state_dir_bytes);
    config.store = store ? wrap(store.get()) : nullptr;
    return config;
}

Result<AgentPlan> read_plan(const muster_agent_config &config) {
    if (auto right = check_numbers(config); !right) return right.error();
    if (!config.argv || !config.argv[0] || !*config.argv[0]) return Error::make(MUSTER_E_ARG, "argv names no program");
    AgentPlan plan;
    plan.argv = copy_list(config.argv);
    plan.environment = copy_list(config.envp ? config.envp : environ);
    if (config.directory) plan.directory = config.directory;
    plan.guard = (config.flags & MUSTER_AGENT_NO_GUARD) == 0;
    plan.has_virtual_local_ranks = (config.flags & MUSTER_AGENT_VIRTUAL_LOCAL_RANK) != 0;
    if (config.worker_count) plan.worker_count = config.worker_count;
    if (plan.has_virtual_local_ranks)
        if (auto enough = check_devices(plan); !enough) return enough.error();
    plan.max_restarts = config.max_restarts;
    if (config.grace_ns) plan.grace_ns = std::min(config.grace_ns, max_ns);
    auto outputs = read_all_outputs(config, plan.worker_count);
    if (!outputs) return outputs.error();
    plan.outputs = std::move(*outputs);
    if (config.join_timeout_ns) plan.join_timeout_ns = config.join_timeout_ns;
    if (config.exit_timeout_ns) plan.exit_timeout_ns = config.exit_timeout_ns;
    plan.master_port = static_cast<uint16_t>(config.master_port);
    Result<void> named = read_name(config.run_id, "run_id", 256, plan.run_id);
    if (config.rendezvous) {
        auto rendezvous = read_rendezvous(config.rendezvous);
        if (!rendezvous) return rendezvous.error();
        if (named) named = read_name(rendezvous->run_id.c_str(), "run_id", 255, plan.run_id);
        plan.rendezvous = std::move(*rendezvous);
    }
    if (named) named = read_name(config.master_address, "master_address", 255, plan.master_address);
    if (named) named = read_name(config.role, "role", 64, plan.role);
    if (named) named = read_name(config.log_dir, "log_dir", 3000, plan.log_dir);
    if (named) named = read_name(config.local_address, "local_address", 255, plan.local_address);
    if (!named) return named.error();
    uint32_t console_outputs = 0;
    for (const AgentPlan::Outputs &one : plan.outputs) console_outputs |= one.console_outputs;
    if (console_outputs & MUSTER_AGENT_STDOUT) {
        auto out = keep(config.out_fd_plus_one, STDOUT_FILENO, "out_fd_plus_one");
        if (!out) return out.error();
        plan.out = std::move(*out);
    }
    if (console_outputs & MUSTER_AGENT_STDERR) {
        auto err = keep(config.err_fd_plus_one, STDERR_FILENO, "err_fd_plus_one");
        if (!err) return err.error();
        plan.err = std::move(*err);
    }
    return plan;
}

} // namespace muster
