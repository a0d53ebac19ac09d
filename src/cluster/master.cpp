// SPDX-License-Identifier: MIT
// What a host asks of its cluster, and who may have a stream with whom; enrolment.cpp has the way of a worker.
#include "cluster/master.hpp"

#include "cluster/broadcast.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr int64_t usual_join_ns = 60'000'000'000, usual_leave_ns = 10'000'000'000;
constexpr size_t most_awaiting = 65536; // that wait for one worker to join
constexpr char usual_listen[] = "tcp://127.0.0.1:0";

} // namespace

ClusterMaster::ClusterMaster(Context &context, const muster_cluster_config &config, Ref<Queue> inbox, Ref<Queue> events)
    : Cluster(context, std::move(inbox), std::move(events), config.tag), topology_(config.topology),
      join_timeout_ns_(config.join_timeout_ns > 0 ? config.join_timeout_ns : usual_join_ns),
      leave_timeout_ns_(config.leave_timeout_ns > 0 ? config.leave_timeout_ns : usual_leave_ns) {
    set_self(MUSTER_CLUSTER_MASTER);
}

Result<Ref<ClusterMaster>> ClusterMaster::open(Context &context, const muster_cluster_config &config) {
    auto id = random_number();
    if (!id) return id.error();
    auto inbox = Queue::create(context, 4 * most_cluster_workers);
    if (!inbox) return inbox.error();
    Ref<Queue> events(config.queue != nullptr ? unwrap(config.queue) : nullptr);
    const auto master =
        Ref<ClusterMaster>::adopt(new ClusterMaster(context, config, std::move(*inbox), std::move(events)));
    master->id_ = *id;
    master->bound_connections(config.max_connections);
    master->limit_broadcasts(config.max_broadcast_bytes);
    const std::string address =
        config.listen == nullptr ? usual_listen : std::string(config.listen, config.listen_bytes);
    if (const Error why = master->listen(address); why.status != MUSTER_OK) return why;
    master->make_shelf(address);
    master->address_ = master->listener_address();
    master->watch_listener(); // here, where it may fail: the thread does not run yet
    if (auto started = master->start_thread_of(true); !started) return started.error();
    return master;
}

void ClusterMaster::begin() {}

// ---- what the host wants
// ------------------------------------------------------------------------------------------------

// No lock is held while one of the host's is looked up: those who answer for it take theirs first, and this one then.
Ref<ClusterManager> ClusterMaster::manager_of(const std::string &name) {
    const MakeManager make = find_built_in_manager(name);
    if (make == nullptr) return find_served_manager(context(), name);
    const std::lock_guard hold(shown_lock_);
    if (no_more_) return {}; // add() says so
    if (const auto found = built_in_.find(name); found != built_in_.end()) return found->second;
    return built_in_.emplace(name, make(context())).first->second;
}

Result<uint32_t> ClusterMaster::add(std::shared_ptr<const LaunchPlan> plan) {
    const Ref<ClusterManager> manager = manager_of(plan->manager);
    std::unique_lock hold(shown_lock_);
    if (no_more_) return Error::make(MUSTER_E_CLOSED, "the cluster is closed");
    if (!manager) return Error::make(MUSTER_E_NOT_FOUND, "there is no manager \"%s\"", plan->manager.c_str());
    if (auto possible = manager->check(*plan); !possible) return possible.error();
    if (manager->takes_who_comes()) {
        hold.unlock();
        return offer(std::move(plan), manager);
    }
    const auto alive = static_cast<size_t>(std::count_if(
        shown_.begin(), shown_.end(), [](const auto &line) { return line.second.state != MUSTER_MEMBER_GONE; }));
    if (alive + plan->count > most_cluster_workers)
        return Error::make(MUSTER_E_LIMIT, "%zu workers and %u more, at most %u", alive, plan->count,
                           most_cluster_workers);
    if (alive + plan->count > most_links())
        return Error::make(MUSTER_E_LIMIT, "%zu workers and %u more, and at most %u connections", alive, plan->count,
                           most_links());
    if (next_ > UINT32_MAX - 1 - plan->count) return Error::make(MUSTER_E_LIMIT, "no numbers are left");
    const uint32_t first = next_;
    const auto take_back = [&] { shown_.erase(shown_.lower_bound(first), shown_.end()); };
    try { // what needs memory comes before the launch
        for (uint32_t i = 0; i < plan->count; i++) {
            shown_[first + i].state = MUSTER_MEMBER_LAUNCHING;
            shown_[first + i].manager = manager;
        }
        if (!post([this, plan, manager, first] { launch(plan, manager, first); })) {
            take_back();
            return Error::make(MUSTER_E_CLOSED, "the cluster is closed");
        }
    } catch (const std::bad_alloc &) {
        take_back();
        throw;
    }
    next_ += plan->count;
    return first;
}

// The store is waited for on the thread of the host.
Result<uint32_t> ClusterMaster::offer(std::shared_ptr<const LaunchPlan> plan, Ref<ClusterManager> manager) {
    auto place = ElasticPlace::read(*plan);
    if (!place) return place.error();
    auto made = std::make_shared<Offer>();
    if (!place->store.empty()) {
        auto beacon = Beacon::light(context(), place->store, place->name, address_);
        if (!beacon) return beacon.error();
        made->beacon = std::move(*beacon);
    }
    made->plan = std::move(plan);
    made->manager = std::move(manager);
    const bool taken = post([this, made] {
        made->members = std::move(offer_.members);
        offer_ = std::move(*made);
    });
    return taken ? Result<uint32_t>(0u) : Error::make(MUSTER_E_CLOSED, "the cluster is closed");
}

Status ClusterMaster::remove(uint32_t member, int64_t grace_ns) {
    const std::lock_guard hold(shown_lock_);
    if (member == MUSTER_CLUSTER_MASTER) return MUSTER_E_ARG;
    if (member >= next_) return MUSTER_E_NOT_FOUND;
    if (shown_.count(member) == 0) return MUSTER_E_STALE;
    const bool taken = post([this, member, grace_ns] {
        if (Line *const line = line_of(member)) remove_now(*line, grace_ns < 0 ? leave_timeout_ns_ : grace_ns);
    });
    return taken ? MUSTER_OK : MUSTER_E_CLOSED;
}

Status ClusterMaster::interrupt(uint32_t member) {
    const std::lock_guard hold(shown_lock_);
    if (member == MUSTER_CLUSTER_MASTER) return MUSTER_E_ARG;
    if (member >= next_) return MUSTER_E_NOT_FOUND;
    const auto found = shown_.find(member);
    if (found == shown_.end() || found->second.state < MUSTER_MEMBER_JOINED) return MUSTER_E_STALE;
    const bool taken = post([this, member] {
        Line *const line = line_of(member);
        if (line == nullptr) return;
        if ((line->manager->wants() & MUSTER_MANAGER_INTERRUPT) == 0) return interrupt_by_link(member);
        ask(*line, MUSTER_MANAGER_INTERRUPT, 0, {}, [this, member](const Result<std::string> &answer) {
            if (!answer && answer.error().status == MUSTER_E_UNSUPPORTED) interrupt_by_link(member);
        });
    });
    return taken ? MUSTER_OK : MUSTER_E_CLOSED;
}

void ClusterMaster::interrupt_by_link(uint32_t member) {
    Line *const line = line_of(member);
    ControlMessage message;
    message.kind = ControlMessage::interrupt;
    if (line != nullptr && line->link) line->link->send(message);
}

Status ClusterMaster::member(uint32_t member, muster_member_info &out) noexcept {
    const auto copy = [](const std::string &from, char *to, size_t room) {
        const size_t size = std::min(from.size(), room - 1);
        std::memcpy(to, from.data(), size);
        to[size] = '\0';
    };
    out = {};
    out.member = member;
    const std::lock_guard hold(shown_lock_);
    if (member == MUSTER_CLUSTER_MASTER) {
        out.state = no_more_ ? MUSTER_MEMBER_GONE : MUSTER_MEMBER_JOINED;
        out.pid = getpid();
        copy(address_, out.address, sizeof out.address);
        return MUSTER_OK;
    }
    if (member >= next_) return MUSTER_E_NOT_FOUND;
    const auto found = shown_.find(member);
    out.state = found == shown_.end() ? uint32_t{MUSTER_MEMBER_GONE} : found->second.state;
    if (found == shown_.end()) return MUSTER_OK;
    out.pid = found->second.pid;
    out.data = found->second.data;
    copy(found->second.host, out.host, sizeof out.host);
    copy(found->second.address, out.address, sizeof out.address);
    return MUSTER_OK;
}

Status ClusterMaster::list(uint32_t *out, size_t capacity, size_t *out_count) noexcept {
    const std::lock_guard hold(shown_lock_);
    *out_count = shown_.size();
    if (out == nullptr) return MUSTER_OK;
    if (capacity < shown_.size()) return MUSTER_E_LIMIT;
    for (const auto &[member, line] : shown_) *out++ = member;
    return MUSTER_OK;
}

Status ClusterMaster::process_ended(const Queue &served_by, uint32_t member, std::string text) {
    const std::lock_guard hold(shown_lock_);
    if (member == MUSTER_CLUSTER_MASTER) return MUSTER_E_ARG;
    if (member >= next_) return MUSTER_E_NOT_FOUND;
    const auto found = shown_.find(member);
    if (found == shown_.end()) return MUSTER_OK; // it is known
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
    const std::lock_guard hold(shown_lock_);
    return shown_.count(member) == 0;
}

bool ClusterMaster::post_report(std::function<void(ClusterMaster &)> report) {
    return post([this, report = std::move(report)] { report(*this); });
}

// ---- streams
// --------------------------------------------------------------------------------------------------------------

ClusterMaster::Line *ClusterMaster::line_of(uint32_t member) noexcept {
    const auto found = lines_.find(member);
    return found == lines_.end() ? nullptr : &found->second;
}

Error ClusterMaster::reachable(uint32_t from, uint32_t to) {
    const Line *const one = line_of(from), *const other = line_of(to);
    if (to != MUSTER_CLUSTER_MASTER && other == nullptr) {
        const std::lock_guard hold(shown_lock_);
        return to >= next_ ? Error::make(MUSTER_E_NOT_FOUND, "member %u: nobody ever had this number", to)
                           : Error::make(MUSTER_E_STALE, "member %u is gone", to);
    }
    if (!topology_allows(topology_, from, one != nullptr ? one->plan.get() : nullptr, to,
                         other != nullptr ? other->plan.get() : nullptr))
        return Error::make(MUSTER_E_PERMISSION, "the topology has no way between members %u and %u", from, to);
    Error not_yet;
    if (other != nullptr && other->state < MUSTER_MEMBER_JOINED) not_yet.status = MUSTER_AGAIN;
    return not_yet;
}

void ClusterMaster::find(const Ref<ClusterDial> &dial) {
    const Error why = reachable(MUSTER_CLUSTER_MASTER, dial->member);
    if (why.status < 0) {
        dial->fail(why);
        return found(dial, {}, false);
    }
    Line &line = *line_of(dial->member);
    if (why.status == MUSTER_AGAIN) return line.awaiting.push_back([this, dial] { find(dial); });
    if ((line.manager->wants() & MUSTER_MANAGER_CONNECT) == 0) return found(dial, line.address, true);
    ask(line, MUSTER_MANAGER_CONNECT, 0, line.address, [this, dial](const Result<std::string> &answer) {
        Result<std::string> address = answer;
        if (!address) dial->fail(address.error());
        found(dial, address ? *address : std::string(), true);
    });
}

bool ClusterMaster::call(ClusterDial &dial) {
    Line *const line = line_of(dial.member);
    if (line == nullptr || !line->link) return false;
    ControlMessage message;
    message.kind = ControlMessage::call;
    message.member = MUSTER_CLUSTER_MASTER;
    message.number = dial.number;
    message.status = dial.own ? 1 : 0;
    message.text = dial.label;
    message.address = address_;
    return line->link->send(message);
}

void ClusterMaster::answer_where(Line &line, const ControlMessage &question) {
    const uint32_t from = line.number, to = question.member;
    ControlMessage answer;
    answer.kind = ControlMessage::there;
    answer.member = to;
    answer.number = question.number;
    Error why = reachable(from, to);
    if (why.status == MUSTER_AGAIN && line_of(to)->awaiting.size() >= most_awaiting)
        why = Error::make(MUSTER_E_LIMIT, "too many wait for member %u to join", to);
    if (why.status == MUSTER_AGAIN) {
        line_of(to)->awaiting.push_back([this, from, question] {
            if (Line *const asker = line_of(from); asker != nullptr && asker->link) answer_where(*asker, question);
        });
        return;
    }
    answer.status = why.status;
    answer.text = why.status != MUSTER_OK ? why.message : to == MUSTER_CLUSTER_MASTER ? shelf() : line_of(to)->shelf;
    if (why.status != MUSTER_OK) {
        line.link->send(answer);
        return;
    }
    if (to == MUSTER_CLUSTER_MASTER) {
        answer.address = address_;
        line.link->send(answer);
        return;
    }
    Line &other = *line_of(to);
    line.partners.insert(to);
    other.partners.insert(from);
    answer.address = other.address;
    if ((other.manager->wants() & MUSTER_MANAGER_CONNECT_WORKER) == 0) {
        line.link->send(answer);
        return;
    }
    ask(other, MUSTER_MANAGER_CONNECT_WORKER, from, other.address,
        [this, from, answer](const Result<std::string> &given) {
            Line *const asker = line_of(from);
            if (asker == nullptr || !asker->link) return;
            ControlMessage told = answer;
            Result<std::string> address = given;
            if (address) {
                told.address = *address;
            } else {
                told.status = address.error().status;
                told.text = address.error().message;
            }
            asker->link->send(told);
        });
}

// A worker wants to be dialled: by the master, or by another worker.
void ClusterMaster::pass_call(Line &line, const ControlMessage &wish) {
    const uint32_t from = line.number;
    const auto failed = [this, from, wish](const Error &why) {
        Line *const asker = line_of(from);
        if (asker == nullptr || !asker->link) return;
        ControlMessage message;
        message.kind = ControlMessage::call_failed;
        message.member = wish.member;
        message.number = wish.number;
        message.status = why.status < 0 ? why.status : MUSTER_E_UNREACHABLE;
        message.text = why.message;
        asker->link->send(message);
    };
    const Error why = reachable(from, wish.member);
    if (why.status != MUSTER_OK) return failed(why);
    if (wish.member == MUSTER_CLUSTER_MASTER)
        return answer_call(from, wish.number, wish.text, wish.address, wish.status != 0, failed);
    Line &other = *line_of(wish.member);
    ControlMessage message = wish;
    message.member = from;
    if (!other.link || !other.link->send(message))
        failed(Error::make(MUSTER_E_PEER, "member %u cannot be told", wish.member));
}

// ---- broadcasts
// -----------------------------------------------------------------------------------------------------------

void ClusterMaster::find_shelf(uint32_t member, FoundShelf then) {
    const Error why = reachable(MUSTER_CLUSTER_MASTER, member);
    if (why.status < 0) return then(why, {});
    Line &line = *line_of(member);
    if (why.status == MUSTER_AGAIN) return line.awaiting.push_back([this, member, then] { find_shelf(member, then); });
    then({}, line.shelf);
}

bool ClusterMaster::say(uint32_t to, ControlMessage message) {
    Line *const line = line_of(to);
    message.member = MUSTER_CLUSTER_MASTER;
    return line != nullptr && line->link && line->link->send(message);
}

std::vector<uint32_t> ClusterMaster::everybody() {
    std::vector<uint32_t> members;
    for (const auto &[member, line] : lines_)
        if (line.state == MUSTER_MEMBER_JOINED && !line.removing) members.push_back(member);
    return members;
}

bool ClusterMaster::pass(Line &line, const ControlMessage &message) {
    if (message.member == MUSTER_CLUSTER_MASTER) return false;
    Line *const to = line_of(message.member);
    if (to == nullptr || !to->link) return true;
    ControlMessage passed = message;
    passed.member = line.number;
    to->link->send(passed);
    return true;
}

// ---- the end
// --------------------------------------------------------------------------------------------------------------

void ClusterMaster::end_soon(int64_t timeout_ns) {
    {
        const std::lock_guard hold(shown_lock_);
        no_more_ = true;
    }
    closing_ = true;
    const Error closed = Error::make(MUSTER_E_CLOSED, "the cluster is closed");
    broadcasts_->fail_all(closed);
    fail_dials(closed);
    std::vector<uint32_t> all; // a removal may take a line out
    for (const auto &[member, line] : lines_) all.push_back(member);
    for (const uint32_t member : all)
        if (Line *const line = line_of(member)) remove_now(*line, timeout_ns < 0 ? leave_timeout_ns_ : timeout_ns);
}

void ClusterMaster::thread_ends() noexcept {
    leave_served_managers(*this);
    offer_ = {};
    std::map<std::string, Ref<ClusterManager>> managers;
    {
        const std::lock_guard hold(shown_lock_);
        managers.swap(built_in_);
    }
    for (const auto &[name, manager] : managers) manager->finish();
}

void ClusterMaster::abandon() noexcept {
    const Error gone = Error::make(MUSTER_E_CLOSED, "the context is closed");
    while (!lines_.empty()) {
        Line &line = lines_.begin()->second;
        try {
            line.why = gone;
            if (line.launched && !line.process_over) kill(line);
            if (!lines_.empty() && &lines_.begin()->second == &line) finish(line);
        } catch (const std::bad_alloc &) {
            lines_.erase(lines_.begin());
        }
    }
}

} // namespace muster
