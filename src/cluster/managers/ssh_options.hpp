// SPDX-License-Identifier: MIT
#pragma once
// The options of a launch by ssh: the hosts, and how they are reached.
#include "cluster/launch/launch_plan.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// `[count*][user@]host[:port]`
struct SshHost {
    std::string target, port; // the latter may be empty
    uint32_t count = 1;
};

enum class Tunnel { no, yes, where_needed };

struct SshOptions {
    std::vector<SshHost> hosts;
    std::vector<std::string> client; // the program and its flags
    uint32_t parallel = 10;          // as many logins at once as MaxStartups of sshd permits
    Tunnel tunnel = Tunnel::where_needed;

    static Result<SshOptions> read(const LaunchPlan &plan);
    const SshHost &host_of(uint32_t index) const noexcept; // of that worker of the launch; round-robin
};

// A number and the blank after it.
template <class T>
bool take_number_at(std::string_view &text, T &out) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (failed != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    return true;
}

} // namespace muster
