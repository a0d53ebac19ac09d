// SPDX-License-Identifier: MIT
#include "broker.hpp"

#include "key_file.hpp"
#include "plugin.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace star {

namespace {

enum : uint32_t { monitor_news = 1, zap_news = 2, parent_news = 4 }; // whose descriptor is readable
constexpr int most_messages = 64;                                    // taken before others have their turn
constexpr int64_t tick_ns = 500'000'000, stats_every_ns = 100'000'000;
constexpr int64_t first_pause_ns = 20'000'000, longest_pause_ns = 2'000'000'000;
constexpr int64_t longest_linger_ms = 10'000;
constexpr size_t route_bytes = 5; // libzmq's own names of connections: a zero and four bytes

Route route_of(Message &name) noexcept {
    if (name.size() != route_bytes || name.data()[0] != 0) return 0; // one that the peer chose
    return uint64_t{1} << 32 | get_u32(name.data() + 1);
}

void put_route(unsigned char *to, Route route) noexcept {
    to[0] = 0;
    put_u32(to + 1, static_cast<uint32_t>(route));
}

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
    if (any_port) place = place.substr(0, place.rfind(':')) + ":*";
    const bool open = (config.flags & MUSTER_BROKER_OPEN) != 0;
    const bool curve = !open && (config.flags & MUSTER_BROKER_NO_CURVE) == 0;
    if (config.parent_bytes != 0) {
        std::string_view parent(config.parent, config.parent_bytes);
        BrokerAddress above;
        if (parent.substr(0, 6) != "zmq://") return fail(error, MUSTER_E_ADDRESS, "the parent is no zmq:// address");
        parent = parent.substr(6, parent.find('/', 6) - 6);
        if (!BrokerAddress::parse(parent, above, why) || !above.name.empty())
            return fail(error, MUSTER_E_ADDRESS, "the parent: " + (why.empty() ? "a broker has no name" : why));
        parent_config_.endpoint = "tcp://" + above.place;
        want_parent_ = true;
    }
    zmq_ = zmq_ctx_new();
    if (zmq_ == nullptr) return fail(error, MUSTER_E_LIMIT, "libzmq has no context for us");
    zmq_ctx_set(zmq_, ZMQ_MAX_SOCKETS, 65535);
    router_ = Socket(zmq_, ZMQ_ROUTER);
    if (!router_) return fail(error, MUSTER_E_LIMIT, std::string("no socket: ") + zmq_strerror(errno));
    set_common(router_);
    router_.set(ZMQ_ROUTER_MANDATORY, 1);
    router_.set(ZMQ_BACKLOG, 4096);
    if (curve) {
        CurveKeys keys;
        if (const muster_status status = choose_keys(config, keys, error); status != MUSTER_OK) return status;
        zap_ = Socket(zmq_, ZMQ_ROUTER); // before the first connection: it is asked about each
        if (!zap_ || zmq_bind(zap_.get(), "inproc://zeromq.zap.01") != 0)
            return fail(error, MUSTER_E_LIMIT, std::string("no socket: ") + zmq_strerror(errno));
        router_.set(ZMQ_CURVE_SERVER, 1);
        router_.set(ZMQ_CURVE_SECRETKEY, keys.server_secret);
        router_.set(ZMQ_ZAP_DOMAIN, "muster");
        parent_config_.curve = std::move(keys);
    }
    if (!monitor_.open(zmq_, router_, unique_inproc("broker")))
        return fail(error, MUSTER_E_LIMIT, std::string("no socket: ") + zmq_strerror(errno));
    if (zmq_bind(router_.get(), ("tcp://" + place).c_str()) != 0) {
        const int number = errno;
        muster_status status = MUSTER_E_SYSTEM;
        if (number == EADDRINUSE) status = MUSTER_E_EXISTS;
        if (number == EACCES) status = MUSTER_E_PERMISSION;
        if (number == EADDRNOTAVAIL || number == ENODEV) status = MUSTER_E_UNREACHABLE;
        if (number == EINVAL) status = MUSTER_E_ADDRESS;
        if (number == EMFILE || number == ENFILE) status = MUSTER_E_LIMIT;
        if (error != nullptr) error->os_errno = number;
        return fail(error, status, "listen at " + place + ": " + zmq_strerror(number));
    }
    char bound[256];
    size_t bound_bytes = sizeof bound;
    zmq_getsockopt(router_.get(), ZMQ_LAST_ENDPOINT, bound, &bound_bytes);
    const std::string endpoint(bound);
    out_authority = address.place.substr(0, address.place.rfind(':')) + endpoint.substr(endpoint.rfind(':'));
    port_ = static_cast<uint16_t>(std::strtoul(endpoint.c_str() + endpoint.rfind(':') + 1, nullptr, 10));

    ExchangeConfig exchange;
    exchange.open = open;
    if (config.window_bytes != 0) exchange.window = config.window_bytes;
    if (config.max_members != 0) exchange.members_max = config.max_members;
    while (exchange.prefix == 0) exchange.prefix = static_cast<uint32_t>(random_u64());
    exchange.proof = [this](bool of_broker, const Nonce &member, const Nonce &broker) {
        return keys_.proof(of_broker, member, broker);
    };
    parent_config_.broker = true;
    parent_config_.prefix = exchange.prefix;
    exchange_ = std::make_unique<Exchange>(*this, std::move(exchange));
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    stop_event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_ < 0 || stop_event_ < 0 || !take_reserve()) return fail(error, MUSTER_E_LIMIT, "descriptors ran out");
    watch(router_.fd(), 0);
    watch(stop_event_, 0);
    watch(monitor_.fd(), monitor_news);
    if (zap_) watch(zap_.fd(), zap_news);
    publish_stats();
    const NoSignals quiet;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error &) {
        return fail(error, MUSTER_E_LIMIT, "threads ran out");
    }
    return MUSTER_OK;
}

// Those of a file that is named, or else derived from the secret.
muster_status Broker::choose_keys(const muster_broker_config &config, CurveKeys &out, muster_error *error) {
    const bool named = config.struct_size >= offsetof(muster_broker_config, curve_file_bytes) + sizeof(uint64_t) &&
                       config.curve_file_bytes != 0;
    const std::string file = key_file(named ? std::string(config.curve_file, config.curve_file_bytes) : "");
    if (!file.empty()) {
        GivenKeys given;
        std::string why;
        const muster_status status =
            read_key_file(file, want_parent_ ? KeyUser::broker_below : KeyUser::broker, given, why);
        if (status != MUSTER_OK) return fail(error, status, why);
        out = given.curve;
        let_in_.insert(given.members.begin(), given.members.end());
        return MUSTER_OK;
    }
    out = keys_.curve();
    char key[33];
    zmq_z85_decode(reinterpret_cast<uint8_t *>(key), out.client_public.c_str());
    let_in_.emplace(key, 32);
    return MUSTER_OK;
}

void Broker::watch(int fd, uint32_t news) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = news;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

Broker::~Broker() {
    stop(0);
    parent_.reset();
    monitor_.close(); // before the socket it watches
    zap_.close();
    router_.close();
    if (zmq_ != nullptr)
        while (zmq_ctx_term(zmq_) != 0 && zmq_errno() == EINTR) {
        }
    free_reserve();
    if (epoll_ >= 0) close(epoll_);
    if (stop_event_ >= 0) close(stop_event_);
}

void Broker::stop(int64_t timeout_ns) {
    if (!thread_.joinable()) return;
    const int64_t ms = timeout_ns < 0 ? longest_linger_ms : std::min(timeout_ns / 1'000'000, longest_linger_ms);
    linger_ms_.store(static_cast<int>(ms), std::memory_order_relaxed);
    // release: pairs with run().
    stopping_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    while (write(stop_event_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
}

// libzmq's descriptors tell of news, not of a state: after they were read everything is taken until there is nothing,
// and sending may have read them, so members are looked at last of all before the thread sleeps.
void Broker::run() noexcept {
    pthread_setname_np(pthread_self(), "muster-broker");
    try {
        ticked_ns_ = now_ns();
        // A descriptor of libzmq's tells nothing before it has been looked behind once.
        news_ = monitor_news | zap_news;
        if (want_parent_) connect_parent();
        while (!stopping_.load(std::memory_order_acquire)) {
            if ((news_ & monitor_news) != 0 && serve_monitor()) fresh_news_ |= monitor_news;
            bool more = false;
            if (news_ & zap_news) serve_zap();
            if (parent_) more = parent_->process((news_ & parent_news) != 0) || more;
            if (parent_lost_) drop_parent();
            more = serve_members() || more;
            if (!more && !ending_.empty()) serve_ends();
            if (parent_ && parent_->readable()) more = true;
            const int64_t now = now_ns();
            if (now - ticked_ns_ >= tick_ns) tick();
            if (now - stats_ns_ >= stats_every_ns) publish_stats();
            epoll_event ready[8];
            const int count =
                epoll_wait(epoll_, ready, 8, more || fresh_news_ != 0 ? 0 : static_cast<int>(tick_ns / 1'000'000));
            // What was not emptied stays readable; only members are looked at without being asked.
            news_ = std::exchange(fresh_news_, 0);
            for (int i = 0; i < count; i++) news_ |= ready[i].data.u32;
        }
    } catch (const std::exception &failed) {
        log(MUSTER_LOG_ERROR, std::string("the broker ends: ") + failed.what());
    }
    try {
        publish_stats();
    } catch (const std::exception &) { // the figures stay as they were
    }
    router_.set(ZMQ_LINGER, linger_ms_.load(std::memory_order_relaxed));
}

// What was received with one connection's name and without its end is all there.
bool Broker::serve_members() {
    Message name, message;
    const int64_t now = now_ns();
    for (int taken = 0; taken < most_messages; taken++) {
        if (!router_.receive(name)) return false;
        if (!name.more() || !router_.receive(message)) continue;
        while (message.more() && router_.receive(message)) message.make(0); // more than one part: nonsense
        const Route route = route_of(name);
        if (route == 0) continue;
        if (!exchange_->knows(route)) {
            // The events of its descriptor's last life have to be taken before its own begins.
            while (serve_monitor()) {
            }
            const int fd = zmq_msg_get(message.get(), ZMQ_SRCFD);
            by_fd_[fd] = route;
        }
        Parcel parcel{message.data(), message.size(), &message};
        exchange_->message(route, parcel, now);
    }
    return true;
}

bool Broker::serve_monitor() {
    Monitor::Event event;
    for (int taken = 0; taken < most_messages; taken++) {
        if (!monitor_.next(event)) return false;
        const int fd = static_cast<int>(event.value);
        switch (event.what) {
        case ZMQ_EVENT_ACCEPTED:
            connections_++;
            if (full_) hang_up(fd);
            break;
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
            strangers_++;
            log(MUSTER_LOG_WARN, "a connection is refused: it has another secret or other keys, or none");
            break;
        case ZMQ_EVENT_ACCEPT_FAILED:
            if (fd == EMFILE || fd == ENFILE || fd == ENOBUFS || fd == ENOMEM) descriptors_ran_out(fd);
            break;
        case ZMQ_EVENT_DISCONNECTED: {
            connections_ -= connections_ != 0;
            const auto found = by_fd_.find(fd);
            if (found == by_fd_.end()) break;
            const Route route = found->second;
            by_fd_.erase(found);
            ending_.push_back(route);
            break;
        }
        default:
            break;
        }
    }
    return true;
}

// libzmq knows a connection until its last message was read; only then is it gone for the exchange, too. What tells is
// a message to it: an empty one, which nobody will see. The end of the end wakes the thread like any news.
void Broker::serve_ends() {
    std::erase_if(ending_, [this](Route route) {
        Message name, nothing;
        if (!name.make(route_bytes)) return false;
        put_route(name.data(), route);
        if (router_.send(name, true)) {
            router_.send(nothing);
            return false;
        }
        exchange_->gone(route);
        return true;
    });
}

// ZAP, RFC 27: is this CURVE key one of a member? Address parts, then an empty one, then the request.
void Broker::serve_zap() {
    if (!zap_) return;
    for (;;) {
        std::vector<std::string> parts;
        Message part;
        do {
            if (!zap_.receive(part)) return;
            parts.emplace_back(reinterpret_cast<char *>(part.data()), part.size());
        } while (part.more());
        const auto body = std::find(parts.begin(), parts.end(), "");
        if (parts.end() - body < 8) continue; // libzmq's own, so this is not expected
        const std::string &id = body[2], &mechanism = body[6], &key = body[7];
        const bool good =
            mechanism == "CURVE" && let_in_.count(key) != 0; // public keys: how long it takes tells nothing
        std::vector<std::string> reply(parts.begin(), body + 1);
        for (const char *text : {"1.0", id.c_str(), good ? "200" : "400", good ? "" : "not a member's key", "", ""})
            reply.emplace_back(text);
        reply[reply.size() - 5] = id;
        for (size_t i = 0; i < reply.size(); i++) {
            Message out;
            if (!out.make(reply[i].size())) return;
            memcpy(out.data(), reply[i].data(), reply[i].size());
            zap_.send(out, i + 1 < reply.size());
        }
    }
}

// What cannot be taken stays in front of the door, and libzmq tries again without a pause, and tells of each failure.
// So some descriptors are kept for this: with these it takes whoever waits, who is hung up on at once.
void Broker::descriptors_ran_out(int number) {
    failed_ns_ = now_ns();
    if (std::exchange(full_, true)) return;
    log(MUSTER_LOG_ERROR, "connections cannot be taken: " + std::string(zmq_strerror(number)));
    free_reserve();
}

// It is libzmq's descriptor, and may be another's by now: if it is a connection to this broker, that is what is meant.
void Broker::hang_up(int fd) const {
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr *>(&own), &bytes) != 0) return;
    const auto &four = reinterpret_cast<const sockaddr_in &>(own);
    const auto &six = reinterpret_cast<const sockaddr_in6 &>(own);
    if ((own.ss_family == AF_INET && ntohs(four.sin_port) == port_) ||
        (own.ss_family == AF_INET6 && ntohs(six.sin6_port) == port_))
        shutdown(fd, SHUT_RDWR);
}

bool Broker::take_reserve() {
    for (int &fd : reserve_) {
        if (fd < 0) fd = fcntl(stop_event_, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) return free_reserve(), false;
    }
    return true;
}

void Broker::free_reserve() {
    for (int &fd : reserve_)
        if (const int kept = std::exchange(fd, -1); kept >= 0) close(kept);
}

void Broker::tick() {
    ticked_ns_ = now_ns();
    if (full_ && ticked_ns_ - failed_ns_ >= tick_ns && take_reserve()) full_ = false;
    exchange_->tick(ticked_ns_);
    if (parent_) parent_->tick(ticked_ns_);
    if (parent_lost_) drop_parent();
    if (want_parent_ && !parent_ && ticked_ns_ >= parent_retry_ns_) connect_parent();
}

// ---- the broker above
// ------------------------------------------------------------------------------------------------

void Broker::connect_parent() {
    parent_ = std::make_unique<Uplink>(zmq_, parent_config_, keys_, static_cast<UplinkOwner &>(*this));
    const muster_status status = parent_->open(now_ns());
    if (status == MUSTER_OK) {
        watch(parent_->fd(), 0);
        watch(parent_->monitor_fd(), parent_news);
        fresh_news_ |= parent_news;
    } else {
        up_lost(status, "no connection can be made");
    }
}

void Broker::up_ready(uint64_t, uint64_t) {
    parent_pause_ns_ = 0;
    log(MUSTER_LOG_INFO, "the broker above is " + parent_config_.endpoint);
    exchange_->parent_up();
}

void Broker::up_message(const Head &, Message &message) {
    Parcel parcel{message.data(), message.size(), &message};
    exchange_->message(parent_route, parcel, now_ns());
}

void Broker::up_lost(muster_status, const std::string &why) {
    parent_lost_ = true;
    log(MUSTER_LOG_WARN, "the broker above, " + parent_config_.endpoint + ": " + why);
}

void Broker::drop_parent() {
    parent_lost_ = false;
    parent_.reset(); // its descriptors leave epoll with it
    exchange_->parent_down();
    parent_pause_ns_ = std::clamp(parent_pause_ns_ * 2, first_pause_ns, longest_pause_ns);
    parent_retry_ns_ = now_ns() + parent_pause_ns_;
}

// ---- the exchange's outlet
// -------------------------------------------------------------------------------------------

bool Broker::send_to(Route route, Message &message) {
    if (route == parent_route) return parent_ && parent_->send(message);
    Message name;
    if (!name.make(route_bytes)) return false;
    put_route(name.data(), route);
    return router_.send(name, true) && router_.send(message); // EHOSTUNREACH: its end is among the events
}

bool Broker::send(Route route, const Head &head, std::string_view payload) {
    Message message;
    return message.make(head, payload.data(), payload.size()) && send_to(route, message);
}

bool Broker::forward(Route route, Parcel &parcel) {
    return send_to(route, *static_cast<Message *>(parcel.message));
}

bool Broker::forward_copy(Route route, Parcel &parcel) {
    Message copy;
    return zmq_msg_copy(copy.get(), static_cast<Message *>(parcel.message)->get()) == 0 && send_to(route, copy);
}

void Broker::log(int32_t level, const std::string &text) {
    host_->log(host_, level, text.data(), text.size());
}

// ---- figures
// ---------------------------------------------------------------------------------------------------------

void Broker::publish_stats() {
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
    stats_.to_many = now.to_many;
    stats_.queued_bytes = now.queued_bytes;
    stats_.connections = connections_;
    stats_.refused = now.refused + strangers_;
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
        auto broker = Broker::make(host, {authority, authority_bytes}, *config, place, &why);
        if (!broker) {
            if (error != nullptr) *error = why;
            return why.status;
        }
        memcpy(out_authority, place.data(), place.size());
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
