// SPDX-License-Identifier: MIT
// What the master does for each of its workers: the events and the actions of WorkerMachine.
#include "cluster/broadcast/broadcast.hpp"
#include "cluster/lifecycle/master.hpp"

namespace muster {

ClusterMaster::WorkerRecord *ClusterMaster::worker_of(uint32_t member) noexcept {
    const auto found = workers_.find(member);
    return found == workers_.end() ? nullptr : &found->second;
}

void ClusterMaster::ask(WorkerRecord &worker, uint32_t want, uint32_t from, const std::string &address,
                        ClusterManager::Answer answer) {
    worker.manager->ask(*this, ManagerQuestion{want, worker.member, from, worker.data, address}, std::move(answer));
}

// ---- records --------------------------------------------------------------------------------------------------------

void ClusterMaster::launch(const std::shared_ptr<const LaunchPlan> &plan, const Ref<ClusterManager> &manager,
                           uint32_t first) {
    const auto fail_from = [&](uint32_t start) {
        for (uint32_t i = start; i < plan->count; i++)
            if (WorkerRecord *const worker = worker_of(first + i); worker != nullptr && !worker->machine.has_started())
                failed(first + i, Error::make(MUSTER_E_NOMEM, "out of memory"));
    };
    for (uint32_t i = 0; i < plan->count; i++) {
        try {
            expect(plan, manager, first + i);
        } catch (const std::bad_alloc &) { // nothing was started: each worker fails
            for (uint32_t left = i; left < plan->count; left++) report_failed_launch(first + left);
            return fail_from(0);
        }
    }
    if (closing_) {
        for (uint32_t i = 0; i < plan->count; i++)
            drive(first + i, [](WorkerMachine &machine) { machine.remove(0, now_ns()); });
        return;
    }
    try {
        manager->launch(*this, plan, first);
    } catch (const std::bad_alloc &) { // those that were not started fail
        fail_from(0);
    }
}

ClusterMaster::WorkerRecord &ClusterMaster::expect(const std::shared_ptr<const LaunchPlan> &plan,
                                                   const Ref<ClusterManager> &manager, uint32_t member) {
    WorkerMachine::Settings settings;
    settings.is_dialled_by_master = plan->master_dials();
    settings.sees_exits = manager->sees_exits();
    settings.can_kill = (manager->wants() & MUSTER_MANAGER_KILL) != 0;
    settings.join_timeout_ns = join_timeout_ns_;
    settings.leave_timeout_ns = leave_timeout_ns_;
    const auto made = workers_.try_emplace(member, member, plan, manager, settings).first;
    try {
        update_timer(made->second);
    } catch (...) {
        workers_.erase(made);
        throw;
    }
    expect_connections(++expected_links_);
    return made->second;
}

// A worker for which there is no memory, not even for a record.
void ClusterMaster::report_failed_launch(uint32_t member) noexcept {
    {
        const std::lock_guard hold(public_lock_);
        public_records_.erase(member);
    }
    report_event(MUSTER_CLUSTER_FAILED, member, Error::make(MUSTER_E_NOMEM, "out of memory"), "out of memory");
}

void ClusterMaster::publish_record(WorkerRecord &worker) {
    const std::lock_guard hold(public_lock_);
    PublicRecord &shown = public_records_[worker.member];
    shown.state = worker.shown_state = worker.machine.public_state();
    shown.pid = worker.pid;
    shown.data = worker.data;
    shown.host = worker.host;
    shown.address = worker.address;
}

void ClusterMaster::update_timer(WorkerRecord &worker) {
    const int64_t wake_at_ns = worker.machine.wake_at_ns();
    if (wake_at_ns == (worker.timer ? worker.timer.at_ns : INT64_MAX)) return;
    cancel_timer(worker.timer);
    if (wake_at_ns == INT64_MAX) return;
    worker.timer = start_timer(wake_at_ns, [this, member = worker.member] {
        if (WorkerRecord *const woken = worker_of(member)) woken->timer = {};
        drive(member, [](WorkerMachine &machine) { machine.wake(now_ns()); });
    });
}

// ---- actions --------------------------------------------------------------------------------------------------------

// An action may cause the next event, whose actions then come first; the record may be gone after each.
void ClusterMaster::execute_actions(uint32_t member) {
    for (;;) {
        WorkerRecord *const worker = worker_of(member);
        if (worker == nullptr) return;
        update_timer(*worker);
        const bool is_gone = worker->machine.state() == WorkerMachine::State::gone;
        if (!is_gone && worker->shown_state != worker->machine.public_state()) publish_record(*worker);
        if (!worker->machine.has_action()) return;
        execute(*worker, worker->machine.next_action());
    }
}

void ClusterMaster::execute(WorkerRecord &worker, const WorkerAction &action) {
    switch (action.kind) {
    case WorkerAction::report:
        return report_event(action.event, worker.member, {}, {});
    case WorkerAction::dial:
        return dial_worker(worker);
    case WorkerAction::join:
        return welcome(worker);
    case WorkerAction::send_leave:
    case WorkerAction::send_die: {
        // Of managers that cannot kill, this is the kill.
        had_to_kill_ |= action.kind == WorkerAction::send_die && closing_ && worker.machine.was_killed_late();
        ControlMessage message;
        message.kind = action.kind == WorkerAction::send_die ? ControlMessage::die : ControlMessage::leave;
        worker.link->send(message);
        return;
    }
    case WorkerAction::close_link:
        drop_handler(worker.link_handler);
        worker.link.reset();
        return;
    case WorkerAction::forget_launch:
        return worker.manager->forget(*this, worker.member);
    case WorkerAction::kill:
        return kill(worker);
    case WorkerAction::end:
        return forget_worker(worker.member);
    }
}

void ClusterMaster::dial_worker(WorkerRecord &worker) {
    const uint32_t member = worker.member;
    if ((worker.manager->wants() & MUSTER_MANAGER_CONNECT) == 0) return dial_control(member, worker.address);
    ask(worker, MUSTER_MANAGER_CONNECT, 0, worker.address, [this, member](const Result<std::string> &answer) {
        if (Result<std::string> address = answer) return dial_control(member, *address);
        drive(member, [&](WorkerMachine &machine) { machine.connect_failed(answer.error(), now_ns()); });
    });
}

void ClusterMaster::dial_control(uint32_t member, const std::string &address) {
    const ClusterHello hello{ClusterHello::control, id_, MUSTER_CLUSTER_MASTER, member, 0, {}};
    dial(address, hello, join_timeout_ns_, [this, member](StreamHandle stream, const Error &why) {
        WorkerRecord *const worker = worker_of(member);
        if (worker == nullptr || !worker->machine.awaits_link()) return;
        if (stream) return accept_link(*worker, std::move(stream));
        drive(member, [&](WorkerMachine &machine) { machine.connect_failed(why, now_ns()); });
    });
}

void ClusterMaster::welcome(WorkerRecord &worker) {
    const uint32_t member = worker.member;
    launch_keys_.over(member);
    ControlMessage welcome;
    welcome.kind = ControlMessage::welcome;
    welcome.member = member;
    welcome.number = id_; // a worker without a launch does not know it
    welcome.text = inbox_address();
    welcome.address = address_;
    worker.link->send(welcome);
    join_time_.observe(now_ns() - worker.launched_ns);
    report_event(MUSTER_CLUSTER_JOINED, member, {}, {});
    if ((worker.manager->wants() & MUSTER_MANAGER_REGISTER) != 0)
        ask(worker, MUSTER_MANAGER_REGISTER, 0, {}, [](const Result<std::string> &) {});
    if (WorkerRecord *const joined = worker_of(member))
        for (const auto &go_on : std::exchange(joined->awaiting, {})) try_step(go_on);
}

void ClusterMaster::kill(WorkerRecord &worker) {
    const uint32_t member = worker.member;
    had_to_kill_ |= closing_ && worker.machine.was_killed_late();
    try {
        const std::lock_guard hold(public_lock_);
        kills_awaited_[member] = worker.manager;
    } catch (const std::bad_alloc &) { // a close on the thread of the manager then waits until the deadline
    }
    wake_waiters();
    ask(worker, MUSTER_MANAGER_KILL, 0, {}, [this, member](const Result<std::string> &answer) {
        if (!answer) context().log(MUSTER_LOG_ERROR, "cluster: kill worker %u: %s", member, answer.error().message);
        drive(member,
              [&](WorkerMachine &machine) { answer ? machine.kill_done() : machine.kill_failed(answer.error()); });
    });
}

// The last event of a worker; those that waited for it, or had to do with it, are notified.
void ClusterMaster::forget_worker(uint32_t member) {
    auto record = workers_.extract(member);
    WorkerRecord &worker = record.mapped();
    cancel_timer(worker.timer);
    if (worker.link_handler == 0) expect_connections(--expected_links_); // it has never connected
    launch_keys_.over(member);
    {
        const std::lock_guard hold(public_lock_);
        kills_awaited_.erase(member);
        public_records_.erase(member);
    }
    wake_waiters();
    const WorkerMachine::End end = worker.machine.end_of_life();
    (end.event == MUSTER_CLUSTER_FAILED ? failed_count_
     : end.event == MUSTER_CLUSTER_DEAD ? dead_count_
                                        : removed_count_)
        .fetch_add(1, std::memory_order_relaxed);
    worker.manager->drop_questions(*this, member);
    report_event(end.event, member, end.why, end.text);
    ControlMessage message;
    message.kind = ControlMessage::gone;
    message.member = member;
    message.status = end.event == MUSTER_CLUSTER_REMOVED ? Status{MUSTER_OK} : end.why.status;
    message.text = end.text;
    for (const uint32_t partner : worker.partners)
        if (WorkerRecord *const other = worker_of(partner)) {
            other->partners.erase(member);
            if (other->link) other->link->send(message);
        }
    fail_dials(Error::make(MUSTER_E_STALE, "member %u is gone: %s", member, end.text.c_str()), member);
    broadcasts_->member_gone(member, Error::make(MUSTER_E_PEER, "%.200s", end.text.c_str()));
    for (const uint32_t want : {MUSTER_MANAGER_DEREGISTER, MUSTER_MANAGER_FINALIZE}) {
        if ((worker.manager->wants() & want) == 0) continue;
        if (want == MUSTER_MANAGER_DEREGISTER && !worker.machine.has_joined()) continue;
        ask(worker, want, 0, {}, [](const Result<std::string> &) {});
    }
    for (const auto &go_on : worker.awaiting) try_step(go_on);
}

// ---- reports of managers --------------------------------------------------------------------------------------------

void ClusterMaster::ready(uint32_t member, const std::string &address, uint64_t data) {
    WorkerRecord *const worker = worker_of(member);
    if (worker == nullptr) return;
    worker->data = data;
    if (!address.empty()) worker->address = address;
    publish_record(*worker);
    drive(member, [](WorkerMachine &machine) { machine.launched(); });
}

void ClusterMaster::failed(uint32_t member, const Error &why) {
    drive(member, [&](WorkerMachine &machine) { machine.failed(why); });
}

void ClusterMaster::process_over(uint32_t member, const std::string &how) {
    drive(member, [&](WorkerMachine &machine) { machine.process_ended(how, now_ns()); });
}

void ClusterMaster::lost_sight(uint32_t member) noexcept {
    if (WorkerRecord *const worker = worker_of(member)) worker->machine.exit_is_unseen();
}

// ---- links ----------------------------------------------------------------------------------------------------------

void ClusterMaster::accepted(const ClusterHello &hello, StreamHandle stream) {
    if (hello.from == no_member) return accept_newcomer(std::move(stream));
    WorkerRecord *const worker = worker_of(hello.from);
    if (worker == nullptr)
        return refuse(std::move(stream), MUSTER_E_STALE,
                      "the master does not expect worker " + std::to_string(hello.from) + " any more");
    if (!worker->machine.awaits_link() || worker->plan->master_dials())
        return refuse(std::move(stream), MUSTER_E_STALE,
                      "worker " + std::to_string(hello.from) + " has connected already, or is being removed");
    accept_link(*worker, std::move(stream));
}

// A worker that has not been launched. The offer it connects for may have been posted after the step began in which its
// stream was accepted; so without an offer this is decided when all that is posted by now has been done.
void ClusterMaster::accept_newcomer(StreamHandle stream, bool posted) {
    if (!posted && !offer_.plan && !closing_) {
        auto kept = std::make_shared<StreamHandle>(std::move(stream));
        post([this, kept] { accept_newcomer(std::move(*kept), true); });
        return;
    }
    auto taken = take_newcomer();
    if (!taken) return refuse(std::move(stream), taken.error().status, taken.error().message);
    accept_link(**taken, std::move(stream));
}

// Any process that has proved the secret is accepted, as long as there is an offer with room.
Result<ClusterMaster::WorkerRecord *> ClusterMaster::take_newcomer() {
    if (!offer_.plan || closing_)
        return Error::make(MUSTER_E_STALE, "the master takes no workers but those it launched");
    if (workers_.size() >= max_links())
        return Error::make(MUSTER_E_LIMIT, "the master has as many workers as it may have connections, %u",
                           max_links());
    std::erase_if(offer_.members, [this](uint32_t member) { return workers_.count(member) == 0; });
    if (offer_.members.size() >= offer_.plan->count)
        return Error::make(MUSTER_E_LIMIT, "the master takes %u workers, and has them", offer_.plan->count);
    uint32_t member = 0;
    {
        const std::lock_guard hold(public_lock_);
        if (public_records_.size() >= max_cluster_workers || next_member_ == UINT32_MAX - 1)
            return Error::make(MUSTER_E_LIMIT, "the cluster has the maximum number of workers");
        member = next_member_++;
        public_records_[member].state = MUSTER_MEMBER_LAUNCHING;
        public_records_[member].manager = offer_.manager;
    }
    offer_.members.insert(member);
    return &expect(offer_.plan, offer_.manager, member);
}

void ClusterMaster::accept_link(WorkerRecord &worker, StreamHandle stream) {
    const uint32_t member = worker.member;
    set_subject_link(member);
    auto link = std::make_unique<ControlLink>(std::move(stream));
    worker.link_handler = on_completion([this, member](const muster_completion &, const Error &) { receive(member); });
    worker.link = std::move(link);
    expect_connections(--expected_links_);
    const Status status = worker.link->watch(*completions_, worker.link_handler);
    drive(member, [](WorkerMachine &machine) { machine.connected(); });
    if (status != MUSTER_OK) lose_link(member, Error::from_status(status));
}

void ClusterMaster::refuse(StreamHandle stream, Status status, const std::string &why) {
    ControlLink link(std::move(stream));
    ControlMessage refused;
    refused.kind = ControlMessage::refused;
    refused.status = status;
    refused.text = why;
    link.send(refused);
}

void ClusterMaster::lose_link(uint32_t member, const Error &why) {
    drive(member, [&](WorkerMachine &machine) { machine.link_lost(why, now_ns()); });
}

bool ClusterMaster::fail_link(const StepSubject &subject, const Error &why) {
    if (!subject.link) return false;
    if (WorkerRecord *const worker = worker_of(subject.member)) {
        if (worker->machine.has_link())
            lose_link(subject.member, why);
        else if (!worker->machine.has_started())
            failed(subject.member, why);
        else // its machine knows whether a link is expected
            drive(subject.member, [&](WorkerMachine &machine) { machine.connect_failed(why, now_ns()); });
    }
    return true;
}

// ---- messages of workers --------------------------------------------------------------------------------------------

void ClusterMaster::receive(uint32_t member) {
    for (;;) {
        WorkerRecord *const worker = worker_of(member);
        if (worker == nullptr || !worker->link) return;
        set_subject_link(member);
        ControlMessage message;
        const Error why = worker->link->next(message);
        if (why.status == MUSTER_AGAIN) {
            worker->link->flush();
            return;
        }
        if (why.status != MUSTER_OK) return lose_link(member, why);
        if (!handle_message(*worker, message)) return;
    }
}

bool ClusterMaster::handle_message(WorkerRecord &worker, const ControlMessage &message) {
    const bool has_joined = worker.machine.has_joined();
    switch (message.kind) {
    case ControlMessage::hello:
        if (has_joined) break;
        handle_hello(worker, message);
        return true;
    case ControlMessage::leaving:
        drive(worker.member, [](WorkerMachine &machine) { machine.leave_announced(); });
        return true;
    case ControlMessage::locate:
        if (!has_joined) break;
        answer_locate(worker, message);
        return true;
    case ControlMessage::find_store:
        if (!has_joined) break;
        answer_find_store(worker, message);
        return true;
    case ControlMessage::dial_back:
        if (!has_joined) break;
        pass_dial_back(worker, message);
        return true;
    case ControlMessage::dial_back_failed:
        if (!has_joined) break;
        if (!pass_on(worker, message))
            dial_back_failed(message.number, worker.member,
                             Error::make(message.status < 0 ? message.status : Status{MUSTER_E_PEER}, "%.200s",
                                         message.text.c_str()));
        return true;
    case ControlMessage::delivery_status:
        if (!has_joined) break;
        if (!pass_on(worker, message)) broadcasts_->receive_report(worker.member, message);
        return true;
    case ControlMessage::broadcast_over:
        if (!has_joined) break;
        if (!pass_on(worker, message)) broadcasts_->receive_over(worker.member, message.number);
        return true;
    default:
        break;
    }
    lose_link(worker.member, Error::make(MUSTER_E_PROTOCOL, "it sent a message of kind %u out of turn", message.kind));
    return false;
}

void ClusterMaster::handle_hello(WorkerRecord &worker, const ControlMessage &hello) {
    if (!worker.machine.awaits_hello()) return; // it is being killed, or its process has ended
    worker.pid = static_cast<int64_t>(hello.number);
    const size_t name = std::min(hello.text.find('\0'), hello.text.size());
    worker.host = hello.text.substr(0, std::min<size_t>(name, 255));
    if (name != hello.text.size()) worker.inbox = hello.text.substr(name + 1);
    if (!hello.address.empty() || worker.address.empty()) worker.address = hello.address;
    drive(worker.member, [](WorkerMachine &machine) { machine.hello(); });
}

} // namespace muster
