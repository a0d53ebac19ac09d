// SPDX-License-Identifier: MIT
#pragma once
// What `muster run` says on stderr.
#include "run/options.hpp"

namespace run {

// One line about the nodes that are waited for.
void show_waiting(const Options &options, muster_agent *agent);

// What an event of the agent means.
void show_event(const Options &options, muster_agent *agent, const muster_completion &event,
                const muster_error &detail);

// Who failed first, and how all have ended.
void show_failure(const Options &options, muster_agent *agent, const muster_error &outcome);

} // namespace run
