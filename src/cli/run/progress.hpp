// SPDX-License-Identifier: MIT
#pragma once
// A line of `muster run` about what this node waits for, on a terminal: other nodes, or workers that are to end.
#include "base/terminal_line.hpp"
#include "run/options.hpp"

#include <ctime>

namespace run {

class Progress {
  public:
    explicit Progress(const Options &options) noexcept : options_(options) {}
    bool is_possible() const noexcept { return line_.is_possible(); }
    static constexpr int update_ms = 250;
    void update(muster_agent *agent);        // after events, and after update_ms without any
    void erase() noexcept { line_.erase(); } // before anything else is written

  private:
    std::string text_of(muster_agent *agent, const muster_agent_state &state, int64_t seconds) const;

    const Options &options_;
    muster::TerminalLine line_;
    uint32_t phase_ = 0;
    int64_t since_s_ = 0; // of the phase
};

} // namespace run
