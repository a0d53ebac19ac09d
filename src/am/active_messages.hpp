// SPDX-License-Identifier: MIT
#pragma once
// An endpoint of active messages: its handlers and its peers.
#include "am/peer.hpp"
#include "am/polling.hpp"

#include <array>
#include <shared_mutex>

namespace muster {

class AmHostRequest;

// Threads. The loop thread executes handlers. It reads the streams, too, unless a thread that waits for a reply does;
// that thread executes small requests for internal handlers, too, if no earlier request of the peer waits for the loop.
// Any thread makes requests: it writes to the stream itself if nothing waits before it. Reading never waits for
// writing, so two endpoints with full streams do not block each other: what cannot be written waits in AmPeer, within
// the limits of the peer's requests. Large payloads of internal handlers are read and written by threads that may block
// (bulk.cpp). Locks: lock_, then AmPeer's; execution_lock_ is held while a handler is executed, memory_lock_ while
// memory of the host is read or written for a peer, and both before those.
class ActiveMessages final : public Object, private Source {
  public:
    struct Settings {
        AmPeer::Limits limits;
        Ref<Queue> queue; // of the host, for events; or none
        uint64_t tag = 0;
        bool polls = true;
        uint32_t max_handler_reply = 0; // of handlers, without what they lend; 0: max_bytes
        uint32_t handler_reply_bytes() const noexcept {
            return max_handler_reply ? max_handler_reply : limits.max_bytes;
        }
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
        // Of internal handlers, and of large payloads that are copied once. `place`: where the bytes of a request
        // belong that follow the first `place_after`, of so many in all; null: it is read as any request. Afterwards
        // `placed` executes it, with the first bytes.
        unsigned char *(*place)(void *user, const unsigned char *data, size_t total) = nullptr;
        size_t place_after = 0;
        muster_am_fn placed = nullptr;
        // Replies itself, later or at once; false: `function` executes the request.
        bool (*later)(void *user, AmPeer &peer, uint64_t id, const unsigned char *data, size_t bytes) = nullptr;
        // The bytes of a successful reply where they are; null: `function` executes the request.
        const unsigned char *(*lend)(void *user, const unsigned char *data, size_t bytes, size_t &out_bytes) = nullptr;
        // Of an internal handler that any thread may execute: the bytes of the reply. A thread that waits for a reply
        // executes a request with a small one itself, so that two sides which call each other need no third thread.
        size_t (*reply_bytes)(const unsigned char *data, size_t bytes) = nullptr;
    };
    Status set_handler(uint32_t number, Handler handler) noexcept;
    // The peer has the handle of the stream if the result is a success.
    Result<uint32_t> add_peer(Stream &stream);
    // NULL: no such peer. Peers exist as long as their endpoint.
    AmPeer *peer(uint32_t number) const noexcept {
        return number < peer_count_.load(std::memory_order_acquire) // pairs with add_peer()
                   ? (*peers_[number / peers_per_block])[number % peers_per_block].get()
                   : nullptr;
    }

    // The role of the reader, for a thread that waits for replies: it saves a change from thread to thread. Meanwhile
    // the watch is not armed, so that bytes do not wake the loop thread, too. A thread with the role waits for nothing
    // else: the peer may wait for this side to read.
    class Reader {
      public:
        Reader(ActiveMessages &am, AmPeer *peer) noexcept : am_(am), peer_(peer) {}
        Reader(const Reader &) = delete;
        Reader &operator=(const Reader &) = delete;
        ~Reader() { leave(); }
        bool take() noexcept;        // is it this thread's now?
        void expect_much() noexcept; // it reads large replies until it leaves
        bool has() const noexcept { return has_; }
        AmPeer *peer() const noexcept { return peer_; }
        void leave() noexcept;
        void read_until_over(AmCall &call, Deadline &deadline) noexcept;

      private:
        ActiveMessages &am_;
        AmPeer *const peer_; // or NULL
        bool has_ = false, expects_much_ = false;
    };

    // Waits for the reply.
    struct Request {
        uint32_t peer, handler;
        const void *data;
        size_t bytes;
        void *reply;
        size_t capacity;
        const void *body = nullptr; // follows `data`
        size_t body_bytes = 0;
        uint64_t entry_bytes = UINT64_MAX; // of the entry of a request that is begun; by default the size of the reply
        const char *category = "am", *name = "call"; // in traces
        AmPayload payload() const noexcept { return {data, bytes, body, body_bytes}; }
    };
    AmCall::Outcome call(const Request &request, Deadline &deadline);
    // The two halves of it: makes the request, once there is room; and waits for the reply. Without a call: `why`.
    struct Started {
        AmPeer *peer = nullptr;
        Ref<AmCall> call;
        Error why;
    };
    // `made`: the call, of the caller's; by default a new one. `reader`: of this thread, where only the deadline and
    // the reply end its wait; it may keep the role afterwards.
    Started start(const Request &request, Deadline &deadline, Ref<AmCall> made = {}) {
        return start(request, deadline, std::move(made), peer(request.peer));
    }
    AmCall::Outcome finish(Started &started, Deadline &deadline, Reader *reader);
    AmCall::Outcome finish(Started &started, Deadline &deadline) {
        Reader reader(*this, started.peer);
        return finish(started, deadline, &reader);
    }
    // OK, AGAIN or a failure; then nothing was begun. `queue`: NULL, the peer keeps a failure. `kind`: of the entry.
    Result<void> begin(const Request &request, Queue *queue, uint64_t tag, int32_t kind = MUSTER_DONE_AM);
    Status flush(uint32_t peer, Deadline &deadline) noexcept; // UINT32_MAX: all
    // OK once done() is true, which is called again when a reply has arrived, or a peer has room or has ended.
    template <class Done>
    Status wait_for_room(Deadline &deadline, Done &&done) noexcept {
        return context_->wait(changed_, deadline, std::forward<Done>(done));
    }
    // `why`: what its requests end with here; the peer gets the text.
    void disconnect(AmPeer &peer, const Error &why, std::string_view text) noexcept;
    Status reply(AmPeer &peer, uint64_t id, Status status, const void *data, size_t bytes) noexcept;
    // Any thread; on the loop thread a handler that is executed goes on.
    void close() noexcept;
    bool is_closing() noexcept; // or its context: then peers may have ended here, and nowhere else
    void host_release() noexcept;
    // ---- bulk.cpp, on a thread for calls that may block, which has the role of the reader, or of the writer
    void read_bulk(AmPeer &from) noexcept;
    void write_bulk(AmPeer &to) noexcept;

  private:
    ActiveMessages(Context &context, Settings what, Ref<Queue> events);
    ~ActiveMessages() override = default;
    Object &owner() noexcept override { return *this; }
    Started start(const Request &request, Deadline &deadline, Ref<AmCall> made, AmPeer *to);
    Result<void> check(const Request &request, const AmPeer *to) const noexcept;
    void enter() noexcept;
    void turn() noexcept;
    void end_at_loop() noexcept;
    void context_closes() noexcept { end_all(Error::make(MUSTER_E_CLOSED, "the context is closed")); }
    void end_all(const Error &why) noexcept;
    void end_peer(AmPeer &peer, const Error &why, std::string_view text) noexcept;
    // reading.cpp
    bool read(AmPeer &peer, bool arms) noexcept;
    void read_later(AmPeer &peer) noexcept;
    void poll() noexcept;
    bool poll_for(AmPeer &peer) noexcept;
    void end_for_memory(AmPeer &peer) noexcept;
    Status read_once(AmPeer &peer, unsigned char *buffer, size_t capacity, Deadline &deadline, bool arms = true);
    Status try_read(AmPeer &peer, unsigned char *buffer, size_t capacity, Deadline &deadline, bool arms) noexcept;
    Status read_placed(AmPeer &peer, Deadline &deadline, bool arms);
    void stream_ended(AmPeer &peer) noexcept;
    // bulk.cpp
    bool add_bulk_task(AmPeer &peer, bool reads) noexcept;
    bool give_bulk_reading(AmPeer &from) noexcept;
    void give_bulk_writing(AmPeer &to) noexcept;
    // received.cpp
    size_t bytes_before_place(AmPeer &peer, const AmHead &head) noexcept;
    bool place(AmPeer &peer, const AmHead &head, const unsigned char *frame);
    static void unplace(AmPeer &peer);
    bool take(AmPeer &peer, const unsigned char *data, size_t bytes);
    bool take_partial(AmPeer &peer);
    bool take_frame(AmPeer &peer, const AmHead &head, const unsigned char *payload, bool is_placed = false);
    bool execute(AmPeer &peer, const AmHead &head, const unsigned char *payload, bool is_placed);
    bool execute_whole(AmPeer &peer, const AmHead &head, const unsigned char *payload);
    bool may_execute(AmPeer &peer, const AmHead &head, const unsigned char *payload) noexcept;
    bool execute_here(AmPeer &peer, const AmHead &head, muster_am_fn function, const unsigned char *data, size_t size);
    bool give_to_host(AmPeer &peer, const AmHead &head, const unsigned char *payload, const Handler &handler);
    bool broken(AmPeer &peer, const char *what) noexcept;

    const Ref<Context> context_;
    const Ref<Queue> events_;                   // readiness of the streams, for the loop thread
    std::array<Handler, am_handlers> handlers_; // each is set once, under lock_, before requests for it arrive
    std::array<std::atomic<bool>, am_handlers> has_handler_{}; // release after it is set; pairs with execute()
    // In blocks that never move: any thread reads those that are counted, without the lock.
    static constexpr uint32_t max_peers = 65536, peers_per_block = 256;
    using PeerBlock = std::array<Ref<AmPeer>, peers_per_block>;
    std::array<std::unique_ptr<PeerBlock>, max_peers / peers_per_block> peers_;
    std::atomic<uint32_t> peer_count_{0}; // release after the peer was written
    std::mutex execution_lock_;
    std::shared_mutex memory_lock_; // shared by those that use the memory; close() waits for them
    std::mutex lock_;               // guards the rest
    bool closed_ = false;
    std::vector<uint32_t> again_; // peers that the loop thread reads in its next turn
    Signal changed_;              // a reply has arrived, or a peer has room or has ended
    // The loop thread.
    std::vector<unsigned char> in_, scratch_;
    Polling polling_;
    const bool can_poll_;
    int64_t poll_for_ns_ = 0, last_request_ns_ = 0;
    struct Polled {
        AmPeer *peer;
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
