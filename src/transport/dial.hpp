// SPDX-License-Identifier: MIT
#pragma once
// A dial from the host's side: deadline, retries, cancellation and completion.
#include "base/back_off.hpp"
#include "transport/hub.hpp"
#include "transport/transport.hpp"

#include <mutex>

namespace muster {

// Any thread.
class HostDial final : public Dial, private QueueUser {
  public:
    HostDial(Context &context, Ref<Transport> transport, Address address, TransportOptions options, int64_t timeout_ns);

    static Result<Ref<HostDial>> make(Context &context, std::string_view address, const TransportOptions &options,
                                      int64_t timeout_ns);
    // muster_transport_dial: waits for the end.
    Result<Ref<Stream>> wait();
    // muster_transport_dial_begin: MUSTER_AGAIN if the queue has no slot.
    Result<void> begin(Queue &queue, uint64_t tag);

    void done(Result<Ref<Stream>> result) noexcept override;
    void busy(const Error &why) noexcept override; // dials again, as long as it would have waited for the handshake
    bool stop_by(Ref<Attempt> attempt) noexcept override;
    Context &context() noexcept override { return *context_; }

  private:
    void start() noexcept;   // loop thread
    void attempt() noexcept; // loop thread
    void pause() noexcept;   // loop thread: the next attempt follows at retry_at_
    void tidy() noexcept;    // loop thread
    void too_late() noexcept { end(MUSTER_TIMEOUT, "not in time"); }
    void context_closes() noexcept { end(MUSTER_E_CANCELED, "the context was closed"); }
    void end(Status status, const char *why) noexcept; // from outside
    void finish(Result<Ref<Stream>> result) noexcept;
    bool retry_later(const Error &why) noexcept;
    bool attempt_until(int64_t until_ns) noexcept;
    void end_operations() noexcept override { end(MUSTER_E_CLOSED, "the queue was closed"); }
    bool cancel_operation(uint64_t tag) noexcept override;
    Object &owner() noexcept override { return *this; }

    const Ref<Context> context_;
    Hub &hub_;
    const Ref<Transport> transport_;
    const Address address_;
    const TransportOptions options_;
    Deadline deadline_;
    int64_t retry_until_ = 0, busy_until_ = 0;
    BackOff back_off_{5'000'000, 200'000'000}; // of the thread that ends an attempt, as retry_at_
    int64_t retry_at_ = 0;
    PostedTask<HostDial, &HostDial::start> start_{*this};
    PostedTask<HostDial, &HostDial::pause> pause_{*this};
    PostedTask<HostDial, &HostDial::tidy> tidy_{*this};
    Timer<HostDial, &HostDial::too_late> limit_{*this};
    Timer<HostDial, &HostDial::attempt> retry_{*this};
    Closing<HostDial, &HostDial::context_closes> closing_{*this};

    Signal signal_;
    std::mutex lock_; // guards the rest
    bool finished_ = false;
    Result<Ref<Stream>> result_;
    Ref<Attempt> attempt_;
    Ref<Queue> queue_;
    uint64_t tag_ = 0;
};

} // namespace muster
