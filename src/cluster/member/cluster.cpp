// SPDX-License-Identifier: MIT
// The thread of a cluster, its events and its end; streams.cpp has the streams to other members.
#include "cluster/member/cluster.hpp"

#include "base/text.hpp"
#include "base/thread.hpp"
#include "cluster/broadcast/broadcast.hpp"
#include "queue/refusal.hpp"
#include "transport/hub.hpp"
#include "transport/listener.hpp"

#include <algorithm>
#include <cstring>
#include <sys/random.h>

namespace muster {

namespace {

constexpr uint32_t ready = MUSTER_STREAM_READABLE;
constexpr size_t max_spare_events = 4;
constexpr int64_t again_ns = 10'000'000; // until a step that found no memory is made again
constexpr size_t max_streams_waiting = 4096, max_events_waiting = 1 << 20;

// In traces; of the events without a stream and without bytes.
const char *name_of_event(uint32_t kind) noexcept {
    switch (kind) {
    case MUSTER_CLUSTER_LAUNCHED:
        return "launched";
    case MUSTER_CLUSTER_CONNECTED:
        return "connected";
    case MUSTER_CLUSTER_JOINED:
        return "joined";
    case MUSTER_CLUSTER_FAILED:
        return "failed";
    case MUSTER_CLUSTER_DEAD:
        return "dead";
    case MUSTER_CLUSTER_REMOVED:
        return "removed";
    case MUSTER_CLUSTER_INTERRUPT:
        return "interrupt";
    case MUSTER_CLUSTER_LEAVE:
        return "leave";
    default:
        return "master gone";
    }
}

} // namespace

Result<uint64_t> random_number() {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "make a random number");
    return number;
}

Cluster::Cluster(Context &context, Ref<Queue> completions, Ref<Queue> events, uint64_t events_tag)
    : completions_(std::move(completions)), context_(&context), events_queue_(std::move(events)),
      events_tag_(events_tag) {}

Cluster::~Cluster() {
    leave_queue();
}

void Cluster::open_events() noexcept {
    if (events_queue_) events_queue_->attach(*this, events_tag_);
}

void Cluster::leave_queue() noexcept {
    if (events_queue_ && !forked()) events_queue_->detach(*this);
}

// Release: a thread that reads the number sees everything set before it.
void Cluster::set_self(uint32_t member) noexcept {
    self_.store(member, std::memory_order_release);
    context_->notify(signal_);
}

Status Cluster::wait_for_self() noexcept {
    Deadline endless(-1); // the cluster's thread keeps the time
    const auto is_known = [this] { return self() != no_member || over(); };
    const Status status = context_->wait(signal_, endless, is_known);
    return status == MUSTER_OK && self() == no_member ? Status{MUSTER_E_CLOSED} : status;
}

Result<void> Cluster::check_joined() const noexcept {
    if (self() != no_member) return {};
    return Error::make(MUSTER_E_NOT_FOUND, "this member has not joined yet: it knows no others");
}

Result<void> Cluster::start_thread_of(bool events) {
    broadcasts_ =
        std::make_unique<Broadcasts>(*this, memory_inbox_, broadcast_limit_); // these two first: they may throw
    spare_events_.resize(max_spare_events);
    if (!broadcasts_->has_inbox()) memory_inbox_.reset();
    if (!ThreadedObjects<Cluster>::of(*context_).add(*this)) {
        broadcasts_.reset();
        return Error::make(MUSTER_E_CLOSED, "the context is closed");
    }
    if (events) open_events();
    completions_->attach(waker_, 0);
    retain(); // the thread's
    if (const int why = start_thread(&body, this)) {
        ThreadedObjects<Cluster>::of(*context_).remove(*this);
        leave_queue();
        completions_->detach(waker_);
        broadcasts_.reset();
        release();
        return Error::from_errno(why, MUSTER_E_NOMEM, "a thread for the cluster");
    }
    return {};
}

void *Cluster::body(void *self) {
    pthread_setname_np(pthread_self(), "muster-cluster");
    const auto cluster = Ref<Cluster>::adopt(static_cast<Cluster *>(self));
    cluster->run();
    return nullptr;
}

// A step that finds no memory would be lost, and a peer would wait for it.
bool Cluster::give_up_step() noexcept {
    const StepSubject subject = std::exchange(subject_, {});
    context_->log(MUSTER_LOG_ERROR, "cluster: out of memory");
    const Error why = Error::make(MUSTER_E_NOMEM, "out of memory");
    try {
        if (broadcasts_ && broadcasts_->fails(subject, why)) return true;
        if (!subject.dial) return fail_link(subject, why);
        subject.dial->fail(Error::make(MUSTER_E_NOMEM, "member %u: out of memory", subject.dial->member));
        end_dial(*subject.dial);
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

void Cluster::run() noexcept {
    try_step([this] { begin(); });
    while (!has_ended() && !is_queue_closed_) {
        pump();
        run_posted();
    }
    if (!has_ended()) abandon();
    {
        const std::lock_guard hold(lock_);
        refuses_ = true;
    }
    run_posted(); // dials and broadcasts that were posted in time: they end below
    finish_thread();
    thread_ends();
    completions_->detach(waker_);
    {
        const std::lock_guard hold(lock_);
        over_ = true;
        killed_ = had_to_kill_;
        posted_.clear();
    }
    working_.clear();
    context_->notify(signal_);
    if (events_queue_) events_queue_->raise(*this, ready); // next_event() reports the end
    ThreadedObjects<Cluster>::of(*context_).remove(*this);
}

// Waits for the next completion or timer, and handles it.
void Cluster::pump() noexcept {
    int64_t next = timers_.empty() ? INT64_MAX : std::max(timers_.begin()->first.at_ns, timers_paused_until_ns_);
    if (!working_.empty() || cancels_now_ || ends_now_) next = std::min(next, now_ns() + again_ns);
    Deadline deadline(next == INT64_MAX ? -1 : std::max<int64_t>(0, next - now_ns()));
    muster_completion entry;
    muster_error detail{};
    const Status status = completions_->next(deadline, &entry, &detail);
    if (status < 0) is_queue_closed_ = true;
    if (status == MUSTER_OK) {
        run_posted(); // in order: tasks posted before this entry arrived, such as an offer, are done before it
        take_entry(entry, detail);
    }
    run_timers();
}

void Cluster::take_entry(const muster_completion &entry, const muster_error &detail) noexcept {
    Error why;
    static_cast<muster_error &>(why) = detail;
    why.status = entry.status;
    const auto handler = handlers_.find(entry.tag);
    if (handler != handlers_.end()) {
        const std::shared_ptr<const Handler> take = handler->second; // it may forget itself
        const auto step = [&] { (*take)(entry, why); };
        // Readiness is not reported again before the ready entries were taken.
        if (!try_step(step) && entry.kind == MUSTER_EVENT_READY) try_step(step);
    } else if (entry.kind == MUSTER_DONE_DIAL) {
        const StreamHandle unclaimed(entry.object);
    }
}

void Cluster::run_timers() noexcept {
    while (!timers_.empty() && std::max(timers_.begin()->first.at_ns, timers_paused_until_ns_) <= now_ns()) {
        auto timer = timers_.extract(timers_.begin()); // the step may cancel it
        if (try_step(timer.mapped())) continue;
        timers_.insert(std::move(timer));
        timers_paused_until_ns_ = now_ns() + again_ns;
    }
}

void Cluster::wake() noexcept {
    completions_->raise(waker_, ready);
}

bool Cluster::post(std::function<void()> work) {
    std::list<std::function<void()>> one;
    one.push_back(std::move(work));
    {
        const std::lock_guard hold(lock_);
        if (over_ || refuses_) return false;
        posted_.splice(posted_.end(), one);
    }
    wake();
    return true;
}

void Cluster::run_posted() noexcept {
    {
        const std::lock_guard hold(lock_);
        working_.splice(working_.end(), posted_);
        cancels_now_ |= std::exchange(cancels_seen_, cancels_) != cancels_;
        if (std::exchange(end_wanted_, false)) {
            ends_now_ = true;
            end_timeout_ns_ = wanted_timeout_ns_;
        }
    }
    for (; !working_.empty(); working_.pop_front())
        if (!try_step(working_.front())) return;
    if (cancels_now_ && try_step([this] { cancel_awaited(); })) cancels_now_ = false;
    if (ends_now_ && try_step([this] { begin_end(end_timeout_ns_); })) ends_now_ = false;
}

uint64_t Cluster::on_completion(Handler take) {
    handlers_.emplace(numbers_ + 1, std::make_shared<const Handler>(std::move(take)));
    return ++numbers_;
}

ClusterTimer Cluster::start_timer(int64_t at_ns, std::function<void()> step) {
    return timers_.emplace(ClusterTimer{at_ns, next_number()}, std::move(step)).first->first;
}

void Cluster::make_inbox(const std::string &listen) {
    const bool wanted = (context_->settings.flags & MUSTER_CONTEXT_NO_UPGRADE) == 0;
    if (!wanted || listen.find("upgrade=no") != std::string::npos) return;
    auto made = MemoryInbox::make(Hub::of(*context_).host);
    if (made)
        memory_inbox_ = std::move(*made);
    else
        context_->log(MUSTER_LOG_WARN, "cluster: broadcasts come by streams alone: %s", made.error().message);
}

std::string Cluster::inbox_address() const {
    return memory_inbox_ ? memory_inbox_->address().bytes() : std::string();
}

Result<void> Cluster::start_broadcast(Ref<ClusterBroadcast> broadcast) {
    if (auto in = check_joined(); !in) return in;
    const bool taken = post([this, broadcast = std::move(broadcast)] {
        broadcasts_->start(broadcast);
        if (broadcast->is_cancelled()) broadcasts_->cancel(broadcast, Error::make(MUSTER_E_CANCELED, "cancelled"));
        if (closing_) broadcasts_->fail_all(Error::make(MUSTER_E_CLOSED, "the cluster is closed"));
    });
    return taken ? Result<void>() : Error::make(MUSTER_E_CLOSED, "the cluster is closed");
}

// It ends by itself with the cluster; if there is no memory for the task, its deadline ends it.
void Cluster::end_broadcast(Ref<ClusterBroadcast> broadcast, const Error &why) noexcept {
    try {
        post([this, broadcast = std::move(broadcast), why] { broadcasts_->cancel(broadcast, why); });
    } catch (const std::bad_alloc &) {
    }
}

// ---- events ---------------------------------------------------------------------------------------------------------

void Cluster::report_event(uint32_t kind, uint32_t member, const Error &why, std::string_view text) {
    Event event{};
    event.content.kind = kind;
    event.content.member = member;
    event.content.status = why.status;
    static_assert(sizeof event.content.text == sizeof why.message);
    const Error cut =
        Error::make(MUSTER_OK, "%.*s", static_cast<int>(std::min<size_t>(text.size(), 1024)), text.data());
    event.content.text_bytes = cut.message_bytes;
    std::memcpy(event.content.text, cut.message, sizeof event.content.text);
    make_printable(event.content.text, event.content.text_bytes);
    if (Trace::is_on()) {
        char subject[Trace::text_bytes + 1];
        const int size = std::snprintf(subject, sizeof subject, "member %u", member);
        Trace::mark("cluster", name_of_event(kind), {subject, static_cast<size_t>(size)});
    }
    push(std::move(event));
}

void Cluster::report_stream(uint32_t from, uint64_t number, const std::string &label, StreamHandle stream) {
    if (Trace::is_on()) Trace::mark("cluster", "stream", label, flow_of_dial(from, number));
    Event event{};
    event.content.kind = MUSTER_CLUSTER_STREAM;
    event.content.member = from;
    event.content.label_bytes = static_cast<uint32_t>(std::min(label.size(), max_label_bytes));
    std::memcpy(event.content.label, label.data(), event.content.label_bytes);
    event.stream = std::move(stream);
    push(std::move(event));
}

bool Cluster::report_broadcast(uint32_t from, const std::string &label, Ref<BroadcastBytes> bytes) {
    Event event{};
    Trace::mark("cluster", "broadcast received", label);
    event.content.kind = MUSTER_CLUSTER_BROADCAST;
    event.content.member = from;
    event.content.label_bytes = static_cast<uint32_t>(std::min(label.size(), max_label_bytes));
    std::memcpy(event.content.label, label.data(), event.content.label_bytes);
    event.content.data = bytes->data();
    event.content.size_bytes = bytes->size();
    event.broadcast = std::move(bytes);
    untaken_bytes_.fetch_add(event.content.size_bytes, std::memory_order_relaxed);
    const uint64_t size = event.content.size_bytes;
    if (push(std::move(event))) return true;
    untaken_bytes_.fetch_sub(size, std::memory_order_relaxed);
    return false;
}

bool Cluster::push(Event event) noexcept {
    const uint32_t kind = event.content.kind, member = event.content.member;
    bool dropped = false;
    std::list<Event> made;
    try {
        made.resize(1);
    } catch (const std::bad_alloc &) { // one of the spare events is used below
    }
    {
        const std::lock_guard hold(lock_);
        // Bounded, for a host that takes no events.
        dropped = events_.size() >= (event.stream || event.broadcast ? max_streams_waiting : max_events_waiting);
        if (made.empty() && !spare_events_.empty()) made.splice(made.end(), spare_events_, spare_events_.begin());
        dropped = dropped || made.empty();
        if (!dropped) {
            made.front() = std::move(event);
            events_.splice(events_.end(), made);
        }
    }
    if (dropped) {
        context_->log(MUSTER_LOG_ERROR,
                      "cluster: event %u of member %u is dropped: too many wait to be taken, or there is no memory",
                      kind, member);
        return false;
    }
    context_->notify(signal_);
    if (events_queue_) events_queue_->raise(*this, ready);
    return true;
}

Status Cluster::next_event(Deadline &deadline, muster_cluster_event &out) noexcept {
    bool first = true;
    uint64_t cancels = 0;
    return context_->wait(signal_, deadline, lock_, [&]() -> Status {
        if (!events_.empty()) {
            out = events_.front().content;
            out.stream = events_.front().stream.release();
            out.broadcast = wrap(events_.front().broadcast.detach());
            if (out.broadcast != nullptr) untaken_bytes_.fetch_sub(out.size_bytes, std::memory_order_relaxed);
            if (spare_events_.size() < max_spare_events)
                spare_events_.splice(spare_events_.end(), events_, events_.begin());
            else
                events_.pop_front();
            return MUSTER_OK;
        }
        if (over_) return MUSTER_E_CLOSED;
        if (std::exchange(first, false)) cancels = cancels_;
        return cancels != cancels_ ? MUSTER_E_CANCELED : MUSTER_AGAIN;
    });
}

void Cluster::cancel() noexcept {
    {
        const std::lock_guard hold(lock_);
        cancels_++;
    }
    context_->notify(signal_);
    wake();
}

void Cluster::cancel_awaited() {
    for (auto next = dials_.begin(); next != dials_.end();) {
        const Ref<ClusterDial> dial = (next++)->second;
        if (!dial->is_awaited()) continue;
        dial->fail(Error::make(MUSTER_E_CANCELED, "cancelled"));
        end_dial(*dial);
    }
    if (broadcasts_) broadcasts_->cancel_awaited();
}

bool Cluster::over() noexcept {
    const std::lock_guard hold(lock_);
    return over_;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Cluster::close_soon(int64_t timeout_ns) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (over_ || refuses_) return;
        end_wanted_ = true;
        wanted_timeout_ns_ = timeout_ns;
    }
    wake();
}

Status Cluster::close(int64_t timeout_ns) noexcept {
    close_soon(timeout_ns);
    return await_end();
}

Status Cluster::await_end() noexcept {
    Deadline endless(-1);
    bool first = true;
    uint64_t cancels = 0;
    for (;;) {
        const uint32_t seen = signal_.seen();
        {
            const std::lock_guard hold(lock_);
            if (over_) return killed_ ? MUSTER_TIMEOUT : MUSTER_OK;
            if (std::exchange(first, false)) cancels = cancels_;
            if (cancels != cancels_) return MUSTER_E_CANCELED;
        }
        if (would_deadlock_at_end()) return MUSTER_E_WOULD_DEADLOCK;
        const Status status = context_->sleep(signal_, seen, endless);
        if (status != MUSTER_OK) return status;
    }
}

void Cluster::finish_thread() noexcept {
    broadcasts_.reset();
    fail_dials(Error::make(MUSTER_E_CLOSED, "the cluster is closed"));
    stop_listening();
    handlers_.clear();
    timers_.clear();
    subject_ = {};
}

} // namespace muster
