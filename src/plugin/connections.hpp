// SPDX-License-Identifier: MIT
#pragma once
// A scheme served by a connections plug-in: one connection, one session, one stream.
#include "plugin/pairing.hpp"
#include "plugin/pending_sessions.hpp"
#include "plugin/plugin_transport.hpp"
#include "plugin/session.hpp"
#include "plugin/session_address.hpp"

namespace muster {

class ConnectionLink;
class ConnectionListener;

// listen() from any thread but the loop; everything else on the loop thread.
class Connections final : public PluginTransport {
  public:
    static Result<Ref<Connections>> make(Plugin &plugin, const std::string &scheme, const muster_connections_ops &ops,
                                         void *self);
    static void fill(muster_host &table) noexcept; // the functions of the host table for connections

    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override;
    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override;

  private:
    friend class ConnectionLink;
    friend class ConnectionListener;
    friend struct ConnectionHost;
    Connections(Plugin &plugin, std::string scheme, const muster_connections_ops &ops, void *self);
    Result<void> ensure_started();
    Ref<ConnectionLink> make_link(SessionConfig config);
    void context_closes() noexcept override;
    bool context_drained() noexcept override;
    void context_stops() noexcept override;

    const muster_connections_ops ops_;
    std::vector<Ref<ConnectionLink>> links_;
    std::vector<Ref<ConnectionListener>> listeners_;
};

// A connection of the plug-in, as a session sees it; the object of a muster_link. Loop thread only.
class ConnectionLink final : public Channel, public PendingSession, private SessionOwner {
  public:
    ConnectionLink(Connections &transport, SessionConfig config);

    size_t room() noexcept override { return blocked_ || connection_ == nullptr ? 0 : 512 * 1024; }
    Status send(const void *data, size_t size, size_t &taken) noexcept override;
    void resume() noexcept override;
    void finish() noexcept override;
    void proved() noexcept override;
    bool can_pair() const noexcept override { return transport_->ops_.segment_shared != nullptr; }
    void paired(Ref<SharedSegment> segment, Status status) noexcept override;
    void close(bool orderly) noexcept override;

    Session &session() noexcept { return *session_; }

  private:
    friend class Connections;
    friend struct ConnectionHost;
    Object &pending_object() noexcept override { return *this; }
    Session *pending_session() const noexcept override { return session_.get(); }
    void session_proved(Session &session) override;
    SessionListener session_listener(Session &session, std::string_view service) override;
    void session_over(Session &session, const Error &why) override;

    const Ref<Connections> transport_;
    Ref<Session> session_;
    Ref<ConnectionListener> listener_; // of an incoming connection
    Ref<SharedSegment> segment_;
    void *connection_ = nullptr;
    bool blocked_ = false;
};

// A listener of the plug-in; the object of a muster_acceptor. address() and close() from any thread.
class ConnectionListener final : public TransportListener {
  public:
    ConnectionListener(Connections &transport, const SessionAddress &address, const TransportOptions &options,
                       Ref<ListenerCore> core);
    std::string address() override { return address_; } // written once, before another thread has the listener
    void close() noexcept override;

  private:
    friend class Connections;
    friend class ConnectionLink;
    friend struct ConnectionHost;
    void unlisten() noexcept;

    const Ref<Connections> transport_;
    const SessionAddress wanted_;
    const TransportOptions options_;
    const Ref<ListenerCore> core_;
    std::string address_;
    void *listener_ = nullptr;
    bool open_ = false;
    const Ref<PendingSessions> pending_; // connections that have not proved the secret yet
};

} // namespace muster
