// SPDX-License-Identifier: MIT
#pragma once
// The messages of `muster run` on stderr.
#include "run/options.hpp"

namespace run {

// One line about the nodes that are waited for.
void show_waiting(const Options &options, muster_agent *agent);

// The message for an event of the agent.
void show_event(const Options &options, muster_agent *agent, const muster_completion &event,
                const muster_error &detail);

// Which worker failed first, and how all have ended.
void show_failure(const Options &options, muster_agent *agent, const muster_error &outcome);

} // namespace run
