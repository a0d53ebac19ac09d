// SPDX-License-Identifier: MIT
#include "memory/epoch_rounds.hpp"

#include "memory/memory.hpp"

#include <deque>

namespace muster {

namespace {

constexpr int64_t answer_timeout_ns = 5'000'000'000; // a node that is stopped holds up the epoch, not the process
// What a round asks for: {what, first, second}, 8 bytes each. The reply is the epoch of that node.
enum RoundRequest : uint64_t {
    raise_copies = 1, // the epoch is at least `first`, stamps at least `second`
    find_pins = 2,    // OK: no token is pinned before `first`; otherwise AGAIN
    end_round = 3,    // as raise_copies; the lease of the round ends
    exclude = 4       // the locale `first` has ended for another one: disconnect it
};
constexpr size_t request_bytes = 24, reply_bytes = 8;

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
    if (CallThreads::try_add(*this)) return true;
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
    // No token anywhere is pinned later than `epoch` before each node has confirmed that it stamps with more.
    epoch_->raise(epoch, epoch + 1);
    uint64_t found = epoch;
    if (!ask_all(raise_copies, epoch, epoch + 1, found)) return false;
    if (found > epoch) { // a round of another node was faster
        epoch_->raise(found, found);
        return true;
    }
    muster_epoch_attempt attempt{};
    if (!epoch_->scan(epoch, attempt) || !ask_all(find_pins, epoch, 0, found)) return false;
    epoch_->raise(epoch + 1, epoch + 1);
    unsigned char request[request_bytes];
    put_u64(request, end_round);
    put_u64(request + 8, epoch + 1);
    put_u64(request + 16, epoch + 1);
    // This does not wait for the replies: a node that does not get the request learns the epoch in the next round.
    const auto handler = static_cast<uint32_t>(MemoryHandler::epoch);
    for (uint32_t node = 0; node < memory_.nodes.nodes.size(); node++) {
        if (node == memory_.nodes.own) continue;
        for (const uint32_t locale : memory_.nodes.nodes[node]) {
            const auto begun = memory_.remote().am().begin(
                {memory_.remote().peer_of(locale), handler, request, sizeof request, nullptr, 0}, nullptr, 0);
            if (begun && begun.status() == MUSTER_OK) break;
        }
    }
    return true;
}

// Asks every other node, by its first locale that has not ended. False: one has not answered with OK. `out_epoch` grows
// to the largest epoch of a node.
bool EpochRounds::ask_all(uint32_t what, uint64_t first, uint64_t second, uint64_t &out_epoch) {
    RemoteLocales &remote = memory_.remote();
    unsigned char request[request_bytes];
    put_u64(request, what);
    put_u64(request + 8, first);
    put_u64(request + 16, second);
    Deadline deadline(answer_timeout_ns);
    const auto begin = [&](Ask &ask) {
        ask.started = remote.am().start({remote.peer_of(ask.locale), static_cast<uint32_t>(MemoryHandler::epoch),
                                         request, sizeof request, ask.reply, sizeof ask.reply},
                                        deadline);
    };
    std::deque<Ask> asked; // the replies stay where they are
    for (uint32_t node = 0; node < memory_.nodes.nodes.size(); node++) {
        if (node == memory_.nodes.own) continue;
        asked.emplace_back().locale = memory_.nodes.nodes[node].front();
        begin(asked.back());
    }
    bool good = true;
    for (Ask &ask : asked) {
        const uint32_t node = memory_.nodes.node_of[ask.locale];
        const std::vector<uint32_t> &locales = memory_.nodes.nodes[node];
        for (size_t next = 1;; next++) {
            const auto outcome = remote.am().finish(ask.started, deadline);
            if (outcome.why.status == MUSTER_OK) {
                if (outcome.bytes == reply_bytes) out_epoch = std::max(out_epoch, get_u64(ask.reply));
                break;
            }
            if (!remote.has_ended(ask.locale, nullptr)) { // pinned, or not in time: this round has failed
                good = false;
                break;
            }
            // Its end may be that of this process: then the others may go on with it.
            if (remote.am().is_closing()) {
                good = false;
                break;
            }
            if (next == locales.size()) { // all locales of the node have ended: none is pinned
                exclude_ended(node);
                break;
            }
            ask.locale = locales[next];
            begin(ask);
        }
    }
    return good;
}

// Once for each locale: those that have disconnected it remember that.
void EpochRounds::exclude_ended(uint32_t node) {
    RemoteLocales &remote = memory_.remote();
    excluded_.resize(memory_.shape.locales);
    Deadline deadline(answer_timeout_ns);
    for (const uint32_t locale : memory_.nodes.nodes[node]) {
        if (excluded_[locale]) continue;
        unsigned char request[request_bytes] = {};
        put_u64(request, exclude);
        put_u64(request + 8, locale);
        std::deque<ActiveMessages::Started> started;
        for (uint32_t other = 0; other < memory_.shape.locales; other++)
            if (!memory_.is_here(other) && memory_.nodes.node_of[other] != node)
                started.push_back(remote.am().start({remote.peer_of(other), static_cast<uint32_t>(MemoryHandler::epoch),
                                                     request, sizeof request, nullptr, 0},
                                                    deadline));
        for (auto &one : started) remote.am().finish(one, deadline);
        excluded_[locale] = true;
    }
}

Status EpochRounds::answer(const unsigned char *data, size_t bytes, unsigned char *reply, size_t &out_bytes) noexcept {
    if (bytes != request_bytes) return MUSTER_E_PROTOCOL;
    const uint64_t what = get_u64(data), first = get_u64(data + 8), second = get_u64(data + 16);
    constexpr uint64_t max_epoch = uint64_t{1} << 62;
    if (what != exclude && (first == 0 || first > max_epoch || second > first + 1)) return MUSTER_E_PROTOCOL;
    Status status = MUSTER_OK;
    switch (what) {
    case raise_copies:
        epoch_->raise(first, second);
        node_.lease_until_ns.store(now_ns() + lease_ns, std::memory_order_relaxed);
        break;
    case find_pins: {
        muster_epoch_attempt attempt{};
        if (!epoch_->scan(first, attempt)) status = MUSTER_AGAIN;
        break;
    }
    case end_round:
        epoch_->raise(first, second);
        node_.lease_until_ns.store(0, std::memory_order_relaxed);
        break;
    case exclude:
        if (first >= memory_.shape.locales) return MUSTER_E_PROTOCOL;
        if (!memory_.is_here(static_cast<uint32_t>(first)))
            memory_.remote().disconnect(static_cast<uint32_t>(first), "another locale cannot reach this one");
        break;
    default:
        return MUSTER_E_PROTOCOL;
    }
    put_u64(reply, epoch_->now());
    out_bytes = reply_bytes;
    return status;
}

} // namespace muster
