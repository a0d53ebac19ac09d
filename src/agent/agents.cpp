// SPDX-License-Identifier: MIT
#include "agent/agents.hpp"

#include <csignal>

namespace muster {

Agents &Agents::of(Context &context) {
    static const char key = 0;
    return static_cast<Agents &>(context.part(
        &key, [](Context &context) -> std::unique_ptr<ContextPart> { return std::make_unique<Agents>(context); }));
}

bool Agents::add(Agent &agent) noexcept {
    const std::lock_guard hold(lock_);
    if (closing_) return false;
    list_.push_back(agent);
    return true;
}

void Agents::remove(Agent &agent) noexcept {
    {
        const std::lock_guard hold(lock_);
        list_.remove(agent);
    }
    turn_.post(context_);
}

void Agents::close() noexcept {
    const std::lock_guard hold(lock_);
    closing_ = true;
    for (Agent *agent = list_.first(); agent != nullptr; agent = List<Agent>::after(*agent))
        agent->stop(SIGTERM, -1, MUSTER_E_CLOSED);
}

bool Agents::drained() noexcept {
    const std::lock_guard hold(lock_);
    return list_.empty();
}

} // namespace muster
