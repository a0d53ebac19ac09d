// SPDX-License-Identifier: MIT
#pragma once
// The common part of a master and a worker: a thread of its own, events for the host, streams to other members.
// Everything for which the thread waits arrives in one queue; that wait drives an external context (Queue::next()).
#include "base/list.hpp"
#include "base/trace.hpp"
#include "cluster/broadcast/inbox.hpp"
#include "cluster/broadcast/shared_bytes.hpp"
#include "cluster/launch/launch_plan.hpp"
#include "cluster/member/connections.hpp"
#include "cluster/member/control.hpp"
#include "cluster/member/hello.hpp"
#include "context/threaded_objects.hpp"
#include "queue/operation.hpp"
#include "transport/listener.hpp"

#include <muster/cluster.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace muster {

// Names a timer of a cluster; cancelled or not running: any other value has no effect. A value.
struct ClusterTimer {
    int64_t at_ns = 0;
    uint64_t number = 0; // 0: none
    auto operator<=>(const ClusterTimer &) const = default;
    explicit operator bool() const noexcept { return number != 0; }
};

// A dial of another member. Any thread; the public fields that change are the cluster thread's.
class ClusterDial final : public Object, public QueueOperation {
  public:
    ClusterDial(Context &context, uint32_t member, std::string label, int64_t timeout_ns);
    Result<StreamHandle> wait();               // of a dial without a queue
    void finish(StreamHandle stream) noexcept; // the first call of finish() and fail() counts
    void fail(const Error &why) noexcept;
    bool is_awaited() const noexcept { return !has_queue() && !on_done; }

    const uint32_t member;
    const std::string label;
    const int64_t deadline_ns; // INT64_MAX: none

    std::function<void(StreamHandle, const Error &)> on_done; // a dial of the cluster itself: on its thread
    uint64_t number = 0;
    ClusterTimer timer;
    std::string address;        // that was dialled
    Error tried;                // why that failed
    bool can_dial_back = false; // the other member can be requested to dial
    Ref<Object> slot;           // among the connections of this process
    StreamHandle stream;        // it is open, and the other member has not answered whether it accepts it
    std::string acceptance;     // the received part of its answer
    uint64_t watch = 0;

  private:
    void end(StreamHandle stream, const Error &why) noexcept;
    void end_early(Ending why) noexcept override;
    Object &owner() noexcept override { return *this; }
};

// Any thread, unless a member says otherwise.
class Cluster : public Object, private Source, public Listed<Cluster> {
    friend class Broadcasts;
    friend class ClusterHandle;

  public:
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }
    // The host's handle, to name the cluster in requests: null once it is released. Never dereferenced here.
    class ClusterHandle *handle() const noexcept {
        return handle_.load(std::memory_order_acquire);
    }
    uint64_t tag() const noexcept { return events_tag_; }
    uint32_t self() const noexcept { return self_.load(std::memory_order_acquire); } // pairs with set_self()

    Status next_event(Deadline &deadline, muster_cluster_event &out) noexcept;
    void cancel() noexcept;
    Result<void> start_dial(Ref<ClusterDial> dial);
    Result<void> start_broadcast(Ref<class ClusterBroadcast> broadcast);
    void end_broadcast(Ref<class ClusterBroadcast> broadcast, const Error &why) noexcept; // soon
    virtual bool knows_all_members() const noexcept = 0; // may a broadcast name no members, and be sent to all?
    virtual Result<std::string> store_address(Deadline &deadline) = 0; // of the store of the cluster
    // Ends it; MUSTER_TIMEOUT: some workers had to be killed. `timeout_ns` negative: the default.
    Status close(int64_t timeout_ns) noexcept;
    Status await_end() noexcept; // the second half of close()
    void close_soon(int64_t timeout_ns) noexcept;
    void context_closes() noexcept { close_soon(-1); }
    void leave_queue() noexcept; // the host has released it: no more notifications

    // Does the end wait for work of the calling thread?
    virtual bool would_deadlock_at_end() noexcept { return false; }
    virtual Status member(uint32_t member, muster_member_info &out) noexcept = 0;

  protected:
    Cluster(Context &context, Ref<Queue> completions, Ref<Queue> events, uint64_t events_tag);
    ~Cluster() override;
    Result<void> start_thread_of(bool events); // the thread holds a reference. `events`: open_events() first
    Status wait_for_self() noexcept;           // until self() is known; MUSTER_E_CLOSED: it is over
    void open_events() noexcept;

    // Posts a task to the cluster's thread; false: the cluster has ended. Any thread.
    bool post(std::function<void()> work);
    void report_event(uint32_t kind, uint32_t member, const Error &why, std::string_view text);
    // `number`: of the dial, at that member.
    void report_stream(uint32_t from, uint64_t number, const std::string &label, StreamHandle stream);
    uint64_t flow_of_dial(uint32_t from, uint64_t number) const noexcept { // in traces
        return Trace::flow_of(id_ ^ uint64_t{from} << 32, number);
    }
    bool report_broadcast(uint32_t from, const std::string &label, Ref<BroadcastBytes> bytes); // false: too many wait
    Result<void> check_joined() const noexcept;
    bool over() noexcept;
    void set_self(uint32_t member) noexcept;

    // ---- from here on: the cluster's thread ----
    virtual void begin() {}                              // the first step of the thread
    virtual void begin_end(int64_t timeout_ns) = 0;      // close() was called, or called again
    virtual bool has_ended() const noexcept = 0;         // nothing is left to do
    virtual void thread_ends() noexcept {}               // its last step
    virtual void abandon() noexcept = 0;                 // the context has ended: nothing can be received any more
    virtual void find(const Ref<ClusterDial> &dial) = 0; // calls found(), or fails the dial
    // Requests the other member to dial this one with the number of `dial`; false: that is impossible.
    virtual bool request_dial_back(ClusterDial &dial) = 0;
    virtual void accepted(const ClusterHello &hello, StreamHandle stream) = 0; // a control link
    // Further keys of the listener, or none; and a stream that was authenticated by one of them.
    virtual std::shared_ptr<OtherKeys> other_keys() { return {}; }
    virtual void send_ticket(uint64_t key, uint32_t member, StreamHandle stream) {
        (void)key, (void)member, (void)stream;
    }
    virtual bool accepts() const noexcept { return true; } // else connections wait until watch_listener()
    using FoundInbox = std::function<void(const Error &, const std::string &inbox)>;
    virtual void find_inbox(uint32_t member, FoundInbox then) = 0;      // waits until the member has joined
    virtual bool send_control(uint32_t to, ControlMessage message) = 0; // through the master, unless this is the master
    virtual std::vector<uint32_t> all_members() { return {}; }
    virtual bool allows_relays() const noexcept { return true; } // may members have streams with each other?

    // The subject of the running step. Where the step finds no memory, the subject fails at once with MUSTER_E_NOMEM; a
    // step without a subject is repeated a moment later.
    struct StepSubject {
        Ref<ClusterDial> dial{};
        Ref<Object> broadcast{}; // of this member
        uint64_t inflow = 0;     // of another member's broadcast
        bool link = false;       // of a worker to its master, or of the master to this worker
        uint32_t member = UINT32_MAX;
    };
    void set_subject(StepSubject what) noexcept { subject_ = std::move(what); }
    void set_subject(const Ref<ClusterDial> &dial) noexcept {
        set_subject(StepSubject{dial, {}, 0, false, UINT32_MAX});
    }
    void set_subject_link(uint32_t member) noexcept { set_subject(StepSubject{{}, {}, 0, true, member}); }
    virtual bool fail_link(const StepSubject &subject, const Error &why) = 0; // false: the step is to be repeated
    template <class Step>
    bool try_step(const Step &step) noexcept { // false: it is to be repeated
        subject_ = {};
        try {
            step();
        } catch (const std::bad_alloc &) {
            return give_up_step();
        } catch (const std::exception &failed) {
            context_->log(MUSTER_LOG_ERROR, "cluster: unexpected exception: %s", failed.what());
        }
        return true;
    }

    // Completions with the returned tag are passed to the handler, until drop_handler().
    using Handler = std::function<void(const muster_completion &, const Error &)>;
    uint64_t on_completion(Handler handler); // it lives until it returns, even if it drops itself
    uint64_t next_number() noexcept { return ++numbers_; }
    void drop_handler(uint64_t number) noexcept { handlers_.erase(number); }
    void wake_waiters() noexcept { context_->notify(signal_); } // of the end: they check again
    ClusterTimer start_timer(int64_t at_ns, std::function<void()> step);
    void cancel_timer(ClusterTimer &timer) noexcept { timers_.erase(std::exchange(timer, {})); }

    Error listen(const std::string &address, Listener::Opening opening = Listener::Opening::awaited);
    // `then` gets the result of a listen that was begun.
    void when_listening(const std::function<void(const Error &)> &then);
    void check_listening(const std::function<void(const Error &)> &then);
    void watch_listener();
    void stop_listening() noexcept;
    void expect_connections(uint32_t count) noexcept; // so many more unauthenticated peers than by default
    std::string listener_address() const;
    // Dials; `done` gets the stream, or the reason of the failure.
    using Dialled = std::function<void(StreamHandle, const Error &)>;
    void dial(const std::string &address, const ClusterHello &hello, int64_t timeout_ns, const Dialled &done);

    void found(const Ref<ClusterDial> &dial, std::string address, bool can_dial_back);
    void dial_back_failed(uint64_t number, uint32_t member, const Error &why);
    Ref<Object> take_slot() { return connection_limit_->acquire(link_count()); }
    bool has_slot() const noexcept { return connection_limit_->has_room(link_count()); }
    Error no_slot() const noexcept;
    virtual size_t
    link_count() const noexcept = 0; // connections for the control of the cluster, expected ones included
    // Dials a member that has requested it; `failed` reports a failure to it.
    void dial_back(uint32_t from, uint64_t number, const std::string &label, const std::string &address, bool broadcast,
                   std::function<void(const Error &)> failed);
    void fail_dials(const Error &why, uint32_t member = UINT32_MAX); // to all members, or to one
    void finish_thread() noexcept;                                   // streams end

    uint64_t id_ = 0; // of the cluster
    bool closing_ = false, had_to_kill_ = false;
    const Ref<Queue> completions_;
    std::unique_ptr<class Broadcasts> broadcasts_;
    // Before the thread runs: the maximum of connections, and of bytes that may wait to be taken, 0: the default; and
    // the inbox for memory of members on this host, unless `listen` excludes shared memory.
    void limit_connections(uint32_t max) { connection_limit_ = make_ref<ConnectionLimit>(max); }
    uint32_t max_links() const noexcept { return connection_limit_->given() ? connection_limit_->max() : UINT32_MAX; }
    void limit_broadcasts(uint64_t bytes) noexcept { broadcast_limit_ = bytes != 0 ? bytes : uint64_t{1} << 30; }
    void make_inbox(const std::string &listen);
    std::string inbox_address() const; // in the form that is sent to others; empty: there is none

  private:
    struct Event {
        muster_cluster_event content;
        StreamHandle stream;
        Ref<BroadcastBytes> broadcast;
    };
    struct Waker final : Source { // reports posted tasks in the queue of completions, without memory
        explicit Waker(Cluster &cluster) noexcept : cluster_(cluster) {}
        Object &owner() noexcept override { return cluster_; }

      private:
        Cluster &cluster_;
    };
    static void *body(void *self);
    void run() noexcept;
    void pump() noexcept;
    void take_entry(const muster_completion &entry, const muster_error &detail) noexcept;
    void run_timers() noexcept;
    void run_posted() noexcept;
    void wake() noexcept;
    void cancel_awaited();
    bool give_up_step() noexcept;
    void accept_all();
    void take_stream(StreamHandle stream);
    void await_acceptance(const Ref<ClusterDial> &dial, StreamHandle stream);
    void receive_acceptance(const Ref<ClusterDial> &dial);
    bool send_acceptance(StreamHandle &stream); // a stream that was accepted
    void tried(const Ref<ClusterDial> &dial, StreamHandle stream, const Error &why);
    void end_dial(ClusterDial &dial) noexcept;
    bool push(Event event) noexcept;
    void dial_now(const Ref<ClusterDial> &dial);
    uint64_t untaken_bytes() const noexcept { return untaken_bytes_.load(std::memory_order_relaxed); }
    Object &owner() noexcept override { return *this; }

    const Ref<Context> context_;
    const Ref<Queue> events_queue_; // of the host's; or none
    const uint64_t events_tag_;
    std::atomic<uint32_t> self_{UINT32_MAX};
    std::atomic<ClusterHandle *> handle_{nullptr}; // release/acquire: the host may compare the handle
    std::atomic<uint64_t> untaken_bytes_{0};       // relaxed: of broadcasts that were reported to the host

    // The cluster's thread.
    Ref<MemoryInbox> memory_inbox_;
    Ref<ConnectionLimit> connection_limit_;
    uint64_t broadcast_limit_ = 0;
    Ref<Listener> listener_;
    std::unordered_map<uint64_t, std::shared_ptr<const Handler>> handlers_;
    std::map<ClusterTimer, std::function<void()>> timers_;
    int64_t timers_paused_until_ns_ = 0;                    // a step found no memory
    std::map<uint64_t, Ref<ClusterDial>> dials_;            // in progress
    std::unordered_map<uint32_t, int> unreachable_members_; // that could not be dialled before
    uint64_t numbers_ = 0;
    uint32_t dialling_back_ = 0;   // requests that are being answered
    bool is_queue_closed_ = false; // no more completions
    StepSubject subject_;
    std::list<std::function<void()>> working_; // posted tasks that have not run
    bool cancels_now_ = false, ends_now_ = false;
    int64_t end_timeout_ns_ = 0;
    Waker waker_{*this};

    Signal signal_;   // of events, and of the end
    std::mutex lock_; // guards the rest
    std::list<std::function<void()>> posted_;
    std::list<Event> events_, spare_events_;  // spare: used if there is no memory
    uint64_t cancels_ = 0, cancels_seen_ = 0; // seen: by the cluster's thread
    bool end_wanted_ = false;
    int64_t wanted_timeout_ns_ = 0;
    bool refuses_ = false, over_ = false, killed_ = false; // refuses_: no more posts
};

// The handle of the host. Without it the cluster only ends. Any thread.
class ClusterHandle final : public Object {
  public:
    // The handle is made before its cluster, whose thread runs from the start.
    void hold(Ref<Cluster> cluster) noexcept {
        cluster_ = std::move(cluster);
        cluster_->handle_.store(this, std::memory_order_release);
    }
    Cluster &cluster() const noexcept { return *cluster_; }
    Context &context() const noexcept { return cluster_->context(); }

  private:
    ~ClusterHandle() override {
        if (!cluster_ || cluster_->forked()) return; // the parent's
        cluster_->handle_.store(nullptr, std::memory_order_release);
        cluster_->leave_queue();
        cluster_->close_soon(-1);
    }
    Ref<Cluster> cluster_;
};

inline ClusterHandle *unwrap(muster_cluster *handle) noexcept {
    return reinterpret_cast<ClusterHandle *>(handle);
}
inline muster_cluster *wrap(ClusterHandle *object) noexcept {
    return reinterpret_cast<muster_cluster *>(object);
}

// A number that cannot be guessed.
Result<uint64_t> random_number();

} // namespace muster
