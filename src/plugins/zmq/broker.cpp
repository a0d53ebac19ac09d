// SPDX-License-Identifier: MIT
#include "broker.hpp"

#include "key_file.hpp"
#include "plugin.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace star {

namespace {

enum : uint32_t { parent_news = 1, other_news = 2 }; // the descriptor that is ready
constexpr int64_t tick_ns = 500'000'000, stats_interval_ns = 100'000'000, report_interval_ns = 1'000'000'000;
constexpr int64_t max_linger_ns = 10'000'000'000;

// Threads of the library take no signals.
class NoSignals {
  public:
    NoSignals() noexcept {
        sigset_t all;
        sigfillset(&all);
        for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, number);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

} // namespace

Broker::Broker(const muster_host *host) : host_(host), keys_(host) {}

std::unique_ptr<Broker> Broker::make(const muster_host *host, std::string_view authority,
                                     const muster_broker_config &config, std::string &out_authority,
                                     muster_error *error) {
    auto broker = std::unique_ptr<Broker>(new Broker(host));
    return broker->open(authority, config, out_authority, error) == MUSTER_OK ? std::move(broker) : nullptr;
}

muster_status Broker::open(std::string_view authority, const muster_broker_config &config, std::string &out_authority,
                           muster_error *error) {
    BrokerAddress address;
    std::string why;
    const bool any_port = authority.size() > 2 && authority.substr(authority.size() - 2) == ":0";
    if (any_port) authority.remove_suffix(2);
    if (!BrokerAddress::parse(authority, address, why) || !address.name.empty())
        return fail(error, MUSTER_E_ADDRESS, why.empty() ? "a broker has no name" : why);
    std::string place = address.place;
    if (any_port) place = place.substr(0, place.rfind(':')) + ":0";
    const bool open = (config.flags & MUSTER_BROKER_OPEN) != 0;
    const bool curve = !open && (config.flags & MUSTER_BROKER_NO_CURVE) == 0;
    want_parent_ = config.parent_bytes != 0;
    ServerConfig serving;
    if (curve) serving.keys = std::make_unique<CurveServerKeys>();
    CurveServerKeys unused;
    muster_status status = choose_keys(config, curve, curve ? *serving.keys : unused, error);
    if (status == MUSTER_OK && want_parent_) status = open_parent({config.parent, config.parent_bytes}, error);
    if (status != MUSTER_OK) return status;
    status = server_.listen(place, std::move(serving), why);
    if (status != MUSTER_OK) {
        if (error != nullptr) error->os_errno = errno;
        return fail(error, status, why);
    }
    address.place = address.place.substr(0, address.place.rfind(':')) + ":" + std::to_string(server_.port());
    out_authority = address.place;
    if (named_role_) {
        address.curve = curve;
        address.broker_key = role_->open();
        out_authority = address.key();
    }
    if (want_parent_) scratch_ = std::make_unique<Scratch>();

    ExchangeConfig exchange;
    exchange.open = open;
    exchange.is_secret_proved = parent_config_.curve && parent_config_.curve->from_secret;
    if (config.window_bytes != 0) exchange.window = config.window_bytes;
    if (config.max_members != 0) exchange.max_members = config.max_members;
    while (exchange.prefix == 0) exchange.prefix = static_cast<uint32_t>(random_u64());
    exchange.proof = [this](bool of_broker, const Nonce &member, const Nonce &broker) {
        return keys_.proof(of_broker, member, broker);
    };
    if (role_) {
        exchange.prove_role = [this](const CurveKey &challenge, const Nonce &member, const Nonce &broker, Proof &out) {
            return role_->prove(challenge, member, broker, out);
        };
        exchange.role_below = [this](const Nonce &member, const Nonce &broker) { return role_->below(member, broker); };
    }
    parent_config_.broker = true;
    parent_config_.prefix = exchange.prefix;
    exchange_ = std::make_unique<Exchange>(*this, std::move(exchange));
    stop_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_event_ < 0) return fail(error, MUSTER_E_LIMIT, "descriptors ran out");
    server_.watch(stop_event_, other_news);
    publish_stats();
    const NoSignals quiet;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error &) {
        return fail(error, MUSTER_E_LIMIT, "threads ran out");
    }
    return MUSTER_OK;
}

// The parent broker has the same role key, which is pinned; an address with another key is an error.
muster_status Broker::open_parent(std::string_view parent, muster_error *error) {
    BrokerAddress above;
    std::string why;
    if (parent.substr(0, 6) != "zmq://") return fail(error, MUSTER_E_ADDRESS, "the parent is no zmq:// address");
    parent.remove_prefix(6);
    const size_t options = parent.find('?');
    std::string authority(parent.substr(0, std::min(parent.find('/'), options)));
    if (options != std::string_view::npos) authority += parent.substr(options);
    if (!BrokerAddress::parse(authority, above, why) || !above.name.empty())
        return fail(error, MUSTER_E_ADDRESS, "the parent: " + (why.empty() ? "a broker has no name" : why));
    if (!role_)
        return fail(error, MUSTER_E_AUTH,
                    "a child broker needs the broker secret of the tree: broker_secret, "
                    "MUSTER_BROKER_SECRET_FILE or MUSTER_BROKER_SECRET, or a file of CURVE keys");
    if (above.broker_key && *above.broker_key != role_->open())
        return fail(error, MUSTER_E_AUTH, "the parent's address has another broker key than this broker");
    parent_config_.place = above.place;
    parent_config_.pinned = role_->open();
    parent_config_.role = &*role_;
    return MUSTER_OK;
}

// The role key comes from the broker secret or from a file of CURVE keys; without both, the server's key is the one
// that every holder of the secret can derive.
muster_status Broker::choose_keys(const muster_broker_config &config, bool curve, CurveServerKeys &of_server,
                                  muster_error *error) {
    if (config.broker_secret_bytes != 0)
        role_.emplace(
            RoleKey::from_secret({static_cast<const char *>(config.broker_secret), config.broker_secret_bytes}));
    named_role_ = role_.has_value();
    if (!curve) return MUSTER_OK;
    CurveKeys keys;
    const std::string file = key_file(std::string(config.curve_file, config.curve_file_bytes));
    if (!file.empty()) {
        GivenKeys given;
        std::string why;
        const muster_status status =
            read_key_file(file, want_parent_ ? KeyUser::broker_below : KeyUser::broker, given, why);
        if (status != MUSTER_OK) return fail(error, status, why);
        if (role_)
            return fail(error, MUSTER_E_ARG, file + ": its broker-secret and a broker secret exclude each other");
        keys = given.curve;
        of_server.clients.insert(given.members.begin(), given.members.end());
        CurveKey secret{};
        if (key_of_z85(keys.server_secret, secret)) role_.emplace(RoleKey::from_curve(secret));
    } else {
        keys = keys_.curve();
        CurveKey members{};
        if (!key_of_z85(keys.client_public, members)) return fail(error, MUSTER_E_UNSUPPORTED, "libzmq has no CURVE");
        of_server.clients.emplace(reinterpret_cast<char *>(members.data()), members.size());
        if (role_) {
            keys.server_secret = z85_of(role_->secret());
            keys.server_public = z85_of(role_->open());
        }
    }
    if (!key_of_z85(keys.server_secret, of_server.secret) || !key_of_z85(keys.server_public, of_server.open))
        return fail(error, MUSTER_E_UNSUPPORTED, "libzmq has no CURVE");
    parent_config_.curve = std::move(keys);
    return MUSTER_OK;
}

Broker::~Broker() {
    stop(0);
    parent_.reset();
    if (stop_event_ >= 0) close(stop_event_);
}

void Broker::stop(int64_t timeout_ns) {
    if (!thread_.joinable()) return;
    linger_ns_.store(timeout_ns < 0 ? max_linger_ns : std::min(timeout_ns, max_linger_ns), std::memory_order_relaxed);
    // release: pairs with run().
    stopping_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    while (write(stop_event_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
}

// No exception ends the broker: where memory runs out, the connection ends that needed it.
void Broker::run() noexcept {
    pthread_setname_np(pthread_self(), "muster-broker");
    ticked_ns_ = turn_ns_ = now_ns();
    if (want_parent_) connect_parent();
    while (!stopping_.load(std::memory_order_acquire)) {
        if ((news_ & parent_news) != 0) with_parent([](Uplink &parent) { parent.process(); });
        if (parent_lost_) drop_parent();
        turn_ns_ = now_ns();
        if (turn_ns_ - ticked_ns_ >= tick_ns) tick();
        if (turn_ns_ - stats_ns_ >= stats_interval_ns) publish_stats();
        with_parent([](Uplink &parent) { parent.flush(); });
        news_ = server_.wait(static_cast<int>(tick_ns / 1'000'000));
    }
    const int64_t until = now_ns() + linger_ns_.load(std::memory_order_relaxed);
    server_.drain(until - now_ns());
    with_parent([until](Uplink &parent) { parent.drain(until - now_ns()); });
    publish_stats();
}

// Uses the connection to the parent broker, if there is one; without memory for it, it is lost.
template <class Body>
void Broker::with_parent(Body body) noexcept {
    if (!parent_) return;
    try {
        body(*parent_);
    } catch (const std::exception &) {
        parent_lost_ = true;
    }
}

void Broker::received(Route route, Message &message) {
    Packet packet{message.data(), message.size(), &message};
    exchange_->message(route, packet, turn_ns_);
}

// Logged at intervals.
void Broker::rejected() noexcept {
    rejected_++;
    unreported_++;
    if (reported_ns_ != 0 && turn_ns_ - reported_ns_ < report_interval_ns) return;
    reported_ns_ = turn_ns_;
    char text[160], times[48] = "";
    if (unreported_ > 1) snprintf(times, sizeof times, " (%llu of them)", static_cast<unsigned long long>(unreported_));
    snprintf(text, sizeof text, "a connection is refused: it has another secret or other keys, or none%s", times);
    unreported_ = 0;
    log(MUSTER_LOG_WARN, text);
}

void Broker::accept_failed(const char *why) noexcept {
    char text[200];
    snprintf(text, sizeof text, "connections cannot be accepted: %s", why);
    log(MUSTER_LOG_ERROR, text);
}

void Broker::tick() noexcept {
    ticked_ns_ = now_ns();
    server_.tick(ticked_ns_);
    exchange_->tick(ticked_ns_);
    with_parent([this](Uplink &parent) { parent.tick(ticked_ns_); });
    if (parent_lost_) drop_parent();
    if (want_parent_ && !parent_ && ticked_ns_ >= parent_retry_ns_) connect_parent();
}

// ---- the parent broker ----------------------------------------------------------------------------------------------

void Broker::connect_parent() noexcept {
    try {
        parent_ = std::make_unique<Uplink>(parent_config_, keys_, *scratch_, static_cast<UplinkOwner &>(*this));
        const muster_status status = parent_->open(now_ns());
        if (status != MUSTER_OK) uplink_lost(status, "no connection can be made");
    } catch (const std::exception &) {
        parent_lost_ = true;
    }
}

muster_status Broker::watch_uplink(int fd, bool writable) {
    if (fd < 0) return MUSTER_OK; // epoll forgets it when it is closed
    return server_.watch(fd, parent_news, writable) ? MUSTER_OK : MUSTER_E_LIMIT;
}

void Broker::uplink_ready(uint64_t, uint64_t) {
    parent_back_off_.reset();
    log(MUSTER_LOG_INFO, "the parent broker is " + parent_config_.place);
    exchange_->parent_up();
}

void Broker::uplink_message(const Head &, Message &message) {
    Packet packet{message.data(), message.size(), &message};
    exchange_->message(parent_route, packet, now_ns());
}

void Broker::uplink_lost(muster_status, std::string_view why) {
    parent_lost_ = true;
    log(MUSTER_LOG_WARN, "the parent broker, " + parent_config_.place + ": " + std::string(why));
}

void Broker::drop_parent() noexcept {
    parent_lost_ = false;
    parent_.reset(); // epoll forgets its descriptors
    exchange_->parent_down();
    parent_retry_ns_ = now_ns() + parent_back_off_.next_ns();
}

// ---- the exchange's outlet ------------------------------------------------------------------------------------------

// Without memory for a message, the connection ends for which it was: a process that waited for it would wait for ever.
bool Broker::send_to(Route route, Message &message) noexcept {
    if (route != parent_route) return server_.send(route, message);
    if (parent_lost_) return false;
    bool sent = false;
    with_parent([&](Uplink &parent) { sent = parent.send(message); });
    return sent;
}

bool Broker::send(Route route, const Head &head, std::string_view payload) noexcept {
    Message message;
    if (message.make(head, payload.data(), payload.size())) return send_to(route, message);
    return cut(route), false;
}

bool Broker::forward(Route route, Packet &packet) noexcept {
    return send_to(route, *static_cast<Message *>(packet.message));
}

bool Broker::forward_copy(Route route, Packet &packet) noexcept {
    Message copy;
    if (zmq_msg_copy(copy.get(), static_cast<Message *>(packet.message)->get()) == 0) return send_to(route, copy);
    return cut(route), false;
}

void Broker::cut(Route route) noexcept {
    if (route == parent_route)
        parent_lost_ = true;
    else
        server_.cut(route);
}

void Broker::log(int32_t level, std::string_view text) noexcept {
    host_->log(host_, level, text.data(), text.size());
}

// ---- counters -------------------------------------------------------------------------------------------------------

void Broker::publish_stats() noexcept {
    stats_ns_ = now_ns();
    const ExchangeStats now = exchange_->stats();
    const std::lock_guard hold(stats_lock_);
    stats_.members = now.members;
    stats_.brokers = now.brokers;
    stats_.has_parent = exchange_->has_parent();
    stats_.names = now.names;
    stats_.pairs = now.pairs;
    stats_.messages = now.messages;
    stats_.bytes = now.bytes;
    stats_.multicasts = now.multicasts;
    stats_.queued_bytes = now.queued_bytes;
    stats_.connections = server_.count();
    stats_.refused = now.refused + rejected_;
    stats_.lost = now.lost;
}

void Broker::stats(muster_broker_stats &out) {
    const std::lock_guard hold(stats_lock_);
    out = stats_;
}

namespace {

muster_status op_open(void *self, const char *authority, uint64_t authority_bytes, const muster_broker_config *config,
                      void **out_broker, char *out_authority, uint64_t *out_authority_bytes, muster_error *error) {
    try {
        std::string place;
        muster_error why{};
        const muster_host *const host = static_cast<Plugin *>(self)->host();
        muster_broker_config all{}; // an older library passes a shorter struct
        memcpy(&all, config, std::min<size_t>(config->struct_size, sizeof all));
        auto broker = Broker::make(host, {authority, authority_bytes}, all, place, &why);
        if (!broker) {
            if (error != nullptr) *error = why;
            return why.status;
        }
        std::copy(place.begin(), place.end(), out_authority);
        *out_authority_bytes = place.size();
        *out_broker = broker.release();
        return MUSTER_OK;
    } catch (const std::exception &) {
        return fail(error, MUSTER_E_NOMEM, "out of memory");
    }
}

void op_stats(void *broker, muster_broker_stats *out_stats) {
    static_cast<Broker *>(broker)->stats(*out_stats);
}

void op_close(void *broker, int64_t timeout_ns) {
    static_cast<Broker *>(broker)->stop(timeout_ns);
    delete static_cast<Broker *>(broker);
}

} // namespace

const muster_broker_ops broker_ops = {sizeof broker_ops, 0, op_open, op_stats, op_close};

} // namespace star
