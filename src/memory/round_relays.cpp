// SPDX-License-Identifier: MIT
#include "memory/round_relays.hpp"

#include "memory/memory.hpp"

namespace muster {

namespace {
constexpr uint32_t replies_at_once = 4096; // of all relays; more are refused, and their rounds fail
}

Result<Ref<RoundRelays>> RoundRelays::make(Memory &memory) {
    auto replies = Queue::create(memory.group().context(), replies_at_once);
    if (!replies) return replies.error();
    auto made = Ref<RoundRelays>::adopt(new RoundRelays(memory, std::move(*replies)));
    const auto wake = [](void *self) noexcept -> int {
        auto *const relays = static_cast<RoundRelays *>(self);
        relays->turn_task_.post(*relays->context_);
        return 0;
    };
    if (const Status status = made->replies_->set_wake(wake, made.get()); status != MUSTER_OK)
        return Error::from_status(status);
    return made;
}

void RoundRelays::stop() noexcept {
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(stopped_, true)) return;
    }
    replies_->set_wake(nullptr, nullptr);
    replies_->close(); // the places of replies are not used any more
    const std::lock_guard hold(lock_);
    relays_.clear();
}

void RoundRelays::add(Relay &relay, Status status) noexcept {
    if (status == MUSTER_E_UNREACHABLE || relay.worst == MUSTER_OK) relay.worst = status;
}

// Under the lock.
void RoundRelays::end(Relay &relay) noexcept {
    unsigned char reply[RoundRequest::reply_bytes];
    put_u64(reply, relay.epoch);
    memory_.remote().am().reply(*relay.peer, relay.id, relay.worst, reply, sizeof reply);
}

void RoundRelays::begin(const RoundRequest &what, AmPeer &peer, uint64_t id, uint64_t epoch) noexcept {
    const std::lock_guard hold(lock_);
    if (stopped_) return; // the stream to the peer ends
    Relay made;
    made.peer = Ref<AmPeer>(&peer);
    made.id = id, made.epoch = epoch;
    uint32_t number = 0;
    Relay *relay = &made;
    try {
        const std::vector<RoundRequest::Part> parts = what.part.cut(RoundRequest::fan_out);
        made.children.resize(parts.size());
        while (relays_.count(number = next_++) != 0) {
        }
        relay = &relays_.emplace(number, std::move(made)).first->second;
        RemoteLocales &remote = memory_.remote();
        for (uint32_t i = 0; i < parts.size(); i++) {
            Child &child = relay->children[i];
            RoundRequest ask = what;
            ask.part = parts[i];
            unsigned char request[RoundRequest::bytes];
            ask.put(request);
            child.locale = memory_.nodes.nodes[ask.node(memory_.nodes)].front();
            const auto begun = remote.am().begin({remote.peer_of(child.locale), number_of(MemoryHandler::epoch),
                                                  request, sizeof request, child.reply, sizeof child.reply},
                                                 replies_.get(), uint64_t{number} << 32 | i);
            if (begun && begun.status() == MUSTER_OK)
                relay->missing++;
            else
                add(*relay, remote.has_ended(child.locale, nullptr) ? MUSTER_E_UNREACHABLE : MUSTER_AGAIN);
        }
    } catch (const std::bad_alloc &) {
        add(*relay, MUSTER_AGAIN);
    }
    if (relay->missing != 0) return;
    end(*relay);
    // NOLINTNEXTLINE(bugprone-use-after-move): its address only
    if (relay != &made) relays_.erase(number);
}

void RoundRelays::turn() noexcept {
    for (;;) {
        muster_completion entry;
        Error error;
        Deadline once(0);
        const std::lock_guard hold(lock_);
        if (stopped_ || replies_->next(once, &entry, &error) != MUSTER_OK) return; // it is armed again
        const auto found = relays_.find(static_cast<uint32_t>(entry.tag >> 32));
        if (found == relays_.end()) continue;
        Relay &relay = found->second;
        const Child &child = relay.children[static_cast<uint32_t>(entry.tag)];
        if (entry.status == MUSTER_OK)
            relay.epoch = std::max(relay.epoch, get_u64(child.reply));
        else if (entry.status == MUSTER_E_UNREACHABLE || memory_.remote().has_ended(child.locale, nullptr))
            add(relay, MUSTER_E_UNREACHABLE);
        else
            add(relay, MUSTER_AGAIN);
        if (--relay.missing != 0) continue;
        end(relay);
        relays_.erase(found);
    }
}

} // namespace muster
