// SPDX-License-Identifier: MIT
#pragma once
// Transports served by the host: dialling and listening become requests in a queue, answered by id.
//
// A request has a slot of the queue for itself and one for its last word (CLOSE or CANCEL), reserved when it is made,
// so none of them is ever lost. Where the host takes calls on any thread they are notices for the loop instead.
#include "plugin/plugins.hpp"
#include "plugin/session_address.hpp"
#include "queue/queue.hpp"
#include "serve/pump.hpp"

#include <muster/serve.h>

#include <map>

namespace muster {

// Any thread.
class ServedListener final : public TransportListener {
  public:
    ServedListener(Served &transport, uint64_t request, const SessionAddress &address, const TransportOptions &options,
                   Ref<ListenerCore> core);
    std::string address() override;
    void close() noexcept override;
    void answer(std::string address) noexcept; // it listens; empty: at the address as asked for
    void fail(const Error &why) noexcept { core_->fail(why); }
    const SessionAddress &wanted() const noexcept { return wanted_; }
    SessionListener target();
    // Connections that came in and have not proved the secret yet.
    bool admit_one() noexcept;
    void proved_one() noexcept { unproved_.fetch_sub(1, std::memory_order_relaxed); }
    PendingSessions &pending() noexcept { return *pending_; } // loop thread
    Notices &notices() noexcept { return notices_; }

  private:
    const Ref<Served> transport_;
    const uint64_t request_;
    const SessionAddress wanted_;
    const TransportOptions options_;
    const Ref<ListenerCore> core_;
    const Ref<PendingSessions> pending_;
    std::atomic<uint32_t> unproved_{0}; // relaxed: a limit; those that the loop has not attached yet count
    Notices notices_;                   // under the transport's lock of notices
    std::mutex lock_;                   // guards the next two
    std::string address_;
    bool closed_ = false;
};

// The open requests of a context, by id, and who serves which scheme. Any thread.
class Requests final : public ContextPart, private QueueServer {
  public:
    static Requests &of(Context &context);
    enum class State { waiting, answered };
    struct Request {
        Ref<Served> transport;
        Ref<Pump> pump;               // OPEN, or a connection that came in
        Ref<ServedListener> listener; // LISTEN
        State state = State::waiting;
        bool seen = false; // the callback of it has run
    };

    // --- the host's answers ---
    Result<void> address(Queue &queue, uint64_t id, std::string &out);
    Result<Ref<Stream>> stream(Queue &queue, uint64_t id);
    Result<void> listening(Queue &queue, uint64_t id, std::string_view address);
    Result<void> fail(Queue &queue, uint64_t id, const Error &why);
    Result<Ref<Stream>> incoming(Queue &queue, uint64_t listen_id, std::string_view peer, uint64_t &out_id);
    Result<void> serve(Context &context, const std::string &scheme, Ref<Served> transport);
    Result<void> withdraw(const std::string &scheme);

  private:
    friend class Served;
    friend class RequestMade;
    Result<Request> find(Queue &queue, uint64_t id, bool open); // with lock_ held
    using ServedLine = std::map<std::string, Ref<Served>>::node_type;
    void withdraw(ServedLine line) noexcept; // taken out of the table
    void queue_released(Queue &queue) noexcept override;
    std::mutex lock_;
    std::map<uint64_t, Request> requests_;
    std::map<std::string, Ref<Served>> served_;
    uint64_t next_ = 1;
};

// One scheme. Any thread, unless a member says otherwise.
class Served final : public Transport, private SessionTransport, private RequestTable {
  public:
    // `ops` NULL: requests are pulled.
    Served(Context &context, Queue &queue, uint32_t flags, const muster_transport_ops *ops, void *self, uint64_t tag);
    bool reserve_last_word() noexcept { return !with_ops_ || queue_->reserve(); }

    void give_back_last_word() noexcept {
        if (with_ops_) queue_->unreserve();
    }

    void dial(const Address &address, const TransportOptions &options, Ref<Dial> dial) override;
    Result<Ref<TransportListener>> listen(const Address &address, const TransportOptions &options,
                                          Ref<ListenerCore> core) override;
    bool would_deadlock() noexcept override;

    Context &context() const noexcept { return context_; }
    Queue &queue() const noexcept { return *queue_; }
    bool withdrawn() const noexcept { return withdrawn_.load(std::memory_order_relaxed); }
    bool local() const noexcept { return (flags_ & MUSTER_TRANSPORT_LOCAL) != 0; }
    bool seals() const noexcept { return (flags_ & MUSTER_TRANSPORT_SEALS) != 0; }
    void withdraw() noexcept; // loop thread
    void withdraw_soon() noexcept { withdraw_.post(context_); }
    void over(uint64_t id) noexcept;   // a request has come to its end: its last word
    void unused(uint64_t id) noexcept; // it ends without a last word
    void line_gone() noexcept;         // one of the table
    bool reserve_two() noexcept;
    void use() noexcept;

  private:
    // The first word of a request, its last one, and the transport's own; into a slot that was reserved.
    void post_first(int32_t kind, uint64_t id, const Requests::Request &request) noexcept;
    void post_last(int32_t kind, uint64_t id, const Requests::Request &request) noexcept;
    void post(int32_t kind, uint64_t id, Notice &notice, Ref<Object> owner) noexcept;
    void serve_notices() noexcept; // loop thread
    void leave_if_over() noexcept; // loop thread
    bool any_line() noexcept;      // in the table; with Requests' lock held
    bool can_listen() const noexcept;
    bool any_thread() const noexcept { return (flags_ & MUSTER_TRANSPORT_ANY_THREAD) != 0; }
    void serve(const muster_completion &request) override;
    // loop thread
    Object &transport_object() noexcept override { return *this; }
    void context_closes() noexcept override { withdraw(); }
    bool context_drained() noexcept override;
    void context_stops() noexcept override;

    Context &context_;
    const Ref<Queue> queue_;
    muster_transport_ops ops_{};
    const bool with_ops_;
    void *const self_;
    const uint32_t flags_;
    const uint64_t tag_;
    const pthread_t registrant_;
    std::atomic<bool> withdrawn_{false}; // relaxed: an early answer; RequestMade::enter() is the place that counts
    std::atomic<bool> used_{false};      // relaxed: see leave_if_over()
    bool last_word_said_ = false;        // under Requests' lock
    PostedTask<Served, &Served::withdraw> withdraw_{*this};
    PostedTask<Served, &Served::serve_notices> serve_notices_{*this};
    PostedTask<Served, &Served::leave_if_over> leave_{*this};
    std::mutex notices_lock_; // guards what follows; a leaf
    List<Notice> notices_;
    Notice destroy_notice_;
    bool stopped_ = false; // nothing is said any more
};

// A request that is being made: slots of the queue that were reserved and a line of the table, given back unless it
// comes about. Any thread.
class RequestMade {
  public:
    RequestMade(Served &transport, int slots) noexcept : transport_(transport), slots_(slots) {}
    RequestMade(const RequestMade &) = delete;
    RequestMade &operator=(const RequestMade &) = delete;
    ~RequestMade();
    // Its number; the line is what `fill(Request &, number)` makes of it. 0: the transport was withdrawn. Looked at
    // under the lock, since withdraw() says so first and then walks the table: it finds every line that is let in.
    template <class Fill>
    uint64_t enter(Fill &&fill) {
        Requests &requests = Requests::of(transport_.context());
        const std::lock_guard hold(requests.lock_);
        if (transport_.withdrawn()) return 0;
        const auto line = requests.requests_.emplace(requests.next_, Requests::Request()).first;
        id_ = requests.next_++;
        line->second.transport = Ref<Served>(&transport_);
        fill(line->second, id_);
        return id_;
    }
    void keep() noexcept { slots_ = 0; }

  private:
    Served &transport_;
    int slots_;
    uint64_t id_ = 0;
};

} // namespace muster
