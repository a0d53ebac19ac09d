// SPDX-License-Identifier: MIT
#pragma once
// A dial from the host's side: deadline, retries, cancellation and completion.
#include "base/back_off.hpp"
#include "queue/operation.hpp"
#include "transport/hub.hpp"
#include "transport/transport.hpp"

namespace muster {

// Any thread.
class HostDial final : public Dial, public QueueOperation {
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
    void start() noexcept;                             // loop thread
    void attempt() noexcept;                           // loop thread
    void pause() noexcept;                             // loop thread: the next attempt follows at retry_at_
    void end(Status status, const char *why) noexcept; // from outside
    void end_early(Ending why) noexcept override;
    void over_at_loop() noexcept override { hub_.stop_timer(retry_); }
    void finish(Result<Ref<Stream>> result) noexcept;
    bool retry_later(const Error &why) noexcept;
    bool attempt_until(int64_t until_ns) noexcept;
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
    Timer<HostDial, &HostDial::attempt> retry_{*this};
    Ref<Attempt> attempt_; // under the operation's lock
};

} // namespace muster
