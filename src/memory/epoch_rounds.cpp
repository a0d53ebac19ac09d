// SPDX-License-Identifier: MIT
#include "memory/epoch_rounds.hpp"

#include "memory/memory.hpp"

#include <deque>

namespace muster {

namespace {

constexpr int64_t answer_timeout_ns = 5'000'000'000; // a node that is stopped holds up the epoch, not the process

} // namespace

void EpochRounds::advance_soon() noexcept {
    // A round may outlive its lease. acq_rel: what a round has written is seen by the next one.
    if (is_busy_.exchange(true, std::memory_order_acq_rel)) return;
    if (!begin_round()) is_busy_.store(false, std::memory_order_release);
}

bool EpochRounds::begin_round() noexcept {
    const int64_t now = now_ns();
    int64_t lease = node_.lease_until_ns.load(std::memory_order_relaxed);
    // relaxed: a lease saves work, and nothing else relies on it.
    if (now < lease || !node_.lease_until_ns.compare_exchange_strong(lease, now + lease_ns, std::memory_order_relaxed))
        return false;
    if (!memory_.try_retain()) return false;
    if (CallThreads::add(*this)) return true;
    node_.lease_until_ns.store(0, std::memory_order_relaxed);
    memory_.release();
    return false;
}

// On a thread of the library.
void EpochRounds::run() noexcept {
    const Ref<Memory> memory = Ref<Memory>::adopt(&memory_); // of advance_soon()
    const Ref<EpochRounds> self(this);
    try {
        round();
    } catch (const std::bad_alloc &) { // a later round
    }
    node_.lease_until_ns.store(0, std::memory_order_relaxed);
    is_busy_.store(false, std::memory_order_release);
}

// True: the epoch has advanced, here or elsewhere.
bool EpochRounds::round() {
    const uint64_t epoch = epoch_->now();
    node_.rounds.fetch_add(1, std::memory_order_relaxed);
    const auto nodes = static_cast<uint32_t>(memory_.nodes.nodes.size());
    RoundRequest ask{RoundRequest::raise_copies, epoch, epoch + 1, memory_.nodes.own, {1, nodes}};
    // No token anywhere is pinned later than `epoch` before each node has confirmed that it stamps with more.
    epoch_->raise(epoch, epoch + 1);
    uint64_t found = epoch;
    if (ask_all(ask, found) != MUSTER_OK) return false;
    if (found > epoch) { // a round of another node was faster
        epoch_->raise(found, found);
        return true;
    }
    muster_epoch_attempt attempt{};
    ask.what = RoundRequest::find_pins, ask.second = 0;
    if (!epoch_->scan(epoch, attempt) || ask_all(ask, found) != MUSTER_OK) return false;
    epoch_->raise(epoch + 1, epoch + 1);
    ask.what = RoundRequest::end_round, ask.first = ask.second = epoch + 1;
    end_all(memory_, ask, fan_out());
    return true;
}

// This does not wait for the replies: a node that does not get the request learns the epoch in the next round.
void EpochRounds::end_all(Memory &memory, RoundRequest what, uint32_t fan_out) {
    for (const RoundRequest::Part &part : what.part.cut(fan_out)) {
        what.part = part;
        bool is_sent = false;
        for (; !is_sent && what.part.first != what.part.end; what.part.first++) {
            unsigned char request[RoundRequest::bytes];
            what.put(request);
            for (const uint32_t locale : memory.nodes.nodes[what.node(memory.nodes)]) {
                const auto begun =
                    memory.remote().am().begin({memory.remote().peer_of(locale), number_of(MemoryHandler::epoch),
                                                request, sizeof request, nullptr, 0},
                                               nullptr, 0);
                is_sent = begun && begun.status() == MUSTER_OK;
                if (is_sent) break;
            }
        }
    }
}

// Asks every node of the part, by its first locale that has not ended. OK: all have answered with OK. `out_epoch` grows
// to the largest epoch of a node.
Status EpochRounds::ask_all(RoundRequest what, uint64_t &out_epoch) {
    Deadline deadline(answer_timeout_ns);
    for (;;) {
        std::deque<Ask> asked; // the replies stay where they are
        for (const RoundRequest::Part &part : what.part.cut(fan_out())) {
            asked.emplace_back().part = part;
            begin_ask(what, asked.back(), deadline);
        }
        Status worst = MUSTER_OK;
        for (Ask &ask : asked) {
            const Status status = finish_ask(what, ask, deadline, out_epoch);
            if (status == MUSTER_E_UNREACHABLE || worst == MUSTER_OK) worst = status;
        }
        if (worst != MUSTER_E_UNREACHABLE || asks_itself_) return worst;
        asks_itself_ = true;
    }
}

void EpochRounds::begin_ask(RoundRequest what, Ask &ask, Deadline &deadline) {
    RemoteLocales &remote = memory_.remote();
    what.part = ask.part;
    unsigned char request[RoundRequest::bytes];
    what.put(request);
    const uint32_t locale = memory_.nodes.nodes[what.node(memory_.nodes)][ask.next];
    ask.started = remote.am().start(
        {remote.peer_of(locale), number_of(MemoryHandler::epoch), request, sizeof request, ask.reply, sizeof ask.reply},
        deadline);
}

// While the first node of the part has ended, the next one is asked for the rest.
Status EpochRounds::finish_ask(RoundRequest what, Ask &ask, Deadline &deadline, uint64_t &out_epoch) {
    RemoteLocales &remote = memory_.remote();
    for (;;) {
        const auto outcome = remote.am().finish(ask.started, deadline);
        if (outcome.why.status == MUSTER_OK) {
            if (outcome.bytes == sizeof ask.reply) out_epoch = std::max(out_epoch, get_u64(ask.reply));
            return MUSTER_OK;
        }
        what.part = ask.part;
        const uint32_t node = what.node(memory_.nodes);
        const std::vector<uint32_t> &locales = memory_.nodes.nodes[node];
        if (!remote.has_ended(locales[ask.next], nullptr)) // pinned, or not in time: this round has failed
            return outcome.why.status == MUSTER_E_UNREACHABLE ? MUSTER_E_UNREACHABLE : MUSTER_AGAIN;
        // Its end may be that of this process: then the others may go on with it.
        if (remote.am().is_closing()) return MUSTER_AGAIN;
        if (++ask.next == locales.size()) { // all locales of the node have ended: none is pinned
            exclude_ended(node);
            ask.next = 0;
            if (++ask.part.first == ask.part.end) return MUSTER_OK;
        }
        begin_ask(what, ask, deadline);
    }
}

// Once for each locale: those that have disconnected it remember that.
void EpochRounds::exclude_ended(uint32_t node) {
    RemoteLocales &remote = memory_.remote();
    excluded_.resize(memory_.shape.locales);
    Deadline deadline(answer_timeout_ns);
    for (const uint32_t locale : memory_.nodes.nodes[node]) {
        if (excluded_[locale]) continue;
        unsigned char request[RoundRequest::bytes];
        RoundRequest{RoundRequest::exclude, locale, 0, 0, {}}.put(request);
        std::deque<ActiveMessages::Started> started;
        for (uint32_t other = 0; other < memory_.shape.locales; other++)
            if (!memory_.is_here(other) && memory_.nodes.node_of[other] != node)
                started.push_back(remote.am().start(
                    {remote.peer_of(other), number_of(MemoryHandler::epoch), request, sizeof request, nullptr, 0},
                    deadline));
        for (auto &one : started) remote.am().finish(one, deadline);
        excluded_[locale] = true;
    }
}

Status EpochRounds::perform(const RoundRequest &what) noexcept {
    constexpr uint64_t max_epoch = uint64_t{1} << 62;
    const bool is_round = what.what == RoundRequest::raise_copies || what.what == RoundRequest::find_pins ||
                          what.what == RoundRequest::end_round;
    if (is_round && (what.first == 0 || what.first > max_epoch || what.second > what.first + 1))
        return MUSTER_E_PROTOCOL;
    switch (what.what) {
    case RoundRequest::raise_copies:
        epoch_->raise(what.first, what.second);
        node_.lease_until_ns.store(now_ns() + lease_ns, std::memory_order_relaxed);
        return MUSTER_OK;
    case RoundRequest::find_pins: {
        muster_epoch_attempt attempt{};
        return epoch_->scan(what.first, attempt) ? MUSTER_OK : MUSTER_AGAIN;
    }
    case RoundRequest::end_round:
        epoch_->raise(what.first, what.second);
        node_.lease_until_ns.store(0, std::memory_order_relaxed);
        return MUSTER_OK;
    case RoundRequest::exclude:
        if (what.first >= memory_.shape.locales) return MUSTER_E_PROTOCOL;
        if (!memory_.is_here(static_cast<uint32_t>(what.first)))
            memory_.remote().exclude(static_cast<uint32_t>(what.first));
        return MUSTER_OK;
    default:
        return MUSTER_E_PROTOCOL;
    }
}

Status EpochRounds::answer(const unsigned char *data, size_t bytes, unsigned char *reply, size_t &out_bytes) noexcept {
    RoundRequest what;
    if (!RoundRequest::get(data, bytes, what)) return MUSTER_E_PROTOCOL;
    const Status status = perform(what);
    put_u64(reply, epoch_->now());
    out_bytes = RoundRequest::reply_bytes;
    return status;
}

bool EpochRounds::relay(AmPeer &peer, uint64_t id, const unsigned char *data, size_t bytes) noexcept {
    RoundRequest what;
    if (!RoundRequest::get(data, bytes, what) || !what.part.fits(memory_.nodes) || what.part.is_one()) return false;
    if (what.node(memory_.nodes) != memory_.nodes.own) return false;
    const Status status = perform(what);
    what.part.first++;
    if (what.what == RoundRequest::end_round && status == MUSTER_OK) {
        try {
            end_all(memory_, what, RoundRequest::fan_out);
        } catch (const std::bad_alloc &) { // they learn the epoch in the next round
        }
    } else if (status == MUSTER_OK) {
        relays_->begin(what, peer, id, epoch_->now());
        return true;
    }
    unsigned char reply[RoundRequest::reply_bytes];
    put_u64(reply, epoch_->now());
    memory_.remote().am().reply(peer, id, status, reply, sizeof reply);
    return true;
}

} // namespace muster
