// SPDX-License-Identifier: MIT
// What the host asks of its cluster, and which members may have a stream with each other; worker_records.cpp has the
// life of each worker.
#include "cluster/lifecycle/master.hpp"

#include "cluster/broadcast/broadcast.hpp"
#include "cluster/lifecycle/address_publication.hpp"
#include "cluster/managers/elastic.hpp"
#include "context/host_call.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr size_t max_members_shown = 4096; // in metrics, 150 bytes each
constexpr int64_t default_join_ns = 60'000'000'000, default_leave_ns = 10'000'000'000;
constexpr size_t max_awaiting = 65536; // that wait for one worker to join
constexpr char default_listen[] = "tcp://127.0.0.1:0";

Error closed() noexcept {
    return Error::make(MUSTER_E_CLOSED, "the cluster is closed");
}

} // namespace

ClusterMaster::ClusterMaster(Context &context, const muster_cluster_config &config, Ref<Queue> completions,
                             Ref<Queue> events)
    : Cluster(context, std::move(completions), std::move(events), config.tag), topology_(config.topology),
      join_timeout_ns_(config.join_timeout_ns > 0 ? config.join_timeout_ns : default_join_ns),
      leave_timeout_ns_(config.leave_timeout_ns > 0 ? config.leave_timeout_ns : default_leave_ns),
      store_(context, config.store == nullptr ? std::string() : std::string(config.store, config.store_bytes)) {
    set_self(MUSTER_CLUSTER_MASTER);
}

Result<Ref<ClusterMaster>> ClusterMaster::open(Context &context, const muster_cluster_config &config) {
    auto id = random_number();
    if (!id) return id.error();
    auto completions = Queue::create(context, 4 * max_cluster_workers);
    if (!completions) return completions.error();
    Ref<Queue> events(config.queue != nullptr ? unwrap(config.queue) : nullptr);
    const auto master =
        Ref<ClusterMaster>::adopt(new ClusterMaster(context, config, std::move(*completions), std::move(events)));
    master->id_ = *id;
    master->limit_connections(config.max_connections);
    master->limit_broadcasts(config.max_broadcast_bytes);
    const std::string address =
        config.listen == nullptr ? default_listen : std::string(config.listen, config.listen_bytes);
    if (const Error why = master->listen(address); why.status != MUSTER_OK) return why;
    master->make_inbox(address);
    master->address_ = master->listener_address();
    master->watch_listener(); // here, where it may fail: the thread does not run yet
    if (auto started = master->start_thread_of(true); !started) return started.error();
    context.metrics.add(master->metrics_);
    return master;
}

// Numbers of members, and the first ones by themselves: a text has to fit into a value of a store.
void ClusterMaster::write_metrics(MetricsWriter &writer) {
    static constexpr Metric members{"muster_cluster_members", Metric::gauge, "Workers in each state."};
    static constexpr Metric member{"muster_cluster_member_state", Metric::gauge,
                                   "A value of muster_member_state: 1 launching, 2 launched, 3 connected, 4 joined, 5 "
                                   "leaving."};
    static constexpr Metric ended{"muster_cluster_ended_total", Metric::counter,
                                  "Workers that have failed to join, have died, or were removed."};
    static constexpr const char *states[] = {"launching", "launched", "connected", "joined", "leaving"};
    const std::string label = metric_label("address", address_);
    std::map<uint32_t, PublicRecord> records;
    {
        const std::lock_guard hold(public_lock_);
        records = public_records_;
    }
    uint64_t counts[std::size(states)] = {};
    for (const auto &[number, record] : records)
        if (record.state >= MUSTER_MEMBER_LAUNCHING && record.state < MUSTER_MEMBER_GONE) counts[record.state - 1]++;
    for (size_t i = 0; i < std::size(states); i++)
        writer.add(members, static_cast<double>(counts[i]), label + "," + metric_label("state", states[i]));
    const auto add_ended = [&](const std::atomic<uint64_t> &count, const char *how) {
        writer.add(ended, static_cast<double>(count.load(std::memory_order_relaxed)),
                   label + "," + metric_label("how", how));
    };
    add_ended(failed_count_, "failed");
    add_ended(dead_count_, "dead");
    add_ended(removed_count_, "removed");
    static constexpr Metric join_time{"muster_cluster_join_seconds", Metric::histogram,
                                      "Time from the launch of a worker until it has joined."};
    writer.add(join_time, join_time_, label);
    size_t shown = 0;
    for (const auto &[number, record] : records)
        if (shown++ < max_members_shown)
            writer.add(member, record.state,
                       label + ",member=\"" + std::to_string(number) + "\"," + metric_label("host", record.host) +
                           ",pid=\"" + std::to_string(record.pid) + '"');
}

void ClusterMaster::begin() {
    if (progress_.is_wanted()) show_progress();
}

void ClusterMaster::show_progress() {
    ClusterProgress::Picture picture;
    picture.is_closing = closing_;
    {
        const std::lock_guard hold(public_lock_);
        for (const auto &[number, record] : public_records_) {
            if (record.state == MUSTER_MEMBER_JOINED)
                picture.joined++;
            else if (record.state == MUSTER_MEMBER_LEAVING)
                picture.leaving++;
            else if (record.state < MUSTER_MEMBER_JOINED)
                picture.joining++;
        }
    }
    broadcasts_->count(picture.receiving, picture.receivers);
    progress_.update(picture, now_ns());
    start_timer(now_ns() + ClusterProgress::interval_ns, [this] { show_progress(); });
}

// ---- requests of the host -------------------------------------------------------------------------------------------

// No lock is held during the lookup of a manager of the host: threads that answer for it take its lock first, and then
// this one.
Ref<ClusterManager> ClusterMaster::manager_of(const std::string &name) {
    const MakeManager make = find_built_in_manager(name);
    if (make == nullptr) return find_served_manager(context(), name);
    const std::lock_guard hold(public_lock_);
    if (refuses_) return {}; // add() returns the reason
    if (const auto found = built_in_.find(name); found != built_in_.end()) return found->second;
    return built_in_.emplace(name, make(context())).first->second;
}

Result<uint32_t> ClusterMaster::add(const std::shared_ptr<const LaunchPlan> &plan,
                                    const Ref<PublicationResult> &result) {
    const Ref<ClusterManager> manager = manager_of(plan->manager);
    std::unique_lock hold(public_lock_);
    if (refuses_) return closed();
    if (!manager) return Error::make(MUSTER_E_NOT_FOUND, "there is no manager \"%s\"", plan->manager.c_str());
    if (auto possible = manager->check(*plan); !possible) return possible.error();
    if (manager->takes_newcomers()) {
        hold.unlock();
        return offer(plan, manager, result);
    }
    const size_t alive = public_records_.size();
    if (alive + plan->count > max_cluster_workers)
        return Error::make(MUSTER_E_LIMIT, "%zu workers and %u more, at most %u", alive, plan->count,
                           max_cluster_workers);
    if (alive + plan->count > max_links())
        return Error::make(MUSTER_E_LIMIT, "%zu workers and %u more, and at most %u connections", alive, plan->count,
                           max_links());
    if (next_member_ > UINT32_MAX - 1 - plan->count) return Error::make(MUSTER_E_LIMIT, "no numbers are left");
    const uint32_t first = next_member_;
    const auto take_back = [&] { public_records_.erase(public_records_.lower_bound(first), public_records_.end()); };
    try { // everything that needs memory precedes the launch
        for (uint32_t i = 0; i < plan->count; i++) {
            public_records_[first + i].state = MUSTER_MEMBER_LAUNCHING;
            public_records_[first + i].manager = manager;
        }
        if (!post([this, plan, manager, first] { launch(plan, manager, first); })) {
            take_back();
            return closed();
        }
    } catch (const std::bad_alloc &) {
        take_back();
        throw;
    }
    next_member_ += plan->count;
    return first;
}

// ---- workers without a launch ---------------------------------------------------------------------------------------

Result<uint32_t> ClusterMaster::offer(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager,
                                      const Ref<PublicationResult> &result) {
    auto where = ElasticOptions::read(*plan);
    if (!where) return where.error();
    const bool is_taken = post([this, where = std::move(*where), plan, manager, result] {
        if (!where.store.empty()) return publish(where, plan, manager, result);
        end_publication(Error::make(MUSTER_E_CANCELED, "another launch has replaced this one"));
        replace_offer(plan, manager);
        if (const auto old = std::exchange(publication_, nullptr)) old->withdraw([] {});
        if (result) result->finish({});
    });
    return is_taken ? Result<uint32_t>(0u) : closed();
}

// Returns the one before. The workers that have joined count for each.
ClusterMaster::Offer ClusterMaster::replace_offer(const std::shared_ptr<const LaunchPlan> &plan,
                                                  const Ref<ClusterManager> &manager) {
    Offer before = {offer_.plan, offer_.manager, {}};
    offer_.plan = plan;
    offer_.manager = manager;
    return before;
}

// The offer holds from right before a worker can find the address; where that fails, the one before holds again.
void ClusterMaster::publish(const ElasticOptions &where, const std::shared_ptr<const LaunchPlan> &plan,
                            const Ref<ClusterManager> &manager, const Ref<PublicationResult> &result) {
    if (closing_) {
        if (result) result->finish(closed());
        return;
    }
    end_publication(Error::make(MUSTER_E_CANCELED, "another launch has replaced this one"));
    const auto made = std::make_shared<AddressPublication>(*this, where.store, where.name);
    const auto before = std::make_shared<std::optional<Offer>>();
    publication_ends_ = [this, plan, before, result](const Error &why) {
        if (why.status != MUSTER_OK && *before && offer_.plan == plan)
            replace_offer((*before)->plan, (*before)->manager);
        if (result) return result->finish(why);
        if (why.status != MUSTER_OK) report_event(MUSTER_CLUSTER_FAILED, no_member, why, why.message);
    };
    publication_result_ = result;
    next_publication_ = made;
    made->begin([this, plan, manager, before] { *before = replace_offer(plan, manager); },
                [this, made](const Error &why) {
                    if (why.status == MUSTER_OK)
                        if (const auto old = std::exchange(publication_, made)) old->withdraw([] {});
                    end_publication(why);
                });
}

void ClusterMaster::end_publication(const Error &why) {
    if (const auto pending = std::exchange(next_publication_, nullptr)) pending->abandon();
    publication_result_.reset();
    if (const auto report = std::exchange(publication_ends_, nullptr)) report(why);
}

void ClusterMaster::cancel_publication(const Ref<PublicationResult> &result) {
    post([this, result] {
        if (publication_result_.get() == result.get()) end_publication(Error::make(MUSTER_E_CANCELED, "cancelled"));
    });
}

Error PublicationResult::wait() noexcept {
    Deadline endless(-1); // the publication has timeouts
    const Status status = future_.wait(context_, endless);
    return status == MUSTER_OK ? future_.value() : Error::make(status, "%s", HostCall::why_ended(status));
}

// ---- tickets --------------------------------------------------------------------------------------------------------

// To a process that has proved the key of its launch, and nothing else yet.
void ClusterMaster::send_ticket(uint64_t key, uint32_t member, StreamHandle stream) {
    auto plan = launch_keys_.take(key, member);
    const std::string answer =
        plan ? std::string(1, '\0') + ticket(**plan, member).line() : encode_refusal(plan.error());
    size_t moved = 0;
    stream.write(answer.data(), answer.size(), moved);
    stream->finish();
}

Result<std::vector<unsigned char>> ClusterMaster::make_launch_key(const std::shared_ptr<const LaunchPlan> &plan,
                                                                  uint32_t first) {
    auto address = parse_address(address_);
    if (!address) return address.error();
    const bool has_keys = address->scheme == "tcp" || address->scheme == "unix";
    const bool never_seals = address->option("seal") == "no" ||
                             (address->option("seal").empty() && (context().settings.flags & MUSTER_CONTEXT_NO_SEAL));
    if (!has_keys || never_seals || address->option("auth") == "none" || plan->master_dials())
        return std::vector<unsigned char>();
    return launch_keys_.make(plan, first, plan->count);
}

// ---- workers --------------------------------------------------------------------------------------------------------

Status ClusterMaster::remove(uint32_t member, int64_t grace_ns) {
    const std::lock_guard hold(public_lock_);
    if (member == MUSTER_CLUSTER_MASTER) return MUSTER_E_ARG;
    if (member >= next_member_) return MUSTER_E_NOT_FOUND;
    if (public_records_.count(member) == 0) return MUSTER_E_STALE;
    const bool taken = post([this, member, grace_ns = grace_ns < 0 ? leave_timeout_ns_ : grace_ns] {
        drive(member, [&](WorkerMachine &machine) { machine.remove(grace_ns, now_ns()); });
    });
    return taken ? MUSTER_OK : MUSTER_E_CLOSED;
}

Status ClusterMaster::interrupt(uint32_t member) {
    const std::lock_guard hold(public_lock_);
    if (member == MUSTER_CLUSTER_MASTER) return MUSTER_E_ARG;
    if (member >= next_member_) return MUSTER_E_NOT_FOUND;
    const auto found = public_records_.find(member);
    if (found == public_records_.end() || found->second.state < MUSTER_MEMBER_JOINED) return MUSTER_E_STALE;
    const bool taken = post([this, member] {
        WorkerRecord *const worker = worker_of(member);
        if (worker == nullptr) return;
        if ((worker->manager->wants() & MUSTER_MANAGER_INTERRUPT) == 0) return interrupt_by_link(member);
        ask(*worker, MUSTER_MANAGER_INTERRUPT, 0, {}, [this, member](const Result<std::string> &answer) {
            if (!answer && answer.error().status == MUSTER_E_UNSUPPORTED) interrupt_by_link(member);
        });
    });
    return taken ? MUSTER_OK : MUSTER_E_CLOSED;
}

void ClusterMaster::interrupt_by_link(uint32_t member) {
    WorkerRecord *const worker = worker_of(member);
    ControlMessage message;
    message.kind = ControlMessage::interrupt;
    if (worker != nullptr && worker->link) worker->link->send(message);
}

Status ClusterMaster::member(uint32_t member, muster_member_info &out) noexcept {
    const auto copy = [](const std::string &from, char *to, size_t room) {
        const size_t size = std::min(from.size(), room - 1);
        std::memcpy(to, from.data(), size);
        to[size] = '\0';
    };
    out = {};
    out.member = member;
    const std::lock_guard hold(public_lock_);
    if (member == MUSTER_CLUSTER_MASTER) {
        out.state = refuses_ ? MUSTER_MEMBER_GONE : MUSTER_MEMBER_JOINED;
        out.pid = getpid();
        copy(address_, out.address, sizeof out.address);
        return MUSTER_OK;
    }
    if (member >= next_member_) return MUSTER_E_NOT_FOUND;
    const auto found = public_records_.find(member);
    out.state = found == public_records_.end() ? uint32_t{MUSTER_MEMBER_GONE} : found->second.state;
    if (found == public_records_.end()) return MUSTER_OK;
    out.pid = found->second.pid;
    out.data = found->second.data;
    copy(found->second.host, out.host, sizeof out.host);
    copy(found->second.address, out.address, sizeof out.address);
    return MUSTER_OK;
}

Status ClusterMaster::list(uint32_t *out, size_t capacity, size_t *out_count) noexcept {
    const std::lock_guard hold(public_lock_);
    *out_count = public_records_.size();
    if (out == nullptr) return MUSTER_OK;
    if (capacity < public_records_.size()) return MUSTER_E_LIMIT;
    for (const auto &[member, worker] : public_records_) *out++ = member;
    return MUSTER_OK;
}

Status ClusterMaster::process_ended(const Queue &served_by, uint32_t member, std::string text) {
    const std::lock_guard hold(public_lock_);
    if (member == MUSTER_CLUSTER_MASTER) return MUSTER_E_ARG;
    if (member >= next_member_) return MUSTER_E_NOT_FOUND;
    const auto found = public_records_.find(member);
    if (found == public_records_.end()) return MUSTER_OK; // it is known
    if (found->second.manager->queue() != &served_by) return MUSTER_E_ARG;
    const bool taken = post([this, member, text = std::move(text)] { process_over(member, text); });
    return taken ? MUSTER_OK : MUSTER_E_CLOSED;
}

Ticket ClusterMaster::ticket(const LaunchPlan &plan, uint32_t member) const {
    Ticket ticket;
    ticket.cluster = id_;
    ticket.member = member;
    if (!plan.master_dials()) ticket.master = address_;
    ticket.listen = plan.listen_of(member);
    ticket.secret = context().settings.secret;
    return ticket;
}

bool ClusterMaster::gone_by(uint32_t member) noexcept {
    const std::lock_guard hold(public_lock_);
    return public_records_.count(member) == 0;
}

bool ClusterMaster::post_report(std::function<void(ClusterMaster &)> report) {
    return post([this, report = std::move(report)] { report(*this); });
}

// ---- streams --------------------------------------------------------------------------------------------------------

Error ClusterMaster::reachable(uint32_t from, uint32_t to) {
    const WorkerRecord *const one = worker_of(from), *const other = worker_of(to);
    if (to != MUSTER_CLUSTER_MASTER && other == nullptr) {
        const std::lock_guard hold(public_lock_);
        return to >= next_member_ ? Error::make(MUSTER_E_NOT_FOUND, "member %u: no member ever had this number", to)
                                  : Error::make(MUSTER_E_STALE, "member %u is gone", to);
    }
    if (!topology_allows(topology_, from, one != nullptr ? one->plan.get() : nullptr, to,
                         other != nullptr ? other->plan.get() : nullptr))
        return Error::make(MUSTER_E_PERMISSION, "the topology has no way between members %u and %u", from, to);
    Error not_yet;
    if (other != nullptr && !other->machine.has_joined()) not_yet.status = MUSTER_AGAIN;
    return not_yet;
}

void ClusterMaster::find(const Ref<ClusterDial> &dial) {
    const Error why = reachable(MUSTER_CLUSTER_MASTER, dial->member);
    if (why.status < 0) {
        dial->fail(why);
        return found(dial, {}, false);
    }
    WorkerRecord &worker = *worker_of(dial->member);
    if (why.status == MUSTER_AGAIN) return worker.awaiting.push_back([this, dial] { find(dial); });
    if ((worker.manager->wants() & MUSTER_MANAGER_CONNECT) == 0) return found(dial, worker.address, true);
    ask(worker, MUSTER_MANAGER_CONNECT, 0, worker.address, [this, dial](const Result<std::string> &answer) {
        Result<std::string> address = answer;
        if (!address) dial->fail(address.error());
        found(dial, address ? *address : std::string(), true);
    });
}

bool ClusterMaster::request_dial_back(ClusterDial &dial) {
    WorkerRecord *const worker = worker_of(dial.member);
    if (worker == nullptr || !worker->link) return false;
    ControlMessage message;
    message.kind = ControlMessage::dial_back;
    message.member = MUSTER_CLUSTER_MASTER;
    message.number = dial.number;
    message.status = dial.on_done ? 1 : 0;
    message.text = dial.label;
    message.address = address_;
    return worker->link->send(message);
}

void ClusterMaster::answer_find_store(WorkerRecord &worker, const ControlMessage &question) {
    ControlMessage answer;
    answer.kind = ControlMessage::location;
    answer.number = question.number;
    if (auto address = store_.address(address_)) {
        answer.address = std::move(*address);
    } else {
        answer.status = address.error().status;
        answer.text = address.error().message;
    }
    worker.link->send(answer);
}

void ClusterMaster::answer_locate(WorkerRecord &worker, const ControlMessage &question) {
    const uint32_t from = worker.member, to = question.member;
    ControlMessage answer;
    answer.kind = ControlMessage::location;
    answer.member = to;
    answer.number = question.number;
    Error why = reachable(from, to);
    if (why.status == MUSTER_AGAIN && worker_of(to)->awaiting.size() >= max_awaiting)
        why = Error::make(MUSTER_E_LIMIT, "too many wait for member %u to join", to);
    if (why.status == MUSTER_AGAIN) {
        worker_of(to)->awaiting.push_back([this, from, question] {
            if (WorkerRecord *const asker = worker_of(from); asker != nullptr && asker->link)
                answer_locate(*asker, question);
        });
        return;
    }
    answer.status = why.status;
    answer.text = why.status != MUSTER_OK       ? why.message
                  : to == MUSTER_CLUSTER_MASTER ? inbox_address()
                                                : worker_of(to)->inbox;
    if (why.status != MUSTER_OK) {
        worker.link->send(answer);
        return;
    }
    if (to == MUSTER_CLUSTER_MASTER) {
        answer.address = address_;
        worker.link->send(answer);
        return;
    }
    WorkerRecord &other = *worker_of(to);
    worker.partners.insert(to);
    other.partners.insert(from);
    answer.address = other.address;
    if ((other.manager->wants() & MUSTER_MANAGER_CONNECT_WORKER) == 0) {
        worker.link->send(answer);
        return;
    }
    ask(other, MUSTER_MANAGER_CONNECT_WORKER, from, other.address,
        [this, from, answer](const Result<std::string> &given) {
            WorkerRecord *const asker = worker_of(from);
            if (asker == nullptr || !asker->link) return;
            ControlMessage located = answer;
            Result<std::string> address = given;
            if (address) {
                located.address = *address;
            } else {
                located.status = address.error().status;
                located.text = address.error().message;
            }
            asker->link->send(located);
        });
}

// A worker requests that another member dials it.
void ClusterMaster::pass_dial_back(WorkerRecord &worker, const ControlMessage &request) {
    const uint32_t from = worker.member;
    const auto failed = [this, from, request](const Error &why) {
        WorkerRecord *const asker = worker_of(from);
        if (asker == nullptr || !asker->link) return;
        ControlMessage message;
        message.kind = ControlMessage::dial_back_failed;
        message.member = request.member;
        message.number = request.number;
        message.status = why.status < 0 ? why.status : MUSTER_E_UNREACHABLE;
        message.text = why.message;
        asker->link->send(message);
    };
    const Error why = reachable(from, request.member);
    if (why.status != MUSTER_OK) return failed(why);
    if (request.member == MUSTER_CLUSTER_MASTER)
        return dial_back(from, request.number, request.text, request.address, request.status != 0, failed);
    WorkerRecord &other = *worker_of(request.member);
    ControlMessage message = request;
    message.member = from;
    if (!other.link || !other.link->send(message))
        failed(Error::make(MUSTER_E_PEER, "member %u has no link to the master", request.member));
}

// ---- broadcasts -----------------------------------------------------------------------------------------------------

void ClusterMaster::find_inbox(uint32_t member, FoundInbox then) {
    const Error why = reachable(MUSTER_CLUSTER_MASTER, member);
    if (why.status < 0) return then(why, {});
    WorkerRecord &worker = *worker_of(member);
    if (why.status == MUSTER_AGAIN)
        return worker.awaiting.push_back([this, member, then] { find_inbox(member, then); });
    then({}, worker.inbox);
}

bool ClusterMaster::send_control(uint32_t to, ControlMessage message) {
    WorkerRecord *const worker = worker_of(to);
    message.member = MUSTER_CLUSTER_MASTER;
    return worker != nullptr && worker->link && worker->link->send(message);
}

std::vector<uint32_t> ClusterMaster::all_members() {
    std::vector<uint32_t> members;
    for (const auto &[member, worker] : workers_)
        if (worker.machine.has_joined() && !worker.machine.is_removed()) members.push_back(member);
    return members;
}

bool ClusterMaster::pass_on(WorkerRecord &worker, const ControlMessage &message) {
    if (message.member == MUSTER_CLUSTER_MASTER) return false;
    WorkerRecord *const to = worker_of(message.member);
    if (to == nullptr || !to->link) return true;
    ControlMessage passed = message;
    passed.member = worker.member;
    to->link->send(passed);
    return true;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void ClusterMaster::begin_end(int64_t timeout_ns) {
    {
        const std::lock_guard hold(public_lock_);
        refuses_ = true;
    }
    closing_ = true;
    broadcasts_->fail_all(closed());
    fail_dials(closed());
    end_publication(closed());
    if (publication_) {
        withdrawal_ = std::exchange(publication_, nullptr);
        withdrawal_->withdraw([this] { withdrawal_.reset(); });
    }
    std::vector<uint32_t> all; // a removal may delete a record
    for (const auto &[member, worker] : workers_) all.push_back(member);
    const int64_t grace_ns = timeout_ns < 0 ? leave_timeout_ns_ : timeout_ns;
    for (const uint32_t member : all)
        drive(member, [&](WorkerMachine &machine) { machine.remove(grace_ns, now_ns()); });
}

// The host has to kill a worker: is the calling thread the one that has to answer that request?
bool ClusterMaster::would_deadlock_at_end() noexcept {
    std::map<uint32_t, Ref<ClusterManager>> managers;
    try {
        const std::lock_guard hold(public_lock_);
        managers = kills_awaited_;
    } catch (const std::bad_alloc &) { // the next turn checks again
    }
    return std::any_of(managers.begin(), managers.end(), [](const auto &one) { return one.second->would_deadlock(); });
}

void ClusterMaster::thread_ends() noexcept {
    progress_.erase();
    store_.close();
    leave_served_managers(*this);
    offer_ = {};
    end_publication(closed());
    publication_.reset();
    withdrawal_.reset();
    std::map<std::string, Ref<ClusterManager>> managers;
    {
        const std::lock_guard hold(public_lock_);
        managers.swap(built_in_);
    }
    for (const auto &[name, manager] : managers) manager->finish();
}

void ClusterMaster::abandon() noexcept {
    const Error gone = Error::make(MUSTER_E_CLOSED, "the context is closed");
    while (!workers_.empty()) {
        const uint32_t member = workers_.begin()->first;
        try {
            drive(member, [&](WorkerMachine &machine) { machine.context_over(gone); });
        } catch (const std::bad_alloc &) {
        }
        workers_.erase(member); // if there was no memory
    }
}

} // namespace muster
