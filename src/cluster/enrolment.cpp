// SPDX-License-Identifier: MIT
// The way of a worker, as its master sees it: launched, connected, joined, and gone.
#include "cluster/master.hpp"

#include "cluster/broadcast.hpp"

#include <algorithm>
#include <cinttypes>

namespace muster {

namespace {

constexpr int64_t last_words_ns = 500'000'000;    // what a process that is over has still sent may be on its way
constexpr int64_t own_end_ns = 200'000'000;       // a link broke: time its process has to be seen ending by itself
constexpr int64_t after_kill_ns = 10'000'000'000; // a process inside the kernel may take its time

Status failure(int32_t status) noexcept { // a peer's word for it
    return status < 0 ? status : MUSTER_E_PEER;
}

} // namespace

void ClusterMaster::show(Line &line) {
    const std::lock_guard hold(shown_lock_);
    Shown &shown = shown_[line.number];
    shown.state = line.removing && line.state == MUSTER_MEMBER_JOINED ? uint32_t{MUSTER_MEMBER_LEAVING} : line.state;
    shown.pid = line.pid;
    shown.data = line.data;
    shown.host = line.host;
    shown.address = line.address;
}

void ClusterMaster::ask(Line &line, uint32_t want, uint32_t from, const std::string &address,
                        ClusterManager::Answer answer) {
    line.manager->ask(*this, ManagerQuestion{want, line.number, from, line.data, address}, std::move(answer));
}

// ---- launched
// -------------------------------------------------------------------------------------------------------------

void ClusterMaster::launch(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager,
                           uint32_t first) {
    try {
        for (uint32_t i = 0; i < plan->count; i++) expect(plan, manager, first + i);
    } catch (const std::bad_alloc &) { // nothing was started: each worker fails
        for (uint32_t i = 0; i < plan->count; i++) {
            Line &line = lines_[first + i];
            line.number = first + i;
            line.plan = plan;
            line.manager = manager;
            failed(first + i, Error::make(MUSTER_E_NOMEM, "out of memory"));
        }
        return;
    }
    if (closing_) {
        for (uint32_t i = 0; i < plan->count; i++)
            if (Line *const line = line_of(first + i)) remove_now(*line, 0);
        return;
    }
    try {
        manager->launch(*this, plan, first);
    } catch (const std::bad_alloc &) { // those that were not started fail
        for (uint32_t i = 0; i < plan->count; i++)
            if (Line *const line = line_of(first + i); line != nullptr && !line->launched)
                failed(first + i, Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
}

ClusterMaster::Line &ClusterMaster::expect(const std::shared_ptr<const LaunchPlan> &plan,
                                           const Ref<ClusterManager> &manager, uint32_t member) {
    Line &line = lines_[member];
    line.number = member;
    line.plan = plan;
    line.manager = manager;
    expect_connections(++coming_);
    line.join_alarm = at(now_ns() + join_timeout_ns_, [this, member] {
        Line *const found = line_of(member);
        if (found == nullptr) return;
        Line &late = *found;
        late.join_alarm = 0;
        const double seconds = static_cast<double>(join_timeout_ns_) / 1e9;
        late.why = Error::make(MUSTER_TIMEOUT, "it did not join within %.3g s", seconds);
        if (late.launched) return kill(late);
        late.manager->forget(*this, member);
        finish(late);
    });
    return line;
}

void ClusterMaster::launched(Line &line) {
    line.launched = true;
    if (line.state == MUSTER_MEMBER_LAUNCHING) line.state = MUSTER_MEMBER_LAUNCHED;
    show(line);
    tell(MUSTER_CLUSTER_LAUNCHED, line.number, {}, {});
}

void ClusterMaster::ready(uint32_t member, const std::string &address, uint64_t data) {
    Line *const line = line_of(member);
    if (line == nullptr) return;
    line->data = data;
    if (!address.empty()) line->address = address;
    if (line->launched) return show(*line); // it has come before its manager said that it would
    launched(*line);
    if (line->plan->master_dials()) connect(*line);
}

void ClusterMaster::failed(uint32_t member, const Error &why) {
    Line *const line = line_of(member);
    if (line == nullptr) return;
    line->why = why;
    line->process_over = true;
    finish(*line);
}

// ---- connected
// --------------------------------------------------------------------------------------------------------------

void ClusterMaster::connect(Line &line) {
    const uint32_t member = line.number;
    if ((line.manager->wants() & MUSTER_MANAGER_CONNECT) == 0) return dial_control(member, line.address);
    ask(line, MUSTER_MANAGER_CONNECT, 0, line.address, [this, member](const Result<std::string> &answer) {
        Result<std::string> address = answer;
        if (address) return dial_control(member, *address);
        Line *const asked = line_of(member);
        if (asked == nullptr) return;
        asked->why = address.error();
        kill(*asked);
    });
}

void ClusterMaster::dial_control(uint32_t member, const std::string &address) {
    const ClusterGreeting greeting{ClusterGreeting::control, id_, MUSTER_CLUSTER_MASTER, member, 0, {}};
    dial(address, greeting, join_timeout_ns_, [this, member](StreamHandle stream, const Error &why) {
        Line *const line = line_of(member);
        if (line == nullptr || line->link) return;
        concerns_link(member);
        if (stream) return connected(*line, std::move(stream));
        if (line->why.status == MUSTER_OK) line->why = why;
        if (!line->killed) kill(*line);
    });
}

void ClusterMaster::accepted(const ClusterGreeting &greeting, StreamHandle stream) {
    if (greeting.from == nobody) return newcomer(std::move(stream));
    Line *const line = line_of(greeting.from);
    if (line == nullptr) {
        const std::string number = std::to_string(greeting.from);
        return refuse(std::move(stream), MUSTER_E_STALE, "the master does not expect worker " + number + " any more");
    } else if (line->link || line->state > MUSTER_MEMBER_LAUNCHED || line->plan->master_dials() || line->process_over) {
        const std::string number = std::to_string(greeting.from);
        return refuse(std::move(stream), MUSTER_E_STALE, "worker " + number + " is there already");
    }
    arrived(*line, std::move(stream));
}

void ClusterMaster::arrived(Line &line, StreamHandle stream) {
    concerns_link(line.number);
    if (!line.launched) launched(line);
    connected(line, std::move(stream));
}

// A worker that has not been launched. The offer it comes for may have been posted after the step began in which its
// stream was accepted; so without an offer this is decided when all that is posted by now has been done.
void ClusterMaster::newcomer(StreamHandle stream, bool posted) {
    if (!posted && !offer_.plan && !closing_) {
        auto kept = std::make_shared<StreamHandle>(std::move(stream));
        post([this, kept] { newcomer(std::move(*kept), true); });
        return;
    }
    auto taken = take_newcomer();
    if (!taken) return refuse(std::move(stream), taken.error().status, taken.error().message);
    arrived(**taken, std::move(stream));
}

// One that is proved by the key of its launch, and nothing else yet.
void ClusterMaster::hand_ticket(uint64_t key, uint32_t member, StreamHandle stream) {
    auto plan = launch_keys_.take(key, member);
    const std::string word = plan ? std::string(1, '\0') + ticket(**plan, member).line() : refusal_word(plan.error());
    size_t moved = 0;
    muster_stream_write(stream.get(), word.data(), word.size(), 0, &moved);
    muster_stream_finish(stream.get());
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

void ClusterMaster::refuse(StreamHandle stream, Status status, const std::string &why) {
    ControlLink link(std::move(stream));
    ControlMessage refused;
    refused.kind = ControlMessage::refused;
    refused.status = status;
    refused.text = why;
    link.send(refused);
}

// Whoever comes by itself, and has proved the secret.
Result<ClusterMaster::Line *> ClusterMaster::take_newcomer() {
    if (!offer_.plan || closing_) return Error::make(MUSTER_E_STALE, "the master takes nobody who was not launched");
    if (lines_.size() >= most_links())
        return Error::make(MUSTER_E_LIMIT, "the master has as many workers as it may have connections, %u",
                           most_links());
    for (auto member = offer_.members.begin(); member != offer_.members.end();)
        member = lines_.count(*member) != 0 ? std::next(member) : offer_.members.erase(member);
    if (offer_.members.size() >= offer_.plan->count)
        return Error::make(MUSTER_E_LIMIT, "the master takes %u, and they are there", offer_.plan->count);
    uint32_t member = 0;
    {
        const std::lock_guard hold(shown_lock_);
        if (shown_.size() >= most_cluster_workers || next_ == UINT32_MAX - 1)
            return Error::make(MUSTER_E_LIMIT, "the cluster has as many workers as it can have");
        member = next_++;
        shown_[member].state = MUSTER_MEMBER_LAUNCHING;
        shown_[member].manager = offer_.manager;
    }
    offer_.members.insert(member);
    return &expect(offer_.plan, offer_.manager, member);
}

void ClusterMaster::connected(Line &line, StreamHandle stream) {
    const uint32_t member = line.number;
    concerns_link(member);
    line.state = MUSTER_MEMBER_CONNECTED;
    expect_connections(--coming_);
    line.link = std::make_unique<ControlLink>(std::move(stream));
    show(line);
    tell(MUSTER_CLUSTER_CONNECTED, member, {}, {});
    line.link_number = on([this, member](const muster_completion &, const Error &) { hear(member); });
    const Status status = line.link->watch(wrap(&*inbox_), line.link_number);
    if (status != MUSTER_OK) link_over(line, Error::from_status(status));
}

void ClusterMaster::hear(uint32_t member) {
    for (;;) {
        Line *const line = line_of(member);
        if (line == nullptr || !line->link) return;
        concerns_link(member);
        ControlMessage message;
        const Error why = line->link->next(message);
        if (why.status == MUSTER_AGAIN) {
            line->link->flush();
            return;
        }
        if (why.status != MUSTER_OK) return link_over(*line, why);
        if (!take(*line, message)) return;
    }
}

bool ClusterMaster::take(Line &line, const ControlMessage &message) {
    const bool in = line.state >= MUSTER_MEMBER_JOINED;
    switch (message.kind) {
    case ControlMessage::hello:
        if (in) break;
        join(line, message);
        return true;
    case ControlMessage::where:
        if (!in) break;
        answer_where(line, message);
        return true;
    case ControlMessage::call:
        if (!in) break;
        pass_call(line, message);
        return true;
    case ControlMessage::call_failed: {
        if (!in) break;
        const Error why = Error::make(failure(message.status), "%.200s", message.text.c_str());
        if (message.member == MUSTER_CLUSTER_MASTER) {
            call_failed(message.number, line.number, why);
        } else if (Line *const caller = line_of(message.member); caller != nullptr && caller->link) {
            ControlMessage passed = message;
            passed.member = line.number;
            caller->link->send(passed);
        }
        return true;
    }
    case ControlMessage::fares:
        if (!in) break;
        if (!pass(line, message)) broadcasts_->hear_report(line.number, message);
        return true;
    case ControlMessage::broadcast_over:
        if (!in) break;
        if (!pass(line, message)) broadcasts_->hear_over(line.number, message.number);
        return true;
    case ControlMessage::leaving:
        line.left = true;
        return true;
    default:
        break;
    }
    link_over(line, Error::make(MUSTER_E_PROTOCOL, "it sent a message of kind %u out of turn", message.kind));
    return false;
}

void ClusterMaster::join(Line &line, const ControlMessage &hello) {
    line.state = MUSTER_MEMBER_JOINED;
    line.pid = static_cast<int64_t>(hello.number);
    const size_t name = std::min(hello.text.find('\0'), hello.text.size());
    line.host = hello.text.substr(0, std::min<size_t>(name, 255));
    if (name != hello.text.size()) line.shelf = hello.text.substr(name + 1);
    if (!hello.address.empty() || line.address.empty()) line.address = hello.address;
    silence(line.join_alarm);
    launch_keys_.over(line.number);
    ControlMessage welcome;
    welcome.kind = ControlMessage::welcome;
    welcome.member = line.number;
    welcome.number = id_; // one that has come by itself does not know it
    welcome.text = shelf();
    welcome.address = address_;
    line.link->send(welcome);
    show(line);
    tell(MUSTER_CLUSTER_JOINED, line.number, {}, {});
    if ((line.manager->wants() & MUSTER_MANAGER_REGISTER) != 0)
        ask(line, MUSTER_MANAGER_REGISTER, 0, {}, [](const Result<std::string> &) {});
    line.registered = true;
    for (const auto &go_on : std::exchange(line.awaiting, {})) try_step(go_on);
}

// ---- gone
// -------------------------------------------------------------------------------------------------------------------

void ClusterMaster::remove_now(Line &line, int64_t grace_ns) {
    const bool first = !std::exchange(line.removing, true);
    if (!line.launched) {
        line.manager->forget(*this, line.number);
        return finish(line);
    }
    const bool can_leave = line.state == MUSTER_MEMBER_JOINED && line.link;
    if (grace_ns == 0 || (!can_leave && !line.left)) {
        had_to_kill_ |= closing_ && can_leave; // one that never joined was not given a chance
        if (!line.killed) kill(line);
        return;
    }
    show(line);
    ControlMessage message;
    message.kind = ControlMessage::leave;
    if (first && can_leave) line.link->send(message);
    if (line.killed) return;
    silence(line.kill_alarm);
    const int64_t now = now_ns();
    line.kill_alarm = at(grace_ns > INT64_MAX - now ? INT64_MAX : now + grace_ns, [this, member = line.number] {
        Line *const found = line_of(member);
        if (found == nullptr) return;
        Line &late = *found;
        late.kill_alarm = 0;
        had_to_kill_ |= closing_;
        kill(late);
    });
}

void ClusterMaster::link_over(Line &line, const Error &why) {
    forget(line.link_number);
    line.link.reset();
    if (line.why.status == MUSTER_OK) line.why = why;
    consider(line);
}

bool ClusterMaster::link_fails(const Concern &concern, const Error &why) {
    if (!concern.link) return false;
    Line *const line = line_of(concern.member);
    if (line == nullptr) return true;
    if (line->launched)
        link_over(*line, why);
    else
        failed(concern.member, why);
    return true;
}

void ClusterMaster::process_over(uint32_t member, const std::string &how) {
    Line *const line = line_of(member);
    if (line == nullptr || line->process_over) return;
    concerns_link(member);
    line->process_over = true;
    line->how = how;
    consider(*line);
}

void ClusterMaster::lost_sight(uint32_t member) noexcept {
    if (Line *const line = line_of(member)) line->unseen = true;
}

// A worker is gone when its link and its process are over, as far as the process can be seen.
void ClusterMaster::consider(Line &line) {
    if (line.process_over) {
        if (!line.link) return finish(line);
        silence(line.kill_alarm);
        line.kill_alarm = at(now_ns() + last_words_ns, [this, member = line.number] {
            Line *const found = line_of(member);
            if (found == nullptr) return;
            Line &over = *found;
            over.kill_alarm = 0;
            link_over(over, Error::make(MUSTER_E_PEER, "its process is over"));
        });
        return;
    }
    if (line.killed) return;
    if (!line.manager->sees_ends() || line.unseen) {
        if (line.left || line.removing) return finish(line); // it goes by itself
        return kill(line);
    }
    if (line.kill_alarm != 0) return; // it is leaving, and has time
    line.kill_alarm = at(now_ns() + (line.left ? leave_timeout_ns_ : own_end_ns), [this, member = line.number] {
        Line *const found = line_of(member);
        if (found == nullptr) return;
        Line &late = *found;
        late.kill_alarm = 0;
        kill(late);
    });
}

void ClusterMaster::kill(Line &line) {
    const uint32_t member = line.number;
    line.killed = true;
    line.by_force = line.why.status == MUSTER_OK;
    silence(line.kill_alarm);
    silence(line.join_alarm);
    line.kill_alarm = at(now_ns() + after_kill_ns, [this, member] {
        Line *const found = line_of(member);
        if (found == nullptr) return;
        Line &stuck = *found;
        stuck.kill_alarm = 0;
        context().log(MUSTER_LOG_ERROR, "cluster: worker %u does not end by force; it is left alone", member);
        stuck.not_killed = Error::make(MUSTER_TIMEOUT, "within %.3g s nothing was known of its end",
                                       static_cast<double>(after_kill_ns) / 1e9);
        finish(stuck);
    });
    if (!line.manager->sees_ends() && (line.manager->wants() & MUSTER_MANAGER_KILL) == 0) {
        ControlMessage message;
        message.kind = ControlMessage::die;
        if (line.link) line.link->send(message);
        return finish(line);
    }
    waits_for(member, line.manager);
    ask(line, MUSTER_MANAGER_KILL, 0, {}, [this, member](const Result<std::string> &answer) {
        Line *const asked = line_of(member);
        if (asked == nullptr) return;
        if (!answer) {
            context().log(MUSTER_LOG_ERROR, "cluster: kill worker %u: %s", member, answer.error().message);
            asked->not_killed = answer.error();
        } else if (asked->by_force && asked->how.empty() && !asked->manager->sees_ends()) {
            asked->how = "ended by force";
        }
        if (!answer || !asked->manager->sees_ends()) finish(*asked);
    });
}

// The last word about a worker.
void ClusterMaster::finish(Line &gone) {
    Line line = std::move(gone);
    const uint32_t member = line.number;
    silence(line.join_alarm);
    silence(line.kill_alarm);
    if (line.link) forget(line.link_number);
    line.link.reset();
    if (line.state < MUSTER_MEMBER_CONNECTED) expect_connections(--coming_);
    lines_.erase(member);
    launch_keys_.over(member);
    waits_for(member, {});
    {
        const std::lock_guard hold(shown_lock_);
        shown_.erase(member);
    }
    const bool in = line.state >= MUSTER_MEMBER_JOINED, orderly = line.removing || line.left;
    const char *const why = line.why.status != MUSTER_OK ? line.why.message : "";
    // How its process ended says more than that a link broke, but less than what was wrong with the worker.
    const bool own_why = line.why.status != MUSTER_OK && line.why.status != MUSTER_E_PEER;
    std::string text = !line.how.empty() && !own_why ? line.how : orderly && line.how.empty() ? "" : why;
    Error status;
    if (!orderly) status.status = own_why ? line.why.status : MUSTER_E_PEER;
    // The reason why it had to go, and that it may not have.
    if (line.not_killed.status != MUSTER_OK) {
        text.append(text.empty() ? "" : "; ")
            .append("it could not be ended by force: ")
            .append(line.not_killed.message);
        if (status.status == MUSTER_OK) status.status = line.not_killed.status;
    }
    line.manager->drop_questions(*this, member);
    const uint32_t kind = orderly ? MUSTER_CLUSTER_REMOVED : in ? MUSTER_CLUSTER_DEAD : MUSTER_CLUSTER_FAILED;
    tell(kind, member, status, text);
    ControlMessage message;
    message.kind = ControlMessage::gone;
    message.member = member;
    message.status = orderly ? Status{MUSTER_OK} : status.status;
    message.text = text;
    for (const uint32_t partner : line.partners)
        if (Line *const other = line_of(partner)) {
            other->partners.erase(member);
            if (other->link) other->link->send(message);
        }
    fail_dials(Error::make(MUSTER_E_STALE, "member %u is gone: %s", member, text.c_str()), member);
    broadcasts_->member_gone(member, Error::make(MUSTER_E_PEER, "%.200s", text.c_str()));
    for (const uint32_t want : {MUSTER_MANAGER_DEREGISTER, MUSTER_MANAGER_FINALIZE}) {
        if ((line.manager->wants() & want) == 0 || (want == MUSTER_MANAGER_DEREGISTER && !line.registered)) continue;
        ask(line, want, 0, {}, [](const Result<std::string> &) {});
    }
    for (const auto &go_on : line.awaiting) try_step(go_on);
}

} // namespace muster
