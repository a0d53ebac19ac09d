// SPDX-License-Identifier: MIT
#include "cluster/managers/ssh_options.hpp"

#include "cluster/managers/options.hpp"
#include "cluster/member/cluster.hpp"

#include <algorithm>

namespace muster {

namespace {

Result<std::vector<SshHost>> read_hosts(const std::string &text) {
    std::vector<SshHost> hosts;
    for (std::string_view rest(text); !rest.empty();) {
        std::string_view one = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        const auto wrong = [&one] {
            return Error::make(MUSTER_E_ARG, "options: hosts: \"%.100s\" is not [count*][user@]host[:port]",
                               std::string(one).c_str());
        };
        SshHost host;
        std::string_view left = one;
        if (const size_t star = left.find('*'); star != std::string_view::npos) {
            std::string_view count = left.substr(0, star);
            if (!take_number_at(count, host.count) || !count.empty() || host.count == 0 ||
                host.count > max_cluster_workers)
                return wrong();
            left.remove_prefix(star + 1);
        }
        const size_t bracket = left.find(']'), colon = left.find(':', bracket == std::string_view::npos ? 0 : bracket);
        host.target = left.substr(0, colon);
        if (colon != std::string_view::npos) {
            host.port = left.substr(colon + 1);
            uint16_t number = 0;
            std::string_view digits(host.port);
            if (!take_number_at(digits, number) || !digits.empty() || number == 0) return wrong();
        }
        for (const char bad : {'[', ']'}) // ssh expects an IPv6 address without brackets
            if (const size_t at = host.target.find(bad); at != std::string::npos) host.target.erase(at, 1);
        if (host.target.empty() || host.target.front() == '-' || host.target.find_first_of(" \t") != std::string::npos)
            return wrong();
        hosts.push_back(std::move(host));
    }
    if (hosts.empty()) return Error::make(MUSTER_E_ARG, "options: hosts: which ones?");
    return hosts;
}

} // namespace

const SshHost &SshOptions::host_of(uint32_t index) const noexcept {
    for (;;)
        for (const SshHost &host : hosts) {
            if (index < host.count) return host;
            index -= host.count;
        }
}

Result<SshOptions> SshOptions::read(const LaunchPlan &plan) {
    auto given = ManagerOptions::parse(plan.options, {"hosts", "ssh", "flags", "tunnel", "parallel"});
    if (!given) return given.error();
    if (auto named = needs_program(plan); !named) return named.error();
    SshOptions options;
    auto hosts = read_hosts(given->text("hosts"));
    if (!hosts) return hosts.error();
    options.hosts = std::move(*hosts);
    auto flags = given->words("flags");
    if (!flags) return flags.error();
    options.client = std::move(*flags); // before those of the library: ssh uses the first one
    options.client.insert(options.client.begin(), given->text("ssh", "ssh"));
    for (const char *const flag : {"-T", "-a", "-x", "-oBatchMode=yes", "-oConnectTimeout=20",
                                   "-oServerAliveInterval=15", "-oExitOnForwardFailure=yes"})
        options.client.emplace_back(flag);
    auto parallel = given->number("parallel", options.parallel, 1, 1000);
    if (!parallel) return parallel.error();
    options.parallel = *parallel;
    const std::string tunnel = given->text("tunnel", "auto");
    if (tunnel != "auto") options.tunnel = tunnel == "yes" ? Tunnel::yes : Tunnel::no;
    if (tunnel != "auto" && tunnel != "yes" && tunnel != "no")
        return Error::make(MUSTER_E_ARG, "options: tunnel is \"%.40s\", not yes, no or auto", tunnel.c_str());
    for (const auto *const words : {&plan.argv, &plan.environment})
        for (const std::string &word : *words)
            if (word.find('\n') != std::string::npos)
                return Error::make(MUSTER_E_ARG, "argv, envp: \"%.60s\" has a newline, which does not go through ssh",
                                   word.c_str());
    for (const std::string &variable : plan.environment) { // it is part of a line of a shell, unquoted
        const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
        const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
        const auto is_fine = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
        if (!is_letter(name.front()) || !std::all_of(name.begin(), name.end(), is_fine))
            return Error::make(MUSTER_E_ARG, "envp: \"%.*s\" is no name of a variable that goes through ssh",
                               static_cast<int>(std::min<size_t>(name.size(), 100)), name.data());
    }
    return options;
}

} // namespace muster
