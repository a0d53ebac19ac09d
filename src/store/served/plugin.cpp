// SPDX-License-Identifier: MIT
// Stores that plug-ins bring: the same table, its callbacks on the loop, its answers through the host table.
#include "plugin/plugin.hpp"
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "store/served/served.hpp"

#include <algorithm>

namespace muster {

namespace {

class ServedByPlugin final : public PluginStore {
  public:
    explicit ServedByPlugin(Ref<StoreProvider> provider) noexcept : provider_(std::move(provider)) {}
    const std::string &scheme() const noexcept override { return provider_->name(); }
    Result<void> publish() override { return ServedRequests::of(provider_->context()).add(*provider_); }
    void withdraw() noexcept override { ServedRequests::of(provider_->context()).withdraw(*provider_); }

  private:
    const Ref<StoreProvider> provider_;
};

Context &context_of(const muster_host *host) {
    return Plugin::of(host).context();
}

Status opened(const muster_host *host, uint64_t request, const muster_store_traits *traits, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (traits == nullptr) return Error::make(MUSTER_E_ARG, "answer: no traits");
        muster_store_traits given;
        if (auto read = read_config(traits, given, "muster_store_traits"); !read) return read;
        return StoreProvider::opened(context_of(host), nullptr, request, given);
    });
}

Status done(const muster_host *host, uint64_t request, Status status, const muster_store_entry *entries,
            uint64_t entry_count, uint64_t revision, muster_error *error) {
    return boundary(error, [&] {
        return StoreProvider::done(context_of(host), nullptr, request, status, entries, entry_count, revision);
    });
}

Status failed(const muster_host *host, uint64_t request, Status status, uint32_t op, const char *text,
              uint64_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (status >= 0 && status != MUSTER_AGAIN) return Error::from_status(MUSTER_E_ARG);
        const auto size = static_cast<size_t>(std::min<uint64_t>(text == nullptr ? 0 : text_bytes, 200));
        return StoreProvider::fail(context_of(host), nullptr, request, status, op, {text, size});
    });
}

Result<Ref<PluginStore>> make_plugin_store(Plugin &plugin, const std::string &scheme, const muster_store_host_ops *ops,
                                           void *self) {
    muster_store_host_ops table;
    if (auto read = read_config(ops, table, "muster_store_host_ops"); !read) return read.error();
    if (table.request == nullptr)
        return Error::make(MUSTER_E_PLUGIN, "%s: its muster_store_host_ops has no request", plugin.name());
    if ((table.flags & ~uint32_t{MUSTER_STORE_ANY_THREAD}) != 0)
        return Error::make(MUSTER_E_ABI, "%s: unknown flags %u", plugin.name(), table.flags);
    if (builtin_store(scheme))
        return Error::make(MUSTER_E_EXISTS, "%s: stores of %s are taken", plugin.name(), scheme.c_str());
    auto made = make_ref<StoreProvider>(plugin.context(), scheme, nullptr, &table, self);
    made->set_plugin(plugin);
    return Ref<PluginStore>(make_ref<ServedByPlugin>(std::move(made)));
}

void fill_functions(muster_host &table) noexcept {
    table.store_opened = opened;
    table.store_done = done;
    table.store_failed = failed;
}

[[maybe_unused]] const bool serves_plugins = PluginStores::set({make_plugin_store, fill_functions});

} // namespace

} // namespace muster
