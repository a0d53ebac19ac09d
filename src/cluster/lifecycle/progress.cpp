// SPDX-License-Identifier: MIT
#include "cluster/lifecycle/progress.hpp"

namespace muster {

namespace {

constexpr int64_t quiet_ns = 1'000'000'000; // a shorter wait is not worth a line

std::string counted(size_t number, const char *what) {
    return std::to_string(number) + ' ' + what + (number == 1 ? "" : "s");
}

} // namespace

ClusterProgress::ClusterProgress() noexcept {
    const char *const wanted = getenv("MUSTER_PROGRESS");
    is_wanted_ = wanted != nullptr && strcmp(wanted, "1") == 0 && line_.is_possible();
}

ClusterProgress::Phase ClusterProgress::phase_of(const Picture &now) noexcept {
    if (now.is_closing) return now.leaving + now.joined + now.joining > 0 ? Phase::closing : Phase::none;
    if (now.joining > 0) return Phase::joining;
    return now.receiving > 0 ? Phase::broadcasting : Phase::none;
}

std::string ClusterProgress::text_of(const Picture &now, int64_t seconds) {
    const std::string time = " (" + std::to_string(seconds) + " s)";
    switch (phase_of(now)) {
    case Phase::closing:
        return "muster: closing, " + counted(now.leaving + now.joined + now.joining, "worker") + " left" + time;
    case Phase::joining:
        return "muster: " + std::to_string(now.joined) + " of " + counted(now.joined + now.joining, "worker") +
               " joined" + time;
    case Phase::broadcasting:
        return "muster: broadcast received by " + std::to_string(now.receivers - now.receiving) + " of " +
               counted(now.receivers, "member") + time;
    default:
        return {};
    }
}

void ClusterProgress::update(const Picture &now, int64_t now_ns) {
    if (const Phase phase = phase_of(now); phase != phase_) {
        phase_ = phase;
        since_ns_ = now_ns;
    }
    const int64_t waited_ns = now_ns - since_ns_;
    line_.show(waited_ns < quiet_ns ? std::string() : text_of(now, waited_ns / 1'000'000'000));
}

} // namespace muster
