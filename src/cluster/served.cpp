// SPDX-License-Identifier: MIT
#include "cluster/served.hpp"

namespace muster {

namespace {

uint32_t wants_of(const muster_manager_ops *ops, uint32_t wants) noexcept {
    if (ops != nullptr) {
        wants = 0;
        if (ops->connect != nullptr) wants |= MUSTER_MANAGER_CONNECT;
        if (ops->connect_worker != nullptr) wants |= MUSTER_MANAGER_CONNECT_WORKER;
        if (ops->manage != nullptr)
            wants |= MUSTER_MANAGER_REGISTER | MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_INTERRUPT |
                     MUSTER_MANAGER_FINALIZE;
        if (ops->kill != nullptr) wants |= MUSTER_MANAGER_KILL;
    }
    return wants | MUSTER_MANAGER_LAUNCH;
}

bool wants_address(const ManagerQuestion &question) noexcept {
    return question.want == MUSTER_MANAGER_CONNECT || question.want == MUSTER_MANAGER_CONNECT_WORKER;
}

Result<Ref<ManagerRequest>> find(Queue &queue, uint64_t id) {
    return ServedRequests::of(queue.context()).find<ManagerRequest>(&queue, id);
}

Result<Ref<ManagerRequest>> find_launch(Queue &queue, uint64_t id, uint32_t member) {
    auto found = find(queue, id);
    if (!found) return found;
    if (auto valid = (*found)->check_member(member); !valid) return valid.error();
    return found;
}

// Visits the open requests of one cluster to a manager.
template <class Visit>
void for_each(const ServedManager &manager, const ClusterMaster &master, const Visit &visit) noexcept {
    ServedRequests &requests = ServedRequests::of(manager.context());
    for (uint64_t last = 0;;) {
        const auto request = requests.next<ManagerRequest>(last, &manager);
        if (!request) return;
        last = request->id();
        if (request->is_of(master) && !visit(*request)) return;
    }
}

} // namespace

// ---- one request --------------------------------------------------------------------------------------------------

ManagerRequest::ManagerRequest(ServedManager &manager, ClusterMaster &master, ManagerQuestion what,
                               std::shared_ptr<const LaunchPlan> of, ClusterManager::Answer answer)
    : ServedRequest(manager, MUSTER_REQUEST_MANAGER), question(std::move(what)), plan(std::move(of)),
      answer_(std::move(answer)), master_(&master), reported_(plan ? plan->count : 0), missing_(reported_.size()) {}

void ManagerRequest::write(muster_manager_request &out) noexcept {
    out = {};
    out.struct_size = sizeof out;
    out.operation = question.want;
    out.member = question.member;
    out.count = launches() ? plan->count : 1;
    out.from = question.from;
    out.data = question.data;
    out.launch = launches() ? &plan->shown() : nullptr;
    out.address = wants_address(question) ? question.address.c_str() : nullptr;
    if (const Ref<ClusterMaster> of = master()) {
        out.cluster = wrap(of->handle());
        out.cluster_tag = of->tag();
    }
}

Result<void> ManagerRequest::check_member(uint32_t member) const noexcept {
    if (!launches())
        return Error::make(MUSTER_E_ARG, "request %llu is no LAUNCH", static_cast<unsigned long long>(id()));
    const uint32_t first = question.member;
    if (member < first || member - first >= plan->count)
        return Error::make(MUSTER_E_ARG, "worker %u is none of this LAUNCH: %u to %u", member, first,
                           first + plan->count - 1);
    return {};
}

Ref<ClusterMaster> ManagerRequest::master() noexcept {
    const std::lock_guard hold(lock_);
    return master_;
}

bool ManagerRequest::is_of(const ClusterMaster &master) noexcept {
    const std::lock_guard hold(lock_);
    return master_.get() == &master;
}

Ref<ClusterMaster> ManagerRequest::detach() noexcept {
    const std::lock_guard hold(lock_);
    return std::move(master_);
}

Result<bool> ManagerRequest::report(uint32_t member, std::function<void(ClusterMaster &)> how) {
    const uint32_t place = member - question.member;
    const std::lock_guard hold(lock_);
    if (!master_) return ServedRequests::stale(id());
    if (reported_[place]) {
        if (master_->gone_by(member)) return Error::make(MUSTER_E_STALE, "worker %u is no longer expected", member);
        return Error::make(MUSTER_E_ARG, "worker %u was reported before", member);
    }
    if (!master_->post_report(std::move(how))) return ServedRequests::stale(id());
    reported_[place] = true;
    return --missing_ == 0;
}

bool ManagerRequest::expect_no_more(uint32_t member) noexcept {
    const uint32_t place = member - question.member;
    const std::lock_guard hold(lock_);
    if (reported_[place]) return false;
    reported_[place] = true;
    return --missing_ == 0;
}

void ManagerRequest::finish(const Result<std::string> &how) noexcept {
    const Ref<ClusterMaster> master = detach(); // nothing is reported any more
    if (!master) return;
    try {
        master->post_report([request = Ref<ManagerRequest>(this), how](ClusterMaster &told) {
            if (!request->launches()) return request->answer_(how);
            for (uint32_t i = 0; i < request->plan->count; i++)
                if (!request->reported_[i]) told.failed(request->question.member + i, how.error());
        });
    } catch (const std::bad_alloc &) { // the cluster's waits have deadlines
    }
}

// ---- one manager --------------------------------------------------------------------------------------------------

ServedManager::ServedManager(Context &context, const std::string &name, uint32_t wants, Queue &queue,
                             const muster_manager_ops *ops, void *self, uint64_t tag)
    : Provided({.context = context,
                .kind = ServedKind::manager,
                .name = name,
                .shown = "manager " + name,
                .queue = &queue,
                .tag = tag,
                .self = self,
                .has_callbacks = ops != nullptr,
                .callbacks = callbacks_of(ops)}),
      wants_(wants_of(ops, wants)), ops_(ops != nullptr ? *ops : muster_manager_ops{}) {}

Result<void> ServedManager::publish() {
    if (find_built_in_manager(name()) == nullptr) return {};
    return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", shown());
}

bool ServedManager::would_deadlock() noexcept {
    const Queue &queue = *ServedProvider::queue();
    return !queue.awaited() && queue.taken_here();
}

Result<void> ServedManager::send(const Ref<ManagerRequest> &request) {
    return ServedRequests::of(context()).send(*request);
}

// Lack of memory is a failure like others.
template <class Send>
static Result<void> without_memory(const Send &send) {
    try {
        return send();
    } catch (const std::bad_alloc &) {
        return Error::make(MUSTER_E_NOMEM, "out of memory for a request to the manager");
    }
}

void ServedManager::launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) {
    const auto sent = without_memory([&] {
        const ManagerQuestion question{.want = MUSTER_MANAGER_LAUNCH, .member = first};
        return send(make_ref<ManagerRequest>(*this, master, question, plan, nullptr));
    });
    if (sent) return;
    for (uint32_t i = 0; i < plan->count; i++) master.failed(first + i, sent.error());
}

void ServedManager::ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) {
    const auto sent = without_memory([&] {
        return send(make_ref<ManagerRequest>(*this, master, question, std::shared_ptr<const LaunchPlan>(), answer));
    });
    if (!sent) answer(sent.error());
}

void ServedManager::forget(ClusterMaster &master, uint32_t member) noexcept {
    for_each(*this, master, [&](ManagerRequest &request) {
        if (!request.check_member(member)) return true;
        if (request.expect_no_more(member)) ServedRequests::of(context()).drop(request.id());
        return false;
    });
}

void ServedManager::drop_questions(ClusterMaster &master, uint32_t member) noexcept {
    constexpr uint32_t dropped = MUSTER_MANAGER_KILL | MUSTER_MANAGER_INTERRUPT;
    for_each(*this, master, [&](ManagerRequest &request) {
        if (request.question.member == member && (request.question.want & dropped) != 0)
            ServedRequests::of(context()).drop(request.id());
        return true;
    });
}

Ref<ClusterManager> find_served_manager(Context &context, const std::string &name) {
    return ServedRequests::of(context).find<ServedManager>(name);
}

void leave_served_managers(ClusterMaster &master) noexcept {
    constexpr uint32_t notices = MUSTER_MANAGER_REGISTER | MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_FINALIZE;
    ServedRequests *requests = nullptr;
    try {
        requests = &ServedRequests::of(master.context());
    } catch (const std::bad_alloc &) { // then there are none
        return;
    }
    for (uint64_t last = 0;;) {
        const auto request = requests->next<ManagerRequest>(last);
        if (!request) return;
        last = request->id();
        if (!request->is_of(master)) continue;
        request->leave_cluster();
        if ((request->question.want & notices) == 0) requests->drop(last);
    }
}

// On the thread that dispatches.
void ServedManager::call_for(ServedRequest &request) {
    muster_manager_request what;
    static_cast<ManagerRequest &>(request).write(what);
    switch (what.operation) {
    case MUSTER_MANAGER_LAUNCH:
        return ops_.launch(self(), request.id(), &what);
    case MUSTER_MANAGER_CONNECT:
        return ops_.connect(self(), request.id(), &what);
    case MUSTER_MANAGER_CONNECT_WORKER:
        return ops_.connect_worker(self(), request.id(), &what);
    case MUSTER_MANAGER_KILL:
        return ops_.kill(self(), request.id(), &what);
    default:
        return ops_.manage(self(), request.id(), &what);
    }
}

// ---- the host's answers -------------------------------------------------------------------------------------------

Result<void> ServedManager::read(Queue &queue, uint64_t id, muster_manager_request &out) {
    auto request = find(queue, id);
    if (!request) return request.error();
    (*request)->write(out);
    return {};
}

Result<std::string> ServedManager::ticket(Queue &queue, uint64_t id, uint32_t member) {
    auto request = find_launch(queue, id, member);
    if (!request) return request.error();
    const Ref<ClusterMaster> master = (*request)->master();
    if (!master) return ServedRequests::stale(id);
    return master->ticket(*(*request)->plan, member).line();
}

static Result<void> report(Queue &queue, ManagerRequest &request, uint32_t member,
                           std::function<void(ClusterMaster &)> how) {
    auto last = request.report(member, std::move(how));
    if (!last) return last.error();
    if (*last) ServedRequests::of(queue.context()).answer(request);
    return {};
}

Result<void> ServedManager::ready(Queue &queue, uint64_t id, uint32_t member, std::string address, uint64_t data) {
    auto request = find_launch(queue, id, member);
    if (!request) return request.error();
    if (address.empty() && (*request)->plan->master_dials())
        return Error::make(MUSTER_E_ARG, "worker %u: the master is to dial, and there is no address", member);
    return report(queue, **request, member, [member, address = std::move(address), data](ClusterMaster &master) {
        master.ready(member, address, data);
    });
}

Result<void> ServedManager::failed(Queue &queue, uint64_t id, uint32_t member, const Error &why) {
    auto request = find_launch(queue, id, member);
    if (!request) return request.error();
    return report(queue, **request, member, [member, why](ClusterMaster &master) { master.failed(member, why); });
}

Result<void> ServedManager::done(Queue &queue, uint64_t id, std::string address) {
    auto request = find(queue, id);
    if (!request) return request.error();
    if ((*request)->launches())
        return Error::make(MUSTER_E_ARG, "request %llu is a LAUNCH: report its workers one by one",
                           static_cast<unsigned long long>(id));
    const bool wanted = wants_address((*request)->question);
    if (wanted != !address.empty())
        return Error::make(MUSTER_E_ARG, "request %llu: %s", static_cast<unsigned long long>(id),
                           wanted ? "no address" : "an address, which it does not ask for");
    if (!ServedRequests::of(queue.context()).answer(**request)) return ServedRequests::stale(id);
    (*request)->finish(std::move(address));
    return {};
}

Result<void> ServedManager::fail(Queue &queue, uint64_t id, const Error &why) {
    auto request = find(queue, id);
    if (!request) return request.error();
    if (!ServedRequests::of(queue.context()).answer(**request)) return ServedRequests::stale(id);
    (*request)->finish(why);
    return {};
}

} // namespace muster
