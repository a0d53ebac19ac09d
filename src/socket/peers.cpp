// SPDX-License-Identifier: MIT
// The tables of a socket: peers by id and by address, the end of a peer, and events.
#include "socket/socket.hpp"

#include "base/text.hpp"
#include "base/trace.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr size_t max_events = 1024;
constexpr size_t max_lost = 65536;
constexpr size_t max_learned = 65536; // sources behind one peer

void erase(std::vector<Ref<SocketPeer>> &from, const SocketPeer &peer) noexcept {
    const auto at = std::find_if(from.begin(), from.end(), [&](const auto &one) { return one.get() == &peer; });
    if (at != from.end()) from.erase(at);
}
} // namespace

Ref<SocketPeer> Socket::find_peer(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = peers_.find(id);
    return found == peers_.end() ? Ref<SocketPeer>() : found->second;
}

// Under the lock. Nothing has changed if memory runs out.
void Socket::add_route(SocketPeer &peer) {
    live_.reserve(live_.size() + 1);
    std::vector<Ref<SocketPeer>> &route = routes_[peer.hello.address]; // an empty one is no route
    route.emplace_back(&peer);
    live_.emplace_back(&peer);
    lost_.erase(peer.hello.address);
}

bool Socket::has_route(uint64_t address) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = routes_.find(address);
    return found != routes_.end() && !found->second.empty();
}

// Under the lock. Messages that waited for this peer are the first ones of its queue.
void Socket::take_unrouted(SocketPeer &peer) noexcept {
    const std::lock_guard hold(peer.out_lock);
    for (auto at = unrouted_.begin(); at != unrouted_.end();) {
        const auto next = std::next(at);
        const bool is_for_this = settings.hello.kind == MUSTER_SOCKET_DEALER || at->next_hop == peer.hello.address;
        if (is_for_this) {
            unrouted_bytes_ -= at->bytes();
            peer.out_bytes += at->bytes();
            peer.out.splice(peer.out.end(), unrouted_, at);
        }
        at = next;
    }
}

// Under the lock.
void Socket::remove_routes(SocketPeer &peer) noexcept {
    erase(live_, peer);
    const auto remove = [&](uint64_t address) {
        const auto found = routes_.find(address);
        if (found == routes_.end()) return;
        erase(found->second, peer);
        if (found->second.empty()) routes_.erase(found);
    };
    for (const uint64_t source : peer.learned) remove(source);
    peer.learned.clear();
    remove(peer.hello.address);
    if (routes_.count(peer.hello.address) != 0) return;
    try {
        if (!lost_.insert(peer.hello.address).second) return;
        lost_order_.push_back(peer.hello.address);
        if (lost_order_.size() <= max_lost) return;
        lost_.erase(lost_order_.front());
        lost_order_.pop_front();
    } catch (const std::bad_alloc &) { // the address is then treated as one that never connected
    }
}

// Under the lock. A message from an address behind this peer: answers to it go there.
void Socket::learn(SocketPeer &peer, uint64_t source) {
    if (source == 0 || source == peer.hello.address || peer.learned.size() >= max_learned) return;
    std::vector<Ref<SocketPeer>> &route = routes_[source]; // an empty one is no route
    if (!route.empty() && route.back().get() == &peer) return;
    if (!route.empty() && route.back()->hello.address == source) return; // the address of a peer itself
    peer.learned.reserve(peer.learned.size() + 1);
    route.emplace_back(&peer);
    peer.learned.push_back(source);
}

// Nothing is written to this peer any more. Messages that have not left are returned; a dealer sends those that it has
// not begun to the next peer. `event_kind`: 0 if the socket itself has ended.
void Socket::end_output(SocketPeer &peer, uint32_t event_kind, const char *why) noexcept {
    std::list<Outgoing> left;
    Connection *again = nullptr;
    Ref<SocketPeer> next;
    uint64_t returned = 0;
    const bool ended = event_kind == 0;
    {
        const std::lock_guard hold(lock_);
        const std::lock_guard hold_peer(peer.out_lock);
        if (std::exchange(peer.out_ended, true)) return;
        left.swap(peer.out);
        peer.out_bytes = 0;
        stats_.messages_out += peer.messages_out;
        stats_.bytes_out += peer.bytes_out;
        if (!ended) peer.abandon_loans(); // otherwise the peer reads what was sent
        remove_routes(peer);
        stats_.connections_lost++;
        if (!ended && !ended_) again = peer.connection;
        if (!ended && settings.hello.kind == MUSTER_SOCKET_DEALER) {
            // The first one may be begun.
            const auto first = !left.empty() && left.front().is_begun() ? std::next(left.begin()) : left.begin();
            for (auto at = first; at != left.end(); ++at) {
                unrouted_bytes_ += at->bytes();
                at->forget_head();
            }
            unrouted_.splice(unrouted_.begin(), left, first, left.end());
            if (!live_.empty() && !unrouted_.empty()) { // another peer takes them at once
                next = live_[turn_at_++ % live_.size()];
                take_unrouted(*next);
            }
        }
    }
    if (next) flush(*next);
    returned = left.size();
    for (Outgoing &outgoing : left) undelivered(std::move(outgoing), ended ? MUSTER_E_CLOSED : MUSTER_E_PEER);
    if (!ended) report(event_kind, peer.hello, returned, why);
    if (again != nullptr) dial_later(*again);
    made_room();
}

// Everything that the peer sent was read, or its messages are malformed.
void Socket::end_input(SocketPeer &peer) noexcept {
    const Ref<SocketPeer> alive(&peer);
    end_output(peer, MUSTER_SOCKET_LOST, "the peer has finished");
    const std::lock_guard hold(lock_);
    peer.in_ended = true;
    peers_.erase(peer.id);
}

void Socket::undelivered(Outgoing &&outgoing, Status why) noexcept {
    {
        const std::lock_guard hold(lock_);
        stats_.undelivered++;
    }
    if (!outgoing.has_slot) return;
    Entry entry;
    entry.completion.kind = MUSTER_DONE_MESSAGE;
    entry.completion.status = why;
    entry.completion.tag = settings.tag;
    entry.completion.bytes = outgoing.message->header.destination;
    entry.completion.object = wrap(outgoing.message.get());
    entry.error = Error::from_status(why);
    entry.object = std::move(outgoing.message);
    settings.queue->complete(std::move(entry));
}

void Socket::report(uint32_t kind, const PeerHello &peer, uint64_t undelivered, const char *text) noexcept {
    muster_socket_event event{};
    event.kind = kind;
    event.address = peer.address;
    event.incarnation = peer.incarnation;
    event.undelivered = undelivered;
    event.text_bytes = static_cast<uint32_t>(std::min(strlen(text), sizeof event.text - 1));
    memcpy(event.text, text, event.text_bytes);
    make_printable(event.text, event.text_bytes);
    Trace::mark("socket",
                kind == MUSTER_SOCKET_CONNECTED  ? "connected"
                : kind == MUSTER_SOCKET_LOST     ? "lost"
                : kind == MUSTER_SOCKET_REPLACED ? "replaced"
                                                 : "refused",
                {event.text, event.text_bytes});
    {
        const std::lock_guard hold(lock_);
        try {
            events_.push_back(event);
        } catch (const std::bad_alloc &) { // the statistics have its count
        }
        if (events_.size() > max_events) events_.pop_front();
    }
    context_->notify(event_signal_);
    readiness(MUSTER_SOCKET_EVENT);
}

} // namespace muster
