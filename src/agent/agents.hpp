// SPDX-License-Identifier: MIT
#pragma once
#include "agent/agent.hpp"
#include "context/errand.hpp"

namespace muster {

// The agents of a context that are not over. A context that closes stops their workers, and waits for that as long as
// it waits at all.
class Agents final : public ContextPart {
  public:
    static Agents &of(Context &context);
    explicit Agents(Context &context) noexcept : context_(context) {}

    bool add(Agent &agent) noexcept; // false: the context is closing
    void remove(Agent &agent) noexcept;

    void close() noexcept override;
    bool drained() noexcept override;

  private:
    void look() noexcept {} // a turn of the loop, after which it asks again
    Context &context_;
    Errand<Agents, &Agents::look> turn_{*this};
    std::mutex lock_; // for what follows
    List<Agent> list_;
    bool closing_ = false;
};

} // namespace muster
