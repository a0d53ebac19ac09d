// SPDX-License-Identifier: MIT
#pragma once
#include "base/result.hpp"

#include <muster/cluster.h>

#include <memory>
#include <string>
#include <vector>

namespace muster {

constexpr uint32_t max_cluster_workers = 65536;

// The configuration of a launch: that of the host, checked and copied. Immutable once it is shared.
struct LaunchPlan {
    uint32_t flags = 0, count = 0;
    std::string manager, directory, listen, ident, connect_idents, options;
    std::vector<std::string> argv, environment; // the latter over `inherited`, this process's own
    std::vector<std::string> inherited;

    bool master_dials() const noexcept { return flags & MUSTER_LAUNCH_MASTER_DIALS; }
    bool listens() const noexcept { return (flags & MUSTER_LAUNCH_NO_LISTEN) == 0; }
    std::string listen_of(uint32_t member) const; // empty: nowhere
    std::string ident_of(uint32_t member) const;
    bool names(const std::string &other) const noexcept;           // among connect_idents
    const muster_launch &shown() const noexcept { return shown_; } // for a manager of the host's
    void show(); // fills in shown(); the plan must not move afterwards

  private:
    muster_launch shown_{};
    std::vector<const char *> argv_, environment_;
};

inline Result<void> needs_program(const LaunchPlan &plan) {
    return plan.argv.empty() ? Error::make(MUSTER_E_ARG, "argv: no program to start") : Result<void>();
}

Result<std::shared_ptr<LaunchPlan>> read_launch(const muster_launch *given);

// The key in a store under which the address of a master is published.
std::string master_address_key(const std::string &cluster_name);

// May these two members have a stream between them?
bool topology_allows(uint32_t topology, uint32_t one, const LaunchPlan *plan_of_one, uint32_t other,
                     const LaunchPlan *plan_of_other);

} // namespace muster
