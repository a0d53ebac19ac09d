// SPDX-License-Identifier: MIT
// The calls of any thread; work.cpp and elastic.cpp are the agent's own thread.
#include "agent/agent.hpp"

#include "base/thread.hpp"
#include "context/threaded_objects.hpp"
#include "rendezvous/member/member.hpp"

#include <csignal>
#include <cstring>
#include <sys/random.h>

namespace muster {

namespace {

Result<std::string> make_agent_id() {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "make a random name for the agent");
    std::string id;
    for (const unsigned char byte : bytes)
        for (const int shift : {4, 0}) id.push_back("0123456789abcdef"[byte >> shift & 15]);
    return id;
}

} // namespace

Agent::Agent(Context &context, AgentPlan plan, Queue &queue, uint64_t tag, Ref<Queue> inbox, WorkerFiles files)
    : context_(&context), plan_(std::move(plan)), queue_(&queue), tag_(tag), inbox_(std::move(inbox)),
      files_(std::move(files)), workers_(plan_.worker_count) {
    inbox_->attach(commands_, 0);
}

Agent::~Agent() {
    context_->metrics.remove(metrics_);
    inbox_->detach(commands_);
}

Result<Ref<Agent>> Agent::start(Context &context, AgentPlan plan, Queue &queue, uint64_t tag) {
    auto id = make_agent_id();
    if (!id) return id.error();
    auto files = WorkerFiles::make(plan);
    if (!files) return files.error();
    // Room for an exit of each worker, of this start and of the one before, for guards, and for the notice of commands.
    auto inbox = Queue::create(context, 2 * plan.worker_count + 256);
    if (!inbox) return inbox.error();
    Fd out = std::move(plan.out), err = std::move(plan.err);
    const auto agent =
        Ref<Agent>::adopt(new Agent(context, std::move(plan), queue, tag, std::move(*inbox), std::move(*files)));
    agent->output_ = make_ref<Output>(context, std::move(out), std::move(err));
    agent->group_.emplace(context, *agent->inbox_, agent->plan_, *agent->files_, *agent->output_, std::move(*id));
    if (auto ready = agent->group_->prepare(); !ready) return ready.error();
    agent->show(MUSTER_AGENT_STARTING);
    if (!ThreadedObjects<Agent>::of(context).add(*agent)) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    agent->retain(); // the thread's
    if (const int why = start_thread(&body, agent.get())) {
        agent->release();
        ThreadedObjects<Agent>::of(context).remove(*agent);
        return Error::from_errno(why, MUSTER_E_NOMEM, "a thread for the agent");
    }
    context.metrics.add(agent->metrics_);
    return agent;
}

void Agent::write_metrics(MetricsWriter &writer) {
    static constexpr Metric phase{
        "muster_agent_phase", Metric::gauge,
        "A value of muster_agent_phase: 1 joining, 2 starting, 3 running, 4 stopping, 5 done, "
        "6 ended."};
    static constexpr Metric workers{"muster_agent_workers", Metric::gauge, "Workers of this node."};
    static constexpr Metric running{"muster_agent_workers_running", Metric::gauge, "Workers that are running."};
    static constexpr Metric restarts{"muster_agent_restarts_total", Metric::counter, "Restarts because of a failure."};
    static constexpr Metric round{"muster_agent_round", Metric::gauge, "Number of the round."};
    static constexpr Metric nodes{"muster_agent_nodes", Metric::gauge, "Nodes of the round."};
    static constexpr Metric node_rank{"muster_agent_node_rank", Metric::gauge, "Rank of this node among them."};
    static constexpr Metric world{"muster_agent_world_size", Metric::gauge, "Workers of all nodes."};
    muster_agent_state now{};
    state(now);
    const std::string labels = metric_label("run_id", plan_.run_id) + "," + metric_label("role", plan_.role);
    const auto add = [&](const Metric &metric, double value) { writer.add(metric, value, labels); };
    add(phase, now.phase);
    add(workers, now.worker_count);
    add(running, now.running);
    add(restarts, now.restarts);
    add(round, static_cast<double>(now.round));
    add(nodes, now.group_world_size);
    add(node_rank, now.group_rank);
    add(world, now.world_size);
}

void *Agent::body(void *self) {
    pthread_setname_np(pthread_self(), "muster-agent");
    const auto agent = Ref<Agent>::adopt(static_cast<Agent *>(self));
    agent->run();
    return nullptr;
}

// The thread checks all commands whenever it wakes up, so readiness is enough for any number of them.
void Agent::wake_thread() noexcept {
    inbox_->raise(commands_, 1);
}

Error Agent::wait(Deadline &deadline) noexcept {
    Error not_yet;
    not_yet.status = outcome_.wait(*context_, deadline);
    return not_yet.status == MUSTER_OK ? outcome_.value() : not_yet;
}

Status Agent::signal(int number) noexcept {
    const std::lock_guard hold(lock_);
    if (outcome_.is_complete()) return MUSTER_E_STALE;
    signals_ |= uint64_t{1} << (number - 1);
    wake_thread();
    return MUSTER_OK;
}

Status Agent::stop(int number, int64_t grace_ns, Status why) noexcept {
    const std::lock_guard hold(lock_);
    if (outcome_.is_complete()) return MUSTER_E_STALE;
    stop_.fresh = true;
    stop_.number = number != 0 ? number : SIGTERM;
    stop_.grace_ns = grace_ns < 0 ? plan_.grace_ns : grace_ns;
    if (stop_.why == MUSTER_OK) stop_.why = why;
    wake_thread();
    return MUSTER_OK;
}

void Agent::state(muster_agent_state &out) noexcept {
    const std::lock_guard hold(lock_);
    out = state_;
}

Status Agent::worker(uint32_t local_rank, muster_agent_worker &out) noexcept {
    const std::lock_guard hold(lock_);
    if (local_rank >= workers_.size()) return MUSTER_E_NOT_FOUND;
    out = workers_[local_rank];
    return MUSTER_OK;
}

Status Agent::first_failure(muster_agent_worker &out) noexcept {
    const std::lock_guard hold(lock_);
    if (!failure_) return MUSTER_E_NOT_FOUND;
    out = *failure_;
    return MUSTER_OK;
}

Status Agent::rendezvous(muster_rendezvous *&out) noexcept {
    const std::lock_guard hold(lock_);
    if (open_rendezvous_ == nullptr) return MUSTER_E_NOT_FOUND;
    unwrap(open_rendezvous_)->add_handle();
    out = open_rendezvous_;
    return MUSTER_OK;
}

Status Agent::failure_text(char *out, size_t capacity, size_t *out_bytes) noexcept {
    const std::lock_guard hold(lock_);
    if (!failure_) return MUSTER_E_NOT_FOUND;
    *out_bytes = failure_text_.size();
    if (out == nullptr) return MUSTER_OK;
    if (capacity < failure_text_.size()) return MUSTER_E_LIMIT;
    memcpy(out, failure_text_.data(), failure_text_.size());
    return MUSTER_OK;
}

void AgentHandle::last_reference_gone() noexcept {
    if (agent_ && agent_->forked()) return; // the parent's
    if (agent_) agent_->stop(SIGTERM, -1, MUSTER_E_CANCELED);
    delete this;
}

} // namespace muster
