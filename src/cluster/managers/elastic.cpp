// SPDX-License-Identifier: MIT
#include "cluster/managers/elastic.hpp"

#include "cluster/managers/options.hpp"

namespace muster {

namespace {

// Starts no process, and has no record for a worker that has not connected.
class ElasticManager final : public ClusterManager {
  public:
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH; }
    bool sees_exits() const noexcept override { return false; }
    bool takes_newcomers() const noexcept override { return true; }
    Result<void> check(const LaunchPlan &plan) const override {
        if (plan.master_dials())
            return Error::make(MUSTER_E_ARG, "flags: workers of `elastic` dial the master, not the other way");
        auto where = ElasticOptions::read(plan);
        return where ? Result<void>() : where.error();
    }
    void launch(ClusterMaster &, std::shared_ptr<const LaunchPlan>, uint32_t) override {}
    void ask(ClusterMaster &, const ManagerQuestion &, Answer answer) override { answer(std::string()); }
    void forget(ClusterMaster &, uint32_t) noexcept override {}
};

} // namespace

Ref<ClusterManager> make_elastic_manager(Context &) {
    return make_ref<ElasticManager>();
}

Result<ElasticOptions> ElasticOptions::read(const LaunchPlan &plan) {
    auto options = ManagerOptions::parse(plan.options, {"store", "name"});
    if (!options) return options.error();
    ElasticOptions where{options->text("store"), options->text("name")};
    if (where.store.empty() && !where.name.empty())
        return Error::make(MUSTER_E_ARG, "options: a name is given, but no store");
    return where;
}

} // namespace muster
