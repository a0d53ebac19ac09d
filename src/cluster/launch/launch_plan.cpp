// SPDX-License-Identifier: MIT
#include "cluster/launch/launch_plan.hpp"

#include "base/config.hpp"
#include "cluster/launch/ticket.hpp"

#include <cstring>
#include <string_view>
#include <unistd.h>

namespace muster {

namespace {

constexpr size_t text_max = 4095, address_max = 1000, ident_max = 255, max_words = 65536;

Result<void> take_text(const char *from, std::string &to, size_t most, const char *name) {
    if (from == nullptr) return {};
    to = from;
    if (to.size() > most) return Error::make(MUSTER_E_ARG, "%s has %zu bytes, at most %zu", name, to.size(), most);
    return {};
}

Result<void> take_words(const char *const *from, std::vector<std::string> &to, const char *name) {
    for (; from != nullptr && *from != nullptr; from++) {
        if (to.size() == max_words) return Error::make(MUSTER_E_ARG, "%s has more than %zu words", name, max_words);
        to.emplace_back(*from);
    }
    return {};
}

} // namespace

std::string LaunchPlan::listen_of(uint32_t member) const {
    return listens() ? numbered(listen, member) : std::string();
}

std::string LaunchPlan::ident_of(uint32_t member) const {
    return numbered(ident, member);
}

bool LaunchPlan::names(const std::string &other) const noexcept {
    if (other.empty()) return false;
    std::string_view rest(connect_idents);
    for (;;) {
        const size_t comma = rest.find(',');
        if (rest.substr(0, comma) == other) return true;
        if (comma == std::string_view::npos) return false;
        rest.remove_prefix(comma + 1);
    }
}

void LaunchPlan::show() {
    const auto list = [](const std::vector<std::string> &words, std::vector<const char *> &pointers) {
        for (const std::string &word : words) pointers.push_back(word.c_str());
        pointers.push_back(nullptr);
        return words.empty() ? nullptr : pointers.data();
    };
    const auto text = [](const std::string &s) { return s.empty() ? nullptr : s.c_str(); };
    shown_.struct_size = sizeof shown_;
    shown_.flags = flags;
    shown_.manager = manager.c_str();
    shown_.count = count;
    shown_.argv = list(argv, argv_);
    shown_.envp = list(environment, environment_);
    shown_.directory = text(directory);
    shown_.listen = text(listen);
    shown_.ident = text(ident);
    shown_.connect_idents = text(connect_idents);
    shown_.options = text(options);
}

Result<std::shared_ptr<LaunchPlan>> read_launch(const muster_launch *given) {
    if (given == nullptr) return Error::make(MUSTER_E_ARG, "no launch: nothing is said about what to start");
    muster_launch launch;
    if (auto done = read_config(given, launch, "muster_launch"); !done) return done.error();
    constexpr uint32_t known = MUSTER_LAUNCH_MASTER_DIALS | MUSTER_LAUNCH_NO_LISTEN;
    if ((launch.flags & ~known) != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", launch.flags);
    if ((launch.flags & known) == known)
        return Error::make(MUSTER_E_ARG, "flags: workers that do not listen cannot be dialled by the master");
    if (launch.reserved != 0) return Error::make(MUSTER_E_ARG, "reserved is %u, not 0", launch.reserved);
    for (const uint64_t reserved : launch.reserved1)
        if (reserved != 0) return Error::make(MUSTER_E_ARG, "reserved1 is not zero");
    if (launch.count == 0 || launch.count > max_cluster_workers)
        return Error::make(MUSTER_E_ARG, "count is %u, not 1 to %u", launch.count, max_cluster_workers);
    auto plan = std::make_shared<LaunchPlan>();
    plan->flags = launch.flags;
    plan->count = launch.count;
    plan->manager = "local";
    plan->listen = "tcp://127.0.0.1:0";
    if (auto done = take_text(launch.manager, plan->manager, 63, "manager"); !done) return done.error();
    if (auto done = take_words(launch.argv, plan->argv, "argv"); !done) return done.error();
    if (auto done = take_words(launch.envp, plan->environment, "envp"); !done) return done.error();
    for (const std::string &variable : plan->environment)
        if (const size_t sign = variable.find('='); sign == std::string::npos || sign == 0)
            return Error::make(MUSTER_E_ARG, "envp: \"%.100s\" is not NAME=value", variable.c_str());
    if (auto done = take_text(launch.directory, plan->directory, text_max, "directory"); !done) return done.error();
    if (auto done = take_text(launch.listen, plan->listen, address_max, "listen"); !done) return done.error();
    if (auto done = take_text(launch.ident, plan->ident, ident_max, "ident"); !done) return done.error();
    if (auto done = take_text(launch.connect_idents, plan->connect_idents, text_max, "connect_idents"); !done)
        return done.error();
    if (auto done = take_text(launch.options, plan->options, text_max, "options"); !done) return done.error();
    if (auto done = take_words(environ, plan->inherited, "environment"); !done) return done.error();
    plan->show();
    return plan;
}

std::string master_address_key(const std::string &cluster_name) {
    return "muster/cluster/" + (cluster_name.empty() ? "muster" : cluster_name) + "/master";
}

bool topology_allows(uint32_t topology, uint32_t one, const LaunchPlan *plan_of_one, uint32_t other,
                     const LaunchPlan *plan_of_other) {
    const auto child_of = [](uint32_t child, uint32_t parent) { return child != 0 && (child - 1) / 2 == parent; };
    switch (topology) {
    case MUSTER_CLUSTER_MASTER_WORKER:
        return one == MUSTER_CLUSTER_MASTER || other == MUSTER_CLUSTER_MASTER;
    case MUSTER_CLUSTER_TREE:
        return child_of(one, other) || child_of(other, one);
    case MUSTER_CLUSTER_CUSTOM:
        if (plan_of_one == nullptr || plan_of_other == nullptr) return true; // one of them is the master
        return plan_of_one->names(plan_of_other->ident_of(other)) || plan_of_other->names(plan_of_one->ident_of(one));
    default:
        return true;
    }
}

} // namespace muster
