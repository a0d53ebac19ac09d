// SPDX-License-Identifier: MIT
#include "cluster/elastic.hpp"

#include "cluster/options.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr int64_t store_timeout_ns = 30'000'000'000, farewell_ns = 2'000'000'000, lease_ns = 15'000'000'000;
constexpr char usual_name[] = "muster";

std::string key_of(const std::string &name) {
    return "muster/cluster/" + (name.empty() ? usual_name : name) + "/master";
}

// Places of a launch, without a line of its own for anybody who has not come.
class ElasticManager final : public ClusterManager {
  public:
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH; }
    bool sees_ends() const noexcept override { return false; }
    bool takes_who_comes() const noexcept override { return true; }
    Result<void> check(const LaunchPlan &plan) const override {
        if (plan.master_dials())
            return Error::make(MUSTER_E_ARG, "flags: who comes by itself dials the master, not the other way");
        auto place = ElasticPlace::read(plan);
        return place ? Result<void>() : place.error();
    }
    void launch(ClusterMaster &, std::shared_ptr<const LaunchPlan>, uint32_t) override {}
    void ask(ClusterMaster &, const ManagerQuestion &, Answer answer) override { answer(std::string()); }
    void forget(ClusterMaster &, uint32_t) noexcept override {}
};

Result<muster_store *> open_store(Context &context, const std::string &url, int64_t timeout_ns) {
    muster_store *store = nullptr;
    Error why;
    const Status status = muster_store_open(wrap(&context), url.data(), url.size(), nullptr, timeout_ns, &store, &why);
    if (status == MUSTER_OK) return store;
    why.status = status;
    return why;
}

} // namespace

Ref<ClusterManager> make_elastic_manager(Context &) {
    return make_ref<ElasticManager>();
}

Result<ElasticPlace> ElasticPlace::read(const LaunchPlan &plan) {
    auto options = ManagerOptions::parse(plan.options, {"store", "name"});
    if (!options) return options.error();
    ElasticPlace place{options->text("store"), options->text("name")};
    if (place.store.empty() && !place.name.empty())
        return Error::make(MUSTER_E_ARG, "options: a name is found in a store: which?");
    return place;
}

Result<std::unique_ptr<Beacon>> Beacon::light(Context &context, const std::string &url, const std::string &name,
                                              const std::string &address) {
    auto store = open_store(context, url, store_timeout_ns);
    if (!store) return store.error();
    auto beacon = std::unique_ptr<Beacon>(new Beacon);
    beacon->store_ = *store;
    Error why;
    why.status =
        muster_store_lease(beacon->store_, lease_ns, MUSTER_LEASE_CONNECTED, store_timeout_ns, &beacon->lease_, &why);
    if (why.status != MUSTER_OK) return why;
    const std::string key = key_of(name);
    muster_store_op op{};
    op.kind = MUSTER_STORE_SET;
    op.key = key.data();
    op.key_bytes = key.size();
    op.value = address.data();
    op.value_bytes = address.size();
    op.lease = muster_lease_id(beacon->lease_);
    why.status = muster_store_do(beacon->store_, &op, 1, store_timeout_ns, nullptr, &why);
    if (why.status != MUSTER_OK) return why;
    return beacon;
}

Beacon::~Beacon() {
    if (lease_ != nullptr) muster_lease_end(lease_, farewell_ns, nullptr);
    muster_lease_release(lease_);
    muster_store_release(store_);
}

// ---- the other side of it

MasterSearch::MasterSearch(muster_store *store, std::string url, const std::string &name)
    : store_(store), url_(std::move(url)), key_(key_of(name)) {}

MasterSearch::~MasterSearch() {
    if (request_ != 0) muster_store_cancel(store_, request_);
    muster_store_release(store_);
}

Result<std::unique_ptr<MasterSearch>> MasterSearch::open(Context &context, const std::string &url,
                                                         const std::string &name, Deadline &deadline) {
    auto store = open_store(context, url, deadline.endless() ? -1 : std::max<int64_t>(1, deadline.left()));
    if (!store) return store.error();
    return in(*store, url, name);
}

std::unique_ptr<MasterSearch> MasterSearch::in(muster_store *store, const std::string &url, const std::string &name) {
    return std::unique_ptr<MasterSearch>(new MasterSearch(store, url, name));
}

Error MasterSearch::begin(int64_t timeout_ns, muster_queue *queue, uint64_t tag) {
    muster_store_op op{};
    op.kind = MUSTER_STORE_GET;
    op.key = key_.data();
    op.key_bytes = key_.size();
    Error why;
    why.status = muster_store_begin(store_, &op, 1, timeout_ns, queue, tag, &request_, &why);
    return why;
}

Result<std::string> MasterSearch::address(const muster_completion &entry, const Error &why) {
    auto *const result = static_cast<muster_store_result *>(entry.object);
    Error wrong = why;
    std::string address;
    muster_store_entry found{};
    if (wrong.status == MUSTER_OK) wrong.status = muster_store_result_entry(result, 0, &found);
    if (wrong.status == MUSTER_OK) address.assign(static_cast<const char *>(found.value), found.value_bytes);
    muster_store_result_release(result);
    if (wrong.status != MUSTER_OK) return wrong;
    return address;
}

} // namespace muster
