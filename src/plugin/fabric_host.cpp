// SPDX-License-Identifier: MIT
// The functions of the host table by which a fabric plug-in reports what happened.
#include "base/boundary.hpp"
#include "plugin/fabric.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr uint64_t max_credit = uint64_t{1} << 40;
} // namespace

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

    // Calls with the loan, if there is one. Without memory for its record the bytes are copied, as if they were not
    // lent.
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
        found->second.credits = std::min(found->second.credits + std::min(bytes, max_credit), max_credit);
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
            of(endpoint).tidy_later(of(endpoint).peer(id)); // also an unknown one: forget follows
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
