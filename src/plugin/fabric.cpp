// SPDX-License-Identifier: MIT
#include "plugin/fabric.hpp"

#include "base/boundary.hpp"
#include "plugin/broadcast.hpp"
#include "plugin/fabric_message.hpp"
#include "plugin/timed.hpp"
#include "transport/frame.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr uint32_t known_fabric_flags =
    MUSTER_PLUGIN_LOCAL | MUSTER_PLUGIN_SEALS | MUSTER_PLUGIN_OPTIONS | MUSTER_PLUGIN_UPGRADES;
constexpr size_t headroom_max = 4096;
constexpr int64_t beats_apart_ns = 1'000'000; // of all sessions of a fabric: very many of them beat less often each
constexpr uint64_t most_credit = uint64_t{1} << 40;
constexpr int64_t idle_ns = 10'000'000'000; // a session without streams ends after so long
// One that the peer began a while later, unless the peer has ended it: it may be about to open a stream.
constexpr int64_t idle_other_ns = 3 * idle_ns;
constexpr long sessions_max = 64; // that a peer may have begun at a time
} // namespace

// ---- the transport
// ---------------------------------------------------------------------------------------------------

Result<Ref<Fabric>> Fabric::make(Plugin &plugin, const std::string &scheme, const muster_fabric_ops &ops, void *self) {
    const std::pair<bool, const char *> needed[] = {
        {ops.start != nullptr, "start"},     {ops.stop != nullptr, "stop"}, {ops.publish != nullptr, "publish"},
        {ops.resolve != nullptr, "resolve"}, {ops.send != nullptr, "send"}, {ops.forget != nullptr, "forget"},
    };
    for (const auto &[there, name] : needed)
        if (!there) return Error::make(MUSTER_E_PLUGIN, "%s: %s:// has no %s", plugin.name(), scheme.c_str(), name);
    if ((ops.flags & ~uint32_t{known_fabric_flags}) != 0)
        return Error::make(MUSTER_E_ABI, "%s: %s:// has unknown flags %#x", plugin.name(), scheme.c_str(), ops.flags);
    const uint64_t message_bytes = ops.message_bytes == 0 ? 256 * 1024 : ops.message_bytes;
    if (message_bytes < 1024 || message_bytes > 1024 * 1024)
        return Error::make(MUSTER_E_PLUGIN, "%s: %s:// has messages of %llu bytes, 1 KiB to 1 MiB are possible",
                           plugin.name(), scheme.c_str(), static_cast<unsigned long long>(message_bytes));
    if (ops.credit_bytes != 0 && ops.credit_bytes < message_bytes)
        return Error::make(MUSTER_E_PLUGIN, "%s: %s:// gives %llu bytes of credit, less than one message",
                           plugin.name(), scheme.c_str(), static_cast<unsigned long long>(ops.credit_bytes));
    if (ops.headroom_bytes > headroom_max)
        return Error::make(MUSTER_E_PLUGIN, "%s: %s:// wants %llu bytes in front of a message, at most %zu",
                           plugin.name(), scheme.c_str(), static_cast<unsigned long long>(ops.headroom_bytes),
                           headroom_max);
    if (ops.broker != nullptr && (ops.broker->struct_size != sizeof(muster_broker_ops) || ops.broker->open == nullptr ||
                                  ops.broker->stats == nullptr || ops.broker->close == nullptr))
        return Error::make(MUSTER_E_PLUGIN, "%s: the broker of %s:// lacks an operation", plugin.name(),
                           scheme.c_str());
    return Ref<Fabric>::adopt(new Fabric(plugin, scheme, ops, self));
}

Fabric::Fabric(Plugin &plugin, std::string scheme, const muster_fabric_ops &ops, void *self)
    : plugin_(plugin), context_(plugin.context()), scheme_(std::move(scheme)), ops_(ops),
      message_bytes_(ops.message_bytes == 0 ? 256 * 1024 : ops.message_bytes), self_(self) {}

Result<void> Fabric::ensure_started() {
    if (closing_ || state_ == State::stopped) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    if (state_ == State::failed) return why_not_;
    if (state_ == State::started) return {};
    Error error;
    const Status status =
        timed(plugin_, "start", [&] { return ops_.start(self_, reinterpret_cast<muster_endpoint *>(this), &error); });
    if (status != MUSTER_OK) {
        state_ = State::failed;
        why_not_ = plugin_error(plugin_, error, status, "start", scheme_ + "://");
        return why_not_;
    }
    state_ = State::started;
    return {};
}

Result<void> Fabric::check(const SessionAddress &address, bool listening) const {
    if (address.service.size() > 1024)
        return Error::make(MUSTER_E_ADDRESS, "address %s: the service is longer than 1024 bytes", address.full.c_str());
    if (!listening && !address.direct.empty() && address.direct != "no")
        return Error::make(MUSTER_E_ADDRESS, "address %s: direct is no for a dial, an address only for a listener",
                           address.full.c_str());
    if (!address.foreign.empty() && (ops_.flags & MUSTER_PLUGIN_OPTIONS) == 0)
        return Error::make(MUSTER_E_ADDRESS, "address %s: unknown option %s", address.full.c_str(),
                           address.foreign.c_str());
    return {};
}

std::string Fabric::authority(const SessionAddress &address) const {
    return address.foreign_options.empty() ? address.authority : address.authority + "?" + address.foreign_options;
}

// What is known of a peer before the session.
SessionConfig Fabric::config_for(const Peer &peer) const {
    SessionConfig config;
    config.local = (peer.flags & MUSTER_PLUGIN_LOCAL) != 0;
    config.covered = (peer.flags & MUSTER_PLUGIN_SEALS) != 0;
    return config;
}

void Fabric::dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) {
    Result<SessionAddress> own = session_address(context_, address, introduces());
    if (!own) return dial->done(own.error());
    if (const Result<void> checked = check(*own, false); !checked) return dial->done(checked.error());
    if (const Result<void> started = ensure_started(); !started) return dial->done(started.error());
    const uint64_t question = next_question_++;
    dialing_.emplace(question, Dialing{*own, options, std::move(dial)});
    Error error;
    uint64_t id = 0;
    const std::string name = authority(*own);
    const Status status =
        timed(plugin_, "resolve", [&] { return ops_.resolve(self_, name.data(), name.size(), question, &id, &error); });
    if (status == MUSTER_AGAIN) return;
    resolved(question, status, id, error.message, strnlen(error.message, sizeof error.message));
}

void Fabric::resolved(uint64_t question, Status status, uint64_t id, const char *text, size_t text_bytes) {
    const auto found = dialing_.find(question);
    if (found == dialing_.end())
        return context_.log(MUSTER_LOG_ERROR, "%s answered a resolve that was over", plugin_.name());
    const Dialing dialing = std::move(found->second);
    dialing_.erase(found);
    if (status == MUSTER_OK) {
        try {
            return dial_peer(id, dialing);
        } catch (const std::bad_alloc &) {
            return dialing.dial->done(
                Error::make(MUSTER_E_NOMEM, "dial %s: out of memory", dialing.address.full.c_str()));
        }
    }
    const Error error = Error::make(status, "%.*s", static_cast<int>(std::min<size_t>(text_bytes, 300)), text);
    dialing.dial->done(plugin_error(plugin_, error, status, "dial", dialing.address.full));
}

void Fabric::dial_peer(uint64_t id, const Dialing &dialing) {
    Peer &to = peer(id);
    if (closing_) {
        tidy_later(to);
        return dialing.dial->done(Error::make(MUSTER_E_CLOSED, "the context is closed"));
    }
    const bool upgrade = introduces() && dialing.address.upgrade;
    const bool elsewhere = upgrade || (introduces() && dialing.address.direct != "no");
    for (auto &[key, session] : to.sessions) {
        if (!key.first || session->auth_ != dialing.address.auth || session->seal_ != dialing.address.seal ||
            session->upgrade_ != upgrade || !session->session_->takes_streams())
            continue;
        return session->session_->open(dialing.address.service, dialing.options, dialing.dial, elsewhere);
    }
    SessionConfig config = config_for(to);
    config.dialer = true;
    config.upgrade = upgrade;
    config.auth = dialing.address.auth;
    config.seal = dialing.address.seal;
    config.peer = scheme_ + "://" + dialing.address.authority;
    const SessionKey key{true, ++to.generation};
    const Ref<FabricSession> session = add_session(to, key, std::move(config));
    try {
        session->session_->open(dialing.address.service, dialing.options, dialing.dial, elsewhere);
    } catch (const std::bad_alloc &) {
        session->session_->lost(Error::make(MUSTER_E_NOMEM, "%s: out of memory", session->session_->peer().c_str()));
        throw;
    }
    session->session_->start();
}

// ---- peers
// -----------------------------------------------------------------------------------------------------------

Fabric::Peer &Fabric::peer(uint64_t id) {
    const auto [found, fresh] = peers_.try_emplace(id);
    if (fresh) {
        found->second.id = id;
        found->second.flags = ops_.flags;
        found->second.credits = ops_.credit_bytes;
        // Generations of an earlier acquaintance with the same number are not met again.
        found->second.generation = static_cast<uint32_t>(now_ns() >> 20);
    }
    return found->second;
}

// The place first: once made, a session and its channel hold each other.
Ref<FabricSession> Fabric::add_session(Peer &peer, SessionKey key, SessionConfig config) {
    if (!timer_) {
        timer_ = std::make_unique<LoopTimer>(context_.loop(), [this] { tick(); });
        timer_->start(longest_between_looks_ns, longest_between_looks_ns);
    }
    const auto place = peer.sessions.emplace(key, Ref<FabricSession>()).first;
    config.heartbeat_ns = static_cast<int64_t>(session_count_ + 1) * beats_apart_ns;
    try {
        place->second = make_ref<FabricSession>(*this, peer.id, key, std::move(config));
        session_count_++;
        return place->second;
    } catch (const std::bad_alloc &) {
        peer.sessions.erase(place);
        throw;
    }
}

void Fabric::maybe_forget(uint64_t id) noexcept {
    const auto found = peers_.find(id);
    if (found == peers_.end() || !found->second.sessions.empty()) return;
    if (tidy_list_.holds(found->second)) tidy_list_.remove(found->second);
    // Its descriptors are closed after the plug-in has stopped watching them: their numbers may be others' at once.
    const Ref<SharedSegment> segment = std::move(found->second.segment);
    peers_.erase(found);
    timed(plugin_, "forget", [&] { return ops_.forget(self_, id); });
}

// Not from inside a function of the host table: the plug-in is not called while it calls.
void Fabric::tidy_later(Peer &peer) noexcept {
    if (!tidy_list_.holds(peer)) tidy_list_.push_back(peer);
    tidy_.post(context_);
}

void Fabric::tidy() noexcept {
    if (state_ != State::started) return; // nobody is left
    for (const std::string &name : std::exchange(withdrawn_, {}))
        if (ops_.withdraw != nullptr)
            timed(plugin_, "withdraw", [&] { return ops_.withdraw(self_, name.data(), name.size()); });
    while (Peer *const peer = tidy_list_.pop_front()) {
        const uint8_t flags = reset | (peer->reset_key.first ? from_beginner : 0);
        if (std::exchange(peer->reset_due, false) && (ops_.credit_bytes == 0 || peer->credits >= fabric_head_bytes))
            send(*peer, flags, peer->reset_key.second, nullptr, 0);
        maybe_forget(peer->id);
    }
}

Ref<SharedPiece> Fabric::share(uint32_t count, const void *data, size_t size) {
    return make_ref<Broadcast>(*this, count, data, size);
}

uint32_t Fabric::unproved() const noexcept {
    uint32_t count = 0;
    for (const auto &[id, peer] : peers_)
        for (const auto &[key, session] : peer.sessions) count += !key.first && !session->session_->proved();
    return count;
}

// Sessions that nobody has used for a while end. Without sessions nothing is to be done.
void Fabric::tick() noexcept {
    if (session_count_ == 0) return timer_.reset();
    const int64_t now = now_ns();
    for (auto &[id, peer] : peers_)
        for (auto &[key, fabric_session] : peer.sessions) {
            Session &session = *fabric_session->session_;
            session.look_at_clock(now);
            if (session.proved() && session.stream_count() == 0 &&
                now - session.idle_since() > (key.first ? idle_ns : idle_other_ns))
                session.end_when_idle();
        }
}

Status Fabric::send(Peer &peer, uint8_t flags, uint32_t generation, const void *data, size_t size) noexcept {
    unsigned char head[fabric_head_bytes];
    put_head(head, flags, generation);
    const muster_span spans[2] = {{head, fabric_head_bytes}, {data, size}};
    const Status status = timed(plugin_, "send", [&] { return ops_.send(self_, peer.id, spans, size == 0 ? 1 : 2); });
    if (status == MUSTER_OK) charge(peer, fabric_head_bytes + size);
    return status;
}

void Fabric::charge(Peer &peer, uint64_t bytes) const noexcept {
    if (ops_.credit_bytes != 0) peer.credits -= std::min(peer.credits, bytes);
}

void Fabric::reset_later(Peer &peer, SessionKey key) noexcept {
    context_.log(MUSTER_LOG_DEBUG, "%s://: peer %llu means session %u, which is not known", scheme_.c_str(),
                 static_cast<unsigned long long>(peer.id), key.second);
    peer.reset_due = true;
    peer.reset_key = key;
    tidy_later(peer);
}

// Which session a message is for; the first one of a stranger makes one.
void Fabric::message(uint64_t id, const unsigned char *data, size_t size, Loan *loan) {
    Peer &from = peer(id);
    FabricHead head;
    if (!get_head(data, size, head) || (head.flags & to_many)) return strange(from);
    const uint8_t flags = head.flags;
    const SessionKey key{(flags & from_beginner) == 0, head.generation};
    auto found = from.sessions.find(key);
    if (flags & reset) {
        if (found == from.sessions.end()) return tidy_later(from); // it may be unknown altogether
        Session &session = *found->second->session_;
        if (session.proved())
            return session.lost(
                Error::make(MUSTER_E_PEER, "%s: the peer has ended the connection", session.peer().c_str()));
        return session.lost(Error::make(MUSTER_E_UNREACHABLE, "%s: nobody listens there now", session.peer().c_str()));
    }
    Ref<FabricSession> session;
    try {
        session = found != from.sessions.end() ? found->second : meet(from, key, flags);
    } catch (const std::bad_alloc &) {
    }
    if (!session) return reset_later(from, key); // also for want of memory: the dialler need not wait for its time-out
    session->session_->deliver(data + fabric_head_bytes, size - fabric_head_bytes, true, loan);
}

void Fabric::strange(Peer &from) {
    context_.log(MUSTER_LOG_WARN, "%s://: a message of peer %llu that is not Muster's", scheme_.c_str(),
                 static_cast<unsigned long long>(from.id));
    tidy_later(from);
}

void Fabric::message_multicast(uint64_t id, const unsigned char *data, size_t size, uint32_t index, uint32_t count,
                               Loan *loan) {
    Peer &from = peer(id);
    FabricHead head;
    const size_t before = fabric_head_bytes + size_t{count} * share_bytes;
    if (!get_head(data, size, head) || head.flags != to_many || index >= count || size <= before) return strange(from);
    const FabricShare share = get_share(data + fabric_head_bytes + size_t{index} * share_bytes);
    const SessionKey key{!share.from_beginner, share.generation};
    const auto found = from.sessions.find(key);
    if (found == from.sessions.end()) return reset_later(from, key);
    Ref<Session>(found->second->session_)->deliver_to(share.stream, data + before, size - before, loan);
}

// A session that the peer begins; none if it may not.
Ref<FabricSession> Fabric::meet(Peer &from, SessionKey key, uint8_t flags) {
    if (key.first || !(flags & first) || closing_ || services_.empty() ||
        unproved() >= context_.settings.max_unauthenticated)
        return {};
    const auto begun = std::count_if(from.sessions.begin(), from.sessions.end(),
                                     [](const auto &session) { return !session.first.first; });
    if (begun >= sessions_max) return {};
    const bool open_service = std::any_of(services_.begin(), services_.end(),
                                          [](const auto &service) { return !service.second->wanted_.auth; });
    SessionConfig config = config_for(from);
    config.auth = !(flags & without_proof) || !open_service;
    config.upgrade = introduces() && (context_.settings.flags & MUSTER_CONTEXT_NO_UPGRADE) == 0;
    config.direct = std::any_of(services_.begin(), services_.end(), [](const auto &service) {
        return !service.second->wanted_.direct.empty() && service.second->wanted_.direct != "no";
    });
    config.seal = services_.begin()->second->wanted_.seal;
    config.peer = scheme_ + "://peer-" + std::to_string(from.id);
    Ref<FabricSession> session = add_session(from, key, std::move(config));
    session->session_->start();
    return session;
}

// ---- the end
// ---------------------------------------------------------------------------------------------------------

bool Fabric::context_drained() noexcept {
    bool all = true;
    for (auto &[id, peer] : peers_) {
        for (auto &[key, session] : peer.sessions) session->session_->wind_down();
        all = all && peer.sessions.empty();
    }
    return all;
}

void Fabric::context_closes() noexcept {
    closing_ = true;
    while (!services_.empty()) Ref<FabricListener>(services_.begin()->second)->withdraw();
    for (auto &[ticket, dialing] : std::exchange(dialing_, {}))
        dialing.dial->done(
            Error::make(MUSTER_E_CLOSED, "dial %s: the context is closed", dialing.address.full.c_str()));
    for (auto &[question, publishing] : std::exchange(publishing_, {}))
        end_publishing(*publishing, Error::make(MUSTER_E_CLOSED, "the context is closed"));
    for (auto &[id, peer] : peers_)
        for (auto &[key, session] : peer.sessions) session->session_->end_when_idle();
}

void Fabric::context_stops() noexcept {
    if (state_ == State::stopped) return;
    context_closes();
    while (!peers_.empty()) {
        Peer &peer = peers_.begin()->second;
        if (peer.sessions.empty()) {
            maybe_forget(peer.id);
            continue;
        }
        const Ref<FabricSession> session = peer.sessions.begin()->second;
        session->session_->end_now(Error::make(MUSTER_E_CLOSED, "the context is closed"));
    }
    timer_.reset();
    state_ = State::stopped;
    timed(plugin_, "stop", [&] { return ops_.stop(self_); });
}

// ---- a session
// -------------------------------------------------------------------------------------------------------

FabricSession::FabricSession(Fabric &fabric, uint64_t peer, std::pair<bool, uint32_t> key, SessionConfig config)
    : fabric_(&fabric), peer_(peer), key_(key), auth_(config.auth), seal_(config.seal), upgrade_(config.upgrade) {
    session_ = make_ref<Session>(fabric.context_, *fabric.plugin_.plugins().pool, Ref<Channel>(this),
                                 static_cast<SessionOwner &>(*this), std::move(config));
}

size_t FabricSession::room() noexcept {
    const Fabric::Peer &peer = fabric_->peer(peer_);
    if (peer.blocked) return 0;
    const size_t most = fabric_->message_bytes_ - fabric_head_bytes;
    if (fabric_->ops_.credit_bytes == 0) return most;
    // Crumbs of credit are gathered first: small messages cost as much as large ones.
    if (peer.credits < std::min<uint64_t>(fabric_->message_bytes_, 1024)) return 0;
    return std::min<uint64_t>(most, peer.credits - fabric_head_bytes);
}

uint8_t FabricSession::flags() const noexcept {
    uint8_t flags = key_.first ? from_beginner : 0;
    if (key_.first && !begun_) flags |= first;
    if (key_.first && !auth_) flags |= without_proof;
    return flags;
}

void FabricSession::sent(Status status) noexcept {
    if (status == MUSTER_OK) begun_ = true;
    if (status == MUSTER_AGAIN) fabric_->peer(peer_).blocked = true;
}

Status FabricSession::send(const void *data, size_t size, size_t &taken) noexcept {
    const Status status = fabric_->send(fabric_->peer(peer_), flags(), key_.second, data, size);
    if (status == MUSTER_OK) taken = size;
    sent(status);
    return status;
}

size_t FabricSession::headroom() const noexcept {
    return fabric_->ops_.send_buffer == nullptr ? 0 : fabric_->ops_.headroom_bytes + fabric_head_bytes;
}

Status FabricSession::send_buffer(void *segment, size_t offset, size_t size) noexcept {
    if (fabric_->ops_.send_buffer == nullptr) return MUSTER_E_UNSUPPORTED;
    Fabric::Peer &peer = fabric_->peer(peer_);
    put_head(static_cast<unsigned char *>(segment) + offset - fabric_head_bytes, flags(), key_.second);
    const Status status = timed(fabric_->plugin_, "send_buffer", [&] {
        return fabric_->ops_.send_buffer(fabric_->self_, peer_, segment, offset - fabric_head_bytes,
                                         fabric_head_bytes + size);
    });
    if (status == MUSTER_OK) fabric_->charge(peer, fabric_head_bytes + size);
    sent(status);
    return status;
}

Status FabricSession::poll() noexcept {
    if (fabric_->state_ != Fabric::State::started) return MUSTER_TIMEOUT;
    return timed(fabric_->plugin_, "poll", [&] { return fabric_->ops_.poll(fabric_->self_); });
}

bool FabricSession::polls() const noexcept {
    return fabric_->ops_.poll != nullptr;
}

void FabricSession::proved() noexcept {
    Fabric::Peer &peer = fabric_->peer(peer_);
    if (std::exchange(peer.proved, true) || fabric_->ops_.authenticated == nullptr) return;
    timed(fabric_->plugin_, "authenticated", [&] { return fabric_->ops_.authenticated(fabric_->self_, peer_); });
}

// One segment for each peer, whichever session brought it: none through a second one while there is one, or will be.
bool FabricSession::can_pair() const noexcept {
    const Fabric::Peer &peer = fabric_->peer(peer_);
    return fabric_->ops_.segment_shared != nullptr && !peer.segment &&
           std::none_of(peer.sessions.begin(), peer.sessions.end(), [this](const auto &other) {
               return other.second.get() != this && other.second->session_->pairing();
           });
}

void FabricSession::paired(Ref<SharedSegment> segment, Status status) noexcept {
    Fabric::Peer &peer = fabric_->peer(peer_);
    if (peer.segment) return; // in use
    peer.segment = std::move(segment);
    if (fabric_->ops_.segment_shared != nullptr)
        timed(fabric_->plugin_, "segment_shared", [&] {
            return fabric_->ops_.segment_shared(fabric_->self_, peer_, peer.segment ? &peer.segment->table() : nullptr,
                                                status);
        });
}

void FabricSession::close(bool orderly) noexcept {
    if (orderly || fabric_->state_ != Fabric::State::started) return;
    Fabric::Peer &peer = fabric_->peer(peer_);
    if (peer.blocked || (fabric_->ops_.credit_bytes != 0 && peer.credits < fabric_head_bytes)) return;
    fabric_->send(peer, reset | (key_.first ? from_beginner : 0), key_.second, nullptr, 0);
}

MulticastGroup *FabricSession::multicast_group() noexcept {
    // Small messages would be full of the shares.
    return fabric_->ops_.send_multicast != nullptr && fabric_->message_bytes_ >= MulticastGroup::min_bytes
               ? fabric_.get()
               : nullptr;
}

SessionListener FabricSession::session_listener(Session &, std::string_view service) {
    const auto found = fabric_->services_.find(std::string(service));
    if (found == fabric_->services_.end()) return {};
    const FabricListener &listener = *found->second;
    if (listener.wanted_.auth != auth_) return {{}, 0, {}, MUSTER_E_AUTH, "auth=none must be written on both sides"};
    return {listener.core_, listener.options_.window_bytes, listener.options_.greeting};
}

std::string FabricSession::session_elsewhere(Session &session, std::string_view service) {
    const auto found = fabric_->services_.find(std::string(service));
    if (found == fabric_->services_.end() || found->second->wanted_.auth != auth_) return {};
    return found->second->elsewhere(session.near());
}

void FabricSession::session_over(Session &, const Error &why) {
    const Ref<FabricSession> alive(this);
    if (std::exchange(over_, true)) return;
    fabric_->context_.log(MUSTER_LOG_INFO, "%s", why.message);
    if (fabric_->peer(peer_).sessions.erase(key_) != 0) fabric_->session_count_--;
    session_.reset();
    fabric_->maybe_forget(peer_);
}

// ---- the host table
// --------------------------------------------------------------------------------------------------

struct FabricHost {
    static Fabric &of(muster_endpoint *endpoint) noexcept { return *reinterpret_cast<Fabric *>(endpoint); }

    static void resolved(muster_endpoint *endpoint, uint64_t question, Status status, uint64_t peer, const char *text,
                         uint64_t text_bytes) {
        boundary([&]() -> Status {
            of(endpoint).resolved(question, status == MUSTER_AGAIN ? MUSTER_E_PLUGIN : status, peer,
                                  text != nullptr ? text : "", text != nullptr ? text_bytes : 0);
            return MUSTER_OK;
        });
    }

    static void published(muster_endpoint *endpoint, uint64_t question, Status status, const char *text,
                          uint64_t text_bytes) {
        boundary([&]() -> Status {
            of(endpoint).published(question, status == MUSTER_AGAIN ? MUSTER_E_PLUGIN : status,
                                   text != nullptr ? text : "", text != nullptr ? text_bytes : 0);
            return MUSTER_OK;
        });
    }

    static void peer_flags(muster_endpoint *endpoint, uint64_t id, uint32_t flags) {
        boundary([&]() -> Status {
            of(endpoint).peer(id).flags = flags;
            return MUSTER_OK;
        });
    }

    static void message(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes) {
        Fabric &fabric = of(endpoint);
        if (fabric.state_ != Fabric::State::started) return;
        boundary([&]() -> Status {
            fabric.message(peer, static_cast<const unsigned char *>(data), size_bytes, nullptr);
            return MUSTER_OK;
        });
    }

    // Calls with the loan, if there is one. Without memory to keep track of it the bytes are copied, as if they were
    // not lent.
    template <class Take>
    static void with_loan(Fabric &fabric, const muster_loan *loan, const Take &take) {
        SegmentPool &pool = *fabric.plugin_.plugins().pool;
        const auto kept = Ref<Loan>::adopt(loan == nullptr ? nullptr : new (std::nothrow) Loan(*loan, pool));
        if (fabric.state_ == Fabric::State::started)
            boundary([&]() -> Status {
                take(kept.get());
                return MUSTER_OK;
            });
        if (kept || loan == nullptr) return;
        if (loan->release != nullptr)
            loan->release(loan->memory, loan->hint);
        else
            pool.give(loan->memory);
    }

    static void message_lent(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes,
                             const muster_loan *loan) {
        with_loan(of(endpoint), loan, [&](Loan *kept) {
            of(endpoint).message(peer, static_cast<const unsigned char *>(data), size_bytes, kept);
        });
    }

    static void message_multicast(muster_endpoint *endpoint, uint64_t peer, const void *data, uint64_t size_bytes,
                                  uint32_t index, uint32_t count, const muster_loan *loan) {
        with_loan(of(endpoint), loan, [&](Loan *kept) {
            const auto *const bytes = static_cast<const unsigned char *>(data);
            of(endpoint).message_multicast(peer, bytes, size_bytes, index, count, kept);
        });
    }

    template <class Visit>
    static void each_session(Fabric &fabric, uint64_t id, const Visit &visit) noexcept {
        const auto visit_peer = [&](Fabric::Peer &peer) {
            for (auto &[key, session] : peer.sessions) visit(peer, *session->session_);
        };
        if (id != UINT64_MAX) {
            const auto found = fabric.peers_.find(id);
            if (found != fabric.peers_.end()) visit_peer(found->second);
            return;
        }
        for (auto &[number, peer] : fabric.peers_) visit_peer(peer);
    }

    static void credit(muster_endpoint *endpoint, uint64_t id, uint64_t bytes) {
        const auto found = of(endpoint).peers_.find(id);
        if (found == of(endpoint).peers_.end()) return;
        found->second.credits = std::min(found->second.credits + std::min(bytes, most_credit), most_credit);
        each_session(of(endpoint), id, [](Fabric::Peer &, Session &session) { session.writable(); });
    }

    static void ready(muster_endpoint *endpoint, uint64_t id) {
        each_session(of(endpoint), id, [](Fabric::Peer &peer, Session &session) {
            peer.blocked = false;
            session.writable();
        });
    }

    static void peer_lost(muster_endpoint *endpoint, uint64_t id, Status status, int32_t os_errno, const char *text,
                          uint64_t text_bytes) {
        if (id == UINT64_MAX) return;
        boundary([&]() -> Status {
            of(endpoint).tidy_later(of(endpoint).peer(id)); // also one nobody has heard of: forget follows
            return MUSTER_OK;
        });
        each_session(of(endpoint), id, [&](Fabric::Peer &, Session &session) {
            const int length = text != nullptr ? static_cast<int>(std::min<uint64_t>(text_bytes, 200)) : 0;
            Error why = Error::make(status < 0 ? status : MUSTER_E_PEER, "%s: %.*s", session.peer().c_str(),
                                    length != 0 ? length : 100, length != 0 ? text : "the peer is gone");
            why.os_errno = os_errno;
            session.lost(why);
        });
    }

    static Status share_segment_with_peer(muster_endpoint *endpoint, uint64_t id, uint64_t size_bytes) {
        Status status = MUSTER_E_AUTH;
        each_session(of(endpoint), id, [&](Fabric::Peer &peer, Session &session) {
            if (peer.segment || session.pairing()) status = MUSTER_E_BUSY;
        });
        each_session(of(endpoint), id, [&](Fabric::Peer &, Session &session) {
            if (status == MUSTER_E_AUTH) status = session.pair(size_bytes);
        });
        return id == UINT64_MAX ? MUSTER_E_ARG : status;
    }
};

void Fabric::fill(muster_host &table) noexcept {
    table.resolved = FabricHost::resolved;
    table.published = FabricHost::published;
    table.peer_flags = FabricHost::peer_flags;
    table.message = FabricHost::message;
    table.message_multicast = FabricHost::message_multicast;
    table.credit = FabricHost::credit;
    table.ready = FabricHost::ready;
    table.peer_lost = FabricHost::peer_lost;
    table.share_segment_with_peer = FabricHost::share_segment_with_peer;
    table.message_lent = FabricHost::message_lent;
}

} // namespace muster
