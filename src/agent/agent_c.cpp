// SPDX-License-Identifier: MIT
#include "agent/agent.hpp"
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"

using namespace muster;

namespace {

// Calls keep the agent alive while they are in it: another thread may release it meanwhile.
template <class Body>
Status inside(muster_agent *agent, Body &&body) noexcept {
    if (!agent) return MUSTER_E_ARG;
    if (unwrap(agent)->agent().forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<Agent> self(&unwrap(agent)->agent());
        return body(*self);
    });
}

bool possible(int32_t signal) noexcept {
    return signal >= 1 && signal <= 64;
}

} // namespace

extern "C" muster_status muster_agent_start(muster_context *context, const muster_agent_config *given,
                                            muster_queue *queue, uint64_t tag, muster_agent **out_agent,
                                            muster_error *error) {
    if (out_agent) *out_agent = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (!queue) return Error::make(MUSTER_E_ARG, "no queue");
        if (!out_agent) return Error::make(MUSTER_E_ARG, "no place for the agent");
        if (!given) return Error::make(MUSTER_E_ARG, "no configuration");
        Context &inside = *unwrap(context);
        if (inside.forked()) return Error::from_status(MUSTER_E_FORKED);
        if (&unwrap(queue)->context() != &inside) return Error::make(MUSTER_E_ARG, "the queue is of another context");
        if (inside.closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        if (unwrap(queue)->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
        muster_agent_config config;
        if (auto done = read_config(given, config, "muster_agent_config"); !done) return done;
        auto plan = read_plan(config);
        if (!plan) return plan.error();
        auto handle = make_ref<AgentHandle>();
        if (!unwrap(queue)->reserve()) return Result<void>::positive(MUSTER_AGAIN);
        try {
            auto agent = Agent::start(inside, std::move(*plan), *unwrap(queue), tag);
            if (!agent) {
                unwrap(queue)->unreserve();
                return agent.error();
            }
            handle->set(std::move(*agent));
            *out_agent = wrap(handle.detach());
            return {};
        } catch (...) {
            unwrap(queue)->unreserve();
            throw;
        }
    });
}

extern "C" muster_status muster_agent_wait(muster_agent *agent, int64_t timeout_ns, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!agent) return Error::make(MUSTER_E_ARG, "no agent");
        if (unwrap(agent)->agent().forked()) return Error::from_status(MUSTER_E_FORKED);
        const Ref<Agent> self(&unwrap(agent)->agent());
        const Ref<AgentHandle> handle(unwrap(agent));
        const HostCall call(self->context(), handle.get(), HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        const Error outcome = self->wait(deadline);
        if (outcome.status > 0) return Result<void>::positive(outcome.status);
        return outcome;
    });
}

extern "C" muster_status muster_agent_signal(muster_agent *agent, int32_t signal) {
    return inside(agent, [&](Agent &self) { return possible(signal) ? self.signal(signal) : Status{MUSTER_E_ARG}; });
}

extern "C" muster_status muster_agent_stop(muster_agent *agent, int32_t signal, int64_t grace_ns) {
    return inside(agent, [&](Agent &self) {
        return signal == 0 || possible(signal) ? self.stop(signal, grace_ns, MUSTER_E_CANCELED) : Status{MUSTER_E_ARG};
    });
}

extern "C" muster_status muster_agent_get_state(muster_agent *agent, muster_agent_state *out_state) {
    return inside(agent, [&](Agent &self) {
        if (!out_state) return Status{MUSTER_E_ARG};
        self.state(*out_state);
        return Status{MUSTER_OK};
    });
}

extern "C" muster_status muster_agent_rendezvous(muster_agent *agent, muster_rendezvous **out_rendezvous) {
    if (out_rendezvous) *out_rendezvous = nullptr;
    return inside(
        agent, [&](Agent &self) { return out_rendezvous ? self.rendezvous(*out_rendezvous) : Status{MUSTER_E_ARG}; });
}

extern "C" muster_status muster_agent_get_worker(muster_agent *agent, uint32_t local_rank,
                                                 muster_agent_worker *out_worker) {
    return inside(
        agent, [&](Agent &self) { return out_worker ? self.worker(local_rank, *out_worker) : Status{MUSTER_E_ARG}; });
}

extern "C" muster_status muster_agent_first_failure(muster_agent *agent, muster_agent_worker *out_worker) {
    return inside(agent,
                  [&](Agent &self) { return out_worker ? self.first_failure(*out_worker) : Status{MUSTER_E_ARG}; });
}

extern "C" muster_status muster_agent_failure_text(muster_agent *agent, char *out_text, size_t capacity,
                                                   size_t *out_bytes) {
    return inside(agent, [&](Agent &self) {
        return out_bytes ? self.failure_text(out_text, capacity, out_bytes) : Status{MUSTER_E_ARG};
    });
}

extern "C" muster_status muster_agent_flush(muster_agent *agent, int64_t timeout_ns) {
    return inside(agent, [&](Agent &self) {
        const Ref<AgentHandle> handle(unwrap(agent));
        const HostCall call(self.context(), handle.get(), HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        return self.flush(deadline);
    });
}

extern "C" muster_status muster_agent_flush_begin(muster_agent *agent, int64_t timeout_ns, muster_queue *queue,
                                                  uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!agent) return Error::make(MUSTER_E_ARG, "no agent");
        const Ref<Agent> self(&unwrap(agent)->agent());
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        const auto flush = [self, deadline = Deadline(timeout_ns)]() mutable {
            BegunCall::Outcome outcome;
            if (const Status status = self->flush(deadline); status != MUSTER_OK)
                outcome.why = Error::from_status(status);
            return outcome;
        };
        return BegunCall::begin({self->context(), MUSTER_DONE_CALL, flush}, queue, tag);
    });
}

extern "C" void muster_agent_release(muster_agent *agent) {
    if (agent) release_handle(*unwrap(agent));
}
