// SPDX-License-Identifier: MIT
// The side of the origin: the routes of the bytes, the reports of members, and the end of the broadcast.
#include "cluster/broadcast/broadcast.hpp"

#include "base/codec.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr int64_t gather_ns = 50'000'000;          // until the members located by then are planned for
constexpr int64_t stands_still_ns = 2'000'000'000; // then the origin itself serves
constexpr int64_t word_ns = 500'000'000;           // a stream broke: the report of its member may be in transit
constexpr uint32_t max_tries = 3;
constexpr size_t copied_at_once = 8 << 20;

} // namespace

// ---- begun ----------------------------------------------------------------------------------------------------------

void Broadcasts::start(const Ref<ClusterBroadcast> &broadcast) {
    ClusterBroadcast &own = *broadcast;
    own.sender.head.key = {cluster_.self(), cluster_.next_number()};
    try {
        if (own.members.empty()) own.members = cluster_.all_members();
        for (const uint32_t member : own.members) own.targets[member].server = cluster_.self();
        own.not_over = own.not_located = own.targets.size();
        own_.emplace(own.sender.head.key, broadcast);
    } catch (const std::bad_alloc &) {
        return own.fail(Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
    set_subject(own);
    if (own.targets.empty()) return end(broadcast, {});
    const BroadcastKey key = own.sender.head.key;
    if (own.sender.deadline_ns != INT64_MAX)
        own.deadline_timer = cluster_.start_timer(own.sender.deadline_ns, [this, broadcast] {
            set_subject(*broadcast);
            broadcast->deadline_timer = {};
            end(broadcast, Error::make(MUSTER_TIMEOUT, "not in time"));
        });
    own.plan_timer = cluster_.start_timer(now_ns() + gather_ns, [this, broadcast] {
        set_subject(*broadcast);
        broadcast->plan_timer = {};
        plan_located(*broadcast);
    });
    keep_ticking();
    for (const auto member : std::vector<uint32_t>(own.members)) {
        if (origin_of(key) == nullptr) return; // all of them are over
        find(broadcast, member);
    }
}

void Broadcasts::find(const Ref<ClusterBroadcast> &broadcast, uint32_t member) {
    ClusterBroadcast::Target &target = broadcast->targets.at(member);
    if (std::exchange(target.asked, true)) return; // named twice
    if (member == cluster_.self()) {
        broadcast->not_located--;
        return settle(*broadcast, member, Error::make(MUSTER_E_ARG, "it is this one"));
    }
    cluster_.find_inbox(member, [this, broadcast, member](const Error &why, const std::string &inbox) {
        located(broadcast, member, why, inbox);
    });
}

void Broadcasts::located(const Ref<ClusterBroadcast> &broadcast, uint32_t member, const Error &why,
                         const std::string &inbox) {
    ClusterBroadcast &own = *broadcast;
    const BroadcastKey key = own.sender.head.key;
    if (origin_of(key) == nullptr) return;
    set_subject(own);
    ClusterBroadcast::Target &target = own.targets.at(member);
    own.not_located--;
    if (why.status < 0) {
        settle(own, member, why);
        if (origin_of(key) == nullptr) return;
    } else {
        target.located = true;
        target.inbox = InboxAddress::parse(inbox);
        target.is_local = memory_inbox_ && memory_inbox_->address().same_host(target.inbox);
    }
    if (own.planned && !target.over) return plan(own, {member}, false);
    if (!own.planned && own.not_located == 0) plan_located(own);
}

void Broadcasts::plan_located(ClusterBroadcast &own) {
    if (std::exchange(own.planned, true)) return;
    cluster_.cancel_timer(own.plan_timer);
    std::vector<uint32_t> members;
    for (const auto &[member, target] : own.targets)
        if (target.located) members.push_back(member);
    plan(own, members, true);
}

// Determines which member sends to which. `first`: no transfer has begun, and there can be a tree.
void Broadcasts::plan(ClusterBroadcast &own, const std::vector<uint32_t> &members, bool first) {
    const Ref<ClusterBroadcast> alive(&own); // it may end meanwhile
    const bool hand_on = cluster_.allows_relays();
    std::vector<std::vector<Station>> parts; // each begins with a station
    std::map<std::string, size_t> hosts;
    bool some_local = false;
    for (const uint32_t member : members) {
        ClusterBroadcast::Target &target = own.targets.at(member);
        if (target.over) continue;
        target.moved_ns = now_ns();
        target.server = cluster_.self();
        if (target.is_local) {
            own.sender.neighbours[member] = target.inbox;
            some_local = true;
            continue;
        }
        size_t place = parts.size();
        if (target.inbox.known() && hand_on) place = hosts.emplace(target.inbox.host_key(), place).first->second;
        if (place == parts.size()) parts.push_back({Station()});
        parts[place][0].push_back(member);
        // The members to which it should have forwarded the bytes stay with it.
        for (size_t i = 1; i < target.below.size(); i++) parts[place].push_back(target.below[i]);
    }
    if (first && hand_on && !star()) {
        std::vector<Station> stations;
        stations.reserve(parts.size());
        for (auto &part : parts) stations.push_back(std::move(part[0]));
        parts = branches(stations, broadcast_fan);
    }
    for (auto &part : parts) give(own, std::move(part));
    if (some_local) prepare_memory(own);
    dial_waiting(own.sender);
}

void Broadcasts::give(ClusterBroadcast &own, std::vector<Station> branch) {
    for (Station &station : branch)
        std::erase_if(station, [&](uint32_t member) { return own.targets.at(member).over; });
    std::erase_if(branch, [](const Station &station) { return station.empty(); });
    const uint32_t member = branch[0][0];
    assign(own, branch);
    own.targets.at(member).below = branch;
    add_flow(own.sender, member, branch);
}

// Records which member serves which, which the served members also learn.
void Broadcasts::assign(ClusterBroadcast &own, const std::vector<Station> &branch) {
    const uint32_t server = branch[0][0];
    for (const uint32_t member : branch[0]) {
        if (member == server) continue;
        own.targets.at(member).server = server;
        own.targets.at(member).below.clear();
    }
    const std::vector<Station> rest(branch.begin() + 1, branch.end());
    for (const auto &part : branches(rest, broadcast_fan)) {
        own.targets.at(part[0][0]).server = server;
        own.targets.at(part[0][0]).below = part;
        assign(own, part);
    }
}

// The origin serves it itself, unless it has tried that often enough.
void Broadcasts::serve(ClusterBroadcast &own, uint32_t member, const Error &why) {
    ClusterBroadcast::Target &target = own.targets.at(member);
    if (target.over) return;
    if (target.tries++ == max_tries) return settle(own, member, why);
    target.is_local = false;
    target.inbox = {}; // by a stream of its own
    own.sender.neighbours.erase(member);
    plan(own, {member}, false);
}

void Broadcasts::server_lost(ClusterBroadcast &own, uint32_t server) {
    std::vector<uint32_t> members;
    for (const auto &[member, target] : own.targets)
        if (!target.over && target.located && target.server == server) members.push_back(member);
    if (!members.empty()) plan(own, members, false);
}

// ---- memory for this host -------------------------------------------------------------------------------------------

void Broadcasts::prepare_memory(ClusterBroadcast &own) {
    const BroadcastKey key = own.sender.head.key;
    if (own.sender.shared) return share_memory(own.sender);
    auto made = BroadcastBytes::make(own.sender.head.size, false);
    if (made) own.sender.shared = std::move(*made);
    cluster_.post([this, key] { copy_some(key); });
}

// Piece by piece: the thread has other work, too.
void Broadcasts::copy_some(BroadcastKey key) {
    ClusterBroadcast *const own = origin_of(key);
    if (own == nullptr) return;
    set_subject(*own);
    BroadcastSender &sender = own->sender;
    Result<void> copied;
    if (!sender.shared) copied = Error::make(MUSTER_E_NOMEM, "no shared memory");
    if (copied) {
        BroadcastBytes &bytes = *sender.shared;
        const auto size = static_cast<size_t>(std::min<uint64_t>(copied_at_once, bytes.size() - bytes.filled()));
        copied = bytes.append(sender.data + bytes.filled(), size);
        if (copied && bytes.filled() < bytes.size()) {
            cluster_.post([this, key] { copy_some(key); });
            return;
        }
    }
    if (copied) copied = sender.shared->seal();
    sender.sealed = static_cast<bool>(copied);
    if (copied) return share_memory(sender);
    sender.shared.reset();
    const auto neighbours = std::exchange(sender.neighbours, {});
    for (const auto &[member, inbox] : neighbours) not_local(key, member);
}

// ---- reports --------------------------------------------------------------------------------------------------------

void Broadcasts::receive_report(uint32_t from, const ControlMessage &message) {
    ByteReader text(message.text);
    ClusterBroadcast *const own = origin_of({cluster_.self(), message.number});
    if (own == nullptr || text.left() < 4) return;
    const auto about = text.number<uint32_t>();
    const auto found = own->targets.find(about);
    const auto reporter = own->targets.find(from);
    if (found == own->targets.end() || reporter == own->targets.end() || found->second.over) return;
    set_subject(*own);
    ClusterBroadcast::Target &target = found->second;
    const Error why = Error::make(message.status, "%.180s", std::string(text.rest()).c_str());
    if (about != from) { // it should have forwarded the bytes to them, and cannot
        if (target.server == from && message.status < 0) serve(*own, about, why);
    } else if (message.status > 0) {
        target.moved_ns = now_ns();
    } else if (message.status == MUSTER_OK || message.status == MUSTER_E_LIMIT || message.status == MUSTER_E_NOMEM) {
        settle(*own, about, why);
    } else if (own->sender.flows.count(about) == 0) {
        serve(*own, about, why);
    }
}

// A target is over: it has the bytes, or will not get them.
void Broadcasts::settle(ClusterBroadcast &own, uint32_t member, const Error &why) {
    const auto found = own.targets.find(member);
    if (found == own.targets.end() || std::exchange(found->second.over, true)) return;
    const Ref<ClusterBroadcast> alive(&own);
    found->second.why = why;
    found->second.moved_ns = now_ns();
    own.not_over--;
    own.sender.neighbours.erase(member);
    if (own.not_over == 0) return end(alive, {});
    const auto flow = own.sender.flows.find(member);
    if (flow != own.sender.flows.end() && why.status != MUSTER_OK) {
        drop(flow->second);
        own.sender.flows.erase(flow);
    }
    if (why.status != MUSTER_OK) server_lost(own, member);
    dial_waiting(own.sender);
}

void Broadcasts::check_progress(ClusterBroadcast &own, int64_t now) {
    std::vector<uint32_t> unserved, broken;
    for (const auto &[member, target] : own.targets) {
        if (target.over || !target.located || target.is_local) continue;
        if (target.server == cluster_.self()) {
            if (now - target.moved_ns > word_ns && own.sender.flows.count(member) == 0) broken.push_back(member);
        } else if (now - std::max(target.moved_ns, own.targets.at(target.server).moved_ns) > stands_still_ns) {
            unserved.push_back(member);
        }
    }
    if (!unserved.empty()) plan(own, unserved, false);
    for (const uint32_t member : broken)
        if (own.not_over != 0) serve(own, member, Error::make(MUSTER_E_PEER, "the connection broke each time"));
    if (own.not_over == 0) return;
    hand_over(own.sender, true);
    dial_waiting(own.sender);
}

// ---- the end --------------------------------------------------------------------------------------------------------

// To members that may still wait for bytes, or forward them.
void Broadcasts::count(size_t &not_over, size_t &all) const noexcept {
    for (const auto &[key, broadcast] : own_) {
        not_over += broadcast->not_over;
        all += broadcast->targets.size();
    }
}

void Broadcasts::send_over(const ClusterBroadcast &own) {
    ControlMessage over;
    over.kind = ControlMessage::broadcast_over;
    over.number = own.sender.head.key.number;
    for (const auto &[member, target] : own.targets) {
        const bool hands_on = target.below.size() > 1 || (!target.below.empty() && target.below[0].size() > 1);
        if (target.located && target.why.status != MUSTER_E_STALE && (!target.over || hands_on))
            cluster_.send_control(member, over);
    }
}

// By value: the table may hold the last reference.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void Broadcasts::end(Ref<ClusterBroadcast> broadcast, const Error &rest) {
    ClusterBroadcast &own = *broadcast;
    const BroadcastKey key = own.sender.head.key;
    if (own_.erase(key) == 0) return;
    cluster_.cancel_timer(own.deadline_timer);
    cluster_.cancel_timer(own.plan_timer);
    try {
        send_over(own);
    } catch (const std::bad_alloc &) { // members that continue detect that they are not served
    }
    for (auto &[member, target] : own.targets)
        if (!target.over) target.why = rest;
    drop_flows(own.sender);
    own.not_over = 0;
    own.end();
}

} // namespace muster
