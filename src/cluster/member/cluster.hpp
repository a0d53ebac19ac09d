// SPDX-License-Identifier: MIT
#pragma once
// What a master and a worker have in common: a thread of its own, events for the host, streams to other members.
#include "base/list.hpp"
#include "cluster/broadcast/inbox.hpp"
#include "cluster/broadcast/shared_bytes.hpp"
#include "cluster/launch/launch_plan.hpp"
#include "cluster/member/connections.hpp"
#include "cluster/member/control.hpp"
#include "cluster/member/hello.hpp"
#include "context/threaded_objects.hpp"
#include "queue/queue.hpp"
#include "transport/listener.hpp"

#include <muster/cluster.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace muster {

struct ReleaseListener {
    void operator()(muster_listener *listener) const noexcept {
        muster_listener_close(listener);
        muster_listener_release(listener);
    }
};
using ListenerHandle = std::unique_ptr<muster_listener, ReleaseListener>;

// A stream that the host wants to another member. Any thread; fields without a comment are the cluster thread's.
class ClusterDial final : public Object, private QueueUser {
  public:
    ClusterDial(Context &context, uint32_t member, std::string label, int64_t timeout_ns);
    Result<void> begin(Queue &queue, uint64_t tag); // before it is started: a completion is to come
    void give_up() noexcept;                        // it was not started: none
    Result<StreamHandle> wait();                    // of one without a queue
    void finish(StreamHandle stream) noexcept;      // this one and the next: the first counts
    void fail(const Error &why) noexcept;
    bool waited_for() const noexcept { return !queue_ && !on_done; }
    bool over() noexcept;

    const uint32_t member;
    const std::string label;
    const int64_t deadline_ns; // INT64_MAX: none

    std::function<void(StreamHandle, const Error &)> on_done; // a dial of the cluster itself: on its thread
    uint64_t number = 0, timer = 0;
    std::string address;        // where it was tried
    Error tried;                // how that went
    bool can_dial_back = false; // the other side can be asked to dial
    Ref<Object> slot;           // among the connections of this process
    StreamHandle stream;        // it is there, and the other side has not said whether it takes it
    std::string acceptance;     // what it has said of it so far
    uint64_t watch = 0;

  private:
    void end(StreamHandle stream, const Error &why) noexcept;
    void end_operations() noexcept override { fail(Error::make(MUSTER_E_CLOSED, "the queue is closed")); }
    bool cancel_operation(uint64_t tag) noexcept override;
    Object &owner() noexcept override { return *this; }
    Context &context_;
    Ref<Queue> queue_; // set by begin(); a slot is reserved
    uint64_t tag_ = 0;
    Signal signal_;
    std::mutex lock_; // guards the rest
    bool over_ = false;
    StreamHandle stream_;
    Error why_;
};

// Any thread, unless a member says otherwise.
class Cluster : public Object, private Source, public Listed<Cluster> {
    friend class Broadcasts;
    friend class ClusterHandle;

  public:
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }
    // What the host holds, to name the cluster in requests: null once it is released. Never dereferenced here.
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
    virtual bool knows_all_members() const noexcept = 0; // its members can be named by naming none
    // Ends it; MUSTER_TIMEOUT: some had to be killed. `timeout_ns` negative: the usual time.
    Status close(int64_t timeout_ns) noexcept;
    Status await_end() noexcept; // the second half of close()
    void close_soon(int64_t timeout_ns) noexcept;
    void context_closes() noexcept { close_soon(-1); }
    void leave_queue() noexcept; // the host has let go of it: nothing is told there any more

    // Does the end wait for what the calling thread would have to do?
    virtual bool would_deadlock_at_end() noexcept { return false; }
    virtual Status member(uint32_t member, muster_member_info &out) noexcept = 0;

  protected:
    Cluster(Context &context, Ref<Queue> completions, Ref<Queue> events, uint64_t events_tag);
    ~Cluster() override;
    Result<void> start_thread_of(bool events); // the thread holds a reference. `events`: open_events() first
    Status wait_for_self() noexcept;           // until self() is known; MUSTER_E_CLOSED: it is over
    void open_events() noexcept;

    // Runs on the cluster's thread; false: it is over. Any thread.
    bool post(std::function<void()> work);
    void report_event(uint32_t kind, uint32_t member, const Error &why, std::string_view text);
    void report_stream(uint32_t from, const std::string &label, StreamHandle stream);
    bool report_broadcast(uint32_t from, const std::string &label, Ref<BroadcastBytes> bytes); // false: too many wait
    bool over() noexcept;
    void set_self(uint32_t member) noexcept;

    // ---- from here on: the cluster's thread ----
    virtual void begin() {}                              // its first act
    virtual void begin_end(int64_t timeout_ns) = 0;      // close() was called, or called again
    virtual bool has_ended() const noexcept = 0;         // nothing is left to do
    virtual void thread_ends() noexcept {}               // its last act
    virtual void abandon() noexcept = 0;                 // the context is over: nothing can be heard any more
    virtual void find(const Ref<ClusterDial> &dial) = 0; // calls found(), or fails the dial
    // The other side is to dial this one with the number of `dial`, if there is a way to tell it.
    virtual bool request_dial_back(ClusterDial &dial) = 0;
    virtual void accepted(const ClusterHello &greeting, StreamHandle stream) = 0; // a control link
    // Of the listener, or none; and one that has come by one of them.
    virtual std::shared_ptr<OtherKeys> other_keys() { return {}; }
    virtual void send_ticket(uint64_t key, uint32_t member, StreamHandle stream) {
        (void)key, (void)member, (void)stream;
    }
    virtual bool accepts() const noexcept { return true; } // else who dials has to wait until watch_listener()
    using FoundInbox = std::function<void(const Error &, const std::string &inbox)>;
    virtual void find_inbox(uint32_t member, FoundInbox then) = 0;      // waits until the member has joined
    virtual bool send_control(uint32_t to, ControlMessage message) = 0; // by the master, if it is not this one
    virtual std::vector<uint32_t> all_members() { return {}; }
    virtual bool allows_relays() const noexcept { return true; } // may they have streams with each other?

    // What the running step works on. Where the step finds no memory, that ends with MUSTER_E_NOMEM, at once; a step
    // that names nothing is made again a moment later.
    struct StepSubject {
        Ref<ClusterDial> dial{};
        Ref<Object> broadcast{}; // of this member's
        uint64_t inflow = 0;     // of another's broadcast
        bool link = false;       // of a worker to its master, or of the master to this member
        uint32_t member = UINT32_MAX;
    };
    void set_subject(StepSubject what) noexcept { subject_ = std::move(what); }
    void set_subject(const Ref<ClusterDial> &dial) noexcept {
        set_subject(StepSubject{dial, {}, 0, false, UINT32_MAX});
    }
    void set_subject_link(uint32_t member) noexcept { set_subject(StepSubject{{}, {}, 0, true, member}); }
    virtual bool fail_link(const StepSubject &subject, const Error &why) = 0; // false: the step is to be made again
    template <class Step>
    bool try_step(const Step &step) noexcept { // false: it is to be made again
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

    // What comes in the completions with the number is given to `take`, until forget().
    using Handler = std::function<void(const muster_completion &, const Error &)>;
    uint64_t on_completion(Handler take); // it lives until it returns, even if it forgets itself
    uint64_t next_number() noexcept { return ++numbers_; }
    void drop_handler(uint64_t number) noexcept { handlers_.erase(number); }
    void wake_waiters() noexcept { context_->notify(signal_); } // of the end, to look again
    uint64_t start_timer(int64_t when_ns, std::function<void()> ring);
    void cancel_timer(uint64_t &alarm) noexcept; // and sets it to 0

    Error listen(const std::string &address, Listener::Opening opening = Listener::Opening::awaited);
    // `then` gets the result of a listen that was begun.
    void when_listening(std::function<void(const Error &)> then);
    void look_whether_listening(const std::function<void(const Error &)> &then);
    void watch_listener();
    void stop_listening() noexcept { listener_.reset(); }
    void expect_connections(uint32_t count) noexcept; // as many more than strangers may be there without a proof
    std::string listener_address() const;
    // Dials; `done` gets the stream, or why there is none.
    using Dialled = std::function<void(StreamHandle, const Error &)>;
    void dial(const std::string &address, const ClusterHello &greeting, int64_t timeout_ns, Dialled done);

    void found(const Ref<ClusterDial> &dial, std::string address, bool can_dial_back);
    void dial_back_failed(uint64_t number, uint32_t member, const Error &why);
    // Dials back to whoever has called; `failed` tells them when that is in vain.
    Ref<Object> take_slot() { return connection_limit_->take(link_count()); }
    bool has_slot() const noexcept { return connection_limit_->room(link_count()); }
    Error no_slot() const noexcept;
    virtual size_t
    link_count() const noexcept = 0; // connections that are there for the control of the cluster, or will be
    void dial_back(uint32_t from, uint64_t number, const std::string &label, const std::string &address, bool broadcast,
                   std::function<void(const Error &)> failed);
    void fail_dials(const Error &why, uint32_t member = UINT32_MAX); // to all, or to one
    void finish_thread() noexcept;                                   // no streams come or go any more

    uint64_t id_ = 0; // of the cluster
    bool closing_ = false, had_to_kill_ = false;
    const Ref<Queue> completions_;
    std::unique_ptr<class Broadcasts> broadcasts_;
    // Before the thread is there: connections, and bytes that may wait to be taken, 0: the usual number; and where it
    // takes memory of others of this host, unless `listen` wants none shared.
    void limit_connections(uint32_t most) { connection_limit_ = make_ref<ConnectionLimit>(most); }
    uint32_t max_links() const noexcept { return connection_limit_->given() ? connection_limit_->most() : UINT32_MAX; }
    void limit_broadcasts(uint64_t bytes) noexcept { broadcast_limit_ = bytes != 0 ? bytes : uint64_t{1} << 30; }
    void make_inbox(const std::string &listen);
    std::string inbox_address() const; // as it is told; empty: it has none

  private:
    struct Event {
        muster_cluster_event content;
        StreamHandle stream;
        Ref<BroadcastBytes> broadcast;
    };
    struct Waker final : Source { // of the completions, for what is posted: needs no memory
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
    void cancel_waited_for();
    bool give_up_step() noexcept;
    void accept_all();
    void take_stream(StreamHandle stream);
    void await_acceptance(const Ref<ClusterDial> &dial, StreamHandle stream);
    void receive_acceptance(const Ref<ClusterDial> &dial);
    bool send_acceptance(muster_stream *stream); // a stream that was accepted
    void tried(const Ref<ClusterDial> &dial, StreamHandle stream, const Error &why);
    void end_dial(ClusterDial &dial) noexcept;
    bool push(Event event) noexcept;
    Result<void> check_it_is_in() const noexcept;
    void dial_now(const Ref<ClusterDial> &dial);
    uint64_t untaken_bytes() const noexcept { return untaken_bytes_.load(std::memory_order_relaxed); }
    Object &owner() noexcept override { return *this; }

    const Ref<Context> context_;
    const Ref<Queue> events_queue_; // of the host's; or none
    const uint64_t events_tag_;
    std::atomic<uint32_t> self_{UINT32_MAX};
    std::atomic<ClusterHandle *> handle_{nullptr}; // release/acquire: the host may compare what it points to
    std::atomic<uint64_t> untaken_bytes_{0};       // relaxed: of broadcasts that the host has been told of

    // The cluster's thread.
    Ref<MemoryInbox> memory_inbox_;
    Ref<ConnectionLimit> connection_limit_;
    uint64_t broadcast_limit_ = 0;
    ListenerHandle listener_;
    std::unordered_map<uint64_t, std::shared_ptr<const Handler>> handlers_;
    std::multimap<int64_t, std::pair<uint64_t, std::function<void()>>> timers_;
    std::unordered_map<uint64_t, std::multimap<int64_t, std::pair<uint64_t, std::function<void()>>>::iterator> timer_;
    std::map<uint64_t, Ref<ClusterDial>> dials_;            // under way
    std::unordered_map<uint32_t, int> unreachable_members_; // members whom to dial was in vain before
    uint64_t numbers_ = 0;
    uint32_t dialling_back_ = 0;   // calls to which it dials back
    bool is_queue_closed_ = false; // the completions gives nothing any more
    StepSubject subject_;
    std::list<std::function<void()>> working_; // was posted, and is not done
    bool cancels_now_ = false, ends_now_ = false;
    int64_t end_timeout_ns_ = 0;
    Waker waker_{*this};

    Signal signal_;   // of events, and of the end
    std::mutex lock_; // guards the rest
    std::list<std::function<void()>> posted_;
    std::list<Event> events_, spare_events_;  // spare: for when there is no memory
    uint64_t cancels_ = 0, cancels_seen_ = 0; // seen: by the cluster's thread
    bool end_wanted_ = false;
    int64_t wanted_timeout_ns_ = 0;
    bool refuses_ = false, over_ = false, killed_ = false; // refuses_: nothing can be posted any more
};

// What the host holds: the cluster goes on without it, but only to its end. Any thread.
class ClusterHandle final : public Object {
  public:
    // Made before its cluster, which runs from its beginning, and would run on without a handle.
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

// A number nobody can guess.
Result<uint64_t> random_number();

} // namespace muster
