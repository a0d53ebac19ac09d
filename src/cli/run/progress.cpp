// SPDX-License-Identifier: MIT
#include "run/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace run {

namespace {

constexpr int64_t quiet_s = 1; // a shorter wait is not worth a line

int64_t now_s() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

size_t columns() noexcept {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
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

Progress::Progress(const Options &options)
    : options_(options), is_terminal_([] {
          const char *const terminal = getenv("TERM");
          return isatty(STDERR_FILENO) == 1 && (terminal == nullptr || strcmp(terminal, "dumb") != 0);
      }()) {}

// Empty: there is nothing to wait for, or the output of the workers has the terminal.
std::string Progress::line(muster_agent *agent, const muster_agent_state &state, int64_t seconds) const {
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
    if (!is_terminal_) return;
    muster_agent_state state{};
    if (muster_agent_get_state(agent, &state) != MUSTER_OK) return;
    const int64_t now = now_s();
    if (state.phase != phase_) {
        phase_ = state.phase;
        since_s_ = now;
    }
    const int64_t seconds = now - since_s_;
    std::string text = seconds < quiet_s ? "" : line(agent, state, seconds);
    if (text.empty()) return erase();
    text = "muster run: " + text;
    if (const size_t room = columns() - 1; text.size() > room) text.resize(room);
    fprintf(stderr, "\r%s\033[K\r", text.c_str());
    is_shown_ = true;
}

void Progress::erase() {
    if (!is_shown_) return;
    fprintf(stderr, "\r\033[K");
    is_shown_ = false;
}

} // namespace run
