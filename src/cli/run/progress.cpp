// SPDX-License-Identifier: MIT
#include "run/progress.hpp"

#include <algorithm>

namespace run {

namespace {

constexpr int64_t quiet_s = 1; // a shorter wait is not worth a line

int64_t now_s() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

muster_rendezvous_state meeting_of(muster_agent *agent) {
    muster_rendezvous_state state{};
    muster_rendezvous *meeting = nullptr;
    if (muster_agent_rendezvous(agent, &meeting) != MUSTER_OK) return state;
    muster_rendezvous_get_state(meeting, &state);
    muster_rendezvous_release(meeting);
    return state;
}

std::string number(uint64_t value) {
    return std::to_string(value);
}

} // namespace

// Empty: there is nothing to wait for, or the output of the workers has the terminal.
std::string Progress::text_of(muster_agent *agent, const muster_agent_state &state, int64_t seconds) const {
    const std::string time = " (" + number(static_cast<uint64_t>(seconds)) + " s)";
    switch (state.phase) {
    case MUSTER_AGENT_JOINING: {
        const muster_rendezvous_state meeting = meeting_of(agent);
        std::string text = "joining: " + number(meeting.joined) + " of " + number(options_.min_nodes);
        if (options_.max_nodes != options_.min_nodes) text += " to " + number(options_.max_nodes);
        text += " nodes";
        if (meeting.last_call_remaining_ns >= 0 && meeting.joined >= options_.min_nodes)
            text += ", more may come for " +
                    number(static_cast<uint64_t>(meeting.last_call_remaining_ns + 999'999'999) / 1'000'000'000) + " s";
        return text + time;
    }
    case MUSTER_AGENT_STARTING:
        return "starting " + number(state.worker_count) + " workers" + time;
    case MUSTER_AGENT_STOPPING:
        if (state.running == 0) return {};
        return "stopping: " + number(state.running) + " of " + number(state.worker_count) + " workers still run" + time;
    case MUSTER_AGENT_DONE: {
        const muster_rendezvous_state meeting = meeting_of(agent);
        return "done here: " + number(meeting.present - std::min(meeting.present, meeting.exiting)) + " of " +
               number(meeting.present) + " nodes still work" + time;
    }
    default:
        return {};
    }
}

void Progress::update(muster_agent *agent) {
    if (!is_possible()) return;
    muster_agent_state state{};
    if (muster_agent_get_state(agent, &state) != MUSTER_OK) return;
    const int64_t now = now_s();
    if (state.phase != phase_) {
        phase_ = state.phase;
        since_s_ = now;
    }
    const int64_t seconds = now - since_s_;
    const std::string text = seconds < quiet_s ? "" : text_of(agent, state, seconds);
    line_.show(text.empty() ? text : "muster run: " + text);
}

} // namespace run
