// SPDX-License-Identifier: MIT
#include "plugin/fabric.hpp"

#include "plugin/broadcast.hpp"
#include "plugin/fabric_message.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr uint32_t known_fabric_flags = MUSTER_PLUGIN_LOCAL | MUSTER_PLUGIN_SEALS | MUSTER_PLUGIN_OPTIONS |
                                        MUSTER_PLUGIN_UPGRADES | MUSTER_PLUGIN_NEEDS_POLLS;
constexpr size_t headroom_max = 4096;
constexpr int64_t beats_apart_ns = 1'000'000; // of all sessions of a fabric: very many of them beat less often each
constexpr int64_t idle_ns = 10'000'000'000;   // a session without streams ends after so long
// For a session that the peer has begun, a longer time, so that the peer ends it first: it may be about to open a
// stream.
constexpr int64_t idle_other_ns = 3 * idle_ns;
constexpr long sessions_max = 64; // that a peer may have begun at a time
} // namespace

// ---- the transport --------------------------------------------------------------------------------------------------

Result<Ref<Fabric>> Fabric::make(Plugin &plugin, const std::string &scheme, const muster_fabric_ops &ops, void *self) {
    const Result<void> good = check_table(plugin, scheme,
                                          {
                                              {ops.start != nullptr, "start"},
                                              {ops.stop != nullptr, "stop"},
                                              {ops.publish != nullptr, "publish"},
                                              {ops.resolve != nullptr, "resolve"},
                                              {ops.send != nullptr, "send"},
                                              {ops.forget != nullptr, "forget"},
                                          },
                                          ops.flags, known_fabric_flags);
    if (!good) return good.error();
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
    : PluginTransport(plugin, std::move(scheme), self), ops_(ops),
      message_bytes_(ops.message_bytes == 0 ? 256 * 1024 : ops.message_bytes) {}

Result<void> Fabric::ensure_started() {
    return start_once(
        [this](Error &error) { return ops_.start(self_, reinterpret_cast<muster_endpoint *>(this), &error); });
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

// The state of a peer before there is a session.
SessionConfig Fabric::config_for(const Peer &peer) const {
    SessionConfig config;
    config.local = (peer.flags & MUSTER_PLUGIN_LOCAL) != 0;
    config.covered = (peer.flags & MUSTER_PLUGIN_SEALS) != 0;
    return config;
}

void Fabric::dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) {
    Result<SessionAddress> own = session_address(context_, address, upgrades());
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
    const bool upgrade = upgrades() && dialing.address.upgrade;
    const bool elsewhere = upgrade || (upgrades() && dialing.address.direct != "no");
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

// ---- peers ----------------------------------------------------------------------------------------------------------

Fabric::Peer &Fabric::peer(uint64_t id) {
    const auto [found, fresh] = peers_.try_emplace(id);
    if (fresh) {
        found->second.id = id;
        found->second.flags = ops_.flags;
        found->second.credits = ops_.credit_bytes;
        // Generations of an earlier peer with the same number do not occur again.
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
    if (state_ != State::started) return; // no plug-in is left to call
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

// Sessions that were not used for a while end. Without sessions nothing is to be done.
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

// Which session a message is for; the first one of an unknown session makes one.
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
        return session.lost(Error::make(MUSTER_E_UNREACHABLE, "%s: no listener there now", session.peer().c_str()));
    }
    Ref<FabricSession> session;
    try {
        session = found != from.sessions.end() ? found->second : meet(from, key, flags);
    } catch (const std::bad_alloc &) {
    }
    if (!session) return reset_later(from, key); // also if memory runs out: the dialler need not wait for its time-out
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
    config.upgrade = upgrades() && (context_.settings.flags & MUSTER_CONTEXT_NO_UPGRADE) == 0;
    config.direct = std::any_of(services_.begin(), services_.end(), [](const auto &service) {
        return !service.second->wanted_.direct.empty() && service.second->wanted_.direct != "no";
    });
    config.seal = services_.begin()->second->wanted_.seal;
    config.peer = scheme_ + "://peer-" + std::to_string(from.id);
    Ref<FabricSession> session = add_session(from, key, std::move(config));
    session->session_->start();
    return session;
}

// ---- the end --------------------------------------------------------------------------------------------------------

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

} // namespace muster
