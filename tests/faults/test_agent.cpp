// SPDX-License-Identifier: MIT
// agent.h: workers of one node, with and without a rendezvous.
#include "scenario.hpp"

#include <muster/agent.h>

#include <csignal>
#include <cstring>

using namespace faults;

static muster_agent_config agent_config(const char *const *argv) {
    muster_agent_config config{};
    config.struct_size = sizeof config;
    config.argv = argv;
    config.worker_count = 2;
    config.grace_ns = second;
    config.console_outputs = MUSTER_AGENT_STDOUT;
    return config;
}

static void run_agent(const char *command, bool stops) {
    Context context;
    create(context);
    Queue queue;
    {
        const Paused guard;
        OK(muster_queue_create, context, nullptr, queue.out(), &error);
    }
    const char *const argv[] = {"sh", "-c", command, nullptr};
    const muster_agent_config config = agent_config(argv);
    Agent agent;
    OK(muster_agent_start, context, &config, queue, 7, agent.out(), &error);
    muster_agent_state state{};
    OK(muster_agent_get_state, agent, &state);
    muster_agent_worker worker{};
    OK(muster_agent_get_worker, agent, 0, &worker);
    Rendezvous rendezvous;
    EXPECT(CALL(muster_agent_rendezvous, agent, rendezvous.out()) == MUSTER_E_NOT_FOUND);
    if (stops) {
        muster_status status = CALL(muster_agent_signal, agent, SIGCONT);
        EXPECT(status == MUSTER_OK || status == MUSTER_E_STALE);
        status = CALL(muster_agent_stop, agent, SIGTERM, second);
        EXPECT(status == MUSTER_OK || status == MUSTER_E_STALE);
    }
    const muster_status status = CALL(muster_agent_wait, agent, patience, &error);
    if (status != MUSTER_OK && !has_fired()) EXPECT(status == MUSTER_E_ABORTED || status == MUSTER_E_CANCELED);
    if (status == MUSTER_TIMEOUT) wrong("the agent does not end");
    if (status == MUSTER_E_ABORTED) {
        const muster_status first = CALL(muster_agent_first_failure, agent, &worker);
        EXPECT(first == MUSTER_OK || has_fired());
        char text[4096];
        size_t bytes = 0;
        const muster_status told = CALL(muster_agent_failure_text, agent, text, sizeof text, &bytes);
        EXPECT(told == MUSTER_OK || has_fired());
    }
    muster_status flushed = CALL(muster_agent_flush, agent, patience);
    if (flushed != MUSTER_OK) expect_fault("muster_agent_flush", flushed);
    OK(muster_agent_flush_begin, agent, patience, queue, 8, &error);
    for (bool is_flushed = false, is_over = false; !is_flushed || !is_over;) {
        muster_completion entry{};
        const muster_status next = CALL(muster_queue_next, queue, patience, &entry, &error);
        if (next != MUSTER_OK)
            wrong("a completion of an agent did not appear (flushed %d, over %d)", is_flushed, is_over);
        if (entry.kind == MUSTER_DONE_CALL) is_flushed = true;
        if (entry.kind == MUSTER_DONE_AGENT) {
            is_over = true;
            if (entry.status != MUSTER_OK) check_status("muster_agent_wait", entry.status, "MUSTER_DONE_AGENT");
        }
    }
}

SCENARIO(agent, succeeds) {
    run_agent("echo done >/dev/null", false);
}
SCENARIO(agent, fails) {
    run_agent("test $RANK = 0 && exit 3; sleep 5", false);
}
SCENARIO(agent, is_stopped) {
    run_agent("sleep 5", true);
}
