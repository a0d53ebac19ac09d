// SPDX-License-Identifier: MIT
// Stores by tcp and unix URLs: served by another process, or by this one for the others.
#include "store/client/client.hpp"
#include "store/server/server.hpp"

namespace muster {

namespace {

constexpr int64_t default_lost_after_ns = 60'000'000'000;

class RemoteStore final : public StoreBackend {
  public:
    RemoteStore(Context &context, Ref<StoreClient> client, Ref<StoreServerHandle> server, int64_t grace_ns)
        : StoreBackend(context, grace_ns), client_(std::move(client)), server_(std::move(server)) {}
    uint32_t capabilities() const noexcept override { return assumed_ != 0 ? assumed_ : client_->capabilities(); }
    void assume(uint32_t capabilities) noexcept { assumed_ = capabilities; } // before it is reached
    bool hosted() const noexcept override { return client_->hosted(); }
    bool served_here() const noexcept override { return static_cast<bool>(server_); }
    std::string local_host() const override { return client_->local_host(); }
    void watch_closely(int64_t silent_ns, int64_t lost_after_ns) noexcept override {
        client_->watch_closely(silent_ns, lost_after_ns);
    }
    bool answers_later() const noexcept override { return true; }
    bool withdraws_ahead(const StoreRequest &request) const noexcept override {
        return request.waits() && request.has_effect();
    }
    const char *shown() const noexcept override { return client_->shown().c_str(); }
    bool ends_with_context() const noexcept override { return true; }
    bool submit(StoreOperation &operation) noexcept override { return client_->submit(operation); }
    Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept override {
        return client_->withdraw(operation, missing);
    }
    bool forget(StoreOperation &operation) noexcept override { return client_->forget(operation); }
    Status sleep(StoreOperation &operation, Signal &signal, uint32_t seen, Deadline &deadline) noexcept override {
        return client_->sleep(operation, signal, seen, deadline);
    }
    void woken() noexcept override { client_->wake_reader(); }
    Status keep(uint64_t lease, int64_t) noexcept override { return client_->keep(lease); }
    void abandon(uint64_t lease, int64_t) noexcept override { client_->abandon(lease); }

  private:
    ~RemoteStore() override {
        if (!context().forked()) client_->leave_soon();
    }
    const Ref<StoreClient> client_;
    const Ref<StoreServerHandle> server_; // where this process serves it
    uint32_t assumed_ = 0;
};

enum class Hosting { no, yes, automatic };

struct RemoteUrl {
    std::vector<Address> addresses;
    Hosting hosting = Hosting::no;
    std::string serve; // the address to listen at
};

Error wrong(const StoreOpening &opening, const char *why) {
    return Error::make(MUSTER_E_ADDRESS, "store \"%s\": %s", opening.shown.c_str(), why);
}

// tcp://a:1,b:2?host=auto&seal=yes: several addresses, and an option that the transport does not know.
Result<RemoteUrl> read_url(const StoreOpening &opening) {
    RemoteUrl out;
    const size_t question = opening.url.find('?');
    std::string_view left = question == std::string_view::npos ? std::string_view() : opening.url.substr(question + 1);
    std::string options;
    while (!left.empty()) {
        const std::string_view one = left.substr(0, left.find('&'));
        left.remove_prefix(std::min(left.size(), one.size() + 1));
        if (!one.starts_with("host=")) {
            options.append(options.empty() ? "?" : "&").append(one);
            continue;
        }
        const std::string_view value = one.substr(5);
        if (value != "yes" && value != "no" && value != "auto")
            return wrong(opening, "option 'host' is yes, no or auto");
        out.hosting = value == "yes" ? Hosting::yes : value == "auto" ? Hosting::automatic : Hosting::no;
    }
    const size_t slashes = opening.url.find("://");
    if (slashes == std::string_view::npos) return wrong(opening, "no address (as in tcp://host:29400)");
    const std::string scheme(opening.url.substr(0, slashes + 3));
    std::string_view hosts = opening.url.substr(
        slashes + 3, question == std::string_view::npos ? std::string_view::npos : question - slashes - 3);
    const bool tcp = scheme == "tcp://";
    for (bool more = true; more;) {
        const size_t comma = tcp ? hosts.find(',') : std::string_view::npos;
        auto address = parse_address(std::string(scheme).append(hosts.substr(0, comma)).append(options));
        if (!address) return address.error();
        if (tcp && address->port < 0) address->port = store_port;
        if (address->port == 0)
            return wrong(opening, "port 0 is no place to meet; muster_store_server_open() listens there");
        out.addresses.push_back(std::move(*address));
        more = comma != std::string_view::npos;
        if (more) hosts.remove_prefix(comma + 1);
    }
    if (out.hosting != Hosting::no && (!tcp || out.addresses.size() != 1))
        return wrong(opening, "option 'host' goes with one tcp address");
    const Address &first = out.addresses.front();
    out.serve = "tcp://" + format_host_port(first.host, first.port) + options;
    return out;
}

// A process that can listen at the address serves: no other one does yet, and the address is of this host. `taken`: the
// reason why this process does not.
Result<Ref<StoreServerHandle>> serve(const StoreOpening &opening, const RemoteUrl &url, Error &taken) {
    StoreServerSettings settings;
    settings.url = url.serve;
    settings.hosted = true;
    if (opening.config.max_bytes != 0) settings.max_bytes = opening.config.max_bytes;
    auto server = StoreServer::open(opening.context, std::move(settings));
    if (server) return server;
    const Status why = server.error().status;
    if (why == MUSTER_E_EXISTS) taken = server.error();
    if (url.hosting == Hosting::automatic && (why == MUSTER_E_EXISTS || why == MUSTER_E_NOT_FOUND))
        return Ref<StoreServerHandle>();
    return server.error();
}

} // namespace

Result<Ref<StoreBackend>> open_remote_store(const StoreOpening &opening) {
    auto url = read_url(opening);
    if (!url) return url.error();
    Ref<StoreServerHandle> server;
    Error taken;
    if (url->hosting != Hosting::no) {
        auto served = serve(opening, *url, taken);
        if (!served) return served.error();
        server = std::move(*served);
    }
    const int64_t lost_after = opening.config.lost_after_ns == 0 ? default_lost_after_ns : opening.config.lost_after_ns;
    auto client =
        make_ref<StoreClient>(opening.context, "store " + opening.shown, std::move(url->addresses), lost_after);
    const auto backend = make_ref<RemoteStore>(opening.context, client, std::move(server), opening.config.grace_ns);
    if (auto connected = client->connect(opening.deadline); !connected) {
        const Error &why = connected.error();
        if (taken.status == MUSTER_OK) return why;
        Error both = Error::make(why.status, "%s; the port is taken by a program that is no store: %s", why.message,
                                 taken.message);
        both.os_errno = why.os_errno;
        return both;
    }
    return Ref<StoreBackend>(backend);
}

Result<Ref<Store>> reach_store(Context &context, const StoreReach &reach) {
    auto address = parse_address(reach.url);
    if (!address) return address.error();
    std::vector<Address> addresses{std::move(*address)};
    auto client = make_ref<StoreClient>(context, "store " + reach.url.substr(0, reach.url.find('?')),
                                        std::move(addresses), reach.lost_after_ns, reach.once_ns);
    client->watch_closely(reach.silent_ns, reach.lost_after_ns);
    const auto backend = make_ref<RemoteStore>(context, client, Ref<StoreServerHandle>(), 0);
    backend->assume(server_capabilities);
    client->begin();
    return make_ref<Store>(Ref<StoreBackend>(backend), std::string());
}

} // namespace muster
