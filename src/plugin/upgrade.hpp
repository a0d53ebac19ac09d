// SPDX-License-Identifier: MIT
#pragma once
// Two processes that have met over a fabric may have a better connection for a stream: shared memory, or a connection
// of their own. The accepting side sends the addresses; the dialling side tries them here, and if none works the stream
// uses the fabric after all.
#include "context/task.hpp"
#include "transport/transport.hpp"

#include <mutex>

namespace muster {

class LoopTimer;
class Session;

// Tries addresses one after the other; Session::upgraded() follows, once, on the loop thread, unless it
// was stopped. done() and stop_by() from any thread, the rest on the loop thread.
class Upgrade final : public Dial {
  public:
    // `addresses`: shm:// and tcp://, a newline between them; others are passed over.
    Upgrade(Session &session, uint32_t id, const TransportOptions &options, std::string addresses);
    ~Upgrade() override;
    void start() noexcept { next(); }
    void stop() noexcept;
    void done(Result<Ref<Stream>> result) noexcept override;
    bool stop_by(Ref<Attempt> attempt) noexcept override;
    Context &context() noexcept override { return context_; }

  private:
    void next() noexcept;
    void settle() noexcept;

    Context &context_;
    Ref<Session> session_; // empty: over
    const uint32_t id_;
    TransportOptions options_;
    std::string addresses_; // those not tried yet
    std::unique_ptr<LoopTimer> timer_;
    PostedTask<Upgrade, &Upgrade::settle> settle_{*this};
    std::mutex lock_; // guards the rest
    bool trying_ = false;
    Ref<Attempt> attempt_;
    Ref<Stream> stream_;
};

} // namespace muster
