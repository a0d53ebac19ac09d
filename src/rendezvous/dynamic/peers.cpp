// SPDX-License-Identifier: MIT
#include "rendezvous/dynamic/peers.hpp"

#include "rendezvous/dynamic/dynamic.hpp"
#include "transport/local_address.hpp"

namespace muster {

namespace {

// Without the options that are meant for one address only.
std::string options_of(const Address &address, bool of_origin) {
    std::string options;
    for (const auto &[key, value] : address.options)
        if (key != "host" && (of_origin || (key != "bind" && key != "advertise")))
            options.append(options.empty() ? "?" : "&").append(key).append("=").append(value);
    return options;
}

bool is_one_tcp_address(std::string_view url) {
    return url.starts_with("tcp://") && url.substr(0, url.find('?')).find(',') == std::string_view::npos;
}

} // namespace

Result<std::string> Peers::origin_of(std::string_view url) {
    if (!is_one_tcp_address(url)) return std::string();
    auto address = parse_address(url);
    if (!address) return address.error();
    return format_host_port(address->host, address->port < 0 ? store_port : address->port);
}

Result<std::optional<Peers>> Peers::open(Context &context, std::string_view url, const Store &store, int64_t lease_ns) {
    if (url.empty() || !store.backend().hosted() || !is_one_tcp_address(url)) return std::optional<Peers>();
    const std::string host = store.backend().local_host();
    if (host.empty()) return std::optional<Peers>();
    auto peers = open_again(context, url, host, lease_ns);
    if (!peers) return peers.error();
    store.backend().watch_closely(lease_ns, lease_ns / 2);
    return std::optional<Peers>(std::move(*peers));
}

Result<Peers> Peers::open_again(Context &context, std::string_view url, const std::string &host, int64_t lease_ns) {
    auto address = parse_address(url);
    if (!address) return address.error();
    Peers peers;
    const int port = address->port < 0 ? store_port : address->port;
    peers.options_ = options_of(*address, false);
    peers.origin_options_ = options_of(*address, true);
    peers.origin_ = format_host_port(address->host, port);
    peers.lease_ns_ = lease_ns;
    auto listens = peers.listen(context, host);
    if (!listens) { // this host has another address now
        const std::string other = address_towards(address->host);
        if (other.empty() || other == host || !peers.listen(context, other)) return listens.error();
    }
    return peers;
}

Result<void> Peers::listen(Context &context, const std::string &host) {
    StoreServerSettings settings;
    settings.url = "tcp://" + format_host_port(host, 0) + options_;
    settings.hosted = true;
    auto server = StoreServer::open(context, std::move(settings));
    if (!server) return server.error();
    server_ = std::move(*server);
    auto listening = parse_address(server_->server().address());
    if (!listening) return listening.error();
    own_ = format_host_port(listening->host, listening->port);
    own_host_ = host;
    return {};
}

Result<Ref<Store>> Peers::reach(Context &context, const std::string &address, std::string_view prefix) const {
    auto store = reach_store(context, {"tcp://" + address + options_, lease_ns_, lease_ns_, lease_ns_ / 2});
    if (!store) return store.error();
    return (*store)->view(prefix, {});
}

bool Peers::point(Context &context, std::string_view prefix, const AskOps &ops) {
    if (front_) {
        auto store = reach(context, origin_, prefix);
        auto request = make_request(ops, prefix);
        if (store && request) StoreOperation::make(**store, std::move(*request), lease_ns_)->wait();
        return true;
    }
    auto request = make_request(ops, prefix);
    if (!request) return false;
    StoreServerSettings settings;
    settings.url = "tcp://" + origin_ + origin_options_;
    settings.hosted = true;
    settings.initial.push_back(std::move(*request));
    auto server = StoreServer::open(context, std::move(settings));
    if (!server) return false; // another process listens there, or the address is not one of this host
    front_ = std::move(*server);
    return true;
}

bool Peers::refused(Context &context, const std::string &address, Deadline &deadline) const {
    const int64_t longest = deadline.endless() ? lease_ns_ : std::min(lease_ns_, deadline.left());
    auto store = reach(context, address, {});
    if (!store) return false;
    auto request = make_request({{MUSTER_STORE_READ, keys::stands}}, {});
    if (!request) return false;
    const StoreAnswer answer =
        StoreOperation::make(**store, std::move(*request), std::max<int64_t>(longest, 1))->wait();
    return answer.error.os_errno == ECONNREFUSED;
}

// ---- the driver's part ----------------------------------------------------------------------------------------------

void DynamicMember::visit(const std::string &address) {
    granting_.clear();
    leases_.clear();
    auto reached = peers_->reach(context(), address, store_->prefix());
    if (!reached) return context().log(MUSTER_LOG_ERROR, "%s: %s", settings.name().c_str(), reached.error().message);
    context().log(MUSTER_LOG_INFO, "%s: the run may go on at %s", settings.name().c_str(), address.c_str());
    Ref<Store> before = std::move(*reached); // released without the lock
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

// ---- calls that may block -------------------------------------------------------------------------------------------

void DynamicMember::save(uint64_t tag, Membership membership) {
    membership.own_host = peers_->own_host();
    const Ref<DynamicMember> self(this);
    aside_->add([self, tag, membership = std::move(membership)] {
        if (!self->file_) return;
        StoreAnswer answer;
        if (auto saved = self->file_->save(membership); !saved) answer.error = saved.error();
        self->answered(tag, std::move(answer));
    });
}

void DynamicMember::discard() {
    const Ref<DynamicMember> self(this);
    aside_->add([self] {
        if (self->file_) self->file_->discard();
    });
}

void DynamicMember::point(AskOps ops) {
    if (!peers_) return;
    const Ref<DynamicMember> self(this);
    aside_->add([self, ops = std::move(ops), prefix = store_->prefix()] {
        if (self->peers_) self->peers_->point(self->context(), prefix, ops);
    });
}

void DynamicMember::announce(uint64_t tag, const std::string &address, const AskOps &ops) {
    auto reached = peers_->reach(context(), address, store_->prefix());
    if (!reached) return answered(tag, {reached.error(), {}});
    ask(tag, **reached, ops);
}

} // namespace muster
