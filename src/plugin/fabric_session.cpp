// SPDX-License-Identifier: MIT
// A session with a peer of a fabric, as its channel and its owner.
#include "plugin/fabric.hpp"
#include "plugin/fabric_message.hpp"

#include <algorithm>

namespace muster {

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

bool FabricSession::needs_polls() const noexcept {
    return polls() && (fabric_->ops_.flags & MUSTER_PLUGIN_NEEDS_POLLS) != 0;
}

void FabricSession::proved() noexcept {
    Fabric::Peer &peer = fabric_->peer(peer_);
    if (std::exchange(peer.proved, true) || fabric_->ops_.authenticated == nullptr) return;
    timed(fabric_->plugin_, "authenticated", [&] { return fabric_->ops_.authenticated(fabric_->self_, peer_); });
}

// One segment for each peer, whichever session has made it: none through a second one while there is one, or will be.
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
    return {listener.core_, listener.options_.window_bytes, listener.options_.hello};
}

std::string FabricSession::session_routes(Session &session, std::string_view service) {
    const auto found = fabric_->services_.find(std::string(service));
    if (found == fabric_->services_.end() || found->second->wanted_.auth != auth_) return {};
    return found->second->routes(session.is_same_host());
}

void FabricSession::session_over(Session &, const Error &why) {
    const Ref<FabricSession> alive(this);
    if (std::exchange(over_, true)) return;
    fabric_->context_.log(MUSTER_LOG_INFO, "%s", why.message);
    if (fabric_->peer(peer_).sessions.erase(key_) != 0) fabric_->session_count_--;
    session_.reset();
    fabric_->maybe_forget(peer_);
}

} // namespace muster
