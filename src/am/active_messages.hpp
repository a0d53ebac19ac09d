// SPDX-License-Identifier: MIT
#pragma once
// An endpoint of active messages: its handlers and its peers.
#include "am/peer.hpp"
#include "am/polling.hpp"

#include <array>

namespace muster {

class AmHostRequest;

// Threads. The loop thread executes handlers. It reads the streams, too, unless a thread that waits for a reply does.
// Any thread makes requests: it writes to the stream itself if nothing waits before it. Reading never waits for
// writing, so two endpoints with full streams do not block each other: what cannot be written waits in AmPeer, within
// the limits of the peer's requests. Locks: lock_, then AmPeer's; execution_lock_ is held while a handler is executed,
// and before both.
class ActiveMessages final : public Object, private Source {
  public:
    struct Settings {
        AmPeer::Limits limits;
        Ref<Queue> queue; // of the host, for events; or none
        uint64_t tag = 0;
    };
    static Result<Ref<ActiveMessages>> make(Context &context, Settings settings);

    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }
    const Settings settings;

    struct Handler {
        muster_am_fn function = nullptr;
        void *user = nullptr;
        Ref<Queue> queue; // without a function
        uint64_t tag = 0;
    };
    Status set_handler(uint32_t number, Handler handler) noexcept;
    // The peer has the handle of the stream if the result is a success.
    Result<uint32_t> add_peer(Stream &stream);
    Ref<AmPeer> peer(uint32_t number) noexcept; // empty: no such peer

    // Waits for the reply.
    struct Request {
        uint32_t peer, handler;
        const void *data;
        size_t bytes;
        void *reply;
        size_t capacity;
    };
    AmCall::Outcome call(const Request &request, Deadline &deadline);
    // The two halves of it: makes the request, once there is room; and waits for the reply. Without a call: `why`.
    struct Started {
        Ref<AmPeer> peer;
        Ref<AmCall> call;
        Error why;
    };
    // `made`: the call, of the caller's; by default a new one. `reads`: may this thread read the stream, where only the
    // deadline and the reply end its wait?
    Started start(const Request &request, Deadline &deadline, Ref<AmCall> made = {});
    AmCall::Outcome finish(Started &started, Deadline &deadline, bool reads = true);
    // OK, AGAIN or a failure; then nothing was begun. `queue`: NULL, the peer keeps a failure. `kind`: of the entry.
    Result<void> begin(const Request &request, Queue *queue, uint64_t tag, int32_t kind = MUSTER_DONE_AM);
    Status flush(uint32_t peer, Deadline &deadline) noexcept; // UINT32_MAX: all
    void disconnect(AmPeer &peer, std::string_view text) noexcept;
    Status reply(AmPeer &peer, uint64_t id, Status status, const void *data, size_t bytes) noexcept;
    // Any thread; on the loop thread a handler that is executed goes on.
    void close() noexcept;
    void host_release() noexcept;

  private:
    ActiveMessages(Context &context, Settings what, Ref<Queue> events);
    ~ActiveMessages() override = default;
    Object &owner() noexcept override { return *this; }
    Result<void> check(const Request &request, Ref<AmPeer> &out_peer, uint32_t &out_limit);
    void enter() noexcept;
    void turn() noexcept;
    void end_at_loop() noexcept;
    void context_closes() noexcept { end_all(Error::make(MUSTER_E_CLOSED, "the context is closed")); }
    void end_all(const Error &why) noexcept;
    void end_peer(AmPeer &peer, const Error &why, std::string_view text) noexcept;
    // received.cpp
    bool read(AmPeer &peer, bool arms) noexcept;
    void read_later(AmPeer &peer) noexcept;
    void poll() noexcept;
    bool poll_for(const Ref<AmPeer> &peer) noexcept;
    void end_for_memory(AmPeer &peer) noexcept;
    bool begin_reading_for_call(AmPeer &peer) noexcept;
    void end_reading_for_call(AmPeer &peer) noexcept;
    void read_until_over(AmPeer &peer, AmCall &call, Deadline &deadline) noexcept;
    Status read_once(AmPeer &peer, unsigned char *buffer, size_t capacity, Deadline &deadline, bool arms = true);
    Status try_read(AmPeer &peer, unsigned char *buffer, size_t capacity, Deadline &deadline, bool arms) noexcept;
    void stream_ended(AmPeer &peer) noexcept;
    bool take(AmPeer &peer, const unsigned char *data, size_t bytes);
    bool take_partial(AmPeer &peer);
    bool take_frame(AmPeer &peer, const AmHead &head, const unsigned char *payload);
    bool execute(AmPeer &peer, const AmHead &head, const unsigned char *payload);
    bool give_to_host(AmPeer &peer, const AmHead &head, const unsigned char *payload, const Handler &handler);
    bool broken(AmPeer &peer, const char *what) noexcept;

    const Ref<Context> context_;
    const Ref<Queue> events_;                   // readiness of the streams, for the loop thread
    std::array<Handler, am_handlers> handlers_; // each is set once, under lock_, before requests for it arrive
    std::array<std::atomic<bool>, am_handlers> has_handler_{}; // release after it is set; pairs with execute()
    std::mutex execution_lock_;
    std::mutex lock_; // guards the rest
    std::vector<Ref<AmPeer>> peers_;
    bool closed_ = false;
    std::vector<uint32_t> again_; // peers that the loop thread reads in its next turn
    Signal changed_;              // a reply has arrived, or a peer has room or has ended
    // The loop thread.
    std::vector<unsigned char> in_, scratch_;
    Polling polling_;
    const bool can_poll_;
    int64_t poll_for_ns_ = 0, last_request_ns_ = 0;
    struct Polled {
        Ref<AmPeer> peer;
        uint64_t seen; // bytes of shared memory
    };
    std::vector<Polled> polled_; // their watches are not armed, until no request has come for poll_for_ns_

    PostedTask<ActiveMessages, &ActiveMessages::enter> enter_{*this};
    PostedTask<ActiveMessages, &ActiveMessages::turn> turn_task_{*this};
    PostedTask<ActiveMessages, &ActiveMessages::end_at_loop> end_{*this};
    Closing<ActiveMessages, &ActiveMessages::context_closes> closing_node_{*this};
};

// A request that the host answers. Any thread.
class AmHostRequest final : public Object {
  public:
    AmHostRequest(ActiveMessages &am, AmPeer &peer, const AmHead &head, const unsigned char *payload)
        : am_(&am), peer_(&peer), id_(head.id), handler_(head.handler), data_(payload, payload + head.payload) {}
    bool forked() const noexcept { return am_->forked(); }
    void get(muster_am_request_info &out) const noexcept {
        out = {data_.data(), data_.size(), peer_->number, handler_};
    }
    Status reply(Status status, const void *data, size_t bytes) noexcept;

  private:
    ~AmHostRequest() override { reply(MUSTER_E_CANCELED, nullptr, 0); }
    const Ref<ActiveMessages> am_;
    const Ref<AmPeer> peer_;
    const uint64_t id_;
    const uint32_t handler_;
    const std::vector<unsigned char> data_;
    std::atomic<bool> answered_{false}; // acq_rel: the first answer counts
};

inline ActiveMessages *unwrap(muster_am *handle) noexcept {
    return reinterpret_cast<ActiveMessages *>(handle);
}
inline muster_am *wrap(ActiveMessages *object) noexcept {
    return reinterpret_cast<muster_am *>(object);
}
inline AmHostRequest *unwrap(muster_am_request *handle) noexcept {
    return reinterpret_cast<AmHostRequest *>(handle);
}
inline const AmHostRequest *unwrap(const muster_am_request *handle) noexcept {
    return reinterpret_cast<const AmHostRequest *>(handle);
}
inline muster_am_request *wrap(AmHostRequest *object) noexcept {
    return reinterpret_cast<muster_am_request *>(object);
}

} // namespace muster
