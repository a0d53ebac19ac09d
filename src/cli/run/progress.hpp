// SPDX-License-Identifier: MIT
#pragma once
// A line of `muster run` about what this node waits for, on a terminal: other nodes, or workers that are to end.
#include "run/options.hpp"

#include <ctime>

namespace run {

// Written to stderr; nothing if that is a file or a pipe. The cursor stays at the begin of the line, so whatever else
// is written there replaces it.
class Progress {
  public:
    explicit Progress(const Options &options);
    bool is_possible() const noexcept { return is_terminal_; }
    static constexpr int update_ms = 250;
    void update(muster_agent *agent); // after events, and after update_ms without any
    void erase();                     // before anything else is written

  private:
    std::string line(muster_agent *agent, const muster_agent_state &state, int64_t seconds) const;

    const Options &options_;
    const bool is_terminal_;
    bool is_shown_ = false;
    uint32_t phase_ = 0;
    int64_t since_s_ = 0; // of the phase
};

} // namespace run
