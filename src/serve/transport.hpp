// SPDX-License-Identifier: MIT
#pragma once
// Transports served by the host: dialling and listening become requests in a queue, answered by id.
#include "plugin/plugins.hpp"
#include "plugin/session_address.hpp"
#include "queue/served.hpp"
#include "serve/pump.hpp"

#include <muster/serve.h>

namespace muster {

// Any thread.
class ServedListener final : public TransportListener {
  public:
    ServedListener(ServedTransport &transport, uint64_t request, const SessionAddress &address,
                   const TransportOptions &options, Ref<ListenerCore> core);
    std::string address() override;
    void close() noexcept override;
    void answer(std::string address) noexcept; // it listens; empty: at the address as requested
    void fail(const Error &why) noexcept { core_->fail(why); }
    const SessionAddress &requested() const noexcept { return requested_; }
    SessionListener target();
    // Incoming connections that have not proved the secret yet. False: the limit is reached.
    bool admit_one() noexcept;
    void proved_one() noexcept { unproved_.fetch_sub(1, std::memory_order_relaxed); }
    PendingSessions &pending() noexcept { return *pending_; } // loop thread

  private:
    const Ref<ServedTransport> transport_;
    const uint64_t request_;
    const SessionAddress requested_;
    const TransportOptions options_;
    const Ref<ListenerCore> core_;
    const Ref<PendingSessions> pending_;
    std::atomic<uint32_t> unproved_{0}; // relaxed: a limit; connections that the loop has not attached yet count
    std::mutex lock_;                   // guards the rest
    std::string address_;
    bool closed_ = false;
};

// A dial, a listener, or an incoming connection: it has a pump or a listener, and lasts as long as that. Any thread.
class TransportRequest final : public ServedRequest {
  public:
    static constexpr ServedKind served_kind = ServedKind::transport;
    TransportRequest(ServedTransport &transport, int32_t kind);
    ServedTransport &transport() const noexcept;
    // Written before the request is sent.
    Ref<Pump> pump;
    Ref<ServedListener> listener;

  private:
    void withdrawn(const Error &why, bool answered) noexcept override;
    bool outlives_withdrawal() const noexcept override { return static_cast<bool>(pump); }
};

// One scheme. Any thread, unless a member says otherwise.
class ServedTransport final : public Provided<Transport>, private SessionTransport {
  public:
    static constexpr ServedKind served_kind = ServedKind::transport;
    // `ops` NULL: requests are pulled.
    ServedTransport(Context &context, const std::string &scheme, Queue &queue, uint32_t flags,
                    const muster_transport_ops *ops, void *self, uint64_t tag);
    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override;
    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override;
    bool would_deadlock() noexcept override { return ServedProvider::would_deadlock(); }
    bool is_local() const noexcept { return (flags_ & MUSTER_TRANSPORT_LOCAL) != 0; }
    bool seals() const noexcept { return (flags_ & MUSTER_TRANSPORT_SEALS) != 0; }
    ServedRequests &requests() const noexcept { return ServedRequests::of(context()); }

    // --- the host's answers
    static Result<std::string> address(Queue &queue, uint64_t id);
    static Result<Ref<Stream>> answer_stream(Queue &queue, uint64_t id);
    static Result<void> answer_listening(Queue &queue, uint64_t id, std::string_view address);
    static Result<void> fail(Queue &queue, uint64_t id, const Error &why);
    static Result<Ref<Stream>> accept(Queue &queue, uint64_t listen_id, std::string_view peer, uint64_t &out_id);

  private:
    void call_for(ServedRequest &request) override;
    Result<void> publish() override;
    void unpublish() noexcept override;
    void ended() noexcept override { leave_.post(context()); }
    void leave_sessions() noexcept { SessionTransport::leave(); } // loop thread
    // loop thread
    Object &transport_object() noexcept override { return *this; }
    void context_closes() noexcept override { requests().withdraw(*this); }
    bool context_drained() noexcept override;
    void context_stops() noexcept override;

    const muster_transport_ops ops_;
    const uint32_t flags_;
    PostedTask<ServedTransport, &ServedTransport::leave_sessions> leave_{*this};
};

inline TransportRequest::TransportRequest(ServedTransport &transport, int32_t kind) : ServedRequest(transport, kind) {}
inline ServedTransport &TransportRequest::transport() const noexcept {
    return static_cast<ServedTransport &>(provider());
}

} // namespace muster
