// SPDX-License-Identifier: MIT
// The side of a receiver. Senders have proved the secret; the contents of their messages are checked all the same.
#include "cluster/broadcast/broadcast.hpp"

#include "base/codec.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr size_t max_inflows = 1024, max_remembered = 4096;
constexpr int64_t head_ns = 10'000'000'000;   // for the header
constexpr int64_t orphan_ns = 10'000'000'000; // maximum time without a sender
constexpr int64_t progress_ns = 250'000'000;  // between two delivery statuses to the origin
constexpr int turns = 16;

} // namespace

void Broadcasts::report(BroadcastKey key, uint32_t about, const Error &why) {
    try {
        ControlMessage message;
        message.kind = ControlMessage::delivery_status;
        message.member = key.origin;
        message.number = key.number;
        message.status = why.status;
        ByteWriter(message.text).number(about).bytes(why.message);
        cluster_.send_control(key.origin, message);
    } catch (const std::bad_alloc &) { // the origin would wait for it: the end of the link reports it
        cluster_.set_subject_link(key.origin);
        throw;
    }
}

bool Broadcasts::is_known(BroadcastKey key) {
    return seen_.count(key) != 0;
}

// Bounds the memory that a peer can make this process allocate by an announced size.
Result<void> Broadcasts::check_room(uint64_t size) {
    const uint64_t waiting = arriving_bytes_ + cluster_.untaken_bytes();
    if (size <= max_waiting_ && waiting <= max_waiting_ - size) return {};
    return Error::make(MUSTER_E_LIMIT, "%llu bytes, and %llu wait to be taken: at most %llu",
                       static_cast<unsigned long long>(size), static_cast<unsigned long long>(waiting),
                       static_cast<unsigned long long>(max_waiting_));
}

// ---- by a stream ----------------------------------------------------------------------------------------------------

void Broadcasts::take_stream(uint32_t from, StreamHandle stream) {
    if (inflows_.size() == max_inflows) return;
    const uint64_t id = cluster_.numbers_ + 1;
    cluster_.on_completion([this, id](const muster_completion &, const Error &) { read(id); });
    Inflow &inflow = inflows_[id];
    inflow.from = from;
    inflow.stream = std::move(stream);
    inflow.since_ns = now_ns();
    inflow.stream.watch(MUSTER_STREAM_READABLE, *cluster_.completions_, id);
    keep_ticking();
}

void Broadcasts::read(uint64_t id) {
    for (int turn = 0; turn < turns; turn++) {
        const auto found = inflows_.find(id);
        if (found == inflows_.end()) return;
        cluster_.set_subject(Cluster::StepSubject{{}, {}, id, false, UINT32_MAX});
        Inflow &inflow = found->second;
        if (!inflow.key) {
            if (!read_head(id, inflow)) return;
            continue;
        }
        const BroadcastKey key = *inflow.key;
        Arrival &arrival = arrivals_.at(key);
        BroadcastSender &sender = arrival.sender;
        const void *data = nullptr;
        size_t size = 0;
        const Status status = inflow.stream.peek(data, size);
        if (status == MUSTER_AGAIN) return;
        if (status != MUSTER_OK) return inflow_over(id, Error::make(MUSTER_E_PEER, "member %u broke off", inflow.from));
        size = static_cast<size_t>(std::min<uint64_t>(size, sender.head.size - inflow.at));
        const uint64_t end = inflow.at + size;
        Result<void> kept;
        if (end > sender.filled) { // bytes that another sender has already sent are dropped
            const auto had = static_cast<size_t>(sender.filled - inflow.at);
            kept = arrival.bytes->append(static_cast<const unsigned char *>(data) + had, size - had);
        }
        inflow.stream->consume(size);
        if (!kept) {
            report(key, cluster_.self(), Error::make(MUSTER_E_NOMEM, "%s", kept.error().message));
            return drop_arrival(key);
        }
        inflow.at = end;
        if (size == 0) return inflow_over(id, Error::make(MUSTER_E_PROTOCOL, "more than it has announced"));
        const int64_t now = now_ns();
        arrival.moved_ns = now;
        sender.filled = arrival.bytes->filled();
        if (sender.filled == sender.head.size) return arrived(key);
        if (now - arrival.reported_ns >= progress_ns) {
            arrival.reported_ns = now;
            Error goes_on;
            goes_on.status = MUSTER_AGAIN;
            report(key, cluster_.self(), goes_on);
        }
        pump_all(key);
    }
    cluster_.post([this, id] { read(id); });
}

// True: the header is complete, and the bytes follow; or the stream has ended.
bool Broadcasts::read_head(uint64_t id, Inflow &inflow) {
    size_t need = 4;
    if (inflow.head.size() >= 4) need += get_u32(as_bytes(inflow.head));
    if (need > 4 + max_broadcast_head) {
        inflow_over(id, Error::make(MUSTER_E_PROTOCOL, "a head of %zu bytes", need));
        return false;
    }
    if (inflow.head.size() == need && need > 4) {
        auto head = decode_broadcast(std::string_view(inflow.head).substr(4));
        inflow.head.clear();
        return take_head(id, inflow, head ? std::move(*head) : BroadcastHead());
    }
    char piece[4096];
    size_t moved = 0;
    const Status status = inflow.stream.read(piece, std::min(sizeof piece, need - inflow.head.size()), moved);
    inflow.head.append(piece, moved);
    if (moved != 0) return true;
    if (status != MUSTER_AGAIN) inflow_over(id, Error::from_status(MUSTER_E_PEER));
    return false;
}

bool Broadcasts::take_head(uint64_t id, Inflow &inflow, BroadcastHead head) {
    const uint32_t self = cluster_.self();
    const BroadcastKey key = head.key;
    if (head.stations.empty() || head.stations[0][0] != self || key.origin == self) {
        inflow_over(id, Error::make(MUSTER_E_PROTOCOL, "it is not for this member"));
        return false;
    }
    if (is_known(key)) {
        report(key, self, {});
        inflow_over(id, {});
        return false;
    }
    const auto before = arrivals_.find(key);
    if (before != arrivals_.end()) { // from another sender, which replaces the first
        if (before->second.sender.head.size != head.size) {
            inflow_over(id, Error::make(MUSTER_E_PROTOCOL, "it has another size"));
            return false;
        }
        inflow.key = key;
        return true;
    }
    auto room = check_room(head.size);
    auto bytes = room ? BroadcastBytes::make(head.size, true) : Result<Ref<BroadcastBytes>>(room.error());
    if (!bytes) {
        report(key, self, Error::make(room ? MUSTER_E_NOMEM : MUSTER_E_LIMIT, "%s", bytes.error().message));
        inflow_over(id, {});
        return false;
    }
    const std::vector<Station> stations = std::exchange(head.stations, {});
    Arrival &arrival = arrivals_[key];
    arrival.moved_ns = now_ns();
    arrival.bytes = *bytes;
    arrival.sender.shared = *bytes;
    arrival.sender.data = (*bytes)->data();
    arrival.sender.head = std::move(head);
    arriving_bytes_ += arrival.sender.head.size;
    inflow.key = key;
    for (size_t i = 1; i < stations[0].size(); i++) arrival.sender.neighbours.emplace(stations[0][i], InboxAddress());
    const std::vector<Station> rest(stations.begin() + 1, stations.end());
    for (const auto &part : branches(rest, broadcast_fan)) add_flow(arrival.sender, part[0][0], part);
    dial_waiting(arrival.sender);
    for (size_t i = 1; i < stations[0].size(); i++) find_neighbour(key, stations[0][i]);
    const auto still = arrivals_.find(key);
    if (still == arrivals_.end()) return false;
    if (still->second.sender.head.size != 0) return true;
    arrived(key);
    return false;
}

void Broadcasts::find_neighbour(BroadcastKey key, uint32_t member) {
    cluster_.find_inbox(member, [this, key, member](const Error &why, const std::string &inbox) {
        BroadcastSender *const sender = sender_of(key);
        if (sender == nullptr || sender->neighbours.count(member) == 0) return;
        const InboxAddress address = InboxAddress::parse(inbox);
        if (why.status == MUSTER_OK && address.known()) {
            sender->neighbours[member] = address;
            share_memory(*sender);
        } else {
            sender->neighbours.erase(member);
            not_local(key, member);
        }
        forget_if_done(key);
    });
}

bool Broadcasts::has_inflow(BroadcastKey key) const {
    return std::any_of(inflows_.begin(), inflows_.end(), [&](const auto &one) { return one.second.key == key; });
}

void Broadcasts::inflow_over(uint64_t id, const Error &why) {
    const auto found = inflows_.find(id);
    const auto key = found->second.key;
    if (why.status == MUSTER_E_PROTOCOL)
        cluster_.context().log(MUSTER_LOG_WARN, "cluster: a broadcast by member %u: %s", found->second.from,
                               why.message);
    cluster_.drop_handler(id);
    found->second.stream.unwatch();
    inflows_.erase(found);
    if (!key) return;
    if (!has_inflow(*key)) report(*key, cluster_.self(), why);
}

// ---- as memory ------------------------------------------------------------------------------------------------------

void Broadcasts::receive_memory() {
    while (memory_inbox_->take(received_)) {
        try {
            take_memory();
        } catch (const std::bad_alloc &) {
            const BroadcastKey key = key_of_broadcast(received_.head);
            if (is_known(key)) throw; // the host has it
            drop_arrival(key);
            report(key, cluster_.self(), Error::make(MUSTER_E_NOMEM, "out of memory"));
        }
    }
}

void Broadcasts::take_memory() {
    auto head = decode_broadcast(received_.head);
    const uint32_t self = cluster_.self();
    if (!head || !head->stations.empty() || head->key.origin == self) return;
    const BroadcastKey key = head->key;
    if (is_known(key)) return report(key, self, {});
    const auto partly = arrivals_.find(key);
    auto room = partly == arrivals_.end() ? check_room(head->size) : Result<void>();
    if (!room) return report(key, self, room.error());
    auto bytes = BroadcastBytes::take(std::move(received_.memory), head->size);
    if (bytes && partly != arrivals_.end() && partly->second.sender.head.size != head->size)
        bytes = Error::make(MUSTER_E_PROTOCOL, "it has another size");
    if (!bytes) return report(key, self, bytes.error());
    Arrival &arrival = arrivals_[key];
    if (!arrival.bytes) {
        arriving_bytes_ += head->size;
        arrival.sender.head = std::move(*head);
    }
    arrival.bytes = arrival.sender.shared = *bytes;
    arrival.sender.data = (*bytes)->data();
    arrival.sender.filled = (*bytes)->size();
    arrival.sender.sealed = true;
    arrived(key);
}

// ---- whole ----------------------------------------------------------------------------------------------------------

void Broadcasts::arrived(BroadcastKey key) {
    Arrival &arrival = arrivals_.at(key);
    arrival.whole = true;
    arriving_bytes_ -= arrival.sender.head.size;
    seen_order_.push_back(key); // first: a broadcast in seen_ was passed to the host, or is about to be
    try {
        seen_.insert(key);
    } catch (...) {
        seen_order_.pop_back();
        throw;
    }
    if (seen_order_.size() > max_remembered) {
        seen_.erase(seen_order_.front());
        seen_order_.pop_front();
    }
    drop_inflows(key);
    if (!arrival.sender.sealed) arrival.sender.sealed = static_cast<bool>(arrival.bytes->seal());
    const bool taken = cluster_.report_broadcast(key.origin, arrival.sender.head.label, arrival.bytes);
    report(key, cluster_.self(), taken ? Error() : Error::make(MUSTER_E_LIMIT, "too many events wait to be taken"));
    share_memory(arrival.sender);
    pump_all(key);
    forget_if_done(key);
}

void Broadcasts::drop_inflows(BroadcastKey key) {
    for (auto line = inflows_.begin(); line != inflows_.end();) {
        const auto inflow = line++;
        if (inflow->second.key != key) continue;
        cluster_.drop_handler(inflow->first);
        inflow->second.stream.unwatch();
        inflows_.erase(inflow);
    }
}

void Broadcasts::forget_if_done(BroadcastKey key) {
    const auto found = arrivals_.find(key);
    if (found == arrivals_.end() || !found->second.whole) return;
    if (found->second.sender.flows.empty() && found->second.sender.neighbours.empty()) drop_arrival(key);
}

void Broadcasts::drop_arrival(BroadcastKey key) {
    const auto found = arrivals_.find(key);
    if (found == arrivals_.end()) return;
    drop_flows(found->second.sender);
    drop_inflows(key);
    if (found->second.whole)
        found->second.bytes->close_descriptor();
    else
        arriving_bytes_ -= found->second.sender.head.size;
    arrivals_.erase(found);
}

void Broadcasts::receive_over(uint32_t origin, uint64_t number) {
    drop_arrival({origin, number});
}

void Broadcasts::check_arrivals(int64_t now) {
    std::vector<uint64_t> late;
    for (const auto &[id, inflow] : inflows_)
        if (!inflow.key && now - inflow.since_ns > head_ns) late.push_back(id);
    for (const uint64_t id : late) inflow_over(id, Error::make(MUSTER_E_PROTOCOL, "it says nothing"));
    std::vector<BroadcastKey> orphans, all;
    for (const auto &[key, arrival] : arrivals_) {
        if (!arrival.whole && now - arrival.moved_ns > orphan_ns && !has_inflow(key))
            orphans.push_back(key);
        else
            all.push_back(key);
    }
    for (const BroadcastKey &key : orphans) drop_arrival(key);
    for (const BroadcastKey &key : all)
        if (BroadcastSender *const sender = sender_of(key)) {
            hand_over(*sender, true);
            dial_waiting(*sender);
        }
}

} // namespace muster
