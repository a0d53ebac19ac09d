// SPDX-License-Identifier: MIT
// Handing the bytes on: by streams, and as memory to members of the same host.
#include "cluster/broadcast/broadcast.hpp"

#include "base/codec.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr size_t max_flows = 16, max_flows_of_star = 4096;
constexpr int64_t stalled_ns = 2'000'000'000; // then it does not count among these
constexpr int64_t dial_ns = 30'000'000'000;
constexpr int64_t fan_ns = 1'000'000'000; // streams of a star begin together, or without those that come later
constexpr int64_t parcel_again_ns = 5'000'000;
constexpr size_t turn_bytes = 4 << 20;

// Does it fail for good, as long as both are there?
bool final(Status status) noexcept {
    return status < 0 && status != MUSTER_E_PEER && status != MUSTER_E_LIMIT;
}

} // namespace

// ---- streams
// ------------------------------------------------------------------------------------------------------------------

void Broadcasts::add_flow(BroadcastSender &sender, uint32_t member, const std::vector<Station> &stations) {
    const auto before = sender.flows.find(member);
    if (before != sender.flows.end()) {
        drop(before->second);
        sender.flows.erase(before);
    }
    BroadcastFlow &flow = sender.flows[member];
    BroadcastHead head = sender.head;
    head.stations = stations;
    const std::string words = encode(head);
    ByteWriter(flow.words).number(static_cast<uint32_t>(words.size())).bytes(words);
    flow.id = cluster_.next_number();
}

void Broadcasts::dial_waiting(BroadcastSender &sender) {
    const BroadcastKey key = sender.head.key;
    const int64_t now = now_ns();
    const size_t most = star() ? max_flows_of_star : max_flows;
    size_t busy = 0;
    std::vector<uint32_t> waiting;
    for (const auto &[member, flow] : sender.flows) {
        if (!flow.dial && !flow.stream)
            waiting.push_back(member);
        else if (flow.sent < sender.head.size && now - flow.moved_ns < stalled_ns)
            busy++;
    }
    for (const uint32_t member : waiting) {
        if (busy != 0 && (busy >= most || !cluster_.has_slot())) return;
        busy++;
        BroadcastSender *const still = sender_of(key); // a dial may fail at once, and end it
        if (still == nullptr) return;
        const auto found = still->flows.find(member);
        if (found == still->flows.end() || found->second.dial || found->second.stream) continue;
        BroadcastFlow &flow = found->second;
        flow.moved_ns = now;
        const int64_t left = still->deadline_ns == INT64_MAX ? dial_ns : std::max<int64_t>(1, still->deadline_ns - now);
        const auto dial = make_ref<ClusterDial>(cluster_.context(), member, std::string(), std::min(left, dial_ns));
        dial->on_done = [this, key, member, id = flow.id](StreamHandle stream, const Error &why) {
            connected(key, member, id, std::move(stream), why);
        };
        flow.dial = dial;
        cluster_.dial_now(dial);
    }
}

void Broadcasts::connected(BroadcastKey key, uint32_t member, uint64_t id, StreamHandle stream, const Error &why) {
    BroadcastSender *const sender = sender_of(key);
    if (sender == nullptr) return;
    const auto found = sender->flows.find(member);
    if (found == sender->flows.end() || found->second.id != id) return;
    BroadcastFlow &flow = found->second;
    flow.dial.reset();
    if (!stream) return flow_over(key, member, why);
    flow.stream = std::move(stream);
    flow.moved_ns = now_ns();
    flow.watch = cluster_.on_completion(
        [this, key, member, id](const muster_completion &, const Error &) { pump(key, member, id); });
    muster_stream_watch(flow.stream.get(), MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE,
                        wrap(&*cluster_.completions_), flow.watch);
    muster_stream_stats stats{};
    const bool whole = origin_of(key) != nullptr && sender->head.size != 0;
    flow.waits_for_fan = whole && star() && muster_stream_get_stats(flow.stream.get(), &stats) == MUSTER_OK &&
                         stats.multicast_group != 0;
    pump(key, member, id);
    if (BroadcastSender *const still = sender_of(key)) hand_over(*still, false);
}

// As much as goes now; a turn at a time, the thread has other work, too.
void Broadcasts::pump(BroadcastKey key, uint32_t member, uint64_t id) {
    BroadcastSender *const sender = sender_of(key);
    if (sender == nullptr) return;
    const auto found = sender->flows.find(member);
    if (found == sender->flows.end() || found->second.id != id || !found->second.stream) return;
    BroadcastFlow &flow = found->second;
    muster_stream *const stream = flow.stream.get();
    Status status = MUSTER_OK;
    size_t moved = 0;
    if (flow.words_sent < flow.words.size()) {
        status = muster_stream_write(stream, flow.words.data() + flow.words_sent, flow.words.size() - flow.words_sent,
                                     0, &moved);
        flow.words_sent += moved;
    }
    const bool direct = !flow.waits_for_fan && !flow.handed_over;
    if (status == MUSTER_OK && direct && flow.sent < sender->filled) {
        const auto size = static_cast<size_t>(std::min<uint64_t>(turn_bytes, sender->filled - flow.sent));
        status = muster_stream_write(stream, sender->data + flow.sent, size, 0, &moved);
        flow.sent += moved;
        if (moved != 0) flow.moved_ns = now_ns();
        if (ClusterBroadcast *const own = origin_of(key); own != nullptr && moved != 0)
            own->targets.at(member).moved_ns = flow.moved_ns;
        if (status == MUSTER_OK && flow.sent < sender->filled)
            cluster_.post([this, key, member, id] { pump(key, member, id); });
    }
    if (status < 0) return flow_over(key, member, Error::from_status(status));
    char nothing = 0; // it ends the stream once it has it all, and says nothing on it
    status = muster_stream_read(stream, &nothing, 1, 0, &moved);
    if (status != MUSTER_AGAIN) flow_over(key, member, Error::from_status(MUSTER_E_PEER));
}

void Broadcasts::pump_all(BroadcastKey key) {
    const BroadcastSender *const sender = sender_of(key);
    if (sender == nullptr || sender->flows.empty()) return;
    std::vector<std::pair<uint32_t, uint64_t>> all;
    for (const auto &[member, flow] : sender->flows) all.emplace_back(member, flow.id);
    for (const auto &[member, id] : all) pump(key, member, id);
}

// In a star one buffer goes to all whose streams are there by now.
void Broadcasts::hand_over(BroadcastSender &sender, bool ticks) {
    const BroadcastKey key = sender.head.key;
    std::vector<uint32_t> members;
    int64_t oldest = INT64_MAX;
    bool more_come = false;
    for (const auto &[member, flow] : sender.flows) {
        more_come |= !flow.stream;
        if (!flow.waits_for_fan || flow.words_sent < flow.words.size()) continue;
        members.push_back(member);
        oldest = std::min(oldest, flow.moved_ns);
    }
    if (members.empty() || (more_come && (!ticks || now_ns() - oldest < fan_ns))) return;
    std::vector<muster_stream *> streams;
    std::vector<uint64_t> tags;
    for (const uint32_t member : members) {
        BroadcastFlow &flow = sender.flows.at(member);
        flow.waits_for_fan = false;
        flow.handed_over = true;
        streams.push_back(flow.stream.get());
        tags.push_back(
            cluster_.on_completion([this, key, member, id = flow.id](const muster_completion &done, const Error &) {
                cluster_.drop_handler(done.tag);
                BroadcastSender *const still = sender_of(key);
                if (still == nullptr) return;
                const auto found = still->flows.find(member);
                if (found == still->flows.end() || found->second.id != id) return;
                found->second.handed_over = false; // what was not taken goes by itself
                found->second.sent = done.bytes;
                pump(key, member, id);
            }));
    }
    std::vector<Status> statuses(members.size());
    muster_stream_write_owned_many(streams.data(), static_cast<uint32_t>(streams.size()), sender.data, sender.head.size,
                                   wrap(&*cluster_.completions_), tags.data(), statuses.data());
    for (size_t i = 0; i < members.size(); i++) {
        if (statuses[i] != MUSTER_AGAIN && statuses[i] != MUSTER_E_NOMEM && statuses[i] != MUSTER_E_BUSY) continue;
        cluster_.drop_handler(tags[i]); // it took nothing, and no release comes
        sender.flows.at(members[i]).handed_over = false;
        cluster_.post([this, key] { pump_all(key); });
    }
}

// The stream is over: the member has ended it, or it broke.
void Broadcasts::flow_over(BroadcastKey key, uint32_t member, const Error &why) {
    BroadcastSender &sender = *sender_of(key);
    const auto found = sender.flows.find(member);
    const bool sent = found->second.stream && found->second.sent == sender.head.size;
    drop(found->second);
    sender.flows.erase(found);
    ClusterBroadcast *const own = origin_of(key);
    if (own == nullptr) {
        if (!sent) report(key, member, why);
        return forget_if_done(key);
    }
    ClusterBroadcast::Target &target = own->targets.at(member);
    target.moved_ns = now_ns(); // its own word is on its way; if not, the next tick but few tries again
    if (!target.over && final(why.status)) return settle(*own, member, why);
    dial_waiting(sender);
}

void Broadcasts::drop(BroadcastFlow &flow) noexcept {
    if (flow.watch != 0) cluster_.drop_handler(flow.watch);
    if (flow.dial) {
        flow.dial->on_done = nullptr;
        const Ref<ClusterDial> dial = std::move(flow.dial);
        dial->fail(Error::make(MUSTER_E_CANCELED, "cancelled"));
        cluster_.end_dial(*dial);
    }
    if (!flow.stream) return;
    muster_stream_watch(flow.stream.get(), 0, nullptr, 0);
    // Nobody looks at the bytes from here on: they are the caller's.
    if (flow.handed_over) muster_stream_cancel(flow.stream.get(), MUSTER_STREAM_WRITE);
    constexpr std::string_view text = "the broadcast is over";
    muster_stream_abort(flow.stream.get(), 0, text.data(), text.size());
    flow.stream.reset();
}

void Broadcasts::drop_flows(BroadcastSender &sender) noexcept {
    for (auto &[member, flow] : sender.flows) drop(flow);
    sender.flows.clear();
    sender.parcels.clear();
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------------

void Broadcasts::hand_out(BroadcastSender &sender) {
    if (!sender.sealed || !memory_inbox_) return;
    const BroadcastHead head = sender.head;
    const std::string words = encode(head);
    std::vector<uint32_t> elsewhere;
    bool again = false;
    for (auto parcel = sender.parcels.begin(); parcel != sender.parcels.end();) {
        const uint32_t member = parcel->first;
        if (!parcel->second.known()) { // it is being asked for
            ++parcel;
            continue;
        }
        const Status status = memory_inbox_->put(parcel->second, words, sender.shared->descriptor());
        again |= status == MUSTER_AGAIN;
        if (status < 0) elsewhere.push_back(member);
        parcel = status == MUSTER_AGAIN ? std::next(parcel) : sender.parcels.erase(parcel);
    }
    if (again && parcel_timer_ == 0)
        parcel_timer_ = cluster_.start_timer(now_ns() + parcel_again_ns, [this] {
            parcel_timer_ = 0;
            std::vector<BroadcastKey> keys;
            for (const auto &[key, own] : own_) keys.push_back(key);
            for (const auto &[key, arrival] : arrivals_) keys.push_back(key);
            for (const BroadcastKey &key : keys) {
                if (BroadcastSender *const left = sender_of(key); left != nullptr && !left->parcels.empty())
                    hand_out(*left);
                forget_if_done(key);
            }
        });
    for (const uint32_t member : elsewhere) not_near(head.key, member);
}

// It is not where it seemed to be.
void Broadcasts::not_near(BroadcastKey key, uint32_t member) {
    const Error why = Error::make(MUSTER_E_UNREACHABLE, "it takes no shared memory");
    if (ClusterBroadcast *const own = origin_of(key)) return serve(*own, member, why);
    if (arrivals_.count(key) != 0) report(key, member, why);
}

} // namespace muster
