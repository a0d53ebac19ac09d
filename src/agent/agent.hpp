// SPDX-License-Identifier: MIT
#pragma once
#include "agent/group.hpp"
#include "agent/held_port.hpp"
#include "agent/nodes.hpp"
#include "queue/future.hpp"
#include "queue/queue.hpp"

#include <mutex>

namespace muster {

inline constexpr int64_t never = INT64_MAX;

// An agent, from its start to its end. Any thread; the work is done by a thread of its own, which holds a reference.
class Agent final : public Object, public Listed<Agent> {
  public:
    static Result<Ref<Agent>> start(Context &context, AgentPlan plan, Queue &queue, uint64_t tag);

    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }

    Error wait(Deadline &deadline) noexcept; // its end, or MUSTER_AGAIN, MUSTER_TIMEOUT
    Status signal(int number) noexcept;
    Status stop(int number, int64_t grace_ns, Status why) noexcept; // why: how it ends then
    void context_closes() noexcept { stop(0, -1, MUSTER_E_CLOSED); }
    Status flush(Deadline &deadline) noexcept { return output_->flush(deadline); }

    void state(muster_agent_state &out) noexcept;
    Status worker(uint32_t local_rank, muster_agent_worker &out) noexcept;
    Status first_failure(muster_agent_worker &out) noexcept;
    Status rendezvous(muster_rendezvous *&out) noexcept;
    Status failure_text(char *out, size_t capacity, size_t *out_bytes) noexcept;

  private:
    struct Stop {
        bool fresh = false; // requested, and not yet begun
        Status why = MUSTER_OK;
        int number = 0;
        int64_t grace_ns = 0;
    };
    Agent(Context &context, AgentPlan plan, Queue &queue, uint64_t tag, Ref<Queue> inbox, WorkerFiles files);
    static void *body(void *self);
    ~Agent() override;
    void write_metrics(MetricsWriter &writer);
    void wake_thread() noexcept;
    Status stop_why() noexcept; // MUSTER_OK: the agent was not stopped

    // The agent's thread.
    void run() noexcept;
    Error work();
    Result<void> start_group();
    void await_failure();
    void begin_stop(int number, int64_t grace_ns) noexcept;
    void await_end();
    void take_next(int64_t until_ns);
    void take_exit(const muster_completion &entry);
    void serve_commands();
    void show(uint32_t phase) noexcept;
    void show_failure(const Worker *failed);
    void post_event(uint32_t event, uint64_t bytes, const Error &detail) noexcept;
    void end(const Error &outcome) noexcept;

    // The same thread: other nodes (elastic.cpp). False: another round is needed.
    Result<void> open_rendezvous();
    Result<void> open_nodes(Deadline &deadline);
    Result<void> open_again(Deadline &deadline);
    void show_rendezvous(bool open) noexcept;
    Result<bool> settle();
    Result<void> settle_alone();
    Result<bool> join();
    Result<bool> settle_among_nodes();
    Result<Standing> learn_standing();
    Result<std::vector<Standing>> give_standings();
    Result<bool> finish(Error &why_not);
    bool round_lost() const noexcept;
    Error end_of_job(const Error &own);
    Error leave(const Error &outcome);
    void report_failure(const Error &failure, bool last);
    void on_rendezvous_event(const muster_rendezvous_event &event);
    Error ask(uint32_t operation, const std::string &reason, int64_t timeout_ns, bool stoppable);
    Error ask_view(const std::vector<muster_store_op> &ops);
    Error ask_others(const std::vector<muster_store_op> &ops); // ends once the round is lost
    Error await_answer(const Result<void> &begun, bool stoppable, bool ends_with_round = false);

    const Ref<Context> context_;
    const AgentPlan plan_;
    const Ref<Queue> queue_; // a slot is reserved until the end
    const uint64_t tag_;
    const Ref<Queue> inbox_;         // exits of workers, answers of other nodes, and the notice of commands
    struct Commands final : Source { // a command needs no memory when it is given
        explicit Commands(Agent &agent) noexcept : agent(agent) {}
        Object &owner() noexcept override { return agent; }
        Agent &agent;
    } commands_{*this};
    Ref<Output> output_; // set once, before the thread starts

    // The agent's thread, once it runs.
    std::optional<WorkerFiles> files_;
    std::optional<WorkerGroup> group_;
    std::optional<Nodes> nodes_;
    bool seen_ = false; // this node has waited with other nodes, or been a member of a round
    Standing standing_;
    HeldPort port_;
    struct {
        uint64_t round = 0; // the latest round known to need another one
        Error why;
    } lost_;
    bool closed_ = false;    // the inbox is closed
    int64_t kill_at_ns_ = 0; // while a group is being stopped

    std::mutex lock_;      // for the members below
    uint64_t signals_ = 0; // to be sent: bit n - 1 for signal n
    Stop stop_;
    muster_agent_state state_{};
    std::vector<muster_agent_worker> workers_;
    std::optional<muster_agent_worker> failure_;
    std::string failure_text_;
    muster_rendezvous *open_rendezvous_ = nullptr; // that of nodes_, as long as it is open

    Future<Error> outcome_; // any thread
    MetricsNode<Agent, &Agent::write_metrics> metrics_{*this};
};

// The target of a handle: its release stops the agent. Any thread.
class AgentHandle final : public Object {
  public:
    void set(Ref<Agent> agent) noexcept { agent_ = std::move(agent); } // once
    Agent &agent() const noexcept { return *agent_; }
    Context &context() const noexcept { return agent_->context(); }

  private:
    void last_reference_gone() noexcept override;
    Ref<Agent> agent_;
};

inline AgentHandle *unwrap(muster_agent *handle) noexcept {
    return reinterpret_cast<AgentHandle *>(handle);
}
inline muster_agent *wrap(AgentHandle *object) noexcept {
    return reinterpret_cast<muster_agent *>(object);
}

} // namespace muster
