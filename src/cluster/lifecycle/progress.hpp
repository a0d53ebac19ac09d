// SPDX-License-Identifier: MIT
#pragma once
// A line on the terminal about what the host of a master waits for, if MUSTER_PROGRESS=1 is in its environment: workers
// that are to join, members that are to receive a broadcast, workers that are to end.
#include "base/terminal_line.hpp"

#include <cstdint>
#include <string>

namespace muster {

// The cluster's thread.
class ClusterProgress {
  public:
    ClusterProgress() noexcept;
    bool is_wanted() const noexcept { return is_wanted_; }
    static constexpr int64_t interval_ns = 250'000'000;

    struct Picture { // of one moment
        size_t joined = 0, joining = 0, leaving = 0;
        size_t receiving = 0, receivers = 0; // members of broadcasts of this process: still without the bytes, and all
        bool is_closing = false;
    };
    void update(const Picture &now, int64_t now_ns);
    void erase() noexcept { line_.erase(); }

    // Empty: there is nothing to wait for. The same words while one thing is waited for.
    enum class Phase : uint8_t { none, closing, joining, broadcasting };
    static Phase phase_of(const Picture &now) noexcept;
    static std::string text_of(const Picture &now, int64_t seconds);

  private:
    TerminalLine line_;
    bool is_wanted_ = false;
    Phase phase_ = Phase::none;
    int64_t since_ns_ = 0; // of the phase
};

} // namespace muster
