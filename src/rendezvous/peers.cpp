// SPDX-License-Identifier: MIT
#include "rendezvous/peers.hpp"

#include "rendezvous/dynamic.hpp"

namespace muster {

namespace {

// Without what is meant for one address alone.
std::string shared_options(const Address &address) {
    std::string options;
    for (const auto &[key, value] : address.options)
        if (key != "host" && key != "bind" && key != "advertise")
            options.append(options.empty() ? "?" : "&").append(key).append("=").append(value);
    return options;
}

} // namespace

Result<std::optional<Peers>> Peers::open(Context &context, std::string_view url, const Store &store, int64_t lease_ns) {
    if (url.empty() || !store.backend().hosted()) return std::optional<Peers>();
    const std::string host = store.backend().local_host();
    auto address = parse_address(url.substr(0, url.find(','))); // one of several addresses is none of a host
    if (!address) return address.error();
    if (host.empty() || address->scheme != "tcp" || url.find(',') != std::string_view::npos)
        return std::optional<Peers>();
    Peers peers;
    peers.options_ = shared_options(*address);
    peers.lease_ns_ = lease_ns;
    StoreServerSettings settings;
    settings.url = "tcp://" + format_host_port(host, 0) + peers.options_;
    settings.hosted = true;
    auto server = StoreServer::open(context, std::move(settings));
    if (!server) return server.error();
    peers.server_ = make_ref<StoreServerHandle>(std::move(*server));
    auto listening = parse_address(peers.server_->server().address());
    if (!listening) return listening.error();
    peers.own_ = format_host_port(listening->host, listening->port);
    peers.home_ = format_host_port(address->host, address->port < 0 ? store_port : address->port);
    store.backend().watch_closely(lease_ns, lease_ns / 2);
    return std::optional<Peers>(std::move(peers));
}

Result<Ref<Store>> Peers::reach(Context &context, const std::string &address, std::string_view prefix) const {
    auto store = reach_store(context, {"tcp://" + address + options_, lease_ns_, lease_ns_, lease_ns_ / 2});
    if (!store) return store.error();
    return (*store)->view(prefix, {});
}

// ---- the driver's part ----------------------------------------------------------------------------------------------

void DynamicMember::visit(const std::string &address) {
    granting_.clear();
    leases_.clear();
    auto reached = peers_->reach(context(), address, store_->prefix());
    if (!reached) return context().log(MUSTER_LOG_ERROR, "%s: %s", settings.name().c_str(), reached.error().message);
    context().log(MUSTER_LOG_INFO, "%s: the run may go on at %s", settings.name().c_str(), address.c_str());
    Ref<Store> before = std::move(*reached); // let go of without the lock
    const std::lock_guard hold(lock_);
    std::swap(store_, before);
}

void DynamicMember::dial(uint64_t tag, const std::string &address) {
    if (!peers_) return answered(tag, {Error::make(MUSTER_E_UNREACHABLE, "no way to %s", address.c_str()), {}});
    auto reached = peers_->reach(context(), address, store_->prefix());
    if (!reached) return answered(tag, {reached.error(), {}});
    ask(tag, **reached, {{MUSTER_STORE_READ, keys::stands}});
}

void DynamicMember::do_own(const AskOps &ops) {
    if (!own_) {
        auto reached = peers_->reach(context(), peers_->own(), store_->prefix());
        if (!reached)
            return context().log(MUSTER_LOG_ERROR, "%s: %s", settings.name().c_str(), reached.error().message);
        own_ = std::move(*reached);
    }
    ask(0, *own_, ops);
}

} // namespace muster
