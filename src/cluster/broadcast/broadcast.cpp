// SPDX-License-Identifier: MIT
// The caller's side of a broadcast, and what a member's broadcasts have in common.
#include "cluster/broadcast/broadcast.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr int64_t tick_ns = 100'000'000;

} // namespace

ClusterBroadcast::ClusterBroadcast(Context &context, std::vector<uint32_t> to, std::string label, const void *data,
                                   uint64_t size, int64_t timeout_ns, Status *out_statuses)
    : QueueOperation(context, MUSTER_DONE_BROADCAST), members(std::move(to)), out_statuses_(out_statuses) {
    sender.head.size = sender.filled = size;
    sender.head.label = std::move(label);
    sender.data = static_cast<const unsigned char *>(data);
    if (timeout_ns >= 0 && timeout_ns <= INT64_MAX - now_ns()) sender.deadline_ns = now_ns() + timeout_ns;
}

void ClusterBroadcast::end_early(Ending why) noexcept {
    is_cancelled_.store(true, std::memory_order_seq_cst);
    const bool closed = why == Ending::queue_closed;
    cluster_->end_broadcast(Ref<ClusterBroadcast>(this), Error::make(closed ? MUSTER_E_CLOSED : MUSTER_E_CANCELED,
                                                                     closed ? "the queue is closed" : "cancelled"));
}

// The bytes and the statuses belong to the host again when the queue is closed: not before the cluster's thread has
// finished with them. That thread waits for no other thread of this process, so it finishes soon.
void ClusterBroadcast::end_operations() noexcept {
    QueueOperation::end_operations();
    block_until_over();
}

void ClusterBroadcast::end() noexcept {
    Error why;
    size_t received = 0, left_out = 0;
    for (const auto &[member, target] : targets) {
        if (target.why.status == MUSTER_OK) received++;
        if (target.why.status == MUSTER_OK || left_out++ != 0) continue;
        why = Error::make(target.why.status, "member %u: %.180s", member, target.why.message);
    }
    if (left_out > 1)
        why = Error::make(why.status, "%.180s (and %zu more have not got it)", Error(why).message, left_out - 1);
    if (out_statuses_ != nullptr)
        for (size_t i = 0; i < members.size(); i++) out_statuses_[i] = targets.find(members[i])->second.why.status;
    complete({.why = why, .bytes = received});
}

void ClusterBroadcast::fail(const Error &why) noexcept {
    if (out_statuses_ != nullptr) std::fill_n(out_statuses_, members.size(), why.status);
    complete({why});
}

// Its bytes are the caller's: it does not leave before the cluster's thread is done with them, which keeps the time.
Result<void> ClusterBroadcast::wait() {
    Deadline endless(-1);
    return QueueOperation::wait(endless,
                                [this](Status status) {
                                    if (status < 0) end_early(Ending::cancelled);
                                })
        .why;
}

// ---- a member's broadcasts ------------------------------------------------------------------------------------------

Broadcasts::Broadcasts(Cluster &cluster, Ref<MemoryInbox> inbox, uint64_t max_waiting)
    : cluster_(cluster), memory_inbox_(std::move(inbox)), max_waiting_(max_waiting) {
    if (!memory_inbox_) return;
    received_.head.reserve(max_memory_head_bytes);
    inbox_handler_ = cluster_.on_completion([this](const muster_completion &, const Error &) { receive_memory(); });
    auto watched = memory_inbox_->watch(*cluster_.completions_, inbox_handler_);
    if (watched) return;
    cluster_.context().log(MUSTER_LOG_WARN, "cluster: broadcasts come by streams alone: %s", watched.error().message);
    cluster_.drop_handler(inbox_handler_);
    memory_inbox_->leave();
    memory_inbox_.reset();
}

Broadcasts::~Broadcasts() {
    fail_all(Error::make(MUSTER_E_CLOSED, "the cluster is closed"));
    while (!arrivals_.empty()) drop_arrival(BroadcastKey(arrivals_.begin()->first));
    for (auto &[id, inflow] : inflows_) inflow.stream.unwatch();
    if (memory_inbox_) memory_inbox_->leave();
}

bool Broadcasts::fails(const Cluster::StepSubject &subject, const Error &why) {
    if (subject.broadcast)
        end(Ref<ClusterBroadcast>(static_cast<ClusterBroadcast *>(subject.broadcast.get())), why);
    else if (subject.inflow != 0 && inflows_.count(subject.inflow) != 0)
        inflow_over(subject.inflow, why);
    return subject.broadcast || subject.inflow != 0;
}

ClusterBroadcast *Broadcasts::origin_of(BroadcastKey key) noexcept {
    const auto found = own_.find(key);
    return found == own_.end() ? nullptr : found->second.get();
}

BroadcastSender *Broadcasts::sender_of(BroadcastKey key) noexcept {
    if (ClusterBroadcast *const own = origin_of(key)) return &own->sender;
    const auto found = arrivals_.find(key);
    return found == arrivals_.end() ? nullptr : &found->second.sender;
}

// Streams through a star: its broker sends the bytes to all, and they leave this process once.
bool Broadcasts::star() const {
    return cluster_.listener_address().compare(0, 4, "zmq:") == 0;
}

void Broadcasts::member_gone(uint32_t member, const Error &why) {
    std::vector<BroadcastKey> keys;
    for (const auto &[key, broadcast] : own_) keys.push_back(key);
    for (const BroadcastKey &key : keys)
        if (ClusterBroadcast *const own = origin_of(key))
            settle(*own, member, Error::make(MUSTER_E_STALE, "it is gone: %.150s", why.message));
    keys.clear();
    for (const auto &[key, arrival] : arrivals_)
        if (key.origin == member) keys.push_back(key);
    for (const BroadcastKey &key : keys) drop_arrival(key);
    for (auto &[key, arrival] : arrivals_) arrival.sender.neighbours.erase(member);
}

void Broadcasts::fail_all(const Error &why) {
    while (!own_.empty()) end(own_.begin()->second, why);
}

void Broadcasts::cancel_awaited() {
    std::vector<Ref<ClusterBroadcast>> all;
    for (const auto &[key, broadcast] : own_)
        if (!broadcast->has_queue()) all.push_back(broadcast);
    for (const auto &broadcast : all) end(broadcast, Error::make(MUSTER_E_CANCELED, "cancelled"));
}

void Broadcasts::keep_ticking() {
    if (tick_timer_ || (own_.empty() && arrivals_.empty() && inflows_.empty())) return;
    tick_timer_ = cluster_.start_timer(now_ns() + tick_ns, [this] {
        tick_timer_ = {};
        tick();
        keep_ticking();
    });
}

void Broadcasts::tick() {
    const int64_t now = now_ns();
    std::vector<Ref<ClusterBroadcast>> all;
    for (const auto &[key, broadcast] : own_) all.push_back(broadcast);
    for (const auto &broadcast : all) check_progress(*broadcast, now);
    check_arrivals(now);
}

} // namespace muster
