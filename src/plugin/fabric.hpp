// SPDX-License-Identifier: MIT
#pragma once
// A scheme served by a fabric plug-in: one endpoint, numbered peers, a session with each of them in each direction in
// which it was dialled, any number of streams in a session.
//
// Each message begins with 8 bytes: a mark, flags, the version (u16), and the generation (u32), which distinguishes a
// session with a peer from an earlier one. The bytes after it belong to the session. In a message for many
// (broadcast.hpp) the generation is 0, and 8 bytes for each receiver follow: the generation and the stream to which the
// bytes belong.
#include "plugin/pairing.hpp"
#include "plugin/plugin_transport.hpp"
#include "plugin/session.hpp"
#include "plugin/session_address.hpp"
#include "queue/future.hpp"

#include <map>
#include <unordered_map>

namespace muster {

class FabricListener;
class FabricSession;

// listen() from any thread but the loop; everything else on the loop thread.
class Fabric final : public PluginTransport, public MulticastGroup {
  public:
    static Result<Ref<Fabric>> make(Plugin &plugin, const std::string &scheme, const muster_fabric_ops &ops,
                                    void *self);
    static void fill(muster_host &table) noexcept; // the functions of the host table for fabrics

    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override;
    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override;

    Ref<SharedPiece> share(uint32_t count, const void *data, size_t size) override;

  private:
    friend class Broadcast;
    friend class FabricListener;
    friend class FabricSession;
    friend struct FabricHost;
    struct Publishing : Object { // a listener whose authority was requested
        Future<Result<void>> result;
        Ref<FabricListener> listener; // empty: no thread waits any more; loop thread
    };
    struct Dialing { // a dial that waits for its peer's number
        SessionAddress address;
        TransportOptions options;
        Ref<Dial> dial;
    };
    using SessionKey = std::pair<bool, uint32_t>; // did this side begin it, generation
    struct Peer : Listed<Peer> {                  // in tidy_list_
        uint64_t id = 0;
        uint64_t credits = 0;
        bool blocked = false, proved = false;
        uint32_t flags = 0; // MUSTER_PLUGIN_LOCAL, MUSTER_PLUGIN_SEALS
        Ref<SharedSegment> segment;
        uint32_t generation = 0; // of the last session begun here
        std::map<SessionKey, Ref<FabricSession>> sessions;
        bool reset_due = false; // one at a time: a reset for an unknown session is repeated
        SessionKey reset_key;
    };

    Fabric(Plugin &plugin, std::string scheme, const muster_fabric_ops &ops, void *self);
    Result<void> ensure_started();
    Result<void> check(const SessionAddress &address, bool listening) const;
    std::string authority(const SessionAddress &address) const; // in the form that the plug-in receives
    Result<void> publish(const Ref<FabricListener> &listener);
    void begin_publishing(const Ref<FabricListener> &listener, const Ref<Publishing> &publishing);
    void end_publishing(Publishing &publishing, Result<void> result) noexcept;
    void published(uint64_t question, Status status, const char *text, size_t text_bytes);
    SessionConfig config_for(const Peer &peer) const;
    void dial_peer(uint64_t id, const Dialing &dialing);
    Peer &peer(uint64_t id);
    Ref<FabricSession> meet(Peer &from, SessionKey key, uint8_t flags);
    Ref<FabricSession> add_session(Peer &peer, SessionKey key, SessionConfig config);
    void maybe_forget(uint64_t id) noexcept;
    void tidy_later(Peer &peer) noexcept;
    void tidy() noexcept;
    void tick() noexcept;
    uint32_t unproved() const noexcept;
    // host table
    void message(uint64_t id, const unsigned char *data, size_t size, Loan *loan);
    void message_multicast(uint64_t id, const unsigned char *data, size_t size, uint32_t index, uint32_t count,
                           Loan *loan);
    void resolved(uint64_t question, Status status, uint64_t id, const char *text, size_t text_bytes);
    void reset_later(Peer &peer, SessionKey key) noexcept;
    void strange(Peer &from);
    Status send(Peer &peer, uint8_t flags, uint32_t generation, const void *data, size_t size) noexcept;
    void charge(Peer &peer, uint64_t bytes) const noexcept;
    bool upgrades() const noexcept { return (ops_.flags & MUSTER_PLUGIN_UPGRADES) != 0; }

    const muster_broker_ops *broker(void *&self) noexcept override {
        self = self_;
        return ops_.broker;
    }

    void context_closes() noexcept override;
    bool context_drained() noexcept override;
    void context_stops() noexcept override;

    const muster_fabric_ops ops_;
    const uint64_t message_bytes_;
    std::unordered_map<uint64_t, Peer> peers_;
    List<Peer> tidy_list_; // to be sent a reset, or forgotten
    PostedTask<Fabric, &Fabric::tidy> tidy_{*this};
    std::map<std::string, Ref<FabricListener>> services_;
    std::map<uint64_t, Dialing> dialing_; // these two by the number of the question
    std::map<uint64_t, Ref<Publishing>> publishing_;
    std::vector<std::string> withdrawn_; // authorities published after their listener was gone
    uint64_t next_question_ = 1;
    size_t session_count_ = 0;
    std::unique_ptr<LoopTimer> timer_; // while there are sessions
};

// A session with a peer, as its channel. Loop thread only.
class FabricSession final : public Channel, private SessionOwner {
  public:
    FabricSession(Fabric &fabric, uint64_t peer, std::pair<bool, uint32_t> key, SessionConfig config);

    size_t room() noexcept override;
    size_t headroom() const noexcept override;
    Status send(const void *data, size_t size, size_t &taken) noexcept override;
    Status send_buffer(void *segment, size_t offset, size_t size) noexcept override;
    Status poll() noexcept override;
    bool polls() const noexcept override;
    bool needs_polls() const noexcept override;
    void proved() noexcept override;
    bool can_pair() const noexcept override;
    void paired(Ref<SharedSegment> segment, Status status) noexcept override;
    MulticastGroup *multicast_group() noexcept override;
    void close(bool orderly) noexcept override;

  private:
    friend class Broadcast;
    friend class Fabric;
    friend struct FabricHost;
    void session_proved(Session &) override {}
    SessionListener session_listener(Session &session, std::string_view service) override;
    std::string session_routes(Session &session, std::string_view service) override;
    void session_over(Session &session, const Error &why) override;
    uint8_t flags() const noexcept;
    void sent(Status status) noexcept;

    const Ref<Fabric> fabric_;
    const uint64_t peer_;
    const std::pair<bool, uint32_t> key_;
    const bool auth_;
    const SealPolicy seal_;
    const bool upgrade_;
    Ref<Session> session_;
    bool begun_ = false; // the first message was sent
    bool over_ = false;
};

// A service of this process. address() and close() from any thread.
class FabricListener final : public TransportListener {
  public:
    FabricListener(Fabric &fabric, const SessionAddress &address, const TransportOptions &options,
                   Ref<ListenerCore> core);
    std::string address() override { return address_; } // written once, before another thread has the listener
    void close() noexcept override;

  private:
    friend class Fabric;
    friend class FabricSession;
    void withdraw() noexcept;
    std::string routes(bool same_host);

    const Ref<Fabric> fabric_;
    const SessionAddress wanted_;
    const TransportOptions options_;
    const Ref<ListenerCore> core_;
    std::string address_, authority_;
    bool open_ = false;
    // The addresses at which its streams are available without the fabric; made at the first request. Loop thread.
    Ref<TransportListener> shared_, direct_;
    bool shared_tried_ = false, direct_tried_ = false;
};

} // namespace muster
