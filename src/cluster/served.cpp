// SPDX-License-Identifier: MIT
#include "cluster/served.hpp"
#include "queue/refusal.hpp"

#include <algorithm>

namespace muster {

namespace {

Error is_over(uint64_t id) noexcept {
    return Error::make(MUSTER_E_STALE, "request %llu is over, or never was", static_cast<unsigned long long>(id));
}

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

} // namespace

// ---- one manager and one request
// ------------------------------------------------------------------------------------------

void ManagerRequest::tell(muster_manager_request &out) const noexcept {
    out = {};
    out.struct_size = sizeof out;
    out.operation = question.want;
    out.member = question.member;
    out.count = launches() ? plan->count : 1;
    out.from = question.from;
    out.data = question.data;
    out.launch = launches() ? &plan->shown() : nullptr;
    const bool asks_where = question.want == MUSTER_MANAGER_CONNECT || question.want == MUSTER_MANAGER_CONNECT_WORKER;
    out.address = asks_where ? question.address.c_str() : nullptr;
    if (!master_) return; // the cluster is over
    out.cluster = wrap(master_->handle());
    out.cluster_tag = master_->tag();
}

ServedManager::ServedManager(Context &context, std::string name, uint32_t wants, Queue &queue,
                             const muster_manager_ops *ops, void *self, uint64_t tag)
    : context_(context), name_(std::move(name)), wants_(wants_of(ops, wants)), queue_(&queue),
      with_ops_(ops != nullptr), self_(self), tag_(tag) {
    if (ops != nullptr) ops_ = *ops;
}

// Want of memory is a failure like others.
template <class Send>
static Result<void> without_memory(const Send &send) {
    try {
        return send();
    } catch (const std::bad_alloc &) {
        return Error::make(MUSTER_E_NOMEM, "out of memory for a request to the manager");
    }
}

void ServedManager::launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) {
    const auto send = [&]() -> Result<void> {
        const auto request = make_ref<ManagerRequest>(*this, master);
        request->question.want = MUSTER_MANAGER_LAUNCH;
        request->question.member = first;
        request->plan = plan;
        return ServedManagers::of(context_).send(request);
    };
    if (auto sent = without_memory(send); !sent)
        for (uint32_t i = 0; i < plan->count; i++) master.failed(first + i, sent.error());
}

void ServedManager::ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) {
    const auto send = [&]() -> Result<void> {
        const auto request = make_ref<ManagerRequest>(*this, master);
        request->question = question;
        request->answer = answer;
        return ServedManagers::of(context_).send(request);
    };
    if (auto sent = without_memory(send); !sent) answer(sent.error());
}

void ServedManager::forget(ClusterMaster &master, uint32_t member) noexcept {
    ServedManagers::of(context_).forget(*this, master, member);
}

void ServedManager::drop_questions(ClusterMaster &master, uint32_t member) noexcept {
    ServedManagers::of(context_).drop_questions(*this, master, member);
}

void ServedManager::say(int32_t kind, ManagerRequest *about) noexcept {
    Entry entry;
    entry.completion.kind = kind;
    entry.completion.request = about != nullptr ? about->id : 0;
    entry.completion.tag = tag_;
    if (with_ops_) entry.table = this;
    entry.asker = about != nullptr ? Ref<Object>(about) : Ref<Object>(this); // each keeps the table
    queue_->complete(std::move(entry));
}

// On the thread that dispatches.
void ServedManager::serve(const muster_completion &entry) {
    if (entry.kind == MUSTER_REQUEST_CANCEL) return ops_.cancel != nullptr ? ops_.cancel(self_, entry.request) : void();
    if (entry.kind == MUSTER_REQUEST_CLOSE) return ops_.destroy != nullptr ? ops_.destroy(self_) : void();
    muster_manager_request what;
    const Ref<ManagerRequest> request = ServedManagers::of(context_).open(entry.request, what);
    if (!request) return; // over before anybody has heard of it
    switch (what.operation) {
    case MUSTER_MANAGER_LAUNCH:
        return ops_.launch(self_, entry.request, &what);
    case MUSTER_MANAGER_CONNECT:
        return ops_.connect(self_, entry.request, &what);
    case MUSTER_MANAGER_CONNECT_WORKER:
        return ops_.connect_worker(self_, entry.request, &what);
    case MUSTER_MANAGER_KILL:
        return ops_.kill(self_, entry.request, &what);
    default:
        return ops_.manage(self_, entry.request, &what);
    }
}

Ref<ClusterManager> find_served_manager(Context &context, const std::string &name) {
    return ServedManagers::of(context).find(name);
}

void leave_served_managers(ClusterMaster &master) noexcept {
    try {
        ServedManagers::of(master.context()).leave(master);
    } catch (const std::bad_alloc &) { // there are none, then
    }
}

// ---- those of a context
// -----------------------------------------------------------------------------------------------------

ServedManagers &ServedManagers::of(Context &context) {
    static const char key = 0;
    return static_cast<ServedManagers &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<ServedManagers>(c); }));
}

Result<void> ServedManagers::add(Ref<ServedManager> manager) {
    const char *const name = manager->name().c_str();
    Queue &queue = manager->requests();
    if (context_.closed()) return Error::make(MUSTER_E_CLOSED, "manager %s: the context is closed", name);
    if (queue.closed()) return Error::make(MUSTER_E_CLOSED, "manager %s: the queue is closed", name);
    std::map<std::string, Ref<ServedManager>> line; // made before anybody can find it
    line.emplace(manager->name(), manager);
    if (manager->has_table() && !queue.reserve())
        return why_refused(queue, ("manager " + manager->name() + ": the queue of requests").c_str());
    queue.set_server(*this);
    const std::lock_guard hold(lock_);
    if (find_built_in_manager(manager->name()) != nullptr || managers_.count(manager->name()) != 0) {
        if (manager->has_table()) queue.unreserve();
        return Error::make(MUSTER_E_EXISTS, "manager %s: the name is taken", name);
    }
    managers_.insert(line.extract(line.begin()));
    return {};
}

Ref<ServedManager> ServedManagers::find(const std::string &name) {
    const std::lock_guard hold(lock_);
    const auto found = managers_.find(name);
    return found == managers_.end() ? Ref<ServedManager>() : found->second;
}

Result<void> ServedManagers::withdraw(const std::string &name) {
    Ref<ServedManager> gone;
    {
        const std::lock_guard hold(lock_);
        const auto found = managers_.find(name);
        if (found == managers_.end())
            return Error::make(MUSTER_E_NOT_FOUND, "the host serves no manager \"%s\"", name.c_str());
        gone = found->second;
        managers_.erase(found);
    }
    take_back(std::move(gone));
    return {};
}

void ServedManagers::take_back(Ref<ServedManager> manager) noexcept {
    const Error why = Error::make(MUSTER_E_CLOSED, "manager %s was taken back", manager->name().c_str());
    for (;;) {
        Ref<ManagerRequest> request;
        Ref<ClusterMaster> master;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const auto &line) {
                return line.second->manager.get() == manager.get();
            });
            if (found == requests_.end()) break;
            request = found->second;
            master = std::move(request->master_);
            part_with(request->id, true);
        }
        if (!master) continue;
        try {
            master->post_report([request, why](ClusterMaster &told) {
                if (!request->launches()) return request->answer(why);
                for (uint32_t i = 0; i < request->plan->count; i++)
                    if (!request->reported_[i]) told.failed(request->question.member + i, why);
            });
        } catch (const std::bad_alloc &) { // those who wait have their deadlines
        }
    }
    if (manager->has_table()) manager->say(MUSTER_REQUEST_CLOSE, nullptr);
}

void ServedManagers::queue_released(Queue &queue) noexcept {
    for (;;) {
        Ref<ServedManager> gone;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(managers_.begin(), managers_.end(),
                                            [&](const auto &line) { return line.second->queue() == &queue; });
            if (found == managers_.end()) return;
            gone = found->second;
            managers_.erase(found);
        }
        take_back(std::move(gone));
    }
}

void ServedManagers::close() noexcept {
    for (;;) {
        Ref<ServedManager> gone;
        {
            const std::lock_guard hold(lock_);
            if (managers_.empty()) return;
            gone = managers_.begin()->second;
            managers_.erase(managers_.begin());
        }
        take_back(std::move(gone));
    }
}

// ---- requests
// ---------------------------------------------------------------------------------------------------------------

Result<void> ServedManagers::send(Ref<ManagerRequest> request) {
    ServedManager &manager = *request->manager;
    Queue &queue = manager.requests();
    if (request->launches()) {
        request->reported_.resize(request->plan->count);
        request->left_ = request->plan->count;
    }
    if (!queue.reserve()) return why_refused(queue, ("manager " + manager.name() + ": the queue of requests").c_str());
    if (!queue.reserve()) {
        const Error why = why_refused(queue, ("manager " + manager.name() + ": the queue of requests").c_str());
        queue.unreserve();
        return why;
    }
    {
        const std::lock_guard hold(lock_);
        const auto there = managers_.find(manager.name());
        if (there == managers_.end() || there->second.get() != &manager) {
            queue.unreserve();
            queue.unreserve();
            return Error::make(MUSTER_E_CLOSED, "manager %s was taken back", manager.name().c_str());
        }
        request->id = next_++;
        requests_.emplace(request->id, request);
    }
    manager.say(MUSTER_REQUEST_MANAGER, request.get());
    return {};
}

void ServedManagers::part_with(uint64_t id, bool cancelled) noexcept {
    const auto found = requests_.find(id);
    const Ref<ManagerRequest> request = found->second;
    requests_.erase(found);
    if (cancelled)
        request->manager->say(MUSTER_REQUEST_CANCEL, request.get());
    else
        request->manager->requests().unreserve();
}

void ServedManagers::forget(ServedManager &manager, ClusterMaster &master, uint32_t member) noexcept {
    const std::lock_guard hold(lock_);
    for (const auto &[id, request] : requests_) {
        if (request->manager.get() != &manager || request->master_.get() != &master || !request->launches()) continue;
        const uint32_t place = member - request->question.member;
        if (member < request->question.member || place >= request->plan->count || request->reported_[place]) continue;
        request->reported_[place] = true;
        if (--request->left_ == 0) part_with(id, true);
        return;
    }
}

void ServedManagers::drop_questions(ServedManager &manager, ClusterMaster &master, uint32_t member) noexcept {
    const std::lock_guard hold(lock_);
    constexpr uint32_t dropped = MUSTER_MANAGER_KILL | MUSTER_MANAGER_INTERRUPT;
    for (auto line = requests_.begin(); line != requests_.end();) {
        const Ref<ManagerRequest> request = line->second;
        ++line;
        if (request->manager.get() != &manager || request->master_.get() != &master) continue;
        if (request->question.member == member && (request->question.want & dropped) != 0) part_with(request->id, true);
    }
}

void ServedManagers::leave(ClusterMaster &master) noexcept {
    std::vector<Ref<ClusterMaster>> gone; // let go of without the lock
    const std::lock_guard hold(lock_);
    constexpr uint32_t notices = MUSTER_MANAGER_REGISTER | MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_FINALIZE;
    for (auto line = requests_.begin(); line != requests_.end();) {
        const Ref<ManagerRequest> request = line->second;
        ++line;
        if (request->master_.get() != &master) continue;
        request->master_.reset(); // the caller has another reference
        if ((request->question.want & notices) == 0) part_with(request->id, true);
    }
}

Ref<ManagerRequest> ServedManagers::open(uint64_t id, muster_manager_request &out) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return {};
    found->second->tell(out);
    return found->second;
}

// ---- the host's words
// ---------------------------------------------------------------------------------------------------------

Result<Ref<ManagerRequest>> ServedManagers::look(Queue &queue, uint64_t id) {
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second->manager->queue() != &queue) return is_over(id);
    return found->second;
}

Result<void> ServedManagers::read(Queue &queue, uint64_t id, muster_manager_request &out) {
    const std::lock_guard hold(lock_);
    auto request = look(queue, id);
    if (!request) return request.error();
    (*request)->tell(out);
    return {};
}

Result<Ref<ManagerRequest>> ServedManagers::look_at_launch(Queue &queue, uint64_t id, uint32_t member) {
    auto found = look(queue, id);
    if (!found) return found;
    const ManagerRequest &request = **found;
    if (!request.launches())
        return Error::make(MUSTER_E_ARG, "request %llu is no LAUNCH", static_cast<unsigned long long>(id));
    const uint32_t first = request.question.member;
    if (member < first || member - first >= request.plan->count)
        return Error::make(MUSTER_E_ARG, "worker %u is none of this LAUNCH: %u to %u", member, first,
                           first + request.plan->count - 1);
    return found;
}

Result<std::string> ServedManagers::ticket(Queue &queue, uint64_t id, uint32_t member) {
    Ref<ManagerRequest> request;
    Ref<ClusterMaster> master;
    {
        const std::lock_guard hold(lock_);
        auto found = look_at_launch(queue, id, member);
        if (!found) return found.error();
        request = *found;
        master = request->master_;
    }
    if (!master) return is_over(id);
    return master->ticket(*request->plan, member).line();
}

Result<void> ServedManagers::report(ManagerRequest &request, uint32_t member,
                                    std::function<void(ClusterMaster &)> how) {
    const uint32_t place = member - request.question.member;
    if (request.reported_[place]) {
        if (request.master_->gone_by(member))
            return Error::make(MUSTER_E_STALE, "worker %u is not wanted any more", member);
        return Error::make(MUSTER_E_ARG, "worker %u was reported before", member);
    }
    if (!request.master_->post_report(std::move(how))) return is_over(request.id);
    request.reported_[place] = true;
    if (--request.left_ == 0) part_with(request.id, false);
    return {};
}

Result<void> ServedManagers::ready(Queue &queue, uint64_t id, uint32_t member, std::string address, uint64_t data) {
    const std::lock_guard hold(lock_);
    auto found = look_at_launch(queue, id, member);
    if (!found) return found.error();
    const Ref<ManagerRequest> request = *found;
    if (address.empty() && request->plan->master_dials())
        return Error::make(MUSTER_E_ARG, "worker %u: the master is to dial, and there is no address", member);
    return report(*request, member,
                  [member, address, data](ClusterMaster &master) { master.ready(member, address, data); });
}

Result<void> ServedManagers::failed(Queue &queue, uint64_t id, uint32_t member, const Error &why) {
    const std::lock_guard hold(lock_);
    auto found = look_at_launch(queue, id, member);
    if (!found) return found.error();
    const Ref<ManagerRequest> request = *found;
    return report(*request, member, [member, why](ClusterMaster &master) { master.failed(member, why); });
}

Result<void> ServedManagers::answer(Queue &queue, uint64_t id, const Result<std::string> &what) {
    const std::lock_guard hold(lock_);
    auto found = look(queue, id);
    if (!found) return found.error();
    const Ref<ManagerRequest> request = *found;
    if (request->master_) request->master_->post_report([request, what](ClusterMaster &) { request->answer(what); });
    part_with(id, false);
    return {};
}

Result<void> ServedManagers::done(Queue &queue, uint64_t id, std::string address) {
    {
        const std::lock_guard hold(lock_);
        auto found = look(queue, id);
        if (!found) return found.error();
        if ((*found)->launches())
            return Error::make(MUSTER_E_ARG, "request %llu is a LAUNCH: report its workers one by one",
                               static_cast<unsigned long long>(id));
        const uint32_t want = (*found)->question.want;
        const bool where = want == MUSTER_MANAGER_CONNECT || want == MUSTER_MANAGER_CONNECT_WORKER;
        if (where != !address.empty())
            return Error::make(MUSTER_E_ARG, "request %llu: %s", static_cast<unsigned long long>(id),
                               where ? "no address" : "an address, which it does not ask for");
    }
    return answer(queue, id, std::move(address));
}

Result<void> ServedManagers::fail(Queue &queue, uint64_t id, const Error &why) {
    {
        const std::lock_guard hold(lock_);
        auto found = look(queue, id);
        if (!found) return found.error();
        const Ref<ManagerRequest> request = *found;
        if (request->launches()) {
            request->master_->post_report([request, why](ClusterMaster &master) {
                for (uint32_t i = 0; i < request->plan->count; i++)
                    if (!request->reported_[i]) master.failed(request->question.member + i, why);
            });
            part_with(id, false);
            return {};
        }
    }
    return answer(queue, id, why);
}

} // namespace muster
