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
constexpr int64_t group_ns = 1'000'000'000; // streams of a multicast group begin together, or without late ones
constexpr int64_t share_retry_ns = 5'000'000;
constexpr uint64_t piece_bytes = 4 << 20;

// Is the failure permanent, as long as both members exist?
bool final(Status status) noexcept {
    return status < 0 && status != MUSTER_E_PEER && status != MUSTER_E_LIMIT;
}

} // namespace

// ---- streams --------------------------------------------------------------------------------------------------------

void Broadcasts::add_flow(BroadcastSender &sender, uint32_t member, const std::vector<Station> &stations) {
    const auto before = sender.flows.find(member);
    if (before != sender.flows.end()) {
        drop(before->second);
        sender.flows.erase(before);
    }
    BroadcastFlow &flow = sender.flows[member];
    BroadcastHead head = sender.head;
    head.stations = stations;
    const std::string bytes = encode(head);
    ByteWriter(flow.head).number(static_cast<uint32_t>(bytes.size())).bytes(bytes);
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

BroadcastFlow *Broadcasts::flow_of(BroadcastKey key, uint32_t member, uint64_t id) noexcept {
    BroadcastSender *const sender = sender_of(key);
    if (sender == nullptr) return nullptr;
    const auto found = sender->flows.find(member);
    return found == sender->flows.end() || found->second.id != id ? nullptr : &found->second;
}

void Broadcasts::connected(BroadcastKey key, uint32_t member, uint64_t id, StreamHandle stream, const Error &why) {
    BroadcastFlow *const flow = flow_of(key, member, id);
    if (flow == nullptr) return;
    flow->dial.reset();
    if (!stream) return flow_over(key, member, why);
    flow->stream = std::move(stream);
    flow->moved_ns = now_ns();
    flow->watch = cluster_.on_completion(
        [this, key, member, id](const muster_completion &, const Error &) { pump(key, member, id); });
    flow->stream.watch(MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE, *cluster_.completions_, flow->watch);
    muster_stream_stats stats{};
    flow->stream->stats(stats);
    flow->has_group = stats.multicast_group != 0;
    pump(key, member, id);
}

// Writes the header as there is room, and detects the end of the stream; then the bytes follow.
void Broadcasts::pump(BroadcastKey key, uint32_t member, uint64_t id) {
    BroadcastFlow *const flow = flow_of(key, member, id);
    if (flow == nullptr || !flow->stream) return;
    size_t moved = 0;
    if (flow->head_sent < flow->head.size()) {
        const Status status =
            flow->stream.write(flow->head.data() + flow->head_sent, flow->head.size() - flow->head_sent, moved);
        flow->head_sent += moved;
        if (status < 0) return flow_over(key, member, Error::from_status(status));
    }
    char nothing = 0; // the member ends the stream once it has all bytes, and sends none on it
    if (flow->stream.read(&nothing, 1, moved) != MUSTER_AGAIN)
        return flow_over(key, member, Error::from_status(MUSTER_E_PEER));
    hand_over(*sender_of(key), false);
}

// The one way of the bytes into streams, whatever their transport: each stream gets the available bytes after those
// that it got before, and all streams at the same position get them by one call. A transport with multicast groups
// sends them once.
void Broadcasts::hand_over(BroadcastSender &sender, bool ticks) {
    bool more_come = false;
    int64_t oldest = INT64_MAX; // of those that wait for others of their group
    for (const auto &[member, flow] : sender.flows) {
        more_come |= !flow.stream;
        if (flow.stream && flow.has_group && flow.given == 0) oldest = std::min(oldest, flow.moved_ns);
    }
    const bool groups_wait = more_come && (!ticks || now_ns() - oldest < group_ns);
    std::map<std::pair<bool, uint64_t>, std::vector<uint32_t>> places; // with a group, and where
    for (const auto &[member, flow] : sender.flows) {
        const bool is_ready = flow.stream && flow.head_sent == flow.head.size() && flow.given == flow.sent;
        if (!is_ready || flow.given == sender.filled || (groups_wait && flow.has_group && flow.given == 0)) continue;
        places[{flow.has_group, flow.given}].push_back(member);
    }
    for (const auto &[place, members] : places) {
        // Pieces show the progress; a group gets all bytes at once.
        const uint64_t left = sender.filled - place.second;
        give_to_streams(sender, members, place.second, place.first ? left : std::min(left, piece_bytes));
    }
}

void Broadcasts::give_to_streams(BroadcastSender &sender, const std::vector<uint32_t> &members, uint64_t from,
                                 uint64_t size) {
    const BroadcastKey key = sender.head.key;
    std::vector<muster_stream *> streams;
    std::vector<uint64_t> tags;
    for (const uint32_t member : members) {
        BroadcastFlow &flow = sender.flows.at(member);
        streams.push_back(wrap(flow.stream.operator->()));
        tags.push_back(
            cluster_.on_completion([this, key, member, id = flow.id](const muster_completion &done, const Error &why) {
                cluster_.drop_handler(done.tag);
                given_back(key, member, id, done.bytes, why);
            }));
        flow.given = from + size;
    }
    std::vector<Status> statuses(members.size(), MUSTER_E_NOMEM); // if there is no memory to begin
    boundary([&] {
        return write_owned_many(streams.data(), static_cast<uint32_t>(streams.size()), sender.data + from, size,
                                *cluster_.completions_, tags.data(), statuses.data());
    });
    for (size_t i = 0; i < members.size(); i++) {
        if (statuses[i] != MUSTER_AGAIN && statuses[i] != MUSTER_E_NOMEM && statuses[i] != MUSTER_E_BUSY) continue;
        cluster_.drop_handler(tags[i]); // it accepted nothing, and no completion follows; the next tick tries again
        sender.flows.at(members[i]).given = from;
    }
}

// The stream has sent the bytes, or failed.
void Broadcasts::given_back(BroadcastKey key, uint32_t member, uint64_t id, uint64_t size, const Error &why) {
    BroadcastFlow *const flow = flow_of(key, member, id);
    if (flow == nullptr) return;
    flow->sent += size;
    const bool is_whole = flow->sent == flow->given;
    flow->given = flow->sent;
    if (size != 0) flow->moved_ns = now_ns();
    if (ClusterBroadcast *const own = origin_of(key); own != nullptr && size != 0)
        own->targets.at(member).moved_ns = flow->moved_ns;
    if (!is_whole && why.status < 0) return flow_over(key, member, why);
    pump(key, member, id);
}

void Broadcasts::pump_all(BroadcastKey key) {
    const BroadcastSender *const sender = sender_of(key);
    if (sender != nullptr && !sender->flows.empty()) hand_over(*sender_of(key), false);
}

// The stream is over: the member has ended it, or it broke.
void Broadcasts::flow_over(BroadcastKey key, uint32_t member, const Error &why) {
    BroadcastSender &sender = *sender_of(key);
    const auto found = sender.flows.find(member);
    const bool sent = found->second.stream && found->second.given == sender.head.size;
    drop(found->second);
    sender.flows.erase(found);
    ClusterBroadcast *const own = origin_of(key);
    if (own == nullptr) {
        if (!sent) report(key, member, why);
        return forget_if_done(key);
    }
    ClusterBroadcast::Target &target = own->targets.at(member);
    target.moved_ns = now_ns(); // its own report is in transit; if not, a later tick tries again
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
    flow.stream.unwatch();
    // The bytes are not accessed from here on: they belong to the caller.
    if (flow.given != flow.sent) flow.stream->cancel(MUSTER_STREAM_WRITE);
    constexpr std::string_view text = "the broadcast is over";
    flow.stream->abort(0, text);
    flow.stream.reset();
}

void Broadcasts::drop_flows(BroadcastSender &sender) noexcept {
    for (auto &[member, flow] : sender.flows) drop(flow);
    sender.flows.clear();
    sender.neighbours.clear();
}

// ---- memory ---------------------------------------------------------------------------------------------------------

void Broadcasts::share_memory(BroadcastSender &sender) {
    if (!sender.sealed || !memory_inbox_) return;
    const BroadcastHead head = sender.head;
    const std::string bytes = encode(head);
    std::vector<uint32_t> elsewhere;
    bool again = false;
    for (auto neighbour = sender.neighbours.begin(); neighbour != sender.neighbours.end();) {
        const uint32_t member = neighbour->first;
        if (!neighbour->second.known()) { // its inbox is being requested
            ++neighbour;
            continue;
        }
        const Status status = memory_inbox_->put(neighbour->second, bytes, sender.shared->descriptor());
        again |= status == MUSTER_AGAIN;
        if (status < 0) elsewhere.push_back(member);
        neighbour = status == MUSTER_AGAIN ? std::next(neighbour) : sender.neighbours.erase(neighbour);
    }
    if (again && !share_timer_)
        share_timer_ = cluster_.start_timer(now_ns() + share_retry_ns, [this] {
            share_timer_ = {};
            std::vector<BroadcastKey> keys;
            for (const auto &[key, own] : own_) keys.push_back(key);
            for (const auto &[key, arrival] : arrivals_) keys.push_back(key);
            for (const BroadcastKey &key : keys) {
                if (BroadcastSender *const left = sender_of(key); left != nullptr && !left->neighbours.empty())
                    share_memory(*left);
                forget_if_done(key);
            }
        });
    for (const uint32_t member : elsewhere) not_local(head.key, member);
}

// It is not where it seemed to be.
void Broadcasts::not_local(BroadcastKey key, uint32_t member) {
    const Error why = Error::make(MUSTER_E_UNREACHABLE, "it takes no shared memory");
    if (ClusterBroadcast *const own = origin_of(key)) return serve(*own, member, why);
    if (arrivals_.count(key) != 0) report(key, member, why);
}

} // namespace muster
